#include "tests/support/schedule_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace jitc::testing {
namespace {

using common::ErrorKind;
using schedule::CompileOutcome;
using schedule::FlightView;
using Kind = CompileOutcome::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kClients = 8, kHotKeys = 60;
constexpr double kLongestCompile = 4, kMeanCompile = 0.25;
constexpr double kOverload = 400, kQuiet = 400;  // seconds of each in turn
constexpr std::uint32_t kQueueLength = 200;
constexpr std::uint64_t kCheckFlightsEvery = 100, kCheckWaitersEvery = 10'000;

common::Digest key_of(std::uint64_t number) {
  common::Digest digest;
  for (std::size_t i = 0; i < 8; ++i) digest.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return digest;
}
std::uint64_t number_of(const common::Digest& key) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{key.bytes[i]} << (8 * i);
  return number;
}

}  // namespace

ScheduleSimulation::ScheduleSimulation(std::uint64_t seed, bool leases)
    : random_(seed), seed_(seed), leases_(leases), limits_(some_limits()), scheduler_(limits_) {
  after(0, What::kArrival);
  after(50, What::kLimits);
}

void ScheduleSimulation::after(double seconds, What what, std::uint64_t id, std::uint64_t run) {
  const auto wait = std::chrono::duration_cast<Time::duration>(schedule::Seconds(seconds));
  agenda_.push({now_ + wait, next_order_++, what, id, run});
}

schedule::Limits ScheduleSimulation::some_limits() {
  schedule::Limits limits;
  limits.slots = static_cast<std::uint32_t>(1 + pick(8));
  limits.budget_bytes = (200 + pick(2000)) * kMiB;
  limits.spare_bytes = pick(200) * kMiB;
  limits.queue_length = kQueueLength;
  limits.pressure = chance(0.1);
  limits.leases = leases_;
  return limits;
}

// The same key has always the same text: a few that many ask for, and new ones.
schedule::Submission ScheduleSimulation::some_submission() {
  const std::uint64_t number = chance(0.3) ? pick(kHotKeys) : next_key_++;
  schedule::Submission submission;
  submission.key = key_of(number);
  submission.client = std::string(1, static_cast<char>('A' + pick(kClients)));
  const std::uint64_t hash = number * 0x9E3779B97F4A7C15U;
  submission.features.bytes = std::uint64_t{1} << (8 + (hash >> 60) % 13);  // 256 bytes to 1 MiB
  submission.features.compiler = (hash >> 50) % 2 == 0 ? "gcc" : "clang";
  submission.features.optimisation = (hash >> 40) % 4 == 0 ? 0 : 3;
  submission.exact_flags = (hash >> 30) % 8 == 0;
  submission.prefetch = chance(0.15);
  submission.no_cache = chance(0.03);
  return submission;
}

// ---- events ---------------------------------------------------------------------------------------------------------

void ScheduleSimulation::run(std::uint64_t events) {
  while (violation_.empty() && events_ < events) step();
  open_ = false;
  take(scheduler_.drain(now_));
  const Time closed = now_;
  while (violation_.empty() && step()) {
    require(now_ - closed < std::chrono::hours(4), "what was accepted ends in time");
  }
  if (violation_.empty()) check_end();
}

bool ScheduleSimulation::step() {
  const auto deadline = scheduler_.next_deadline();
  if (agenda_.empty() && !deadline) return false;
  started_ = 0;
  const std::uint32_t running = scheduler_.counters().running;
  const std::uint64_t reserved = scheduler_.counters().reserved_bytes;
  ++events_;
  if (deadline && (agenda_.empty() || *deadline <= agenda_.top().at)) {
    now_ = std::max(now_, *deadline);
    take(scheduler_.tick(now_));
  } else {
    const Event event = agenda_.top();
    agenda_.pop();
    now_ = event.at;
    on(event);
  }
  check_event(started_ > 0, running, reserved);
  if (events_ % kCheckFlightsEvery == 0) check_flights();
  if (events_ % kCheckWaitersEvery == 0) check_waiters();
  return true;
}

