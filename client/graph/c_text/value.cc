#include "client/graph/c_text/value.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace jitc::graph::c {
namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // doubles hold every integer up to here

bool is_integer(const Value& value) { return value.form != Value::kDouble; }
bool is_exact(std::int64_t low, std::int64_t high) { return low >= -kExact && high <= kExact; }

bool fits(std::int64_t low, std::int64_t high, bool is_long) {
  using Int = std::numeric_limits<std::int32_t>;
  return is_long || (low >= Int::min() && high <= Int::max());
}

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

Range range_of(const Value& value) {
  return value.form == Value::kCondition ? Range{0, 1} : Range{value.low, value.high};
}

// What x op y may be; nothing on overflow of 64 bits.
bool combine(Op op, const Range& x, const Range& y, Range& result) {
  switch (op) {
    case Op::kAdd:
      return !__builtin_add_overflow(x.low, y.low, &result.low) &&
             !__builtin_add_overflow(x.high, y.high, &result.high);
    case Op::kSub:
      return !__builtin_sub_overflow(x.low, y.high, &result.low) &&
             !__builtin_sub_overflow(x.high, y.low, &result.high);
    default: {
      std::int64_t corners[4];
      if (__builtin_mul_overflow(x.low, y.low, &corners[0]) || __builtin_mul_overflow(x.low, y.high, &corners[1]) ||
          __builtin_mul_overflow(x.high, y.low, &corners[2]) || __builtin_mul_overflow(x.high, y.high, &corners[3]))
        return false;
      const auto [low, high] = std::ranges::minmax(corners);
      result = {low, high};
      return true;
    }
  }
}

bool holds(Op op, std::int64_t x, std::int64_t y) {
  switch (op) {
    case Op::kLt:
      return x < y;
    case Op::kLe:
      return x <= y;
    case Op::kGt:
      return x > y;
    case Op::kGe:
      return x >= y;
    case Op::kEq:
      return x == y;
    default:
      return x != y;
  }
}

// Of what depends on both.
void inherit(Value& result, const Value& x, const Value& y) {
  result.is_constant = x.is_constant && y.is_constant;
  result.is_stored = result.is_constant && (x.is_stored || y.is_stored);
}

}  // namespace

Value Arithmetic::real(NodeId node, bool is_constant) const {
  Value value;
  value.is_constant = is_constant;
  value.node = node;
  return value;
}

Value Arithmetic::integer(std::int64_t value, bool is_long) {
  Value result;
  result.form = Value::kConstant;
  result.is_long = is_long;
  result.is_constant = true;
  result.low = result.high = value;
  return result;
}

Value Arithmetic::unknown(NodeId node, bool is_long) {
  Value result;
  result.form = Value::kInteger;
  result.is_long = is_long;
  result.node = node;
  result.low = is_long ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int32_t>::min();
  result.high = is_long ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int32_t>::max();
  return result;
}

NodeId Arithmetic::as_double(const Value& value) {
  switch (value.form) {
    case Value::kCondition:
      return graph_.select(value.node, graph_.number(1.0), graph_.number(0.0));
    case Value::kConstant:
      return graph_.number(static_cast<double>(value.low));
    default:
      return value.node;
  }
}

Value Arithmetic::truth(const Value& value) {
  if (value.form == Value::kCondition) return value;
  Value result = value;
  result.is_long = false;
  if (value.form == Value::kConstant) {
    result.low = result.high = value.low != 0 ? 1 : 0;
    return result;
  }
  result.form = Value::kCondition;
  result.is_constant = true;
  result.node = graph_.binary(Op::kNe, value.node, graph_.number(0.0));
  return result;
}

Or<Value> Arithmetic::binary(Op op, const Value& x, const Value& y) {
  if (op == Op::kAnd || op == Op::kOr) return logical(op, x, y);
  if (op >= Op::kLt && op <= Op::kNe) return compare(op, x, y);
  if (is_integer(x) && is_integer(y)) return integer_binary(op, x, y);
  const NodeId left = as_double(x);
  const NodeId right = as_double(y);
  if (const auto checked = check_zero(op, left, right); !checked) return refused(checked.error());
  Value result;
  result.node = graph_.binary(op, left, right);
  inherit(result, x, y);
  return result;
}

