#include "client/graph/slope.h"

#include <numbers>

#include "client/graph/builder.h"

namespace jitc::graph {

NodeId slope(Graph& graph, Op op, NodeId value, NodeId x) {
  Builder b(graph);
  constexpr double kErfScale = 2.0 * std::numbers::inv_sqrtpi;
  switch (op) {
    case Op::kNeg:
      return b.number(-1.0);
    case Op::kSqrt:
      return b.quotient(b.number(0.5), value);
    case Op::kCbrt:
      return b.inverse(b.product(b.number(3.0), b.square(value)));
    case Op::kExp:
      return value;
    case Op::kExpm1:
      return b.one_plus(value);
    case Op::kLog:
      return b.inverse(x);
    case Op::kLog1p:
      return b.inverse(b.one_plus(x));
    case Op::kLog2:
      return b.inverse(b.product(x, b.number(std::numbers::ln2)));
    case Op::kLog10:
      return b.inverse(b.product(x, b.number(std::numbers::ln10)));
    case Op::kSin:
      return b.of(Op::kCos, x);
    case Op::kCos:
      return b.neg(b.of(Op::kSin, x));
    case Op::kTan:
      return b.one_plus(b.square(value));
    case Op::kAsin:
      return b.inverse(b.root(b.one_minus_square(x)));
    case Op::kAcos:
      return b.neg(b.inverse(b.root(b.one_minus_square(x))));
    case Op::kAtan:
      return b.inverse(b.one_plus(b.square(x)));
    case Op::kSinh:
      return b.of(Op::kCosh, x);
    case Op::kCosh:
      return b.of(Op::kSinh, x);
    case Op::kTanh:
      return b.difference(b.number(1.0), b.square(value));
    case Op::kAsinh:
      return b.inverse(b.root(b.one_plus(b.square(x))));
    case Op::kAcosh:
      return b.inverse(b.root(b.product(b.difference(x, b.number(1.0)), b.one_plus(x))));
    case Op::kAtanh:
      return b.inverse(b.one_minus_square(x));
    case Op::kErf:
      return b.product(b.number(kErfScale), b.of(Op::kExp, b.neg(b.square(x))));
    case Op::kErfc:
      return b.product(b.number(-kErfScale), b.of(Op::kExp, b.neg(b.square(x))));
    default:  // a name
      return b.number(1.0);
  }
}

NodeId slope_of_power(Graph& graph, NodeId value, NodeId base, NodeId exponent) {
  Builder b(graph);
  if (!graph.is_number(exponent)) {
    return b.product(exponent, b.power(base, b.difference(exponent, b.number(1.0))));
  }
  const double power = graph.number_of(exponent);
  if (power == 1.0) return b.number(1.0);
  if (power == 2.0) return b.sum(base, base);
  if (power == 3.0) return b.product(exponent, b.square(base));
  if (power == 1.5) return b.product(exponent, b.root(base));
  // A quotient costs less than a power and, of a negative exponent, is infinite or zero where the power is.
  if (power < 0.0) return b.product(exponent, b.quotient(value, base));
  return b.product(exponent, b.power(base, b.number(power - 1.0)));
}

}  // namespace jitc::graph
