#include "client/graph/operators.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <unordered_map>

namespace jitc::graph {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

enum class Form : std::uint8_t { kConstant, kUnary, kBinary, kSum, kProduct, kPower, kExtremum, kFold, kSelect };
struct Operator {
  Form form;
  Op op;
  double constant = 0.0;
};

std::unordered_map<std::string_view, Operator> make_operators() {
  std::unordered_map<std::string_view, Operator> table;
  const auto range = [&](Op first, Op last, Form form) {
    for (auto op = static_cast<std::uint8_t>(first); op <= static_cast<std::uint8_t>(last); ++op)
      table.emplace(name_of(static_cast<Op>(op)), Operator{form, static_cast<Op>(op)});
  };
  range(Op::kNeg, Op::kSign, Form::kUnary);
  range(Op::kSub, Op::kSub, Form::kBinary);
  range(Op::kDiv, Op::kDiv, Form::kBinary);
  range(Op::kAtan2, Op::kFmin, Form::kBinary);
  range(Op::kLt, Op::kNe, Form::kBinary);
  range(Op::kAnd, Op::kOr, Form::kFold);
  range(Op::kNot, Op::kNot, Form::kUnary);
  range(Op::kSelect, Op::kSelect, Form::kSelect);
  range(Op::kMax, Op::kMin, Form::kExtremum);
  range(Op::kAdd, Op::kAdd, Form::kSum);
  range(Op::kMul, Op::kMul, Form::kProduct);
  range(Op::kPow, Op::kPow, Form::kPower);
  range(Op::kTrue, Op::kFalse, Form::kConstant);
  table.emplace("times", Operator{Form::kBinary, Op::kMul});
  table.emplace("power", Operator{Form::kBinary, Op::kPow});
  table.emplace("pi", Operator{Form::kConstant, Op::kNumber, std::numbers::pi});
  table.emplace("e", Operator{Form::kConstant, Op::kNumber, std::numbers::e});
  return table;
}

const Operator* find_operator(std::string_view name) {
  static const auto table = make_operators();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

// ---- checks ---------------------------------------------------------------------------------------------------------

struct Arity {
  std::size_t least;
  std::size_t most;
};

Arity arity_of(Form form) {
  constexpr auto kAny = std::numeric_limits<std::size_t>::max();
  switch (form) {
    case Form::kConstant:
      return {0, 0};
    case Form::kUnary:
      return {1, 1};
    case Form::kBinary:
    case Form::kPower:
      return {2, 2};
    case Form::kSelect:
      return {3, 3};
    case Form::kSum:
    case Form::kProduct:
    case Form::kExtremum:
    case Form::kFold:
      return {2, kAny};
  }
  return {0, 0};
}

std::string counted(std::size_t count) { return std::to_string(count) + (count == 1 ? " argument" : " arguments"); }

Result<void> check_kind(const Graph& graph, NodeId id, bool wants_condition, std::string_view what,
                        std::string_view op) {
  if (id >= graph.size())
    return fail(ErrorKind::kUsage, std::string(what) + " is no node of this graph", std::string(op));
  if (is_condition(graph[id].op) == wants_condition) return {};
  return fail(ErrorKind::kUsage,
              std::string(what) + (wants_condition ? " is a value, not a condition" : " is a condition, not a value"),
              std::string(op));
}

Result<void> check_arguments(const Graph& graph, std::string_view name, const Operator& op,
                             std::span<const NodeId> arguments) {
  const auto [least, most] = arity_of(op.form);
  if (arguments.size() < least || arguments.size() > most)
    return fail(
        ErrorKind::kUsage,
        "takes " + counted(least) + (least == most ? "" : " or more") + ", not " + std::to_string(arguments.size()),
        std::string(name));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto checked =
        check_kind(graph, arguments[i], takes_condition(op.op, i), "argument " + std::to_string(i + 1), name);
    if (!checked) return checked;
  }
  return {};
}

// ---- sums, products, powers -----------------------------------------------------------------------------------------

bool is_negative_number(const Graph& graph, NodeId id) {
  return graph.is_number(id) && std::signbit(graph.number_of(id));
}

// What is subtracted when this term is added: x of -x.
std::optional<NodeId> subtrahend(Graph& graph, NodeId term) {
  if (graph[term].op == Op::kNeg || is_negative_number(graph, term)) return graph.unary(Op::kNeg, term);
  return std::nullopt;
}

NodeId sum(Graph& graph, std::span<const NodeId> terms) {
  NodeId total = terms[0];
  for (const NodeId term : terms.subspan(1)) {
    if (const auto less = subtrahend(graph, term)) {
      total = graph.binary(Op::kSub, total, *less);
    } else if (const auto first = subtrahend(graph, total)) {
      total = graph.binary(Op::kSub, term, *first);
    } else {
      total = graph.binary(Op::kAdd, total, term);
    }
  }
  return total;
}

void multiply(Graph& graph, std::optional<NodeId>& product, NodeId factor) {
  product = product ? graph.binary(Op::kMul, *product, factor) : factor;
}

NodeId product(Graph& graph, std::span<const NodeId> factors) {
  std::optional<NodeId> numerator;
  std::optional<NodeId> denominator;
  const bool is_negative = is_negative_number(graph, factors[0]);
  if (is_negative) {
    const NodeId size = graph.unary(Op::kNeg, factors[0]);
    if (!graph.is_number(size, 1.0)) numerator = size;
    factors = factors.subspan(1);
  }
  for (const NodeId factor : factors) {
    const Node node = graph[factor];
    if (node.op == Op::kDiv && graph.is_number(node.args[0], 1.0)) {
      multiply(graph, denominator, node.args[1]);
    } else {
      multiply(graph, numerator, factor);
    }
  }
  NodeId value = numerator ? *numerator : graph.number(1.0);
  if (denominator) value = graph.binary(Op::kDiv, value, *denominator);
  return is_negative ? graph.unary(Op::kNeg, value) : value;
}

NodeId integer_power(Graph& graph, NodeId base, unsigned exponent) {
  std::optional<NodeId> result;
  for (NodeId square = base; exponent != 0; exponent >>= 1) {
    if (exponent & 1U) multiply(graph, result, square);
    if (exponent > 1) square = graph.binary(Op::kMul, square, square);
  }
  return result ? *result : graph.number(1.0);
}

NodeId power(Graph& graph, NodeId base, NodeId exponent) {
  if (!graph.is_number(exponent)) return graph.binary(Op::kPow, base, exponent);
  const double value = graph.number_of(exponent);
  const double size = std::fabs(value);
  NodeId positive = 0;
  if (size == 0.5) {
    positive = graph.unary(Op::kSqrt, base);
  } else if (size <= kLargestProduct && size == std::floor(size)) {
    positive = integer_power(graph, base, static_cast<unsigned>(size));
  } else {
    return graph.binary(Op::kPow, base, exponent);
  }
  return value < 0.0 ? graph.binary(Op::kDiv, graph.number(1.0), positive) : positive;
}

NodeId fold(Graph& graph, Op op, std::span<const NodeId> arguments) {
  NodeId value = arguments[0];
  for (const NodeId argument : arguments.subspan(1)) value = graph.binary(op, value, argument);
  return value;
}

NodeId build(Graph& graph, const Operator& op, std::span<const NodeId> arguments) {
  switch (op.form) {
    case Form::kConstant:
      return op.op == Op::kNumber ? graph.number(op.constant) : graph.truth(op.op == Op::kTrue);
    case Form::kUnary:
      return graph.unary(op.op, arguments[0]);
    case Form::kBinary:
      return graph.binary(op.op, arguments[0], arguments[1]);
    case Form::kSum:
      return sum(graph, arguments);
    case Form::kProduct:
      return product(graph, arguments);
    case Form::kPower:
      return power(graph, arguments[0], arguments[1]);
    case Form::kExtremum:
      return graph.extremum(op.op, arguments);
    case Form::kFold:
      return fold(graph, op.op, arguments);
    case Form::kSelect:
      return graph.select(arguments[0], arguments[1], arguments[2]);
  }
  return 0;
}

}  // namespace

