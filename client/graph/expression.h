// How one operator is written in C: its text around its arguments, and how strongly it binds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

// From weak to strong. An operand that binds more weakly than its place asks for stands in parentheses. A sign binds
// more weakly than a product, so that no sign ever follows an operator.
enum class Binding : std::uint8_t { kSelect, kOr, kAnd, kEquality, kOrder, kSum, kSign, kProduct, kPrimary };

Binding binding_of(const Graph& graph, NodeId id);

// A part of an operator's text: either `text`, or the argument `id`, whose place asks for `needed`.
struct TextPiece {
  std::string_view text;
  NodeId id = 0;
  Binding needed = Binding::kSelect;
  bool is_argument = false;
};

// Pushes the pieces of a node that is neither a number nor a leaf, the last one first: the next to be written is on
// top.
void push_operator(const Graph& graph, NodeId id, std::vector<TextPiece>& stack);

// Brackets that the operator puts around its argument at this position.
std::uint32_t brackets_around(const Graph& graph, NodeId id, std::size_t position);

// The two functions that max and min of many arguments are made of, and those that have no equal in C99.
inline constexpr std::string_view kMaxHelper = "jitc_max";
inline constexpr std::string_view kMinHelper = "jitc_min";
inline constexpr std::string_view kSignHelper = "jitc_sign";
inline constexpr std::string_view kHeavisideHelper = "jitc_heaviside";

}  // namespace jitc::graph
