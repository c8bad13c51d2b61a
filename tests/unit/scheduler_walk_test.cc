// A seeded random walk over every event of the scheduler: what must hold after each step, whatever came before.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/scheduler_driver.h"

namespace jitc::schedule {
namespace {

using testing::SchedulerDriver;
using Kind = CompileOutcome::Kind;

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed), limits_(some_limits()), driver_(limits_) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const std::size_t started = driver_.started.size();
      step();
      check(driver_.started.size() > started);
    }
    settle();
  }

 private:
  std::uint64_t pick(std::uint64_t count) {
    return std::uniform_int_distribution<std::uint64_t>(0, count - 1)(random_);
  }
  bool chance(int percent) { return pick(100) < static_cast<std::uint64_t>(percent); }
  template <class Container>
  auto one_of(const Container& container) {
    return *std::next(container.begin(), static_cast<std::ptrdiff_t>(pick(container.size())));
  }

  Limits some_limits() {
    Limits limits = testing::limits(static_cast<std::uint32_t>(1 + pick(6)), (50 + pick(2000)) << 20);
    limits.queue_length = static_cast<std::uint32_t>(chance(30) ? 1 + pick(10) : 1000);
    limits.pressure = chance(10);
    limits.crash_tries = static_cast<std::uint32_t>(1 + pick(3));
    limits.spare_bytes = pick(100) << 20;
    return limits;
  }

  void step() {
    if (chance(40)) driver_.advance(static_cast<double>(pick(3000)) / 1000);
    switch (pick(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return submit();
      case 4:
      case 5:
        return look_up();
      case 6:
      case 7:
      case 8:
        return end();
      case 9:
        return publish();
      case 10:
        return leave();
      case 11:
        return driver_.tick();
      case 12:
        return chance(20) ? change_limits() : driver_.tick();
      default:
        return chance(20) ? cancel() : look_up();
    }
  }

  void submit() {
    Submission submission = testing::of(pick(40), std::string(1, static_cast<char>('A' + pick(4))));
    submission.features.bytes = std::uint64_t{1} << pick(22);
    submission.features.compiler = chance(50) ? "gcc" : "clang";
    submission.prefetch = chance(20);
    submission.no_cache = chance(10);
    waiting_.push_back(driver_.submit(submission));
  }
  void look_up() {
    if (!driver_.look_ups.empty()) driver_.look_up(one_of(driver_.look_ups), chance(20));
  }
  void end() {
    if (driver_.running.empty()) return;
    const auto [flight, compile] = one_of(driver_.running);
    constexpr Kind kKinds[] = {Kind::kDone,    Kind::kDone,   Kind::kDone,      Kind::kOutOfMemory,
                               Kind::kCrashed, Kind::kFailed, Kind::kWorkerLost};
    const Kind kind = kKinds[pick(std::size(kKinds))];
    driver_.end(flight, kind, {.kind = chance(50) ? common::ErrorKind::kInvalidSource : common::ErrorKind::kTimedOut},
                pick(compile.limit_bytes + 1));
  }
  void publish() {
    if (!driver_.publishing.empty()) driver_.publish(one_of(driver_.publishing));
  }
  void leave() {
    if (waiting_.empty()) return;
    const WaiterId waiter = one_of(waiting_);
    driver_.leave(waiter);
    if (!driver_.is_answered(waiter)) gone_.insert(waiter);
  }
  void cancel() {
    const auto flights = driver_.scheduler.flights();
    if (!flights.empty()) driver_.cancel(one_of(flights).flight);
  }
  void change_limits() {
    limits_ = some_limits();
    driver_.set(limits_);
  }

  bool somebody_waits_in_the_queue() const {
    for (const FlightView& view : driver_.scheduler.flights()) {
      if (view.phase == FlightView::Phase::kQueued && view.waiters > 0) return true;
    }
    return false;
  }

  void check(bool just_started) {
    const Counters& counters = driver_.counters();
    ASSERT_EQ(counters.running, driver_.running.size());
    ASSERT_EQ(counters.compiles_started, driver_.started.size());
    // Limits may have shrunk under what runs, so they bind when something starts.
    if (just_started) {
      ASSERT_LE(counters.running, limits_.slots);
      ASSERT_LE(counters.reserved_bytes,
                limits_.budget_bytes + (driver_.scheduler.alone_runs() ? limits_.spare_bytes : 0));
      if (limits_.pressure) {
        ASSERT_EQ(counters.running, 1U);
      }
    }
    std::uint64_t allowed = 0;
    for (const auto& [flight, compile] : driver_.running) {
      if (compile.alone) {
        ASSERT_EQ(counters.running, 1U);
      }
      ASSERT_GT(compile.limit_bytes, 0U);
      allowed += compile.limit_bytes;
    }
    ASSERT_EQ(counters.reserved_bytes, allowed);
    if (counters.running == 0) {
      ASSERT_EQ(counters.reserved_bytes, 0U);
      ASSERT_FALSE(somebody_waits_in_the_queue()) << "the queue stalls";
    }
    std::uint32_t place = 0;
    for (const FlightView& view : driver_.scheduler.flights()) {
      if (view.phase == FlightView::Phase::kQueued) {
        ASSERT_EQ(view.place, ++place);
      }
    }
    for (const WaiterId waiter : gone_) ASSERT_FALSE(driver_.is_answered(waiter)) << "a waiter that left got an answer";
    for (const WaiterId waiter : waiting_) {
      const bool waits = driver_.scheduler.view_of(waiter).has_value();
      ASSERT_EQ(waits, !driver_.is_answered(waiter) && !gone_.contains(waiter));
    }
  }

  // Everything that is asked for is done; then nothing may be left.
  void settle() {
    for (int i = 0; i < 100'000 && !driver_.scheduler.idle(); ++i) {
      driver_.advance(0.5);
      driver_.tick();
      look_up();
      end();
      publish();
    }
    ASSERT_TRUE(driver_.scheduler.idle()) << "a flight leaks";
    ASSERT_EQ(driver_.counters().running, 0U);
    ASSERT_EQ(driver_.counters().reserved_bytes, 0U);
    for (const WaiterId waiter : waiting_) ASSERT_NE(driver_.is_answered(waiter), gone_.contains(waiter));
    driver_.advance(3600);
    driver_.tick();
    ASSERT_FALSE(driver_.scheduler.next_deadline());
  }

  std::mt19937_64 random_;
  Limits limits_;
  SchedulerDriver driver_;
  std::vector<WaiterId> waiting_;
  std::set<WaiterId> gone_;
};

TEST(SchedulerWalk, HoldsWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Walk(seed).run(1500);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace jitc::schedule
