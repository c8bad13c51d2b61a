#include "daemon/schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using common::Error;
using common::ErrorKind;
using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Submission of(std::uint64_t key, std::string client = "A", std::uint64_t bytes = 1000) {
  return SchedulerDriver::of(key, std::move(client), bytes);
}
Limits limits(std::uint32_t slots, std::uint64_t budget = std::uint64_t{1} << 40) {
  return SchedulerDriver::limits(slots, budget);
}
Submission prefetch(Submission submission) {
  submission.prefetch = true;
  return submission;
}
Submission no_cache(Submission submission) {
  submission.no_cache = true;
  return submission;
}
Error invalid_source() {
  return {
      .kind = ErrorKind::kInvalidSource, .message = "expected ';'", .diagnostics = {{"error", 3, 4, "expected ';'"}}};
}
// Waits for memory: as many of its kind as a budget of `bytes` holds beside each other.
std::uint64_t reservation_of(const Submission& submission) {
  return MemoryModel::reservation_for(MemoryModel().predict(submission.features));
}

// ---- flights --------------------------------------------------------------------------------------------------------

TEST(Flights, OneGoesFromLookUpToAnswer) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.submit(of(1));
  ASSERT_EQ(driver.look_ups.size(), 1U);
  const FlightId flight = driver.look_ups[0];
  EXPECT_EQ(driver.view(flight).phase, FlightView::Phase::kLookingUp);
  EXPECT_THAT(driver.started, IsEmpty());
  driver.miss(flight);
  ASSERT_EQ(driver.started.size(), 1U);
  EXPECT_EQ(driver.started[0].attempt, 1U);
  EXPECT_FALSE(driver.started[0].alone);
  driver.end(flight, Kind::kDone);
  ASSERT_THAT(driver.publishing, ElementsAre(flight));
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_FALSE(driver.is_answered(waiter));
  driver.publish(flight);
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
  EXPECT_FALSE(driver.answer(waiter).merged);
  EXPECT_THAT(driver.forgotten, ElementsAre(flight));
  EXPECT_TRUE(driver.scheduler.idle());
  EXPECT_EQ(driver.scheduler.next_deadline(), std::nullopt);
}

TEST(Flights, AHitStartsNothing) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.submit(of(1));
  driver.hit(driver.flight_of(waiter));
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kHit);
  EXPECT_EQ(driver.counters().hits, 1U);
  EXPECT_EQ(driver.counters().compiles_started, 0U);
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Flights, SixtyFourRequestsOfOneKeyAreOneCompile) {
  SchedulerDriver driver(limits(8));
  const WaiterId first = driver.enqueue(of(1));
  std::vector<WaiterId> others;
  others.reserve(63);
  for (int i = 0; i < 63; ++i) others.push_back(driver.submit(of(1, "client " + std::to_string(i))));
  driver.finish(driver.flight_of(first));
  EXPECT_FALSE(driver.answer(first).merged);
  for (const WaiterId waiter : others) {
    EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
    EXPECT_TRUE(driver.answer(waiter).merged);
  }
  EXPECT_EQ(driver.counters().requests, 64U);
  EXPECT_EQ(driver.counters().merged, 63U);
  EXPECT_EQ(driver.counters().compiles_started, 1U);
  EXPECT_EQ(driver.forgotten.size(), 1U);
}

TEST(Flights, EveryRequestIsACompileAHitOrMerged) {
  SchedulerDriver driver(limits(8));
  const WaiterId first = driver.submit(of(1));
  driver.submit(of(1));  // joins the look-up
  driver.miss(driver.flight_of(first));
  driver.submit(of(1));  // joins the compile
  driver.end(driver.flight_of(first), Kind::kDone);
  driver.submit(of(1));  // joins the publish
  driver.publish(driver.publishing.at(0));
  const WaiterId late = driver.submit(of(1));
  driver.submit(of(1));  // joins a look-up that hits
  driver.hit(driver.flight_of(late));
  EXPECT_EQ(driver.answers.size(), 6U);
  EXPECT_EQ(driver.counters().requests,
            driver.counters().compiles_started + driver.counters().hits + driver.counters().merged);
}

