// The engine's failures: what failed for good leaves a capsule before its waiters are answered, so that they hear where
// it is; unless that takes longer than anybody should wait for it.
#include "daemon/service/engine.h"

namespace jitc::service {
namespace {

using common::ErrorKind;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{1};  // of waiters with the capsule's disk

// What another machine, or a mended compiler, may answer otherwise.
bool leaves_capsule(ErrorKind kind) {
  return kind == ErrorKind::kInvalidSource || kind == ErrorKind::kOutOfMemory || kind == ErrorKind::kTimedOut ||
         kind == ErrorKind::kCompilerCrashed || kind == ErrorKind::kMiscompiled;
}

template <class T>
bool is_of(const schedule::Action& action, schedule::FlightId flight) {
  const T* one = std::get_if<T>(&action);
  return one != nullptr && one->flight == flight;
}

}  // namespace

// Of a compile that runs, should its failure be the last one.
std::optional<Failure> Engine::failure_of(FlightId id, const common::Error& error) const {
  const auto entry = flights_.find(id);
  const auto view = scheduler_.view(id);
  if (!options_.keep_capsule || entry == flights_.end() || !entry->second.wants_capsule ||
      entry->second.prepared->command || !view || !leaves_capsule(error.kind))
    return std::nullopt;
  Failure failure;
  failure.prepared = entry->second.prepared;
  failure.error = error;
  failure.memory_bytes = view->limit_bytes;
  failure.cpu_seconds = options_.cpu_seconds;
  failure.compilers = limits_.slots;
  failure.budget_bytes = budget_;
  failure.predicted_bytes = view->predicted_bytes;
  failure.attempts = view->attempt;
  return failure;
}

// The answers to this flight's waiters, and its end, leave `actions`; they are carried out when the capsule is written.
void Engine::leave_capsule(FlightId id, Failure failure, schedule::Actions& actions) {
  schedule::Actions held;
  std::erase_if(actions, [&](schedule::Action& action) {
    const bool is_ours = is_of<schedule::Answer>(action, id) || is_of<schedule::Forget>(action, id);
    if (is_ours) held.push_back(std::move(action));
    return is_ours;
  });
  if (const auto* answer = std::get_if<schedule::Answer>(held.data())) {
    failure.error = answer->error;  // in the words of who waits, and with what was tried
    failure.error.rungs = answer->rungs;
  }
  Flight& flight = flights_.at(id);
  if (flight.compiled) {
    failure.finished = std::move(*flight.compiled);
    flight.compiled.reset();
  }
  auto timer = std::make_shared<asio::steady_timer>(state_, kPatience);
  held_answers_[id] = std::move(held);
  claims_.drop(id);  // other nodes do not wait for the capsule
  timer->async_wait([this, id](const boost::system::error_code& error) {
    if (!error) release_answers(id);
  });
  options_.keep_capsule(std::make_shared<const Failure>(std::move(failure)),
                        [this, id, timer](std::set<common::Digest> present) {
                          capsules_ = std::move(present);
                          timer->cancel();
                          release_answers(id);
                        });
}

void Engine::release_answers(FlightId id) {
  auto held = held_answers_.extract(id);
  if (held) carry_out(std::move(held.mapped()));
}

void Engine::name_capsule(const common::Digest& key, common::Error& error) const {
  if (leaves_capsule(error.kind) && capsules_.contains(key)) error.capsule = options_.capsule_path(key);
}

}  // namespace jitc::service
