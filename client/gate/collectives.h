// Non-blocking collectives with patience: every wait has a deadline, and what is given up stays allocated.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client/gate/failure.h"
#include "client/gate/operation.h"
#include "client/include/jitc/jitc.h"

namespace jitc::gate {

struct Pacing {
  // Nothing completes for so long: the other side is lost. 0: no limit.
  std::chrono::nanoseconds silence = std::chrono::seconds(30);
  // The same while ranks wait for others to begin the call: those may be at work for long, writing files or assembling.
  // 0: no limit.
  std::chrono::nanoseconds arrival = std::chrono::minutes(10);
  std::chrono::nanoseconds beat = std::chrono::seconds(1);
  // After a time-out: so long rank 0 asks who waits where, and the others wait for it twice as long, since it hears
  // that they have given up with its next beat.
  std::chrono::nanoseconds roll_call = std::chrono::seconds(5);
  // A wait first yields, for ranks that arrive together; then it sleeps, since the cores belong to the compiler.
  std::chrono::nanoseconds yielding = std::chrono::milliseconds(1);
  std::chrono::nanoseconds first_sleep = std::chrono::microseconds(50);
  std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(5);
};

// What a wait is for, which decides how long it may last.
enum class Waits { kForASign, kForArrival };

// A communicator of one rank: every operation is complete at once.
jitc_communicator serial_communicator();

// All functions are called by one thread. A failure is_broken, and no function may be called after one. To take part
// needs no memory but what the constructor got: a rank that has none left can end a call together with the others.
class Collectives {
 public:
  // Hears every `beat`, while others have not arrived, for how many seconds.
  using OnWaiting = std::function<void(double seconds)>;
  // Takes the table over: releases it at the end, unless an operation was abandoned. `on_waiting` may be empty.
  Collectives(const jitc_communicator& table, const Pacing& pacing, OnWaiting on_waiting = {});
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  int rank() const { return table_.rank; }
  int size() const { return table_.ranks; }
  bool is_root() const { return table_.rank == 0; }
  const Pacing& pacing() const { return pacing_; }

  // Replaces `words` by their OR over all ranks. `step` names what is done, for the error of a rank that waits in vain.
  Outcome<void> all_or(std::span<std::uint64_t> words, std::string_view step, Waits waits = Waits::kForASign);
  // After the last all_or of a call that succeeds: a rank that came to it late, by more than the least `patience` of
  // all ranks (0: nobody's ends), may have found complete what the others have given up.
  Outcome<void> confirm(std::chrono::nanoseconds patience, std::string_view step, Waits waits);
  // Replaces `bytes`, of equal size on all ranks, by those of rank `from`; in pieces, each with its own deadline.
  Outcome<void> broadcast(std::string& bytes, int from, std::string_view step);
  // The same where only `from` knows the size. False: see receive().
  Outcome<bool> broadcast_sized(std::string& bytes, int from, std::string_view step);
  // Takes what rank `from` broadcasts, `size` bytes. False: this rank has no memory for them; it took part all the same
  // and kept nothing.
  Outcome<bool> receive(std::string& bytes, std::size_t size, int from, std::string_view step);

  // Starts a broadcast from this rank and returns. A slow rank holds up nobody else.
  Outcome<void> post(std::string bytes, std::string_view step);
  // Progresses what was posted; true when all of it is complete.
  Outcome<bool> advance(std::string_view step);
  // Waits until all of it is complete.
  Outcome<void> settle(std::string_view step);
  // Nothing more is done with the communicator; what is under way keeps its memory. Tells rank 0, or as rank 0 all
  // others, why, where that is possible: they need not wait for this rank.
  void abandon(std::string_view why) noexcept;

 private:
  Outcome<void> in_pieces(char* bytes, std::size_t size, int from, std::string_view step);
  Outcome<void> await_current(std::string_view step, Waits waits = Waits::kForASign);
  Outcome<void> start_broadcast(Operation& operation, int from, std::string_view step);
  Outcome<bool> test(Operation& operation, std::string_view step);
  Outcome<void> wait(Operation& operation, std::string_view step, Waits waits = Waits::kForASign);
  std::unexpected<Failure> leave(int code, std::string_view step);
  // Why a wait ends without what was waited for: patience is over, or another rank's is.
  enum class End { kPatience, kRollCall };
  std::unexpected<Failure> time_out(std::chrono::nanoseconds waited, std::string_view step, Waits waits, End end);
  std::string call_roll(std::chrono::nanoseconds waited, std::string_view step);
  Failure communicator_failure(int code, std::string_view step) const;

  jitc_communicator table_;
  Pacing pacing_;
  OnWaiting on_waiting_;
  Operations posted_;          // in the order in which they were started
  Operations idle_;            // for further posts
  Operations current_;         // first what is waited for; after giving up the roll call's
  bool is_under_way_ = false;  // that first one
  std::chrono::steady_clock::time_point last_reduced_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds before_last_{};  // from the reduction before the last one
  bool is_broken_ = false;
};

}  // namespace jitc::gate
