// One caller's wait. The caller's own thread drives gRPC through a completion queue of its own: no other thread runs
// the caller's callbacks, and between events the thread sleeps in the kernel.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <functional>

#include "client/rpc/daemon.h"
#include "client/rpc/patience.h"
#include "common/error.h"

namespace jitc::rpc {

class Wait {
 public:
  using ProgressCallback = std::function<bool(const Progress&)>;

  // `progress` may be empty; it must outlive this object. Limits as in Patience.
  Wait(double silence_seconds, double total_seconds, const ProgressCallback& progress);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  grpc::CompletionQueue* queue() { return &queue_; }
  void* tag() { return this; }

  // Blocks until the one operation that was started on `queue()` with `tag()` is complete; its success flag. On an
  // error (a limit passed: kTimedOut; the caller gave up: kCancelled) the call is cancelled and the operation is
  // complete, too.
  common::Result<bool> next(grpc::ClientContext& context);
  // Due progress, limits. For waits that are not gRPC's.
  common::Result<void> look();
  // Time left until the next look, in seconds.
  double until_look() const;

  // What the next tick tells the caller; `seconds` is filled in.
  Progress& state() { return state_; }

 private:
  grpc::CompletionQueue queue_;
  Patience patience_;
  const ProgressCallback& progress_;
  Progress state_;
};

}  // namespace jitc::rpc
