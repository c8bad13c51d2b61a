#include "client/graph/symbols.h"

#include "client/graph/c_names.h"
#include "client/graph/emit.h"
#include "client/graph/expression.h"

namespace jitc::graph {
namespace {

std::unexpected<common::Error> refuse(std::string what, const std::string& name) {
  return common::fail(common::ErrorKind::kUsage, std::move(what), name, "choose another name");
}

bool is_helper(std::string_view name) {
  return name == kMaxHelper || name == kMinHelper || name == kSignHelper || name == kHeavisideHelper;
}

}  // namespace

common::Result<void> Symbols::define(const std::string& name, const std::string& prefix) {
  const std::string symbol = prefix + name;
  if (auto known = prefix.empty() ? check_function_name(name) : check_identifier(symbol); !known) return known;
  return take(symbol);
}

common::Result<void> Symbols::declare(const std::string& name) {
  if (auto known = check_identifier(name); !known) return known;
  if (is_temporary(name)) return refuse("the text gives such names to its temporaries", name);
  return take(name);
}

common::Result<void> Symbols::declare_opaque(const Plain& plain) {
  if (!plain.uses(Op::kCall)) return {};
  const Graph& graph = plain.graph();
  const std::vector<bool> needed = reachable(graph, plain.outputs());
  std::set<FunctionId> opaque;
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (needed[id] && graph[id].op == Op::kCall) opaque.insert(graph[id].args[2]);
  }
  for (const FunctionId function : opaque) {
    if (auto known = declare(graph.function(function).name); !known) return known;
  }
  return {};
}

common::Result<void> Symbols::take(const std::string& name) {
  if (is_helper(name)) return refuse("the text may define a function of this name itself", name);
  if (!taken_.insert(name).second) return refuse("the text has this name twice", name);
  return {};
}

}  // namespace jitc::graph
