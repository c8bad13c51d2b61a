// The gate's protocol through every interleaving of two, three and four ranks, whatever each of them sees: nobody waits
// for ever, all end alike, nothing is compiled twice. And machines that are wrong in the ways in which gates have been
// wrong, which the same search must find.
#include "tests/support/gate_explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace jitc::gate {
namespace {

using testing::Behaviour;
using testing::Exploration;
using testing::GateExplorer;
using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMostRanks = 3;  // of all combinations
#else
constexpr std::size_t kMostRanks = 4;
#endif
constexpr int kBeats = 1;

// What may befall a rank in a call for one module.
std::vector<Behaviour> all_behaviours(bool is_strict) {
  std::vector<Behaviour> all{
      {.name = "has it", .holds = {true}},
      {.name = "needs it"},
      {.name = "cannot load", .can_load = false},
      {.name = "has no memory for it", .has_memory = false},
      {.name = "cannot make its request", .has_request = false},
      {.name = "has another text", .call = 1},
      {.name = "has another manifest", .holds = {true}, .call = 2},
      {.name = "skipped a call", .call = 3, .is_adoptable = false},
      {.name = "stops", .may_stop = true},
  };
  for (Behaviour& one : all) one.is_strict = is_strict;
  if (!is_strict) all.push_back({.name = "adopts nothing", .is_strict = true});
  return all;
}

struct Sum {
  std::size_t scenarios = 0;
  std::size_t states = 0;
  std::size_t ends = 0;
  std::size_t successes = 0;
};

// The root behaves in each way, and the others, which are alike, in each selection of ways. Ends at the first
// violation.
template <class Machine>
std::string explore_all(GateExplorer<Machine>& explorer, std::size_t size, std::size_t ways, Sum& sum) {
  std::vector<std::size_t> ranks(size, 0);
  for (;;) {
    for (const bool is_buffered : {true, false}) {
      const Exploration found = explorer.explore(ranks, is_buffered);
      ++sum.scenarios;
      sum.states += found.states;
      sum.ends += found.ends;
      sum.successes += found.successes;
      if (!found.violation.empty()) return found.violation;
    }
    // The next non-descending sequence of the others, then the root's next way.
    std::size_t at = size - 1;
    while (at > 0 && ranks[at] == ways - 1) --at;
    if (at == 0 && ++ranks[0] == ways) return {};
    const std::size_t next = at == 0 ? 0 : ranks[at] + 1;
    for (std::size_t i = std::max<std::size_t>(at, 1); i < size; ++i) ranks[i] = next;
  }
}

void tell(const char* what, std::size_t size, const Sum& sum) {
  std::printf("%s, %zu ranks: %zu scenarios, %zu states, %zu ends, %zu of them with the module\n", what, size,
              sum.scenarios, sum.states, sum.ends, sum.successes);
}

class GateProtocol : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Strictness, GateProtocol, ::testing::Values(true, false),
                         [](const auto& one) { return one.param ? "Strict" : "Adopting"; });

TEST_P(GateProtocol, HasNoDeadlockAndOneOutcome) {
  const std::vector<Behaviour> ways = all_behaviours(GetParam());
  for (std::size_t size = 2; size <= kMostRanks; ++size) {
    GateExplorer<Protocol> explorer(ways, kBeats);
    Sum sum;
    EXPECT_EQ(explore_all(explorer, size, ways.size(), sum), "");
    EXPECT_GT(sum.successes, 0U);
    tell("one module", size, sum);
  }
}

// Two modules, and two nodes beside the root's own ranks.
std::vector<Behaviour> batch_behaviours() {
  std::vector<Behaviour> all;
  for (const std::uint64_t node : {1U, 2U}) {
    const std::string where = " on node " + std::to_string(node);
    all.push_back({.name = "needs both" + where, .holds = {false, false}, .node = node});
    all.push_back({.name = "needs the second" + where, .holds = {true, false}, .node = node});
    all.push_back({.name = "stops" + where, .holds = {false, false}, .may_stop = true, .node = node});
  }
  all.push_back({.name = "cannot load", .holds = {false, false}, .can_load = false, .node = 2});
  all.push_back({.name = "has no memory", .holds = {false, false}, .has_memory = false, .node = 2});
  all.push_back({.name = "has other texts", .holds = {false, false}, .call = 1, .node = 2});
  return all;
}