Result<NodeId> apply(Graph& graph, std::string_view name, std::span<const NodeId> arguments) {
  const Operator* op = find_operator(name);
  if (op == nullptr) return fail(ErrorKind::kUsage, "there is no such operator", std::string(name.substr(0, 100)));
  if (auto checked = check_arguments(graph, name, *op, arguments); !checked)
    return std::unexpected(std::move(checked.error()));
  return build(graph, *op, arguments);
}

Result<NodeId> piecewise(Graph& graph, std::span<const Piece> pieces) {
  constexpr std::string_view kName = "piecewise";
  if (pieces.empty()) return fail(ErrorKind::kUsage, "has no pieces", std::string(kName));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string what = " of piece " + std::to_string(i + 1);
    auto checked = check_kind(graph, pieces[i].condition, true, "the condition" + what, kName);
    if (checked) checked = check_kind(graph, pieces[i].value, false, "the value" + what, kName);
    if (!checked) return std::unexpected(std::move(checked.error()));
  }
  if (graph[pieces.back().condition].op != Op::kTrue)
    return fail(ErrorKind::kUsage, "the last condition is not `true`", std::string(kName),
                "say which value holds when no condition is true");
  NodeId value = pieces.back().value;
  for (std::size_t i = pieces.size() - 1; i-- > 0;) {
    const Op condition = graph[pieces[i].condition].op;
    if (condition == Op::kTrue) value = pieces[i].value;
    if (condition != Op::kTrue && condition != Op::kFalse)
      value = graph.select(pieces[i].condition, pieces[i].value, value);
  }
  return value;
}

bool takes_condition(Op op, std::size_t index) {
  return op == Op::kAnd || op == Op::kOr || op == Op::kNot || (op == Op::kSelect && index == 0);
}

}  // namespace jitc::graph
