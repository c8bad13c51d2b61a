#include "client/graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace jitc::graph {
namespace {

double larger(double x, double y) { return x > y || y != y ? x : y; }
double smaller(double x, double y) { return x < y || y != y ? x : y; }

double heaviside(double x, double mid) {
  if (x < 0.0) return 0.0;
  return x > 0.0 ? 1.0 : mid;
}

double unary(Op op, double x) {
  switch (op) {
    case Op::kNeg:
      return -x;
    case Op::kSqrt:
      return std::sqrt(x);
    case Op::kCbrt:
      return std::cbrt(x);
    case Op::kExp:
      return std::exp(x);
    case Op::kExpm1:
      return std::expm1(x);
    case Op::kLog:
      return std::log(x);
    case Op::kLog1p:
      return std::log1p(x);
    case Op::kLog2:
      return std::log2(x);
    case Op::kLog10:
      return std::log10(x);
    case Op::kSin:
      return std::sin(x);
    case Op::kCos:
      return std::cos(x);
    case Op::kTan:
      return std::tan(x);
    case Op::kAsin:
      return std::asin(x);
    case Op::kAcos:
      return std::acos(x);
    case Op::kAtan:
      return std::atan(x);
    case Op::kSinh:
      return std::sinh(x);
    case Op::kCosh:
      return std::cosh(x);
    case Op::kTanh:
      return std::tanh(x);
    case Op::kAsinh:
      return std::asinh(x);
    case Op::kAcosh:
      return std::acosh(x);
    case Op::kAtanh:
      return std::atanh(x);
    case Op::kErf:
      return std::erf(x);
    case Op::kErfc:
      return std::erfc(x);
    case Op::kAbs:
      return std::fabs(x);
    case Op::kFloor:
      return std::floor(x);
    case Op::kCeil:
      return std::ceil(x);
    case Op::kSign:
      return (x > 0.0 ? 1.0 : 0.0) - (x < 0.0 ? 1.0 : 0.0);
    case Op::kNot:
      return x == 0.0 ? 1.0 : 0.0;
    default:  // a name changes nothing
      return x;
  }
}

double binary(Op op, double x, double y) {
  switch (op) {
    case Op::kAdd:
      return x + y;
    case Op::kSub:
      return x - y;
    case Op::kMul:
      return x * y;
    case Op::kDiv:
      return x / y;
    case Op::kPow:
      return std::pow(x, y);
    case Op::kAtan2:
      return std::atan2(x, y);
    case Op::kHypot:
      return std::hypot(x, y);
    case Op::kFmod:
      return std::fmod(x, y);
    case Op::kHeaviside:
      return heaviside(x, y);
    case Op::kFmax:
      return std::fmax(x, y);
    case Op::kFmin:
      return std::fmin(x, y);
    case Op::kLt:
      return x < y ? 1.0 : 0.0;
    case Op::kLe:
      return x <= y ? 1.0 : 0.0;
    case Op::kGt:
      return x > y ? 1.0 : 0.0;
    case Op::kGe:
      return x >= y ? 1.0 : 0.0;
    case Op::kEq:
      return x == y ? 1.0 : 0.0;
    case Op::kNe:
      return x != y ? 1.0 : 0.0;
    case Op::kAnd:
      return x != 0.0 && y != 0.0 ? 1.0 : 0.0;
    default:  // kOr
      return x != 0.0 || y != 0.0 ? 1.0 : 0.0;
  }
}

}  // namespace

double value_of(Op op, std::span<const double> arguments) {
  if (op == Op::kSelect) return arguments[0] != 0.0 ? arguments[1] : arguments[2];
  if (op != Op::kMax && op != Op::kMin)
    return arguments.size() == 1 ? unary(op, arguments[0]) : binary(op, arguments[0], arguments[1]);
  double value = arguments[0];
  for (const double x : arguments.subspan(1)) value = op == Op::kMax ? larger(value, x) : smaller(value, x);
  return value;
}

std::vector<double> evaluate(const Graph& graph, std::span<const NodeId> outputs,
                             const std::function<double(const Node& leaf)>& leaf,
                             const std::function<double(const Function&, std::span<const double>)>& call) {
  const std::vector<bool> needed = reachable(graph, outputs);
  const auto end = outputs.empty() ? NodeId{0} : *std::ranges::max_element(outputs) + 1;
  std::vector<double> values(end);
  std::vector<double> list;
  for (NodeId id = 0; id < end; ++id) {
    if (!needed[id]) continue;
    const Node& node = graph[id];
    const std::span<const NodeId> arguments = graph.arguments(id);
    list.clear();
    for (const NodeId argument : arguments) list.push_back(values[argument]);
    switch (node.op) {
      case Op::kNumber:
        values[id] = graph.number_of(id);
        break;
      case Op::kLeaf:
        values[id] = leaf(node);
        break;
      case Op::kTrue:
        values[id] = 1.0;
        break;
      case Op::kFalse:
        break;
      case Op::kCall:
        values[id] = call ? call(graph.function(node.args[2]), list) : std::numeric_limits<double>::quiet_NaN();
        break;
      default:
        values[id] = value_of(node.op, list);
    }
  }
  std::vector<double> result;
  result.reserve(outputs.size());
  for (const NodeId output : outputs) result.push_back(values[output]);
  return result;
}

}  // namespace jitc::graph
