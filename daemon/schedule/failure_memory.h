// Failures are results: the same broken source gets the same answer at once, for a stated time.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/schedule/scheduler.h"

namespace jitc::schedule {

class FailureMemory {
 public:
  struct Failure {
    common::Error error;
    std::vector<std::string> rungs;
  };

  // Does the same request fail the same way again? What was cancelled, refused for lack of room or timed out may not.
  static bool is_lasting(common::ErrorKind kind);

  void remember(const common::Digest& key, Failure failure, Time until);
  void forget(const common::Digest& key);
  // nullptr: none, or its time is over.
  const Failure* find(const common::Digest& key, Time now) const;
  void expire(Time now);
  // When the first one ends.
  std::optional<Time> next_end() const;

 private:
  // Errors carry logs: so many are kept, then the one that ends first goes.
  static constexpr std::size_t kMost = 1000;
  using Ends = std::multimap<Time, common::Digest>;
  struct Entry {
    Failure failure;
    Ends::iterator end;
  };
  std::unordered_map<common::Digest, Entry> entries_;
  Ends ends_;
};

}  // namespace jitc::schedule
