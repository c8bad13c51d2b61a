// Values of a graph in doubles, with the host's math library: for tests, for seeded check points of modules.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

// Of an operator that is neither an input nor a call.
double value_of(Op op, std::span<const double> arguments);

// The outputs' values; conditions are 0 or 1. `leaf` gives the inputs; `call` the opaque functions.
std::vector<double> evaluate(const Graph& graph, std::span<const NodeId> outputs,
                             const std::function<double(const Node& leaf)>& leaf,
                             const std::function<double(const Function&, std::span<const double>)>& call = {});

}  // namespace jitc::graph
