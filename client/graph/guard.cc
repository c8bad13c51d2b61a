#include <algorithm>
#include <cmath>
#include <utility>

#include "client/graph/derivative.h"

namespace jitc::graph {
namespace {

bool is_half_power(const Graph& graph, const Node& node) {
  if (node.op == Op::kSqrt) return true;
  if (node.op != Op::kPow || !graph.is_number(node.args[1])) return false;
  return std::fabs(std::fmod(graph.number_of(node.args[1]), 1.0)) == 0.5;
}

}  // namespace

Guarded guard_half_powers(Graph& graph, std::span<const NodeId> functions, double epsilon) {
  if (epsilon == 0.0) return {.functions = {functions.begin(), functions.end()}, .copies = {}};
  const std::vector<bool> needed = reachable(graph, functions);
  const NodeId end = functions.empty() ? 0 : *std::ranges::max_element(functions) + 1;
  std::vector<NodeId> copies(end);
  std::vector<bool> varies(end);  // depends on a leaf
  std::vector<NodeId> arguments;
  for (NodeId id = 0; id < end; ++id) {
    copies[id] = id;
    if (!needed[id]) continue;
    const Node node = graph[id];
    const auto originals = graph.arguments(id);
    arguments.assign(originals.begin(), originals.end());
    varies[id] = node.op == Op::kLeaf || std::ranges::any_of(arguments, [&](NodeId x) { return varies[x]; });
    if (!varies[id] || arguments.empty()) continue;
    bool is_changed = false;
    for (NodeId& argument : arguments) {
      is_changed = is_changed || copies[argument] != argument;
      argument = copies[argument];
    }
    const bool is_guarded = is_half_power(graph, node);
    if (is_guarded) arguments[0] = graph.binary(Op::kAdd, arguments[0], graph.number(epsilon));
    if (is_changed || is_guarded) copies[id] = graph.rebuild(graph, id, arguments);
  }
  std::vector<NodeId> result;
  result.reserve(functions.size());
  for (const NodeId function : functions) result.push_back(copies[function]);
  return {.functions = std::move(result), .copies = std::move(copies)};
}

}  // namespace jitc::graph