TEST(Flights, NoCacheSkipsTheLookUpAndStillMerges) {
  SchedulerDriver driver(limits(1));
  const WaiterId first = driver.submit(no_cache(of(1)));
  EXPECT_THAT(driver.look_ups, IsEmpty());
  ASSERT_EQ(driver.started.size(), 1U);
  const WaiterId second = driver.submit(of(1));
  driver.finish(driver.started[0].flight);
  EXPECT_EQ(driver.answer(first).kind, Answer::Kind::kDone);
  EXPECT_TRUE(driver.answer(second).merged);
}

TEST(Flights, AHitDoesNotAnswerWhoWantsACompile) {
  SchedulerDriver driver(limits(1));
  const WaiterId easy = driver.submit(of(1));
  const WaiterId strict = driver.submit(no_cache(of(1)));
  const FlightId flight = driver.flight_of(easy);
  driver.hit(flight);
  EXPECT_EQ(driver.answer(easy).kind, Answer::Kind::kHit);
  EXPECT_FALSE(driver.is_answered(strict));
  ASSERT_EQ(driver.started.size(), 1U);
  driver.finish(flight);
  EXPECT_EQ(driver.answer(strict).kind, Answer::Kind::kDone);
}

TEST(Flights, ReportsOfUnknownFlightsAreHarmless) {
  SchedulerDriver driver(limits(1));
  driver.miss(99);
  driver.end(99, Kind::kDone);
  driver.publish(99);
  driver.cancel(99);
  driver.leave(99);
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.hit(flight);      // its look-up was answered long ago
  driver.publish(flight);  // not compiled yet
  EXPECT_FALSE(driver.is_answered(waiter));
  driver.finish(flight);
  EXPECT_TRUE(driver.is_answered(waiter));
  EXPECT_EQ(driver.counters().running, 0U);
}

// ---- leaving --------------------------------------------------------------------------------------------------------

TEST(Leaving, TheLastWaiterCancelsAfterTheGrace) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.leave(waiter);
  ASSERT_TRUE(driver.scheduler.next_deadline());
  EXPECT_EQ(driver.deadline(), driver.now + std::chrono::seconds(2));
  driver.advance(1.9);
  driver.tick();
  EXPECT_THAT(driver.stopped, IsEmpty());
  driver.advance(0.1);
  driver.tick();
  EXPECT_THAT(driver.stopped, ElementsAre(flight));
  EXPECT_EQ(driver.counters().running, 1U);  // until the worker says so
  EXPECT_FALSE(driver.scheduler.next_deadline());
  driver.end(flight, Kind::kFailed);
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_EQ(driver.counters().reserved_bytes, 0U);
  EXPECT_EQ(driver.counters().cancelled, 1U);
  EXPECT_EQ(driver.counters().compiles_failed, 0U);
  EXPECT_TRUE(driver.scheduler.idle());
  EXPECT_THAT(driver.answers, IsEmpty());
}

TEST(Leaving, OneOfTwoCancelsNothing) {
  SchedulerDriver driver(limits(1));
  const WaiterId creator = driver.enqueue(of(1));
  const WaiterId other = driver.submit(of(1));
  const FlightId flight = driver.flight_of(other);
  driver.leave(creator);
  driver.advance(100);
  driver.tick();
  EXPECT_THAT(driver.stopped, IsEmpty());
  driver.finish(flight);
  EXPECT_EQ(driver.answer(other).kind, Answer::Kind::kDone);
  EXPECT_FALSE(driver.is_answered(creator));
}

TEST(Leaving, BackWithinTheGraceJoinsTheSameCompile) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.leave(waiter);
  driver.advance(1);
  const WaiterId back = driver.submit(of(1));
  EXPECT_EQ(driver.flight_of(back), flight);
  driver.advance(10);
  driver.tick();
  EXPECT_THAT(driver.stopped, IsEmpty());
  driver.finish(flight);
  EXPECT_EQ(driver.answer(back).kind, Answer::Kind::kDone);
  EXPECT_EQ(driver.counters().compiles_started, 1U);
}

