// Flights whose key another node may be compiling for the same store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using common::ErrorKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::limit_of;
using testing::no_cache;
using testing::of;
using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;
using Phase = FlightView::Phase;

Limits sharing(std::uint32_t slots, std::uint64_t budget = std::uint64_t{1} << 40) {
  Limits limits = testing::limits(slots, budget);
  limits.leases = true;
  return limits;
}

// A flight that another node compiles; returns its waiter.
WaiterId elsewhere(SchedulerDriver& driver, std::uint64_t key) {
  const WaiterId waiter = driver.enqueue(of(key));
  driver.claimed(driver.flight_of(waiter), ClaimOutcome::kElsewhere);
  return waiter;
}

TEST(Claims, AFlightThatIsClaimedHasItsSlotAndStartsAtOnce) {
  SchedulerDriver driver(sharing(1));
  const FlightId flight = driver.flight_of(driver.enqueue(of(1)));
  driver.enqueue(of(2));
  ASSERT_THAT(driver.claims, ElementsAre(flight));
  EXPECT_EQ(driver.view(flight).phase, Phase::kClaiming);
  EXPECT_THAT(driver.started, IsEmpty());
  EXPECT_EQ(driver.counters().running, 1U);
  EXPECT_EQ(driver.counters().reserved_bytes, limit_of(of(1)));
  EXPECT_EQ(driver.counters().compiles_started, 0U);
  driver.claimed(flight, ClaimOutcome::kOurs);
  ASSERT_EQ(driver.started.size(), 1U);
  EXPECT_EQ(driver.started[0].limit_bytes, limit_of(of(1)));
  EXPECT_EQ(driver.counters().compiles_started, 1U);
  EXPECT_EQ(driver.counters().running, 1U);
}

TEST(Claims, WhatAnotherNodeCompilesHoldsNoSlotAndNoMemory) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const WaiterId other = driver.enqueue(of(2));
  driver.claimed(driver.flight_of(waiter), ClaimOutcome::kElsewhere);
  EXPECT_EQ(driver.view_of(waiter).phase, Phase::kElsewhere);
  EXPECT_EQ(driver.counters().elsewhere, 1U);
  ASSERT_THAT(driver.claims, ElementsAre(driver.flight_of(waiter), driver.flight_of(other)));
  driver.claimed(driver.flight_of(other), ClaimOutcome::kOurs);
  driver.finish(driver.flight_of(other));
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_EQ(driver.counters().reserved_bytes, 0U);
  EXPECT_FALSE(driver.is_answered(waiter));
}

TEST(Claims, TheOthersArtifactIsAHit) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = elsewhere(driver, 1);
  const FlightId flight = driver.flight_of(waiter);
  const WaiterId joined = driver.submit(of(1, "B"));
  EXPECT_EQ(driver.flight_of(joined), flight);
  driver.claimed(flight, ClaimOutcome::kOver);
  EXPECT_EQ(driver.view(flight).phase, Phase::kLookingUp);
  driver.hit(flight);
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kHit);
  EXPECT_EQ(driver.answer(joined).kind, Answer::Kind::kHit);
  EXPECT_EQ(driver.counters().compiles_started, 0U);
  EXPECT_TRUE(driver.scheduler.idle());
}

// Its failure is not shared, and nobody waits for a second node.
TEST(Claims, WithoutAnArtifactItIsCompiledHereBeforeWhatCameLater) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = elsewhere(driver, 1);
  const FlightId flight = driver.flight_of(waiter);
  const WaiterId running = driver.enqueue(of(2));
  driver.claimed(driver.flight_of(running), ClaimOutcome::kOurs);
  driver.enqueue(of(3));
  driver.claimed(flight, ClaimOutcome::kOver);
  driver.miss(flight);
  EXPECT_EQ(driver.view(flight).place, 1U);
  driver.finish(driver.flight_of(running));
  ASSERT_EQ(driver.claims.back(), flight) << "it held none while it stood in the queue";
  driver.claimed(flight, ClaimOutcome::kOurs);
  ASSERT_TRUE(driver.running.contains(flight));
  driver.finish(flight);
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
}

TEST(Claims, WhatWasPublishedWhileItStoodInTheQueueIsLookedUpAgain) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = driver.enqueue(of(1));
  driver.claimed(driver.flight_of(waiter), ClaimOutcome::kOver);
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_EQ(driver.counters().elsewhere, 0U);
  driver.hit(driver.flight_of(waiter));
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kHit);
}

// An entry that is there and cannot be read says the same each time, and other nodes may fail one after the other.
TEST(Claims, AreNotAskedForWithoutEnd) {
  for (const ClaimOutcome outcome : {ClaimOutcome::kOver, ClaimOutcome::kElsewhere}) {
    SchedulerDriver driver(sharing(1));
    const FlightId flight = driver.flight_of(driver.enqueue(of(1)));
    for (std::uint32_t i = 0; i < kMostTurnedAway; ++i) {
      ASSERT_THAT(driver.claims, ElementsAre(flight));
      driver.claimed(flight, outcome);
      if (outcome == ClaimOutcome::kElsewhere) driver.claimed(flight, ClaimOutcome::kOver);
      driver.miss(flight);
    }
    EXPECT_TRUE(driver.running.contains(flight));
    driver.end(flight, Kind::kCrashed);
    EXPECT_TRUE(driver.running.contains(flight));
    EXPECT_THAT(driver.claims, IsEmpty());
  }
}

