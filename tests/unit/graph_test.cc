#include "client/graph/graph.h"

#include <gtest/gtest.h>

#include <bit>
#include <bitset>
#include <cmath>
#include <unordered_set>

#include "client/graph/evaluate.h"
#include "tests/support/graph_oracle.h"

namespace jitc::graph {
namespace {

using testing::Inputs;
using testing::same_bits;

TEST(Graph, EqualExpressionsAreOneNode) {
  Graph g;
  const NodeId x = g.leaf(kU, 0);
  const NodeId y = g.leaf(kUx, 0);
  EXPECT_NE(x, y);
  EXPECT_EQ(g.leaf(kU, 0), x);
  EXPECT_NE(g.leaf(kU, 1), x);
  EXPECT_EQ(g.number(0.1), g.number(0.1));
  EXPECT_NE(g.number(0.0), g.number(-0.0));
  const NodeId sum = g.binary(Op::kAdd, x, y);
  const std::size_t size = g.size();
  EXPECT_EQ(g.binary(Op::kAdd, y, x), sum);
  EXPECT_EQ(g.size(), size);
  EXPECT_NE(g.binary(Op::kSub, x, y), g.binary(Op::kSub, y, x));
  EXPECT_NE(g.binary(Op::kLt, x, y), g.binary(Op::kGt, y, x)) << "a comparison is kept as it was written";
}

TEST(Graph, ListsOfEqualArgumentsAreOneNode) {
  Graph g;
  const FunctionId f = g.declare({"f", 3, {}});
  const FunctionId h = g.declare({"h", 3, {}});
  const std::vector<NodeId> list = {g.leaf(kU, 0), g.leaf(kU, 1), g.leaf(kU, 2)};
  const std::vector<NodeId> other = {list[1], list[0], list[2]};
  const NodeId max = g.extremum(Op::kMax, list);
  const NodeId call = g.call(f, list);
  const std::size_t size = g.size();
  EXPECT_EQ(g.extremum(Op::kMax, list), max);
  EXPECT_EQ(g.call(f, list), call);
  EXPECT_EQ(g.size(), size);
  EXPECT_NE(g.extremum(Op::kMax, other), max);
  EXPECT_NE(g.extremum(Op::kMin, list), max);
  EXPECT_NE(g.call(h, list), call);
  const std::size_t bytes = g.bytes();
  for (int i = 0; i < 10'000; ++i) g.extremum(Op::kMax, list);
  EXPECT_EQ(g.bytes(), bytes) << "the list is kept once";
  EXPECT_EQ(std::vector(g.arguments(max).begin(), g.arguments(max).end()), list);
  EXPECT_EQ(std::vector(g.arguments(call).begin(), g.arguments(call).end()), list);
}

TEST(Graph, ListsMayBeBuiltFromListsOfTheGraph) {
  Graph g;
  const FunctionId f = g.declare({"f", 0, {}});
  std::vector<NodeId> expected = {g.leaf(kU, 0), g.leaf(kU, 1), g.leaf(kU, 2)};
  NodeId last = g.extremum(Op::kMax, expected);
  // The lists move while they grow.
  for (int i = 0; i < 1000; ++i) {
    last = g.call(f, g.arguments(last));
    ASSERT_EQ(std::vector(g.arguments(last).begin(), g.arguments(last).end()), expected);
    expected[static_cast<std::size_t>(i) % 3] = last;
    last = g.extremum(Op::kMax, expected);
  }
}

TEST(Graph, ExtremaOfOneAndOfNone) {
  Graph g;
  const NodeId x = g.leaf(kU, 0);
  EXPECT_EQ(g.extremum(Op::kMin, {&x, 1}), x);
  EXPECT_EQ(g.number_of(g.extremum(Op::kMax, {})), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(g.number_of(g.extremum(Op::kMin, {})), std::numeric_limits<double>::infinity());
}

TEST(Graph, ContentDependsOnTheMathematicsAlone) {
  Graph one;
  Graph two;
  two.leaf(kX, 7);  // other ids
  two.argument("velocity");
  const auto build = [](Graph& g, bool turned) {
    const NodeId a = g.leaf(g.argument("stress"), 3);
    const NodeId b = turned ? g.named("renamed", g.leaf(kU, 1)) : g.leaf(kU, 1);
    const NodeId list[] = {a, b, turned ? g.binary(Op::kMul, b, a) : g.binary(Op::kMul, a, b)};
    return g.binary(Op::kAdd, g.extremum(Op::kMax, list), g.call(g.declare({"f", 3, {}}), list));
  };
  const NodeId first = build(one, false);
  const NodeId second = build(two, true);
  EXPECT_NE(first, second);
  EXPECT_EQ(one.content(first), two.content(second));
  EXPECT_NE(one.content(one.leaf(one.argument("stress"), 3)), one.content(one.leaf(one.argument("strain"), 3)));
  const NodeId x = one.leaf(kU, 0);
  EXPECT_NE(one.content(one.binary(Op::kSub, x, first)), one.content(one.binary(Op::kSub, first, x)));
}

// Arguments are ordered by content: the order in which nodes were built must not show.
TEST(Graph, CommutedArgumentsComeInOneOrder) {
  Graph one;
  Graph two;
  const auto order = [](Graph& g, NodeId a, NodeId b) {
    const NodeId sum = g.binary(Op::kAdd, a, b);
    return g.arguments(sum)[0] == a;
  };
  for (std::uint32_t i = 0; i < 100; ++i) {
    const NodeId a = one.leaf(kU, i);
    const NodeId b = one.leaf(kX, i);
    const NodeId late = two.leaf(kX, i);
    const NodeId early = two.leaf(kU, i);
    ASSERT_EQ(order(one, a, b), order(two, early, late)) << i;
  }
}

TEST(Graph, ArgumentsAndFunctionsAreFoundByName) {
  Graph g;
  EXPECT_EQ(g.argument("u_x"), kUx);
  EXPECT_EQ(g.argument("constants"), kConstants);
  EXPECT_EQ(g.argument_name(kUtShift), "u_tShift");
  const ArgumentId own = g.argument(std::string(100'000, 'y'));
  EXPECT_EQ(own, kFirstOther);
  EXPECT_EQ(g.argument(std::string(100'000, 'y')), own);
  EXPECT_EQ(g.argument_name(own).size(), 100'000U);
  EXPECT_NE(g.argument("z"), own);
}

TEST(Graph, ALaterDeclarationAddsPartialDerivatives) {
  Graph g;
  const FunctionId f = g.declare({"f", 2, {}});
  const FunctionId df = g.declare({"df", 2, {}});
  EXPECT_EQ(g.declare({"f", 2, {std::nullopt, df}}), f);
  EXPECT_EQ(g.declare({"f", 2, {df, f}}), f);
  EXPECT_EQ(g.function_count(), 2U);
  ASSERT_EQ(g.function(f).partials.size(), 2U);
  EXPECT_EQ(g.function(f).partials[0], df);
  EXPECT_EQ(g.function(f).partials[1], df) << "what is known stays";
}

TEST(Graph, RebuildCopiesIntoAnotherGraph) {
  Graph from;
  const NodeId x = from.leaf(from.argument("w"), 2);
  const NodeId y = from.leaf(kU, 1);
  const NodeId list[] = {x, y, from.number(3.0)};
  const NodeId chosen = from.select(from.unary(Op::kNot, from.binary(Op::kLt, x, y)), from.truth(true), y);
  NodeId all = from.binary(Op::kAtan2, from.call(from.declare({"f", 3, {}}), list), from.extremum(Op::kMin, list));
  all = from.named("name", from.binary(Op::kSub, from.unary(Op::kTanh, all), chosen));
  Graph to;
  to.argument("other");
  std::vector<NodeId> ids(from.size());
  for (NodeId id = 0; id < from.size(); ++id) {
    std::vector<NodeId> arguments;
    for (const NodeId argument : from.arguments(id)) arguments.push_back(ids[argument]);
    ids[id] = to.rebuild(from, id, arguments);
  }
  EXPECT_EQ(to.content(ids[all]), from.content(all));
  EXPECT_EQ(to.name(ids[all]), "name");
  EXPECT_EQ(to.argument_name(to[ids[x]].argument), "w");
}

TEST(Graph, ReachableMarksWhatOutputsNeed) {
  Graph g;
  const NodeId x = g.leaf(kU, 0);
  const NodeId y = g.leaf(kU, 1);
  const NodeId root = g.unary(Op::kSqrt, x);
  const NodeId other = g.unary(Op::kExp, y);
  const NodeId outputs[] = {root, g.unary(Op::kSin, root)};
  const auto marks = reachable(g, outputs);
  EXPECT_TRUE(marks[x] && marks[root] && marks[outputs[1]]);
  EXPECT_FALSE(marks[y] || marks[other]);
  EXPECT_EQ(reachable(g, {}), std::vector<bool>(g.size()));
}

// ---- limits ---------------------------------------------------------------------------------------------------------

TEST(Graph, AFullGraphSaysSo) {
  Graph g(4);
  for (std::uint32_t i = 0; i < 4; ++i) g.leaf(kU, i);
  EXPECT_FALSE(g.is_full());
  EXPECT_TRUE(check_capacity(g));
  EXPECT_EQ(g.leaf(kU, 3), 3U) << "what is there is found";
  EXPECT_FALSE(g.is_full());
  EXPECT_EQ(g.leaf(kU, 4), 0U);
  EXPECT_TRUE(g.is_full());
  EXPECT_EQ(g.size(), 4U);
  const auto capacity = check_capacity(g);
  ASSERT_FALSE(capacity);
  EXPECT_EQ(capacity.error().kind, common::ErrorKind::kUsage);
  EXPECT_NE(capacity.error().message.find("4 nodes"), std::string::npos);
}

TEST(Graph, ArgumentsAreCounted) {
  Graph g;
  for (int i = 0; i < (1 << 16) - kFirstOther - 1; ++i) g.argument("a" + std::to_string(i));
  EXPECT_FALSE(g.is_full());
  g.argument("a1");
  g.argument("u");
  EXPECT_FALSE(g.is_full());
  g.argument("one more");
  EXPECT_TRUE(g.is_full());
}

TEST(Graph, ReserveIsOneAllocation) {
  Graph g;
  g.reserve(10'000);
  const std::size_t before = g.bytes();
  for (std::uint32_t i = 0; i < 10'000; ++i) g.leaf(kU, i);
  EXPECT_EQ(g.bytes(), before);
}

TEST(Graph, BytesPerNodeAreFew) {
  Graph g;
  NodeId x = g.leaf(kU, 0);
  while (g.size() < 1'000'000)
    x = g.binary(Op::kMul, g.unary(Op::kSin, x), g.leaf(kU, static_cast<std::uint32_t>(g.size())));
  EXPECT_LE(g.bytes(), 48 * g.size());
  g = {};
  g.reserve(1'000'000);
  EXPECT_LE(g.bytes(), 36'000'000U);
}

// ---- the hash -------------------------------------------------------------------------------------------------------

TEST(Graph, ContentsAreSpread) {
  Graph g;
  std::unordered_set<std::uint64_t> seen;
  std::array<std::size_t, 64> ones{};
  std::array<std::size_t, 256> low{};
  NodeId last = g.leaf(kU, 0);
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    last = g.binary(i % 2 == 0 ? Op::kAdd : Op::kMul, last, g.leaf(i % 3 == 0 ? kU : kUx, i));
    g.number(i);
    g.number(1.0 / (i + 1));
  }
  for (NodeId id = 0; id < g.size(); ++id) {
    const std::uint64_t content = g.content(id);
    EXPECT_TRUE(seen.insert(content).second) << id;
    for (std::size_t bit = 0; bit < 64; ++bit) ones[bit] += content >> bit & 1U;
    ++low[content & 255U];
  }
  const auto n = static_cast<double>(g.size());
  for (const std::size_t count : ones) EXPECT_NEAR(static_cast<double>(count), n / 2, 5 * std::sqrt(n) / 2);
  double chi = 0;
  for (const std::size_t count : low) chi += std::pow(static_cast<double>(count) - n / 256, 2) / (n / 256);
  EXPECT_LT(chi, 255 + 6 * std::sqrt(2 * 255.0));
}

TEST(Graph, ManyNamesOfOneBody) {
  Graph g;
  const NodeId body = g.unary(Op::kExp, g.leaf(kU, 0));
  std::vector<NodeId> ids;
  for (int i = 0; i < 200'000; ++i) ids.push_back(g.named("n" + std::to_string(i), body));
  EXPECT_EQ(g.named("n7", body), ids[7]);
  EXPECT_EQ(g.name(ids[100'000]), "n100000");
  EXPECT_EQ(g.content(ids[0]), g.content(ids[1]));
}

// ---- values ---------------------------------------------------------------------------------------------------------

TEST(Evaluate, ComputesEveryOperator) {
  Graph g;
  const NodeId x = g.leaf(kU, 0);
  const NodeId y = g.leaf(kUx, 5);
  const NodeId z = g.leaf(kT);
  const NodeId list[] = {x, y, z};
  std::vector<NodeId> outputs = {g.number(2.5),
                                 g.truth(true),
                                 g.truth(false),
                                 g.unary(Op::kNot, g.binary(Op::kLt, x, y)),
                                 g.select(g.binary(Op::kLt, x, y), y, z),
                                 g.extremum(Op::kMax, list),
                                 g.extremum(Op::kMin, list),
                                 g.named("n", z)};
  for (auto op = static_cast<int>(Op::kNeg); op <= static_cast<int>(Op::kSign); ++op) {
    outputs.push_back(g.unary(static_cast<Op>(op), x));
  }
  for (auto op = static_cast<int>(Op::kAdd); op <= static_cast<int>(Op::kNe); ++op) {
    outputs.push_back(g.binary(static_cast<Op>(op), x, y));
  }
  for (const Op op : {Op::kAnd, Op::kOr}) {
    outputs.push_back(g.binary(op, g.binary(Op::kLt, x, y), g.binary(Op::kLt, y, z)));
  }
  const auto& special = testing::special_values();
  for (const double a : special) {
    for (const double b : special) {
      for (const double c : {a, 0.3, std::nan("")}) {
        const Inputs<double> inputs{{{{kU, 0}, a}, {{kUx, 5}, b}, {{kT, 0}, c}}, {}};
        const auto expected = testing::values(g, outputs, inputs);
        const auto got =
            evaluate(g, outputs, [&](const Node& leaf) { return inputs.leaves.at({leaf.argument, leaf.args[0]}); });
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_TRUE(same_bits(got[i], expected[i])) << name_of(g[outputs[i]].op) << '(' << a << ", " << b << ", " << c
                                                      << ") " << got[i] << ' ' << expected[i];
        }
      }
    }
  }
}

TEST(Evaluate, CallsOpaqueFunctions) {
  Graph g;
  const NodeId list[] = {g.leaf(kU, 0), g.leaf(kU, 1)};
  const NodeId call = g.call(g.declare({"minus", 2, {}}), list);
  const auto leaf = [](const Node& node) { return node.args[0] + 1.0; };
  const auto minus = [](const Function& function, std::span<const double> x) {
    return function.name == "minus" ? x[0] - x[1] : 0.0;
  };
  EXPECT_EQ(evaluate(g, {&call, 1}, leaf, minus).front(), -1.0);
  EXPECT_TRUE(std::isnan(evaluate(g, {&call, 1}, leaf).front()));
  EXPECT_TRUE(evaluate(g, {}, leaf).empty());
}

TEST(Evaluate, DepthCostsNoStack) {
  Graph g;
  NodeId x = g.leaf(kU, 0);
  for (int i = 0; i < 1'000'000; ++i) x = g.binary(Op::kAdd, g.unary(Op::kSin, x), g.leaf(kU, 1));
  const double value = evaluate(g, {&x, 1}, [](const Node& leaf) { return leaf.args[0] == 0 ? 0.25 : 0.125; }).front();
  double expected = 0.25;
  for (int i = 0; i < 1'000'000; ++i) expected = std::sin(expected) + 0.125;
  EXPECT_EQ(value, expected);
}

}  // namespace
}  // namespace jitc::graph