TEST(Leaving, AfterTheGraceANewFlightBeginsAndTheOldOneEndsUnheard) {
  SchedulerDriver driver(limits(2));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId old_flight = driver.flight_of(waiter);
  driver.leave(waiter);
  driver.advance(2);
  driver.tick();
  const WaiterId next = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(next);
  EXPECT_NE(flight, old_flight);
  driver.leave(waiter);                 // a late drop
  driver.end(old_flight, Kind::kDone);  // it was done before it could be stopped
  EXPECT_THAT(driver.publishing, IsEmpty());
  EXPECT_EQ(driver.flight_of(driver.submit(of(1))), flight);  // the key still leads to the new one
  driver.finish(flight);
  EXPECT_EQ(driver.answer(next).kind, Answer::Kind::kDone);
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Leaving, InTheQueueItLosesItsPlaceAfterTheGraceAndDoesNotStartMeanwhile) {
  SchedulerDriver driver(limits(1));
  const WaiterId running = driver.enqueue(of(1));
  const WaiterId gone = driver.enqueue(of(2));
  const WaiterId next = driver.enqueue(of(3));
  driver.leave(gone);
  driver.finish(driver.flight_of(running));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(next)));  // 2 has nobody who waits
  driver.finish(driver.flight_of(next));
  EXPECT_THAT(driver.running, IsEmpty());
  const WaiterId back = driver.submit(of(2));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(back)));
}

TEST(Leaving, DuringTheLookUpItEndsWithTheGrace) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.submit(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.leave(waiter);
  driver.advance(2);
  driver.tick();
  EXPECT_THAT(driver.forgotten, ElementsAre(flight));
  driver.miss(flight);  // late
  EXPECT_THAT(driver.started, IsEmpty());
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Leaving, WhatIsCompiledIsPublishedAllTheSame) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.leave(waiter);
  driver.end(flight, Kind::kDone);
  driver.advance(10);
  driver.tick();
  EXPECT_THAT(driver.publishing, ElementsAre(flight));
  driver.publish(flight);
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Leaving, AThousandKilledClientsGiveEverythingBack) {
  SchedulerDriver driver(limits(4));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const WaiterId waiter = i % 3 == 0 ? driver.submit(of(i)) : driver.enqueue(of(i));
    if (i % 2 == 0) driver.submit(of(i));
    driver.leave(waiter);
    if (i % 2 == 0) driver.leave(waiter + 1);
  }
  while (!driver.scheduler.idle()) {
    driver.advance(3);
    driver.tick();
    while (!driver.running.empty()) driver.end(driver.running.begin()->first, Kind::kFailed);
  }
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_EQ(driver.counters().reserved_bytes, 0U);
  EXPECT_EQ(driver.counters().cancelled, 1000U);
}

TEST(Cancel, EndsItForEveryWaiterAtOnce) {
  SchedulerDriver driver(limits(1));
  const WaiterId first = driver.enqueue(of(1));
  const WaiterId second = driver.submit(of(1));
  const WaiterId queued = driver.enqueue(of(2));
  const FlightId flight = driver.flight_of(first);
  const FlightId queued_flight = driver.flight_of(queued);
  driver.cancel(queued_flight);
  EXPECT_EQ(driver.answer(queued).error.kind, ErrorKind::kCancelled);
  EXPECT_THAT(driver.forgotten, ElementsAre(queued_flight));
  driver.cancel(flight);
  EXPECT_EQ(driver.answer(first).error.kind, ErrorKind::kCancelled);
  EXPECT_EQ(driver.answer(second).error.kind, ErrorKind::kCancelled);
  EXPECT_THAT(driver.stopped, ElementsAre(flight));
  driver.cancel(flight);
  EXPECT_EQ(driver.counters().cancelled, 2U);
  driver.end(flight, Kind::kFailed);
  EXPECT_TRUE(driver.scheduler.idle());
  // Not a property of the source: the next request compiles.
  driver.enqueue(of(1));
  EXPECT_EQ(driver.running.size(), 1U);
}

