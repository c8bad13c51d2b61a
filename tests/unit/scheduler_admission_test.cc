// When the scheduler starts a flight: slots, memory, turns of the clients, a full queue, a drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using common::Error;
using common::ErrorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::limit_of;
using testing::limits;
using testing::no_cache;
using testing::of;
using testing::prefetch;
using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

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
  const std::uint64_t one = limit_of(of(0, "A", 1'000'000));
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
  driver.enqueue(of(1, "A", 2'400'000));
  const WaiterId large = driver.enqueue(of(2, "A", 2'400'000));
  const WaiterId small = driver.enqueue(of(3, "A", 100));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(large)));
  EXPECT_TRUE(driver.running.contains(driver.flight_of(small)));
}

TEST(Admission, AnAgedLargeOneIsPassedNoMore) {
  SchedulerDriver driver(limits(4, 400 * kMiB));
  const WaiterId holder = driver.enqueue(of(1, "A", 100));
  const WaiterId large = driver.enqueue(of(2, "B", 3'800'000));
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
  for (std::uint64_t i = 0; i < 5; ++i) driver.enqueue(of(10 + i, "A", 3'800'000));
  driver.advance(60);
  const WaiterId small = driver.enqueue(of(2, "C", 100));
  driver.finish(driver.started[0].flight);  // now the first large one
  ASSERT_EQ(driver.running.size(), 1U);
  driver.finish(driver.running.begin()->first);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(small)));
}

// Who holds everybody up gives way at once when nobody waits for it any more.
TEST(Admission, AnAgedOneThatIsLeftHoldsNobodyUp) {
  SchedulerDriver driver(limits(4, 400 * kMiB));
  driver.enqueue(of(1, "A", 100));
  const WaiterId large = driver.enqueue(of(2, "B", 4'000'000));
  driver.enqueue(of(3, "C", 100));
  driver.advance(5);
  const WaiterId late = driver.enqueue(of(4, "C", 100));
  ASSERT_FALSE(driver.running.contains(driver.flight_of(late)));
  driver.leave(large);
  EXPECT_TRUE(driver.running.contains(driver.flight_of(late)));
}

// A node whose slots are free and whose memory is not: who leaves from the back lets nobody start.
TEST(Admission, LeaversFromTheBackCostNoLookAtTheQueue) {
  constexpr std::uint64_t kFlights = 8000;
  Limits patient = limits(64, 200 * kMiB);
  patient.ageing = Seconds(3600);  // once one is aged, the others are not looked at anyway
  SchedulerDriver driver(patient);
  driver.enqueue(of(0, "A", 100));
  std::vector<WaiterId> waiters;
  for (std::uint64_t i = 1; i <= kFlights; ++i) waiters.push_back(driver.enqueue(of(i, "A", 100)));
  ASSERT_EQ(driver.scheduler.queued(), kFlights);
  const std::uint64_t before = driver.counters().looked_at;
  while (waiters.size() > 1) {
    driver.leave(waiters.back());
    waiters.pop_back();
    driver.advance(0.001);
    driver.tick();  // graces end one by one
  }
  driver.advance(10);
  driver.tick();
  EXPECT_EQ(driver.scheduler.queued(), 1U);
  EXPECT_LE(driver.counters().looked_at, before + 10);
}

// Its age is not lost with a connection: who is back within the grace holds the others back as before.
TEST(Admission, AnAgedOneThatIsBackHoldsOthersBackAgain) {
  SchedulerDriver driver(limits(8, 400 * kMiB));
  driver.enqueue(of(1, "A", 100));
  const WaiterId large = driver.enqueue(of(2, "B", 4'000'000));
  driver.enqueue(of(3, "C", 100));
  driver.advance(5);
  driver.leave(large);
  driver.submit(of(2, "B", 4'000'000));
  const WaiterId late = driver.enqueue(of(4, "C", 100));
  EXPECT_FALSE(driver.running.contains(driver.flight_of(late)));
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
  EXPECT_EQ(driver.counters().reserved_bytes, driver.started[0].limit_bytes);
  EXPECT_EQ(driver.view(driver.started[0].flight).predicted_bytes, predicted);
}

