#include "daemon/service/engine.h"

#include <algorithm>

#include "daemon/observe/log.h"
#include "daemon/service/flight_terms.h"
#include "daemon/service/marshal.h"

namespace jitc::service {
namespace {

using common::Error;
using common::ErrorKind;
using schedule::CompileOutcome;
using schedule::FlightView;
using Clock = std::chrono::steady_clock;
using Stage = observe::TraceSpan::Kind;

constexpr std::chrono::milliseconds kBeat{500};  // the contract promises one a second
constexpr std::chrono::seconds kSparesLive{60};  // without a compile
constexpr std::uint32_t kMostSpares = 4;
constexpr std::uint64_t kSpareBytes = std::uint64_t{56} << 20;  // as measured; they may take a quarter of the budget
constexpr std::uint32_t kShortQueue = 256;  // so many may be numbered whenever one comes; a longer one at each beat
constexpr std::uint64_t kNoticeable = std::uint64_t{1} << 20;  // changes of the budget below this are noise

constexpr std::string_view kDone = "DONE", kDegraded = "DEGRADED";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Error worker_lost_error() {
  return {ErrorKind::kCompilerCrashed, "the worker died while it compiled this", {}, "see the daemon's log; ask again"};
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
      budget_(limits_.budget_bytes),
      deadline_(state),
      beat_(state) {}

// ---- waiters ------------------------------------------------------------------------------------------------------

schedule::WaiterId Engine::submit(std::shared_ptr<Waiter> waiter, std::shared_ptr<const Prepared> prepared,
                                  const std::string& client) {
  const WaiterId id = next_waiter_++;
  last_used_ = Clock::now();
  if (closed_) {
    waiter->finished(std::unexpected(*closed_));
    return id;
  }
  const auto submission = submission_of(*prepared, client);
  auto actions = scheduler_.submit(Clock::now(), id, submission);
  const FlightId flight = scheduler_.flight_of(id);
  trace_submission(submission, flight);
  if (flight == schedule::kNoFlight) trace_refusals(actions, subject_of(submission));
  waiter->accepted(prepared->resolved.key, flight);
  waiters_[id] = {waiter, flight};
  if (flight != schedule::kNoFlight) {
    Flight& data = flights_[flight];
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
  if (const auto flight = flights_.find(entry->second.flight); flight != flights_.end())
    flight->second.waiters.erase(id);
  waiters_.erase(entry);
  last_used_ = Clock::now();
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
    ++(flight.phase == FlightView::Phase::kQueued ? view.queued : view.running);
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
}

// ---- actions ------------------------------------------------------------------------------------------------------

// No action calls back into the scheduler before this returns: results come as later events.
void Engine::carry_out(schedule::Actions actions) {
  for (auto& action : actions) std::visit([this](auto& one) { run(one); }, action);
  arm_deadline();
  if (drained_ && idle()) asio::post(state_, std::exchange(drained_, nullptr));
}

void Engine::run(schedule::LookUp& action) {
  asio::post(io_, [this, flight = action.flight, key = action.key] {
    asio::post(state_, [this, flight, product = artifacts_.look_up(key)] { looked_up(flight, product); });
  });
}

void Engine::looked_up(FlightId id, std::shared_ptr<const Product> product) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  const bool hit = product != nullptr;
  entry->second.product = std::move(product);
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

void Engine::run(schedule::Compile& action) {
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;
  entry->second.attempt = action.attempt;
  entry->second.is_lowered = action.level.has_value();
  if (action.attempt > 1) tell_log(action.flight);
  trace_.enter(Clock::now(), action.flight, Stage::kRunning, action.attempt, action.limit_bytes);
  for (const WaiterId waiter : entry->second.waiters) {
    waiters_.at(waiter).waiter->started(action.attempt, action.limit_bytes);
  }
  if (can_start()) return start_compile(action);
  if (worker_.hopeless()) return fail_later(action.flight, {ErrorKind::kInternal, "the worker dies at every start"});
  held_back_.push_back(action);
}

void Engine::tell_log(FlightId flight) {
  const auto view = scheduler_.view(flight);
  if (!view || view->rungs.empty()) return;
  observe::log_warning("compile tried again", {{"flight", std::to_string(flight)},
                                               {"name", view->name},
                                               {"attempt", std::to_string(view->attempt)},
                                               {"why", view->rungs.back()}});
}

void Engine::start_held_back() {
  while (!held_back_.empty() && can_start()) {
    const auto compile = held_back_.front();
    held_back_.pop_front();
    if (flights_.contains(compile.flight)) start_compile(compile);
  }
}

void Engine::start_compile(const schedule::Compile& action) {
  Flight& flight = flights_.at(action.flight);
  const Prepared& prepared = *flight.prepared;
  auto source = common::sealed_memfd("jitc-source", prepared.request.text(), false);
  if (!source) return fail_later(action.flight, source.error());
  common::Fd headers;
  if (!prepared.request.headers.empty()) {
    auto memory = common::sealed_memfd("jitc-headers", headers_payload(prepared), false);
    if (!memory) return fail_later(action.flight, memory.error());
    headers = std::move(*memory);
  }
  flight.job = next_job_++;
  jobs_[flight.job] = action.flight;
  last_compile_ = Clock::now();
  if (action.alone) keep_spares();  // gives them up: their memory is part of its limit
  worker_.send(start_command(prepared, {flight.job, action.limit_bytes, options_.cpu_seconds, options_.include_roots,
                                        action.level}),
               std::move(*source), std::move(headers));
  keep_spares();
}

void Engine::run(schedule::StopCompile& action) {
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;
  if (entry->second.job != 0) return worker_.send(cancel_command(entry->second.job));
  // It never reached the worker.
  if (std::erase_if(held_back_, [&](const auto& compile) { return compile.flight == action.flight; }) > 0) {
    fail_later(action.flight, {ErrorKind::kCancelled, "cancelled before it started"});
  }
}

void Engine::run(schedule::Publish& action) {
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end() || !entry->second.compiled) return;
  const auto view = scheduler_.view(action.flight);
  CompileFacts facts{entry->second.attempt, view ? view->predicted_bytes : 0,
                     view ? view->rungs : std::vector<std::string>{}, action.degraded};
  auto compiled = std::make_shared<WorkerFinished>(std::move(*entry->second.compiled));
  entry->second.compiled.reset();
  ++publishing_;
  trace_.enter(Clock::now(), action.flight, Stage::kPublishing);
  const auto prepared = entry->second.prepared;
  options_.confirm(prepared, [this, flight = action.flight, prepared, compiled, facts](bool is_current) mutable {
    facts.outdated = !is_current;
    asio::post(io_, [this, flight, prepared, compiled, facts = std::move(facts)] {
      const auto product = artifacts_.publish(*prepared, *compiled, facts);
      compiled->object.reset();
      asio::post(state_, [this, flight, product] { published(flight, product); });
      if (product) artifacts_.settle(*product);  // after the reply is on its way
    });
  });
}

void Engine::published(FlightId id, std::shared_ptr<const Product> product) {
  --publishing_;
  start_held_back();
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  entry->second.product = std::move(product);
  trace_.leave(Clock::now(), id, Stage::kPublishing, {});
  carry_out(scheduler_.publish_done(Clock::now(), id));
}

void Engine::run(schedule::Answer& action) {
  const auto entry = waiters_.find(action.waiter);
  if (entry == waiters_.end()) return;
  const auto waiter = std::move(entry->second.waiter);
  const auto flight = flights_.find(action.flight);
  if (flight != flights_.end()) flight->second.waiters.erase(action.waiter);
  waiters_.erase(entry);
  last_used_ = Clock::now();
  if (action.kind == schedule::Answer::Kind::kError) {
    action.error.rungs = std::move(action.rungs);
    return waiter->finished(std::unexpected(std::move(action.error)));
  }
  if (flight == flights_.end() || !flight->second.product) {
    return waiter->finished(common::fail(ErrorKind::kInternal, "an answer without an artifact", "daemon"));
  }
  const bool hit = action.kind == schedule::Answer::Kind::kHit;
  waiter->finished(Delivery{flight->second.product, hit, action.merged, std::move(action.rungs)});
}

void Engine::run(schedule::Forget& action) {
  trace_.forget(Clock::now(), action.flight);
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;
  if (entry->second.job != 0) jobs_.erase(entry->second.job);
  flights_.erase(entry);
}

// ---- the worker ---------------------------------------------------------------------------------------------------

void Engine::on_report(WorkerEvent event) {
  std::visit([this](auto& one) { on(one); }, event);
}

void Engine::on(WorkerUsage& usage) {
  std::uint64_t sum = usage.spare_bytes;
  for (const auto& [job, bytes] : usage.jobs) {
    sum += bytes;
    const auto entry = jobs_.find(job);
    if (entry == jobs_.end()) continue;
    if (const auto flight = flights_.find(entry->second); flight != flights_.end()) flight->second.memory_bytes = bytes;
  }
  memory_now_ = sum;
  memory_peak_ = std::max(memory_peak_, sum);
  spare_bytes_ = usage.spare_bytes;
  holdings_ = {usage.processes, usage.anonymous_bytes};
  trace_memory();
  apply_limits(false);
}

void Engine::on(WorkerFinished& finished) {
  const auto job = jobs_.find(finished.job);
  if (job == jobs_.end()) return;  // of a flight that was forgotten
  const FlightId id = job->second;
  jobs_.erase(job);
  Flight& flight = flights_.at(id);
  flight.job = 0;
  flight.memory_bytes = 0;
  memory_peak_ = std::max(memory_peak_, finished.peak_bytes);
  const CompileOutcome outcome = outcome_of(finished, *flight.prepared);
  observe::log_info("compile ended", {{"flight", std::to_string(id)},
                                      {"name", flight.prepared->request.name},
                                      {"outcome", finished.outcome == WorkerFinished::Outcome::kDone
                                                      ? std::string(kDone)
                                                      : std::string(common::name_of(finished.error.kind))},
                                      {"seconds", std::to_string(finished.seconds)},
                                      {"peak_bytes", std::to_string(finished.peak_bytes)}});
  if (finished.outcome == WorkerFinished::Outcome::kOutOfMemory) {
    observe::log_info("out of memory", {{"flight", std::to_string(id)}, {"proof", finished.error.message}});
  }
  flight.compiled = std::move(finished);
  record_prediction(id, outcome);
  compile_ended(id, outcome);
  start_held_back();
}

// Of first tries: further ones are predicted by what the first one met. One that ran out of memory needs its limit at
// least.
void Engine::record_prediction(FlightId id, const CompileOutcome& outcome) {
  const auto view = scheduler_.view(id);
  if (!view || view->phase != FlightView::Phase::kRunning || view->attempt != 1) return;
  if (outcome.kind == CompileOutcome::Kind::kDone) {
    prediction_error_.record(view->predicted_bytes, outcome.peak_bytes);
  } else if (outcome.kind == CompileOutcome::Kind::kOutOfMemory) {
    prediction_error_.record(view->predicted_bytes, std::max(outcome.peak_bytes, view->limit_bytes));
  }
}

void Engine::recall(const std::vector<schedule::Experience>& experience) {
  for (const auto& one : experience) scheduler_.recall(one);
  recalled_ += experience.size();
}

void Engine::compile_ended(FlightId id, const CompileOutcome& outcome) {
  const auto entry = flights_.find(id);
  const std::string_view as_what = entry != flights_.end() && entry->second.is_lowered ? kDegraded : kDone;
  auto actions = scheduler_.compile_done(Clock::now(), id, outcome);
  const bool done = outcome.kind == CompileOutcome::Kind::kDone;
  trace_.leave(Clock::now(), id, Stage::kRunning, done ? as_what : common::name_of(outcome.error.kind),
               outcome.peak_bytes);
  if (!done && scheduler_.phase_of(id)) trace_.enter(Clock::now(), id, Stage::kQueued);
  carry_out(std::move(actions));
  tell_place(id);  // queued again, when a try is left
}

void Engine::fail_later(FlightId flight, Error error) {
  asio::post(state_, [this, flight, error = std::move(error)] {
    compile_ended(flight, failed_outcome(CompileOutcome::Kind::kFailed, error));
  });
}

void Engine::on_worker_lost() {
  memory_now_ = spare_bytes_ = 0;
  holdings_ = {};
  trace_memory();
  for (const auto& [job, id] : std::exchange(jobs_, {})) {
    if (const auto flight = flights_.find(id); flight != flights_.end()) flight->second.job = 0;
    compile_ended(id, failed_outcome(CompileOutcome::Kind::kWorkerLost, worker_lost_error()));
  }
  if (!worker_.hopeless()) return;
  for (const auto& compile : std::exchange(held_back_, {})) {
    fail_later(compile.flight, {ErrorKind::kInternal, "the worker dies at every start", {}, "see the daemon's log"});
  }
}

void Engine::on_worker_ready() {
  spares_wanted_ = 0;
  keep_spares();
  start_held_back();
}

// ---- limits and time ----------------------------------------------------------------------------------------------

void Engine::set_machine_limits(std::uint32_t slots, std::uint64_t budget_bytes, bool pressure) {
  budget_ = budget_bytes;
  const bool changed = slots != limits_.slots || pressure != limits_.pressure;
  limits_.slots = slots;
  limits_.pressure = pressure;
  trace_memory();
  keep_spares();
  apply_limits(changed);
}

// What the spares hold is not there for compiles.
void Engine::apply_limits(bool at_once) {
  const std::uint64_t compiles = budget_ - std::min(budget_, spare_bytes_);
  const std::uint64_t difference = std::max(compiles, limits_.budget_bytes) - std::min(compiles, limits_.budget_bytes);
  if (!at_once && difference < kNoticeable) return;
  limits_.budget_bytes = compiles;
  limits_.spare_bytes = budget_ - compiles;
  carry_out(scheduler_.set_limits(Clock::now(), limits_));
}

// Spares while somebody compiles now and then and memory is not short.
void Engine::keep_spares() {
  const bool wanted = !limits_.pressure && !scheduler_.alone_runs() && Clock::now() - last_compile_ < kSparesLive;
  const auto affordable = static_cast<std::uint32_t>(std::min<std::uint64_t>(budget_ / 4 / kSpareBytes, kMostSpares));
  const std::uint32_t count = wanted ? std::min(limits_.slots, affordable) : 0;
  if (count == spares_wanted_ || !worker_.up()) return;
  spares_wanted_ = count;
  worker_.send(spares_command(count));
}

// ---- the trace ----------------------------------------------------------------------------------------------------

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

void Engine::trace_memory() { trace_.sample({Clock::now(), memory_now_, budget_, limits_.slots}); }

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

void Engine::beat() {
  for (const FlightView& view : scheduler_.flights()) {
    const auto entry = flights_.find(view.flight);
    if (entry == flights_.end()) continue;
    const bool running = view.phase == FlightView::Phase::kRunning;
    const Beat beat{running ? seconds_since(view.started) : 0, entry->second.memory_bytes, view.place,
                    view.bytes_ahead};
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

}  // namespace jitc::service
