#include "client/graph/plan.h"

#include <algorithm>
#include <limits>

#include "client/graph/expression.h"
#include "client/graph/folds.h"

namespace jitc::graph {
namespace {

bool is_input(Op op) { return op <= Op::kFalse; }

// Written again at every use rather than named. Literals must not be named: compilers fold calls of constants. What
// these need counts as used by each of their uses.
bool is_repeated(Op op) { return is_input(op) || op == Op::kNeg || op == Op::kNot || (op >= Op::kLt && op <= Op::kNe); }

}  // namespace

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

bool is_long_extremum(const Graph& graph, NodeId id) {
  const Op op = graph[id].op;
  return (op == Op::kMax || op == Op::kMin) && graph.arguments(id).size() > kMostSteps;
}

Plan::Plan(const Plain& plain)
    : graph_(plain.graph()),
      plain_(plain),
      to_name_(values_to_name(graph_)),
      seen_(graph_.size(), 0),
      places_(graph_.size(), 0) {}

void Plan::walk(std::span<const NodeId> outputs) {
  struct Visit {
    NodeId id;
    std::uint32_t next;  // argument
  };
  ++epoch_;
  order_.clear();
  outputs_.assign(outputs.begin(), outputs.end());
  std::vector<Visit> path;
  const auto meet = [&](NodeId id) {
    if (seen_[id] == epoch_) return;
    seen_[id] = epoch_;
    path.push_back({id, 0});
  };
  for (const NodeId output : outputs) {
    meet(output);
    while (!path.empty()) {
      Visit& visit = path.back();
      const auto arguments = graph_.arguments(visit.id);
      if (visit.next < arguments.size()) {
        meet(arguments[visit.next++]);
        continue;
      }
      places_[visit.id] = static_cast<std::uint32_t>(order_.size());
      order_.push_back(visit.id);
      path.pop_back();
    }
  }
}

void Plan::choose(bool share, bool lazy_arms) {
  facts_.assign(order_.size(), {});
  blocks_.assign(1, {});
  count_uses(share);
  cut(share);
  if (lazy_arms) {
    place_in_arms();
    mark_blocks();
  }
  number_temporaries();
}

// Users come after what they use, so that from the last to the first all uses of a node are known when it is met. A
// chosen temporary is marked with the number 0 until all are numbered.
void Plan::count_uses(bool share) {
  for (const NodeId output : outputs_) ++facts_[places_[output]].uses;
  for (std::size_t place = order_.size(); place-- > 0;) {
    const NodeId id = order_[place];
    const Op op = graph_[id].op;
    Fact& fact = facts_[place];
    const bool is_shared = share && fact.uses > 1;
    const bool is_named = plain_.was_named(id) || (!to_name_.empty() && to_name_[id]);
    if (!is_input(op) && (is_named || (is_shared && !is_repeated(op)))) fact.temporary = 0;
    const std::uint32_t weight = is_shared && fact.temporary == kNone ? 2 : 1;
    for (const NodeId argument : graph_.arguments(id)) {
      std::uint32_t& uses = facts_[places_[argument]].uses;
      uses = std::min(uses, 2U) + weight;
    }
  }
}

void Plan::cut(bool share) {
  levels_ = 0;
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const NodeId id = order_[place];
    Fact& fact = facts_[place];
    const auto arguments = graph_.arguments(id);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Fact& argument = facts_[places_[arguments[i]]];
      const std::uint32_t inner = argument.temporary == kNone ? argument.levels : 0;
      fact.levels = std::max(fact.levels, inner + brackets_around(graph_, id, i));
    }
    if (share && (fact.levels > kMostLevels || is_long_extremum(graph_, id))) fact.temporary = 0;
    levels_ = std::max(levels_, fact.levels);
  }
}

// ---- arms ---------------------------------------------------------------------------------------------------------

Region Plan::common(Region a, Region b) const {
  while (blocks_[a].depth > blocks_[b].depth) a = blocks_[a].parent;
  while (blocks_[b].depth > blocks_[a].depth) b = blocks_[b].parent;
  while (a != b) {
    a = blocks_[a].parent;
    b = blocks_[b].parent;
  }
  return a;
}

// A node belongs to the innermost region that holds all its uses.
void Plan::place_in_arms() {
  for (Fact& fact : facts_) fact.region = kUnknown;
  const auto use = [&](NodeId id, Region region) {
    Region& known = facts_[places_[id]].region;
    known = known == kUnknown ? region : common(known, region);
  };
  for (const NodeId output : outputs_) use(output, 0);
  for (std::size_t place = order_.size(); place-- > 0;) {
    const NodeId id = order_[place];
    Fact& fact = facts_[place];
    const auto arguments = graph_.arguments(id);
    if (graph_[id].op != Op::kSelect || blocks_[fact.region].depth == kMostBlocks) {
      for (const NodeId argument : arguments) use(argument, fact.region);
      continue;
    }
    fact.arm = static_cast<Region>(blocks_.size());
    const Block block{.parent = fact.region, .depth = blocks_[fact.region].depth + 1, .select = id};
    blocks_.insert(blocks_.end(), 2, block);
    use(arguments[0], fact.region);
    use(arguments[1], fact.arm);
    use(arguments[2], fact.arm + 1);
  }
}

// A select becomes if and else, and so a temporary, when a temporary lies in one of its arms.
void Plan::mark_blocks() {
  for (const Fact& fact : facts_) {
    if (fact.temporary == kNone) continue;
    for (Region region = fact.region; region != 0 && !blocks_[region].has_statements; region = blocks_[region].parent) {
      blocks_[region].has_statements = true;
    }
  }
  for (Fact& fact : facts_) {
    if (fact.arm == 0) continue;
    if (blocks_[fact.arm].has_statements || blocks_[fact.arm + 1].has_statements) {
      fact.temporary = 0;
    } else {
      fact.arm = 0;
    }
  }
}

void Plan::number_temporaries() {
  temporaries_ = 0;
  for (Fact& fact : facts_) {
    if (fact.temporary == kNone) continue;
    fact.temporary = temporaries_++;
    ++blocks_[fact.region].size;
  }
  std::uint32_t first = 0;
  for (Block& block : blocks_) {
    block.first = first;
    first += block.size;
    block.size = 0;
  }
  statements_.resize(temporaries_);
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (facts_[place].temporary == kNone) continue;
    Block& block = blocks_[facts_[place].region];
    statements_[block.first + block.size++] = order_[place];
  }
}

// ---- reading ------------------------------------------------------------------------------------------------------

std::span<const NodeId> Plan::statements(Region region) const {
  return std::span(statements_).subspan(blocks_[region].first, blocks_[region].size);
}

std::uint64_t Plan::tree_nodes(bool expand_named) const {
  std::vector<std::uint64_t> sizes(order_.size(), 1);
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (!expand_named && plain_.was_named(order_[place])) continue;
    for (const NodeId argument : graph_.arguments(order_[place])) {
      sizes[place] = saturating_add(sizes[place], sizes[places_[argument]]);
    }
  }
  std::uint64_t sum = 0;
  for (const NodeId output : outputs_) sum = saturating_add(sum, sizes[places_[output]]);
  return sum;
}

}  // namespace jitc::graph
