#include "client/gate/collectives.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "client/gate/roll_call.h"
#include "client/gate/silence.h"

namespace jitc::gate {
namespace {

using common::Error;
using common::ErrorKind;
using std::chrono::nanoseconds;

// Small enough to be had by a rank that has little memory left.
constexpr std::size_t kPiece = std::size_t{1} << 20;

// Operations that were given up may complete, and write into their buffers, at any time until the process ends. So they
// are kept until then, on purpose, where leak checkers can see that it was meant. Keeping needs no memory: giving up
// often follows from having none.
class KeptForEver {
 public:
  void keep(Operations& operations) {
    const std::lock_guard lock(mutex_);
    list_.splice(list_.end(), operations);
  }

 private:
  std::mutex mutex_;
  Operations list_;
};

KeptForEver& kept_for_ever() {
  static auto& kept = *new KeptForEver;
  return kept;
}

// A wait first yields, then sleeps for longer and longer.
class Pause {
 public:
  explicit Pause(const Pacing& pacing) : pacing_(pacing), next_(pacing.first_sleep) {}
  void after(nanoseconds waited) {
    if (waited < pacing_.yielding) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, pacing_.longest_sleep);
  }

 private:
  const Pacing& pacing_;
  nanoseconds next_;
};

constexpr int kLooksAtOnce = 30;

// Until all of it is done, or patience is over.
void advance_for(nanoseconds patience, RollCall& roll_call, const Pacing& pacing) {
  Silence silence;
  Pause pause(pacing);
  while (!roll_call.advance()) {
    const nanoseconds waited = silence.so_far();
    if (waited >= patience) return;
    pause.after(waited);
  }
}

}  // namespace

jitc_communicator serial_communicator() {
  jitc_communicator table{};
  table.size = sizeof table;
  table.ranks = 1;
  table.iallreduce_or = [](void*, const std::uint64_t* send, std::uint64_t* receive, std::size_t count, jitc_pending*) {
    std::memcpy(receive, send, count * sizeof *send);
    return 0;
  };
  table.ibcast = [](void*, void*, std::size_t, int, jitc_pending*) { return 0; };
  table.test = [](void*, jitc_pending*, int* done) {
    *done = 1;
    return 0;
  };
  return table;
}

Collectives::~Collectives() {
  if (is_broken_ || !posted_.empty() || !current_.empty()) {
    kept_for_ever().keep(posted_);
    kept_for_ever().keep(current_);
  } else if (table_.release) {
    table_.release(table_.state);
  }
}

Outcome<void> Collectives::all_or(std::span<std::uint64_t> words, std::string_view step, Waits waits) {
  current_.splice(current_.end(), spare_);
  if (current_.empty()) current_.emplace_back();
  Operation& operation = current_.back();
  operation.send.assign(words.begin(), words.end());
  operation.receive.resize(words.size());
  if (const int code = table_.iallreduce_or(table_.state, operation.send.data(), operation.receive.data(), words.size(),
                                            &operation.pending))
    return give_up(communicator_failure(code, step));
  if (auto done = wait(operation, step, waits); !done) return done;
  std::ranges::copy(operation.receive, words.begin());
  spare_.splice(spare_.end(), current_);
  return {};
}

Outcome<void> Collectives::broadcast(std::string& bytes, int from, std::string_view step) {
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const std::size_t length = std::min(kPiece, bytes.size() - at);
    Operation& operation = current_.emplace_back();
    operation.bytes.assign(bytes, at, length);
    if (auto done = start_broadcast(operation, from, step); !done) return done;
    if (auto done = wait(operation, step); !done) return done;
    if (rank() != from) operation.bytes.copy(bytes.data() + at, length);
    current_.pop_back();
  }
  return {};
}

Outcome<void> Collectives::broadcast_sized(std::string& bytes, int from, std::string_view step) {
  std::uint64_t length = bytes.size();
  std::string packed(sizeof length, '\0');
  std::memcpy(packed.data(), &length, sizeof length);
  if (auto done = broadcast(packed, from, step); !done) return done;
  std::memcpy(&length, packed.data(), sizeof length);
  bytes.resize(length);
  return broadcast(bytes, from, step);
}

Outcome<bool> Collectives::receive(std::string& bytes, std::size_t size, int from, std::string_view step) {
  Operation& operation = current_.emplace_back();
  operation.bytes.resize(std::min(kPiece, size));  // first: with it this rank can take part whatever follows
  bool has_memory = true;
  try {
    bytes.resize(size);
  } catch (const std::bad_alloc&) {
    has_memory = false;
  }
  for (std::size_t at = 0; at < size; at += kPiece) {
    operation.bytes.resize(std::min(kPiece, size - at));
    if (auto done = start_broadcast(operation, from, step); !done) return std::unexpected(std::move(done.error()));
    if (auto done = wait(operation, step); !done) return std::unexpected(std::move(done.error()));
    if (has_memory) operation.bytes.copy(bytes.data() + at, operation.bytes.size());
  }
  current_.pop_back();
  return has_memory;
}

