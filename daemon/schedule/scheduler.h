// Who waits for what, and what may run: flights, admission, the ladder. A pure state machine: events in, actions out;
// no I/O, no threads, no clock of its own. The caller carries out the actions in order and reports back.
//
// Life of a flight (one per key in flight):
//   submit -> kLookUp -> (look_up_done: hit -> Answer) -> queued -> kCompile -> compile_done -> kPublish ->
//   publish_done
//   -> Answer to every waiter.
// Where a store is shared (Limits::leases) a flight has its slot and memory and is about to start when Claim asks
// whether another node compiles its key. If so it gives them back and waits; after that it is looked up, and stands in
// front of the queue if the other node has left no artifact. What stands in the queue has no claim (Unclaim): each
// start asks anew, until one was answered kMostTurnedAway times that another node was there before; then it is compiled
// here, whatever others do. The ladder of one that ran out of memory: again, alone, with the whole budget, unless it
// had that already; then, unless the flags are exact or it would not help, the same once more at the optimisation level
// that needs the least memory (level_with_less_memory). What that makes is answered, and not kept under the key, whose
// flags it does not have. Then Answer with the error. One whose compiler crashes, or whose worker dies, is tried
// `crash_tries` times; if others ran beside it when the worker died, once more and alone, so that one source that kills
// workers is found out and the others are not blamed. One that was ended by a limit around it (the node, the job) is
// tried again alone; that failure is not remembered.
//
// Admission: a flight starts when a slot is free and the limit it will have (MemoryModel) fits what is left of the
// budget. Clients take turns, first come first served within one; those somebody waits for come before prefetches. A
// flight that does not fit is passed by others that do, but after `ageing` all others wait for it. One that is
// predicted above the whole budget runs alone with all of it: a prediction refuses nothing, OUT_OF_MEMORY is answered
// only after it was seen with the whole budget. Limits that shrink, and memory pressure, stop nothing that runs; with
// nothing running one flight starts always.
//
// Drain: what was accepted before it finishes (queued ones too), look-ups still answer hits, a miss is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "daemon/schedule/features.h"
#include "daemon/schedule/memory_model.h"

