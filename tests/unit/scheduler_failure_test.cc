// Compiles that fail: what is tried again and how, what is remembered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/schedule/least_memory.h"
#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using common::Error;
using common::ErrorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::invalid_source;
using testing::limit_of;
using testing::limits;
using testing::no_cache;
using ::testing::Not;
using testing::of;
using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// ---- the ladder -----------------------------------------------------------------------------------------------------

TEST(OutOfMemory, IsTriedAgainAloneWithTheWholeBudget) {
  constexpr std::uint64_t kBudget = 4096 * kMiB;
  SchedulerDriver driver(limits(4, kBudget));
  const WaiterId big = driver.enqueue(of(1, "A", 1'000'000));
  const WaiterId other = driver.enqueue(of(2, "B", 100));
  const FlightId flight = driver.flight_of(big);
  const std::uint64_t first_limit = driver.started[0].limit_bytes;
  EXPECT_EQ(driver.counters().reserved_bytes, first_limit + limit_of(of(2, "B", 100)));
  driver.end(flight, Kind::kOutOfMemory, {}, first_limit);
  EXPECT_FALSE(driver.running.contains(flight));  // something runs
  driver.finish(driver.flight_of(other));
  ASSERT_TRUE(driver.running.contains(flight));
  const Compile& second = driver.started.back();
  EXPECT_TRUE(second.alone);
  EXPECT_EQ(second.attempt, 2U);
  EXPECT_EQ(second.limit_bytes, kBudget);
  EXPECT_EQ(driver.counters().reserved_bytes, kBudget);
  const WaiterId beside = driver.enqueue(of(3));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(beside)));
  driver.finish(flight);
  EXPECT_EQ(driver.answer(big).kind, Answer::Kind::kDone);
  ASSERT_EQ(driver.answer(big).rungs.size(), 1U);
  EXPECT_THAT(driver.answer(big).rungs[0], HasSubstr("alone with the whole budget of 4096 MiB"));
  EXPECT_EQ(driver.counters().retries, 1U);
  EXPECT_EQ(driver.counters().out_of_memory, 0U);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(beside)));
}

