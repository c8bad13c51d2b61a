#include "client/gate/root_work.h"

#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "client/gate/failure.h"

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

Result<Obtained> failed(const char* how) {
  try {
    return common::fail(ErrorKind::kInternal, std::string("a helper thread failed: ") + how);
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  }
}

// Exceptions of third-party code (memory, mostly) end here: none may cross a thread.
Result<Obtained> guarded(const RootWork::Task& task, const Report& report) {
  try {
    return task(report);
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory());
  } catch (const std::exception& thrown) {
    return failed(thrown.what());
  } catch (...) {  // nothing of ours throws anything else; what makes the code may
    return failed("something was thrown that is not a std::exception");
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

RootWork::RootWork() : state_(std::make_shared<State>()) {}

Result<std::unique_ptr<RootWork>> RootWork::start(Task task) {
  std::unique_ptr<RootWork> work(new RootWork);
  const BlockSignals block;
  try {
    work->thread_ = std::thread([state = work->state_, task = std::move(task)] { run(*state, task); });
  } catch (const std::system_error& refused) {
    return common::fail(ErrorKind::kInternal, std::string("no helper thread can be started: ") + refused.what(), {},
                        "raise the limit of processes (ulimit -u)");
  }
  return work;
}

RootWork::~RootWork() {
  if (!thread_.joinable()) return;
  give_up();
  if (wait_until({})) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void RootWork::give_up() {
  const std::lock_guard lock(state_->mutex);
  state_->is_given_up = true;
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
