#include "client/graph/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "client/graph/c_names.h"
#include "client/graph/operators.h"

namespace jitc::graph {
namespace {

using common::ErrorKind;
using common::Result;

constexpr std::uint32_t kMostDimensions = 3;
constexpr std::uint32_t kMostComponents = 1024;

std::unexpected<common::Error> fail(std::string message, std::string thing, std::string remedy = {}) {
  return common::fail(ErrorKind::kInvalidSource, std::move(message), std::move(thing), std::move(remedy));
}

std::string with_index(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

// "f0_0[1], nodes[7]"
std::string with_node(const Problem& problem, std::string_view function, std::size_t entry, NodeId id) {
  return with_index(function, entry) + ", " + problem.origins.describe(id);
}

// ---- fields ---------------------------------------------------------------------------------------------------------

Result<void> check_fields(const std::vector<Field>& fields, std::string_view table) {
  std::vector<const Field*> in_order;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    if (field.components < 1 || field.components > kMostComponents)
      return fail("has " + std::to_string(field.components) + " components; 1 to " + std::to_string(kMostComponents) +
                      " are possible",
                  with_index(table, i));
    if (field.first > kLastComponent - field.components)
      return fail("begins at component " + std::to_string(field.first) + ", which is too large", with_index(table, i));
    in_order.push_back(&field);
  }
  std::ranges::sort(in_order, {}, [](const Field* field) { return field->first; });
  for (std::size_t i = 1; i < in_order.size(); ++i)
    if (in_order[i - 1]->first + in_order[i - 1]->components > in_order[i]->first)
      return fail("overlaps another field at component " + std::to_string(in_order[i]->first),
                  with_index(table, static_cast<std::size_t>(in_order[i] - fields.data())));
  return {};
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

// What is wrong with the node, if anything.
std::optional<std::string> fault_of_leaf(const Problem& problem, const Node& leaf) {
  const std::string name(problem.graph.argument_name(leaf.argument));
  const auto length = length_of(problem, leaf.argument);
  if (!length) return "'" + name + "' is no argument of a pointwise function";
  if (leaf.args[0] < *length) return std::nullopt;
  return "element " + std::to_string(leaf.args[0]) + " of '" + name + "', which has " + std::to_string(*length);
}

std::optional<std::string> fault_of_arguments(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const auto arguments = graph.arguments(id);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_condition(graph[arguments[i]].op) == takes_condition(node.op, i)) continue;
    const std::string what = node.op == Op::kNamed ? "the expression '" + std::string(graph.name(id)) + "'"
                                                   : "an argument of " + std::string(name_of(node.op));
    return what + (takes_condition(node.op, i) ? " is a value, not a condition" : " is a condition, not a value");
  }
  if (node.op == Op::kCall && graph.function(node.args[2]).arity != arguments.size())
    return "the function '" + graph.function(node.args[2]).name + "' takes " +
           std::to_string(graph.function(node.args[2]).arity) + " arguments, not " + std::to_string(arguments.size());
  return std::nullopt;
}

std::optional<std::string> fault_of(const Problem& problem, NodeId id) {
  return problem.graph[id].op == Op::kLeaf ? fault_of_leaf(problem, problem.graph[id])
                                           : fault_of_arguments(problem.graph, id);
}

// ---- functions ------------------------------------------------------------------------------------------------------

// One function whose entries the problem states, whatever it is.
struct Stated {
  const std::string* name;
  const std::vector<NodeId>* entries;
  bool boundary;
  bool jacobian;
};

std::vector<Stated> stated_functions(const Problem& problem) {
  std::vector<Stated> all;
  for (const Residual& residual : problem.residuals)
    all.push_back({&residual.name, &residual.entries, residual.boundary, false});
  for (const Block& block : problem.blocks)
    if (!block.entries.empty()) all.push_back({&block.name, &block.entries, block.boundary, true});
  return all;
}

// Finds, in any function that `is_of_interest` picks, a node for which `fault` gives a text, in one pass over the
// nodes.
template <class Pick, class Fault>
Result<void> check_nodes(const Problem& problem, Pick is_of_interest, Fault fault) {
  const Graph& graph = problem.graph;
  auto functions = stated_functions(problem);
  std::erase_if(functions, [&](const Stated& function) { return !is_of_interest(function); });
  std::vector<NodeId> outputs;
  for (const Stated& function : functions)
    outputs.insert(outputs.end(), function.entries->begin(), function.entries->end());
  const auto used = reachable(graph, outputs);
  std::vector<bool> is_faulty(used.size());  // by itself or by what it uses
  const auto uses_fault = [&](NodeId id) { return bool{is_faulty[id]}; };
  for (NodeId id = 0; id < used.size(); ++id)
    is_faulty[id] = used[id] && (fault(id) || std::ranges::any_of(graph.arguments(id), uses_fault));
  for (const Stated& function : functions) {
    const auto entry = std::ranges::find_if(*function.entries, uses_fault);
    if (entry == function.entries->end()) continue;
    NodeId id = *entry;
    while (!fault(id)) id = *std::ranges::find_if(graph.arguments(id), uses_fault);
    const auto place = static_cast<std::size_t>(entry - function.entries->begin());
    return fail(*fault(id), with_node(problem, *function.name, place, id));
  }
  return {};
}

Result<void> check_expressions(const Problem& problem) {
  const Graph& graph = problem.graph;
  for (const Stated& function : stated_functions(problem)) {
    for (std::size_t i = 0; i < function.entries->size(); ++i) {
      const NodeId entry = (*function.entries)[i];
      if (entry >= graph.size()) return fail("is no node of the graph", with_index(*function.name, i));
      if (is_condition(graph[entry].op))
        return fail("is a condition, not a value", with_node(problem, *function.name, i, entry));
    }
  }
  auto checked =
      check_nodes(problem, [](const Stated&) { return true; }, [&](NodeId id) { return fault_of(problem, id); });
  if (!checked) return checked;
  const auto uses = [&](ArgumentId argument, const char* text) {
    return [&graph, argument, text](NodeId id) {
      const bool used = graph[id].op == Op::kLeaf && graph[id].argument == argument;
      return used ? std::optional<std::string>(text) : std::nullopt;
    };
  };
  checked = check_nodes(
      problem, [](const Stated& function) { return !function.boundary; },
      uses(kN, "uses the normal n, which only functions of the boundary have"));
  if (!checked) return checked;
  return check_nodes(
      problem, [](const Stated& function) { return !function.jacobian; },
      uses(kUtShift, "uses u_tShift, which only Jacobian functions have"));
}

Result<void> check_size(const std::string& name, std::size_t given, std::size_t needed) {
  if (given == needed) return {};
  return fail("has " + std::to_string(given) + " entries; the layout needs " + std::to_string(needed), name);
}

Result<void> check_residual(const Problem& problem, const Residual& residual) {
  if (!is_residual(residual.kind)) return fail("is a residual function of a Jacobian kind", residual.name);
  if (residual.field >= problem.fields.size())
    return fail("there is no field " + std::to_string(residual.field), residual.name);
  return check_size(residual.name, residual.entries.size(), size_of(problem, residual));
}

Result<void> check_frozen(const Problem& problem, const Block& block,
                          const std::unordered_set<std::string_view>& names) {
  for (const std::string& name : block.frozen)
    if (!names.contains(name))
      return fail("freezes '" + name + "', but no expression of the residual has that name", block.name);
  const bool is_continuation = block.tangent == Tangent::kContinuation;
  if (is_continuation && block.continuation >= problem.constants.size())
    return fail("is continued by constant " + std::to_string(block.continuation) + " of " +
                    std::to_string(problem.constants.size()),
                block.name);
  return {};
}

Result<void> check_block(const Problem& problem, const Block& block) {
  if (is_residual(block.kind)) return fail("is a Jacobian block of a residual kind", block.name);
  for (const std::uint32_t field : {block.test, block.trial})
    if (field >= problem.fields.size()) return fail("there is no field " + std::to_string(field), block.name);
  if (!block.entries.empty()) return check_size(block.name, block.entries.size(), size_of(problem, block));
  const auto source = source_of(problem, block);
  return source ? Result<void>() : std::unexpected(source.error());
}

Result<void> check_opaque(const Graph& graph, const Function& function) {
  if (auto checked = check_called_name(function.name, function.arity); !checked) return checked;
  if (!function.partials.empty() && function.partials.size() != function.arity)
    return fail("has " + std::to_string(function.partials.size()) + " partial derivatives for " +
                    std::to_string(function.arity) + " arguments",
                function.name);
  for (const auto& partial : function.partials)
    if (partial && (*partial >= graph.function_count() || graph.function(*partial).arity != function.arity))
      return fail("has a partial derivative that does not take the same arguments", function.name);
  return {};
}

Result<void> check_names(const Problem& problem) {
  std::unordered_set<std::string_view> seen;
  const auto check_one = [&](const std::string& name) -> Result<void> {
    if (auto checked = check_function_name(name); !checked) return checked;
    return seen.insert(name).second ? Result<void>() : fail("two functions have this name", name);
  };
  for (const Residual& residual : problem.residuals)
    if (auto checked = check_one(residual.name); !checked) return checked;
  for (const Block& block : problem.blocks)
    if (auto checked = check_one(block.name); !checked) return checked;
  for (FunctionId id = 0; id < problem.graph.function_count(); ++id) {
    const Function& function = problem.graph.function(id);
    if (auto checked = check_opaque(problem.graph, function); !checked) return checked;
    if (seen.contains(function.name)) return fail("is a function of the problem and one that it calls", function.name);
  }
  return {};
}

std::unordered_set<std::string_view> expression_names(const Problem& problem) {
  std::vector<NodeId> outputs;
  for (const Residual& residual : problem.residuals)
    outputs.insert(outputs.end(), residual.entries.begin(), residual.entries.end());
  const auto used = reachable(problem.graph, outputs);
  std::unordered_set<std::string_view> names;
  for (NodeId id = 0; id < used.size(); ++id)
    if (used[id] && problem.graph[id].op == Op::kNamed) names.insert(problem.graph.name(id));
  return names;
}

// What the problem's functions use, with the constants in their slots; the new ids by old ones, and the old ones by
// new.
std::pair<std::vector<NodeId>, std::vector<NodeId>> copy_with_slots(const Problem& problem,
                                                                    std::span<const std::uint32_t> slots, Graph& to) {
  const Graph& from = problem.graph;
  std::vector<NodeId> outputs;
  for (const Stated& function : stated_functions(problem))
    outputs.insert(outputs.end(), function.entries->begin(), function.entries->end());
  // In order, so that functions keep their ids, by which partial derivatives name one another.
  for (FunctionId id = 0; id < from.function_count(); ++id) to.declare(from.function(id));
  const auto used = reachable(from, outputs);
  to.reserve(from.size());
  std::vector<NodeId> ids(from.size());
  std::vector<NodeId> originals;
  std::vector<NodeId> arguments;
  for (NodeId id = 0; id < from.size(); ++id) {
    if (!used[id]) continue;
    const Node& node = from[id];
    arguments.clear();
    for (const NodeId argument : from.arguments(id)) arguments.push_back(ids[argument]);
    const bool is_constant = node.op == Op::kLeaf && node.argument == kConstants;
    ids[id] = is_constant ? to.leaf(kConstants, slots[node.args[0]]) : to.rebuild(from, id, arguments);
    originals.resize(to.size(), id);
  }
  return {std::move(ids), std::move(originals)};
}

void append_json(std::string& text, std::string_view value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += '"';
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (code < 0x20) {
      text += "\\u00";
      text += kDigits[code >> 4];
      text += kDigits[code & 15];
    } else {
      text += c;
    }
  }
  text += '"';
}

}  // namespace

