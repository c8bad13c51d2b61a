// Random faults of one collective call, and what must come of them on all ranks. Drawn from a seed alone, so that every
// rank knows what happens on the others. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/gate/wire.h"
#include "common/error.h"

namespace jitc::testing {

// What is at fault on one rank, apart from the root's store and compiler.
struct RankFaults {
  bool holds = false;  // not a fault: it has the module that it asks for
  std::optional<common::ErrorKind> cannot_ask;
  int ahead = 0;                    // of the others: it asks for the module after so many more
  int flags = 0;                    // of several settings of the compiler, this one
  int manifest = 0;                 // of several orders of constants, this one
  bool lacks_instructions = false;  // that artifacts of the store and the compiler need in this call
};

enum class StoreDoes { kMisses, kFinds, kHangsThenMisses, kHangsThenFinds };
enum class CompilerDoes { kCompiles, kCompilesSlowly, kFails, kFailsSlowly, kThrows, kGivesCorrupt, kGivesUnloadable };
// Whether ranks that ask for something else may take what the root asks for. kMixed: only the odd ones say so.
enum class Divergence { kStrict, kAdopting, kMixed };

struct FaultSchedule {
  int module = 0;  // that the ranks ask for
  Divergence divergence = Divergence::kStrict;
  bool is_after_skip = false;  // in the call before, the ranks ahead were so by one call, too
  std::vector<RankFaults> ranks;
  StoreDoes store = StoreDoes::kMisses;
  CompilerDoes compiler = CompilerDoes::kCompiles;
  common::ErrorKind compile_error = common::ErrorKind::kInternal;
};

// The one outcome of all ranks.
struct ExpectedOutcome {
  std::optional<common::ErrorKind> error;
  std::vector<int> failing;  // the ranks that the failure names
  bool names_skipped_call = false;
  gate::Origin origin = gate::Origin::kMemory;
  bool looks = false;     // the root asks the store,
  bool compiles = false;  // and the compiler
  bool is_slow = false;   // so that all ranks hear beats meanwhile
};

namespace detail {

constexpr int kErrorKinds = static_cast<int>(common::ErrorKind::kInternal);

class FaultDice {
 public:
  explicit FaultDice(std::uint64_t seed) : random_(seed) {}
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  bool once_in(int times) { return below(times) == 0; }
  common::ErrorKind error_kind() { return static_cast<common::ErrorKind>(1 + below(kErrorKinds)); }

