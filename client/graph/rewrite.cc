#include "client/graph/rewrite.h"

#include <cmath>

namespace jitc::graph {
namespace {

// 2^-k for x = 2^k, where it is exact and neither subnormal nor infinite; of either sign.
std::optional<double> exact_reciprocal(double x) {
  int exponent = 0;
  if (x == 0.0 || !std::isfinite(x) || std::fabs(std::frexp(x, &exponent)) != 0.5) return std::nullopt;
  const double reciprocal = 1.0 / x;
  return std::isnormal(reciprocal) ? std::optional(reciprocal) : std::nullopt;
}

std::optional<double> fold(Op op, double x, double y) {
  double value = 0;
  switch (op) {
    case Op::kAdd:
      value = x + y;
      break;
    case Op::kSub:
      value = x - y;
      break;
    case Op::kMul:
      value = x * y;
      break;
    case Op::kDiv:
      value = x / y;
      break;
    default:
      return std::nullopt;
  }
  // What is not finite stays an operation: it has no literal in C.
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<NodeId> rewrite_product(Graph& graph, NodeId x, NodeId y) {
  if (graph.is_number(x)) std::swap(x, y);
  if (graph.is_number(y, 1.0)) return x;
  if (graph.is_number(y, -1.0)) return graph.unary(Op::kNeg, x);
  if (graph.is_number(y, 2.0)) return graph.binary(Op::kAdd, x, x);
  return std::nullopt;
}

std::optional<NodeId> rewrite_quotient(Graph& graph, NodeId x, NodeId y) {
  if (!graph.is_number(y)) return std::nullopt;
  const auto reciprocal = exact_reciprocal(graph.number_of(y));
  if (!reciprocal) return std::nullopt;
  return graph.binary(Op::kMul, x, graph.number(*reciprocal));
}

}  // namespace

std::optional<NodeId> rewrite_unary(Graph& graph, Op op, NodeId x) {
  if (op == Op::kNeg) {
    if (graph[x].op == Op::kNeg) return graph[x].args[0];
    if (graph.is_number(x)) return graph.number(-graph.number_of(x));
  }
  if (op == Op::kSqrt && graph.is_number(x)) {
    const double value = std::sqrt(graph.number_of(x));
    if (std::isfinite(value)) return graph.number(value);
  }
  return std::nullopt;
}

std::optional<NodeId> rewrite_binary(Graph& graph, Op op, NodeId x, NodeId y) {
  if (graph.is_number(x) && graph.is_number(y)) {
    if (const auto value = fold(op, graph.number_of(x), graph.number_of(y))) return graph.number(*value);
  }
  switch (op) {
    case Op::kMul:
      return rewrite_product(graph, x, y);
    case Op::kDiv:
      return rewrite_quotient(graph, x, y);
    case Op::kAdd:
      if (graph.is_number(y, -0.0)) return x;
      if (graph.is_number(x, -0.0)) return y;
      return std::nullopt;
    case Op::kSub:
      return graph.is_number(y, 0.0) ? std::optional(x) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace jitc::graph
