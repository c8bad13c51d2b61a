// Where nodes come from, for errors: kept beside a graph, and only as large as what its front end tells.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

class Origins {
 public:
  // `next` is the graph's size: what is built from here on comes from the next element of `list` ("nodes[7]"), of
  // which there are so many. Four bytes an element.
  void begin_list(std::string_view list, std::size_t elements);
  void begin_element(NodeId next);
  // From here on it comes from `where`, which is free text; empty: not known. Lists come first.
  void begin(NodeId next, std::string_view where);
  std::string_view latest() const { return starts_.size() > elements_ ? text(starts_.size() - 1) : std::string_view(); }

  // The graph was copied; originals[id] is the node that node `id` of the copy was made of.
  void renumber(std::vector<NodeId> originals);

  // "nodes[7]" or "node 12 at momentum.py:3", by the id that the front end knows.
  std::string describe(NodeId id) const;

 private:
  std::string_view text(std::size_t place) const;

  std::string list_;
  std::size_t elements_ = 0;
  std::vector<NodeId> starts_;  // first node, by place: of the elements, then of the texts
  std::string texts_;
  std::vector<std::size_t> ends_;  // in texts_, by text
  std::vector<NodeId> originals_;  // by id; empty: the ids are the front end's
};

}  // namespace jitc::graph
