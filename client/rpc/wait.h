// One caller's wait. The caller's own thread drives gRPC through a completion queue of its own: no other thread runs
// the caller's callbacks, and between events the thread sleeps in the kernel.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>

#include "client/rpc/daemon.h"
#include "client/rpc/patience.h"
#include "common/error.h"

namespace jitc::rpc {

// What gRPC may use until an operation is complete: a caller adds its reader and what that writes into.
struct Call {
  Call() = default;
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  grpc::ClientContext context;
};

class Wait {
 public:
  using ProgressCallback = std::function<bool(const Progress&)>;

  // `progress` may be empty; it must outlive this object. Limits as in Patience.
  Wait(double silence_seconds, double total_seconds, const ProgressCallback& progress);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  grpc::CompletionQueue* queue() { return queue_.get(); }
  void* tag() { return this; }

  // Blocks until the one operation that was started on `queue()` with `tag()` is complete; its success flag. On an
  // error (a limit passed: kTimedOut; the caller gave up: kCancelled) the call is cancelled. gRPC completes what was
  // cancelled at once, unless it has no thread to do so; then the call and its queue are given up, and kept as long as
  // the process lives.
  common::Result<bool> next(const std::shared_ptr<Call>& call);
  // For what was heard, and for waits, that are not gRPC's.
  void heard() { patience_.heard(Patience::Clock::now()); }
  // Due progress, limits.
  common::Result<void> look();
  // Gives up the call; the error is the caller's.
  std::unexpected<common::Error> end(const std::shared_ptr<Call>& call, common::Error error);
  // Time left until the next look, in seconds.
  double until_look() const;

  // What the next tick tells the caller; `seconds` is filled in.
  Progress& state() { return state_; }

 private:
  std::unique_ptr<grpc::CompletionQueue> queue_ = std::make_unique<grpc::CompletionQueue>();
  Patience patience_;
  const ProgressCallback& progress_;
  Progress state_;
};

}  // namespace jitc::rpc
