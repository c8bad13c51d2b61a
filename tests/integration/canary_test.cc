// The real jitc-worker calls modules of which it is known what they must compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "tests/support/worker_client.h"

namespace jitc::testing {
namespace {

using Finished = v1::WorkerReport::Finished;
using Argument = v1::Canary::Argument;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// void f(const double *x, double t, double *out) at the point x = {2, 3}, t = 0.5 must give these two numbers.
v1::Canary canary_of(std::vector<double> want, std::vector<double> allowed = {0, 0}) {
  v1::Canary canary;
  auto& point = *canary.add_points();
  point.add_numbers(2);
  point.add_numbers(3);
  point.set_t(0.5);
  auto& call = *canary.add_calls();
  call.set_function("f");
  auto& numbers = *call.add_arguments();
  numbers.set_kind(Argument::NUMBERS);
  numbers.set_count(2);
  call.add_arguments()->set_kind(Argument::OUTPUT);
  auto& output = *call.add_outputs();
  output.set_kind("g0");
  output.set_of("block u-p");
  output.add_shape(1);
  output.add_shape(2);
  output.mutable_want()->Assign(want.begin(), want.end());
  output.mutable_allowed()->Assign(allowed.begin(), allowed.end());
  return canary;
}

std::string body(const std::string& statements) {
  return "void f(const double *x, double *out, double t) { " + statements + " }";
}

class CanaryTest : public ::testing::Test {
 protected:
  std::uint64_t start(const std::string& source, const v1::Canary& canary, std::uint32_t cpu_seconds = 60) {
    const Answer module = worker_.compile(source, WorkerClient::request({"-fno-strict-aliasing"}));
    EXPECT_EQ(module.finished.outcome(), Finished::DONE) << module.finished.DebugString();
    return worker_.check(module.elf, canary, cpu_seconds);
  }
  Finished check(const std::string& source, const v1::Canary& canary = canary_of({2.5, 6}),
                 std::uint32_t cpu_seconds = 60) {
    Finished finished = worker_.wait_finished(start(source, canary, cpu_seconds)).finished;
    EXPECT_TRUE(finished.check());
    EXPECT_THAT(finished.command(), IsEmpty());
    return finished;
  }
  void expect_refused(const Finished& finished, const std::string& thing, const std::string& words) {
    EXPECT_EQ(finished.outcome(), Finished::MISCOMPILED) << finished.DebugString();
    EXPECT_EQ(finished.thing(), thing);
    EXPECT_THAT(finished.message(), HasSubstr(words));
  }

