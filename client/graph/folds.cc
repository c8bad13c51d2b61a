#include "client/graph/folds.h"

#include <algorithm>
#include <cstdint>

namespace jitc::graph {
namespace {

// What a compiler may see of a value.
struct Sight {
  bool is_constant = false;
  bool is_zero = false;      // perhaps
  bool is_absolute = false;  // fabs, or a sum with or a multiple by a constant, of which it may leave fabs alone
  bool is_choice = false;    // among numbers and absolute values
  bool is_never_minus_zero() const { return (is_absolute || is_choice) && !is_constant; }
};

bool is_linear(Op op) { return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kDiv; }

Sight look(const Graph& graph, NodeId id, const std::vector<Sight>& sights) {
  const Node& node = graph[id];
  const auto arguments = graph.arguments(id);
  const auto sight_of = [&](std::size_t i) { return sights[arguments[i]]; };
  if (node.op == Op::kNumber)
    return {.is_constant = true, .is_zero = graph.number_of(id) == 0.0, .is_absolute = true, .is_choice = true};
  if (node.op == Op::kLeaf || node.op == Op::kCall) return {};
  const auto is_constant = [&](NodeId argument) { return sights[argument].is_constant; };
  Sight sight;
  sight.is_constant = std::ranges::all_of(arguments, is_constant);
  if (node.op == Op::kSelect) {
    const Sight x = sight_of(1);
    const Sight y = sight_of(2);
    sight.is_zero = sight_of(0).is_constant ? x.is_zero || y.is_zero : x.is_zero && y.is_zero;
    sight.is_choice = (x.is_absolute || x.is_choice) && (y.is_absolute || y.is_choice);
    return sight;
  }
  sight.is_zero = sight.is_constant || std::ranges::all_of(arguments, [&](NodeId x) { return sights[x].is_zero; });
  sight.is_absolute = node.op == Op::kAbs || (node.op == Op::kNeg && sight_of(0).is_absolute);
  if (is_linear(node.op))
    for (const std::size_t i : {0U, 1U})
      if (sight_of(1 - i).is_constant) sight.is_absolute = sight.is_absolute || sight_of(i).is_absolute;
  return sight;
}

}  // namespace

std::vector<bool> values_to_name(const Graph& graph) {
  std::vector<Sight> sights;
  sights.reserve(graph.size());
  std::vector<bool> named;
  const auto name = [&](NodeId id) {
    if (graph[id].op == Op::kNeg) id = graph.arguments(id)[0];  // a negative is never named
    named.resize(graph.size());
    named[id] = true;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
    sights.push_back(look(graph, id, sights));
    if (graph[id].op != Op::kAdd && graph[id].op != Op::kSub) continue;
    const auto arguments = graph.arguments(id);
    for (const std::size_t zero : {0U, 1U}) {
      const NodeId other = arguments[1 - zero];
      const Op op = graph[other].op;
      if (!sights[arguments[zero]].is_zero || !sights[other].is_never_minus_zero()) continue;
      // 0 - x, and -x + 0, of which it makes that.
      const bool is_negative = op == Op::kNeg || op == Op::kMul || op == Op::kDiv;
      if ((graph[id].op == Op::kSub && zero == 0) || is_negative) name(other);
    }
  }
  return named;
}

}  // namespace jitc::graph