// Another node began it while this one had no slot for it.
TEST(Claims, AreAskedForAgainAfterTheQueueAndItsCompileIsWaitedFor) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = elsewhere(driver, 1);
  const FlightId flight = driver.flight_of(waiter);
  driver.claimed(flight, ClaimOutcome::kOver);
  driver.miss(flight);
  driver.claimed(flight, ClaimOutcome::kElsewhere);
  EXPECT_EQ(driver.view(flight).phase, Phase::kElsewhere);
  EXPECT_EQ(driver.counters().running, 0U);
  driver.claimed(flight, ClaimOutcome::kOver);
  driver.hit(flight);
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kHit);
  EXPECT_EQ(driver.counters().compiles_started, 0U);
}

TEST(Claims, AreGivenUpOnTheWayBackToTheQueue) {
  SchedulerDriver driver(sharing(1, limit_of(of(1))));
  const FlightId flight = driver.flight_of(driver.enqueue(of(1)));
  std::size_t given_up = 0;
  for (const Kind kind : {Kind::kCrashed, Kind::kOutOfMemory}) {
    ASSERT_THAT(driver.claims, ElementsAre(flight));
    driver.claimed(flight, ClaimOutcome::kOurs);
    ASSERT_TRUE(driver.running.contains(flight));
    EXPECT_EQ(driver.unclaimed.size(), given_up);
    driver.end(flight, kind);
    EXPECT_EQ(driver.unclaimed.size(), ++given_up);
  }
  EXPECT_THAT(driver.claims, ElementsAre(flight));
}

TEST(Claims, AreForWhatWillBePublished) {
  SchedulerDriver driver(sharing(2));
  driver.submit(no_cache(of(1)));
  EXPECT_EQ(driver.started.size(), 1U);
  EXPECT_THAT(driver.claims, IsEmpty());
}

TEST(Claims, CancelEndsAFlightWhereverItIs) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiting = elsewhere(driver, 1);
  const WaiterId claiming = driver.enqueue(of(2));
  driver.cancel(driver.flight_of(waiting));
  driver.cancel(driver.flight_of(claiming));
  for (const WaiterId waiter : {waiting, claiming}) {
    EXPECT_EQ(driver.answer(waiter).error.kind, ErrorKind::kCancelled);
  }
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_EQ(driver.counters().reserved_bytes, 0U);
  EXPECT_TRUE(driver.scheduler.idle());
  for (const FlightId late : driver.forgotten) driver.claimed(late, ClaimOutcome::kOurs);
  EXPECT_THAT(driver.started, IsEmpty());
}

TEST(Claims, TheLastWaiterWhoLeavesEndsTheWaitAfterTheGrace) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = elsewhere(driver, 1);
  driver.leave(waiter);
  driver.advance(1);
  const WaiterId back = driver.submit(of(1));
  EXPECT_EQ(driver.view_of(back).phase, Phase::kElsewhere);
  driver.leave(back);
  driver.advance(3);
  driver.tick();
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Claims, NothingStartsThatNobodyWaitsFor) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = driver.enqueue(of(1));
  const FlightId flight = driver.flight_of(waiter);
  driver.leave(waiter);
  driver.claimed(flight, ClaimOutcome::kOurs);
  EXPECT_THAT(driver.started, IsEmpty());
  EXPECT_EQ(driver.counters().running, 0U);
  EXPECT_THAT(driver.unclaimed, ElementsAre(flight));
  driver.submit(of(1));
  ASSERT_THAT(driver.claims, ElementsAre(flight));
  driver.claimed(flight, ClaimOutcome::kOurs);
  EXPECT_TRUE(driver.running.contains(flight));
}

TEST(Claims, ADrainFinishesWhatWaitsForAnotherNode) {
  SchedulerDriver driver(sharing(1));
  const WaiterId waiter = elsewhere(driver, 1);
  const FlightId flight = driver.flight_of(waiter);
  driver.take(driver.scheduler.drain(driver.now));
  driver.claimed(flight, ClaimOutcome::kOver);
  driver.miss(flight);
  driver.claimed(flight, ClaimOutcome::kOurs);
  driver.finish(flight);
  EXPECT_EQ(driver.answer(waiter).kind, Answer::Kind::kDone);
  EXPECT_TRUE(driver.scheduler.idle());
}

// Their texts are held as those of the queue are.
TEST(Claims, WhatWaitsForOtherNodesTakesRoomInTheQueue) {
  Limits limits = sharing(1);
  limits.queue_length = 2;
  SchedulerDriver driver(limits);
  const WaiterId first = elsewhere(driver, 1);
  elsewhere(driver, 2);
  const WaiterId refused = driver.enqueue(of(3));
  EXPECT_EQ(driver.answer(refused).error.kind, ErrorKind::kRefused);
  driver.claimed(driver.flight_of(first), ClaimOutcome::kOver);
  driver.hit(driver.flight_of(first));
  EXPECT_FALSE(driver.is_answered(driver.enqueue(of(4))));
}

}  // namespace
}  // namespace jitc::schedule