void ScheduleSimulation::on(const Event& event) {
  switch (event.what) {
    case What::kArrival:
      return arrive();
    case What::kLeave:
      return leave(event.id);
    case What::kLookedUp: {
      const auto flight = flights_.find(event.id);
      if (flight == flights_.end() || flight->second.phase != Phase::kLookingUp) return;
      take(scheduler_.look_up_done(now_, event.id, store_.contains(flight->second.submission.key)));
      return put_in_queue(event.id);
    }
    case What::kClaimed:
      return claimed(event.id);
    case What::kElsewhereOver:
      return elsewhere_over(event.id);
    case What::kCompiled:
      return compiled(event.id, event.run);
    case What::kPublished:
      return take(scheduler_.publish_done(now_, event.id));
    case What::kCancel:
      return take(scheduler_.cancel(now_, event.id));
    case What::kLimits:
      return change_limits();
  }
}

void ScheduleSimulation::arrive() {
  if (!open_) return;
  const bool overload = std::fmod(simulated_seconds(), kOverload + kQuiet) < kOverload;
  const double rate = (overload ? 1.5 : 0.1) * limits_.slots / kMeanCompile;
  after(between(0, 2 / rate), What::kArrival);
  if (chance(0.02)) store_.erase(key_of(pick(kHotKeys)));  // somebody cleans up

  const WaiterId id = waiters_.size();
  const schedule::Submission submission = some_submission();
  const auto joined = by_key_.find(submission.key);
  const FlightId expected = joined == by_key_.end() ? 0 : joined->second;
  waiters_.push_back({.since = now_});
  if (!submission.prefetch) blocking_.emplace(now_, id);
  const schedule::Actions actions = scheduler_.submit(now_, id, submission);
  const FlightId flight = scheduler_.flight_of(id);
  if (scheduler_.counters().failures_remembered != seen_.remembered) {
    seen_.remembered = scheduler_.counters().failures_remembered;
    require(own_failures_.contains(submission.key), "what others did to a compile is not remembered");
  }
  if (flight != schedule::kNoFlight) {
    require(expected == 0 || flight == expected, "who asks for a key in flight joins that flight");
    const auto [entry, is_new] = flights_.try_emplace(flight);
    Flight& data = entry->second;
    if (is_new) {
      data.submission = submission;
      by_key_[submission.key] = flight;
    } else if (data.waiters.empty()) {
      ++seen_.rejoined;
    }
    waiters_[id].flight = flight;
    data.waiters.insert(id);
    queued_[data.prefetch].erase({data.order, flight});
    if (data.prefetch && !submission.prefetch && data.order > 0)
      data.order = queue_order_++;  // at the end of that line
    data.prefetch = data.prefetch && submission.prefetch;
    update_queue(flight, data);
  }
  take(actions);
  put_in_queue(flight);
  if (chance(0.08)) after(between(0, 3), What::kLeave, id);
  if (chance(0.002)) after(between(0, 3), What::kCancel, flight);
}

void ScheduleSimulation::leave(WaiterId id) {
  Waiter& waiter = waiters_[id];
  if (waiter.state == Waiter::State::kWaits) {
    waiter.state = Waiter::State::kLeft;
    ++seen_.left;
    blocking_.erase({waiter.since, id});
    Flight& flight = flights_.at(waiter.flight);
    flight.waiters.erase(id);
    seen_.left_elsewhere += flight.phase == Phase::kElsewhere ? 1 : 0;
    update_queue(waiter.flight, flight);
  }
  take(scheduler_.leave(now_, id));  // a late one changes nothing
}

// One in four is compiled by another node meanwhile, or was just now.
void ScheduleSimulation::claimed(FlightId id) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end() || entry->second.phase != Phase::kClaiming) return;  // cancelled
  Flight& flight = entry->second;
  const std::uint64_t dice = pick(8);
  const auto outcome = dice == 0   ? schedule::ClaimOutcome::kOver
                       : dice == 1 ? schedule::ClaimOutcome::kElsewhere
                                   : schedule::ClaimOutcome::kOurs;
  flight.has_claim = outcome == schedule::ClaimOutcome::kOurs;
  flight.turned_away += flight.has_claim ? 0 : 1;
  if (outcome == schedule::ClaimOutcome::kElsewhere) {
    ++seen_.elsewhere;
    flight.phase = Phase::kElsewhere;
    after(between(0.1, kLongestCompile), What::kElsewhereOver, id);
  } else if (outcome == schedule::ClaimOutcome::kOver) {
    if (chance(0.9)) store_.insert(flight.submission.key);
    flight.phase = Phase::kLookingUp;
  } else if (flight.waiters.empty()) {
    flight.phase = Phase::kQueued;
  }
  if (flight.phase != Phase::kClaiming) running_.erase(id);
  take(scheduler_.claimed(now_, id, outcome));
  put_in_queue(id);
}