// gcc 12 makes -y of 0.0 - y where the same expression shows that y is no -0: 0.0 - fabs(z), not 0.0 - a. It makes
// 0.0 - y of -y + 0.0 before. What it takes for 0.0 need not be a literal.
Or<void> Arithmetic::check_zero(Op op, NodeId left, NodeId right) {
  if (op != Op::kAdd && op != Op::kSub) return {};
  const auto may_be_zero = [this](NodeId id) { return sights_[id].is_zero; };
  const auto is_negative = [this](NodeId id) { return graph_[id].op == Op::kNeg; };
  if (op == Op::kSub && !graph_.is_number(right) && may_be_zero(left))
    return refused("0 - x: compilers differ in its zero's sign");
  if ((is_negative(left) && may_be_zero(right)) || (is_negative(right) && may_be_zero(left)))
    return refused("-x + 0: compilers differ in its zero's sign");
  return {};
}

// A comparison that no compiler decides by what it sees of the two sides.
bool Arithmetic::is_open(const Value& value) const {
  const Op op = graph_[value.node].op;
  if (value.form != Value::kCondition || op < Op::kLt || op > Op::kNe) return false;
  const NodeId left = graph_[value.node].args[0];
  const NodeId right = graph_[value.node].args[1];
  const auto says_much = [this](NodeId side) { return graph_[side].op == Op::kSelect || graph_[side].op == Op::kAbs; };
  return left != right && !(graph_.is_number(left) && graph_.is_number(right)) && !says_much(left) && !says_much(right);
}

Or<Value> Arithmetic::integer_binary(Op op, const Value& x, const Value& y) {
  Value result;
  result.is_long = x.is_long || y.is_long;
  inherit(result, x, y);
  if (op == Op::kDiv) {
    if (x.form != Value::kConstant || y.form != Value::kConstant)
      return refused("a division of integers that are not constant");
    if (y.low == 0) return refused("an integer division by zero");
    if (y.low == -1) return negate(x);
    result.form = Value::kConstant;
    result.low = result.high = x.low / y.low;
    return result;
  }
  Range range;
  if (!combine(op, range_of(x), range_of(y), range) || !fits(range.low, range.high, result.is_long))
    return refused("an integer operation that may overflow");
  result.low = range.low;
  result.high = range.high;
  if (x.form == Value::kConstant && y.form == Value::kConstant) {
    result.form = Value::kConstant;
    return result;
  }
  if (!is_exact(range.low, range.high)) return refused("integers beyond 2^53");
  result.form = Value::kInteger;
  // 0 - y as -y + 0: see binary().
  const bool is_negation = op == Op::kSub && x.form == Value::kConstant && x.low == 0;
  result.node = is_negation ? graph_.unary(Op::kNeg, as_double(y)) : graph_.binary(op, as_double(x), as_double(y));
  // Integers have one zero: -0 + 0 is 0, and + 0 changes nothing else.
  const bool may_become_negation = op == Op::kSub && x.form != Value::kConstant && !is_open(x);
  if (op == Op::kMul || is_negation || may_become_negation)
    result.node = graph_.binary(Op::kAdd, result.node, graph_.number(0.0));
  return result;
}

Or<Value> Arithmetic::compare(Op op, const Value& x, const Value& y) {
  Value result;
  inherit(result, x, y);
  if (is_integer(x) && is_integer(y)) {
    if (x.form == Value::kConstant && y.form == Value::kConstant) {
      result.form = Value::kConstant;
      result.low = result.high = holds(op, x.low, y.low) ? 1 : 0;
      return result;
    }
    const Range a = range_of(x);
    const Range b = range_of(y);
    if (!is_exact(a.low, a.high) || !is_exact(b.low, b.high)) return refused("integers beyond 2^53");
  }
  result.form = Value::kCondition;
  result.is_constant = true;
  result.node = graph_.binary(op, as_double(x), as_double(y));
  return result;
}

