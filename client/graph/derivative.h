// Derivatives by forward rows: one sweep over the nodes carries, for each, the derivatives in all directions that are
// not structurally zero.
//
// At kinks whole rows are selected, never weighted: max(a, b) has `a > b || b != b ? da : (a == b ? tie : db)`, so an
// argument that is infinite or NaN and not chosen leaves no trace (no 0 * inf). Conventions as in SymPy: abs' = sign;
// sign, heaviside, floor, ceil have derivative 0; a condition has none; select differentiates its arms.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client/graph/graph.h"
#include "common/error.h"

namespace jitc::graph {

enum class Ties : std::uint8_t {
  kHalf,   // d max = sum over arguments of heaviside(argument - largest other) * d argument, with heaviside(0) = 1/2
  kFirst,  // the first of the largest (smallest) arguments
};

struct TangentOptions {
  Ties ties = Ties::kHalf;
  // Named nodes that are held fixed (Picard); all others are seen through (Newton).
  std::vector<std::string> frozen;
  bool freeze_all = false;
  // What errors call functions[i]; left empty, "function i".
  std::function<std::string(std::size_t i)> label;
  // What they call a node; left empty, "node id".
  std::function<std::string(NodeId id)> origin;
};

// d functions[i] / d directions[j] at [i * directions.size() + j]; number(0) where it is identically zero. Directions
// are leaves, all independent. Fails (kUsage) on a call whose partial derivative is not known, naming it, the
// node and the first function that needs it, on a condition as function, and on a direction that is no leaf.
common::Result<std::vector<NodeId>> differentiate(Graph& graph, std::span<const NodeId> functions,
                                                  std::span<const NodeId> directions, const TangentOptions& options);

// The expressions with `epsilon` added to the base of every half-integer power (sqrt, pow(x, k/2)) that depends on a
// leaf: Newton tangents of such powers are singular at a base of 0. Never applied to residuals.
struct Guarded {
  std::vector<NodeId> functions;
  std::vector<NodeId> copies;  // by id, of what the functions are made of; none when epsilon is 0
};
Guarded guard_half_powers(Graph& graph, std::span<const NodeId> functions, double epsilon);

}  // namespace jitc::graph
