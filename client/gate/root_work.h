// A helper thread of the root, or of another rank that leads: what may block for long (store, daemon) runs there, so
// that the calling thread, which alone may call MPI, sends its beats whatever happens. A thread, never a process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "client/gate/sources.h"

namespace jitc::gate {

class RootWork {
 public:
  using Task = std::function<common::Result<Obtained>(const Report&)>;
  // Starts `task`, which owns all that it uses, since it may be abandoned. All signals are blocked on its thread: they
  // belong to the program's own.
  explicit RootWork(Task task);
  // Tells the task to give up and waits for it, unless it was abandoned or may be stuck: has_reported().
  ~RootWork();
  RootWork(const RootWork&) = delete;
  RootWork& operator=(const RootWork&) = delete;

  // True as soon as the task has ended, false at `deadline`.
  bool wait_until(std::chrono::steady_clock::time_point deadline);
  // Has the task said anything yet? Until then it may be stuck in a file system, where nothing can reach it.
  bool has_reported() const;
  rpc::Progress progress() const;
  // Once, after the task has ended.
  common::Result<Obtained> take();
  // Nobody waits for the task any more: should it ever go on, it is told to give up. `result` is taken in its place.
  void abandon(common::Result<Obtained> result);

 private:
  struct State;
  static void run(State& state, const Task& task);

  std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
};

}  // namespace jitc::gate
