// The same work for several things at once.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace jitc::cli {

// Adds a thread that runs this; std::system_error where the system gives none.
using AddThread = std::function<void(std::vector<std::jthread>&, const std::function<void()>&)>;
void add_thread(std::vector<std::jthread>& threads, const std::function<void()>& run);

// Calls work(0 .. count-1), each once, on this thread and up to max_threads-1 others; fewer when the system gives no
// more. An exception of work(i) goes to failed(i, exception). Returns when all is done.
void in_parallel(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& work,
                 const std::function<void(std::size_t, const std::exception&)>& failed,
                 const AddThread& add = add_thread);

}  // namespace jitc::cli
