// When this process may start another one: at most once, and never after it has connected to a daemon. gRPC then has
// threads and sockets that a child must not inherit, and the network's pinned pages must not be in a fork. A rule for
// the whole process, since its contexts share all of that.
#pragma once

#include <condition_variable>
#include <mutex>

namespace jitc::gate {

class FirstContact {
 public:
  // True for the first caller of all, if none has connected: it may start a process, and must say has_started()
  // afterwards, whatever came of it. Others wait meanwhile.
  bool may_start() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != State::kStarting; });
    if (state_ != State::kUntouched) return false;
    state_ = State::kStarting;
    return true;
  }
  void has_started() {
    {
      const std::lock_guard lock(mutex_);
      state_ = State::kOver;
    }
    changed_.notify_all();
  }
  // From now on nothing is started. Waits for a start that is under way.
  void connect() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return state_ != State::kStarting; });
    state_ = State::kOver;
  }

 private:
  enum class State { kUntouched, kStarting, kOver };
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kUntouched;
};

}  // namespace jitc::gate
