#include "tests/support/failing_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

namespace {

using Free = std::shared_ptr<std::atomic<int>>;
// A bare pointer, since the one that it is of may live longer than this thread's variables.
thread_local const Free* free_places = nullptr;

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
  const Free& places = *free_places;
  if (--*places < 0) {
    ++*places;
    return EAGAIN;
  }
  std::unique_ptr<Start> start(new (std::nothrow) Start{run, argument, places});
  if (!start) {
    ++*places;
    return EAGAIN;
  }
  const int code = create(thread, attributes, run_counted, start.get());
  if (code == 0) static_cast<void>(start.release());
  return code;
}

namespace jitc::testing {

FailingThreads::FailingThreads(int most) : places_(std::make_shared<std::atomic<int>>(most)) { free_places = &places_; }
FailingThreads::~FailingThreads() { free_places = nullptr; }

}  // namespace jitc::testing