// The other one has published it, or has failed.
void ScheduleSimulation::elsewhere_over(FlightId id) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end() || entry->second.phase != Phase::kElsewhere) return;
  if (chance(0.8)) store_.insert(entry->second.submission.key);
  entry->second.phase = Phase::kLookingUp;
  take(scheduler_.claimed(now_, id, schedule::ClaimOutcome::kOver));
}

void ScheduleSimulation::compiled(FlightId id, std::uint64_t run) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end() || entry->second.run != run || entry->second.phase == Phase::kClaiming ||
      !running_.contains(id))
    return;  // lost meanwhile
  if (entry->second.outcome.kind == Kind::kWorkerLost && entry->second.phase == Phase::kRunning) return lose_worker();
  running_.erase(id);
  Flight& flight = entry->second;
  flight.hit_from_outside = flight.outcome.outside;
  seen_.outside += flight.outcome.outside ? 1 : 0;
  if (flight.outcome.kind != Kind::kDone && !flight.outcome.outside) own_failures_.insert(flight.submission.key);
  take(scheduler_.compile_done(now_, id, flight.outcome));
  put_in_queue(id);
}

// Everything that runs ends at once.
void ScheduleSimulation::lose_worker() {
  std::set<FlightId> lost;
  for (const FlightId id : running_) {
    if (flights_.at(id).phase != Phase::kClaiming) lost.insert(id);
  }
  for (const FlightId id : lost) running_.erase(id);
  for (const FlightId id : lost) {
    CompileOutcome outcome{};
    outcome.kind = Kind::kWorkerLost;
    flights_.at(id).hit_from_outside = false;
    own_failures_.insert(flights_.at(id).submission.key);
    take(scheduler_.compile_done(now_, id, outcome));
    put_in_queue(id);
  }
}

void ScheduleSimulation::change_limits() {
  if (!open_) return;
  ++seen_.limits;
  limits_ = some_limits();
  if (chance(0.3)) full_until_ = now_ + std::chrono::seconds(5 + pick(20));
  take(scheduler_.set_limits(now_, limits_));
  after(between(100, 500), What::kLimits);
}

// ---- actions --------------------------------------------------------------------------------------------------------

void ScheduleSimulation::take(const schedule::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& one) { on(one); }, action);
}

void ScheduleSimulation::on(const schedule::LookUp& action) {
  after(between(0.0001, 0.02), What::kLookedUp, action.flight);
}

CompileOutcome ScheduleSimulation::outcome_of(const Flight& flight, const schedule::Compile& action) {
  const std::uint64_t number = number_of(flight.submission.key);
  CompileOutcome outcome{};
  // Most need what was predicted of them, some more, a few more than there is.
  const std::uint64_t dice = number * 0xD1B54A32D192ED03U >> 54;  // of 1024
  const double surprise = dice < 10 ? 100 : dice < 60 ? 2.5 : 0.6 + static_cast<double>(dice) / 2048;
  const double level = action.level ? 0.4 : 1;
  outcome.peak_bytes =
      static_cast<std::uint64_t>(static_cast<double>(untaught_.predict(flight.submission.features)) * surprise * level);
  if (outcome.peak_bytes > action.limit_bytes) {
    outcome.kind = Kind::kOutOfMemory;
    outcome.peak_bytes = action.limit_bytes;
  } else if (now_ < full_until_ && chance(0.5)) {
    outcome.kind = Kind::kCrashed;
    outcome.outside = true;
    outcome.error.message = "the node ran out of memory";
  } else if (number % 1009 == 0) {
    outcome.kind = Kind::kWorkerLost;
  } else if (number % 97 == 0) {
    outcome.kind = Kind::kFailed;
    outcome.error.kind = ErrorKind::kInvalidSource;
  } else {
    outcome.kind = chance(0.004) ? Kind::kCrashed : Kind::kDone;
  }
  return outcome;
}