TEST(Admission, MeasuredPeaksAdmitMore) {
  const std::uint64_t budget = 2 * limit_of(of(0, "A", 1'000'000)) - 1;
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

Submission holding(std::uint64_t key, std::uint64_t bytes) {
  Submission submission = of(key);
  submission.held_bytes = bytes;
  return submission;
}

// A sixteenth of the budget, at least 64 MiB: held for those that wait, and for those that are looked up.
TEST(QueueBound, IsOneOfBytesToo) {
  SchedulerDriver driver(limits(1, 1600 * kMiB));
  driver.enqueue(holding(1, 500 * kMiB));  // runs
  driver.enqueue(holding(2, 100 * kMiB));
  const WaiterId refused = driver.enqueue(holding(3, 1));
  const Error& error = driver.answer(refused).error;
  EXPECT_EQ(error.kind, ErrorKind::kRefused);
  EXPECT_THAT(error.message, HasSubstr("1 compiles wait, with 100 MiB"));
  EXPECT_THAT(error.remedy, HasSubstr("JITC_MEMORY_BUDGET"));
  EXPECT_GE(error.retry_after_seconds, 1);
  EXPECT_EQ(driver.counters().refused_queue_full, 1U);
  EXPECT_NE(driver.flight_of(driver.submit(holding(2, 100 * kMiB))), kNoFlight) << "joining needs no room";
  driver.end(driver.running.begin()->first, Kind::kDone);
  // What runs is no longer in the queue, and alone in it anything has room; a try again takes its room as before.
  driver.enqueue(holding(4, 1000 * kMiB));
  driver.end(driver.running.begin()->first, Kind::kCrashed);
  EXPECT_EQ(driver.answer(driver.enqueue(holding(5, 1))).error.kind, ErrorKind::kRefused);
  driver.finish(driver.running.begin()->first);
  driver.finish(driver.running.begin()->first);
  driver.enqueue(holding(6, kMiB));  // runs
  EXPECT_FALSE(driver.is_answered(driver.enqueue(holding(7, 60 * kMiB))));
  EXPECT_FALSE(driver.is_answered(driver.enqueue(holding(8, 40 * kMiB)))) << "everything was given back";
}

TEST(QueueBound, HoldsForWhatIsLookedUp) {
  SchedulerDriver driver(limits(1, 100 * kMiB));
  const WaiterId first = driver.submit(holding(1, 40 * kMiB));
  const WaiterId second = driver.submit(holding(2, 24 * kMiB));
  EXPECT_EQ(driver.answer(driver.submit(holding(3, kMiB))).error.kind, ErrorKind::kRefused);
  EXPECT_EQ(driver.answer(driver.submit(no_cache(holding(4, kMiB)))).error.kind, ErrorKind::kRefused);
  driver.hit(driver.flight_of(first));
  EXPECT_FALSE(driver.is_answered(driver.submit(holding(3, kMiB))));
  driver.cancel(driver.flight_of(second));
  EXPECT_FALSE(driver.is_answered(driver.submit(holding(5, 63 * kMiB))));
}

TEST(QueueBound, SaysWhenToAskAgain) {
  Limits few = limits(2);
  few.queue_length = 100;
  SchedulerDriver driver(few);
  for (std::uint64_t i = 0; i < 102; ++i) driver.enqueue(of(i));
  // Nothing is known yet: a second each, two at a time, until a tenth of a hundred has started.
  EXPECT_EQ(driver.answer(driver.enqueue(of(200))).error.retry_after_seconds, 5);
  for (std::uint64_t i = 0; i < 50; ++i) {
    driver.advance(12);
    driver.finish(driver.running.begin()->first);
    driver.enqueue(of(300 + i));
  }
  const Error& error = driver.answer(driver.enqueue(of(201))).error;
  EXPECT_NEAR(error.retry_after_seconds, 120, 10);  // 24 s each
  EXPECT_THAT(error.remedy,
              HasSubstr("in about " + std::to_string(static_cast<int>(error.retry_after_seconds)) + " s"));
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
