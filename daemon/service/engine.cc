#include "daemon/service/engine.h"

#include "daemon/service/flight_terms.h"

namespace jitc::service {
namespace {

using common::Error;
using common::ErrorKind;
using schedule::FlightView;
using Clock = std::chrono::steady_clock;
using Stage = observe::TraceSpan::Kind;

constexpr std::chrono::milliseconds kBeat{500};  // the contract promises one a second
constexpr std::uint32_t kShortQueue = 256;  // so many may be numbered whenever one comes; a longer one at each beat

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Error silent_store_error(const std::string& name) {
  return {ErrorKind::kTimedOut, "the daemon waits for the store, which does not answer", name,
          "is a file system hung? 'jitc config' shows where the store is"};
}

}  // namespace

Engine::Engine(asio::io_context& state, asio::thread_pool& io, Artifacts& artifacts, WorkerLink& worker,
               EngineOptions options)
    : state_(state),
      io_(io),
      artifacts_(artifacts),
      worker_(worker),
      options_(std::move(options)),
      limits_(options_.limits),
      scheduler_(limits_),
      claims_(state, artifacts.leases(),
              [this](FlightId flight, schedule::ClaimOutcome outcome) { claimed(flight, outcome); }, {}),
      passed_(options_.passed_file, options_.cpu),
      budget_(limits_.budget_bytes),
      deadline_(state),
      beat_(state) {}

// ---- waiters -------------------------------------------------------------------------------------------------------

schedule::WaiterId Engine::submit(std::shared_ptr<Waiter> waiter, std::shared_ptr<const Prepared> prepared,
                                  const std::string& client) {
  const WaiterId id = next_waiter_++;
  last_used_ = Clock::now();
  if (closed_) {
    waiter->finished(std::unexpected(*closed_));
    return id;
  }
  const auto submission = submission_of(*prepared, client);
  if (prepared->command) ++(prepared->command->by_caller ? commands_.passed : commands_.requests);
  auto actions = scheduler_.submit(Clock::now(), id, submission);
  const FlightId flight = scheduler_.flight_of(id);
  trace_submission(submission, flight);
  if (flight == schedule::kNoFlight) trace_refusals(actions, subject_of(submission));
  waiter->accepted(prepared->resolved.key, flight);
  waiters_[id] = {waiter, flight, submission.key};
  if (flight != schedule::kNoFlight) {
    Flight& data = flights_[flight];
    data.wants_capsule = data.wants_capsule || !prepared->request.no_capsule;
    if (prepared->canary && options_.canary) data.canary = prepared->canary;
    if (!data.prepared) data.prepared = std::move(prepared);
    data.waiters.insert(id);
    if (data.attempt > 0 && scheduler_.phase_of(flight) == FlightView::Phase::kRunning) {
      if (const auto view = scheduler_.view(flight)) waiter->started(view->attempt, view->limit_bytes);
    }
    tell_place(flight, *waiter);
  }
  carry_out(std::move(actions));
  arm_beat();
  return id;
}

void Engine::leave(WaiterId id) {
  const auto entry = waiters_.find(id);
  if (entry == waiters_.end()) return;  // it was answered meanwhile
  const FlightId flight = entry->second.flight;
  const auto left = flights_.find(flight);
  if (left != flights_.end()) left->second.waiters.erase(id);
  waiters_.erase(entry);
  last_used_ = Clock::now();
  if (left != flights_.end() && left->second.in_caller) return end_turn(flight);
  carry_out(scheduler_.leave(Clock::now(), id));
}

bool Engine::cancel(FlightId flight) {
  const bool found = flights_.contains(flight);
  carry_out(scheduler_.cancel(Clock::now(), flight));
  return found;
}

DrainView Engine::drain(std::function<void()> drained) {
  drained_ = std::move(drained);
  DrainView view;
  for (const auto& flight : scheduler_.flights()) {
    const bool waits = flight.phase == FlightView::Phase::kQueued || flight.phase == FlightView::Phase::kElsewhere;
    ++(waits ? view.queued : view.running);
  }
  carry_out(scheduler_.drain(Clock::now()));
  return view;
}

void Engine::close(const Error& error) {
  closed_ = error;
  auto waiters = std::exchange(waiters_, {});
  for (auto& [id, waiting] : waiters) waiting.waiter->finished(std::unexpected(error));
  flights_.clear();
  jobs_.clear();
  held_back_.clear();
  held_checks_.clear();
  claims_.end();
  held_answers_.clear();
}

// ---- actions -------------------------------------------------------------------------------------------------------

// No action calls back into the scheduler before this returns: results come as later events.
void Engine::carry_out(schedule::Actions actions) {
  for (auto& action : actions) std::visit([this](auto& one) { run(one); }, action);
  arm_deadline();
  if (drained_ && idle()) asio::post(state_, std::exchange(drained_, nullptr));
}

void Engine::run(schedule::LookUp& action) {
  if (const auto entry = flights_.find(action.flight); entry != flights_.end())
    entry->second.at_the_store = Clock::now();
  asio::post(io_, [this, flight = action.flight, key = action.key] {
    asio::post(state_, [this, flight, product = artifacts_.look_up(key)] { looked_up(flight, product); });
  });
}

void Engine::looked_up(FlightId id, std::shared_ptr<const Product> product) {
  store_answered_ = Clock::now();
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  const bool hit = product != nullptr;
  entry->second.at_the_store.reset();
  entry->second.product = std::move(product);
  if (!hit || !begins_check(id)) look_up_ended(id);
}

// With its product, or without one.
void Engine::look_up_ended(FlightId id) {
  const auto entry = flights_.find(id);
  const bool hit = entry->second.product != nullptr;
  auto actions = scheduler_.look_up_done(Clock::now(), id, hit);
  trace_.leave(Clock::now(), id, Stage::kLookUp, hit ? "HIT" : "MISS");
  if (scheduler_.phase_of(id)) {
    trace_.enter(Clock::now(), id, Stage::kQueued);
  } else {
    trace_refusals(actions, subject_of(submission_of(*entry->second.prepared, {})));
  }
  carry_out(std::move(actions));
  tell_place(id);
}

// A flight that could not start at once stands in the queue: its waiters hear where, in a long queue with the next
// beat.
void Engine::tell_place(FlightId flight, Waiter& waiter) {
  if (scheduler_.phase_of(flight) != FlightView::Phase::kQueued || scheduler_.queued() > kShortQueue) return;
  if (const auto view = scheduler_.view(flight)) waiter.queued(view->place, view->bytes_ahead);
}

void Engine::tell_place(FlightId id) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  for (const WaiterId waiter : entry->second.waiters) tell_place(id, *waiters_.at(waiter).waiter);
}