TEST(OutOfMemory, WithTheWholeBudgetIsAnsweredAndTheQueueGoesOn) {
  SchedulerDriver driver(limits(2, 300 * kMiB));
  const WaiterId waiter = driver.enqueue(of(1, "A", 1000));
  const WaiterId other = driver.enqueue(of(2, "B", 100));
  const FlightId flight = driver.flight_of(waiter);
  driver.end(flight, Kind::kOutOfMemory, {.log = "bad_alloc"}, 115 * kMiB);
  if (!driver.running.contains(flight)) driver.finish(driver.flight_of(other));
  driver.end(flight, Kind::kOutOfMemory, {.log = "bad_alloc"}, 299 * kMiB);
  const Answer& answer = driver.answer(waiter);
  EXPECT_EQ(answer.error.kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(answer.error.tries, 2U);
  EXPECT_THAT(answer.error.message, HasSubstr("in 2 tries, the last with the whole budget of 300 MiB"));
  EXPECT_EQ(answer.error.budget_bytes, 300 * kMiB);
  EXPECT_EQ(answer.error.needed_bytes, 300 * kMiB);
  EXPECT_EQ(answer.error.thing, "source 1");
  EXPECT_THAT(answer.error.remedy, HasSubstr("JITC_SHARE=1"));
  EXPECT_THAT(answer.error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
  EXPECT_EQ(answer.error.log, "bad_alloc");
  EXPECT_EQ(driver.counters().out_of_memory, 1U);
  EXPECT_EQ(driver.counters().compiles_failed, 1U);
  EXPECT_TRUE(driver.is_answered(other));
}

// Its source is not one that a setting shares.
TEST(OutOfMemory, OfACommandNamesNoSettingOfSources) {
  SchedulerDriver driver(limits(2, 100 * kMiB));
  auto command = of(1, "A", 5'000'000);
  command.is_command = true;
  const WaiterId waiter = driver.enqueue(command);
  driver.end(driver.flight_of(waiter), Kind::kOutOfMemory, {}, 99 * kMiB);
  EXPECT_THAT(driver.answer(waiter).error.remedy, Not(HasSubstr("JITC_SHARE")));
  EXPECT_THAT(driver.answer(waiter).error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
}

// A first try that had all of it already is not repeated with the same.
TEST(OutOfMemory, AFirstTryWithTheWholeBudgetIsTheOnlyOne) {
  SchedulerDriver driver(limits(2, 100 * kMiB));
  const WaiterId waiter = driver.enqueue(of(1, "A", 5'000'000));
  driver.end(driver.flight_of(waiter), Kind::kOutOfMemory, {}, 99 * kMiB);
  EXPECT_EQ(driver.answer(waiter).error.tries, 1U);
  EXPECT_THAT(driver.answer(waiter).error.message, HasSubstr("in 1 try, with the whole budget of 100 MiB"));
  EXPECT_GT(driver.answer(waiter).error.needed_bytes, 100 * kMiB);  // as predicted
  EXPECT_THAT(driver.answer(waiter).rungs, ElementsAre());
  EXPECT_EQ(driver.counters().retries, 0U);
}

TEST(OutOfMemory, CountsNoCrashes) {
  SchedulerDriver driver(limits(2, 300 * kMiB));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.end(flight, Kind::kCrashed);
  driver.end(flight, Kind::kOutOfMemory);
  driver.end(flight, Kind::kOutOfMemory);
  EXPECT_EQ(driver.started.size(), 3U);
  EXPECT_EQ(driver.answer(waiter).error.tries, 2U);
}

TEST(OutOfMemory, AloneItHasWhatSparesGiveUp) {
  Limits with_spares = limits(2, 120 * kMiB);
  with_spares.spare_bytes = 60 * kMiB;
  SchedulerDriver driver(with_spares);
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  EXPECT_LE(driver.started[0].limit_bytes, 120 * kMiB);
  driver.end(flight, Kind::kOutOfMemory);
  EXPECT_TRUE(driver.started[1].alone);
  EXPECT_EQ(driver.started[1].limit_bytes, 180 * kMiB);
  EXPECT_EQ(driver.counters().reserved_bytes, 180 * kMiB);
  driver.end(flight, Kind::kOutOfMemory);
  EXPECT_EQ(driver.answer(waiter).error.budget_bytes, 180 * kMiB);
}

// One source that never fits leaves the others of its kind their parallelism. It keeps for itself what it met.
TEST(OutOfMemory, TeachesItsFamilyNothing) {
  SchedulerDriver driver(limits(8, 1024 * kMiB));
  const Submission source = of(1);
  const std::uint64_t predicted = MemoryModel().predict(source.features);
  const FlightId flight = driver.flight_of(driver.enqueue(source));
  const std::uint64_t first_limit = driver.started[0].limit_bytes;
  driver.end(flight, Kind::kOutOfMemory, {}, first_limit);
  EXPECT_EQ(driver.view(flight).predicted_bytes, first_limit);
  driver.end(flight, Kind::kOutOfMemory, {}, 1024 * kMiB);
  EXPECT_EQ(driver.scheduler.memory_model().predict(source.features), predicted);
  for (std::uint64_t i = 2; i < 10; ++i) driver.enqueue(of(i));
  EXPECT_EQ(driver.running.size(), std::min<std::size_t>(8, 1024 * kMiB / limit_of(source)));
}

TEST(OutOfMemory, TheRetryIsNotStarvedBySmallOnes) {
  SchedulerDriver driver(limits(2));
  const WaiterId big = driver.enqueue(of(1, "A", 1'000'000));
  const FlightId flight = driver.flight_of(big);
  std::uint64_t next = 10;
  driver.enqueue(of(next++, "B"));
  driver.enqueue(of(next++, "B"));
  driver.end(flight, Kind::kOutOfMemory);
  int others = 0;
  while (!driver.running.contains(flight) && others < 100) {
    driver.enqueue(of(next++, "B"));
    driver.advance(1);
    driver.finish(driver.running.begin()->first);
    ++others;
  }
  EXPECT_LE(others, 10);
}

// ---- the last rung: another optimisation level
// ------------------------------------------------------------------------

Submission unoptimised(std::uint64_t key, const char* compiler = "gcc") {
  Submission submission = of(key, "A", 300'000);
  submission.features.compiler = compiler;
  submission.features.optimisation = 0;
  return submission;
}

TEST(Degraded, IsTheLastTryAndIsNotKept) {
  for (const char* compiler : {"gcc", "clang"}) {
    SchedulerDriver driver(limits(4, 4096 * kMiB));
    const WaiterId waiter = driver.enqueue(unoptimised(1, compiler));
    const FlightId flight = driver.flight_of(waiter);
    driver.end(flight, Kind::kOutOfMemory);
    EXPECT_FALSE(driver.started.back().level);
    driver.end(flight, Kind::kOutOfMemory);
    ASSERT_EQ(driver.started.size(), 3U);
    EXPECT_EQ(driver.started[2].level, 1);
    EXPECT_TRUE(driver.started[2].alone);
    EXPECT_EQ(driver.started[1].limit_bytes, 4096 * kMiB);
    EXPECT_EQ(driver.started[2].limit_bytes, 4096 * kMiB);
    const WaiterId merged = driver.submit(unoptimised(1, compiler));
    driver.end(flight, Kind::kDone, {}, 100 * kMiB);
    EXPECT_THAT(driver.degraded, HasSubstr("-O1 instead of -O0"));
    driver.publish(flight);
    EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
    EXPECT_THAT(driver.answer(waiter).rungs, ElementsAre(HasSubstr("alone"), HasSubstr("-O1 instead of -O0")));
    EXPECT_TRUE(driver.answer(merged).merged);
    EXPECT_EQ(driver.counters().rung_alone, 1U);
    EXPECT_EQ(driver.counters().rung_degraded, 1U);
    EXPECT_EQ(driver.counters().retries, 2U);
    EXPECT_EQ(driver.counters().degraded, 1U);
    // The next one begins anew, with the flags asked for.
    const WaiterId again = driver.enqueue(unoptimised(1, compiler));
    EXPECT_FALSE(driver.started.back().level);
    EXPECT_EQ(driver.started.back().limit_bytes, driver.started[0].limit_bytes);
    driver.end(driver.flight_of(again), Kind::kDone);
    EXPECT_EQ(driver.degraded, "");
  }
}

TEST(Degraded, OutOfMemoryAllTheSameIsTheAnswer) {
  SchedulerDriver driver(limits(1, 600 * kMiB));
  const WaiterId waiter = driver.enqueue(unoptimised(1));
  const FlightId flight = driver.flight_of(waiter);
  for (int i = 0; i < 3; ++i) driver.end(flight, Kind::kOutOfMemory, {}, 599 * kMiB);
  EXPECT_EQ(driver.started.size(), 3U);
  const Error& error = driver.answer(waiter).error;
  EXPECT_EQ(error.kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(error.tries, 3U);
  EXPECT_EQ(error.budget_bytes, 600 * kMiB);
  EXPECT_EQ(error.needed_bytes, 600 * kMiB);
  EXPECT_THAT(error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
  EXPECT_EQ(driver.answer(waiter).rungs.size(), 2U);
  EXPECT_EQ(driver.counters().degraded, 0U);
}

// The first try had the whole budget: the last rung comes at once.
TEST(Degraded, FollowsTheWholeBudgetAtOnce) {
  SchedulerDriver driver(limits(1, 100 * kMiB));
  const FlightId flight = driver.flight_of(driver.enqueue(unoptimised(1)));
  driver.end(flight, Kind::kOutOfMemory);
  ASSERT_EQ(driver.started.size(), 2U);
  EXPECT_EQ(driver.started[1].level, 1);
  EXPECT_EQ(driver.started[1].limit_bytes, 100 * kMiB);
}

// Exact flags; a level that needs as little already; a prediction that says it would not need less.
TEST(Degraded, OnlyWhereItIsAllowedAndHelps) {
  Submission exact = unoptimised(1);
  exact.exact_flags = true;
  Submission optimised = unoptimised(1);
  optimised.features.optimisation = 3;
  for (const Submission& submission : {exact, optimised}) {
    SchedulerDriver driver(limits(1));
    const WaiterId waiter = driver.enqueue(submission);
    const FlightId flight = driver.flight_of(waiter);
    driver.end(flight, Kind::kOutOfMemory);
    driver.end(flight, Kind::kOutOfMemory);
    EXPECT_EQ(driver.answer(waiter).error.tries, 2U);
    EXPECT_EQ(driver.answer(waiter).error.remedy.find("-O1") != std::string::npos, submission.exact_flags);
    EXPECT_EQ(driver.counters().rung_degraded, 0U);
  }
  SchedulerDriver driver(limits(1, 4096 * kMiB));
  Submission seen = unoptimised(1);
  seen.features.optimisation = 1;
  driver.enqueue(seen);
  driver.end(driver.started[0].flight, Kind::kDone, {}, std::uint64_t{1} << 40);  // at -O1 it is gigantic
  driver.publish(driver.started[0].flight);
  const WaiterId waiter = driver.enqueue(unoptimised(2));
  driver.end(driver.flight_of(waiter), Kind::kOutOfMemory);
  driver.end(driver.flight_of(waiter), Kind::kOutOfMemory);
  EXPECT_EQ(driver.answer(waiter).error.tries, 2U);
}

TEST(LeastMemory, IsTheMeasuredLevel) {
  for (const char* compiler : {"gcc", "clang", "/opt/gcc-14/bin/gcc"}) {
    EXPECT_EQ(level_with_less_memory(compiler, 0), 1) << compiler;
    for (const int level : {1, 2, 3}) EXPECT_EQ(level_with_less_memory(compiler, level), std::nullopt) << compiler;
  }
}

TEST(Crash, IsTriedAgainThenAnswered) {
  SchedulerDriver driver(limits(2));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  const Error error{.kind = ErrorKind::kCompilerCrashed, .message = "signal 11", .log = "stack"};
  driver.end(flight, Kind::kCrashed, error);
  ASSERT_EQ(driver.started.size(), 2U);
  EXPECT_FALSE(driver.started[1].alone);
  EXPECT_EQ(driver.started[1].limit_bytes, driver.started[0].limit_bytes);
  driver.end(flight, Kind::kCrashed, error);
  EXPECT_EQ(driver.started.size(), 2U);
  EXPECT_EQ(driver.answer(waiter).error.kind, ErrorKind::kCompilerCrashed);
  EXPECT_EQ(driver.answer(waiter).error.tries, 2U);
  EXPECT_EQ(driver.answer(waiter).error.log, "stack");
  EXPECT_EQ(driver.answer(waiter).rungs.size(), 1U);
  EXPECT_EQ(driver.counters().retries, 1U);
  EXPECT_EQ(driver.counters().compiles_failed, 1U);
}

// JITC_TRIES are of crashes and losses alone: the ladder of memory has its own.
TEST(Crash, IsTriedAsOftenAfterOutOfMemory) {
  for (const Kind kind : {Kind::kCrashed, Kind::kWorkerLost}) {
    SchedulerDriver driver(limits(1));
    const WaiterId waiter = driver.enqueue(of(1));
    const FlightId flight = driver.flight_of(waiter);
    driver.end(flight, Kind::kOutOfMemory);
    driver.end(flight, kind);
    ASSERT_EQ(driver.started.size(), 3U);
    driver.end(flight, kind);
    EXPECT_EQ(driver.started.size(), 3U);
    EXPECT_EQ(driver.answer(waiter).error.tries, 3U);
    EXPECT_EQ(driver.answer(waiter).rungs.size(), 2U);
  }
}

// A limit of the node or of the job ended it: nothing is wrong with the source.
TEST(Crash, FromOutsideIsTriedAgainAloneAndNotRemembered) {
  SchedulerDriver driver(limits(2));
  const WaiterId waiter = driver.enqueue(of(1));
  const WaiterId other = driver.enqueue(of(2));
  const FlightId flight = driver.flight_of(waiter);
  const Error error{.kind = ErrorKind::kCompilerCrashed, .message = "the group /job ran out of memory"};
  driver.end_from_outside(flight, error);
  EXPECT_FALSE(driver.running.contains(flight));  // something runs beside it
  driver.finish(driver.flight_of(other));
  ASSERT_TRUE(driver.running.contains(flight));
  EXPECT_TRUE(driver.started.back().alone);
  EXPECT_EQ(driver.started.back().limit_bytes, driver.started[0].limit_bytes);
  driver.end_from_outside(flight, error);
  const Answer& answer = driver.answer(waiter);
  EXPECT_EQ(answer.error.kind, ErrorKind::kCompilerCrashed);
  EXPECT_EQ(answer.error.message, error.message);
  EXPECT_THAT(answer.error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
  EXPECT_EQ(answer.error.tries, 2U);
  EXPECT_THAT(answer.rungs, ElementsAre(HasSubstr("/job ran out of memory: tried alone")));
  EXPECT_EQ(driver.counters().out_of_memory, 0U);
  // The next one begins anew, as if nothing had been learned.
  const WaiterId again = driver.enqueue(of(1));
  EXPECT_FALSE(driver.is_answered(again));
  EXPECT_FALSE(driver.started.back().alone);
  EXPECT_EQ(driver.started.back().limit_bytes, driver.started[0].limit_bytes);
  EXPECT_EQ(driver.counters().failures_remembered, 0U);
}

TEST(Crash, ALostWorkerRequeuesWhatRanInFrontOfTheRest) {
  SchedulerDriver driver(limits(2));
  for (std::uint64_t i = 0; i < 4; ++i) driver.enqueue(of(i));
  const FlightId first = driver.started[0].flight, second = driver.started[1].flight;
  driver.end(second, Kind::kWorkerLost);
  driver.end(first, Kind::kWorkerLost);
  EXPECT_EQ(driver.running.size(), 2U);
  EXPECT_TRUE(driver.running.contains(first) && driver.running.contains(second));
  driver.end(first, Kind::kWorkerLost);
  driver.end(second, Kind::kWorkerLost);
  // Either may be the cause: each is tried alone, when the others have ended.
  EXPECT_FALSE(driver.running.contains(first) || driver.running.contains(second));
  driver.finish(driver.started[4].flight);
  driver.finish(driver.started[5].flight);
  ASSERT_EQ(driver.running.size(), 1U);
  EXPECT_TRUE(driver.started.back().alone);
  driver.finish(driver.running.begin()->first);
  ASSERT_EQ(driver.running.size(), 1U);
  EXPECT_TRUE(driver.started.back().alone);
  const FlightId cause = driver.running.begin()->first;
  driver.end(cause, Kind::kWorkerLost);
  const WaiterId waiter = cause == first ? 1 : 2;
  EXPECT_EQ(driver.answer(waiter).error.kind, ErrorKind::kInternal);
  EXPECT_EQ(driver.answer(waiter).error.tries, 3U);
  EXPECT_EQ(driver.answer(3 - waiter).kind, Answer::Kind::kDone);
  // Nobody's fault that would last: the next request compiles.
  driver.enqueue(of(cause == first ? 0 : 1));
  EXPECT_EQ(driver.counters().failures_remembered, 0U);
}

TEST(Crash, ALostWorkerIsTheOnlyRunnersOwnDoing) {
  SchedulerDriver driver(limits(2));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.end(flight, Kind::kWorkerLost);
  driver.end(flight, Kind::kWorkerLost);
  EXPECT_EQ(driver.answer(waiter).error.tries, 2U);
  EXPECT_EQ(driver.counters().rung_worker_lost, 1U);
  EXPECT_TRUE(driver.scheduler.idle());
}

// ---- failures -------------------------------------------------------------------------------------------------------

TEST(Failures, AreAnsweredAgainAtOnceAndIdenticallyForAStatedTime) {
  SchedulerDriver driver(limits(1));
  const WaiterId first = driver.enqueue(of(1));
  driver.end(driver.flight_of(first), Kind::kFailed, invalid_source());
  EXPECT_EQ(driver.answer(first).error.diagnostics, invalid_source().diagnostics);
  driver.advance(29.9);
  const WaiterId second = driver.submit(of(1));
  EXPECT_EQ(driver.answer(second).error, driver.answer(first).error);
  EXPECT_EQ(driver.answer(second).flight, kNoFlight);
  EXPECT_EQ(driver.counters().failures_remembered, 1U);
  EXPECT_EQ(driver.counters().compiles_started, 1U);
  ASSERT_TRUE(driver.scheduler.next_deadline());
  driver.advance(0.1);
  EXPECT_EQ(driver.deadline(), driver.now);
  driver.tick();
  EXPECT_FALSE(driver.scheduler.next_deadline());
  driver.enqueue(of(1));
  EXPECT_EQ(driver.counters().compiles_started, 2U);
}

TEST(Failures, OnlyLastingOnesAreRemembered) {
  const std::pair<ErrorKind, bool> cases[] = {{ErrorKind::kInvalidSource, true},   {ErrorKind::kRefused, true},
                                              {ErrorKind::kCompilerCrashed, true}, {ErrorKind::kTimedOut, false},
                                              {ErrorKind::kInternal, false},       {ErrorKind::kStoreFull, false},
                                              {ErrorKind::kCancelled, false}};
  for (const auto& [kind, remembered] : cases) {
    SchedulerDriver driver(limits(1));
    driver.end(driver.flight_of(driver.enqueue(of(1))), Kind::kFailed, {.kind = kind});
    const WaiterId again = driver.submit(of(1));
    EXPECT_EQ(driver.is_answered(again), remembered) << common::name_of(kind);
  }
}

TEST(Failures, NoCacheCompilesAgainAndItsSuccessClearsTheMemory) {
  SchedulerDriver driver(limits(1));
  driver.end(driver.flight_of(driver.enqueue(of(1))), Kind::kFailed, invalid_source());
  const WaiterId again = driver.submit(no_cache(of(1)));
  ASSERT_EQ(driver.started.size(), 2U);
  driver.finish(driver.started[1].flight);
  EXPECT_EQ(driver.answer(again).kind, Answer::Kind::kDone);
  driver.submit(of(1));
  EXPECT_EQ(driver.look_ups.size(), 1U);
}

TEST(Failures, AreBounded) {
  SchedulerDriver driver(limits(1));
  for (std::uint64_t i = 0; i < 1500; ++i) {
    driver.advance(0.001);
    driver.end(driver.flight_of(driver.enqueue(of(i))), Kind::kFailed, invalid_source());
  }
  EXPECT_TRUE(driver.is_answered(driver.submit(of(1499))));
  EXPECT_FALSE(driver.is_answered(driver.submit(of(0))));
}

}  // namespace
}  // namespace jitc::schedule
