// The queue and what may leave it.
#include <algorithm>
#include <cmath>

#include "daemon/schedule/state.h"

namespace jitc::schedule {

using Phase = FlightView::Phase;

// ---- the queue ------------------------------------------------------------------------------------------------------

void Scheduler::State::stand_in_line(Flight& flight, const Line& line) {
  if (std::ranges::find(flight.lines, line) != flight.lines.end()) return;
  flight.lines.push_back(line);
  if (flight.phase != Phase::kQueued) return;
  turns[line.prefetch].push_back(line.client, flight.id);
  numbered = false;
  may_start(flight);
}

// What comes to a queue of which nothing can start matters only if it can.
void Scheduler::State::may_start(const Flight& flight) {
  if (settled && fits(demand_of(flight))) settled = false;
}

void Scheduler::State::enqueue(Flight& flight, bool in_front) {
  if (flight.phase == Phase::kLookingUp) looked_up_bytes -= flight.first.held_bytes;
  flight.phase = Phase::kQueued;
  ++queued;
  queued_bytes += flight.first.held_bytes;
  numbered = false;
  for (const Line& line : flight.lines) {
    if (in_front) {
      turns[line.prefetch].push_front(line.client, flight.id);
    } else {
      turns[line.prefetch].push_back(line.client, flight.id);
    }
  }
  may_start(flight);
}

void Scheduler::State::leave_queue(Flight& flight) {
  --queued;
  queued_bytes -= flight.first.held_bytes;
  unmark_passed(flight);
  numbered = false;
  for (const Line& line : flight.lines) turns[line.prefetch].remove(line.client, flight.id);
}

std::vector<FlightId> Scheduler::State::order() const {
  std::vector<FlightId> order;
  std::set<FlightId> seen;  // those that stand in many lines
  for (const Turns& lane : turns) {
    for (const FlightId id : lane.order()) {
      if (flights.at(id).lines.size() == 1 || seen.insert(id).second) order.push_back(id);
    }
  }
  return order;
}

void Scheduler::State::number() {
  if (std::exchange(numbered, true)) return;
  std::uint32_t place = 0;
  std::uint64_t bytes = 0;
  for (const FlightId id : order()) {
    Flight& flight = flights.at(id);
    flight.place = ++place;
    flight.bytes_ahead = bytes;
    bytes += flight.first.features.bytes;
  }
}

// When a tenth of those that wait now will have started, at the pace of late: an estimate, in whole seconds.
double Scheduler::State::retry_after_seconds() const {
  constexpr double kFirstGuess = 1;  // before any compile has ended
  constexpr double kMost = 600;
  const double each = (run_seconds > 0 ? run_seconds : kFirstGuess) / std::max(counters.running, 1U);
  return std::clamp(std::ceil(each * queued / 10), 1.0, kMost);
}

// ---- admission ------------------------------------------------------------------------------------------------------

// What a compile is allowed it also holds, so that all of them together never get more than the budget. One that ran
// out of memory, or needs more than there is by its prediction, has all of it, and nothing beside it: a prediction
// alone refuses nothing.
Demand Scheduler::State::demand_of(const Flight& flight) const {
  Demand demand;
  demand.predicted = std::max(model.predict(flight.features), flight.needed_bytes);
  demand.limit = MemoryModel::limit_for(demand.predicted);
  demand.whole_budget = flight.out_of_memory > 0 || demand.limit > limits.budget_bytes;
  if (demand.whole_budget) demand.limit = limits.budget_bytes + limits.spare_bytes;
  demand.alone = demand.whole_budget || flight.suspect;
  return demand;
}

bool Scheduler::State::fits(const Demand& demand) const {
  if (counters.running == 0) return true;
  return !demand.alone && counters.reserved_bytes + demand.limit <= limits.budget_bytes;
}

void Scheduler::State::mark_passed(Time now, Flight& flight) {
  if (flight.passed_since) return;
  flight.passed_since = now;
  passed.emplace(now, flight.id);
}

void Scheduler::State::unmark_passed(Flight& flight) {
  if (!flight.passed_since) return;
  passed.erase({*flight.passed_since, flight.id});
  flight.passed_since.reset();
}

// Of the flights of this lane that were passed for too long, the one that was passed first.
Flight* Scheduler::State::aged(bool prefetch, Time now) {
  for (const auto& [since, id] : passed) {
    if (after(since, limits.ageing) > now) break;
    Flight& flight = flights.at(id);
    if (flight.is_prefetch() == prefetch) return &flight;
  }
  return nullptr;
}

// In turn, the first that fits. Only the first of each client that does not fit begins to age: were all of them to age
// at once, one client's large flights would hold everybody up for as long as there are any.
std::optional<Scheduler::State::Choice> Scheduler::State::next_to_start(Time now) {
  for (const bool prefetch : {false, true}) {
    if (Flight* flight = aged(prefetch, now)) {
      // What is given back is kept for it: nobody passes it any more, until it fits.
      if (!fits(demand_of(*flight))) return std::nullopt;
      return Choice{flight, flight->lines.front().client};
    }
    for (const Turns::Client& client : turns[prefetch].clients()) {
      Flight* first = nullptr;
      for (const FlightId id : client.flights) {
        Flight& flight = flights.at(id);
        if (flight.grace_end) continue;  // nobody waits for it
        ++counters.looked_at;
        if (fits(demand_of(flight))) return Choice{&flight, client.name};
        if (!first) mark_passed(now, *(first = &flight));
      }
    }
  }
  return std::nullopt;
}

void Scheduler::State::start(Time now, Flight& flight, const std::string& client, Actions& actions) {
  const Demand demand = demand_of(flight);
  leave_queue(flight);
  for (Turns& lane : turns) lane.served(client);
  flight.demand = demand;
  alone_runs = demand.alone;
  counters.reserved_bytes += demand.limit;
  counters.running_peak = std::max(counters.running_peak, ++counters.running);
  if (!limits.leases || flight.first.no_cache || flight.turned_away >= kMostTurnedAway)
    return begin(now, flight, actions);
  flight.phase = Phase::kClaiming;
  actions.push_back(Claim{flight.id, flight.first.key});
}

// Slot and memory are its own.
void Scheduler::State::begin(Time now, Flight& flight, Actions& actions) {
  flight.phase = Phase::kRunning;
  flight.started = now;
  ++flight.attempt;
  flight.beside_others = counters.running > 1;
  flight.number = ++counters.compiles_started;
  const bool lowered = !flight.degraded.empty();
  actions.push_back(Compile{flight.id, flight.attempt, flight.demand.limit, flight.demand.alone,
                            lowered ? std::optional(flight.features.optimisation) : std::nullopt});
}

void Scheduler::State::admit(Time now, Actions& actions) {
  while (queued > 0 && counters.running < limits.slots && !alone_runs && !settled) {
    if (limits.pressure && counters.running > 0) return;
    const std::optional<Choice> choice = next_to_start(now);
    if (choice) {
      start(now, *choice->flight, choice->client, actions);
    } else {
      settled = true;
    }
  }
}

bool Scheduler::State::ran_beside_others(const Flight& flight) const {
  return flight.beside_others || flight.number != counters.compiles_started;
}

void Scheduler::State::release(Time now, Flight& flight) {
  constexpr double kWeight = 0.1;  // of the newest compile
  const double seconds = Seconds(now - flight.started).count();
  run_seconds = run_seconds > 0 ? run_seconds + kWeight * (seconds - run_seconds) : seconds;
  give_back(flight);
}

void Scheduler::State::give_back(const Flight& flight) {
  settled = false;
  --counters.running;
  counters.reserved_bytes -= flight.demand.limit;
  alone_runs = false;  // if something ran alone, it was this one
}

}  // namespace jitc::schedule
