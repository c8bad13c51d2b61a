#include "client/gate/root_work.h"

#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

namespace jitc::gate {
namespace {

using common::ErrorKind;
using common::Result;

// Blocks all signals for threads that are started meanwhile.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_{};
};

// Exceptions of third-party code (memory, mostly) end here: none may cross a thread.
Result<Obtained> guarded(const RootWork::Task& task, const Report& report) {
  try {
    return task(report);
  } catch (const std::exception& thrown) {
    return common::fail(ErrorKind::kInternal, std::string("the root failed: ") + thrown.what());
  }
}

}  // namespace

struct RootWork::State {
  std::mutex mutex;
  std::condition_variable ended;
  rpc::Progress progress;
  bool has_reported = false;
  bool is_given_up = false;
  bool is_abandoned = false;  // the result is another one
  std::optional<Result<Obtained>> result;
};

RootWork::RootWork(Task task) : state_(std::make_shared<State>()) {
  const BlockSignals block;
  try {
    thread_ = std::thread([state = state_, task = std::move(task)] { run(*state, task); });
  } catch (const std::system_error& refused) {
    state_->result =
        common::fail(ErrorKind::kInternal, std::string("no helper thread can be started: ") + refused.what(), {},
                     "raise the limit of processes (ulimit -u)");
  }
}

RootWork::~RootWork() {
  if (!thread_.joinable()) return;
  bool may_hang = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_given_up = true;
    may_hang = !state_->has_reported && !state_->result;
  }
  if (may_hang) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void RootWork::run(State& state, const Task& task) {
  Result<Obtained> result = guarded(task, [&state](const rpc::Progress& progress) {
    const std::lock_guard lock(state.mutex);
    state.progress = progress;
    state.has_reported = true;
    return !state.is_given_up;
  });
  {
    const std::lock_guard lock(state.mutex);
    if (!state.is_abandoned) state.result = std::move(result);
  }
  state.ended.notify_one();
}

bool RootWork::wait_until(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->ended.wait_until(lock, deadline, [this] { return state_->result.has_value(); });
}

bool RootWork::has_reported() const {
  const std::lock_guard lock(state_->mutex);
  return state_->has_reported;
}

rpc::Progress RootWork::progress() const {
  const std::lock_guard lock(state_->mutex);
  return state_->progress;
}

Result<Obtained> RootWork::take() {
  const std::lock_guard lock(state_->mutex);
  return std::move(state_->result.value());
}

void RootWork::abandon(Result<Obtained> result) {
  const std::lock_guard lock(state_->mutex);
  state_->is_given_up = true;
  state_->is_abandoned = true;
  state_->result = std::move(result);
  if (thread_.joinable()) thread_.detach();
}

}  // namespace jitc::gate