// ---- admission ------------------------------------------------------------------------------------------------------

TEST(Admission, NeverMoreThanTheSlots) {
  SchedulerDriver driver(limits(2));
  for (std::uint64_t i = 0; i < 8; ++i) driver.enqueue(of(i));
  for (int done = 0; done < 8; ++done) {
    EXPECT_EQ(driver.running.size(), std::min(2, 8 - done));
    driver.finish(driver.running.begin()->first);
  }
  EXPECT_EQ(driver.counters().running_peak, 2U);
  EXPECT_EQ(driver.counters().compiles_started, 8U);
}

TEST(Admission, NeverMoreThanTheBudget) {
  const std::uint64_t one = reservation_of(of(0, "A", 1'000'000));
  SchedulerDriver driver(limits(8, 2 * one + one / 2));
  for (std::uint64_t i = 0; i < 10; ++i) driver.enqueue(of(i, "A", 1'000'000));
  int done = 0;
  for (; !driver.running.empty(); ++done) {
    EXPECT_LE(driver.counters().reserved_bytes, 2 * one + one / 2);
    driver.finish(driver.running.begin()->first);
  }
  EXPECT_EQ(done, 10);
  EXPECT_EQ(driver.counters().running_peak, 2U);
}

TEST(Admission, ASmallOnePassesALargeOneThatDoesNotFit) {
  SchedulerDriver driver(limits(4, 400 * kMiB));
  driver.enqueue(of(1, "A", 1'000'000));
  const WaiterId large = driver.enqueue(of(2, "A", 1'000'000));
  const WaiterId small = driver.enqueue(of(3, "A", 100));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(large)));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(small)));
}

TEST(Admission, AnAgedLargeOneIsPassedNoMore) {
  SchedulerDriver driver(limits(4, 400 * kMiB));
  const WaiterId holder = driver.enqueue(of(1, "A", 100));
  const WaiterId large = driver.enqueue(of(2, "B", 2'000'000));
  ASSERT_FALSE(driver.running.contains(driver.flight_of(large)));
  WaiterId small = driver.enqueue(of(3, "C", 100));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(small)));
  driver.advance(5);
  const WaiterId late = driver.enqueue(of(4, "C", 100));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(late)));
  driver.finish(driver.flight_of(small));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(late)));
  driver.finish(driver.flight_of(holder));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(large)));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(late)));  // no room beside it
  driver.finish(driver.flight_of(large));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(late)));
}

// One client with many large flights: only its first ages, so another client's small one waits for one at most.
TEST(Admission, ManyLargeFlightsOfOneClientDoNotAgeTogether) {
  SchedulerDriver driver(limits(2, 400 * kMiB));
  driver.enqueue(of(1, "B", 100));
  for (std::uint64_t i = 0; i < 5; ++i) driver.enqueue(of(10 + i, "A", 2'000'000));
  driver.advance(60);
  const WaiterId small = driver.enqueue(of(2, "C", 100));
  driver.finish(driver.started[0].flight);  // now the first large one
  ASSERT_EQ(driver.running.size(), 1U);
  driver.finish(driver.running.begin()->first);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(small)));
}

TEST(Admission, OneAboveTheWholeBudgetRunsAloneWithAllOfIt) {
  SchedulerDriver driver(limits(4, 100 * kMiB));
  const WaiterId small = driver.enqueue([] {
    Submission submission = of(1, "A", 100);
    submission.features.compiler = "gcc";
    return submission;
  }());
  const WaiterId huge = driver.enqueue(of(2, "A", 50'000'000));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(huge)));
  driver.finish(driver.flight_of(small));
  ASSERT_TRUE(driver.running.contains(driver.flight_of(huge)));
  EXPECT_TRUE(driver.started.back().alone);
  EXPECT_EQ(driver.started.back().limit_bytes, 100 * kMiB);
  driver.set(limits(4));  // even when the budget grows
  driver.enqueue(of(3));
  EXPECT_EQ(driver.running.size(), 1U);
}