void ScheduleSimulation::take_place(FlightId id, Flight& flight, std::uint64_t limit_bytes, bool alone) {
  ++started_;
  require(running_.insert(id).second, "nothing is started twice");
  if (flight.order == 0) flight.order = queue_order_++;
  queued_[flight.prefetch].erase({flight.order, id});
  if (flight.attempt == 0 && !alone) check_start(id, flight);
  flight.alone = alone;
  flight.limit_bytes = limit_bytes;
}

void ScheduleSimulation::on(const schedule::Claim& action) {
  Flight& flight = flights_.at(action.flight);
  require(leases_ && !flight.submission.no_cache && !flight.has_claim, "what is to be published is claimed");
  require(flight.turned_away < schedule::kMostTurnedAway, "claims are bounded");
  take_place(action.flight, flight, scheduler_.view(action.flight).value_or(FlightView{}).limit_bytes,
             scheduler_.alone_runs());
  flight.phase = Phase::kClaiming;
  after(between(0.0001, 0.002), What::kClaimed, action.flight);
}

void ScheduleSimulation::on(const schedule::Unclaim& action) { flights_.at(action.flight).has_claim = false; }

void ScheduleSimulation::on(const schedule::Compile& action) {
  Flight& flight = flights_.at(action.flight);
  if (flight.phase != Phase::kClaiming) take_place(action.flight, flight, action.limit_bytes, action.alone);
  require(!leases_ || flight.has_claim || flight.submission.no_cache || flight.turned_away == schedule::kMostTurnedAway,
          "nothing is compiled that was not claimed");
  require(flight.limit_bytes == action.limit_bytes && flight.alone == action.alone, "it starts with what it claimed");
  require(!flight.waiters.empty(), "nothing starts that nobody waits for");
  require(action.attempt == ++flight.attempt, "attempts are counted");
  require(action.attempt <= limits_.crash_tries + 4, "tries are bounded");
  require(action.limit_bytes > 0, "every compile has a limit");
  require(!action.alone || running_.size() == 1, "who runs alone runs alone");
  require(action.alone || !flight.hit_from_outside, "what others did to a compile is not risked again");
  require(!action.level || !flight.submission.exact_flags, "exact flags stay");
  seen_.alone += action.alone ? 1 : 0;
  flight.phase = Phase::kRunning;
  flight.run = next_run_++;
  flight.degraded = action.level.has_value();
  flight.outcome = outcome_of(flight, action);
  const double size = static_cast<double>(flight.submission.features.bytes) / (1 << 21);
  after(std::min(between(0.02, 0.3) + 4 * size, kLongestCompile), What::kCompiled, action.flight, flight.run);
}

void ScheduleSimulation::on(const schedule::StopCompile& action) {
  Flight& flight = flights_.at(action.flight);
  require(flight.phase == Phase::kRunning && flight.waiters.empty(), "only what nobody waits for is stopped");
  flight.phase = Phase::kStopping;
  by_key_.erase(flight.submission.key);
  after(between(0, 0.05), What::kCompiled, action.flight, flight.run);
}

void ScheduleSimulation::on(const schedule::Publish& action) {
  Flight& flight = flights_.at(action.flight);
  require(flight.phase == Phase::kRunning && flight.outcome.kind == Kind::kDone, "only what is done is published");
  require(flight.degraded == !action.degraded.empty(), "what is not as asked says so");
  flight.phase = Phase::kPublishing;
  if (!flight.degraded) store_.insert(flight.submission.key);
  after(between(0.0005, 0.01), What::kPublished, action.flight);
}

void ScheduleSimulation::on(const schedule::Answer& action) {
  Waiter& waiter = waiters_.at(action.waiter);
  require(waiter.state == Waiter::State::kWaits, "a waiter is answered once, and not when it has left");
  waiter.state = Waiter::State::kAnswered;
  blocking_.erase({waiter.since, action.waiter});
  switch (action.kind) {
    case schedule::Answer::Kind::kHit:
      ++seen_.hits;
      break;
    case schedule::Answer::Kind::kDone:
      ++seen_.done;
      require(flights_.at(action.flight).phase == Phase::kPublishing, "done is what was made");
      break;
    case schedule::Answer::Kind::kError:
      ++seen_.errors;
      if (action.error.kind == ErrorKind::kRefused)
        require(action.error.retry_after_seconds >= 1, "a refusal says when to ask again");
      break;
  }
  const auto flight = flights_.find(action.flight);
  if (flight == flights_.end()) return;
  flight->second.waiters.erase(action.waiter);
  update_queue(action.flight, flight->second);
}

