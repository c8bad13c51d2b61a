// What `jitc top` shows. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/terminal_text.h"

namespace jitc::cli {

struct TopJob {
  std::uint64_t flight = 0;
  std::string phase;  // looking_up, queued, elsewhere, running, publishing
  std::uint32_t place = 0, attempt = 0;
  double seconds = 0;  // since it was asked for; of a compile that runs: since its start
  std::uint64_t memory_bytes = 0, limit_bytes = 0;
  std::string client, name;
};

struct TopView {
  std::string version;
  std::int64_t pid = 0;
  double uptime_seconds = -1;  // below 0: not known
  bool draining = false;
  std::uint32_t slots = 0;
  std::uint64_t memory_bytes = 0, reserved_bytes = 0, budget_bytes = 0, peak_bytes = 0;
  std::uint64_t requests = 0, hits = 0, merged = 0, compiles_started = 0, compiles_failed = 0;
  double compiles_per_minute = 0;
  std::vector<TopJob> jobs;  // those that run first, then the queue in its order
};
// From the daemon's answers, the JSON objects of rpc::Daemon::query.
TopView top_view(std::string_view hello, std::string_view jobs, std::string_view stats);

std::string top_text(const TopView& view, const Screen& screen);

// Compiles per minute, over the last minute that was looked at.
class CompileRate {
 public:
  // `seconds` of any clock that does not go back. A number that fell is another daemon's: it begins anew.
  void add(double seconds, std::uint64_t compiles_started);
  // Before there are two looks: since the daemon's start, `uptime_seconds` ago.
  double per_minute(double uptime_seconds) const;

 private:
  std::deque<std::pair<double, std::uint64_t>> looks_;
};

}  // namespace jitc::cli