TEST(Admission, ABudgetOfNothingStillTriesWithALimit) {
  SchedulerDriver driver(limits(0, 0));
  driver.enqueue(of(1));
  driver.enqueue(of(2));
  ASSERT_EQ(driver.started.size(), 1U);
  EXPECT_EQ(driver.started[0].limit_bytes, kMiB);
}

TEST(Admission, TheHardLimitLeavesTheModelRoom) {
  SchedulerDriver driver(limits(4));
  const Submission submission = of(1, "A", 100'000);
  driver.enqueue(submission);
  const std::uint64_t predicted = MemoryModel().predict(submission.features);
  EXPECT_EQ(driver.started[0].limit_bytes, MemoryModel::limit_for(predicted));
  EXPECT_EQ(driver.counters().reserved_bytes, MemoryModel::reservation_for(predicted));
  EXPECT_EQ(driver.view(driver.started[0].flight).predicted_bytes, predicted);
}

TEST(Admission, MeasuredPeaksAdmitMore) {
  const std::uint64_t budget = 2 * reservation_of(of(0, "A", 1'000'000)) - 1;
  SchedulerDriver driver(limits(2, budget));
  driver.enqueue(of(1, "A", 1'000'000));
  driver.enqueue(of(2, "A", 1'000'000));
  driver.enqueue(of(3, "A", 1'000'000));
  EXPECT_EQ(driver.running.size(), 1U);
  driver.end(driver.running.begin()->first, Kind::kDone, {}, 90 * kMiB);
  EXPECT_EQ(driver.running.size(), 2U);
}

TEST(Admission, PressureStartsNothingBesideWhatRunsButOneAlways) {
  Limits pressed = limits(4);
  pressed.pressure = true;
  SchedulerDriver driver(pressed);
  for (std::uint64_t i = 0; i < 4; ++i) driver.enqueue(of(i));
  EXPECT_EQ(driver.running.size(), 1U);
  driver.finish(driver.running.begin()->first);
  EXPECT_EQ(driver.running.size(), 1U);
  driver.set(limits(4));
  EXPECT_EQ(driver.running.size(), 3U);
}

TEST(Admission, LimitsThatShrinkStopNothing) {
  SchedulerDriver driver(limits(4));
  for (std::uint64_t i = 0; i < 6; ++i) driver.enqueue(of(i));
  driver.set(limits(1, 90 * kMiB));
  EXPECT_THAT(driver.stopped, IsEmpty());
  for (int left = 4; left > 1; --left) {
    driver.finish(driver.running.begin()->first);
    EXPECT_EQ(driver.running.size(), static_cast<std::size_t>(left - 1));
  }
  driver.finish(driver.running.begin()->first);
  EXPECT_EQ(driver.running.size(), 1U);
}

// ---- fairness -------------------------------------------------------------------------------------------------------

TEST(Fairness, ClientsTakeTurnsAndKeepTheirOrder) {
  SchedulerDriver driver(limits(1));
  const WaiterId first = driver.enqueue(of(0, "A"));
  for (std::uint64_t i = 1; i <= 3; ++i) driver.enqueue(of(i, "A"));
  for (std::uint64_t i = 11; i <= 12; ++i) driver.enqueue(of(i, "B"));
  driver.enqueue(of(21, "C"));
  std::vector<std::string> planned;
  for (const auto& view : driver.scheduler.flights()) planned.push_back(view.name);
  std::vector<std::string> names{driver.view_of(first).name};
  while (!driver.running.empty()) {
    driver.finish(driver.running.begin()->first);
    if (!driver.running.empty()) names.push_back(driver.view(driver.running.begin()->first).name);
  }
  EXPECT_EQ(names, planned);  // the order that is shown is the order that happens
  EXPECT_THAT(names,
              ElementsAre("source 0", "source 1", "source 11", "source 21", "source 2", "source 12", "source 3"));
}

TEST(Fairness, OneBehindAHundredOfAnotherStartsWithinTheSlots) {
  for (const std::uint32_t slots : {1U, 4U}) {
    SchedulerDriver driver(limits(slots));
    for (std::uint64_t i = 0; i < 100; ++i) driver.enqueue(of(i, "A"));
    const WaiterId waiter = driver.enqueue(of(1000, "B"));
    std::uint32_t completions = 0;
    while (!driver.running.contains(driver.flight_of(waiter))) {
      driver.finish(driver.running.begin()->first);
      ++completions;
    }
    EXPECT_LE(completions, slots + 1);
  }
}

TEST(Fairness, WhoJoinsAFlightBringsItsOwnTurn) {
  SchedulerDriver driver(limits(1));
  for (std::uint64_t i = 0; i < 100; ++i) driver.enqueue(of(i, "A"));
  const WaiterId waiter = driver.submit(of(99, "B"));
  EXPECT_EQ(driver.view_of(waiter).place, 2U);
  driver.finish(driver.running.begin()->first);
  driver.finish(driver.running.begin()->first);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(waiter)));
}

