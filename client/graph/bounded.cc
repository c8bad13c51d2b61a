#include "client/graph/bounded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "client/graph/evaluate.h"

namespace jitc::graph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit = 0x1p-53;
constexpr double kLeastNormal = std::numeric_limits<double>::min();
// Arguments that are less certain than so are moved too far for a look at their ends to tell what lies between.
constexpr double kMostMove = 0x1p-10;
// Beyond it another rounding, or a sum that is contracted with its product, may decide whether a result overflows.
constexpr double kNearOverflow = 0x1p+1020;

bool is_exactly_zero(const Bounded& x) { return x.value == 0 && x.bound == 0; }

// Of operations whose result is none of their arguments and no whole number.
double rounding(double result) {
  if (std::isinf(result)) return 0;
  return kUlps * kUnit * std::max(std::fabs(result), kLeastNormal);  // below it the unit stays the same
}

double difference(double x, double y) { return x == y ? 0.0 : std::fabs(x - y); }

// What moving one argument to both ends of where it may be does to the result.
double moved(Op op, std::span<const Bounded> x, std::size_t which, double value) {
  if (x[which].bound == 0) return 0;
  if (!std::isfinite(x[which].bound) || !(x[which].bound <= kMostMove * std::max(1.0, std::fabs(x[which].value))))
    return kInfinity;
  std::array<double, 2> arguments{x[0].value, x.size() > 1 ? x[1].value : 0.0};
  const auto at = [&](double argument) {
    arguments[which] = argument;
    return value_of(op, std::span<const double>(arguments).first(x.size()));
  };
  return difference(at(x[which].value - x[which].bound), value) +
         difference(at(x[which].value + x[which].bound), value);
}

// Of two arguments that are moved at once: twice what each does alone, as long as they are moved little.
double propagated(Op op, std::span<const Bounded> x, double value) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += moved(op, x, i, value);
  return static_cast<double>(x.size()) * sum;
}

// May the arguments be moved over a period, to the next branch or over a pole? Then their ends tell nothing.
bool is_out_of_sight(Op op, std::span<const Bounded> x, double value) {
  switch (op) {
    case Op::kSin:
    case Op::kCos:
      return x[0].bound > kMostMove;
    case Op::kTan:
      return x[0].bound * (1 + value * value) > kMostMove * std::max(1.0, std::fabs(value));
    case Op::kFmod:
      return x[0].bound + std::fabs(x[0].value / x[1].value) * x[1].bound > kMostMove * std::fabs(x[1].value);
    case Op::kPow:  // negative numbers have whole powers only
      return x[0].bound > kMostMove * std::fabs(x[0].value) || (x[0].value < 0 && x[1].bound > 0);
    default:
      return false;
  }
}

bool may_overflow(std::span<const Bounded> x, double value) {
  return std::fabs(value) > kNearOverflow &&
         std::ranges::all_of(x, [](const Bounded& one) { return std::isfinite(one.value); });
}

double bound_of_product(const Bounded& x, const Bounded& y, double value) {
  if (std::isinf(x.bound) || std::isinf(y.bound)) return kInfinity;
  if (is_exactly_zero(x) || is_exactly_zero(y)) return std::isnan(value) ? kInfinity : 0;
  const double moved = x.bound == 0 && y.bound == 0
                           ? 0
                           : std::fabs(x.value) * y.bound + std::fabs(y.value) * x.bound + x.bound * y.bound;
  return moved + rounding(value);
}

double bound_of_quotient(const Bounded& x, const Bounded& y, double value) {
  if (y.bound > 0 && std::fabs(y.value) <= 2 * y.bound) return kInfinity;
  if (is_exactly_zero(x)) return 0;
  if (x.bound == 0 && y.bound == 0) return rounding(value);
  const double least = std::fabs(y.value) - y.bound;
  return x.bound / least + std::fabs(value) * (y.bound / least) + rounding(value);
}

// 0 where the sum is exact: then both were.
double bound_of_sum(const Bounded& x, const Bounded& y, double value) {
  return x.bound + y.bound + (value == 0 ? 0 : rounding(value));
}

// The largest is between the largest lower end and the largest upper end: what is far below moves nothing.
double bound_of_extremum(std::span<const Bounded> x, double sign, double value) {
  double low = -kInfinity, high = -kInfinity;
  for (const Bounded& one : x) {
    if (std::isnan(one.value) || std::isinf(one.bound)) return kInfinity;
    low = std::max(low, sign * one.value - one.bound);
    high = std::max(high, sign * one.value + one.bound);
  }
  return std::max(difference(low, sign * value), difference(high, sign * value));
}

