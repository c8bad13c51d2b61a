// Flights of the scheduler: who joins which, and what happens to one whose waiters leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using common::ErrorKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::limits;
using testing::no_cache;
using testing::of;
using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;

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

TEST(Cancel, WhatIsGivenUpAtTheStoreHearsWhyAndLateAnswersOfTheStoreAreHarmless) {
  SchedulerDriver driver(limits(1));
  const common::Error silent{.kind = common::ErrorKind::kTimedOut, .message = "the store does not answer"};
  const auto looked_for = driver.submit(of(1));
  const auto flight = driver.flight_of(looked_for);
  driver.take(driver.scheduler.give_up(driver.now, flight, silent));
  EXPECT_EQ(driver.answer(looked_for).error.kind, common::ErrorKind::kTimedOut);
  driver.hit(flight);
  EXPECT_TRUE(driver.scheduler.idle());

  const auto made = driver.enqueue(of(2));
  const auto publishing = driver.flight_of(made);
  driver.end(publishing, SchedulerDriver::Kind::kDone);
  driver.take(driver.scheduler.give_up(driver.now, publishing, silent));
  EXPECT_EQ(driver.answer(made).error.message, silent.message);
  EXPECT_FALSE(driver.scheduler.idle());  // it may yet be published
  driver.publish(publishing);
  EXPECT_TRUE(driver.scheduler.idle());
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

}  // namespace
}  // namespace jitc::schedule
