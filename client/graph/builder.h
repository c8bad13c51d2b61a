// The terms that derivatives are made of.
#pragma once

#include "client/graph/graph.h"

namespace jitc::graph {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  NodeId number(double value) { return graph_.number(value); }
  NodeId of(Op op, NodeId x) { return graph_.unary(op, x); }
  NodeId neg(NodeId x) { return graph_.unary(Op::kNeg, x); }
  NodeId root(NodeId x) { return graph_.unary(Op::kSqrt, x); }
  NodeId sum(NodeId x, NodeId y) { return graph_.binary(Op::kAdd, x, y); }
  NodeId difference(NodeId x, NodeId y) { return graph_.binary(Op::kSub, x, y); }
  NodeId product(NodeId x, NodeId y) { return graph_.binary(Op::kMul, x, y); }
  NodeId quotient(NodeId x, NodeId y) { return graph_.binary(Op::kDiv, x, y); }
  NodeId power(NodeId x, NodeId y) { return graph_.binary(Op::kPow, x, y); }
  NodeId inverse(NodeId x) { return quotient(number(1.0), x); }
  NodeId square(NodeId x) { return product(x, x); }
  NodeId one_plus(NodeId x) { return sum(number(1.0), x); }
  // (1 - x)(1 + x): 1 - x^2 without its cancellation.
  NodeId one_minus_square(NodeId x) { return product(difference(number(1.0), x), one_plus(x)); }

 protected:
  Graph& graph_;
};

}  // namespace jitc::graph