void Engine::run(schedule::Answer& action) {
  const auto entry = waiters_.find(action.waiter);
  if (entry == waiters_.end()) return;
  const auto waiter = std::move(entry->second.waiter);
  const common::Digest key = entry->second.key;
  const auto flight = flights_.find(action.flight);
  if (flight != flights_.end()) flight->second.waiters.erase(action.waiter);
  waiters_.erase(entry);
  last_used_ = Clock::now();
  if (action.kind == schedule::Answer::Kind::kError) {
    action.error.rungs = std::move(action.rungs);
    name_capsule(key, action.error);
    return waiter->finished(std::unexpected(std::move(action.error)));
  }
  if (flight == flights_.end() || !flight->second.product) {
    return waiter->finished(common::fail(ErrorKind::kInternal, "an answer without an artifact", "daemon"));
  }
  const bool hit = action.kind == schedule::Answer::Kind::kHit;
  if (hit && flight->second.prepared->command) ++commands_.hits;
  waiter->finished(Delivery{flight->second.product, hit, action.merged, std::move(action.rungs)});
}

void Engine::run(schedule::Forget& action) {
  trace_.forget(Clock::now(), action.flight);
  claims_.drop(action.flight);
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;
  if (entry->second.job != 0) jobs_.erase(entry->second.job);
  flights_.erase(entry);
  if (!held_checks_.empty()) asio::post(state_, [this] { start_held_checks(); });
}

