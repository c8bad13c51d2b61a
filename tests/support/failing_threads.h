// Programs that link failing_threads.cc have a pthread_create that fails on order.
#pragma once

#include <atomic>
#include <memory>

namespace jitc::testing {

// While it lives, no more than `most` of the threads that this thread starts may run at a time: a further one is
// refused with EAGAIN, as where the limit of processes is reached.
class FailingThreads {
 public:
  explicit FailingThreads(int most);
  ~FailingThreads();
  FailingThreads(const FailingThreads&) = delete;
  FailingThreads& operator=(const FailingThreads&) = delete;

 private:
  const std::shared_ptr<std::atomic<int>> places_;
};

}  // namespace jitc::testing