void ScheduleSimulation::on(const schedule::Forget& action) {
  const auto entry = flights_.find(action.flight);
  if (entry == flights_.end()) return;  // refused as soon as it came
  require(entry->second.waiters.empty(), "nobody is forgotten");
  if (entry->second.phase == Phase::kClaiming) running_.erase(action.flight);
  require(!running_.contains(action.flight), "nothing is forgotten while it runs");
  queued_[entry->second.prefetch].erase({entry->second.order, action.flight});
  const auto joinable = by_key_.find(entry->second.submission.key);
  if (joinable != by_key_.end() && joinable->second == action.flight) by_key_.erase(joinable);
  flights_.erase(entry);
}

// ---- what must hold -------------------------------------------------------------------------------------------------

void ScheduleSimulation::require(bool holds, const char* what) {
  if (holds || !violation_.empty()) return;
  violation_ = std::string("not true that ") + what + ": seed " + std::to_string(seed_) + ", event " +
               std::to_string(events_) + ", second " + std::to_string(simulated_seconds());
}

// After an event that may have brought it there.
void ScheduleSimulation::put_in_queue(FlightId id) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end() || scheduler_.phase_of(id) != FlightView::Phase::kQueued) return;
  Flight& flight = entry->second;
  require(!flight.has_claim, "what waits holds up no other node");
  if (flight.order == 0) flight.order = queue_order_++;
  flight.phase = Phase::kQueued;
  update_queue(id, flight);
  constexpr std::uint64_t kOneOf = 16;  // a look at the whole queue takes long
  if (has_room_for(flight) && pick(kOneOf) == 0) {
    require(is_room_kept(scheduler_.flights()), "what comes and fits is started at once");
  }
}

// Of a first try.
bool ScheduleSimulation::has_room_for(const Flight& flight) const {
  const schedule::Counters& counters = scheduler_.counters();
  const bool alone = std::ranges::any_of(running_, [this](FlightId id) { return flights_.at(id).alone; });
  return flight.attempt == 0 && !flight.waiters.empty() && !alone && !limits_.pressure &&
         counters.running < limits_.slots &&
         counters.reserved_bytes + limit_of(flight.submission) <= limits_.budget_bytes;
}

// For an aged one.
bool ScheduleSimulation::is_room_kept(const std::vector<FlightView>& views) const {
  return std::ranges::any_of(views, [this](const FlightView& view) {
    return view.passed_since && now_ - *view.passed_since >= limits_.ageing;
  });
}

void ScheduleSimulation::update_queue(FlightId id, const Flight& flight) {
  if (flight.phase != Phase::kQueued) return;
  if (flight.waiters.empty()) {
    queued_[flight.prefetch].erase({flight.order, id});
  } else {
    queued_[flight.prefetch].emplace(flight.order, id);
  }
}

std::uint64_t ScheduleSimulation::limit_of(const schedule::Submission& submission) const {
  return schedule::MemoryModel::limit_for(scheduler_.memory_model().predict(submission.features));
}

void ScheduleSimulation::check_start(FlightId id, const Flight& flight) {
  if (flight.prefetch) {
    const std::uint64_t room = limit_of(flight.submission);
    for (const auto& [order, other] : queued_[false]) {
      const Flight& waiting = flights_.at(other);
      require(waiting.attempt > 0 || limit_of(waiting.submission) > room,
              "a prefetch starts only when nothing that somebody waits for fits");
    }
    return;
  }
  const auto oldest = flights_.find(oldest_);
  const bool overtakes = oldest != flights_.end() && oldest->second.phase == Phase::kQueued && oldest_ != id &&
                         !oldest->second.waiters.empty() && oldest->second.order < flight.order;
  if (!overtakes) return;
  if (now_ - oldest_since_ < limits_.ageing) return;
  if (!oldest_passed_) oldest_passed_ = scheduler_.view(oldest_).value_or(FlightView{}).passed_since;
  if (!oldest_passed_ || now_ - *oldest_passed_ < limits_.ageing) return;
  // It had its turn, did not fit and is aged: only those pass it that were passed before it, one of each client or so.
  seen_.most_overtaken = std::max(seen_.most_overtaken, ++overtaken_);
  require(overtaken_ <= 2 * kClients, "an aged flight is passed by few");
}