TEST(Fairness, PrefetchesComeLast) {
  SchedulerDriver driver(limits(1));
  driver.enqueue(of(0));
  const WaiterId early = driver.enqueue(prefetch(of(1, "A")));
  const WaiterId raised = driver.enqueue(prefetch(of(2, "A")));
  const WaiterId late = driver.enqueue(of(3, "B"));
  driver.submit(of(2, "A"));  // now somebody waits for it
  EXPECT_EQ(driver.view_of(late).place, 1U);
  EXPECT_EQ(driver.view_of(raised).place, 2U);
  EXPECT_EQ(driver.view_of(early).place, 3U);
  for (int i = 0; i < 3; ++i) driver.finish(driver.running.begin()->first);
  EXPECT_EQ(driver.started.back().flight, driver.flight_of(early));
}

TEST(Views, ShowPlaceAndBytesAhead) {
  SchedulerDriver driver(limits(1));
  const WaiterId running = driver.enqueue(of(0));
  const WaiterId second = driver.enqueue(of(1, "A", 300));
  const WaiterId third = driver.enqueue(of(2, "A", 500));
  EXPECT_EQ(driver.view_of(running).place, 0U);
  EXPECT_EQ(driver.view_of(running).phase, FlightView::Phase::kRunning);
  EXPECT_EQ(driver.view_of(second).place, 1U);
  EXPECT_EQ(driver.view_of(third).place, 2U);
  EXPECT_EQ(driver.view_of(third).bytes_ahead, 300U);
  EXPECT_EQ(driver.view_of(third).waiters, 1U);
  EXPECT_EQ(driver.scheduler.flights().size(), 3U);
  EXPECT_EQ(driver.scheduler.view(99), std::nullopt);
  driver.finish(driver.flight_of(running));
  EXPECT_EQ(driver.scheduler.view_of(running), std::nullopt);
  EXPECT_EQ(driver.view_of(third).place, 1U);
}

// ---- the ladder -----------------------------------------------------------------------------------------------------

