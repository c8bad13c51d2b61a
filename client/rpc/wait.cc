#include "client/rpc/wait.h"

#include <grpc/support/time.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace jitc::rpc {

using common::ErrorKind;

namespace {

// For gRPC to end a call that was cancelled; added to what the caller allows.
constexpr double kEndSeconds = 1;

gpr_timespec after(double seconds) {
  const auto nanoseconds = static_cast<std::int64_t>(seconds * 1e9);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN));
}

struct GivenUp {
  std::unique_ptr<grpc::CompletionQueue> queue;
  std::shared_ptr<Call> call;
};

// Never freed, not at exit either: one of gRPC's threads may come to it at any time.
void keep(GivenUp given_up) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<GivenUp>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(given_up));
}

}  // namespace

Wait::Wait(double silence_seconds, double total_seconds, const ProgressCallback& progress)
    : patience_(Patience::Clock::now(), silence_seconds, total_seconds), progress_(progress) {}

Wait::~Wait() {
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
  }
}

double Wait::until_look() const {
  const auto left = patience_.wake() - Patience::Clock::now();
  return std::max(0.0, std::chrono::duration<double>(left).count());
}

common::Result<void> Wait::look() {
  const auto now = Patience::Clock::now();
  patience_.waited(now);
  if (auto error = patience_.expired(now)) return std::unexpected(std::move(*error));
  if (!progress_ || !patience_.take_tick(now)) return {};
  state_.seconds = patience_.seconds(now);
  if (progress_(state_)) return {};
  return common::fail(ErrorKind::kCancelled, "the caller gave up");
}

std::unexpected<common::Error> Wait::end(const std::shared_ptr<Call>& call, common::Error error) {
  call->context.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  if (queue_->AsyncNext(&tag, &ok, after(kEndSeconds)) == grpc::CompletionQueue::TIMEOUT) {
    keep({std::exchange(queue_, std::make_unique<grpc::CompletionQueue>()), call});
    error.remedy =
        "gRPC could not even end the call here, as when it gets no threads: raise the limit of processes and threads "
        "(ulimit -u, or the control group's pids.max)";
  }
  return std::unexpected(std::move(error));
}

common::Result<bool> Wait::next(const std::shared_ptr<Call>& call) {
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    switch (queue_->AsyncNext(&tag, &ok, after(until_look()))) {
      case grpc::CompletionQueue::GOT_EVENT:
        patience_.heard(Patience::Clock::now());
        // A busy stream must not starve the caller's progress or its total limit.
        if (auto looked = look(); !looked) {
          call->context.TryCancel();
          return std::unexpected(std::move(looked.error()));
        }
        return ok;
      case grpc::CompletionQueue::SHUTDOWN:
        return common::fail(ErrorKind::kInternal, "the completion queue is closed");
      case grpc::CompletionQueue::TIMEOUT:
        if (auto looked = look(); !looked) return end(call, std::move(looked.error()));
    }
  }
}

}  // namespace jitc::rpc
