#include "client/graph/plain.h"

namespace jitc::graph {

static_assert(static_cast<unsigned>(Op::kCall) < 64);

Plain::Plain(const Graph& graph, std::span<const NodeId> outputs)
    : original_(&graph), outputs_(outputs.begin(), outputs.end()) {
  const std::vector<bool> needed = reachable(graph, outputs);
  count(needed);
  if (!uses(Op::kNamed)) return;
  copy(needed);
  count(reachable(*copy_, outputs_));
}

void Plain::count(const std::vector<bool>& needed) {
  nodes_ = 0;
  operators_ = 0;
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    ++nodes_;
    operators_ |= std::uint64_t{1} << static_cast<unsigned>(graph()[id].op);
  }
}

void Plain::copy(const std::vector<bool>& needed) {
  const Graph& from = *original_;
  Graph& to = copy_.emplace();
  std::vector<NodeId> places(needed.size());
  std::vector<NodeId> arguments;
  ArgumentId registered = kFirstOther;
  for (NodeId id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    if (from[id].op == Op::kNamed) {
      const NodeId body = places[from[id].args[0]];
      places[id] = body;
      named_.resize(to.size());
      named_[body] = true;
      continue;
    }
    if (from[id].op == Op::kLeaf) {
      // Other arguments keep their numbers: callers spell leaves by them.
      for (; registered <= from[id].argument; ++registered) to.argument(from.argument_name(registered));
    }
    arguments.clear();
    for (const NodeId argument : from.arguments(id)) arguments.push_back(places[argument]);
    places[id] = to.rebuild(from, id, arguments);
  }
  for (NodeId& output : outputs_) output = places[output];
}

}  // namespace jitc::graph
