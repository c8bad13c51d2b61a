// The gate's protocol through every interleaving of two, three and four ranks, whatever each of them sees: nobody waits
// for ever, all end alike, nothing is compiled twice. And machines that are wrong in the ways in which gates have been
// wrong, which the same search must find.
#include "tests/support/gate_explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace jitc::gate {
namespace {

using testing::Behaviour;
using testing::Broadcasts;
using testing::Exploration;
using testing::GateExplorer;
using ::testing::HasSubstr;
using testing::Orders;
using testing::Setting;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kMostRanks = 3;  // of all combinations
#else
constexpr std::size_t kMostRanks = 4;
#endif

// What may befall a rank in a call for one module.
std::vector<Behaviour> all_behaviours(bool is_strict) {
  std::vector<Behaviour> all{
      {.name = "has it", .holds = {true}},
      {.name = "needs it"},
      {.name = "needs it for an older CPU", .isa = 0x3},
      {.name = "cannot load", .can_load = false},
      {.name = "has no memory for it", .has_memory = false},
      {.name = "cannot make its request", .has_request = false},
      {.name = "has another text", .call = 1},
      {.name = "has another manifest", .holds = {true}, .call = 2},
      {.name = "skipped a call", .call = 3, .is_adoptable = false},
      {.name = "stops", .may_stop = true},
      {.name = "has other code", .holds = {true}, .code = 1},
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

// The root behaves in each way, and the others in each selection of ways: who is alike may change places, except that
// in a chain places differ. Ends at the first violation.
template <class Machine>
std::string explore_all(GateExplorer<Machine>& explorer, std::size_t size, std::size_t ways, Broadcasts broadcasts,
                        Orders orders, Sum& sum) {
  std::vector<std::size_t> ranks(size, 0);
  for (;;) {
    const Exploration found = explorer.explore(ranks, broadcasts, orders);
    ++sum.scenarios;
    sum.states += found.states;
    sum.ends += found.ends;
    sum.successes += found.successes;
    if (!found.violation.empty()) return found.violation;
    // The next sequence of the others, then the root's next way.
    std::size_t at = size - 1;
    while (at > 0 && ranks[at] == ways - 1) --at;
    if (at == 0 && ++ranks[0] == ways) return {};
    const std::size_t next = at == 0 ? 0 : ranks[at] + 1;
    for (std::size_t i = std::max<std::size_t>(at, 1); i < size; ++i)
      ranks[i] = i == at || broadcasts != Broadcasts::kChain ? next : 0;
  }
}

constexpr std::array kAllBroadcasts{Broadcasts::kBuffered, Broadcasts::kSynchronising, Broadcasts::kChain};

template <class Machine>
std::string explore_all(GateExplorer<Machine>& explorer, std::size_t size, std::size_t ways, Orders orders, Sum& sum) {
  for (const Broadcasts broadcasts : kAllBroadcasts)
    if (std::string violation = explore_all(explorer, size, ways, broadcasts, orders, sum); !violation.empty())
      return violation;
  return {};
}

void expect_no_violation(const char* what, const std::vector<Behaviour>& ways, const Setting& setting, std::size_t size,
                         Orders orders) {
  GateExplorer<Protocol> explorer(ways, setting);
  Sum sum;
  EXPECT_EQ(explore_all(explorer, size, ways.size(), orders, sum), "");
  EXPECT_GT(sum.successes, 0U);
  std::printf("%s, %zu ranks, %s: %zu scenarios, %zu states, %zu ends, %zu of them with the module\n", what, size,
              orders == Orders::kAll ? "all orders" : "one order", sum.scenarios, sum.states, sum.ends, sum.successes);
}

class GateProtocol : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Strictness, GateProtocol, ::testing::Values(true, false),
                         [](const auto& one) { return one.param ? "Strict" : "Adopting"; });

TEST_P(GateProtocol, HasNoDeadlockAndOneOutcome) {
  for (std::size_t size = 2; size <= kMostRanks; ++size)
    expect_no_violation("one module", all_behaviours(GetParam()), {}, size,
                        size == kMostRanks ? Orders::kOne : Orders::kAll);
}

TEST_P(GateProtocol, HasNoDeadlockAndOneOutcomeForNativeCode) {
  for (std::size_t size = 2; size < kMostRanks; ++size)
    expect_no_violation("one native module", all_behaviours(GetParam()), {.is_native = {true}}, size, Orders::kOne);
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
  all.push_back({.name = "has both", .holds = {true, true}, .node = 2});
  all.push_back({.name = "has other code for both", .holds = {true, true}, .code = 1, .node = 2});
  all.push_back({.name = "has other code for the first", .holds = {true, false}, .code = 1, .node = 2});
  all.push_back({.name = "has other texts", .holds = {false, false}, .call = 1, .node = 2});
  return all;
}

// Where ranks are is learnt in this call, or was in one before.
class GateBatchProtocol : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Calls, GateBatchProtocol, ::testing::Values(false, true),
                         [](const auto& one) { return one.param ? "Second" : "First"; });

TEST_P(GateBatchProtocol, HasNoDeadlockAndOneOutcome) {
  for (std::size_t size = 2; size < kMostRanks; ++size) {
    std::vector<Behaviour> ways = batch_behaviours();
    for (Behaviour& one : ways) one.is_strict = size > 2;
    const int beats = size > 2 ? 0 : 1;
    const Setting setting{.beats = beats, .is_native = {false, false}, .knows_leaders = GetParam()};
    expect_no_violation("two modules", ways, setting, size, size > 2 ? Orders::kOne : Orders::kAll);
  }
}

// Three modules, the second one native, over two nodes whose CPUs differ.
std::vector<Behaviour> mixed_behaviours() {
  std::vector<Behaviour> all;
  for (const std::uint64_t node : {1U, 2U}) {
    for (const common::IsaMask isa : {common::IsaMask{0xf}, common::IsaMask{0x3}}) {
      const std::string where = " on node " + std::to_string(node) + (isa == 0x3 ? " of old CPUs" : "");
      all.push_back({.name = "needs all" + where, .holds = std::vector(3, false), .node = node, .isa = isa});
    }
  }
  all.push_back({.name = "has the first two", .holds = {true, true, false}});
  all.push_back({.name = "stops", .holds = std::vector(3, false), .may_stop = true, .node = 2});
  return all;
}

TEST_P(GateBatchProtocol, MakesNativeCodeForTheRootAndOtherCodeForAll) {
  for (std::size_t size = 2; size < kMostRanks; ++size) {
    const Setting setting{.beats = 0, .is_native = {false, true, false}, .knows_leaders = GetParam()};
    expect_no_violation("three modules on mixed CPUs", mixed_behaviours(), setting, size, Orders::kOne);
  }
}

// ---- the search itself
// -----------------------------------------------------------------------------------------------

TEST(GateExplorerItself, OneOrderHasTheEndsOfAllOrders) {
  const auto compare = [](const std::vector<Behaviour>& ways, const Setting& setting, std::size_t size) {
    for (const Broadcasts broadcasts : kAllBroadcasts) {
      GateExplorer<Protocol> explorer(ways, setting);
      Sum all;
      Sum one;
      EXPECT_EQ(explore_all(explorer, size, ways.size(), broadcasts, Orders::kAll, all), "");
      EXPECT_EQ(explore_all(explorer, size, ways.size(), broadcasts, Orders::kOne, one), "");
      EXPECT_EQ(one.ends, all.ends);
      EXPECT_EQ(one.successes, all.successes);
      EXPECT_LT(one.states, all.states);
    }
  };
  compare(all_behaviours(true), {}, 2);
  if (kMostRanks > 3) compare(all_behaviours(true), {}, 3);
  compare(batch_behaviours(), {.is_native = {false, false}}, 2);
}

TEST(GateExplorerItself, InAChainRanksLeaveOneAfterTheOther) {
  const std::vector<Behaviour> ways{{.name = "needs it"}};
  GateExplorer<Protocol> explorer(ways);
  const Exploration chain = explorer.explore({0, 0, 0}, Broadcasts::kChain, Orders::kAll);
  const Exploration buffered = explorer.explore({0, 0, 0}, Broadcasts::kBuffered, Orders::kAll);
  EXPECT_LT(chain.states, buffered.states);
  EXPECT_EQ(chain.ends, buffered.ends);
}

// ---- machines that are wrong ----------------------------------------------------------------------------------------

// The first that is found on two ranks.
template <class Machine>
std::string violation_of(const std::vector<Behaviour>& ways, const Setting& setting = {},
                         Orders orders = Orders::kAll) {
  GateExplorer<Machine> explorer(ways, setting);
  Sum sum;
  return explore_all(explorer, 2, ways.size(), orders, sum);
}

template <class Machine>
std::string violation_of() {
  return violation_of<Machine>(all_behaviours(true));
}

// The collective step stands behind "do I have it?", which each rank answers for itself.
struct AsksItselfFirst : Protocol {
  AsksItselfFirst(const Ranks& ranks, const View& view, const std::vector<int>& leaders)
      : Protocol(ranks, view, leaders), has_it(!view.modules.empty() && view.modules.front().is_held) {}
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
  EverybodyCompiles(const Ranks& ranks, const View& view, const std::vector<int>& leaders)
      : Protocol(Ranks{0, ranks.size, ranks.node}, view, leaders) {}
};

// What Begin orders when leaders compile is changed by `change`.
template <class Change>
struct ChangesOrders : Protocol {
  using Protocol::Protocol;
  Action broadcast(std::string bytes) { return changed(Protocol::broadcast(std::move(bytes))); }
  Action done() { return changed(Protocol::done()); }
  Action reduced(std::span<const std::uint64_t> words) { return changed(Protocol::reduced(words)); }
  Action changed(Action next) {
    if (auto* begin = std::get_if<action::Begin>(&next); begin && begin->work == Work::kCompile) Change()(*begin);
    return next;
  }
};

// Each leader compiles all, and hands over what is its own.
struct OrdersAll {
  void operator()(action::Begin& begin) const { begin.modules = {0, 1}; }
};

struct OrdersNothing {
  void operator()(action::Begin& begin) const { begin.modules.clear(); }
};

// Each leader looks at its own CPU alone.
struct OrdersForItself {
  void operator()(action::Begin& begin) const { begin.common_isa = 0xf; }
};

// Nobody says which code is native.
struct DealsNativeCode : Protocol {
  DealsNativeCode(const Ranks& ranks, View view, const std::vector<int>& leaders)
      : Protocol(ranks, without_native(std::move(view)), leaders) {}
  static View without_native(View view) {
    for (View::Wanted& one : view.modules) one.is_of_a_node = false;
    return view;
  }
};

// What was learnt is handed on by the root alone.
struct ForgetsLeaders : Protocol {
  ForgetsLeaders(const Ranks& ranks, const View& view, const std::vector<int>& leaders)
      : Protocol(ranks, view, leaders), is_root(ranks.rank == 0) {}
  std::vector<int> take_leaders() { return is_root ? Protocol::take_leaders() : std::vector<int>(); }
  bool is_root;
};

// Whoever has a module for the request is content with it.
struct TrustsWhatIsHeld : Protocol {
  TrustsWhatIsHeld(const Ranks& ranks, View view, const std::vector<int>& leaders)
      : Protocol(ranks, without_keys(std::move(view)), leaders) {}
  static View without_keys(View view) {
    for (View::Wanted& one : view.modules) one.key = {};
    return view;
  }
};

// The same with what all hold while some need something else.
struct TrustsWhatIsHeldBeside : Protocol {
  using Protocol::Protocol;
  Action reduced(std::span<const std::uint64_t> words) {
    return Protocol::reduced(waits_for().ends_with("what they hold of") ? Words{0, 0}
                                                                        : Words(words.begin(), words.end()));
  }
};

TEST(WrongGate, BehindARankLocalBeliefIsADeadlock) {
  EXPECT_THAT(violation_of<AsksItselfFirst>(), HasSubstr("deadlock"));
}

TEST(WrongGate, WhoseRootThrowsBeforeTheHandOffIsADeadlock) {
  EXPECT_THAT(violation_of<RootThrows>(), HasSubstr("deadlock"));
}

TEST(WrongGate, ThatIsLeftEarlyIsADeadlock) { EXPECT_THAT(violation_of<LeavesEarly>(), HasSubstr("deadlock")); }

TEST(WrongGate, ThatKeepsALoadErrorIsADeadlock) {
  EXPECT_THAT(violation_of<KeepsItsErrorToItself>(), HasSubstr("deadlock"));
}

TEST(WrongGate, WithoutASecondCertificateHasTwoOutcomes) {
  EXPECT_THAT(violation_of<TrustsThatAllLoad>(), HasSubstr("two outcomes"));
}

TEST(WrongGate, ThatHoldsByRequestAloneHasTwoOutcomes) {
  EXPECT_THAT(violation_of<TrustsWhatIsHeld>(), HasSubstr("two outcomes"));
}

TEST(WrongGate, WhereEverybodyIsRootIsAMismatch) { EXPECT_NE(violation_of<EverybodyCompiles>(), ""); }

// Of a machine in a call for several modules; the right one has none there.
template <class Machine>
std::string violation_in_batch(const std::vector<Behaviour>& ways, const Setting& setting) {
  EXPECT_EQ(violation_of<Protocol>(ways, setting, Orders::kOne), "");
  return violation_of<Machine>(ways, setting);
}

const Setting kTwoModules{.is_native = {false, false}};

TEST(WrongGate, WhereEachLeaderCompilesAllCompilesTwice) {
  EXPECT_THAT(violation_in_batch<ChangesOrders<OrdersAll>>(batch_behaviours(), kTwoModules),
              HasSubstr("compiled twice"));
}

TEST(WrongGate, WhereALeaderBeginsNothingWaitsForNothing) {
  EXPECT_THAT(violation_in_batch<ChangesOrders<OrdersNothing>>(batch_behaviours(), kTwoModules),
              HasSubstr("has not begun to get"));
}

TEST(WrongGate, WhereALeaderKnowsItsOwnCpuAloneGivesCodeThatCannotRun) {
  EXPECT_THAT(
      violation_in_batch<ChangesOrders<OrdersForItself>>(mixed_behaviours(), {.is_native = {false, true, false}}),
      HasSubstr("its CPU cannot run"));
}

TEST(WrongGate, ThatHoldsByRequestWhereOthersNeedSomethingHasTwoOutcomes) {
  EXPECT_THAT(violation_in_batch<TrustsWhatIsHeldBeside>(batch_behaviours(), kTwoModules), HasSubstr("two outcomes"));
}

TEST(WrongGate, WhereNativeCodeIsDealtIsNotTheRoots) {
  EXPECT_THAT(violation_in_batch<DealsNativeCode>(mixed_behaviours(), {.is_native = {false, true, false}}),
              HasSubstr("not the root"));
}

TEST(WrongGate, WhereOnlyTheRootRemembersLeadersIsOutOfStepNext) {
  EXPECT_THAT(violation_in_batch<ForgetsLeaders>(batch_behaviours(), kTwoModules), HasSubstr("different leaders"));
}

}  // namespace
}  // namespace jitc::gate
