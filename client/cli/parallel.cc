#include "client/cli/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>

namespace jitc::cli {

void add_thread(std::vector<std::jthread>& threads, const std::function<void()>& run) { threads.emplace_back(run); }

namespace {

// False at a limit on threads (ulimit -u): those that there are, the caller's at least, do the work.
bool can_add(std::vector<std::jthread>& threads, const std::function<void()>& run, const AddThread& add) {
  try {
    add(threads, run);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

void in_parallel(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& work,
                 const std::function<void(std::size_t, const std::exception&)>& failed, const AddThread& add) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t at = next++; at < count; at = next++) {
      try {
        work(at);
      } catch (const std::exception& exception) {
        failed(at, exception);
      }
    }
  };
  std::vector<std::jthread> threads;  // joined at the end of this block
  while (threads.size() + 1 < std::min(count, max_threads) && can_add(threads, run, add)) {
  }
  run();
}

}  // namespace jitc::cli
