#include "client/rpc/wait.h"

#include <gmock/gmock.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <memory>

namespace jitc::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An operation that cancelling its context does not end, as in a process where gRPC got no thread.
struct AlarmCall : Call {
  grpc::Alarm alarm;
};

TEST(Wait, GivesUpACallThatDoesNotEndWhenCancelled) {
  const Wait::ProgressCallback nobody;
  auto call = std::make_shared<AlarmCall>();
  {
    Wait wait(0.01, 0, nobody);
    call->alarm.Set(wait.queue(), gpr_inf_future(GPR_CLOCK_MONOTONIC), wait.tag());
    const auto done = wait.next(call);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, common::ErrorKind::kTimedOut);
    EXPECT_THAT(done.error().message, HasSubstr("0.01 s"));
    EXPECT_THAT(done.error().remedy, HasSubstr("ulimit -u"));
  }
  // gRPC may still use it, whatever becomes of the caller.
  EXPECT_EQ(call.use_count(), 2);
  call->alarm.Cancel();
}

TEST(Wait, ACallThatEndsWhenCancelledIsTheCallersAlone) {
  auto call = std::make_shared<AlarmCall>();
  const Wait::ProgressCallback progress = [&](const Progress&) {
    call->alarm.Cancel();
    return false;
  };
  {
    Wait wait(0, 0, progress);
    call->alarm.Set(wait.queue(), gpr_inf_future(GPR_CLOCK_MONOTONIC), wait.tag());
    const auto done = wait.next(call);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, common::ErrorKind::kCancelled);
    EXPECT_THAT(done.error().remedy, Not(HasSubstr("ulimit")));
  }
  EXPECT_EQ(call.use_count(), 1);
}

}  // namespace
}  // namespace jitc::rpc
