// Programs that link failing_new.cc have an operator new that fails on order, thread by thread.
#pragma once

#include <cstddef>

namespace jitc::testing {

// While it lives, allocations of this thread fail: the one after `spared` others, or (`all`) each from there on, if
// they are of at least `smallest` bytes (smaller ones are not counted).
class FailingNew {
 public:
  explicit FailingNew(int spared, std::size_t smallest = 0, bool all = false);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  // Has one failed?
  bool has_failed() const;
};

}  // namespace jitc::testing