TEST(GateBatchProtocol, HasNoDeadlockAndOneOutcome) {
  for (std::size_t size = 2; size <= kMostRanks - 1; ++size) {
    std::vector<Behaviour> ways = batch_behaviours();
    for (Behaviour& one : ways) one.is_strict = size > 2;
    GateExplorer<Protocol> explorer(ways, size > 2 ? 0 : kBeats);
    Sum sum;
    EXPECT_EQ(explore_all(explorer, size, ways.size(), sum), "");
    EXPECT_GT(sum.successes, 0U);
    tell("two modules", size, sum);
  }
}

// ---- machines that are wrong ----------------------------------------------------------------------------------------

std::string violation_of_some(auto& explorer, std::size_t size, std::size_t ways) {
  Sum sum;
  return explore_all(explorer, size, ways, sum);
}

// The collective step stands behind "do I have it?", which each rank answers for itself.
struct AsksItselfFirst : Protocol {
  AsksItselfFirst(const Ranks& ranks, const View& view)
      : Protocol(ranks, view), has_it(!view.modules.empty() && view.modules.front().is_held) {}
  Action begin() {
    if (has_it) return action::Finish{};
    return Protocol::begin();
  }
  bool has_it;
};

// What the root fails in is thrown before anybody is told.
struct RootThrows : Protocol {
  using Protocol::Protocol;
  Action obtained(common::Result<Obtained> result, double seconds) {
    if (!result) return action::Finish{Failure{result.error(), {}}};
    return Protocol::obtained(std::move(result), seconds);
  }
};

// All agree that someone needs the module; who has it sees no reason to stay.
struct LeavesEarly : AsksItselfFirst {
  using AsksItselfFirst::AsksItselfFirst;
  Action begin() { return Protocol::begin(); }
  Action reduced(std::span<const std::uint64_t> words) {
    Action next = Protocol::reduced(words);
    if (has_agreed() && has_it) return action::Finish{};
    return next;
  }
};

// A rank that cannot load says so to its own caller.
struct KeepsItsErrorToItself : Protocol {
  using Protocol::Protocol;
  Action loaded(std::optional<common::Error> error) {
    if (error) return action::Finish{Failure{*error, {}}};
    return Protocol::loaded({});
  }
};

// Nobody asks whether all have loaded.
struct TrustsThatAllLoad : Protocol {
  using Protocol::Protocol;
  Action loaded(std::optional<common::Error> error) {
    if (error) return action::Finish{Failure{*error, {}}};
    return action::Finish{};
  }
};

// Each rank that needs the module gets it for itself, from the start.
struct EverybodyCompiles : Protocol {
  EverybodyCompiles(const Ranks& ranks, const View& view) : Protocol(Ranks{0, ranks.size, ranks.node}, view) {}
};

TEST(WrongGate, BehindARankLocalBeliefIsADeadlock) {
  const auto ways = all_behaviours(true);
  GateExplorer<AsksItselfFirst> explorer(ways, kBeats);
  EXPECT_THAT(violation_of_some(explorer, 2, ways.size()), HasSubstr("deadlock"));
}

TEST(WrongGate, WhoseRootThrowsBeforeTheHandOffIsADeadlock) {
  const auto ways = all_behaviours(true);
  GateExplorer<RootThrows> explorer(ways, kBeats);
  EXPECT_THAT(violation_of_some(explorer, 2, ways.size()), HasSubstr("deadlock"));
}

TEST(WrongGate, ThatIsLeftEarlyIsADeadlock) {
  const auto ways = all_behaviours(true);
  GateExplorer<LeavesEarly> explorer(ways, kBeats);
  EXPECT_THAT(violation_of_some(explorer, 2, ways.size()), HasSubstr("deadlock"));
}

TEST(WrongGate, ThatKeepsALoadErrorIsADeadlock) {
  const auto ways = all_behaviours(true);
  GateExplorer<KeepsItsErrorToItself> explorer(ways, kBeats);
  EXPECT_THAT(violation_of_some(explorer, 2, ways.size()), HasSubstr("deadlock"));
}

TEST(WrongGate, WithoutASecondCertificateHasTwoOutcomes) {
  const auto ways = all_behaviours(true);
  GateExplorer<TrustsThatAllLoad> explorer(ways, kBeats);
  EXPECT_THAT(violation_of_some(explorer, 2, ways.size()), HasSubstr("two outcomes"));
}

TEST(WrongGate, WhereEverybodyIsRootIsAMismatch) {
  const auto ways = all_behaviours(true);
  GateExplorer<EverybodyCompiles> explorer(ways, kBeats);
  EXPECT_NE(violation_of_some(explorer, 2, ways.size()), "");
}

}  // namespace
}  // namespace jitc::gate
