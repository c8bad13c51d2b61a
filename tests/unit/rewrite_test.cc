// Every rewrite is exact for every value, and nothing else is rewritten.
#include "client/graph/rewrite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "client/graph/evaluate.h"
#include "tests/support/graph_oracle.h"

namespace jitc::graph {
namespace {

using testing::same_bits;

class Rewrite : public ::testing::Test {
 protected:
  NodeId num(double value) { return g_.number(value); }
  NodeId neg(NodeId x) { return g_.unary(Op::kNeg, x); }
  NodeId bin(Op op, NodeId x, NodeId y) { return g_.binary(op, x, y); }

  // The node computes op(a, b) as written, whatever it was turned into: x_ stands for every value.
  void expect_exact(Op op, NodeId a, NodeId b) {
    const NodeId built = bin(op, a, b);
    const bool is_constant = g_.is_number(a) && g_.is_number(b);
    for (const double x : std::span(values()).first(is_constant ? 1 : values().size())) {
      const auto leaf = [x](const Node&) { return x; };
      const NodeId parts[] = {a, b, built};
      const auto got = evaluate(g_, parts, leaf);
      const double expected = testing::apply<double>(op, std::span(got).first(2));
      ASSERT_TRUE(same_bits(got[2], expected))
          << name_of(op) << " of " << got[0] << " and " << got[1] << ": " << got[2] << ", not " << expected;
    }
  }
  // It is one node of that operator with those arguments, in one order or the other.
  void expect_kept(Op op, NodeId a, NodeId b) {
    const NodeId built = bin(op, a, b);
    ASSERT_EQ(g_[built].op, op) << name_of(op) << " became " << name_of(g_[built].op);
    const auto arguments = g_.arguments(built);
    EXPECT_TRUE((arguments[0] == a && arguments[1] == b) || (arguments[0] == b && arguments[1] == a)) << name_of(op);
  }
  void expect_kept(Op op, NodeId x) {
    const NodeId built = g_.unary(op, x);
    ASSERT_EQ(g_[built].op, op) << name_of(op) << " became " << name_of(g_[built].op);
    EXPECT_EQ(g_.arguments(built)[0], x);
  }

  static const std::vector<double>& values() {
    static const std::vector<double> all = [] {
      std::vector<double> made = testing::special_values();
      std::mt19937_64 random(7);
      while (made.size() < 100) made.push_back(std::bit_cast<double>(random()));
      return made;
    }();
    return all;
  }

  Graph g_;
  NodeId x_ = g_.leaf(kU, 0);
  NodeId y_ = g_.leaf(kU, 1);
};

constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_F(Rewrite, Identities) {
  EXPECT_EQ(bin(Op::kMul, x_, num(1.0)), x_);
  EXPECT_EQ(bin(Op::kMul, num(1.0), x_), x_);
  EXPECT_EQ(bin(Op::kDiv, x_, num(1.0)), x_);
  EXPECT_EQ(bin(Op::kSub, x_, num(0.0)), x_);
  EXPECT_EQ(bin(Op::kAdd, x_, num(-0.0)), x_);
  EXPECT_EQ(bin(Op::kAdd, num(-0.0), x_), x_);
  EXPECT_EQ(neg(neg(x_)), x_);
  EXPECT_EQ(bin(Op::kMul, x_, num(-1.0)), neg(x_));
  EXPECT_EQ(bin(Op::kMul, neg(x_), num(-1.0)), x_);
  EXPECT_EQ(bin(Op::kDiv, x_, num(-1.0)), neg(x_));
  EXPECT_EQ(bin(Op::kMul, x_, num(2.0)), bin(Op::kAdd, x_, x_));
  EXPECT_EQ(bin(Op::kDiv, x_, num(0.5)), bin(Op::kAdd, x_, x_));
  EXPECT_EQ(bin(Op::kDiv, x_, num(2.0)), bin(Op::kMul, x_, num(0.5)));
  EXPECT_EQ(bin(Op::kDiv, x_, num(-1024.0)), bin(Op::kMul, x_, num(-1.0 / 1024)));
  EXPECT_EQ(bin(Op::kDiv, x_, num(0x1p1022)), bin(Op::kMul, x_, num(0x1p-1022)));
  EXPECT_EQ(bin(Op::kDiv, x_, num(0x1p-1022)), bin(Op::kMul, x_, num(0x1p1022)));
}

TEST_F(Rewrite, AreExactForEveryValue) {
  for (const double c : testing::special_values()) {
    for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) {
      expect_exact(op, x_, num(c));
      expect_exact(op, num(c), x_);
      for (const double d : testing::special_values()) expect_exact(op, num(c), num(d));
    }
  }
  for (int exponent = -1074; exponent <= 1023; exponent += 3) {
    expect_exact(Op::kDiv, x_, num(std::ldexp(1.0, exponent)));
    expect_exact(Op::kMul, x_, num(-std::ldexp(1.0, exponent)));
  }
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) {
    expect_exact(op, x_, x_);
    expect_exact(op, x_, neg(x_));
    expect_exact(op, neg(x_), x_);
    expect_exact(op, bin(op, x_, num(0.3)), num(0.7));
  }
}