// ---- layout ---------------------------------------------------------------------------------------------------------

bool is_residual(Kind kind) { return kind == Kind::kF0 || kind == Kind::kF1; }

std::uint32_t total_components(const std::vector<Field>& fields) {
  std::uint32_t total = 0;
  for (const Field& field : fields) total = std::max(total, field.first + field.components);
  return total;
}

std::optional<std::uint32_t> length_of(const Problem& problem, ArgumentId argument) {
  const std::uint32_t u = total_components(problem.fields);
  const std::uint32_t a = total_components(problem.aux_fields);
  switch (argument) {
    case kU:
    case kUt:
      return u;
    case kUx:
      return u * problem.dim;
    case kA:
    case kAt:
      return a;
    case kAx:
      return a * problem.dim;
    case kX:
    case kN:
      return problem.dim;
    case kConstants:
      return static_cast<std::uint32_t>(problem.constants.size());
    case kT:
    case kUtShift:
      return 1;
    default:
      return std::nullopt;
  }
}

std::size_t size_of(const Problem& problem, const Residual& residual) {
  const std::size_t components = problem.fields[residual.field].components;
  return residual.kind == Kind::kF0 ? components : components * problem.dim;
}

std::size_t size_of(const Problem& problem, const Block& block) {
  std::size_t size = std::size_t{problem.fields[block.test].components} * problem.fields[block.trial].components;
  if (differentiates_flux(block.kind)) size *= problem.dim;
  if (differentiates_by_gradient(block.kind)) size *= problem.dim;
  return size;
}

