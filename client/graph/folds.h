// What compilers fold wrongly, and how the printed text prevents it.
#pragma once

#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

// gcc 12 takes 0.0 - x for -x where it sees that x is never -0.0, be it fabs or a choice among such values: wrong where
// x is 0, and done only where x stands in the same expression. Trees and shared text would differ. The values x that
// must be temporaries, therefore: one flag a node, or none at all when there are no such values. A few too many are
// named, since what a compiler computes beforehand is not known here.
std::vector<bool> values_to_name(const Graph& graph);

}  // namespace jitc::graph
