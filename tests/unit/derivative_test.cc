// Derivatives against differences in extended precision, slot by slot, and at kinks, where differences say nothing.
#include "client/graph/derivative.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "client/graph/evaluate.h"
#include "client/graph/rows.h"
#include "tests/support/graph_oracle.h"

namespace jitc::graph {
namespace {

using testing::Inputs;
using testing::Key;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Derivative : public ::testing::Test {
 protected:
  NodeId num(double value) { return g_.number(value); }
  NodeId un(Op op, NodeId x) { return g_.unary(op, x); }
  NodeId add(NodeId x, NodeId y) { return g_.binary(Op::kAdd, x, y); }
  NodeId mul(NodeId x, NodeId y) { return g_.binary(Op::kMul, x, y); }
  NodeId div(NodeId x, NodeId y) { return g_.binary(Op::kDiv, x, y); }
  NodeId max(std::vector<NodeId> list) { return g_.extremum(Op::kMax, list); }
  NodeId min(std::vector<NodeId> list) { return g_.extremum(Op::kMin, list); }

  std::vector<NodeId> rows(std::vector<NodeId> functions, const TangentOptions& options = {}) {
    auto result = differentiate(g_, functions, directions_, options);
    EXPECT_TRUE(result) << common::to_line(result.error());
    return std::move(result).value_or(std::vector<NodeId>(functions.size() * directions_.size()));
  }
  // At u = point.
  std::vector<double> at(const std::vector<NodeId>& outputs, const std::vector<double>& point) {
    return evaluate(g_, outputs, [&](const Node& leaf) { return point.at(leaf.args[0]); });
  }
  std::vector<double> slopes(NodeId function, const std::vector<double>& point, Ties ties = Ties::kHalf) {
    return at(rows({function}, {.ties = ties}), point);
  }

  // All derivatives of all functions agree with differences.
  void expect_differences(const std::vector<NodeId>& functions, const std::vector<double>& point,
                          double tolerance = 1e-11) {
    Inputs<long double> inputs;
    for (std::uint32_t i = 0; i < point.size(); ++i) inputs.leaves[{kU, i}] = point[i];
    const auto got = at(rows(functions), point);
    const std::size_t n = directions_.size();
    for (std::size_t j = 0; j < n; ++j) {
      const auto expected = testing::differences(g_, functions, {kU, g_[directions_[j]].args[0]}, inputs);
      for (std::size_t i = 0; i < functions.size(); ++i) {
        const double value = got[i * n + j];
        ASSERT_NEAR(value, expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
            << name_of(g_[functions[i]].op) << ", function " << i << ", direction " << j;
      }
    }
  }

  Graph g_;
  NodeId x_ = g_.leaf(kU, 0);
  NodeId y_ = g_.leaf(kU, 1);
  NodeId z_ = g_.leaf(kU, 2);
  std::vector<NodeId> directions_ = {x_, y_, z_};
};

TEST_F(Derivative, OfEveryFunctionOfOneArgument) {
  struct Case {
    Op op;
    std::vector<double> points;
  };
  const Case cases[] = {
      {Op::kNeg, {0.3}},         {Op::kSqrt, {0.3, 7.0}},  {Op::kCbrt, {0.3, -2.0}},  {Op::kExp, {0.3, -2.0}},
      {Op::kExpm1, {0.3, -2.0}}, {Op::kLog, {0.3, 7.0}},   {Op::kLog1p, {0.3, -0.6}}, {Op::kLog2, {0.3, 7.0}},
      {Op::kLog10, {0.3, 7.0}},  {Op::kSin, {0.3, 4.0}},   {Op::kCos, {0.3, 4.0}},    {Op::kTan, {0.3, 4.0}},
      {Op::kAsin, {0.3, -0.9}},  {Op::kAcos, {0.3, -0.9}}, {Op::kAtan, {0.3, -4.0}},  {Op::kSinh, {0.3, -2.0}},
      {Op::kCosh, {0.3, -2.0}},  {Op::kTanh, {0.3, -2.0}}, {Op::kAsinh, {0.3, -2.0}}, {Op::kAcosh, {1.3, 7.0}},
      {Op::kAtanh, {0.3, -0.9}}, {Op::kErf, {0.3, -1.2}},  {Op::kErfc, {0.3, -1.2}},  {Op::kAbs, {0.3, -2.0}},
      {Op::kFloor, {0.3, -2.5}}, {Op::kCeil, {0.3, -2.5}}, {Op::kSign, {0.3, -2.5}}};
  EXPECT_EQ(std::size(cases), static_cast<std::size_t>(Op::kSign) - static_cast<std::size_t>(Op::kNeg) + 1);
  for (const auto& [op, points] : cases) {
    // The argument is x^2 y / y^2 + ...: a row of two entries, neither of them 1.
    const NodeId inner = div(mul(x_, y_), num(1.25));
    for (const double point : points) expect_differences({un(op, x_), un(op, inner)}, {point, 1.25, 0.0});
  }
}

TEST_F(Derivative, OfEveryFunctionOfTwoArguments) {
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kPow, Op::kAtan2, Op::kHypot, Op::kFmod,
                      Op::kHeaviside, Op::kFmax, Op::kFmin}) {
    const NodeId square = mul(x_, x_);
    const std::vector<NodeId> functions = {g_.binary(op, x_, y_),       g_.binary(op, y_, x_),
                                           g_.binary(op, x_, x_),       g_.binary(op, x_, num(3.7)),
                                           g_.binary(op, num(3.7), x_), g_.binary(op, square, add(x_, y_)),
                                           g_.binary(op, z_, square),   g_.binary(op, un(Op::kSin, y_), z_)};
    for (const auto& point : {std::vector{0.7, 1.9, 0.4}, {2.3, 1.1, 0.9}, {5.3, 1.7, 3.1}}) {
      std::vector<NodeId> smooth;
      for (const NodeId f : functions) {
        // x mod x and its like jump everywhere.
        if (op != Op::kFmod || f != functions[2]) smooth.push_back(f);
      }
      expect_differences(smooth, point, 1e-10);
    }
  }
  // Quotients of negative sign, and the other quadrants.
  expect_differences({g_.binary(Op::kFmod, x_, y_), g_.binary(Op::kAtan2, x_, y_)}, {-7.3, 2.0, 0});
  expect_differences({g_.binary(Op::kFmod, x_, y_), g_.binary(Op::kAtan2, x_, y_)}, {7.3, -2.0, 0});
}

TEST_F(Derivative, OfPowers) {
  std::vector<NodeId> functions;
  for (const double power : {-3.0, -2.0, -1.5, -1.0, -0.7, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0}) {
    functions.push_back(g_.binary(Op::kPow, add(mul(x_, y_), z_), num(power)));
  }
  functions.push_back(g_.binary(Op::kPow, x_, g_.leaf(kU, 3)));  // a constant that is no number
  functions.push_back(g_.binary(Op::kPow, add(x_, y_), mul(y_, z_)));
  expect_differences(functions, {0.7, 1.3, 0.4, 2.2});
}

TEST_F(Derivative, OfPowersAtZero) {
  const auto slope_of = [&](double power) { return slopes(g_.binary(Op::kPow, x_, num(power)), {0.0, 0.0, 0.0})[0]; };
  EXPECT_EQ(slope_of(0.0), 0.0);
  EXPECT_EQ(slope_of(1.0), 1.0);
  EXPECT_EQ(slope_of(1.25), 0.0);
  EXPECT_EQ(slope_of(1.5), 0.0);
  EXPECT_EQ(slope_of(2.0), 0.0);
  EXPECT_EQ(slope_of(3.0), 0.0);
  EXPECT_EQ(slope_of(0.25), kInfinity);
  EXPECT_EQ(slope_of(-0.7), -kInfinity);
  // The logarithm of the base stands only where the exponent varies.
  const NodeId power = g_.binary(Op::kPow, x_, add(y_, num(2.0)));
  EXPECT_EQ(slopes(power, {0.0, 0.5, 0.0})[0], 0.0);
}

// A function that is nobody's transposed: rows and columns cannot be taken for each other.
TEST_F(Derivative, OfAsymmetricMatrices) {
  std::vector<NodeId> functions;
  const NodeId s = un(Op::kSqrt, add(add(mul(x_, x_), mul(num(2.0), mul(y_, z_))), num(0.3)));
  for (std::size_t i = 0; i < 5; ++i) {
    const NodeId own = mul(num(1.0 + static_cast<double>(i)), directions_[i % 3]);
    functions.push_back(div(mul(s, own), add(un(Op::kExp, y_), num(static_cast<double>(i)))));
  }
  expect_differences(functions, {0.7, 1.3, 0.4});
  const auto all = rows(functions);
  EXPECT_EQ(all.size(), 15U);
  EXPECT_NE(all[1], all[3]);
}

TEST_F(Derivative, NothingButLeavesThatAreDirections) {
  const NodeId a = g_.leaf(kA, 0);
  const NodeId ux = g_.leaf(kUx, 0);
  const NodeId f = add(mul(a, un(Op::kExp, ux)), mul(x_, a));
  EXPECT_EQ(rows({f, a, num(3.0)}),
            (std::vector{a, num(0.0), num(0.0), num(0.0), num(0.0), num(0.0), num(0.0), num(0.0), num(0.0)}));
  directions_ = {x_, ux, x_};
  const auto twice = rows({f});
  EXPECT_EQ(twice[0], a);
  EXPECT_EQ(twice[2], a) << "a direction may be given twice";
  directions_ = {};
  EXPECT_TRUE(rows({f}).empty());
  EXPECT_TRUE(rows({}).empty());
}

TEST_F(Derivative, StructuralZerosAreSkipped) {
  const NodeId f = g_.binary(Op::kSub, mul(num(3.0), x_), mul(num(3.0), x_));
  EXPECT_EQ(rows({f})[0], num(0.0));
  const std::size_t size = g_.size();
  EXPECT_EQ(rows({un(Op::kFloor, x_), un(Op::kSign, y_)}), std::vector<NodeId>(6, num(0.0)));
  EXPECT_LE(g_.size(), size + 2) << "nothing was built but the functions";
}

// ---- kinks ----------------------------------------------------------------------------------------------------------

TEST_F(Derivative, OfExtremaOfTwo) {
  const NodeId larger = max({mul(num(2.0), x_), mul(num(3.0), y_)});
  const NodeId smaller = min({mul(num(2.0), x_), mul(num(3.0), y_)});
  using V = std::vector<double>;
  EXPECT_EQ(slopes(larger, {3.0, 1.0, 0.0}), (V{2.0, 0.0, 0.0}));
  EXPECT_EQ(slopes(larger, {1.0, 3.0, 0.0}), (V{0.0, 3.0, 0.0}));
  EXPECT_EQ(slopes(larger, {3.0, 2.0, 0.0}), (V{1.0, 1.5, 0.0}));
  EXPECT_EQ(slopes(larger, {3.0, 2.0, 0.0}, Ties::kFirst), (V{2.0, 0.0, 0.0}));
  EXPECT_EQ(slopes(smaller, {3.0, 1.0, 0.0}), (V{0.0, 3.0, 0.0}));
  EXPECT_EQ(slopes(smaller, {1.0, 3.0, 0.0}), (V{2.0, 0.0, 0.0}));
  EXPECT_EQ(slopes(smaller, {3.0, 2.0, 0.0}), (V{1.0, 1.5, 0.0}));
  EXPECT_EQ(slopes(smaller, {3.0, 2.0, 0.0}, Ties::kFirst), (V{2.0, 0.0, 0.0}));
  for (const auto& [op, first, second] : {std::tuple{Op::kFmax, 1.0, 0.0}, {Op::kFmin, 0.0, 1.0}}) {
    EXPECT_EQ(slopes(g_.binary(op, x_, y_), {2.0, 1.0, 0.0}), (V{first, second, 0.0}));
    EXPECT_EQ(slopes(g_.binary(op, x_, y_), {1.0, 1.0, 0.0}), (V{0.5, 0.5, 0.0}));
  }
  EXPECT_EQ(slopes(max({x_, x_}), {1.0, 0.0, 0.0}), (V{1.0, 0.0, 0.0}));
  EXPECT_EQ(slopes(max({x_, num(1.0)}), {1.0, 0.0, 0.0}), (V{0.5, 0.0, 0.0}));
}

// The value of max(NaN, b) is b, and so is its derivative: b's alone.
TEST_F(Derivative, OfExtremaIgnoreANaN) {
  using V = std::vector<double>;
  const double nan = std::nan("");
  const NodeId other = mul(num(3.0), un(Op::kSqrt, y_));
  for (const Ties ties : {Ties::kHalf, Ties::kFirst}) {
    for (const auto& list : {std::vector{mul(x_, x_), other}, {other, mul(x_, x_)}}) {
      for (const NodeId extremum : {max(list), min(list), g_.binary(Op::kFmax, list[0], list[1])}) {
        EXPECT_EQ(slopes(extremum, {nan, 4.0, 0.0}, ties), (V{0.0, 0.75, 0.0}));
        EXPECT_EQ(slopes(extremum, {5.0, nan, 0.0}, ties), (V{10.0, 0.0, 0.0}));
      }
    }
    // 0 / 0 at rest, with a bound.
    const NodeId undefined = div(mul(x_, x_), mul(x_, y_));
    for (const NodeId bounded : {max({undefined, num(0.1)}), max({num(0.1), undefined}), min({undefined, num(0.1)})})
      EXPECT_EQ(slopes(mul(bounded, z_), {0.0, 0.0, 2.0}, ties), (V{0.0, 0.0, 0.1}));
  }
}

// Each argument has the weight heaviside(argument - largest other, 1/2): three that tie have 1/2 each, not the 1/4, 1/4
// and 1/2 of max(max(x, y), z).
TEST_F(Derivative, OfExtremaOfMore) {
  using V = std::vector<double>;
  for (const double sign : {1.0, -1.0}) {
    const NodeId extremum = sign > 0 ? max({x_, y_, z_}) : min({x_, y_, z_});
    const auto slopes_at = [&](double x, double y, double z, Ties ties) {
      return slopes(extremum, {sign * x, sign * y, sign * z}, ties);
    };
    EXPECT_EQ(slopes_at(3, 1, 2, Ties::kHalf), (V{1, 0, 0}));
    EXPECT_EQ(slopes_at(1, 3, 2, Ties::kHalf), (V{0, 1, 0}));
    EXPECT_EQ(slopes_at(1, 2, 3, Ties::kHalf), (V{0, 0, 1}));
    EXPECT_EQ(slopes_at(3, 3, 2, Ties::kHalf), (V{0.5, 0.5, 0}));
    EXPECT_EQ(slopes_at(3, 2, 3, Ties::kHalf), (V{0.5, 0, 0.5}));
    EXPECT_EQ(slopes_at(2, 3, 3, Ties::kHalf), (V{0, 0.5, 0.5}));
    EXPECT_EQ(slopes_at(3, 3, 3, Ties::kHalf), (V{0.5, 0.5, 0.5}));
    EXPECT_EQ(slopes_at(3, 3, 3, Ties::kFirst), (V{1, 0, 0}));
    EXPECT_EQ(slopes_at(2, 3, 3, Ties::kFirst), (V{0, 1, 0}));
    EXPECT_EQ(slopes_at(1, 2, 3, Ties::kFirst), (V{0, 0, 1}));
  }
  // The same argument given twice counts once.
  EXPECT_EQ(slopes(max({x_, y_, x_, x_}), {2.0, 1.0, 0.0}), (V{1, 0, 0}));
  EXPECT_EQ(slopes(max({x_, x_, x_}), {2.0, 1.0, 0.0}), (V{1, 0, 0}));
  // A NaN is no winner while there is a number.
  EXPECT_EQ(slopes(max({x_, y_, z_}), {std::nan(""), 1.0, 0.0}), (V{0, 1, 0}));
  // A constant may win, and the same direction may come from several arguments.
  const NodeId f = max({mul(num(2.0), x_), num(1.0), mul(num(5.0), x_)});
  EXPECT_EQ(slopes(f, {-1.0, 0, 0})[0], 0.0);
  EXPECT_EQ(slopes(f, {1.0, 0, 0})[0], 5.0);
  EXPECT_EQ(slopes(f, {0.2, 0, 0})[0], 2.5);
}

TEST_F(Derivative, OfAbsoluteValues) {
  using V = std::vector<double>;
  EXPECT_EQ(slopes(un(Op::kAbs, x_), {0.0, 0.0, 0.0})[0], 0.0);
  const NodeId f = un(Op::kAbs, mul(x_, y_));
  EXPECT_EQ(slopes(f, {2.0, -3.0, 0.0}), (V{3.0, -2.0, 0.0}));
  EXPECT_EQ(slopes(f, {2.0, 3.0, 0.0}), (V{3.0, 2.0, 0.0}));
  EXPECT_EQ(slopes(f, {0.0, 3.0, 0.0}), (V{0.0, 0.0, 0.0}));
  // At 0 nothing is left of a slope that is infinite.
  EXPECT_EQ(slopes(un(Op::kAbs, un(Op::kSqrt, x_)), {0.0, 0.0, 0.0})[0], 0.0);
}

TEST_F(Derivative, OfBranches) {
  const NodeId condition = g_.binary(Op::kLe, x_, num(1.0));
  const NodeId f = g_.select(condition, mul(x_, x_), un(Op::kLog, x_));
  EXPECT_EQ(slopes(f, {1.0, 0.0, 0.0})[0], 2.0) << "the branch that the condition takes";
  EXPECT_EQ(slopes(f, {2.0, 0.0, 0.0})[0], 0.5);
  EXPECT_EQ(slopes(f, {0.0, 0.0, 0.0})[0], 0.0) << "1/x is infinite in the branch not taken";
}

// Clipped viscosities at zero strain rate: what is not chosen is infinite or NaN, and leaves no trace.
TEST_F(Derivative, RestStatesAreFinite) {
  const NodeId rate = un(Op::kSqrt, add(mul(x_, x_), mul(y_, y_)));
  const NodeId powerlaw = g_.binary(Op::kPow, rate, num(-0.7));
  const NodeId yield = div(num(0.3), mul(num(2.0), rate));
  const NodeId effective = div(num(1.0), add(div(num(1.0), powerlaw), div(num(1.0), yield)));
  const NodeId clipped = max({min({effective, num(100.0)}), num(0.1)});
  const NodeId three = min({powerlaw, yield, num(50.0)});
  const NodeId branch = g_.select(g_.binary(Op::kGt, rate, num(1e-9)), yield, num(7.0));
  for (const Ties ties : {Ties::kHalf, Ties::kFirst}) {
    for (const auto& [viscosity, value] : {std::pair{clipped, 100.0}, {three, 50.0}, {branch, 7.0}}) {
      EXPECT_EQ(slopes(mul(viscosity, x_), {0.0, 0.0, 0.0}, ties), (std::vector{value, 0.0, 0.0}));
    }
  }
}

// ---- names ----------------------------------------------------------------------------------------------------------

TEST_F(Derivative, NamesAreSeenThroughOrHeldFixed) {
  const NodeId viscosity = g_.named("viscosity", un(Op::kExp, x_));
  const NodeId density = g_.named("density", mul(x_, y_));
  const NodeId f = mul(viscosity, add(density, x_));
  const std::vector<double> point = {0.3, 0.7, 0.0};
  const double e = std::exp(0.3);
  const auto slope_with = [&](const TangentOptions& options) { return at(rows({f}, options), point)[0]; };
  EXPECT_DOUBLE_EQ(slope_with({}), e * (0.21 + 0.3) + e * 1.7);
  EXPECT_DOUBLE_EQ(slope_with({.freeze_all = true}), e);
  EXPECT_DOUBLE_EQ(slope_with({.frozen = {"viscosity"}}), e * 1.7);
  EXPECT_DOUBLE_EQ(slope_with({.frozen = {"density", "unknown"}}), e * (0.21 + 0.3) + e);
  expect_differences({f, viscosity, density}, point);
}

// ---- opaque functions -----------------------------------------------------------------------------------------------

TEST_F(Derivative, OfCallsByTheirPartialDerivatives) {
  const FunctionId first = g_.declare({"f_0", 2, {}});
  const FunctionId second = g_.declare({"f_1", 2, {}});
  const FunctionId f = g_.declare({"f", 2, {first, second}});
  const NodeId list[] = {mul(x_, y_), add(y_, z_)};
  const NodeId call = g_.call(f, list);
  // f(a, b) = a^2 sin(b)
  const auto opaque = [](const Function& function, std::span<const double> v) {
    if (function.name == "f_0") return 2 * v[0] * std::sin(v[1]);
    return v[0] * v[0] * (function.name == "f_1" ? std::cos(v[1]) : std::sin(v[1]));
  };
  const double x = 0.3, y = 0.7, z = 0.2;
  const auto got =
      evaluate(g_, rows({call}), [&](const Node& leaf) { return std::array{x, y, z}[leaf.args[0]]; }, opaque);
  const double a = 2 * x * y * std::sin(y + z);
  const double b = x * y * x * y * std::cos(y + z);
  EXPECT_DOUBLE_EQ(got[0], a * y);
  EXPECT_DOUBLE_EQ(got[1], a * x + b);
  EXPECT_DOUBLE_EQ(got[2], b);
}

TEST_F(Derivative, AFunctionMayBeItsOwnDerivative) {
  const FunctionId f = g_.declare({"grow", 1, {}});
  g_.declare({"grow", 1, {f}});
  const NodeId call = g_.call(f, {&x_, 1});
  EXPECT_EQ(rows({call})[0], call);
}

TEST_F(Derivative, WhatDoesNotExistIsNamed) {
  const FunctionId known = g_.declare({"df", 2, {}});
  const FunctionId f = g_.declare({"mystery", 2, {known}});
  const NodeId fine[] = {x_, num(2.0)};
  const NodeId list[] = {x_, y_};
  const NodeId call = g_.call(f, list);
  const NodeId outer = un(Op::kExp, call);
  EXPECT_TRUE(differentiate(g_, std::vector{g_.call(f, fine)}, directions_, {}));
  const auto failed = differentiate(g_, std::vector{mul(x_, y_), outer}, directions_, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, common::ErrorKind::kUsage);
  EXPECT_NE(failed.error().message.find("mystery"), std::string::npos);
  EXPECT_NE(failed.error().message.find("argument 1"), std::string::npos);
  EXPECT_EQ(failed.error().thing, "function 1, node " + std::to_string(call));
  EXPECT_EQ(differentiate(g_, std::vector{mul(x_, y_), outer}, directions_,
                          {.label = [](std::size_t i) { return "entry " + std::to_string(i); },
                           .origin = [](NodeId id) { return "the place of " + std::to_string(id); }})
                .error()
                .thing,
            "entry 1, the place of " + std::to_string(call));
  // Held fixed or only compared, it need not be known.
  const NodeId fixed = g_.named("n", outer);
  const NodeId compared = g_.select(g_.binary(Op::kLt, outer, x_), x_, y_);
  EXPECT_TRUE(differentiate(g_, std::vector{fixed, compared}, directions_, {.freeze_all = true}));
  const TangentOptions options{.frozen = {"n"}};
  EXPECT_EQ(differentiate(g_, std::vector{fixed, compared, outer}, directions_, options).error().thing,
            "function 2, node " + std::to_string(call));
  // A partial derivative that was never declared.
  const FunctionId wild = g_.declare({"wild", 1, {FunctionId{12345}}});
  EXPECT_FALSE(differentiate(g_, std::vector{g_.call(wild, {&x_, 1})}, directions_, {}));
}

TEST_F(Derivative, OnlyValuesByLeaves) {
  const NodeId condition = g_.binary(Op::kLt, x_, y_);
  EXPECT_EQ(differentiate(g_, std::vector{x_, condition}, directions_, {}).error().thing, "function 1");
  EXPECT_EQ(differentiate(g_, std::vector{NodeId{999'999}}, directions_, {}).error().thing, "function 0");
  EXPECT_EQ(differentiate(g_, std::vector{x_}, std::vector{x_, mul(x_, y_)}, {}).error().thing, "direction 1");
  EXPECT_FALSE(differentiate(g_, std::vector{x_}, std::vector{NodeId{999'999}}, {}));
}

TEST(DerivativeLimits, AFullGraphIsRefused) {
  Graph g(6);
  const NodeId x = g.leaf(kU, 0);
  const NodeId f = g.unary(Op::kTanh, g.unary(Op::kSin, x));
  const auto result = differentiate(g, std::vector{f}, std::vector{x}, {});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("full"), std::string::npos);
  EXPECT_FALSE(differentiate(g, std::vector{x}, std::vector{x}, {})) << "nor is anything asked of it later";
}

// ---- sweeps ---------------------------------------------------------------------------------------------------------

// One entry at a time and all at once give the same expressions, told by their contents.
TEST_F(Derivative, EntriesDoNotDependOnTheirCompany) {
  const auto build = [](Graph& g) {
    std::vector<NodeId> u;
    for (std::uint32_t i = 0; i < 4; ++i) u.push_back(g.leaf(kU, i));
    const auto bin = [&](Op op, NodeId x, NodeId y) { return g.binary(op, x, y); };
    const NodeId p = bin(Op::kPow, bin(Op::kAdd, u[0], u[1]), bin(Op::kMul, u[1], u[2]));
    const NodeId list[] = {p, bin(Op::kMul, u[0], u[3]), bin(Op::kDiv, u[2], u[0])};
    const NodeId m = g.extremum(Op::kMax, list);
    const NodeId n = g.extremum(Op::kMin, std::span(list).first(2));
    return std::vector{bin(Op::kMul, m, n), bin(Op::kAtan2, m, u[1]), g.unary(Op::kAbs, bin(Op::kDiv, n, p)),
                       bin(Op::kHypot, p, u[3])};
  };
  for (const Ties ties : {Ties::kHalf, Ties::kFirst}) {
    Graph together;
    const auto functions = build(together);
    std::vector<NodeId> directions;
    for (std::uint32_t j = 0; j < 4; ++j) directions.push_back(together.leaf(kU, j));
    const auto all = differentiate(together, functions, directions, {.ties = ties});
    ASSERT_TRUE(all);
    for (std::size_t i = 0; i < functions.size(); ++i) {
      for (std::uint32_t j = 0; j < 4; ++j) {
        Graph alone;
        const std::vector one = {build(alone)[i]};
        const auto entry = differentiate(alone, one, std::vector{alone.leaf(kU, j)}, {.ties = ties});
        ASSERT_TRUE(entry);
        ASSERT_EQ(alone.content(entry->front()), together.content((*all)[i * 4 + j])) << i << ' ' << j;
      }
    }
  }
}

// Through one invariant, a direction more costs one product more, however much is computed from the invariant.
TEST_F(Derivative, CommonFactorsAreMultipliedOnce) {
  const auto cost = [](std::uint32_t n) {
    Graph g;
    NodeId square = g.number(0.5);
    std::vector<NodeId> directions;
    for (std::uint32_t i = 0; i < n; ++i) {
      directions.push_back(g.leaf(kU, i));
      const NodeId twice = g.binary(Op::kAdd, directions[i], directions[i]);  // as its derivative will have it
      square = g.binary(Op::kAdd, square, g.binary(Op::kMul, directions[i], twice));
    }
    const NodeId root = g.unary(Op::kSqrt, square);
    const NodeId power = g.binary(Op::kPow, root, g.number(-0.7));
    const NodeId f = g.binary(Op::kAdd, g.unary(Op::kExp, power), g.binary(Op::kDiv, power, g.unary(Op::kTanh, root)));
    const std::size_t before = g.size();
    EXPECT_TRUE(differentiate(g, std::vector{f}, directions, {}));
    return g.size() - before;
  };
  const std::size_t rows_own = cost(9) - cost(8);
  EXPECT_LE(rows_own, 3U) << "the row of the square, and one product";
}

TEST_F(Derivative, DepthCostsNoStackAndFewNodes) {
  NodeId chain = x_;
  constexpr int kDepth = 1'000'000;
  for (int i = 0; i < kDepth; ++i) chain = un(Op::kSin, add(chain, y_));
  const std::size_t before = g_.size();
  const auto row = rows({chain});
  EXPECT_LE(g_.size(), before + 5 * std::size_t{kDepth});
  double value = 0.25, dx = 1.0, dy = 0.0;
  for (int i = 0; i < kDepth; ++i) {
    const double slope = std::cos(value + 0.125);
    dx = slope * dx;
    dy = slope * (dy + 1.0);
    value = std::sin(value + 0.125);
  }
  const auto got = at(row, {0.25, 0.125, 0.0});
  EXPECT_NEAR(got[0], dx, 1e-12);
  EXPECT_NEAR(got[1], dy, 1e-12 * std::fabs(dy));
}

TEST(Rows, AreForgottenWhenDropped) {
  constexpr NodeId kNodes = 100'000;
  constexpr std::uint32_t kDirections = 100;
  Rows rows(kNodes);
  const std::size_t start = rows.bytes();
  for (NodeId id = 0; id < kNodes; ++id) {
    rows.begin();
    for (std::uint32_t j = 0; j < kDirections; ++j) rows.add({j, {id + j}});
    rows.end(id);
    if (id >= 3) rows.drop(id - 2);  // the first row lives on
  }
  EXPECT_LT(rows.bytes(), start + (std::size_t{4} << 20)) << "80 MB were written";
  for (const NodeId id : {NodeId{0}, kNodes - 1}) {
    ASSERT_EQ(rows[id].count, kDirections);
    for (std::uint32_t j = 0; j < kDirections; ++j) ASSERT_EQ(rows.entry(rows[id], j).term.value, id + j);
  }
}

// ---- the guard ------------------------------------------------------------------------------------------------------

TEST_F(Derivative, GuardedHalfPowersAreFiniteAtRest) {
  const NodeId square = add(mul(x_, x_), mul(y_, y_));
  const std::vector<NodeId> functions = {un(Op::kSqrt, square), g_.binary(Op::kPow, square, num(-0.5)),
                                         g_.binary(Op::kPow, square, num(1.5)),
                                         g_.named("n", un(Op::kExp, un(Op::kSqrt, square)))};
  EXPECT_TRUE(std::isnan(slopes(functions[0], {0.0, 0.0, 0.0})[0]));
  const auto guarded = guard_half_powers(g_, functions, 1e-36).functions;
  const NodeId base = add(square, num(1e-36));
  EXPECT_EQ(guarded[0], un(Op::kSqrt, base));
  EXPECT_EQ(guarded[1], g_.binary(Op::kPow, base, num(-0.5)));
  EXPECT_EQ(guarded[2], g_.binary(Op::kPow, base, num(1.5)));
  EXPECT_EQ(guarded[3], g_.named("n", un(Op::kExp, un(Op::kSqrt, base))));
  for (const double slope : at(rows(guarded), {0.0, 0.0, 0.0})) EXPECT_EQ(slope, 0.0);
}

TEST_F(Derivative, GuardLeavesTheRestAlone) {
  const NodeId inner = un(Op::kSqrt, x_);
  const std::vector<NodeId> functions = {un(Op::kCbrt, x_),
                                         g_.binary(Op::kPow, x_, num(2.0)),
                                         g_.binary(Op::kPow, x_, num(1.0 / 3)),
                                         g_.binary(Op::kPow, x_, y_),
                                         g_.binary(Op::kPow, num(2.0), num(0.5)),
                                         g_.binary(Op::kHypot, x_, y_),
                                         x_,
                                         num(3.0)};
  EXPECT_EQ(guard_half_powers(g_, functions, 1e-36).functions, functions);
  EXPECT_EQ(guard_half_powers(g_, std::vector{inner}, 0.0).functions, std::vector{inner});
  EXPECT_TRUE(guard_half_powers(g_, {}, 1e-36).functions.empty());
  // Inside out.
  const NodeId e = num(1e-36);
  const auto nested = guard_half_powers(g_, std::vector{un(Op::kSqrt, mul(inner, y_))}, 1e-36).functions;
  EXPECT_EQ(nested[0], un(Op::kSqrt, add(mul(un(Op::kSqrt, add(x_, e)), y_), e)));
}

}  // namespace
}  // namespace jitc::graph
