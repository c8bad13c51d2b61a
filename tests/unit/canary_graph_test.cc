// What a canary wants of a module, and how exact it is about it.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "client/graph/bounded.h"
#include "client/graph/canary.h"
#include "tests/support/graph_oracle.h"
#include "tests/support/random_graph.h"

namespace jitc::graph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class BoundedTest : public ::testing::Test {
 protected:
  Bounded at(NodeId node, double u) const {
    const NodeId outputs[] = {node};
    return evaluate_bounded(graph_, outputs, [u](const Node&) { return u; }).front();
  }
  NodeId n(double value) { return graph_.number(value); }
  NodeId op(Op op, NodeId x, NodeId y) { return graph_.binary(op, x, y); }
  NodeId op(Op op, NodeId x) { return graph_.unary(op, x); }

  Graph graph_;
  NodeId u_ = graph_.leaf(kU, 0);
};

TEST_F(BoundedTest, OneOperationErrsByAFewUlps) {
  EXPECT_EQ(at(u_, 3).bound, 0);
  EXPECT_EQ(at(op(Op::kMul, u_, n(3)), 2).bound, 16 * 0x1p-53 * 6);
  EXPECT_EQ(at(op(Op::kNeg, u_), 2).bound, 0);
  EXPECT_EQ(at(op(Op::kSub, u_, n(2)), 2).bound, 0);  // nothing is rounded
  EXPECT_NEAR(at(op(Op::kExp, u_), 2).bound / (16 * 0x1p-53 * std::exp(2.0)), 1, 1e-9);
}

TEST_F(BoundedTest, WhatCancelsKeepsTheErrorOfItsTerms) {
  const NodeId square = op(Op::kMul, u_, u_);
  const NodeId nothing = op(Op::kSub, op(Op::kAdd, square, n(1)), op(Op::kAdd, square, n(1.0 + 1e-9)));
  const Bounded value = at(nothing, 1e4);
  EXPECT_LT(std::fabs(value.value), 1e-7);
  EXPECT_GT(value.bound, 16 * 0x1p-53 * 1e8);
  EXPECT_LT(value.bound, 200 * 0x1p-53 * 1e8);
}

TEST_F(BoundedTest, NothingIsSaidWhereRoundingDecides) {
  const NodeId third = op(Op::kMul, u_, n(1.0 / 3));
  const NodeId close = op(Op::kLt, third, n(1));
  EXPECT_EQ(at(graph_.select(close, n(1), n(2)), 3).bound, kInfinity);
  EXPECT_EQ(at(graph_.select(close, n(1), n(2)), 2).bound, 0);
  EXPECT_EQ(at(graph_.select(op(Op::kLt, u_, n(3)), n(1), n(2)), 3).bound, 0);  // inputs are exact
  EXPECT_EQ(at(op(Op::kFloor, third), 3).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kFloor, third), 4).bound, 0);
  EXPECT_EQ(at(op(Op::kSqrt, op(Op::kSub, third, n(1))), 3).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kDiv, n(1), op(Op::kSub, third, n(1))), 3).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kLog, u_), -1).bound, kInfinity);
}

TEST_F(BoundedTest, InfinitiesThatAreSureStaySure) {
  const Bounded pole = at(op(Op::kDiv, n(1), u_), 0.0);
  EXPECT_EQ(pole.value, kInfinity);
  EXPECT_EQ(pole.bound, 0);
  EXPECT_EQ(at(op(Op::kDiv, n(1), op(Op::kExp, op(Op::kDiv, n(1), u_))), 0.0).value, 0);
}

// Leaves of one size, of very different ones, and those at which rules and switches lie.
double any_number(std::mt19937_64& random, int how) {
  const double number = std::uniform_real_distribution<>(0.5, 2)(random) * (random() % 2 == 0 ? 1 : -1);
  const double exponent = std::uniform_real_distribution<>(-1, 1)(random);
  if (how == 0) return number;
  if (how < 3) return number * std::exp2(exponent * (how == 1 ? 40 : 1000));
  const auto& special = testing::special_values();
  return random() % 3 == 0 ? special[random() % special.size()] : std::round(number * 4) / 4;
}

// Extended precision is a program that rounds otherwise at each operation, and that neither overflows nor underflows.
TEST_F(BoundedTest, HoldsForOtherRoundings) {
  std::size_t known = 0;
  for (int seed = 0; seed < 2000; ++seed) {
    testing::RandomGraph random(static_cast<std::uint64_t>(seed));
    std::vector<NodeId> nodes;
    for (int i = 0; i < 150; ++i) nodes.push_back(random.grow(seed % 2 == 0 ? 400 : 40));
    std::mt19937_64 any(static_cast<std::uint64_t>(seed));
    testing::Inputs<long double> inputs;
    const auto values = evaluate_bounded(random.graph, nodes, [&](const Node& leaf) {
      auto [entry, is_new] = inputs.leaves.try_emplace({leaf.argument, leaf.args[0]});
      if (is_new) entry->second = any_number(any, seed % 4);
      return static_cast<double>(entry->second);
    });
    const auto exact = testing::values<long double>(random.graph, nodes, inputs);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (std::isinf(values[i].bound)) continue;
      ++known;
      const long double value = values[i].value;
      ASSERT_TRUE(value == exact[i] || std::fabs(value - exact[i]) <= values[i].bound)
          << "seed " << seed << ", node " << nodes[i] << ": " << value << ", " << exact[i] << ", " << values[i].bound;
    }
  }
  EXPECT_GT(known, 100'000U);
}

