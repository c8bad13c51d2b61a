// Derivatives of the functions of one argument, and of powers by their base.
#pragma once

#include "client/graph/graph.h"

namespace jitc::graph {

// d op(x) / dx for a smooth op. `value` is op(x), which is used again where that saves a call.
NodeId slope(Graph& graph, Op op, NodeId value, NodeId x);
// d base^exponent / d base = exponent * base^(exponent - 1); `value` is the power.
NodeId slope_of_power(Graph& graph, NodeId value, NodeId base, NodeId exponent);

}  // namespace jitc::graph
