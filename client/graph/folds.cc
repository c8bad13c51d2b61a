#include "client/graph/folds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/graph/evaluate.h"

namespace jitc::graph {
namespace {

bool is_linear(Op op) { return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kDiv; }

Sight number(double value) {
  return {.is_constant = true,
          .is_zero = !(std::fabs(value) > 0.0),  // or not known
          .is_absolute = true,
          .is_choice = true,
          .is_not_negative = value >= 0.0,
          .is_decided = true,
          .value = value};
}

bool is_fabs(const Graph& graph, NodeId id) {
  const Op op = graph[id].op;
  return op == Op::kAbs || (op == Op::kCall && graph.function(graph[id].args[2]).name == "fabs");
}

}  // namespace

const Sight& Sights::operator[](NodeId id) {
  while (sights_.size() <= id) sights_.push_back(look(static_cast<NodeId>(sights_.size())));
  return sights_[id];
}

Sight Sights::look(NodeId id) {
  const Op op = graph_[id].op;
  if (op == Op::kNumber) return number(graph_.number_of(id));
  if (op == Op::kTrue || op == Op::kFalse) return number(op == Op::kTrue ? 1.0 : 0.0);
  const auto arguments = graph_.arguments(id);
  const auto is_constant = [this](NodeId argument) { return sights_[argument].is_constant; };
  Sight sight{.origin = id};
  if (!arguments.empty() && std::ranges::all_of(arguments, is_constant)) {
    values_.clear();
    for (const NodeId argument : arguments) values_.push_back(sights_[argument].value);
    return number(op == Op::kCall ? std::numeric_limits<double>::quiet_NaN() : value_of(op, values_));
  }
  if (is_condition(op)) return look_at_condition(id, sight);
  if (op == Op::kSelect) return look_at_select(id, sight);
  if (is_linear(op)) return look_at_linear(id, sight);
  sight.is_absolute = is_fabs(graph_, id);
  sight.is_not_negative = sight.is_absolute;
  if (op == Op::kNeg) {
    const Sight& x = sights_[arguments[0]];
    // A negative choice is one among negatives.
    sight = {.is_zero = x.is_zero, .is_absolute = x.is_absolute, .origin = x.origin};
  }
  return sight;
}

// x < x, fabs(x) < 0, and a comparison that holds for all or for none of the values that are chosen among.
Sight Sights::look_at_condition(NodeId id, Sight sight) const {
  const auto arguments = graph_.arguments(id);
  const Op op = graph_[id].op;
  if (op >= Op::kAnd) {
    const auto condition = [this](NodeId part) {
      return graph_[part].op == Op::kNot ? graph_.arguments(part)[0] : part;
    };
    const auto is_decided = [this](NodeId part) { return sights_[part].is_decided; };
    sight.is_decided = std::ranges::any_of(arguments, is_decided) ||
                       (arguments.size() == 2 && condition(arguments[0]) == condition(arguments[1]));
    return sight;
  }
  sight.is_decided = arguments[0] == arguments[1];
  for (const std::size_t i : {0U, 1U}) {
    const Sight& x = sights_[arguments[i]];
    const Sight& bound = sights_[arguments[1 - i]];
    if (!bound.is_constant) continue;
    const bool is_signed = x.is_not_negative || (graph_[arguments[i]].op == Op::kNeg &&
                                                 sights_[graph_.arguments(arguments[i])[0]].is_not_negative);
    sight.is_decided = sight.is_decided || x.is_choice || (is_signed && bound.is_zero);
  }
  return sight;
}

Sight Sights::look_at_select(NodeId id, Sight sight) const {
  const auto arguments = graph_.arguments(id);
  const Sight& x = sights_[arguments[1]];
  const Sight& y = sights_[arguments[2]];
  sight.is_zero = sights_[arguments[0]].is_decided ? x.is_zero || y.is_zero : x.is_zero && y.is_zero;
  sight.is_choice = (x.is_absolute || x.is_choice) && (y.is_absolute || y.is_choice);
  sight.is_not_negative = x.is_not_negative && y.is_not_negative;
  return sight;
}

// Integers of C texts are doubles here: compilers know that i - i, -i + i and 0 * i are 0.
Sight Sights::look_at_linear(NodeId id, Sight sight) const {
  const auto arguments = graph_.arguments(id);
  const Op op = graph_[id].op;
  const Sight& x = sights_[arguments[0]];
  const Sight& y = sights_[arguments[1]];
  const bool is_product = op == Op::kMul || op == Op::kDiv;
  sight.is_zero = is_product ? x.is_zero || (op == Op::kMul && y.is_zero) : (x.is_zero && y.is_zero);
  const bool is_alike = x.origin == y.origin && !x.is_constant && !y.is_constant;
  sight.is_zero = sight.is_zero || (is_alike && (op == Op::kSub || (op == Op::kAdd && sights_[x.origin].is_choice)));
  sight.is_not_negative =
      op != Op::kSub && ((x.is_not_negative && y.is_not_negative) || (op == Op::kMul && arguments[0] == arguments[1]));
  for (const auto& [part, other] : {std::pair{x, y}, std::pair{y, x}}) {
    if (!other.is_constant) continue;
    sight.is_absolute = part.is_absolute;
    sight.is_choice = part.is_choice;
    if (sights_[part.origin].is_choice) sight.origin = part.origin;
  }
  return sight;
}

std::vector<bool> values_to_name(const Graph& graph) {
  Sights sights(graph);
  std::vector<bool> named;
  const auto name = [&](NodeId id) {
    if (graph[id].op == Op::kNeg) id = graph.arguments(id)[0];  // a negative is never named
    named.resize(graph.size());
    named[id] = true;
  };
  for (NodeId id = 0; id < graph.size(); ++id) {
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
