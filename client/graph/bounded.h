// Values of a graph in doubles, each with a bound of how far a right program's may be from it: a running error
// analysis.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

struct Bounded {
  double value = 0;
  // |another value - this one| is below it for programs that round each operation within kUlps of its size, and no
  // matter whether they contract a product and a sum. Infinite: nothing can be said, since a comparison is too close, a
  // function near the border of its domain, or the value no number.
  double bound = 0;
};

// A correct rounding errs by 2^-53 of the result; libraries of functions err by a few of these.
inline constexpr double kUlps = 16;

// The outputs; inputs are exact. Calls of opaque functions have an infinite bound.
std::vector<Bounded> evaluate_bounded(const Graph& graph, std::span<const NodeId> outputs,
                                      const std::function<double(const Node& leaf)>& leaf);

}  // namespace jitc::graph
