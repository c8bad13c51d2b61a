#include "tests/support/failing_new.h"

#include <cstdlib>
#include <new>

namespace {

struct Order {
  bool is_on = false;
  bool all = false;
  bool has_failed = false;
  int spared = 0;
  std::size_t smallest = 0;
};
thread_local Order order;

bool must_fail(std::size_t size) {
  if (!order.is_on || size < order.smallest) return false;
  if (order.spared > 0) {
    --order.spared;
    return false;
  }
  if (order.has_failed && !order.all) return false;
  return order.has_failed = true;
}

}  // namespace

// Sanitizers have both of their own, and want memory back from whom it was taken.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return must_fail(size) ? nullptr : std::malloc(size ? size : 1);
}
void* operator new(std::size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace jitc::testing {

FailingNew::FailingNew(int spared, std::size_t smallest, bool all) { order = {true, all, false, spared, smallest}; }
FailingNew::~FailingNew() { order = {}; }
bool FailingNew::has_failed() const { return order.has_failed; }

}  // namespace jitc::testing