TEST(OutOfMemory, IsTriedAgainAloneWithTwiceTheReservation) {
  SchedulerDriver driver(limits(4));
  const WaiterId big = driver.enqueue(of(1, "A", 1'000'000));
  const WaiterId other = driver.enqueue(of(2, "B", 100));
  const FlightId flight = driver.flight_of(big);
  const std::uint64_t first_limit = driver.started[0].limit_bytes;
  const std::uint64_t other_reserved = reservation_of(of(2, "B", 100));
  const std::uint64_t first_reserved = driver.counters().reserved_bytes - other_reserved;
  driver.end(flight, Kind::kOutOfMemory, {}, first_limit);
  EXPECT_FALSE(driver.running.contains(flight));  // something runs
  driver.finish(driver.flight_of(other));
  ASSERT_TRUE(driver.running.contains(flight));
  const Compile& second = driver.started.back();
  EXPECT_TRUE(second.alone);
  EXPECT_EQ(second.attempt, 2U);
  EXPECT_EQ(second.limit_bytes, 2 * first_limit);
  EXPECT_EQ(driver.counters().reserved_bytes, 2 * first_reserved);
  const WaiterId beside = driver.enqueue(of(3));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(beside)));
  driver.finish(flight);
  EXPECT_EQ(driver.answer(big).kind, Answer::Kind::kDone);
  ASSERT_EQ(driver.answer(big).rungs.size(), 1U);
  EXPECT_THAT(driver.answer(big).rungs[0], HasSubstr("alone"));
  EXPECT_EQ(driver.counters().retries, 1U);
  EXPECT_EQ(driver.counters().out_of_memory, 0U);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(beside)));
}

TEST(OutOfMemory, AlwaysTooLargeIsAnsweredAfterTheTriesAndTheQueueGoesOn) {
  SchedulerDriver driver(limits(2, 300 * kMiB));
  const WaiterId waiter = driver.enqueue(of(1, "A", 5'000'000));
  const WaiterId other = driver.enqueue(of(2, "B", 100));
  const FlightId flight = driver.flight_of(waiter);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!driver.running.contains(flight)) driver.finish(driver.running.begin()->first);
    driver.end(flight, Kind::kOutOfMemory, {.log = "bad_alloc"}, 299 * kMiB);
  }
  const Answer& answer = driver.answer(waiter);
  EXPECT_EQ(answer.error.kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(answer.error.tries, 2U);
  EXPECT_EQ(answer.error.budget_bytes, 300 * kMiB);
  EXPECT_GE(answer.error.needed_bytes, 300 * kMiB);
  EXPECT_EQ(answer.error.thing, "source 1");
  EXPECT_THAT(answer.error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
  EXPECT_EQ(answer.error.log, "bad_alloc");
  EXPECT_EQ(driver.counters().out_of_memory, 1U);
  EXPECT_EQ(driver.counters().compiles_failed, 1U);
  EXPECT_TRUE(driver.is_answered(other) || driver.running.contains(driver.flight_of(other)));
}

TEST(OutOfMemory, BelowTheBudgetTheRemedyIsNotTheBudget) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.end(flight, Kind::kOutOfMemory);
  driver.end(flight, Kind::kOutOfMemory);
  EXPECT_EQ(driver.answer(waiter).error.remedy.find("JITC_MEMORY_BUDGET"), std::string::npos);
  EXPECT_EQ(driver.answer(waiter).error.needed_bytes, driver.started[1].limit_bytes);
}

TEST(OutOfMemory, TeachesTheModelSoThatTheNextOfItsKindFits) {
  SchedulerDriver driver(limits(1));
  driver.enqueue(of(1, "A", 1'000'000));
  const std::uint64_t limit = driver.started[0].limit_bytes;
  driver.end(driver.started[0].flight, Kind::kOutOfMemory);  // no peak was seen: it needs its limit at least
  driver.cancel(driver.started[0].flight);
  driver.end(driver.started[0].flight, Kind::kFailed);
  driver.enqueue(of(2, "A", 1'000'000));
  EXPECT_GE(driver.view(driver.started.back().flight).predicted_bytes, limit - kMiB);
  EXPECT_GT(driver.started.back().limit_bytes, limit);
}

