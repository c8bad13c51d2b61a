// What the functions of a module must give at a few points: for the check of a fresh module (docs/canary.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/graph/emit.h"
#include "client/graph/problem.h"
#include "common/canary.h"

namespace jitc::graph {

struct CanaryOptions {
  enum class Layout : std::uint8_t { kSeparate, kFused, kBatch };
  // Separate functions are found by the table, fused ones by <prefix>fused and <prefix>batch.
  Layout layout = Layout::kSeparate;
  std::string prefix;
  std::uint32_t int_bits = 32;
  std::vector<double> constants;  // by slot, as the solver has them now; missing ones count as 0
  std::uint64_t seed = 0;
};

// Values that travel, over all points: with more entries there are fewer points, then fewer functions.
inline constexpr std::size_t kMostCanaryValues = std::size_t{1} << 16;

// Of what lower() made. Some points are near the constants that the solver has, some far. Without calls when no
// function is left that can be called: then the module is only loaded.
common::Canary make_canary(const Problem& lowered, std::span<const PointwiseFunction> functions,
                           const CanaryOptions& options);

}  // namespace jitc::graph
