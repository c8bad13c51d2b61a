// Values of graphs apart from client/graph/evaluate.cc, in any floating-point type, and derivatives by differences:
// what tests compare with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::testing {

using graph::ArgumentId;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

// Any NaN equals any NaN.
inline bool same_bits(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}

// Where roundings and rules are likely to differ.
inline const std::vector<double>& special_values() {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> values = {0.0,
                                             -0.0,
                                             Limits::denorm_min(),
                                             -Limits::denorm_min(),
                                             3 * Limits::denorm_min(),
                                             Limits::min(),
                                             -Limits::min(),
                                             Limits::min() / 2,
                                             1.0,
                                             -1.0,
                                             1.0 + Limits::epsilon(),
                                             0.1,
                                             -1.0 / 3,
                                             2.0,
                                             -2.5,
                                             1e-160,
                                             1e160,
                                             -1e300,
                                             Limits::max(),
                                             -Limits::max(),
                                             Limits::infinity(),
                                             -Limits::infinity(),
                                             Limits::quiet_NaN()};
  return values;
}

using Key = std::pair<ArgumentId, std::uint32_t>;  // a leaf

template <class Real>
struct Inputs {
  std::map<Key, Real> leaves;
  std::map<std::string, std::function<Real(std::span<const Real>)>, std::less<>> functions;
};

// What an operator computes from its arguments' values. Not of numbers, leaves and calls.
template <class Real>
Real apply(Op op, std::span<const Real> x) {
  switch (op) {
    case Op::kTrue:
      return 1;
    case Op::kFalse:
      return 0;
    case Op::kNeg:
      return -x[0];
    case Op::kSqrt:
      return std::sqrt(x[0]);
    case Op::kCbrt:
      return std::cbrt(x[0]);
    case Op::kExp:
      return std::exp(x[0]);
    case Op::kExpm1:
      return std::expm1(x[0]);
    case Op::kLog:
      return std::log(x[0]);
    case Op::kLog1p:
      return std::log1p(x[0]);
    case Op::kLog2:
      return std::log2(x[0]);
    case Op::kLog10:
      return std::log10(x[0]);
    case Op::kSin:
      return std::sin(x[0]);
    case Op::kCos:
      return std::cos(x[0]);
    case Op::kTan:
      return std::tan(x[0]);
    case Op::kAsin:
      return std::asin(x[0]);
    case Op::kAcos:
      return std::acos(x[0]);
    case Op::kAtan:
      return std::atan(x[0]);
    case Op::kSinh:
      return std::sinh(x[0]);
    case Op::kCosh:
      return std::cosh(x[0]);
    case Op::kTanh:
      return std::tanh(x[0]);
    case Op::kAsinh:
      return std::asinh(x[0]);
    case Op::kAcosh:
      return std::acosh(x[0]);
    case Op::kAtanh:
      return std::atanh(x[0]);
    case Op::kErf:
      return std::erf(x[0]);
    case Op::kErfc:
      return std::erfc(x[0]);
    case Op::kAbs:
      return std::fabs(x[0]);
    case Op::kFloor:
      return std::floor(x[0]);
    case Op::kCeil:
      return std::ceil(x[0]);
    case Op::kSign:
      return x[0] > 0 ? 1 : x[0] < 0 ? -1 : 0;
    case Op::kNamed:
      return x[0];
    case Op::kAdd:
      return x[0] + x[1];
    case Op::kSub:
      return x[0] - x[1];
    case Op::kMul:
      return x[0] * x[1];
    case Op::kDiv:
      return x[0] / x[1];
    case Op::kPow:
      return std::pow(x[0], x[1]);
    case Op::kAtan2:
      return std::atan2(x[0], x[1]);
    case Op::kHypot:
      return std::hypot(x[0], x[1]);
    case Op::kFmod:
      return std::fmod(x[0], x[1]);
    case Op::kHeaviside:
      return x[0] > 0 ? 1 : x[0] < 0 ? 0 : x[1];
    case Op::kFmax:
      return std::fmax(x[0], x[1]);
    case Op::kFmin:
      return std::fmin(x[0], x[1]);
    case Op::kLt:
      return x[0] < x[1];
    case Op::kLe:
      return x[0] <= x[1];
    case Op::kGt:
      return x[0] > x[1];
    case Op::kGe:
      return x[0] >= x[1];
    case Op::kEq:
      return x[0] == x[1];
    case Op::kNe:
      return x[0] != x[1];
    case Op::kAnd:
      return x[0] != 0 && x[1] != 0;
    case Op::kOr:
      return x[0] != 0 || x[1] != 0;
    case Op::kNot:
      return x[0] == 0;
    case Op::kSelect:
      return x[0] != 0 ? x[1] : x[2];
    case Op::kMax:
    case Op::kMin: {
      // A NaN is ignored while another argument is a number; of equal arguments, the last one.
      Real best = x[0];
      for (const Real y : x.subspan(1)) {
        const bool stays = op == Op::kMax ? best > y : best < y;
        if (!stays && !std::isnan(y)) best = y;
      }
      return best;
    }
    default:
      return std::numeric_limits<Real>::quiet_NaN();
  }
}

template <class Real>
Real value_of(const Graph& from, NodeId id, std::span<const Real> x, const Inputs<Real>& inputs) {
  const Node& node = from[id];
  switch (node.op) {
    case Op::kNumber:
      return static_cast<Real>(from.number_of(id));
    case Op::kLeaf:
      return inputs.leaves.at({node.argument, node.args[0]});
    case Op::kCall:
      return inputs.functions.find(from.function(node.args[2]).name)->second(x);
    default:
      return apply<Real>(node.op, x);
  }
}

template <class Real>
std::vector<Real> values(const Graph& from, std::span<const NodeId> outputs, const Inputs<Real>& inputs) {
  const auto needed = graph::reachable(from, outputs);
  std::vector<Real> all(from.size());
  std::vector<Real> arguments;
  for (NodeId id = 0; id < from.size(); ++id) {
    if (!needed[id]) continue;
    arguments.clear();
    for (const NodeId argument : from.arguments(id)) arguments.push_back(all[argument]);
    all[id] = value_of<Real>(from, id, arguments, inputs);
  }
  std::vector<Real> result;
  for (const NodeId output : outputs) result.push_back(all[output]);
  return result;
}

// d outputs / d leaf by central differences with one step of Richardson's extrapolation, in extended precision: about
// twelve digits where the functions are smooth within `step`.
inline std::vector<double> differences(const Graph& from, std::span<const NodeId> outputs, Key leaf,
                                       Inputs<long double> inputs, long double step = 1e-4L) {
  const long double center = inputs.leaves.at(leaf);
  const auto at = [&](long double shift) {
    inputs.leaves[leaf] = center + shift;
    return values(from, outputs, inputs);
  };
  const auto far_right = at(2 * step), right = at(step), left = at(-step), far_left = at(-2 * step);
  std::vector<double> result;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const long double slope = (8 * (right[i] - left[i]) - (far_right[i] - far_left[i])) / (12 * step);
    result.push_back(static_cast<double>(slope));
  }
  return result;
}

}  // namespace jitc::testing
