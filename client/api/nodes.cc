// Expressions of a jitc_problem.
#include <array>
#include <cmath>
#include <span>

#include "client/api/problem.h"
#include "client/graph/operators.h"
#include "client/graph/parse_number.h"

using namespace jitc;
using common::ErrorKind;
using common::Result;
using graph::NodeId;

static_assert(JITC_LEAF_U == static_cast<int>(graph::kU) && JITC_LEAF_U_T == static_cast<int>(graph::kUt) &&
              JITC_LEAF_U_X == static_cast<int>(graph::kUx) && JITC_LEAF_A == static_cast<int>(graph::kA) &&
              JITC_LEAF_A_T == static_cast<int>(graph::kAt) && JITC_LEAF_A_X == static_cast<int>(graph::kAx) &&
              JITC_LEAF_T == static_cast<int>(graph::kT) && JITC_LEAF_U_T_SHIFT == static_cast<int>(graph::kUtShift) &&
              JITC_LEAF_X == static_cast<int>(graph::kX) && JITC_LEAF_N == static_cast<int>(graph::kN) &&
              JITC_LEAF_CONSTANTS == static_cast<int>(graph::kConstants));

namespace {

std::unexpected<common::Error> usage(std::string message, std::string thing = {}) {
  return common::fail(ErrorKind::kUsage, std::move(message), std::move(thing));
}

Result<NodeId> piecewise(graph::Graph& graph, std::span<const NodeId> arguments) {
  if (arguments.size() % 2 != 0) return usage("takes pairs of a condition and a value", "piecewise");
  std::vector<graph::Piece> pieces;
  for (std::size_t i = 0; i < arguments.size(); i += 2) pieces.push_back({arguments[i], arguments[i + 1]});
  return graph::piecewise(graph, pieces);
}

bool is_value(const graph::Graph& graph, NodeId id) { return id < graph.size() && !graph::is_condition(graph[id].op); }

bool is_gradient(jitc_leaf leaf) { return leaf == JITC_LEAF_U_X || leaf == JITC_LEAF_A_X; }

Result<NodeId> field_leaf(graph::Problem& problem, jitc_leaf leaf, std::uint32_t index, std::uint32_t component,
                          std::uint32_t direction) {
  if (leaf < JITC_LEAF_U || leaf > JITC_LEAF_A_X) return usage("this kind of leaf belongs to no field", "leaf");
  const std::vector<graph::Field>& fields = leaf <= JITC_LEAF_U_X ? problem.fields : problem.aux_fields;
  if (index >= fields.size()) return usage("there is no such field", "field " + std::to_string(index));
  const graph::Field& field = fields[index];
  if (component >= field.components)
    return usage("it has " + std::to_string(field.components) + " components, not " + std::to_string(component + 1),
                 "field '" + field.name + "'");
  if (is_gradient(leaf) && direction >= problem.dim)
    return usage("the problem has no such direction", "direction " + std::to_string(direction));
  const std::uint32_t place = field.first + component;
  return problem.graph.leaf(static_cast<graph::ArgumentId>(leaf),
                            is_gradient(leaf) ? place * problem.dim + direction : place);
}

}  // namespace

jitc_node jitc_node_number(jitc_problem* problem, double value) {
  return api::build(problem, "jitc_node_number",
                    [&](graph::Problem& edited) -> Result<NodeId> { return edited.graph.number(value); });
}

jitc_node jitc_node_rational(jitc_problem* problem, int64_t numerator, int64_t denominator) {
  return api::build(problem, "jitc_node_rational", [&](graph::Problem& edited) -> Result<NodeId> {
    if (denominator == 0) return usage("the denominator is 0", std::to_string(numerator) + "/0");
    return edited.graph.number(static_cast<double>(numerator) / static_cast<double>(denominator));
  });
}

jitc_node jitc_node_literal(jitc_problem* problem, const char* text) {
  return api::build(problem, "jitc_node_literal", [&](graph::Problem& edited) -> Result<NodeId> {
    if (!text) return api::null_pointer("text");
    const std::optional<double> value = graph::parse_number(text);
    if (!value) return usage("it is not a number, or not one that a double can hold", "'" + std::string(text) + "'");
    return edited.graph.number(*value);
  });
}

jitc_node jitc_node_leaf(jitc_problem* problem, jitc_leaf leaf, uint32_t index) {
  return api::build(problem, "jitc_node_leaf", [&](graph::Problem& edited) -> Result<NodeId> {
    if (leaf < JITC_LEAF_U || leaf > JITC_LEAF_CONSTANTS)
      return usage(std::to_string(static_cast<int>(leaf)) + " is no kind of leaf", "leaf");
    if (leaf == JITC_LEAF_CONSTANTS && index >= edited.constants.size())
      return usage("there is no such constant", "constant " + std::to_string(index));
    return edited.graph.leaf(static_cast<graph::ArgumentId>(leaf), index);
  });
}

jitc_node jitc_node_field(jitc_problem* problem, jitc_leaf leaf, uint32_t field, uint32_t component,
                          uint32_t direction) {
  return api::build(problem, "jitc_node_field",
                    [&](graph::Problem& edited) { return field_leaf(edited, leaf, field, component, direction); });
}

jitc_node jitc_node_apply(jitc_problem* problem, const char* op, const jitc_node* arguments, size_t count) {
  return api::build(problem, "jitc_node_apply", [&](graph::Problem& edited) -> Result<NodeId> {
    if (!op || (!arguments && count > 0)) return api::null_pointer("operator");
    const std::span<const NodeId> given(arguments, count);
    if (std::string_view(op) == "piecewise") return piecewise(edited.graph, given);
    return graph::apply(edited.graph, op, given);
  });
}

jitc_node jitc_node_call(jitc_problem* problem, uint32_t function, const jitc_node* arguments, size_t count) {
  return api::build(problem, "jitc_node_call", [&](graph::Problem& edited) -> Result<NodeId> {
    if (!arguments && count > 0) return api::null_pointer("arguments");
    if (function >= edited.graph.function_count())
      return usage("there is no such function", "function " + std::to_string(function));
    const graph::Function& called = edited.graph.function(function);
    if (called.arity != count)
      return usage("it takes " + std::to_string(called.arity) + " arguments, not " + std::to_string(count),
                   "function '" + called.name + "'");
    for (std::size_t i = 0; i < count; ++i)
      if (!is_value(edited.graph, arguments[i]))
        return usage("argument " + std::to_string(i + 1) + " is no value of this problem",
                     "function '" + called.name + "'");
    return edited.graph.call(function, {arguments, count});
  });
}

jitc_node jitc_node_named(jitc_problem* problem, const char* name, jitc_node body) {
  return api::build(problem, "jitc_node_named", [&](graph::Problem& edited) -> Result<NodeId> {
    if (!name || !*name) return usage("it has no name", "named node");
    if (!is_value(edited.graph, body))
      return usage("its body is no value of this problem", "named node '" + std::string(name) + "'");
    return edited.graph.named(name, body);
  });
}
