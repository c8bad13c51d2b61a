#include "tests/support/failing_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

namespace {

using Free = std::shared_ptr<std::atomic<int>>;
thread_local Free free_places;

struct Start {
  void* (*run)(void*);
  void* argument;
  Free places;
};

void* run_counted(void* given) {
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  void* result = start->run(start->argument);
  ++*start->places;
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (!free_places) return create(thread, attributes, run, argument);
  if (--*free_places < 0) {
    ++*free_places;
    return EAGAIN;
  }
  std::unique_ptr<Start> start(new (std::nothrow) Start{run, argument, free_places});
  if (!start) {
    ++*free_places;
    return EAGAIN;
  }
  const int code = create(thread, attributes, run_counted, start.get());
  if (code == 0) static_cast<void>(start.release());
  return code;
}

namespace jitc::testing {

FailingThreads::FailingThreads(int most) { free_places = std::make_shared<std::atomic<int>>(most); }
FailingThreads::~FailingThreads() { free_places.reset(); }

}  // namespace jitc::testing
