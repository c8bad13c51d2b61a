#include "client/rpc/wait.h"

#include <grpc/support/time.h>

#include <algorithm>

namespace jitc::rpc {

using common::ErrorKind;

Wait::Wait(double silence_seconds, double total_seconds, const ProgressCallback& progress)
    : patience_(Patience::Clock::now(), silence_seconds, total_seconds), progress_(progress) {}

Wait::~Wait() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
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

common::Result<bool> Wait::next(grpc::ClientContext& context) {
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const auto nanoseconds = static_cast<std::int64_t>(until_look() * 1e9);
    const auto deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanoseconds, GPR_TIMESPAN));
    switch (queue_.AsyncNext(&tag, &ok, deadline)) {
      case grpc::CompletionQueue::GOT_EVENT:
        patience_.heard(Patience::Clock::now());
        // A busy stream must not starve the caller's progress or its total limit.
        if (auto looked = look(); !looked) {
          context.TryCancel();
          return std::unexpected(std::move(looked.error()));
        }
        return ok;
      case grpc::CompletionQueue::SHUTDOWN:
        return common::fail(ErrorKind::kInternal, "the completion queue is closed");
      case grpc::CompletionQueue::TIMEOUT:
        if (auto looked = look(); !looked) {
          // The operation ends at once, whatever the peer does; its buffers belong to the caller's frame.
          context.TryCancel();
          queue_.Next(&tag, &ok);
          return std::unexpected(std::move(looked.error()));
        }
    }
  }
}

}  // namespace jitc::rpc
