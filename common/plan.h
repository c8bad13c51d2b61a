// A plan: what a run asked for, so that it can be built before the next one. A text of lines, each a JSON object:
//
//   format "jitc plan", version (1)
//   digest   request digest of `request`, 64 hex digits
//   request  as in a capsule (common/capsule.h). Its code is that of a problem, which nobody else can print again, and
//            empty for a C text; isa_level is always empty: who builds it says for which CPUs
//
// docs/formats.md has the members. Lines are added, never changed; several processes may add to one file.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/files.h"
#include "common/request.h"

namespace jitc::common {

inline constexpr std::uint32_t kPlanVersion = 1;

struct Plan {
  std::vector<Request> requests;       // each once, in the order of their first lines
  std::vector<std::size_t> cut_lines;  // numbers of lines that were not written to their ends: left out
};

// One line, with its end. kUsage for a text that is not UTF-8, which JSON cannot hold.
Result<std::string> plan_line(const Request& request);

// `name` is the file's, for errors. kUsage, with the line's number: not a line of a plan, or its request is not the one
// that was recorded. kVersionSkew: of a later version.
Result<Plan> plan_from_text(std::string_view text, const std::string& name);

// Adds requests to a file. Threads may use it at the same time.
class PlanRecorder {
 public:
  // The file is made (0600) with the first request.
  explicit PlanRecorder(std::string path) : path_(std::move(path)) {}

  // Not in the file yet, as far as one can see: of processes that add the same at one moment each may.
  Result<bool> lacks(const Digest& request);
  // kUsage, or as write_error_kind() says. To be called after lacks(), which sees how the file ends.
  Result<void> add(const Request& request);

 private:
  Result<void> open();
  Result<void> catch_up();

  const std::string path_;
  std::mutex mutex_;  // of what follows
  Fd file_;
  std::uint64_t read_ = 0;     // bytes of whole lines
  bool ends_in_line_ = false;  // the file does: somebody was stopped while writing, or writes now
  std::set<Digest> known_;
};

}  // namespace jitc::common
