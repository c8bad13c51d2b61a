// Values of C expressions while they are parsed: doubles are nodes; integers keep C's types, exactly or as a range.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

#include "client/graph/folds.h"
#include "client/graph/graph.h"

namespace jitc::graph::c {

// A result, or why the expression is not understood.
template <class T>
using Or = std::expected<T, std::string_view>;
inline std::unexpected<std::string_view> refused(std::string_view reason) { return std::unexpected(reason); }

enum class Type : std::uint8_t {
  kDouble,
  kInt,
  kLong,  // 64 bits: long, long long
  kBool,
  kVoid,
  kOther,  // float, unsigned, structures ...
};

struct Value {
  enum Form : std::uint8_t {
    kDouble,     // node
    kCondition,  // an int that is 0 or 1: node is a condition
    kInteger,    // node is the double of the same value, which lies between low and high
    kConstant,   // low
  };
  Form form = kDouble;
  bool is_long = false;  // an integer's type is long rather than int
  // It depends on literals and the integers 0 and 1 of conditions alone: compilers may compute with it.
  bool is_constant = false;
  bool is_stored = false;  // ... and came through a variable: compilers may or may not see that it is constant
  NodeId node = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// C's arithmetic over a graph: usual conversions, integer division, overflow. What C leaves undefined, or what doubles
// cannot hold exactly, is refused.
class Arithmetic {
 public:
  explicit Arithmetic(Graph& graph) : graph_(graph), sights_(graph) {}

  Value real(NodeId node, bool is_constant = false) const;
  static Value integer(std::int64_t value, bool is_long);
  // An int or long of which nothing is known.
  static Value unknown(NodeId node, bool is_long);

  NodeId as_double(const Value& value);
  // The value as a condition: kCondition, or kConstant 0 or 1.
  Value truth(const Value& value);
  // + - * / and comparisons; kAnd and kOr take truths.
  Or<Value> binary(Op op, const Value& x, const Value& y);
  Or<Value> negate(const Value& x);
  Value negate_truth(const Value& truth);
  Value select(const Value& truth, const Value& when_true, const Value& when_false);
  // Whether a condition is a conjunction that the other is part of; looks at a few parts only.
  bool implies(NodeId condition, NodeId part) const;
  // As an assignment or a cast converts.
  Or<Value> convert(const Value& value, Type type);

 private:
  Or<Value> integer_binary(Op op, const Value& x, const Value& y);
  Or<void> check_zero(Op op, NodeId left, NodeId right);
  Or<Value> compare(Op op, const Value& x, const Value& y);
  bool is_open(const Value& value) const;
  Value logical(Op op, const Value& x, const Value& y);

  Graph& graph_;
  Sights sights_;
};

}  // namespace jitc::graph::c
