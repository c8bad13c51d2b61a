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

// Had from the beginning, so that a rank without memory for a module can take part in its broadcast.
constexpr std::size_t kPiece = std::size_t{1} << 20;
// What a certificate has, and more.
constexpr std::size_t kFewWords = 16;

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

Collectives::Collectives(const jitc_communicator& table, const Pacing& pacing, OnWaiting on_waiting)
    : table_(table), pacing_(pacing), on_waiting_(std::move(on_waiting)) {
  idle_.emplace_back();
  Operation& operation = current_.emplace_back();
  const std::size_t words = std::max(kFewWords, static_cast<std::size_t>(size()));  // at most one for each rank
  operation.send.reserve(words);
  operation.receive.reserve(words);
  operation.bytes.reserve(kPiece);
}

Collectives::~Collectives() {
  if (is_broken_ || !posted_.empty() || is_under_way_) {
    kept_for_ever().keep(posted_);
    kept_for_ever().keep(current_);
  } else if (table_.release) {
    table_.release(table_.state);
  }
}

Outcome<void> Collectives::all_or(std::span<std::uint64_t> words, std::string_view step, Waits waits) {
  Operation& operation = current_.front();
  operation.send.assign(words.begin(), words.end());
  operation.receive.resize(words.size());
  if (const int code = table_.iallreduce_or(table_.state, operation.send.data(), operation.receive.data(), words.size(),
                                            &operation.pending))
    return leave(code, step);
  if (auto done = await_current(step, waits); !done) return done;
  std::ranges::copy(operation.receive, words.begin());
  const auto now = std::chrono::steady_clock::now();
  before_last_ = now - std::exchange(last_reduced_, now);
  return {};
}

// Not for who is in time: what it heard then would be of the others' next call.
Outcome<void> Collectives::confirm(nanoseconds patience, std::string_view step, Waits waits) {
  const nanoseconds limit = waits == Waits::kForArrival ? pacing_.arrival : patience;
  const bool is_late = limit.count() > 0 && before_last_ > limit;
  if (is_late && RollCall::is_under_way(table_)) return time_out({}, step, waits, End::kRollCall);
  return {};
}

Outcome<void> Collectives::broadcast(std::string& bytes, int from, std::string_view step) {
  return in_pieces(bytes.data(), bytes.size(), from, step);
}

Outcome<bool> Collectives::broadcast_sized(std::string& bytes, int from, std::string_view step) {
  std::uint64_t length = bytes.size();
  std::array<char, sizeof length> packed{};
  std::memcpy(packed.data(), &length, sizeof length);
  if (auto done = in_pieces(packed.data(), packed.size(), from, step); !done)
    return std::unexpected(std::move(done.error()));
  std::memcpy(&length, packed.data(), sizeof length);
  return receive(bytes, length, from, step);
}

Outcome<bool> Collectives::receive(std::string& bytes, std::size_t size, int from, std::string_view step) {
  const bool has_memory = with_memory([&] { bytes.resize(size); });
  if (auto done = in_pieces(has_memory ? bytes.data() : nullptr, size, from, step); !done)
    return std::unexpected(std::move(done.error()));
  return has_memory;
}

// Without `bytes` this rank takes part and keeps nothing.
Outcome<void> Collectives::in_pieces(char* bytes, std::size_t size, int from, std::string_view step) {
  Operation& operation = current_.front();
  for (std::size_t at = 0; at < size; at += kPiece) {
    operation.bytes.resize(std::min(kPiece, size - at));
    if (rank() == from) std::copy_n(bytes + at, operation.bytes.size(), operation.bytes.begin());
    if (auto done = start_broadcast(operation, from, step); !done) return done;
    if (auto done = await_current(step); !done) return done;
    if (rank() != from && bytes) std::ranges::copy(operation.bytes, bytes + at);
  }
  return {};
}

// What is waited for until it is complete has been started; if not, it may complete at any time.
Outcome<void> Collectives::await_current(std::string_view step, Waits waits) {
  is_under_way_ = true;
  Outcome<void> done = wait(current_.front(), step, waits);
  if (done) is_under_way_ = false;
  return done;
}

Outcome<void> Collectives::post(std::string bytes, std::string_view step) {
  // Once a beat, for the rank that waits for its own work and not for the others.
  if (RollCall::is_under_way(table_)) return time_out({}, step, Waits::kForASign, End::kRollCall);
  try {
    if (idle_.empty()) idle_.emplace_back();
  } catch (const std::bad_alloc&) {  // then what is under way is all there is
    if (auto done = settle(step); !done) return done;
  }
  posted_.splice(posted_.end(), idle_, idle_.begin());
  posted_.back().bytes = std::move(bytes);
  return start_broadcast(posted_.back(), rank(), step);
}

