// The engine's canary: a module whose values are known is called in a child of the worker before anybody gets it. One
// that was compiled now is refused when it is wrong; one that the store had is put away and compiled anew. What cannot
// be checked (no worker, no memory) passes: the canary refuses what it saw to be wrong, nothing else.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/isa.h"
#include "daemon/observe/log.h"
#include "daemon/service/engine.h"
#include "daemon/service/flight_terms.h"
#include "daemon/service/marshal.h"

namespace jitc::service {
namespace {

using common::ErrorKind;
using Outcome = WorkerFinished::Outcome;

constexpr const char* kRemedy =
    "the compiler's code is wrong: use another one or other flags, and report it with what 'jitc lower' prints; the "
    "setting canary=off (JITC_CANARY) goes on without this check";

}  // namespace

common::Result<common::Fd> Engine::object_of(const Flight& flight) const {
  if (!flight.compiled) return common::sealed_memfd("jitc-module", *flight.product->bytes, true);
  common::Fd copy(fcntl(flight.compiled->object.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return common::fail_errno(ErrorKind::kInternal, errno, "its descriptor cannot be duplicated", "module");
  return copy;
}

// False: there is nothing to check, or it cannot be.
bool Engine::begins_check(FlightId id) {
  Flight& flight = flights_.at(id);
  if (!flight.canary || !worker_.up()) return false;
  if (flight.prepared->resolved.isa_needed & ~common::host_isa()) return false;  // made for another machine
  if (!flight.compiled) {
    if (passed_.has(*flight.product)) return false;
    if (hits_in_check() >= limits_.slots) {
      held_checks_.push_back(id);
      return true;
    }
  }
  auto object = object_of(flight);
  auto canary = common::sealed_memfd("jitc-canary", *flight.canary, false);
  if (!object || !canary) {
    observe::log_warning("module not checked", {{"error", common::to_line((object ? canary : object).error())}});
    return false;
  }
  ++canaries_.run;
  flight.is_checking = true;
  flight.job = next_job_++;
  jobs_[flight.job] = id;
  worker_.send(check_command(flight.job), std::move(*object), std::move(*canary));
  return true;
}

void Engine::check_ended(FlightId id, const WorkerFinished& finished) {
  const auto tell = [&](const char* what) {
    observe::log_warning(what, {{"flight", std::to_string(id)},
                                {"name", flights_.at(id).prepared->request.name},
                                {"error", common::to_line(finished.error)}});
  };
  observe::log_debug("module called", {{"flight", std::to_string(id)}, {"seconds", std::to_string(finished.seconds)}});
  if (finished.outcome == Outcome::kMiscompiled) {
    ++canaries_.refused;
    tell("module refused");
  } else if (finished.outcome != Outcome::kDone) {
    ++canaries_.unfinished;
    tell("module not checked");
  }
  if (flights_.at(id).compiled) {
    compiled_is_checked(id, finished);
  } else {
    hit_is_checked(id, finished);
  }
  start_held_back();
  start_held_checks();
}

void Engine::compiled_is_checked(FlightId id, const WorkerFinished& finished) {
  Flight& flight = flights_.at(id);
  if (finished.outcome != Outcome::kMiscompiled && finished.outcome != Outcome::kCancelled) {
    flight.is_checked = finished.outcome == Outcome::kDone;
    return compile_ended(id, outcome_of(*flight.compiled, *flight.prepared));
  }
  auto outcome = outcome_of(finished, *flight.prepared);
  if (finished.outcome == Outcome::kMiscompiled) {
    outcome.error.thing = flight.prepared->request.name + ": " + finished.error.thing;
    outcome.error.remedy = kRemedy;
    // For the capsule: a compile that is done says its flags alone.
    const common::CompilerIdentity& compiler = flight.prepared->resolved.compiler;
    flight.compiled->command = flight.compiled->flags_used;
    flight.compiled->command.insert(flight.compiled->command.begin(),
                                    compiler.path.empty() ? compiler.name : compiler.path);
  }
  flight.compiled->object.reset();
  compile_ended(id, outcome);
}

void Engine::hit_is_checked(FlightId id, const WorkerFinished& finished) {
  Flight& flight = flights_.at(id);
  if (finished.outcome == Outcome::kDone) passed_.add(*flight.product, io_);
  if (finished.outcome != Outcome::kMiscompiled) return look_up_ended(id);
  flight.replaces = finished.error.thing + ": " + finished.error.message;
  const common::Digest key = flight.product->key;
  flight.product.reset();
  asio::post(io_, [this, id, key] {
    artifacts_.set_aside(key);
    asio::post(state_, [this, id] {
      if (flights_.contains(id)) look_up_ended(id);
    });
  });
}

// Of what the store has: compiles hold a slot while they are checked.
std::size_t Engine::hits_in_check() const {
  return static_cast<std::size_t>(std::ranges::count_if(jobs_, [this](const auto& job) {
    const auto flight = flights_.find(job.second);
    return flight != flights_.end() && flight->second.is_checking && !flight->second.compiled;
  }));
}

void Engine::start_held_checks() {
  while (!held_checks_.empty() && hits_in_check() < limits_.slots) {
    const FlightId id = held_checks_.front();
    held_checks_.pop_front();
    if (flights_.contains(id) && !begins_check(id)) look_up_ended(id);
  }
}

}  // namespace jitc::service
