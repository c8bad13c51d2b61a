// Asks, for the scheduler, whether another daemon on the store compiles a key, and tells the others what this one
// compiles (daemon/store/leases.h). State thread only; the calls on the store are made by a thread of their own, so
// that a directory that hangs holds up no look-up, and a compile for a moment only.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/digest.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/service/asio.h"
#include "daemon/store/leases.h"

namespace jitc::service {

class Claims {
 public:
  using FlightId = schedule::FlightId;
  using Duration = std::chrono::steady_clock::duration;
  using Tell = std::function<void(FlightId, schedule::ClaimOutcome)>;
  struct Patience {
    Duration with_holder = std::chrono::seconds(10);  // whose lease says the same all the time
    Duration with_store = std::chrono::seconds(1);    // that answers no call: compiled without lease then
  };

  // `tell` hears of each claim, later: kOurs, with a lease wherever one can be made, kOver, or kElsewhere and later
  // kOver; with these there is none.
  Claims(asio::io_context& state, store::Leases& leases, Tell tell, Patience patience);

  void claim(FlightId flight, const common::Digest& key);
  // It is compiled, no longer to be, or back in the queue. Its lease goes; `tell` hears of it no more.
  void drop(FlightId flight);
  void end();   // drops all; no lease is made any more
  void join();  // after end(): until the last one has gone

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    common::Digest key;
    std::uint64_t number = 0;  // of the claim: a flight may be dropped and claimed anew while a call is under way
    enum class State { kAsked, kElsewhere, kHeld } state = State::kAsked;
    std::string text;   // kHeld: the holder; kElsewhere: what their lease says
    Duration silent{};  // kElsewhere: since that changed
    Duration waited{};  // since the last look
    Duration pace{};    // between looks
    bool looking = false;
    std::uint64_t beats = 0;  // kHeld
  };
  struct Beat {
    common::Digest key;
    std::string holder;
    std::uint64_t beats;
  };

  template <class Work, class Then>
  void call(Work work, Then then);
  bool is_stuck() const;
  void ask(FlightId flight, const Entry& entry, std::optional<std::string> silent_text);
  void answered(FlightId flight, store::Claim claim, bool was_silent);
  void settle(FlightId flight, schedule::ClaimOutcome outcome);
  void release(const common::Digest& key, const std::string& holder);
  void arm();
  void tick();
  void look(FlightId flight, Entry& entry);
  void beat();

  asio::io_context& state_;
  store::Leases& leases_;
  const Tell tell_;
  const Patience patience_;
  std::unordered_map<FlightId, Entry> entries_;
  std::uint64_t claims_ = 0;  // so far
  unsigned calls_ = 0;        // under way, or waiting for the thread
  Clock::time_point moved_;   // when the thread last began or ended one
  Clock::time_point ticked_;  // armed or ticked last
  Duration since_beat_{};
  bool ticking_ = false, beating_ = false;
  std::atomic<bool> ended_{false};
  asio::steady_timer timer_;
  asio::thread_pool thread_{1};
};

}  // namespace jitc::service