// A prediction above the budget, a limit below both: the failure says nothing against the prediction.
TEST(OutOfMemory, BelowThePredictionTeachesNothing) {
  const Submission large = of(1, "A", 5'000'000);
  const std::uint64_t predicted = MemoryModel().predict(large.features);
  SchedulerDriver driver(limits(1, 100 * kMiB));
  driver.enqueue(large);
  driver.end(driver.started[0].flight, Kind::kOutOfMemory, {}, 99 * kMiB);
  EXPECT_GE(driver.scheduler.memory_model().predict(large.features), predicted - kMiB);
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

TEST(Crash, ALostWorkerRequeuesWhatRanInFrontOfTheRest) {
  SchedulerDriver driver(limits(2));
  for (std::uint64_t i = 0; i < 4; ++i) driver.enqueue(of(i));
  const FlightId first = driver.started[0].flight, second = driver.started[1].flight;
  driver.end(second, Kind::kWorkerLost);
  driver.end(first, Kind::kWorkerLost);
  EXPECT_EQ(driver.running.size(), 2U);
  EXPECT_TRUE(driver.running.contains(first) && driver.running.contains(second));
  const WaiterId waiter = 1;
  driver.end(first, Kind::kWorkerLost);
  EXPECT_EQ(driver.answer(waiter).error.kind, ErrorKind::kInternal);
  // Nobody's fault that would last: the next request compiles.
  driver.enqueue(of(0));
  EXPECT_EQ(driver.counters().failures_remembered, 0U);
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

// ---- queue bound, drain ---------------------------------------------------------------------------------------------

TEST(QueueBound, RefusesWithAHintAndForgetsIt) {
  Limits few = limits(1);
  few.queue_length = 2;
  SchedulerDriver driver(few);
  for (std::uint64_t i = 0; i < 3; ++i) driver.enqueue(of(i));
  const WaiterId refused = driver.enqueue(of(3));
  EXPECT_EQ(driver.answer(refused).error.kind, ErrorKind::kRefused);
  EXPECT_FALSE(driver.answer(refused).error.remedy.empty());
  EXPECT_EQ(driver.counters().refused_queue_full, 1U);
  EXPECT_EQ(driver.flight_of(driver.submit(of(2))), driver.flight_of(3));  // joining needs no room
  const WaiterId hit = driver.submit(of(4));
  driver.hit(driver.flight_of(hit));
  EXPECT_EQ(driver.answer(hit).kind, Answer::Kind::kHit);
  driver.finish(driver.running.begin()->first);
  const WaiterId again = driver.enqueue(of(3));
  EXPECT_FALSE(driver.is_answered(again));
}

TEST(Drain, FinishesWhatWasAcceptedServesHitsAndRefusesTheRest) {
  SchedulerDriver driver(limits(1));
  const WaiterId running = driver.enqueue(of(1));
  const WaiterId queued = driver.enqueue(of(2));
  driver.take(driver.scheduler.drain(driver.now));
  EXPECT_TRUE(driver.scheduler.draining());
  const WaiterId refused = driver.enqueue(of(3));
  EXPECT_EQ(driver.answer(refused).error.kind, ErrorKind::kDraining);
  EXPECT_FALSE(driver.answer(refused).error.remedy.empty());
  EXPECT_EQ(driver.answer(driver.submit(no_cache(of(4)))).error.kind, ErrorKind::kDraining);
  const WaiterId hit = driver.submit(of(5));
  driver.hit(driver.flight_of(hit));
  EXPECT_EQ(driver.answer(hit).kind, Answer::Kind::kHit);
  const WaiterId merged = driver.submit(of(1));
  EXPECT_FALSE(driver.scheduler.idle());
  driver.finish(driver.flight_of(running));
  EXPECT_EQ(driver.answer(merged).kind, Answer::Kind::kDone);
  driver.finish(driver.flight_of(queued));
  EXPECT_EQ(driver.answer(queued).kind, Answer::Kind::kDone);
  EXPECT_TRUE(driver.scheduler.idle());
  EXPECT_EQ(driver.counters().refused_queue_full, 0U);
}

TEST(Drain, ARetryIsNotNewWork) {
  SchedulerDriver driver(limits(1));
  const WaiterId waiter = driver.enqueue(of(1));
  driver.take(driver.scheduler.drain(driver.now));
  driver.end(driver.flight_of(waiter), Kind::kOutOfMemory);
  ASSERT_EQ(driver.started.size(), 2U);
  driver.finish(driver.flight_of(waiter));
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
}

}  // namespace
}  // namespace jitc::schedule