bool differentiates_flux(Kind kind) { return kind == Kind::kG2 || kind == Kind::kG3; }
bool differentiates_by_gradient(Kind kind) { return kind == Kind::kG1 || kind == Kind::kG3; }

Result<std::size_t> source_of(const Problem& problem, const Block& block) {
  const Kind kind = differentiates_flux(block.kind) ? Kind::kF1 : Kind::kF0;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < problem.residuals.size(); ++i) {
    const Residual& residual = problem.residuals[i];
    if (residual.kind != kind || residual.field != block.test || residual.boundary != block.boundary) continue;
    if (found)
      return fail("'" + problem.residuals[*found].name + "' and '" + residual.name + "' could both be differentiated",
                  block.name, "state them as problems of their own");
    found = i;
  }
  if (found) return *found;
  return fail(std::string("is a derivative of the function ") + (kind == Kind::kF0 ? "f0" : "f1") + " of field " +
                  std::to_string(block.test) + (block.boundary ? " on the boundary" : "") +
                  ", which the problem does not have",
              block.name, "leave the block out: it is zero");
}

// ---- constants ------------------------------------------------------------------------------------------------------

std::vector<std::uint32_t> constant_slots(const Problem& problem) {
  std::vector<std::uint32_t> by_slot(problem.constants.size());
  std::iota(by_slot.begin(), by_slot.end(), 0U);
  if (problem.sort_constants)
    std::ranges::sort(by_slot, {},
                      [&](std::uint32_t i) { return std::pair(std::string_view(problem.constants[i].name), i); });
  std::vector<std::uint32_t> slots(by_slot.size());
  for (std::uint32_t slot = 0; slot < by_slot.size(); ++slot) slots[by_slot[slot]] = slot;
  return slots;
}

