// The capsules that failed compiles leave (common/capsule.h): a private directory of at most so many files and bytes,
// the oldest go first. Two failures under one key are one capsule, the later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/capsule.h"
#include "common/digest.h"
#include "daemon/service/work.h"

namespace jitc::service {

// What a failure was, before its texts are copied.
struct Failure {
  std::shared_ptr<const Prepared> prepared;
  common::Error error;
  WorkerFinished finished;  // of the last try; all empty when the worker was lost
  std::uint64_t memory_bytes = 0;
  std::uint32_t cpu_seconds = 0, compilers = 0;
  std::uint64_t budget_bytes = 0, predicted_bytes = 0;
  std::uint32_t attempts = 0;
};
common::Capsule capsule_of(const Failure& failure);
// What compilers and their drivers read of this process's: NAME=value.
std::vector<std::string> compiler_environment();

class Capsules {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // the directory may be in memory

  // `most`: files; 1 or more.
  Capsules(std::string directory, std::size_t most) : directory_(std::move(directory)), most_(most) {}

  std::string path_of(const common::Digest& key) const { return directory_ + "/" + key.hex() + ".json"; }
  // Writes the failure's capsule, if it can, and answers which keys have one now. One thread at a time.
  std::set<common::Digest> keep(const Failure& failure) const;

 private:
  struct Entry;
  common::Result<void> write(const common::Digest& key, const std::string& text) const;
  common::Result<void> prepare() const;
  // Of this directory, last written first. Temporary files of writers that died are removed; what is dated in the
  // future is dated now.
  std::vector<Entry> entries() const;
  // Removes the oldest until the rest is within the limits; which keys have one then.
  std::set<common::Digest> trim(const common::Digest& newest) const;

  std::string directory_;
  std::size_t most_;
};

}  // namespace jitc::service
