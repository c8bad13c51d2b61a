#include "client/graph/helpers.h"

#include <map>
#include <string>

#include "client/graph/emit.h"
#include "client/graph/expression.h"

namespace jitc::graph {
namespace {

constexpr std::string_view kMaxText =
    "static inline double jitc_max(double a, double b) { return a > b || b != b ? a : b; }\n";
constexpr std::string_view kMinText =
    "static inline double jitc_min(double a, double b) { return a < b || b != b ? a : b; }\n";
constexpr std::string_view kSignText =
    "static inline double jitc_sign(double x) { return (double)((x > 0.0) - (x < 0.0)); }\n";
constexpr std::string_view kHeavisideText =
    "static inline double jitc_heaviside(double x, double mid) { return x < 0.0 ? 0.0 : x > 0.0 ? 1.0 : mid; }\n";

std::string declaration(const Function& function) {
  std::string text = "double " + function.name + "(";
  for (std::uint32_t i = 0; i < function.arity; ++i) text += i == 0 ? "double" : ", double";
  return text + (function.arity == 0 ? "void);\n" : ");\n");
}

// By name: the order must not depend on the graph's history.
std::string declarations(const Graph& graph, std::span<const NodeId> outputs) {
  std::map<std::string_view, FunctionId> opaque;
  const std::vector<bool> needed = reachable(graph, outputs);
  for (NodeId id = 0; id < needed.size(); ++id) {
    const Node& node = graph[id];
    if (needed[id] && node.op == Op::kCall) opaque.emplace(graph.function(node.args[2]).name, node.args[2]);
  }
  std::string text;
  for (const auto& [name, function] : opaque) text += declaration(graph.function(function));
  return text;
}

}  // namespace

std::string helpers(const Plain& plain) {
  std::string text;
  if (plain.uses(Op::kCall)) text += declarations(plain.graph(), plain.outputs());
  if (plain.uses(Op::kMax)) text += kMaxText;
  if (plain.uses(Op::kMin)) text += kMinText;
  if (plain.uses(Op::kSign)) text += kSignText;
  if (plain.uses(Op::kHeaviside)) text += kHeavisideText;
  return text;
}

std::string helpers(const Graph& graph, std::span<const NodeId> outputs) { return helpers(Plain(graph, outputs)); }

}  // namespace jitc::graph