Outcome<void> Collectives::post(std::string bytes, std::string_view step) {
  Operation& operation = posted_.emplace_back();
  operation.bytes = std::move(bytes);
  return start_broadcast(operation, rank(), step);
}

Outcome<bool> Collectives::advance(std::string_view step) {
  while (!posted_.empty()) {
    Outcome<bool> done = test(posted_.front(), step);
    if (!done || !*done) return done;
    posted_.pop_front();
  }
  return true;
}

Outcome<void> Collectives::settle(std::string_view step) {
  while (!posted_.empty()) {
    if (auto done = wait(posted_.front(), step); !done) return done;
    posted_.pop_front();
  }
  return {};
}

Outcome<void> Collectives::start_broadcast(Operation& operation, int from, std::string_view step) {
  if (const int code =
          table_.ibcast(table_.state, operation.bytes.data(), operation.bytes.size(), from, &operation.pending))
    return give_up(communicator_failure(code, step));
  return {};
}

Outcome<bool> Collectives::test(Operation& operation, std::string_view step) {
  int done = 0;
  if (const int code = table_.test(table_.state, &operation.pending, &done))
    return give_up(communicator_failure(code, step));
  return done != 0;
}

Outcome<void> Collectives::wait(Operation& operation, std::string_view step, Waits waits) {
  const bool is_arrival = waits == Waits::kForArrival;
  const nanoseconds limit = is_arrival ? pacing_.arrival : pacing_.silence;
  // Ranks that arrive together are through within a few looks: those cost less than to ask for the time and to yield,
  // and on a busy machine to yield is to wait for another process's turn.
  for (int look = 0; look < kLooksAtOnce; ++look) {
    Outcome<bool> done = test(operation, step);
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return {};
  }
  Silence silence;
  Pause pause(pacing_);
  nanoseconds next_beat = pacing_.beat;
  for (;;) {
    Outcome<bool> done = test(operation, step);
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return {};
    const nanoseconds waited = silence.so_far();
    if (limit.count() > 0 && waited >= limit) return give_up(timed_out(waited, step, waits));
    if (is_arrival && on_waiting_ && waited >= next_beat) {
      on_waiting_(std::chrono::duration<double>(waited).count());
      next_beat = waited + pacing_.beat;
    }
    pause.after(waited);
  }
}

std::unexpected<Failure> Collectives::give_up(Failure failure) {
  is_broken_ = true;
  return std::unexpected(std::move(failure));
}

Failure Collectives::timed_out(nanoseconds waited, std::string_view step, Waits waits) {
  const bool is_arrival = waits == Waits::kForArrival;
  std::string why = call_roll(waited, step);
  if (why.empty()) why = is_arrival ? "not all ranks began it" : "another rank has stopped or failed during it";
  Error error{ErrorKind::kTimedOut, "rank " + std::to_string(rank()) + " waited " + seconds_text(waited) + " " +
                                        std::string(step) + ": " + why};
  error.thing = "communicator of " + std::to_string(size()) + " ranks";
  error.remedy = is_arrival ? "do all ranks make this call? See where the others are; JITC_ARRIVAL_TIMEOUT is how long "
                              "ranks may be apart"
                            : "see which rank failed or is stopped; JITC_TIMEOUT is the silence allowed";
  error.remedy += ". End the program by MPI_Abort: the ranks are out of step for good";
  return {std::move(error), {}, true};
}

// Empty: nothing is known of the others.
std::string Collectives::call_roll(nanoseconds waited, std::string_view step) {
  if (!RollCall::is_possible(table_)) return {};
  try {
    RollCall roll_call(table_, {waited, std::string(step)}, current_);
    advance_for(is_root() ? pacing_.roll_call : 2 * pacing_.roll_call, roll_call, pacing_);
    roll_call.close();
    advance_for(pacing_.roll_call, roll_call, pacing_);
    return roll_call.findings();
  } catch (const std::bad_alloc&) {  // the time-out itself is to be told all the same
    return {};
  }
}

Failure Collectives::communicator_failure(int code, std::string_view step) const {
  std::array<char, 512> text{};
  if (table_.error_text) table_.error_text(table_.state, code, text.data(), text.size());
  Error error{ErrorKind::kBroken, "the communicator failed " + std::string(step) + ": code " + std::to_string(code) +
                                      (text[0] ? std::string(" (") + text.data() + ")" : "")};
  error.remedy = "end the program; the ranks cannot talk to each other any more";
  return {std::move(error), {}, true};
}

}  // namespace jitc::gate