namespace jitc::schedule {

using Time = std::chrono::steady_clock::time_point;
using Seconds = std::chrono::duration<double>;
using FlightId = std::uint64_t;
using WaiterId = std::uint64_t;
inline constexpr FlightId kNoFlight = 0;
// Answers to Claim that another node was there before. Nodes that fail to compile it, or an entry that cannot be read,
// must not hold a flight up without end.
inline constexpr std::uint32_t kMostTurnedAway = 2;

struct Limits {
  std::uint32_t slots = 1;              // concurrent compiles
  std::uint64_t budget_bytes = 0;       // for all compiles together; at least 1 MiB
  std::uint64_t spare_bytes = 0;        // beside it, held by what is given up for a compile that has all of both
  std::uint32_t queue_length = 10'000;  // flights waiting to run
  Seconds grace{2};                     // a flight without waiters lives so long
  Seconds failure_memory{30};           // a failure answers the same key for so long
  Seconds ageing{5};              // after so long a flight that does not fit may no longer be passed by small ones
  std::uint32_t crash_tries = 2;  // starts of one flight before a crash is answered
  bool pressure = false;          // memory pressure: start nothing new while something runs
  bool leases = false;            // ask before a start if another node compiles it
};

// What a submit says. `key` decides merging; the rest is the first waiter's.
struct Submission {
  common::Digest key;
  std::string client;            // who shares a turn: the request's job, else the peer's pid
  std::string name;              // for people
  Features features;             // for the memory model
  std::uint64_t held_bytes = 0;  // by the caller until Forget: the texts
  bool prefetch = false;
  bool no_cache = false;     // skip the look-up and remembered failures (still merges with a flight of the same key)
  bool exact_flags = false;  // never compiled with other flags
  bool is_command = false;   // a compiler's command line: no setting shares its source
};

// ---- actions ------------------------------------------------------------------------------------------------------
struct LookUp {
  FlightId flight;
  common::Digest key;
};
struct Claim {  // does another node compile it? Answered by claimed()
  FlightId flight;
  common::Digest key;
};
struct Unclaim {  // it is not about to start any more: what claimed() has called ours is to be given up
  FlightId flight;
};
struct Compile {
  FlightId flight;
  std::uint32_t attempt;      // 1-based
  std::uint64_t limit_bytes;  // hard limit of the child tree
  bool alone;                 // nothing else runs beside it
  std::optional<int> level;   // of optimisation, instead of the request's
};
struct StopCompile {  // the worker must end it; its compile_done is still awaited (and ignored)
  FlightId flight;
};
struct Publish {
  FlightId flight;
  std::string degraded;  // how it was compiled otherwise than asked, and why: not to be kept. Empty: as asked
};
// Ends a waiter. `merged`: it was not the one that created the flight. A remembered failure has kNoFlight.
struct Answer {
  enum class Kind { kHit, kDone, kError };
  FlightId flight;
  WaiterId waiter;
  Kind kind;
  bool merged = false;
  common::Error error;  // kError only
  std::vector<std::string> rungs;
};
struct Forget {  // the flight is over: whatever the caller keeps for it (source, bytes) can go
  FlightId flight;
};
using Action = std::variant<LookUp, Claim, Unclaim, Compile, StopCompile, Publish, Answer, Forget>;
using Actions = std::vector<Action>;

// requests: submits. hits: look-ups that found it. merged: waiters that joined a flight. compiles_started: Compile
// actions. compiles_failed, out_of_memory: flights that ended so. retries: further attempts, of which each rung counts
// its own. degraded: compiles that are done otherwise than asked. cancelled: flights that were ended for want of
// waiters or by cancel(). elsewhere: waits for another node. failures_remembered: requests answered by an
// earlier failure. looked_at: flights of the queue that were asked whether they fit. reserved_bytes: the sum of the
// limits of what runs.
struct Counters {
  std::uint64_t requests = 0, hits = 0, merged = 0, compiles_started = 0, compiles_failed = 0, out_of_memory = 0,
                retries = 0, rung_alone = 0, rung_degraded = 0, rung_crashed = 0, rung_worker_lost = 0, degraded = 0,
                cancelled = 0, elsewhere = 0, refused_queue_full = 0, failures_remembered = 0, looked_at = 0;
  std::uint32_t running = 0, running_peak = 0;
  std::uint64_t reserved_bytes = 0;
};

struct FlightView {
  FlightId flight;
  common::Digest key;
  std::string name, client;
  // kClaiming: it waits for an answer to Claim. kElsewhere: another node compiles it.
  enum class Phase { kLookingUp, kQueued, kClaiming, kElsewhere, kRunning, kPublishing } phase;
  std::uint32_t waiters, place, attempt;  // place: 1-based while queued, else 0
  std::uint64_t bytes_ahead;              // of source text, of the flights before it in the queue
  std::uint64_t predicted_bytes, limit_bytes;
  Time submitted, started;
  std::optional<Time> passed_since;  // queued: it had its turn and did not fit
  std::vector<std::string> rungs;    // what the ladder did so far
};

struct CompileOutcome {
  enum class Kind { kDone, kOutOfMemory, kCrashed, kFailed, kWorkerLost } kind;
  common::Error error;  // all but kDone: what the waiters get if no rung is left
  std::uint64_t peak_bytes = 0;
  Features features;  // corrected by what the parse counted
  // kCrashed, by a limit that is not the compile's own: it says nothing about the source.
  bool outside = false;
};

// kOurs: compile it here; others know of it until Unclaim, StopCompile or Forget. kElsewhere: another node does; a
// kOver follows. kOver: it may be in the store by now, or the other node has ended.
enum class ClaimOutcome { kOurs, kElsewhere, kOver };

class Scheduler {
 public:
  explicit Scheduler(Limits limits);
  ~Scheduler();

  // Events. `waiter` ids are the caller's, never reused.
  Actions submit(Time now, WaiterId waiter, const Submission& submission);
  Actions leave(Time now, WaiterId waiter);  // unknown ids are ignored (a late drop)
  Actions look_up_done(Time now, FlightId flight, bool hit);
  Actions claimed(Time now, FlightId flight, ClaimOutcome outcome);
  Actions compile_done(Time now, FlightId flight, const CompileOutcome& outcome);
  Actions publish_done(Time now, FlightId flight);
  Actions cancel(Time now, FlightId flight);                               // for every waiter
  Actions give_up(Time now, FlightId flight, const common::Error& error);  // likewise, with this answer
  Actions drain(Time now);  // refuses new compiles from now on; look-ups still answer hits
  Actions set_limits(Time now, const Limits& limits);
  Actions tick(Time now);  // graces and remembered failures that ended, ageing
  // What another daemon saw a compile take corrects predictions as if it had been seen here.
  void recall(const Experience& experience);
  // When tick must be called next, if ever.
  std::optional<Time> next_deadline() const;

  bool idle() const;  // no flight at all
  bool draining() const;
  bool alone_runs() const;  // a compile beside which nothing may run
  std::uint32_t queued() const;
  const Counters& counters() const;
  const MemoryModel& memory_model() const;
  // Of a waiter; kNoFlight when it has ended. Costs nothing, as does a flight's phase.
  FlightId flight_of(WaiterId waiter) const;
  std::optional<FlightView::Phase> phase_of(FlightId flight) const;
  // The place of one that is queued is found by numbering the whole queue, once for all until it changes.
  std::optional<FlightView> view(FlightId flight) const;
  std::optional<FlightView> view_of(WaiterId waiter) const;
  std::vector<FlightView> flights() const;  // running first, then the queue in its order

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jitc::schedule