Outcome<bool> Collectives::advance(std::string_view step) {
  while (!posted_.empty()) {
    Outcome<bool> done = test(posted_.front(), step);
    if (!done || !*done) return done;
    idle_.splice(idle_.end(), posted_, posted_.begin());
  }
  return true;
}

Outcome<void> Collectives::settle(std::string_view step) {
  while (!posted_.empty()) {
    if (auto done = wait(posted_.front(), step); !done) return done;
    idle_.splice(idle_.end(), posted_, posted_.begin());
  }
  return {};
}

void Collectives::abandon(std::string_view why) noexcept {
  if (std::exchange(is_broken_, true) || !RollCall::is_possible(table_)) return;
  // Without the memory for that the others find out by their own patience.
  with_memory([&] { RollCall(table_, {{}, "no longer: " + std::string(why)}, current_).leave(); });
}

Outcome<void> Collectives::start_broadcast(Operation& operation, int from, std::string_view step) {
  if (const int code =
          table_.ibcast(table_.state, operation.bytes.data(), operation.bytes.size(), from, &operation.pending))
    return leave(code, step);
  return {};
}

Outcome<bool> Collectives::test(Operation& operation, std::string_view step) {
  int done = 0;
  if (const int code = table_.test(table_.state, &operation.pending, &done)) return leave(code, step);
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
  bool has_heard = false;  // of a roll call
  for (;;) {
    Outcome<bool> done = test(operation, step);
    if (!done) return std::unexpected(std::move(done.error()));
    if (*done) return {};
    const nanoseconds waited = silence.so_far();
    if (limit.count() > 0 && waited >= limit) return time_out(waited, step, waits, End::kPatience);
    if (waited >= next_beat) {
      // A rank that is done with this operation may give up a later one: what it leaves complete comes within a beat.
      if (has_heard) return time_out(waited, step, waits, End::kRollCall);
      has_heard = RollCall::is_under_way(table_);
      if (is_arrival && on_waiting_) on_waiting_(std::chrono::duration<double>(waited).count());
      next_beat = waited + pacing_.beat;
    }
    pause.after(waited);
  }
}

// An operation could not be started, or its test failed, on this rank alone perhaps: the others are told.
std::unexpected<Failure> Collectives::leave(int code, std::string_view step) {
  Failure failure = communicator_failure(code, step);
  abandon(failure.error.message);
  return std::unexpected(std::move(failure));
}

std::unexpected<Failure> Collectives::time_out(nanoseconds waited, std::string_view step, Waits waits, End end) {
  is_broken_ = true;
  const bool is_arrival = waits == Waits::kForArrival;
  try {
    std::string why = call_roll(waited, step);
    if (why.empty()) why = is_arrival ? "not all ranks began it" : "another rank has stopped or failed during it";
    Error error{ErrorKind::kTimedOut, "rank " + std::to_string(rank()) + " waited " + seconds_text(waited) + " " +
                                          std::string(step) +
                                          (end == End::kRollCall ? ", until another rank gave up: " : ": ") + why};
    error.thing = "communicator of " + std::to_string(size()) + " ranks";
    error.remedy = is_arrival ? "do all ranks make this call? See where the others are; JITC_ARRIVAL_TIMEOUT is how "
                                "long ranks may be apart"
                              : "see which rank failed or is stopped; JITC_TIMEOUT is the silence allowed";
    error.remedy += ". End the program by MPI_Abort: the ranks are out of step for good";
    return std::unexpected(Failure{std::move(error), {}, true});
  } catch (const std::bad_alloc&) {  // the time-out itself is to be told all the same
    return std::unexpected(Failure{{ErrorKind::kTimedOut, "a rank is lost", {}, {}}, {}, true});
  }
}

// Empty: nothing is known of the others.
std::string Collectives::call_roll(nanoseconds waited, std::string_view step) {
  if (!RollCall::is_possible(table_)) return {};
  try {
    RollCall roll_call(table_, {waited, std::string(step)}, current_);
    advance_for(is_root() ? pacing_.roll_call : 2 * pacing_.roll_call, roll_call, pacing_);
    roll_call.close();
    advance_for(pacing_.roll_call, roll_call, pacing_);
    return roll_call.take_findings();
  } catch (const std::bad_alloc&) {  // as above
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