bool is_comparison(Op op) { return op >= Op::kLt && op <= Op::kNe; }

double bound_of(Op op, std::span<const Bounded> x, double value) {
  switch (op) {
    case Op::kNeg:
    case Op::kNamed:
    case Op::kAbs:
      return x[0].bound;
    case Op::kAdd:
    case Op::kSub:
      return bound_of_sum(x[0], x[1], value);
    case Op::kMul:
      return bound_of_product(x[0], x[1], value);
    case Op::kDiv:
      return bound_of_quotient(x[0], x[1], value);
    case Op::kSelect:
      return x[0].bound != 0 ? kInfinity : (x[0].value != 0 ? x[1] : x[2]).bound;
    case Op::kMax:
    case Op::kFmax:
      return bound_of_extremum(x, 1, value);
    case Op::kMin:
    case Op::kFmin:
      return bound_of_extremum(x, -1, value);
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kEq:
    case Op::kNe:
      // Certain when they are farther apart than both may move, or neither moves.
      if (x[0].bound == 0 && x[1].bound == 0) return 0;
      return difference(x[0].value, x[1].value) > 2 * (x[0].bound + x[1].bound) ? 0 : kInfinity;
    case Op::kAnd:
    case Op::kOr:
    case Op::kNot:
      return std::ranges::any_of(x, [](const Bounded& one) { return one.bound != 0; }) ? kInfinity : 0;
    case Op::kFloor:
    case Op::kCeil:
    case Op::kSign:
    case Op::kHeaviside:
      // A jump within reach is no small error.
      if (moved(op, x, 0, value) != 0) return kInfinity;
      return op == Op::kHeaviside ? x[1].bound : 0;
    default:
      return is_out_of_sight(op, x, value) ? kInfinity : propagated(op, x, value) + rounding(value);
  }
}

// By nothing else: its result is infinite for certain.
bool is_pole(Op op, std::span<const Bounded> x) { return op == Op::kDiv && x[1].value == 0 && x[1].bound == 0; }

}  // namespace

std::vector<Bounded> evaluate_bounded(const Graph& graph, std::span<const NodeId> outputs,
                                      const std::function<double(const Node& leaf)>& leaf) {
  const std::vector<bool> needed = reachable(graph, outputs);
  const auto end = outputs.empty() ? NodeId{0} : *std::ranges::max_element(outputs) + 1;
  std::vector<Bounded> all(end);
  std::vector<Bounded> arguments;
  std::vector<double> values;
  for (NodeId id = 0; id < end; ++id) {
    if (!needed[id]) continue;
    const Node& node = graph[id];
    if (node.op == Op::kNumber || node.op == Op::kLeaf) {
      all[id].value = node.op == Op::kNumber ? graph.number_of(id) : leaf(node);
      if (std::isnan(all[id].value)) all[id].bound = kInfinity;
    } else if (node.op == Op::kTrue || node.op == Op::kFalse) {
      all[id].value = node.op == Op::kTrue ? 1 : 0;
    } else if (node.op == Op::kCall) {
      all[id] = {std::numeric_limits<double>::quiet_NaN(), kInfinity};
    } else {
      arguments.clear();
      values.clear();
      for (const NodeId argument : graph.arguments(id)) {
        arguments.push_back(all[argument]);
        values.push_back(all[argument].value);
      }
      all[id].value = value_of(node.op, values);
      // A value compared with itself, for whether it is a number, is moved as a whole.
      const bool is_itself = is_comparison(node.op) && graph.arguments(id)[0] == graph.arguments(id)[1];
      const double bound =
          is_itself && std::isfinite(arguments[0].bound) ? 0 : bound_of(node.op, arguments, all[id].value);
      const bool is_unknown = std::isnan(all[id].value) || std::isnan(bound) ||
                              (may_overflow(arguments, all[id].value) && !is_pole(node.op, arguments));
      all[id].bound = is_unknown ? kInfinity : bound;
    }
  }
  std::vector<Bounded> result;
  result.reserve(outputs.size());
  for (const NodeId output : outputs) result.push_back(all[output]);
  return result;
}

}  // namespace jitc::graph