// Limits that shrink stop nothing, so that they bind when something starts.
void ScheduleSimulation::check_event(bool started, std::uint32_t running_before, std::uint64_t reserved_before) {
  const schedule::Counters& counters = scheduler_.counters();
  require(counters.running == running_.size(), "the scheduler knows what runs");
  require(started ? counters.running <= limits_.slots : counters.running <= running_before, "slots bind");
  std::uint64_t allowed = 0;
  bool alone = false;
  for (const FlightId id : running_) {
    allowed += flights_.at(id).limit_bytes;
    alone = alone || flights_.at(id).alone;
  }
  const std::uint64_t budget = limits_.budget_bytes + (alone ? limits_.spare_bytes : 0);
  require(allowed == counters.reserved_bytes, "what a compile is allowed is reserved");
  require(started ? allowed <= budget : allowed <= reserved_before, "the budget binds");
  require(!started || !limits_.pressure || counters.running == 1, "under pressure one runs");
  require(counters.running > 0 || counters.reserved_bytes == 0, "what does not run reserves nothing");
  require(counters.running > 0 || (queued_[false].empty() && queued_[true].empty()), "the queue never stalls");
  require(scheduler_.queued() <= kQueueLength + limits_.slots + 8, "the queue is bounded");
  seen_.idle_queue += scheduler_.queued() == 0 ? 1 : 0;
  seen_.longest_queue = std::max(seen_.longest_queue, scheduler_.queued());
  check_oldest();
  // All that stands in the queue, one after the other, each with all its tries.
  constexpr double kLongestWait = (kQueueLength + 16) * kLongestCompile * 3;
  require(blocking_.empty() || now_ - blocking_.begin()->first < std::chrono::duration<double>(kLongestWait),
          "nobody waits for ever");
}

void ScheduleSimulation::check_oldest() {
  const FlightId oldest = queued_[false].empty() ? 0 : queued_[false].begin()->second;
  if (oldest != oldest_) {
    oldest_ = oldest;
    oldest_since_ = now_;
    oldest_passed_.reset();
    overtaken_ = 0;
  }
  constexpr double kMost = 5 + (kClients + 2 * kClients + 4 * 8 + 1) * kLongestCompile;
  require(oldest_ == 0 || now_ - oldest_since_ < std::chrono::duration<double>(kMost), "nobody starves");
}

void ScheduleSimulation::check_waiters() {
  for (WaiterId id = 0; id < waiters_.size(); ++id) {
    const bool waits = waiters_[id].state == Waiter::State::kWaits;
    require(waits == (scheduler_.flight_of(id) != schedule::kNoFlight), "both know who waits");
  }
}

void ScheduleSimulation::check_flights() {
  const std::vector<FlightView> views = scheduler_.flights();
  require(views.size() == flights_.size(), "no flight is lost");
  std::uint32_t place = 0;
  const bool holds = is_room_kept(views);
  for (const FlightView& view : views) {
    const auto entry = flights_.find(view.flight);
    require(entry != flights_.end() && entry->second.waiters.size() == view.waiters, "no waiter is lost");
    if (view.phase == FlightView::Phase::kQueued) require(view.place == ++place, "places are counted");
  }
  for (const auto& lane : queued_) {
    for (const auto& [order, id] : lane) {
      require(holds || !has_room_for(flights_.at(id)), "nothing that fits is left waiting");
    }
  }
}

void ScheduleSimulation::check_end() {
  const schedule::Counters& counters = scheduler_.counters();
  require(scheduler_.idle() && flights_.empty() && running_.empty(), "no flight is left");
  require(counters.running == 0 && counters.reserved_bytes == 0 && scheduler_.queued() == 0,
          "everything is given back");
  for (const Waiter& waiter : waiters_) require(waiter.state != Waiter::State::kWaits, "everybody has an answer");
  require(counters.requests == waiters_.size(), "requests are counted");
  require(counters.requests == seen_.hits + seen_.done + seen_.errors + seen_.left, "each ended one way");
  require(counters.compiles_started == next_run_ - 1, "starts are counted");
  require(counters.retries ==
              counters.rung_alone + counters.rung_degraded + counters.rung_crashed + counters.rung_worker_lost,
          "each retry is a rung");
}

}  // namespace jitc::testing