TEST_F(BoundedTest, NothingIsSaidWhereArgumentsMayBeAnywhere) {
  const NodeId large = op(Op::kMul, u_, n(1e17));  // uncertain by many turns
  for (const Op periodic : {Op::kSin, Op::kCos, Op::kTan}) EXPECT_EQ(at(op(periodic, large), 1.1).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kFmod, large, n(3)), 1.1).bound, kInfinity);
  const NodeId rest = op(Op::kSub, op(Op::kMul, u_, n(1.0 / 3)), n(1));  // 0, or next to it
  EXPECT_EQ(at(op(Op::kPow, rest, n(-2)), 3).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kTan, op(Op::kMul, u_, n(0.5))), 3.14159265358979).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kMul, n(0), op(Op::kPow, rest, n(-2))), 3).bound, kInfinity);
  EXPECT_EQ(at(op(Op::kMul, op(Op::kMul, u_, n(1e300)), n(1e10)), 2).bound, kInfinity);  // an FMA may stay finite
}

Problem diffusion(std::uint32_t components) {
  Problem problem;
  problem.name = "diffusion";
  problem.fields = {{"c", components, 0}};
  problem.constants = {{"k", 0}};
  Residual flux{.name = "f1_0", .kind = Kind::kF1};
  const NodeId k = problem.graph.leaf(kConstants, 0);
  for (std::uint32_t i = 0; i < 2 * components; ++i)
    flux.entries.push_back(problem.graph.binary(Op::kMul, k, problem.graph.leaf(kUx, i)));
  problem.residuals = {flux};
  problem.blocks = {{.name = "g2_0_0", .kind = Kind::kG2}, {.name = "g3_0_0", .kind = Kind::kG3}};
  return problem;
}

TEST(Canary, WantsEachFunctionThatIsNotZeroAtTheSolversOwnConstants) {
  Problem problem = diffusion(1);
  const auto functions = lower(problem);
  ASSERT_TRUE(functions);
  const auto canary = make_canary(problem, *functions, {.prefix = "p_", .constants = {7.5}});
  EXPECT_EQ(canary.table, "p_table");
  ASSERT_EQ(canary.points.size(), 3u);
  ASSERT_EQ(canary.calls.size(), 2u);  // g2 is identically zero
  const common::Canary::Output& block = canary.calls[1].outputs[0];
  EXPECT_EQ(canary.calls[1].function, "g3_0_0");
  EXPECT_EQ(block.kind + " of " + block.of, "g3 of block c-c (g3_0_0)");
  EXPECT_EQ(block.shape, (std::vector<std::uint32_t>{1, 1, 2, 2}));
  ASSERT_EQ(block.want.size(), 12u);
  EXPECT_EQ(block.want[0], 7.5);
  EXPECT_EQ(block.want[1], 0);
  EXPECT_NE(block.want[4], 7.5);
  EXPECT_EQ(make_canary(problem, *functions, {.prefix = "p_", .constants = {7.5}}), canary);
}

TEST(Canary, DoesNotDependOnTheCallersArithmetic) {
  Problem problem = diffusion(1);
  problem.residuals[0].entries[0] =
      problem.graph.binary(Op::kMul, problem.graph.leaf(kConstants, 0), problem.graph.number(1e-10));
  const auto functions = lower(problem);
  ASSERT_TRUE(functions);
  const CanaryOptions options{.prefix = "p_", .constants = {0x1p-1000}};
  const auto canary = make_canary(problem, *functions, options);
  EXPECT_NE(canary.calls[0].outputs[0].want[0], 0);
  std::fenv_t saved;
  std::fegetenv(&saved);
  std::fesetround(FE_UPWARD);
  _mm_setcsr((_mm_getcsr() | 0x8040) & ~0x0e80U);  // flushes subnormal numbers, traps all but the inexact
  const unsigned control = _mm_getcsr();
  const auto other = make_canary(problem, *functions, options);
  const unsigned after = _mm_getcsr();
  std::fesetenv(&saved);
  EXPECT_EQ(other, canary);
  EXPECT_EQ(after, control);
}

TEST(Canary, IsBounded) {
  Problem problem = diffusion(100);  // 200 entries of f1, 40,000 of g3
  const auto functions = lower(problem);
  ASSERT_TRUE(functions);
  EXPECT_EQ(make_canary(problem, *functions, {}).points.size(), 1u);
  problem = diffusion(200);  // 160,000 of g3
  const auto larger = lower(problem);
  ASSERT_TRUE(larger);
  EXPECT_EQ(make_canary(problem, *larger, {}).calls.size(), 1u);
  EXPECT_TRUE(make_canary(problem, *larger, {.layout = CanaryOptions::Layout::kFused}).calls.empty());
}

}  // namespace
}  // namespace jitc::graph