Problem in_slot_order(const Problem& problem) {
  const auto slots = constant_slots(problem);
  Problem sorted;
  sorted.name = problem.name;
  sorted.dim = problem.dim;
  sorted.fields = problem.fields;
  sorted.aux_fields = problem.aux_fields;
  sorted.constants.resize(slots.size());
  sorted.sort_constants = problem.sort_constants;
  sorted.residuals = problem.residuals;
  sorted.blocks = problem.blocks;
  sorted.ties = problem.ties;
  sorted.guard = problem.guard;
  for (std::size_t i = 0; i < slots.size(); ++i) sorted.constants[slots[i]] = problem.constants[i];
  auto [ids, originals] = copy_with_slots(problem, slots, sorted.graph);
  sorted.origins = problem.origins;
  sorted.origins.renumber(std::move(originals));
  const auto map = [&ids](std::vector<NodeId>& entries) {
    for (NodeId& entry : entries) entry = ids[entry];
  };
  for (Residual& residual : sorted.residuals) map(residual.entries);
  for (Block& block : sorted.blocks) {
    map(block.entries);
    if (block.tangent == Tangent::kContinuation) block.continuation = slots[block.continuation];
  }
  return sorted;
}

std::string constants_manifest(const Problem& problem) {
  const auto slots = constant_slots(problem);
  std::vector<const Constant*> by_slot(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) by_slot[slots[i]] = &problem.constants[i];
  std::string text = "[";
  for (std::size_t slot = 0; slot < by_slot.size(); ++slot) {
    text += (slot == 0 ? "{\"slot\":" : ",{\"slot\":") + std::to_string(slot) + ",\"name\":";
    append_json(text, by_slot[slot]->name);
    text += '}';
  }
  return text + "]";
}

Result<void> check(const Problem& problem) {
  if (problem.dim < 1 || problem.dim > kMostDimensions)
    return fail("is " + std::to_string(problem.dim) + "; 1 to 3 are possible", "dim");
  if (!(problem.guard >= 0.0) || !std::isfinite(problem.guard)) return fail("is no finite number from 0 on", "guard");
  auto checked = check_capacity(problem.graph);
  if (checked) checked = check_fields(problem.fields, "fields");
  if (checked) checked = check_fields(problem.aux_fields, "aux_fields");
  if (checked) checked = check_names(problem);
  for (const Residual& residual : problem.residuals)
    if (checked) checked = check_residual(problem, residual);
  for (const Block& block : problem.blocks)
    if (checked) checked = check_block(problem, block);
  if (checked) checked = check_expressions(problem);
  if (!checked) return checked;
  const auto names = expression_names(problem);
  for (const Block& block : problem.blocks)
    if (checked) checked = check_frozen(problem, block, names);
  return checked;
}

}  // namespace jitc::graph
