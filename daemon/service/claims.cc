#include "daemon/service/claims.h"

#include <algorithm>
#include <utility>

namespace jitc::service {
namespace {

using namespace std::chrono_literals;
using schedule::ClaimOutcome;
using store::Claim;

constexpr auto kTick = 250ms;
constexpr auto kSlowestPace = 1s;  // of looks at another's lease
constexpr auto kBeat = 2s;
// A daemon that was stopped for an hour has not watched anybody for an hour.
constexpr auto kLongestStep = 1s;

}  // namespace

Claims::Claims(asio::io_context& state, store::Leases& leases, Tell tell, Patience patience)
    : state_(state), leases_(leases), tell_(std::move(tell)), patience_(patience), timer_(state) {}

void Claims::claim(FlightId flight, const common::Digest& key) {
  entries_[flight] = {.key = key, .number = ++claims_, .text = {}, .pace = kTick};
  if (is_stuck()) {
    asio::post(state_, [this, flight] { settle(flight, ClaimOutcome::kOurs); });
  } else {
    ask(flight, entries_.at(flight), {});
  }
  arm();
}

void Claims::drop(FlightId flight) {
  const auto entry = entries_.find(flight);
  if (entry == entries_.end()) return;
  if (entry->second.state == Entry::State::kHeld) release(entry->second.key, entry->second.text);
  entries_.erase(entry);
}

void Claims::end() {
  ended_ = true;
  while (!entries_.empty()) drop(entries_.begin()->first);
}

void Claims::join() { thread_.join(); }

// ---- calls on the store ---------------------------------------------------------------------------------------------

// `then` gets what `work` gave, on the state thread.
template <class Work, class Then>
void Claims::call(Work work, Then then) {
  if (calls_++ == 0) moved_ = Clock::now();
  asio::post(thread_, [this, work = std::move(work), then = std::move(then)]() mutable {
    asio::post(state_, [this, then = std::move(then), result = work()]() mutable {
      --calls_;
      moved_ = Clock::now();
      then(std::move(result));
    });
  });
}

bool Claims::is_stuck() const { return calls_ > 0 && Clock::now() - moved_ > patience_.with_store; }

// `silent_text`: what the lease has said for too long; it is taken over if it says so still.
void Claims::ask(FlightId flight, const Entry& entry, std::optional<std::string> silent_text) {
  const bool was_silent = silent_text.has_value();
  call(
      [this, key = entry.key, text = std::move(silent_text)] {
        if (ended_) return Claim{};
        return text ? leases_.take_over(key, *text) : leases_.claim(key);
      },
      [this, flight, key = entry.key, number = entry.number, was_silent](Claim claim) {
        const auto found = entries_.find(flight);
        if (found != entries_.end() && found->second.number == number) {
          answered(flight, std::move(claim), was_silent);
        } else if (claim.kind == Claim::Kind::kOurs) {  // dropped, or compiled without, meanwhile
          release(key, claim.text);
        }
      });
}

void Claims::answered(FlightId flight, Claim claim, bool was_silent) {
  Entry& entry = entries_.at(flight);
  const bool is_first = entry.state == Entry::State::kAsked;
  entry.looking = false;
  switch (claim.kind) {
    case Claim::Kind::kOurs:
      // Its slot was given back: whoever can start it first, here or elsewhere, makes the lease anew.
      if (!is_first) {
        release(entry.key, claim.text);
        return settle(flight, ClaimOutcome::kOver);
      }
      entry.state = Entry::State::kHeld;
      entry.text = std::move(claim.text);
      return tell_(flight, ClaimOutcome::kOurs);
    case Claim::Kind::kTheirs: {
      const bool is_same = claim.text == entry.text;
      if (is_same && was_silent) return settle(flight, ClaimOutcome::kOver);  // it cannot be removed
      if (!is_same) entry.silent = {};
      entry.text = std::move(claim.text);
      if (!is_first) return;
      entry.state = Entry::State::kElsewhere;
      return tell_(flight, ClaimOutcome::kElsewhere);
    }
    case Claim::Kind::kPublished:
      return settle(flight, ClaimOutcome::kOver);
    case Claim::Kind::kNone:
      return settle(flight, is_first ? ClaimOutcome::kOurs : ClaimOutcome::kOver);
  }
}

// Nothing is held for it, and no more to be asked.
void Claims::settle(FlightId flight, ClaimOutcome outcome) {
  if (entries_.erase(flight) > 0) tell_(flight, outcome);
}

void Claims::release(const common::Digest& key, const std::string& holder) {
  call(
      [this, key, holder] {
        leases_.release(key, holder);
        return true;
      },
      [](bool) {});
}

// ---- time -----------------------------------------------------------------------------------------------------------

void Claims::arm() {
  if (ticking_ || entries_.empty()) return;
  ticking_ = true;
  ticked_ = Clock::now();
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    ticking_ = false;
    if (error) return;
    tick();
    arm();
  });
}

void Claims::tick() {
  const Duration step = std::min<Duration>(Clock::now() - ticked_, kLongestStep);
  std::vector<std::pair<FlightId, ClaimOutcome>> settled;
  for (auto& [flight, entry] : entries_) {
    entry.silent += step;
    entry.waited += step;
    if (entry.state == Entry::State::kAsked && is_stuck()) {
      settled.emplace_back(flight, ClaimOutcome::kOurs);
    } else if (entry.state == Entry::State::kElsewhere) {
      if (is_stuck() && entry.silent >= patience_.with_holder) settled.emplace_back(flight, ClaimOutcome::kOver);
      look(flight, entry);
    }
  }
  since_beat_ += step;
  if (since_beat_ >= kBeat) beat();
  for (const auto& [flight, outcome] : settled) settle(flight, outcome);
}

void Claims::look(FlightId flight, Entry& entry) {
  if (entry.looking || entry.waited < entry.pace) return;
  entry.looking = true;
  entry.waited = {};
  entry.pace = std::min<Duration>(2 * entry.pace, kSlowestPace);
  ask(flight, entry, entry.silent >= patience_.with_holder ? std::optional(entry.text) : std::nullopt);
}

void Claims::beat() {
  if (beating_) return;  // the last ones are under way still
  std::vector<Beat> beats;
  for (auto& [_, entry] : entries_) {
    if (entry.state == Entry::State::kHeld) beats.push_back({entry.key, entry.text, ++entry.beats});
  }
  since_beat_ = {};
  if (beats.empty()) return;
  beating_ = true;
  call(
      [this, beats = std::move(beats)]() mutable {
        std::erase_if(beats, [this](const Beat& one) { return leases_.beat(one.key, one.holder, one.beats); });
        return std::move(beats);
      },
      [this](const std::vector<Beat>& lost) {
        beating_ = false;
        for (const Beat& one : lost) {  // compiled without from now on
          std::erase_if(entries_, [&one](const auto& entry) { return entry.second.text == one.holder; });
        }
      });
}

}  // namespace jitc::service
