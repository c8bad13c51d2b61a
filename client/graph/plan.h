// What a function body computes, in which order, and which of its values become temporaries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/graph/graph.h"
#include "client/graph/plain.h"

namespace jitc::graph {

// Compilers refuse more than 256 nested brackets (clang) or exhaust their stack: an expression of more levels is cut by
// a temporary, a max of more arguments is computed step by step, and arms nested more deeply share their parent's
// block.
inline constexpr std::uint32_t kMostLevels = 100;
inline constexpr std::uint32_t kMostSteps = 32;
inline constexpr std::uint32_t kMostBlocks = 60;

// A block of statements: region 0 is the function's body, every other one an arm of a select.
using Region = std::uint32_t;

class Plan {
 public:
  explicit Plan(const Plain& plain);

  // Walks what the outputs need, depth first, arguments in order. The order is that of the mathematics.
  void walk(std::span<const NodeId> outputs);
  // Chooses temporaries: values that were named, those that compilers must not see (folds.h), and with `share` those
  // that are used more than once.
  void choose(bool share, bool lazy_arms);

  std::span<const NodeId> order() const { return order_; }  // arguments first
  std::uint32_t place(NodeId id) const { return places_[id]; }
  bool is_temporary(NodeId id) const { return facts_[places_[id]].temporary != kNone; }
  std::uint32_t number(NodeId id) const { return facts_[places_[id]].temporary; }
  std::uint32_t temporaries() const { return temporaries_; }
  std::uint32_t levels() const { return levels_; }  // of the most deeply nested expression
  // Nodes of the outputs' expanded expressions, where a named value counts in full or as one; saturates.
  std::uint64_t tree_nodes(bool expand_named = true) const;

  // Temporaries of a region, in order of computation.
  std::span<const NodeId> statements(Region region) const;
  // A select whose arms hold temporaries: it is written as if and else. Its arms are `arm` and `arm + 1`; 0: none.
  Region arm(NodeId select) const { return facts_[places_[select]].arm; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Fact {
    std::uint32_t uses = 0;
    std::uint32_t temporary = kNone;
    std::uint32_t levels = 0;  // of brackets in its text
    Region region = 0;
    Region arm = 0;
  };
  struct Block {
    Region parent = 0;
    std::uint32_t depth = 0;
    NodeId select = 0;
    bool has_statements = false;
    std::uint32_t first = 0;  // place in statements_
    std::uint32_t size = 0;
  };
  static constexpr Region kUnknown = ~0U;

  void count_uses(bool share);
  void cut(bool share);
  void place_in_arms();
  void mark_blocks();
  void number_temporaries();
  Region common(Region a, Region b) const;

  const Graph& graph_;
  const Plain& plain_;
  std::vector<bool> to_name_;  // by node; see values_to_name
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> seen_;  // by node: the walk that met it last
  std::vector<std::uint32_t> places_;
  std::vector<NodeId> order_;
  std::vector<NodeId> outputs_;
  std::vector<Fact> facts_;  // by place
  std::vector<Block> blocks_;
  std::vector<NodeId> statements_;
  std::uint32_t temporaries_ = 0;
  std::uint32_t levels_ = 0;
};

// Sizes of trees double from node to node: what passes 64 bits stays at the largest number.
std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b);

// Is computed step by step when it is a temporary.
bool is_long_extremum(const Graph& graph, NodeId id);

}  // namespace jitc::graph