// ---- time ----------------------------------------------------------------------------------------------------------

void Engine::arm_deadline() {
  const auto next = scheduler_.next_deadline();
  if (next == armed_) return;
  armed_ = next;
  if (!next) {
    deadline_.cancel();
    return;
  }
  deadline_.expires_at(*next);
  deadline_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    armed_.reset();
    carry_out(scheduler_.tick(Clock::now()));
  });
}

void Engine::arm_beat() {
  if (beating_ || waiters_.empty()) return;
  beating_ = true;
  beat_.expires_after(kBeat);
  beat_.async_wait([this](const boost::system::error_code& error) {
    beating_ = false;
    if (error) return;
    beat();
    arm_beat();
  });
}

// Waits for a file system that hangs have no end of their own. A long line of waits has one: while others come back
// from the store, this one is not given up.
bool Engine::is_store_silent(const Flight& flight) const {
  if (!flight.at_the_store || options_.store_patience.count() == 0) return false;
  return Clock::now() - std::max(*flight.at_the_store, store_answered_) > options_.store_patience;
}

void Engine::beat() {
  for (const FlightView& view : scheduler_.flights()) {
    const auto entry = flights_.find(view.flight);
    if (entry == flights_.end()) continue;
    if (is_store_silent(entry->second)) {
      carry_out(scheduler_.give_up(Clock::now(), view.flight, silent_store_error(view.name)));
      continue;
    }
    const bool running = view.phase == FlightView::Phase::kRunning;
    const Beat beat{running ? seconds_since(view.started) : 0, entry->second.memory_bytes, view.place, view.bytes_ahead,
                    view.phase == FlightView::Phase::kElsewhere};
    for (const WaiterId waiter : entry->second.waiters) waiters_.at(waiter).waiter->beat(beat);
  }
}

std::vector<JobView> Engine::jobs() const {
  std::vector<JobView> jobs;
  for (const FlightView& view : scheduler_.flights()) {
    JobView job;
    job.flight = view.flight;
    job.key = view.key;
    job.name = view.name;
    job.client = view.client;
    job.phase = name_of(view.phase);
    job.waiters = view.waiters;
    job.place = view.place;
    job.attempt = view.attempt;
    job.elapsed_seconds = view.phase == FlightView::Phase::kRunning ? seconds_since(view.started) : 0;
    job.waiting_seconds = seconds_since(view.submitted);
    job.predicted_bytes = view.predicted_bytes;
    job.limit_bytes = view.limit_bytes;
    if (const auto entry = flights_.find(view.flight); entry != flights_.end()) {
      job.memory_bytes = entry->second.memory_bytes;
      job.compiler = entry->second.prepared->request.compiler;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// ---- the trace -----------------------------------------------------------------------------------------------------

// `flight` is the one that the submission is in now; kNoFlight when it was answered at once.
void Engine::trace_submission(const schedule::Submission& submission, FlightId flight) {
  if (flight == schedule::kNoFlight || flights_.contains(flight)) return;  // answered at once, or it joined
  trace_.begin(flight, subject_of(submission));
  trace_.enter(Clock::now(), flight, submission.no_cache ? Stage::kQueued : Stage::kLookUp);
}

// Of a flight that never stood in the queue, or of none.
void Engine::trace_refusals(const schedule::Actions& actions, const observe::TraceSubject& subject) {
  for (const auto& action : actions) {
    const auto* answer = std::get_if<schedule::Answer>(&action);
    if (answer == nullptr || answer->kind != schedule::Answer::Kind::kError) continue;
    trace_.instant(Clock::now(), Stage::kAnswered, subject, common::name_of(answer->error.kind));
  }
}

void Engine::trace_hit(const common::Digest& key) {
  trace_.instant(Clock::now(), Stage::kLookUp, {.name = key.hex(), .client = {}, .compiler = {}}, "HIT");
}

}  // namespace jitc::service
