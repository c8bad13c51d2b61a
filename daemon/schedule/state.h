// What a scheduler keeps. Its events are in scheduler.cc, the queue and admission in admission.cc.
#pragma once

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/schedule/failure_memory.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/schedule/turns.h"

namespace jitc::schedule {

struct Waiter {
  WaiterId id;
  bool merged;
  bool no_cache;  // a look-up's hit does not answer it
};

// Where a flight stands in the queue. One that several clients wait for stands in the line of each.
struct Line {
  bool prefetch;
  std::string client;
  bool operator==(const Line&) const = default;
};

// Memory of one start.
struct Demand {
  std::uint64_t predicted = 0;
  std::uint64_t limit = 0;  // given to the child tree, and held of the budget
  bool alone = false;
  bool whole_budget = false;  // alone with all that there is: nothing more can be given
};

struct Flight {
  FlightId id;
  Submission first;
  Time submitted;
  FlightView::Phase phase = FlightView::Phase::kLookingUp;
  std::vector<Waiter> waiters;
  std::vector<Line> lines;
  std::vector<std::string> rungs;
  Features features = first.features;  // the scan's, then the parse's; the level it is compiled at
  Time started;
  std::uint32_t turned_away = 0;  // answers to Claim that it was not the first to ask
  std::uint32_t attempt = 0;
  std::uint32_t out_of_memory = 0;  // attempts that ended so
  std::uint64_t needed_bytes = 0;   // at least, as these met it
  bool beside_others = false;       // something ran when it was started
  std::uint64_t number = 0;         // of its start, among all
  // It runs alone: the worker died under it again and again (to see if it is the cause), or there was no room around
  // it.
  bool suspect = false;
  std::string degraded;              // how it is compiled otherwise than asked, and why
  Demand demand;                     // of the attempt that runs or ran last
  std::optional<Time> grace_end;     // nobody waits; cancelled then
  std::optional<Time> passed_since;  // it had its turn and did not fit
  bool stopping = false;             // StopCompile is out: it only holds its slot until the report comes
  std::uint32_t place = 0;           // of the last numbering
  std::uint64_t bytes_ahead = 0;

  // Attempts that crashed, or lost their worker.
  std::uint32_t crashes() const { return attempt - out_of_memory; }
  bool is_prefetch() const {
    return std::ranges::all_of(lines, [](const Line& line) { return line.prefetch; });
  }
};

inline Time after(Time now, Seconds seconds) { return now + std::chrono::duration_cast<Time::duration>(seconds); }

struct Scheduler::State {
  Limits limits;
  Counters counters;
  MemoryModel model;
  FailureMemory failures;
  bool draining = false;
  FlightId next_id = 1;
  std::unordered_map<FlightId, Flight> flights;
  std::unordered_map<common::Digest, FlightId> by_key;  // flights that a request may join
  std::unordered_map<WaiterId, FlightId> by_waiter;
  std::array<Turns, 2> turns;  // of those somebody waits for, of prefetches
  std::set<std::pair<Time, FlightId>> graces;
  std::set<std::pair<Time, FlightId>> passed;  // since when; those that somebody waits for
  std::uint32_t queued = 0;
  std::uint64_t queued_bytes = 0, looked_up_bytes = 0;  // held for these; for those whose look-up is under way
  std::uint32_t elsewhere = 0;                          // flights that other nodes compile
  std::uint64_t elsewhere_bytes = 0;
  double run_seconds = 0;  // that compiles take, lately; 0: none has ended
  bool settled = false;    // nothing can start before something else changes: the queue need not be walked again
  bool alone_runs = false;
  bool numbered = true;  // places are those of the present queue

  Flight* find(FlightId id, FlightView::Phase phase) {
    const auto found = flights.find(id);
    return found == flights.end() || found->second.phase != phase ? nullptr : &found->second;
  }

  // ---- waiters ------------------------------------------------------------------------------------------------------
  Flight& open(Time now, const Submission& submission);
  void join(Flight& flight, WaiterId waiter, const Submission& submission, bool merged);
  void answer(const Waiter& waiter, FlightId flight, Answer::Kind kind, const common::Error& error,
              const std::vector<std::string>& rungs, Actions& actions);
  void answer_all(Flight& flight, Answer::Kind kind, const common::Error& error, Actions& actions);
  void abandon(Time now, Flight& flight);
  void stop_holding_back(Time now, Flight& flight);
  void revive(Flight& flight);
  void end_without_waiters(Time now, Flight& flight, Actions& actions);
  void forget(Flight& flight, Actions& actions);
  std::uint64_t most_queued_bytes() const;
  bool has_room(const Flight& flight) const;
  void refuse(Flight& flight, const common::Error& error, Actions& actions);
  common::Error queue_full(const Flight& flight) const;
  void enqueue_or_refuse(Flight& flight, Actions& actions);

  // ---- other nodes --------------------------------------------------------------------------------------------------
  void wait_elsewhere(Flight& flight);
  void leave_elsewhere(const Flight& flight);
  void look_again(Flight& flight, Actions& actions);

  // ---- the queue ----------------------------------------------------------------------------------------------------
  void stand_in_line(Flight& flight, const Line& line);
  void enqueue(Flight& flight, bool in_front);
  void leave_queue(Flight& flight);
  void may_start(const Flight& flight);
  double retry_after_seconds() const;
  std::vector<FlightId> order() const;
  void number();

  // ---- admission ----------------------------------------------------------------------------------------------------
  Demand demand_of(const Flight& flight) const;
  bool fits(const Demand& demand) const;
  struct Choice {
    Flight* flight;
    std::string client;  // whose turn it is
  };
  void mark_passed(Time now, Flight& flight);
  void unmark_passed(Flight& flight);
  Flight* aged(bool prefetch, Time now);
  std::optional<Choice> next_to_start(Time now);
  void start(Time now, Flight& flight, const std::string& client, Actions& actions);
  void begin(Time now, Flight& flight, Actions& actions);
  void admit(Time now, Actions& actions);
  void give_back(const Flight& flight);
  void release(Time now, Flight& flight);
  bool ran_beside_others(const Flight& flight) const;

  // ---- outcomes -----------------------------------------------------------------------------------------------------
  void learn(const Flight& flight, const CompileOutcome& outcome);
  std::optional<int> level_to_lower_to(const Flight& flight) const;
  bool may_retry(const Flight& flight, CompileOutcome::Kind kind) const;
  void retry_for_memory(Flight& flight);
  void retry(Flight& flight, const CompileOutcome& outcome, Actions& actions);
  void fail(Time now, Flight& flight, common::Error error, bool lasting, Actions& actions);
  common::Error final_error(const Flight& flight, const CompileOutcome& outcome) const;
  FlightView view(const Flight& flight) const;
};

}  // namespace jitc::schedule
