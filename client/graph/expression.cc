#include "client/graph/expression.h"

#include <algorithm>
#include <cmath>

namespace jitc::graph {
namespace {

struct Infix {
  std::string_view text;
  Binding left;
  Binding right;
};

// The right operand of what C reads from the left must bind more strongly: association stays as the graph says. `&&`
// under `||` has parentheses because compilers warn without.
Infix infix_of(Op op) {
  switch (op) {
    case Op::kAdd:
      return {" + ", Binding::kSum, Binding::kProduct};
    case Op::kSub:
      return {" - ", Binding::kSum, Binding::kProduct};
    case Op::kMul:
      return {" * ", Binding::kProduct, Binding::kPrimary};
    case Op::kDiv:
      return {" / ", Binding::kProduct, Binding::kPrimary};
    case Op::kLt:
      return {" < ", Binding::kSum, Binding::kSum};
    case Op::kLe:
      return {" <= ", Binding::kSum, Binding::kSum};
    case Op::kGt:
      return {" > ", Binding::kSum, Binding::kSum};
    case Op::kGe:
      return {" >= ", Binding::kSum, Binding::kSum};
    case Op::kEq:
      return {" == ", Binding::kSum, Binding::kSum};
    case Op::kNe:
      return {" != ", Binding::kSum, Binding::kSum};
    case Op::kAnd:
      return {" && ", Binding::kAnd, Binding::kEquality};
    case Op::kOr:
      return {" || ", Binding::kEquality, Binding::kEquality};
    default:
      return {};
  }
}

std::string_view c_function(Op op) {
  switch (op) {
    case Op::kAbs:
      return "fabs";
    case Op::kSign:
      return kSignHelper;
    case Op::kHeaviside:
      return kHeavisideHelper;
    case Op::kMax:
      return kMaxHelper;
    case Op::kMin:
      return kMinHelper;
    default:
      return name_of(op);  // the C library's own name
  }
}

TextPiece argument(NodeId id, Binding needed) { return {.id = id, .needed = needed, .is_argument = true}; }

void push_call(std::string_view function, std::span<const NodeId> arguments, std::vector<TextPiece>& stack) {
  stack.push_back({.text = ")"});
  for (std::size_t i = arguments.size(); i-- > 0;) {
    stack.push_back(argument(arguments[i], Binding::kSelect));
    if (i > 0) stack.push_back({.text = ", "});
  }
  stack.push_back({.text = "("});
  stack.push_back({.text = function});
}

// max(max(a, b), c): folded from the left.
void push_extremum(std::string_view function, std::span<const NodeId> arguments, std::vector<TextPiece>& stack) {
  for (std::size_t i = arguments.size(); i-- > 1;) {
    stack.push_back({.text = ")"});
    stack.push_back(argument(arguments[i], Binding::kSelect));
    stack.push_back({.text = ", "});
  }
  stack.push_back(argument(arguments[0], Binding::kSelect));
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    stack.push_back({.text = "("});
    stack.push_back({.text = function});
  }
}

}  // namespace

Binding binding_of(const Graph& graph, NodeId id) {
  switch (graph[id].op) {
    case Op::kNumber: {
      const double value = graph.number_of(id);
      if (!std::isnan(value) && std::signbit(value)) return Binding::kSign;
      return std::isfinite(value) ? Binding::kPrimary : Binding::kProduct;
    }
    case Op::kNeg:
      return Binding::kSign;
    case Op::kAdd:
    case Op::kSub:
      return Binding::kSum;
    case Op::kMul:
    case Op::kDiv:
      return Binding::kProduct;
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return Binding::kOrder;
    case Op::kEq:
    case Op::kNe:
      return Binding::kEquality;
    case Op::kAnd:
      return Binding::kAnd;
    case Op::kOr:
      return Binding::kOr;
    case Op::kSelect:
      return Binding::kSelect;
    default:
      return Binding::kPrimary;
  }
}

void push_operator(const Graph& graph, NodeId id, std::vector<TextPiece>& stack) {
  const Node& node = graph[id];
  const std::span<const NodeId> arguments = graph.arguments(id);
  if (const Infix infix = infix_of(node.op); !infix.text.empty()) {
    stack.push_back(argument(arguments[1], infix.right));
    stack.push_back({.text = infix.text});
    stack.push_back(argument(arguments[0], infix.left));
    return;
  }
  switch (node.op) {
    case Op::kTrue:
      stack.push_back({.text = "1"});
      return;
    case Op::kFalse:
      stack.push_back({.text = "0"});
      return;
    case Op::kNeg:
    case Op::kNot:
      stack.push_back(argument(arguments[0], Binding::kPrimary));
      stack.push_back({.text = node.op == Op::kNeg ? "-" : "!"});
      return;
    case Op::kSelect:
      stack.push_back(argument(arguments[2], Binding::kSelect));
      stack.push_back({.text = " : "});
      stack.push_back(argument(arguments[1], Binding::kOr));
      stack.push_back({.text = " ? "});
      stack.push_back(argument(arguments[0], Binding::kOr));
      return;
    case Op::kMax:
    case Op::kMin:
      return push_extremum(c_function(node.op), arguments, stack);
    case Op::kCall:
      return push_call(graph.function(node.args[2]).name, arguments, stack);
    default:
      return push_call(c_function(node.op), arguments, stack);
  }
}

std::uint32_t brackets_around(const Graph& graph, NodeId id, std::size_t position) {
  const Op op = graph[id].op;
  if (op != Op::kMax && op != Op::kMin) return 1;
  return static_cast<std::uint32_t>(graph.arguments(id).size() - std::max<std::size_t>(position, 1));
}

}  // namespace jitc::graph
