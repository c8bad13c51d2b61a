// The engine's compiles: from the scheduler's word to start one until its artifact is published or the failure known.
#include <algorithm>

#include "daemon/observe/log.h"
#include "daemon/service/engine.h"
#include "daemon/service/flight_terms.h"
#include "daemon/service/marshal.h"

namespace jitc::service {
namespace {

using common::Error;
using common::ErrorKind;
using schedule::CompileOutcome;
using schedule::FlightView;
using Stage = observe::TraceSpan::Kind;

constexpr std::string_view kDone = "DONE", kDegraded = "DEGRADED";

Error worker_lost_error() {
  return {ErrorKind::kCompilerCrashed, "the worker died while it compiled this", {}, "see the daemon's log; ask again"};
}

}  // namespace

// ---- start, stop, publish ------------------------------------------------------------------------------------------

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
  if (prepared.command && prepared.command->by_caller) {
    flight.in_caller = true;
    return;
  }
  auto source = common::sealed_memfd("jitc-source", source_payload(prepared), false);
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

// Of a compiler that ran in its caller, who has gone.
void Engine::end_turn(FlightId id) {
  CompileOutcome outcome{};
  outcome.kind = CompileOutcome::Kind::kDone;
  Flight& flight = flights_.at(id);
  flight.in_caller = false;
  flight.product = std::make_shared<const Product>();  // of which nobody hears
  compile_ended(id, outcome);
  carry_out(scheduler_.publish_done(Clock::now(), id));
}

void Engine::run(schedule::StopCompile& action) {
  claims_.drop(action.flight);
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;
  if (entry->second.job != 0) return worker_.send(cancel_command(entry->second.job));
  if (entry->second.in_caller) {
    return fail_later(action.flight, {ErrorKind::kCancelled, "cancelled; its compiler is its caller's, and goes on"});
  }
  // It never reached the worker.
  if (std::erase_if(held_back_, [&](const auto& compile) { return compile.flight == action.flight; }) > 0) {
    fail_later(action.flight, {ErrorKind::kCancelled, "cancelled before it started"});
  }
}

void Engine::run(schedule::Publish& action) {
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end() || !entry->second.compiled) return;
  const auto view = scheduler_.view(action.flight);
  CompileFacts facts{
      entry->second.attempt, view ? view->predicted_bytes : 0, view ? view->rungs : std::vector<std::string>{},
      action.degraded,       entry->second.replaces,           entry->second.is_checked};
  auto compiled = std::make_shared<WorkerFinished>(std::move(*entry->second.compiled));
  entry->second.compiled.reset();
  ++publishing_;
  trace_.enter(Clock::now(), action.flight, Stage::kPublishing);
  const auto prepared = entry->second.prepared;
  options_.confirm(prepared, [this, flight = action.flight, prepared, compiled, facts](bool is_current) mutable {
    facts.outdated = !is_current;
    if (const auto found = flights_.find(flight); found != flights_.end()) found->second.at_the_store = Clock::now();
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
  store_answered_ = Clock::now();
  start_held_back();
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  entry->second.at_the_store.reset();
  entry->second.product = std::move(product);
  if (entry->second.is_checked && entry->second.product && entry->second.product->is_new) {
    passed_.add(*entry->second.product, io_);
  }
  trace_.leave(Clock::now(), id, Stage::kPublishing, {});
  carry_out(scheduler_.publish_done(Clock::now(), id));
}

// ---- the worker ----------------------------------------------------------------------------------------------------

void Engine::on_report(WorkerEvent event) {
  std::visit([this](auto& one) { on(one); }, event);
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
  if (std::exchange(flight.is_checking, false)) return check_ended(id, finished);
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
  if (outcome.kind != CompileOutcome::Kind::kDone || !begins_check(id)) compile_ended(id, outcome);
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
  const bool done = outcome.kind == CompileOutcome::Kind::kDone;
  auto failure = done ? std::nullopt : failure_of(id, outcome.error);
  auto actions = scheduler_.compile_done(Clock::now(), id, outcome);
  trace_.leave(Clock::now(), id, Stage::kRunning, done ? as_what : common::name_of(outcome.error.kind),
               outcome.peak_bytes);
  if (!done && scheduler_.phase_of(id)) trace_.enter(Clock::now(), id, Stage::kQueued);
  if (failure && !scheduler_.phase_of(id)) leave_capsule(id, std::move(*failure), actions);
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
    const auto flight = flights_.find(id);
    if (flight != flights_.end()) flight->second.job = 0;
    if (flight != flights_.end() && std::exchange(flight->second.is_checking, false)) {
      WorkerFinished lost;
      lost.error = worker_lost_error();
      check_ended(id, lost);
      continue;
    }
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

}  // namespace jitc::service