 private:
  std::mt19937_64 random_;
};

inline FaultSchedule draw_faults(FaultDice& dice, int ranks) {
  FaultSchedule schedule;
  schedule.divergence = static_cast<Divergence>(dice.below(3));
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  // In half of the schedules ranks hardly have faults, so that many get as far as the store, the compiler, the loader.
  const int rarity = dice.once_in(2) ? 1000 * ranks : 6 * ranks;
  const int holders = dice.below(4);  // 0, 1: nobody; 2: some; 3: all
  for (RankFaults& rank : schedule.ranks) {
    rank.holds = holders == 3 || (holders == 2 && dice.once_in(2));
    if (dice.once_in(rarity)) rank.cannot_ask = dice.error_kind();
    if (dice.once_in(rarity)) rank.ahead = 2;
    if (dice.once_in(rarity)) rank.flags = 1;
    if (dice.once_in(rarity)) rank.manifest = 1;
    if (dice.once_in(rarity)) rank.lacks_instructions = true;
  }
  schedule.store = dice.once_in(2) ? StoreDoes::kMisses : static_cast<StoreDoes>(dice.below(4));
  schedule.compiler = static_cast<CompilerDoes>(dice.below(7));
  schedule.compile_error = dice.error_kind();
  return schedule;
}

// Each kind of error once as the compiler's, and once as the reason why a rank cannot make its request.
inline void append_error_kinds(int ranks, std::vector<FaultSchedule>& schedules) {
  for (int number = 1; number <= kErrorKinds; ++number) {
    const auto kind = static_cast<common::ErrorKind>(number);
    FaultSchedule schedule;
    schedule.ranks.resize(static_cast<std::size_t>(ranks));
    schedule.compiler = CompilerDoes::kFails;
    schedule.compile_error = kind;
    schedules.push_back(schedule);
    schedule.ranks[static_cast<std::size_t>(number % ranks)].cannot_ask = kind;
    schedules.push_back(schedule);
  }
}

// Two calls: a rank has skipped one, and asks in each for what the others ask for in the next.
inline void append_skipped_call(FaultDice& dice, int ranks, std::vector<FaultSchedule>& schedules) {
  FaultSchedule schedule;
  schedule.divergence = static_cast<Divergence>(dice.below(3));
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  schedule.ranks[static_cast<std::size_t>(dice.below(ranks))].ahead = 1;
  schedules.push_back(schedule);
  schedule.is_after_skip = true;
  schedules.push_back(schedule);
}

}  // namespace detail

inline std::vector<FaultSchedule> draw_fault_schedules(std::uint64_t seed, int ranks, int count) {
  detail::FaultDice dice(seed);
  std::vector<FaultSchedule> schedules;
  detail::append_error_kinds(ranks, schedules);
  while (std::ssize(schedules) < count) {
    if (dice.once_in(12)) {
      detail::append_skipped_call(dice, ranks, schedules);
    } else {
      schedules.push_back(detail::draw_faults(dice, ranks));
    }
  }
  // New modules in each schedule, but for the second one of a skipped call.
  int module = 0;
  for (FaultSchedule& schedule : schedules) schedule.module = module += schedule.is_after_skip ? 1 : 4;
  return schedules;
}

namespace detail {

inline bool asks_alike(const RankFaults& a, const RankFaults& b) { return a.ahead == b.ahead && a.flags == b.flags; }

// After all ranks ask for the same, and some lack the module.
inline void expect_hand_off(const FaultSchedule& schedule, const std::vector<int>& lacking, ExpectedOutcome& expected) {
  using common::ErrorKind;
  if (lacking.front() != 0) {
    expected.origin = gate::Origin::kRank;
    return;
  }
  const bool is_found = schedule.store == StoreDoes::kFinds || schedule.store == StoreDoes::kHangsThenFinds;
  expected.looks = true;
  expected.is_slow = schedule.store == StoreDoes::kHangsThenFinds || schedule.store == StoreDoes::kHangsThenMisses;
  expected.origin = is_found ? gate::Origin::kStore : gate::Origin::kCompiled;
  std::optional<ErrorKind> everywhere;  // where the module is lacking
  if (!is_found) {
    expected.compiles = true;
    switch (schedule.compiler) {
      case CompilerDoes::kCompilesSlowly:
        expected.is_slow = true;
        break;
      case CompilerDoes::kFailsSlowly:
        expected.is_slow = true;
        [[fallthrough]];
      case CompilerDoes::kFails:
        expected.error = schedule.compile_error;
        return;
      case CompilerDoes::kThrows:
        expected.error = ErrorKind::kInternal;
        return;
      case CompilerDoes::kGivesCorrupt:
        everywhere = ErrorKind::kCorrupt;
        break;
      case CompilerDoes::kGivesUnloadable:
        everywhere = ErrorKind::kNotLoaded;
        break;
      case CompilerDoes::kCompiles:
        break;
    }
  }
  for (const int rank : lacking) {
    // What does not verify is looked at no further.
    const bool is_refused = schedule.ranks[static_cast<std::size_t>(rank)].lacks_instructions &&
                            everywhere.value_or(ErrorKind::kRefused) != ErrorKind::kCorrupt;
    if (!is_refused && !everywhere) continue;
    if (!expected.error) expected.error = is_refused ? ErrorKind::kRefused : *everywhere;
    expected.failing.push_back(rank);
  }
}

}  // namespace detail

inline ExpectedOutcome expected_outcome(const FaultSchedule& schedule) {
  using common::ErrorKind;
  ExpectedOutcome expected;
  const RankFaults& root = schedule.ranks.front();
  for (int rank = 0; rank < std::ssize(schedule.ranks); ++rank) {
    const auto& cannot_ask = schedule.ranks[static_cast<std::size_t>(rank)].cannot_ask;
    if (!cannot_ask) continue;
    if (!expected.error) expected.error = cannot_ask;
    expected.failing.push_back(rank);
  }
  if (expected.error) return expected;

  std::vector<int> lacking;
  for (int rank = 0; rank < std::ssize(schedule.ranks); ++rank) {
    const RankFaults& self = schedule.ranks[static_cast<std::size_t>(rank)];
    const bool differs = !detail::asks_alike(self, root) || self.manifest != root.manifest;
    // Also after a skipped call, since that one was adopted: what the ranks asked for then is no sign of it.
    const bool may_adopt = schedule.divergence == Divergence::kAdopting && self.flags == root.flags;
    if (differs && !may_adopt) expected.failing.push_back(rank);
    if (!self.holds || !detail::asks_alike(self, root)) lacking.push_back(rank);
  }
  if (!expected.failing.empty()) {
    expected.error = ErrorKind::kDivergent;
    expected.names_skipped_call = schedule.is_after_skip;
  } else if (!lacking.empty()) {
    detail::expect_hand_off(schedule, lacking, expected);
  }
  return expected;
}

}  // namespace jitc::testing