Value Arithmetic::logical(Op op, const Value& x, const Value& y) {
  Value result;
  inherit(result, x, y);
  const bool decides = op == Op::kOr;  // the value of one side that decides
  for (const auto& [side, other] : {std::pair{&x, &y}, std::pair{&y, &x}}) {
    if (side->form != Value::kConstant) continue;
    if ((side->low != 0) == decides) return integer(decides ? 1 : 0, false);
    return *other;
  }
  result.form = Value::kCondition;
  result.node = graph_.binary(op, x.node, y.node);
  return result;
}

Or<Value> Arithmetic::negate(const Value& x) {
  Value result = x;
  if (!is_integer(x)) {
    result.node = graph_.unary(Op::kNeg, x.node);
    return result;
  }
  Value zero = integer(0, x.is_long);
  zero.is_stored = false;
  return integer_binary(Op::kSub, zero, x);
}

Value Arithmetic::negate_truth(const Value& truth) {
  Value result = truth;
  if (truth.form == Value::kConstant) {
    result.low = result.high = 1 - truth.low;
  } else if (graph_[truth.node].op == Op::kNot) {
    result.node = graph_[truth.node].args[0];
  } else {
    result.node = graph_.unary(Op::kNot, truth.node);
  }
  return result;
}

bool Arithmetic::implies(NodeId condition, NodeId part) const {
  constexpr std::size_t kMostParts = 16;
  std::vector<NodeId> parts{condition};
  for (std::size_t i = 0; i < parts.size() && i < kMostParts; ++i) {
    if (parts[i] == part) return true;
    if (graph_[parts[i]].op != Op::kAnd) continue;
    for (const NodeId argument : graph_.arguments(parts[i])) parts.push_back(argument);
  }
  return false;
}

Value Arithmetic::select(const Value& truth, const Value& when_true, const Value& when_false) {
  const bool is_real = !is_integer(when_true) || !is_integer(when_false);
  Value result;
  if (truth.form == Value::kConstant) {
    result = truth.low != 0 ? when_true : when_false;
    result.is_stored = result.is_constant && (result.is_stored || truth.is_stored);
    if (is_real) {
      result.node = as_double(result);
      result.form = Value::kDouble;
    }
    result.is_long = !is_real && (when_true.is_long || when_false.is_long);
    return result;
  }
  inherit(result, when_true, when_false);
  // Under a condition that is known already, the arm that it chooses.
  NodeId chosen = as_double(when_true);
  NodeId other = as_double(when_false);
  if (graph_[chosen].op == Op::kSelect && graph_[chosen].args[0] == truth.node) chosen = graph_[chosen].args[1];
  if (graph_[other].op == Op::kSelect && graph_[other].args[0] == truth.node) other = graph_[other].args[2];
  result.node = graph_.select(truth.node, chosen, other);
  if (is_real) {
    // c ? 1.0 : 2.0 is the same to compilers in the text as given; an integer that becomes a double is not.
    if (graph_.is_number(chosen) && graph_.is_number(other)) result.is_constant = result.is_stored = false;
    return result;
  }
  const Range a = range_of(when_true);
  const Range b = range_of(when_false);
  result.form = Value::kInteger;
  result.is_long = when_true.is_long || when_false.is_long;
  result.low = std::min(a.low, b.low);
  result.high = std::max(a.high, b.high);
  return result;
}

Or<Value> Arithmetic::convert(const Value& value, Type type) {
  Value result = value;
  switch (type) {
    case Type::kDouble:
      result.node = as_double(value);
      result.form = Value::kDouble;
      result.is_long = false;
      return result;
    case Type::kBool:
      return truth(value);
    case Type::kInt:
    case Type::kLong: {
      if (!is_integer(value)) return refused("a double that becomes an integer");
      const Range range = range_of(value);
      if (!fits(range.low, range.high, type == Type::kLong)) return refused("a long that may not fit an int");
      result.is_long = type == Type::kLong;
      return result;
    }
    default:
      return refused("a conversion to a type other than double, int or long");
  }
}

}  // namespace jitc::graph::c
