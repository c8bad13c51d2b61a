// A node in simulated time around a scheduler: clients that come, leave and return, compiles that need more memory than
// was predicted, crash, or take the worker with them, limits that change. It keeps its own books of who waits and what
// runs, and compares them with the scheduler's after every event.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/schedule/scheduler.h"

namespace jitc::testing {

class ScheduleSimulation {
 public:
  // `leases`: other nodes compile for the same store.
  explicit ScheduleSimulation(std::uint64_t seed, bool leases = false);

  // Until so many events; then nobody comes any more, the daemon drains, and everything ends. Stops at a violation.
  void run(std::uint64_t events);
  const std::string& violation() const { return violation_; }
  std::uint64_t events() const { return events_; }
  double simulated_seconds() const { return std::chrono::duration<double>(now_ - kStart).count(); }
  const schedule::Counters& counters() const { return scheduler_.counters(); }

  // What happened often enough that the run means something.
  struct Seen {
    std::uint64_t hits = 0, done = 0, errors = 0, left = 0, rejoined = 0, alone = 0, limits = 0, idle_queue = 0,
                  outside = 0, remembered = 0, elsewhere = 0, left_elsewhere = 0;
    std::uint32_t longest_queue = 0, most_overtaken = 0;
  };
  const Seen& seen() const { return seen_; }

 private:
  using Time = schedule::Time;
  using FlightId = schedule::FlightId;
  using WaiterId = schedule::WaiterId;
  static constexpr Time kStart{std::chrono::hours(1)};

  enum class What { kArrival, kLeave, kLookedUp, kClaimed, kElsewhereOver, kCompiled, kPublished, kCancel, kLimits };
  struct Event {
    Time at;
    std::uint64_t order = 0;  // of those at one time
    What what;
    std::uint64_t id = 0;   // waiter or flight
    std::uint64_t run = 0;  // kCompiled: of which start
    bool operator>(const Event& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  struct Waiter {
    enum class State { kWaits, kAnswered, kLeft } state = State::kWaits;
    FlightId flight = 0;
    Time since;
  };
  enum class Phase { kLookingUp, kQueued, kClaiming, kElsewhere, kRunning, kStopping, kPublishing };
  struct Flight {
    schedule::Submission submission;
    Phase phase = Phase::kLookingUp;
    std::unordered_set<WaiterId> waiters;
    bool prefetch = true;     // all who ever asked for it
    std::uint64_t order = 0;  // of its coming into the queue
    std::uint64_t run = 0;
    std::uint32_t attempt = 0;
    std::uint64_t limit_bytes = 0;
    bool alone = false;
    bool degraded = false;
    bool has_claim = false;
    std::uint32_t turned_away = 0;
    bool hit_from_outside = false;       // the start before ended so
    schedule::CompileOutcome outcome{};  // of the start that runs
  };

  std::uint64_t pick(std::uint64_t count) { return random_() % count; }
  bool chance(double share) { return static_cast<double>(random_() >> 11) * 0x1p-53 < share; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  void after(double seconds, What what, std::uint64_t id = 0, std::uint64_t run = 0);
  schedule::Limits some_limits();
  schedule::Submission some_submission();

  bool step();
  void on(const Event& event);
  void arrive();
  void leave(WaiterId waiter);
  void claimed(FlightId flight);
  void elsewhere_over(FlightId flight);
  void compiled(FlightId flight, std::uint64_t run);
  void lose_worker();
  void change_limits();

  void take(const schedule::Actions& actions);
  void on(const schedule::LookUp& action);
  void on(const schedule::Claim& action);
  void on(const schedule::Unclaim& action);
  void on(const schedule::Compile& action);
  void on(const schedule::StopCompile& action);
  void on(const schedule::Publish& action);
  void on(const schedule::Answer& action);
  void on(const schedule::Forget& action);
  schedule::CompileOutcome outcome_of(const Flight& flight, const schedule::Compile& action);

  void require(bool holds, const char* what);
  void put_in_queue(FlightId id);
  void update_queue(FlightId id, const Flight& flight);
  void take_place(FlightId id, Flight& flight, std::uint64_t limit_bytes, bool alone);
  void check_start(FlightId id, const Flight& flight);
  void check_event(bool started, std::uint32_t running_before, std::uint64_t reserved_before);
  void check_oldest();
  bool has_room_for(const Flight& flight) const;
  bool is_room_kept(const std::vector<schedule::FlightView>& views) const;
  void check_flights();
  void check_waiters();
  void check_end();
  std::uint64_t limit_of(const schedule::Submission& submission) const;

  std::mt19937_64 random_;
  std::uint64_t seed_;
  bool leases_;
  schedule::Limits limits_;
  schedule::Scheduler scheduler_;
  schedule::MemoryModel untaught_;
  Time now_ = kStart;
  std::uint64_t events_ = 0, next_order_ = 1, next_run_ = 1, next_key_ = 1'000'000, queue_order_ = 1;
  bool open_ = true;  // clients still come
  std::priority_queue<Event, std::vector<Event>, std::greater<>> agenda_;
  std::vector<Waiter> waiters_;
  std::unordered_map<FlightId, Flight> flights_;
  std::unordered_map<common::Digest, FlightId> by_key_;  // that can be joined
  std::unordered_set<common::Digest> store_;
  std::unordered_set<common::Digest> own_failures_;  // keys of which a compile failed, not from outside
  Time full_until_ = kStart;                         // others leave no memory to compiles, whatever the budget says
  std::set<std::pair<std::uint64_t, FlightId>> queued_[2];  // with waiters; blocking, prefetch
  std::set<std::pair<Time, WaiterId>> blocking_;            // who waits, since when
  std::set<FlightId> running_;                              // those being stopped, too, and those that claim
  std::uint32_t started_ = 0;                               // in this event
  FlightId oldest_ = 0;                                     // of the blocking ones in the queue
  Time oldest_since_;
  std::optional<Time> oldest_passed_;  // since when it is passed
  std::uint32_t overtaken_ = 0;        // by how many younger ones, after it had aged
  Seen seen_;
  std::string violation_;
};

}  // namespace jitc::testing
