// Three rheologies of a compressible Stokes problem in three dimensions, as a solver would state them: 13 outputs (3
// forces, 9 stresses, 1 mass balance) over 13 directions (9 velocity gradients, 3 velocities, pressure).
#pragma once

#include <string_view>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::bench {

struct Rheology {
  graph::Graph graph;
  std::vector<graph::NodeId> outputs;
  std::vector<graph::NodeId> directions;
};

enum class RheologySize {
  kSmall,   // power law and yield stress, clipped
  kMedium,  // four creep laws, elasticity, strain weakening, clipped
  kLarge,   // the same, transversely isotropic
};

Rheology make_rheology(RheologySize size);

}  // namespace jitc::bench
