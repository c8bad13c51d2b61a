// Flights that other nodes may be compiling: whose slot and memory are given back meanwhile.
#include "daemon/schedule/state.h"

namespace jitc::schedule {

using Phase = FlightView::Phase;

void Scheduler::State::wait_elsewhere(Flight& flight) {
  flight.phase = Phase::kElsewhere;
  ++counters.elsewhere;
  ++elsewhere;
  elsewhere_bytes += flight.first.held_bytes;
}

void Scheduler::State::leave_elsewhere(const Flight& flight) {
  --elsewhere;
  elsewhere_bytes -= flight.first.held_bytes;
}

void Scheduler::State::look_again(Flight& flight, Actions& actions) {
  flight.phase = Phase::kLookingUp;
  looked_up_bytes += flight.first.held_bytes;
  actions.push_back(LookUp{flight.id, flight.first.key});
}

Actions Scheduler::claimed(Time now, FlightId id, ClaimOutcome outcome) {
  Actions actions;
  if (Flight* flight = state_->find(id, Phase::kElsewhere); flight && outcome == ClaimOutcome::kOver) {
    state_->leave_elsewhere(*flight);
    state_->look_again(*flight, actions);
    return actions;
  }
  Flight* flight = state_->find(id, Phase::kClaiming);
  if (!flight) return actions;
  if (outcome == ClaimOutcome::kOurs && !flight->grace_end) {
    state_->begin(now, *flight, actions);
    return actions;
  }
  state_->give_back(*flight);
  switch (outcome) {
    case ClaimOutcome::kOurs:  // all who waited have gone meanwhile
      actions.push_back(Unclaim{id});
      state_->enqueue(*flight, true);
      break;
    case ClaimOutcome::kElsewhere:
      ++flight->turned_away;
      state_->wait_elsewhere(*flight);
      break;
    case ClaimOutcome::kOver:
      ++flight->turned_away;
      state_->look_again(*flight, actions);
      break;
  }
  state_->admit(now, actions);
  return actions;
}

}  // namespace jitc::schedule