  WorkerClient worker_;
};

TEST_F(CanaryTest, ARightModulePasses) {
  const Finished finished = check(body("out[0] = x[0] + t; out[1] = x[0] * x[1];"));
  EXPECT_EQ(finished.outcome(), Finished::DONE) << finished.DebugString();
}

TEST_F(CanaryTest, AWrongEntryIsNamed) {
  expect_refused(check(body("out[0] = x[0] + t; out[1] = x[0] * x[1] + 1e-9;")), "g0[0][1] of block u-p",
                 "at point 1 it gives 6.000000001 instead of 6, which may differ by 0");
  expect_refused(check(body("out[0] = x[0] + t;")), "g0[0][1] of block u-p", "it gives nan");
}

TEST_F(CanaryTest, WhatIsAllowedAndWhatNobodyKnowsPasses) {
  const std::string source = body("out[0] = x[0] + t + 1e-9; out[1] = 0.0 / (t - 0.5);");
  EXPECT_EQ(check(source, canary_of({2.5, 6}, {2e-9, kInfinity})).outcome(), Finished::DONE);
  expect_refused(check(source, canary_of({2.5, 6}, {2e-9, 1e300})), "g0[0][1] of block u-p", "it gives");
  const std::string pole = body("out[0] = -1 / (t - 0.5); out[1] = 6;");
  EXPECT_EQ(check(pole, canary_of({-kInfinity, 6})).outcome(), Finished::DONE);
  expect_refused(check(pole, canary_of({kInfinity, 6})), "g0[0][0] of block u-p", "it gives -inf instead of inf");
}

TEST_F(CanaryTest, EveryPointOfABatchIsCompared) {
  v1::Canary canary = canary_of({2, 3});
  canary.set_copies(37);
  Argument& points = *canary.mutable_calls(0)->add_arguments();
  points.set_kind(Argument::INTEGER);
  points.set_value(37);
  const auto batch = [](const std::string& more) {
    return "void f(const double *x, double *out, long n) { for (long p = 0; p < n; ++p) { out[p] = x[p]; "
           "out[n + p] = x[n + p]" +
           more + "; } }";
  };
  EXPECT_EQ(check(batch(""), canary).outcome(), Finished::DONE);
  expect_refused(check(batch(" + (p == 36)"), canary), "g0[0][1] of block u-p", "it gives 4 instead of 3");
}

TEST_F(CanaryTest, AWriteBehindTheEntriesIsFound) {
  expect_refused(check(body("out[0] = x[0] + t; out[1] = 6; out[3] = 1;")), "g0[1][0] of block u-p",
                 "behind its 2 entries");
}

TEST_F(CanaryTest, AModuleWithoutTheFunctionIsAnotherOne) {
  expect_refused(check("void g(void) {}"), "function 'f'", "the module does not have it");
}

TEST_F(CanaryTest, AModuleThatFlushesSubnormalsIsRefused) {
  const char* flush = "__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);";
  expect_refused(check(body(flush)), "the module", "MXCSR is 0x9fc0, it was 0x1f80");
}

TEST_F(CanaryTest, OneThatEndsItsProcessIsRefused) {
  expect_refused(check(body("__builtin_trap();")), "the module", "SIGILL");
  expect_refused(check(body("*(volatile int *)8 = 1;")), "the module", "SIGSEGV");
  expect_refused(check(body("for (volatile int i = 0;; ++i) {}"), canary_of({0, 0}), 1), "the module",
                 "did not come back in 1 s of CPU time");
  EXPECT_EQ(check(body("out[0] = x[0] + t; out[1] = 6;")).outcome(), Finished::DONE);
}

TEST_F(CanaryTest, OneThatOthersEndIsNotJudged) {
  const std::uint64_t job = start(body("for (volatile int i = 0;; ++i) {}"), canary_of({0, 0}));
  kill(worker_.wait_started(job), SIGKILL);
  EXPECT_EQ(worker_.wait_finished(job).finished.outcome(), Finished::CRASHED);
  const std::uint64_t other = start(body("for (volatile int i = 0;; ++i) {}"), canary_of({0, 0}));
  worker_.wait_started(other);
  worker_.cancel(other);
  EXPECT_EQ(worker_.wait_finished(other).finished.outcome(), Finished::CANCELLED);
}

TEST_F(CanaryTest, WhatCannotBeLoadedOrReadIsNotJudged) {
  const common::Fd text = common::sealed_memfd("module", "no module", true).value();
  EXPECT_EQ(worker_.wait_finished(worker_.check(text, canary_of({0, 0}))).finished.outcome(), Finished::REFUSED);
  const std::string right = body("out[0] = x[0] + t; out[1] = 6;");
  for (const auto& spoil : std::vector<void (*)(v1::Canary&)>{
           [](auto& canary) { canary.mutable_calls(0)->mutable_arguments(0)->set_count(3); },
           [](auto& canary) { canary.mutable_calls(0)->mutable_arguments(0)->set_value(INT64_MAX); },
           [](auto& canary) { canary.mutable_calls(0)->mutable_arguments(0)->set_value(-1); },
           [](auto& canary) { canary.mutable_calls(0)->mutable_arguments(1)->set_value(1); },
           [](auto& canary) { canary.mutable_calls(0)->mutable_outputs(0)->add_want(1); },
           [](auto& canary) { canary.set_copies(UINT32_MAX); }, [](auto& canary) { canary.clear_points(); }}) {
    v1::Canary canary = canary_of({2.5, 6});
    spoil(canary);
    EXPECT_EQ(check(right, canary).outcome(), Finished::REFUSED) << canary.DebugString();
  }
}

TEST_F(CanaryTest, WithoutCallsTheModuleIsLoaded) {
  EXPECT_EQ(check("int x;", v1::Canary()).outcome(), Finished::DONE);
}

}  // namespace
}  // namespace jitc::testing
