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
  // Starts `task`, which owns all that it uses, since it may outlive this. All signals are blocked on its thread: they
  // belong to the program's own. Fails when there can be no further thread.
  static common::Result<std::unique_ptr<RootWork>> start(Task task);
  // Tells the task to give up, and does not wait for it: it may be stuck in a file system, or make code for long.
  ~RootWork();
  RootWork(const RootWork&) = delete;
  RootWork& operator=(const RootWork&) = delete;

  // Nobody waits for the task any more: at its next report it is told to give up.
  void give_up();
  // True as soon as the task has ended, false at `deadline`.
  bool wait_until(std::chrono::steady_clock::time_point deadline);
  // Has the task said anything yet? Until then it may be stuck in a file system, where nothing can reach it.
  bool has_reported() const;
  rpc::Progress progress() const;
  // Once, after the task has ended.
  common::Result<Obtained> take();
  // give_up(), and `result` is taken in place of the task's.
  void abandon(common::Result<Obtained> result);

 private:
  struct State;
  RootWork();
  static void run(State& state, const Task& task);

  std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
};

}  // namespace jitc::gate
