// What other nodes compile, between the scheduler and the store's leases.
#include "daemon/service/engine.h"

namespace jitc::service {

using schedule::ClaimOutcome;
using Stage = observe::TraceSpan::Kind;

void Engine::run(schedule::Claim& action) {
  if (flights_.contains(action.flight)) claims_.claim(action.flight, action.key);
}

void Engine::run(schedule::Unclaim& action) { claims_.drop(action.flight); }

void Engine::claimed(FlightId id, ClaimOutcome outcome) {
  const auto entry = flights_.find(id);
  if (entry == flights_.end()) return;
  if (outcome == ClaimOutcome::kElsewhere) {
    trace_.enter(Clock::now(), id, Stage::kElsewhere);
    for (const WaiterId waiter : entry->second.waiters) waiters_.at(waiter).waiter->beat(Beat{.elsewhere = true});
  } else if (outcome == ClaimOutcome::kOver) {
    trace_.enter(Clock::now(), id, Stage::kLookUp);
  }
  carry_out(scheduler_.claimed(Clock::now(), id, outcome));
}

}  // namespace jitc::service
