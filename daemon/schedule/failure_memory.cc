#include "daemon/schedule/failure_memory.h"

#include <utility>

namespace jitc::schedule {

bool FailureMemory::is_lasting(common::ErrorKind kind) {
  switch (kind) {
    case common::ErrorKind::kInvalidSource:
    case common::ErrorKind::kRefused:
    case common::ErrorKind::kOutOfMemory:
    case common::ErrorKind::kCompilerCrashed:
      return true;
    default:
      return false;
  }
}

void FailureMemory::remember(const common::Digest& key, Failure failure, Time until) {
  forget(key);
  if (entries_.size() >= kMost) forget(common::Digest(ends_.begin()->second));
  entries_.emplace(key, Entry{std::move(failure), ends_.emplace(until, key)});
}

void FailureMemory::forget(const common::Digest& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  ends_.erase(found->second.end);
  entries_.erase(found);
}

const FailureMemory::Failure* FailureMemory::find(const common::Digest& key, Time now) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || found->second.end->first <= now ? nullptr : &found->second.failure;
}

void FailureMemory::expire(Time now) {
  while (!ends_.empty() && ends_.begin()->first <= now) forget(common::Digest(ends_.begin()->second));
}

std::optional<Time> FailureMemory::next_end() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

}  // namespace jitc::schedule
