// Drives a scheduler by hand: injected time, actions sorted by kind, every answer kept.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/schedule/scheduler.h"

namespace jitc::testing {

inline schedule::Limits limits(std::uint32_t slots, std::uint64_t budget = std::uint64_t{1} << 40) {
  return {.slots = slots, .budget_bytes = budget};
}

inline common::Digest schedule_key(std::uint64_t number) {
  common::Digest digest;
  for (std::size_t i = 0; i < 8; ++i) digest.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return digest;
}

inline schedule::Submission of(std::uint64_t key_number, std::string client = "A", std::uint64_t bytes = 1000) {
  schedule::Submission submission;
  submission.key = schedule_key(key_number);
  submission.client = std::move(client);
  submission.name = "source " + std::to_string(key_number);
  submission.features.bytes = bytes;
  return submission;
}

inline schedule::Submission prefetch(schedule::Submission submission) {
  submission.prefetch = true;
  return submission;
}

inline schedule::Submission no_cache(schedule::Submission submission) {
  submission.no_cache = true;
  return submission;
}

inline common::Error invalid_source() {
  return {.kind = common::ErrorKind::kInvalidSource,
          .message = "expected ';'",
          .diagnostics = {{"error", 3, 4, "expected ';'"}}};
}

// Of a model that has learnt nothing yet.
inline std::uint64_t limit_of(const schedule::Submission& submission) {
  return schedule::MemoryModel::limit_for(schedule::MemoryModel().predict(submission.features));
}

class SchedulerDriver {
 public:
  using Kind = schedule::CompileOutcome::Kind;

  explicit SchedulerDriver(const schedule::Limits& limits) : scheduler(limits) {}

  // Submits; returns the waiter. The look-up is open until miss() or hit().
  schedule::WaiterId submit(const schedule::Submission& submission) {
    const schedule::WaiterId waiter = next_waiter++;
    take(scheduler.submit(now, waiter, submission));
    return waiter;
  }
  // Submits and lets the look-up, if there is one, miss.
  schedule::WaiterId enqueue(const schedule::Submission& submission) {
    const schedule::WaiterId waiter = submit(submission);
    if (!look_ups.empty()) miss(look_ups.back());
    return waiter;
  }
  schedule::FlightId flight_of(schedule::WaiterId waiter) const {
    const auto view = scheduler.view_of(waiter);
    return view ? view->flight : schedule::kNoFlight;
  }
  // Of a flight or waiter that is over: all zero.
  schedule::FlightView view(schedule::FlightId flight) const {
    return scheduler.view(flight).value_or(schedule::FlightView{});
  }
  schedule::FlightView view_of(schedule::WaiterId waiter) const {
    return scheduler.view_of(waiter).value_or(schedule::FlightView{});
  }
  schedule::Time deadline() const { return scheduler.next_deadline().value_or(schedule::Time::max()); }
  void miss(schedule::FlightId flight) { look_up(flight, false); }
  void hit(schedule::FlightId flight) { look_up(flight, true); }
  void look_up(schedule::FlightId flight, bool is_hit) {
    std::erase(look_ups, flight);
    take(scheduler.look_up_done(now, flight, is_hit));
  }
  void claimed(schedule::FlightId flight, schedule::ClaimOutcome outcome) {
    if (outcome != schedule::ClaimOutcome::kElsewhere) std::erase(claims, flight);
    take(scheduler.claimed(now, flight, outcome));
  }
  void leave(schedule::WaiterId waiter) { take(scheduler.leave(now, waiter)); }
  void cancel(schedule::FlightId flight) { take(scheduler.cancel(now, flight)); }
  void tick() { take(scheduler.tick(now)); }
  void set(const schedule::Limits& limits) { take(scheduler.set_limits(now, limits)); }
  void advance(double seconds) {
    now += std::chrono::duration_cast<schedule::Time::duration>(schedule::Seconds(seconds));
  }
  void end(schedule::FlightId flight, Kind kind, common::Error error = {}, std::uint64_t peak = 0) {
    running.erase(flight);
    take(scheduler.compile_done(
        now, flight, {.kind = kind, .error = std::move(error), .peak_bytes = peak, .features = {.bytes = 0}}));
  }
  // Ended by a limit that is not the compile's own; nearly all of it was used.
  void end_from_outside(schedule::FlightId flight, common::Error error) {
    const std::uint64_t peak = running.at(flight).limit_bytes - 1;
    running.erase(flight);
    take(scheduler.compile_done(now, flight,
                                {.kind = Kind::kCrashed,
                                 .error = std::move(error),
                                 .peak_bytes = peak,
                                 .features = {.bytes = 0},
                                 .outside = true}));
  }
  void publish(schedule::FlightId flight) {
    std::erase(publishing, flight);
    take(scheduler.publish_done(now, flight));
  }
  // Compiles and publishes.
  void finish(schedule::FlightId flight) {
    end(flight, Kind::kDone);
    publish(flight);
  }
  const schedule::Counters& counters() const { return scheduler.counters(); }
  const schedule::Answer& answer(schedule::WaiterId waiter) const {
    static const schedule::Answer kNone{.flight = ~schedule::FlightId{0},
                                        .waiter = 0,
                                        .kind = schedule::Answer::Kind::kError,
                                        .error = {.message = "no answer came"}};
    const auto found = answers.find(waiter);
    EXPECT_NE(found, answers.end()) << "waiter " << waiter << " has no answer";
    return found == answers.end() ? kNone : found->second;
  }
  bool is_answered(schedule::WaiterId waiter) const { return answers.contains(waiter); }

  void take(const schedule::Actions& actions) {
    for (const auto& action : actions) std::visit([this](const auto& one) { on(one); }, action);
  }

  schedule::Scheduler scheduler;
  schedule::Time now{std::chrono::hours(1)};
  schedule::WaiterId next_waiter = 1;
  std::vector<schedule::FlightId> look_ups, claims, unclaimed, publishing, stopped, forgotten;
  std::map<schedule::FlightId, schedule::Compile> running;  // started, not yet reported
  std::vector<schedule::Compile> started;                   // all starts, in order
  std::map<schedule::WaiterId, schedule::Answer> answers;
  std::string degraded;  // of the last Publish

 private:
  void on(const schedule::LookUp& action) { look_ups.push_back(action.flight); }
  void on(const schedule::Claim& action) { claims.push_back(action.flight); }
  void on(const schedule::Unclaim& action) { unclaimed.push_back(action.flight); }
  void on(const schedule::Compile& action) {
    EXPECT_FALSE(running.contains(action.flight)) << "started while it ran";
    running.emplace(action.flight, action);
    started.push_back(action);
  }
  void on(const schedule::StopCompile& action) { stopped.push_back(action.flight); }
  void on(const schedule::Publish& action) {
    publishing.push_back(action.flight);
    degraded = action.degraded;
  }
  void on(const schedule::Answer& action) {
    EXPECT_TRUE(answers.emplace(action.waiter, action).second) << "answered twice: " << action.waiter;
  }
  void on(const schedule::Forget& action) { forgotten.push_back(action.flight); }
};

}  // namespace jitc::testing