TEST_F(Rewrite, FoldsTheFiveExactOperations) {
  EXPECT_EQ(bin(Op::kAdd, num(0.1), num(0.2)), num(0.1 + 0.2));
  EXPECT_EQ(bin(Op::kSub, num(0.1), num(0.2)), num(0.1 - 0.2));
  EXPECT_EQ(bin(Op::kMul, num(0.1), num(0.2)), num(0.1 * 0.2));
  EXPECT_EQ(bin(Op::kDiv, num(1.0), num(3.0)), num(1.0 / 3.0));
  EXPECT_EQ(bin(Op::kMul, num(kTiny), num(0.5)), num(0.0));
  EXPECT_EQ(g_.unary(Op::kSqrt, num(2.0)), num(std::sqrt(2.0)));
  EXPECT_EQ(g_.unary(Op::kSqrt, num(-0.0)), num(-0.0));
  EXPECT_EQ(neg(num(0.0)), num(-0.0));
}

TEST_F(Rewrite, WhatIsNotFiniteIsNotFolded) {
  expect_kept(Op::kDiv, num(1.0), num(0.0));
  expect_kept(Op::kMul, num(1e300), num(1e300));
  expect_kept(Op::kSub, num(kInfinity), num(kInfinity));
  expect_kept(Op::kAdd, num(std::nan("")), num(1.0));
  expect_kept(Op::kSqrt, num(-1.0));
}

TEST_F(Rewrite, NothingElse) {
  expect_kept(Op::kAdd, x_, num(0.0));  // -0
  expect_kept(Op::kSub, x_, num(-0.0));
  expect_kept(Op::kSub, num(0.0), x_);
  expect_kept(Op::kMul, x_, num(0.0));  // NaN, infinity, sign
  expect_kept(Op::kDiv, num(0.0), x_);
  expect_kept(Op::kSub, x_, x_);
  expect_kept(Op::kDiv, x_, x_);
  expect_kept(Op::kAdd, x_, x_);
  expect_kept(Op::kAdd, x_, neg(x_));
  expect_kept(Op::kSub, x_, neg(y_));
  expect_kept(Op::kMul, neg(x_), neg(y_));
  expect_kept(Op::kDiv, x_, num(3.0));  // rounds otherwise than x * (1/3)
  expect_kept(Op::kDiv, x_, y_);
  expect_kept(Op::kDiv, x_, num(0x1p1023));  // 2^-1023 is subnormal
  expect_kept(Op::kDiv, x_, num(kTiny));     // 2^1074 is infinite
  expect_kept(Op::kDiv, x_, num(0.0));
  expect_kept(Op::kDiv, x_, num(kInfinity));
  expect_kept(Op::kMul, x_, num(4.0));
  expect_kept(Op::kPow, x_, num(0.0));
  expect_kept(Op::kPow, x_, num(1.0));
  expect_kept(Op::kPow, x_, num(2.0));  // not x * x
  expect_kept(Op::kPow, x_, num(0.5));  // not sqrt
  expect_kept(Op::kPow, num(2.0), num(3.0));
  expect_kept(Op::kAtan2, num(0.0), num(1.0));
  expect_kept(Op::kHypot, num(3.0), num(4.0));
  expect_kept(Op::kFmax, num(3.0), num(4.0));
  expect_kept(Op::kHeaviside, num(3.0), num(0.5));
  expect_kept(Op::kLt, num(3.0), num(4.0));
  expect_kept(Op::kEq, x_, x_);  // NaN
  expect_kept(Op::kAnd, g_.truth(true), g_.truth(true));
  for (auto op = static_cast<int>(Op::kCbrt); op <= static_cast<int>(Op::kSign); ++op) {
    expect_kept(static_cast<Op>(op), num(0.0));
    expect_kept(static_cast<Op>(op), num(1.0));
    expect_kept(static_cast<Op>(op), x_);
  }
  expect_kept(Op::kAbs, neg(x_));
  expect_kept(Op::kSqrt, bin(Op::kMul, x_, x_));
  expect_kept(Op::kLog, g_.unary(Op::kExp, x_));
  const NodeId twice[] = {x_, x_};
  EXPECT_EQ(g_[g_.extremum(Op::kMax, twice)].op, Op::kMax);
  EXPECT_EQ(g_[g_.select(g_.truth(true), x_, y_)].op, Op::kSelect);
}

TEST_F(Rewrite, AssociationIsTheCallers) {
  const NodeId z = g_.leaf(kU, 2);
  for (const Op op : {Op::kAdd, Op::kMul}) {
    EXPECT_NE(bin(op, bin(op, x_, y_), z), bin(op, x_, bin(op, y_, z)));
    EXPECT_NE(bin(op, bin(op, x_, num(0.1)), num(0.2)), bin(op, x_, bin(op, num(0.1), num(0.2))));
  }
  EXPECT_NE(bin(Op::kMul, x_, bin(Op::kAdd, y_, z)), bin(Op::kAdd, bin(Op::kMul, x_, y_), bin(Op::kMul, x_, z)));
  EXPECT_NE(neg(bin(Op::kMul, x_, y_)), bin(Op::kMul, neg(x_), y_));
  EXPECT_NE(neg(bin(Op::kSub, x_, y_)), bin(Op::kSub, y_, x_));
}

}  // namespace
}  // namespace jitc::graph
