// The rewrites that building a node applies, all of them. Each gives the same 64 bits for every value of its arguments
// (any NaN equals any NaN); nothing else may be added: x+0 loses -0, x*0 and x-x lose NaN, a/b is not a*(1/b), and
// re-association changes roundings.
//
//   x * 1 = x        x / 1 = x       x - (+0) = x      x + (-0) = x     -(-x) = x
//   x * (-1) = -x    x / (-1) = -x   x * 2 = x + x     x / 2^k = x * 2^-k where 2^-k is a normal double
//   + - * / of two numbers, sqrt and - of one, where the result is finite
//   a + b = b + a, a * b = b * a, and the same for == != && ||: see Graph
#pragma once

#include <optional>

#include "client/graph/graph.h"

namespace jitc::graph {

// The node that the expression already is, or nothing when a new one is needed.
std::optional<NodeId> rewrite_unary(Graph& graph, Op op, NodeId x);
std::optional<NodeId> rewrite_binary(Graph& graph, Op op, NodeId x, NodeId y);

}  // namespace jitc::graph
