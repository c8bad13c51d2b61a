// Graphs without names: what is printed depends on the mathematics alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

// The outputs with every named node replaced by its body. Nodes that differ only in names below them become one, and
// stand in one order whatever the names.
class Plain {
 public:
  Plain(const Graph& graph, std::span<const NodeId> outputs);

  const Graph& graph() const { return copy_ ? *copy_ : *original_; }
  std::span<const NodeId> outputs() const { return outputs_; }
  // The node was the body of a named one.
  bool was_named(NodeId id) const { return id < named_.size() && named_[id]; }
  std::size_t nodes() const { return nodes_; }  // that the outputs need
  bool uses(Op op) const { return ((operators_ >> static_cast<unsigned>(op)) & 1U) != 0; }

 private:
  void count(const std::vector<bool>& needed);
  void copy(const std::vector<bool>& needed);

  const Graph* original_;
  std::optional<Graph> copy_;  // only where there is a name
  std::vector<NodeId> outputs_;
  std::vector<bool> named_;
  std::size_t nodes_ = 0;
  std::uint64_t operators_ = 0;  // one bit each
};

}  // namespace jitc::graph
