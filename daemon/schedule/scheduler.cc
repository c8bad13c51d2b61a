#include "daemon/schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "common/text.h"
#include "daemon/schedule/least_memory.h"
#include "daemon/schedule/state.h"

namespace jitc::schedule {
namespace {

using common::Error;
using common::ErrorKind;
using common::mebibytes;
using Phase = FlightView::Phase;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Texts that wait are beside the budget: a part as small as the reserve is, and room for ordinary ones on a full node.
constexpr std::uint64_t kQueueShare = 16, kLeastQueueBytes = 64 * kMiB;

Limits sane(Limits limits) {
  limits.slots = std::max(limits.slots, 1U);
  limits.budget_bytes = std::max(limits.budget_bytes, kMiB);  // a limit of 0 bytes would read as none
  limits.queue_length = std::max(limits.queue_length, 1U);
  limits.crash_tries = std::max(limits.crash_tries, 1U);
  return limits;
}

Error draining_error(const std::string& name) {
  return {.kind = ErrorKind::kDraining,
          .message = "the daemon finishes what it has accepted and takes no new compiles",
          .thing = name,
          .remedy = "ask again when a new daemon has started"};
}

Error cancelled_error(const std::string& name) {
  return {.kind = ErrorKind::kCancelled, .message = "the compile was cancelled", .thing = name};
}

}  // namespace

// ---- waiters --------------------------------------------------------------------------------------------------------

Flight& Scheduler::State::open(Time now, const Submission& submission) {
  const FlightId id = next_id++;
  by_key.emplace(submission.key, id);
  looked_up_bytes += submission.held_bytes;
  return flights.emplace(id, Flight{.id = id, .first = submission, .submitted = now}).first->second;
}

void Scheduler::State::join(Flight& flight, WaiterId waiter, const Submission& submission, bool merged) {
  flight.waiters.push_back({waiter, merged, submission.no_cache});
  by_waiter.emplace(waiter, flight.id);
  revive(flight);
  stand_in_line(flight, {submission.prefetch, submission.client});
}

void Scheduler::State::answer(const Waiter& waiter, FlightId flight, Answer::Kind kind, const Error& error,
                              const std::vector<std::string>& rungs, Actions& actions) {
  by_waiter.erase(waiter.id);
  actions.emplace_back(std::in_place_type<Answer>, flight, waiter.id, kind, waiter.merged, error, rungs);
}

void Scheduler::State::answer_all(Flight& flight, Answer::Kind kind, const Error& error, Actions& actions) {
  for (const Waiter& waiter : flight.waiters) answer(waiter, flight.id, kind, error, flight.rungs, actions);
  flight.waiters.clear();
}

void Scheduler::State::abandon(Time now, Flight& flight) {
  if (flight.phase == Phase::kPublishing) return;  // nothing is left to save
  stop_holding_back(now, flight);
  flight.grace_end = after(now, limits.grace);
  graces.emplace(*flight.grace_end, flight.id);
}

// The queue is worth a look only if it was this one that held the others back.
void Scheduler::State::stop_holding_back(Time now, Flight& flight) {
  if (!flight.passed_since) return;
  if (aged(flight.is_prefetch(), now) == &flight) settled = false;
  passed.erase({*flight.passed_since, flight.id});
}

void Scheduler::State::revive(Flight& flight) {
  if (!flight.grace_end) return;
  graces.erase({*flight.grace_end, flight.id});
  flight.grace_end.reset();
  if (flight.passed_since) passed.emplace(*flight.passed_since, flight.id);
  if (flight.phase == Phase::kQueued) may_start(flight);
}

// A compile that runs keeps its slot and memory until its end is reported; its key is free for a new flight at once.
void Scheduler::State::end_without_waiters(Time now, Flight& flight, Actions& actions) {
  ++counters.cancelled;
  if (flight.grace_end) {
    graces.erase({*flight.grace_end, flight.id});
    flight.grace_end.reset();
  } else {
    stop_holding_back(now, flight);
  }
  by_key.erase(flight.first.key);
  if (flight.phase == Phase::kRunning) {
    flight.stopping = true;
    actions.push_back(StopCompile{flight.id});
    return;
  }
  if (flight.phase == Phase::kQueued) leave_queue(flight);
  forget(flight, actions);
}

void Scheduler::State::forget(Flight& flight, Actions& actions) {
  revive(flight);
  if (!flight.stopping) by_key.erase(flight.first.key);
  if (flight.phase == Phase::kLookingUp) looked_up_bytes -= flight.first.held_bytes;
  if (flight.phase == Phase::kClaiming) give_back(flight);
  if (flight.phase == Phase::kElsewhere) leave_elsewhere(flight);
  actions.push_back(Forget{flight.id});
  flights.erase(flight.id);
}

std::uint64_t Scheduler::State::most_queued_bytes() const {
  return std::max(kLeastQueueBytes, (limits.budget_bytes + limits.spare_bytes) / kQueueShare);
}

// For one there is room always, however large.
bool Scheduler::State::has_room(const Flight& flight) const {
  const std::uint32_t waiting = queued + elsewhere;
  return waiting == 0 || (waiting < limits.queue_length &&
                          queued_bytes + elsewhere_bytes + flight.first.held_bytes <= most_queued_bytes());
}

Error Scheduler::State::queue_full(const Flight& flight) const {
  const double seconds = retry_after_seconds();
  return {.kind = ErrorKind::kRefused,
          .message = "the queue is full: " + std::to_string(queued + elsewhere) + " compiles wait, with " +
                     mebibytes(queued_bytes + elsewhere_bytes + looked_up_bytes - flight.first.held_bytes) +
                     " of sources and headers",
          .thing = flight.first.name,
          .remedy = "ask again in about " + std::to_string(static_cast<int>(seconds)) + " s, or raise " +
                    (queued + elsewhere < limits.queue_length ? "JITC_MEMORY_BUDGET" : "JITC_QUEUE_LENGTH") +
                    " at the daemon",
          .retry_after_seconds = seconds};
}

void Scheduler::State::refuse(Flight& flight, const Error& error, Actions& actions) {
  if (error.kind == ErrorKind::kRefused) ++counters.refused_queue_full;
  answer_all(flight, Answer::Kind::kError, error, actions);
  forget(flight, actions);
}

void Scheduler::State::enqueue_or_refuse(Flight& flight, Actions& actions) {
  if (draining) return refuse(flight, draining_error(flight.first.name), actions);
  if (!has_room(flight)) return refuse(flight, queue_full(flight), actions);
  enqueue(flight, false);
}

// ---- outcomes -------------------------------------------------------------------------------------------------------

// From the features that predictions are made of, so that the correction fits the next prediction. One that ran out of
// memory teaches nothing: the source may be the only one of its kind, and nobody measured what it needs.
void Scheduler::State::learn(const Flight& flight, const CompileOutcome& outcome) {
  if (outcome.kind != CompileOutcome::Kind::kDone || outcome.peak_bytes == 0) return;
  Features features = flight.first.features;
  features.optimisation = flight.features.optimisation;
  model.learn(features, outcome.peak_bytes);
}

// The last rung: none when the flags must stay as they are, or were changed already, or would cost as much.
std::optional<int> Scheduler::State::level_to_lower_to(const Flight& flight) const {
  if (flight.first.exact_flags || !flight.degraded.empty()) return std::nullopt;
  Features lowered = flight.features;
  const std::optional<int> level = level_with_less_memory(lowered.compiler, lowered.optimisation);
  if (!level) return std::nullopt;
  lowered.optimisation = *level;
  return model.predict(lowered) < demand_of(flight).predicted ? level : std::nullopt;
}

bool Scheduler::State::may_retry(const Flight& flight, CompileOutcome::Kind kind) const {
  switch (kind) {
    case CompileOutcome::Kind::kOutOfMemory:
      return !flight.demand.whole_budget || level_to_lower_to(flight);
    case CompileOutcome::Kind::kCrashed:
      return flight.crashes() < limits.crash_tries;
    case CompileOutcome::Kind::kWorkerLost:  // it may have died of another one
      return flight.crashes() < limits.crash_tries || ran_beside_others(flight);
    default:
      return false;
  }
}

void Scheduler::State::retry_for_memory(Flight& flight) {
  const std::string failed = "out of memory at " + mebibytes(flight.demand.limit);
  std::string how = "tried again";
  if (const auto level = flight.demand.whole_budget ? level_to_lower_to(flight) : std::nullopt) {
    ++counters.rung_degraded;
    flight.needed_bytes = 0;  // with those flags
    const int asked = std::exchange(flight.features.optimisation, *level);
    how = "compiled with -O" + std::to_string(*level) + " instead of -O" + std::to_string(asked);
    flight.degraded = how + ": " + failed;
  } else {
    ++counters.rung_alone;
  }
  flight.rungs.push_back(failed + ": " + how + " alone with the whole budget of " + mebibytes(demand_of(flight).limit));
}

// It had its turn: back to the front of its clients' lines.
void Scheduler::State::retry(Flight& flight, const CompileOutcome& outcome, Actions& actions) {
  ++counters.retries;
  if (outcome.kind == CompileOutcome::Kind::kOutOfMemory) {
    retry_for_memory(flight);
  } else if (outcome.kind == CompileOutcome::Kind::kCrashed) {
    ++counters.rung_crashed;
    flight.suspect = outcome.outside;
    flight.rungs.emplace_back(outcome.outside ? outcome.error.message + ": tried alone"
                                              : "the compiler crashed: tried again");
  } else {
    ++counters.rung_worker_lost;
    flight.suspect = flight.crashes() >= limits.crash_tries;
    flight.rungs.emplace_back(flight.suspect ? "the worker was lost again: tried alone"
                                             : "the worker was lost: tried again");
  }
  if (limits.leases) actions.push_back(Unclaim{flight.id});
  enqueue(flight, true);
}

void Scheduler::State::fail(Time now, Flight& flight, Error error, bool lasting, Actions& actions) {
  ++counters.compiles_failed;
  if (error.kind == ErrorKind::kOutOfMemory) ++counters.out_of_memory;
  answer_all(flight, Answer::Kind::kError, error, actions);
  if (lasting && FailureMemory::is_lasting(error.kind)) {
    failures.remember(flight.first.key, {std::move(error), flight.rungs}, after(now, limits.failure_memory));
  }
  forget(flight, actions);
}

Error Scheduler::State::final_error(const Flight& flight, const CompileOutcome& outcome) const {
  Error error = outcome.error;
  const bool out_of_memory = outcome.kind == CompileOutcome::Kind::kOutOfMemory;
  error.tries = out_of_memory ? flight.out_of_memory : flight.attempt;
  if (error.thing.empty()) error.thing = flight.first.name;
  if (outcome.kind == CompileOutcome::Kind::kCrashed) error.kind = ErrorKind::kCompilerCrashed;
  if (error.message.empty()) {
    error.message = outcome.kind == CompileOutcome::Kind::kWorkerLost ? "the worker was lost" : "the compiler failed";
  }
  if (outcome.outside && error.remedy.empty()) {
    error.remedy = "let less run on the node, lower JITC_MEMORY_BUDGET or JITC_MAX_COMPILERS, or raise that limit";
  }
  if (!out_of_memory) return error;
  error.kind = ErrorKind::kOutOfMemory;
  error.needed_bytes = std::max(flight.needed_bytes, flight.demand.predicted);
  error.budget_bytes = flight.demand.limit;  // all that there was
  error.message =
      "the compiler ran out of memory " +
      (error.tries > 1 ? "in " + std::to_string(error.tries) + " tries, the last" : std::string("in 1 try,")) +
      " with the whole budget of " + mebibytes(error.budget_bytes);
  error.remedy.clear();
  if (!flight.first.is_command) error.remedy = "share the repeated expressions of the source (JITC_SHARE=1), ";
  if (const auto level = level_with_less_memory(flight.features.compiler, flight.features.optimisation))
    error.remedy += "compile it with -O" + std::to_string(*level) + ", ";
  if (!error.remedy.empty()) error.remedy += "or ";
  error.remedy += "give compiles more memory (JITC_MEMORY_BUDGET; `jitc status` says what bounds it)";
  return error;
}

FlightView Scheduler::State::view(const Flight& flight) const {
  const bool waits = flight.phase == Phase::kQueued;
  const bool has_started = flight.phase == Phase::kClaiming || (flight.attempt > 0 && !waits);
  const Demand demand = has_started ? flight.demand : demand_of(flight);
  return {.flight = flight.id,
          .key = flight.first.key,
          .name = flight.first.name,
          .client = flight.first.client,
          .phase = flight.phase,
          .waiters = static_cast<std::uint32_t>(flight.waiters.size()),
          .place = waits ? flight.place : 0,
          .attempt = flight.attempt,
          .bytes_ahead = waits ? flight.bytes_ahead : 0,
          .predicted_bytes = demand.predicted,
          .limit_bytes = demand.limit,
          .submitted = flight.submitted,
          .started = flight.started,
          .passed_since = flight.passed_since,
          .rungs = flight.rungs};
}

// ---- events ---------------------------------------------------------------------------------------------------------

Scheduler::Scheduler(Limits limits) : state_(std::make_unique<State>()) { state_->limits = sane(limits); }
Scheduler::~Scheduler() = default;

Actions Scheduler::submit(Time now, WaiterId waiter, const Submission& submission) {
  Actions actions;
  ++state_->counters.requests;
  if (const auto found = state_->by_key.find(submission.key); found != state_->by_key.end()) {
    ++state_->counters.merged;
    state_->join(state_->flights.at(found->second), waiter, submission, true);
    state_->admit(now, actions);  // it may have stood in the queue with nobody waiting
    return actions;
  }
  const FailureMemory::Failure* failure = state_->failures.find(submission.key, now);
  if (failure && !submission.no_cache) {
    ++state_->counters.failures_remembered;
    actions.emplace_back(std::in_place_type<Answer>, kNoFlight, waiter, Answer::Kind::kError, false, failure->error,
                         failure->rungs);
    return actions;
  }
  Flight& flight = state_->open(now, submission);
  state_->join(flight, waiter, submission, false);
  // A store that hangs must not gather texts without end.
  const std::uint64_t looked_up = state_->looked_up_bytes;
  if (looked_up > submission.held_bytes && looked_up > state_->most_queued_bytes()) {
    state_->refuse(flight, state_->queue_full(flight), actions);
    return actions;
  }
  if (!submission.no_cache) {
    actions.push_back(LookUp{flight.id, submission.key});
    return actions;
  }
  state_->enqueue_or_refuse(flight, actions);
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::leave(Time now, WaiterId waiter) {
  const auto found = state_->by_waiter.find(waiter);
  if (found == state_->by_waiter.end()) return {};
  Flight& flight = state_->flights.at(found->second);
  state_->by_waiter.erase(found);
  std::erase_if(flight.waiters, [waiter](const Waiter& other) { return other.id == waiter; });
  Actions actions;
  if (!flight.waiters.empty()) return actions;
  state_->abandon(now, flight);
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::look_up_done(Time now, FlightId id, bool hit) {
  Actions actions;
  Flight* flight = state_->find(id, Phase::kLookingUp);
  if (!flight) return actions;
  if (hit) {
    ++state_->counters.hits;
    for (const Waiter& waiter : flight->waiters) {
      if (!waiter.no_cache) state_->answer(waiter, id, Answer::Kind::kHit, {}, {}, actions);
    }
    std::erase_if(flight->waiters, [](const Waiter& waiter) { return !waiter.no_cache; });
    if (flight->waiters.empty()) {
      state_->forget(*flight, actions);
      return actions;
    }
  }
  if (flight->turned_away > 0) {
    state_->enqueue(*flight, true);  // it was accepted, and had its turn
  } else {
    state_->enqueue_or_refuse(*flight, actions);
  }
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::compile_done(Time now, FlightId id, const CompileOutcome& outcome) {
  Actions actions;
  Flight* flight = state_->find(id, Phase::kRunning);
  if (!flight) return actions;
  state_->release(now, *flight);
  if (flight->stopping) {
    state_->forget(*flight, actions);
  } else {
    state_->learn(*flight, outcome);
    if (outcome.kind == CompileOutcome::Kind::kOutOfMemory) {
      ++flight->out_of_memory;
      flight->needed_bytes = std::max({flight->needed_bytes, flight->demand.limit, outcome.peak_bytes});
    }
    if (outcome.features.bytes > 0) {
      const int level = flight->features.optimisation;
      flight->features = outcome.features;
      flight->features.optimisation = level;
    }
    if (outcome.kind == CompileOutcome::Kind::kDone) {
      state_->revive(*flight);  // worth keeping, whoever waits
      flight->phase = Phase::kPublishing;
      state_->counters.degraded += flight->degraded.empty() ? 0 : 1;
      actions.push_back(Publish{id, flight->degraded});
    } else if (state_->may_retry(*flight, outcome.kind)) {
      state_->retry(*flight, outcome, actions);
    } else {
      const bool lasting = !outcome.outside;
      state_->fail(now, *flight, state_->final_error(*flight, outcome), lasting, actions);
    }
  }
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::publish_done(Time, FlightId id) {
  Actions actions;
  Flight* flight = state_->find(id, Phase::kPublishing);
  if (!flight) return actions;
  state_->failures.forget(flight->first.key);
  state_->answer_all(*flight, Answer::Kind::kDone, {}, actions);
  state_->forget(*flight, actions);
  return actions;
}

Actions Scheduler::cancel(Time now, FlightId id) {
  const auto found = state_->flights.find(id);
  return found == state_->flights.end() ? Actions{} : give_up(now, id, cancelled_error(found->second.first.name));
}

Actions Scheduler::give_up(Time now, FlightId id, const Error& error) {
  Actions actions;
  const auto found = state_->flights.find(id);
  if (found == state_->flights.end() || found->second.stopping) return actions;
  Flight& flight = found->second;
  state_->answer_all(flight, Answer::Kind::kError, error, actions);
  if (flight.phase == Phase::kPublishing) return actions;  // it is made: others will find it
  state_->end_without_waiters(now, flight, actions);
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::drain(Time) {
  state_->draining = true;
  return {};
}

Actions Scheduler::set_limits(Time now, const Limits& limits) {
  Actions actions;
  state_->limits = sane(limits);
  state_->settled = false;
  state_->admit(now, actions);
  return actions;
}

Actions Scheduler::tick(Time now) {
  Actions actions;
  while (!state_->graces.empty() && state_->graces.begin()->first <= now) {
    state_->end_without_waiters(now, state_->flights.at(state_->graces.begin()->second), actions);
  }
  state_->failures.expire(now);
  state_->admit(now, actions);
  return actions;
}

std::optional<Time> Scheduler::next_deadline() const {
  std::optional<Time> next = state_->failures.next_end();
  if (!state_->graces.empty()) {
    const Time grace = state_->graces.begin()->first;
    next = next ? std::min(*next, grace) : grace;
  }
  return next;
}

// ---- views ----------------------------------------------------------------------------------------------------------

bool Scheduler::idle() const { return state_->flights.empty(); }
bool Scheduler::draining() const { return state_->draining; }
bool Scheduler::alone_runs() const { return state_->alone_runs; }
std::uint32_t Scheduler::queued() const { return state_->queued; }
const Counters& Scheduler::counters() const { return state_->counters; }
const MemoryModel& Scheduler::memory_model() const { return state_->model; }

FlightId Scheduler::flight_of(WaiterId waiter) const {
  const auto found = state_->by_waiter.find(waiter);
  return found == state_->by_waiter.end() ? kNoFlight : found->second;
}

std::optional<FlightView::Phase> Scheduler::phase_of(FlightId id) const {
  const auto found = state_->flights.find(id);
  return found == state_->flights.end() ? std::nullopt : std::optional(found->second.phase);
}

std::optional<FlightView> Scheduler::view(FlightId id) const {
  const auto found = state_->flights.find(id);
  if (found == state_->flights.end()) return std::nullopt;
  if (found->second.phase == Phase::kQueued) state_->number();
  return state_->view(found->second);
}

std::optional<FlightView> Scheduler::view_of(WaiterId waiter) const { return view(flight_of(waiter)); }

std::vector<FlightView> Scheduler::flights() const {
  state_->number();
  std::vector<FlightView> views;
  for (const auto& [id, flight] : state_->flights) {
    if (flight.phase != Phase::kQueued) views.push_back(state_->view(flight));
  }
  std::ranges::sort(views, {},
                    [](const FlightView& view) { return std::pair(view.phase != Phase::kRunning, view.flight); });
  for (const FlightId id : state_->order()) views.push_back(state_->view(state_->flights.at(id)));
  return views;
}

}  // namespace jitc::schedule
