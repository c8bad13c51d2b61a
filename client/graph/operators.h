// The operators of the problem format by name, as every front end but C text builds them: n-ary sums and products,
// quotients, powers. Arguments are checked; what is built is as follows.
//
//   add(a, b, ...)  folds left; a term that is -b, or a negative number, is subtracted
//   mul(a, b, ...)  folds left; factors 1/b become the product of the numerators over the product of the denominators,
//                   and the sign of a negative number in front is taken before the whole
//   pow(x, n)       for an integer n of at most kLargestProduct in size a product, by repeated squaring; negative n
//                   give 1 / product; n = 1/2 and -1/2 give sqrt(x) and 1 / sqrt(x); all others are pow
//   times(a, b)     a * b as it stands, power(x, y) the C library's pow as it stands: for front ends that follow the
//                   text of a printer
//
// The rest stands for itself: sub div neg; the functions of math.h that name_of() lists; max min (two or more);
// heaviside(x, mid); lt le gt ge eq ne; and or (two or more) not; select(condition, a, b); and without arguments
// pi e true false.
#pragma once

#include <span>
#include <string_view>

#include "client/graph/graph.h"
#include "common/error.h"

namespace jitc::graph {

inline constexpr int kLargestProduct = 32;

// Fails (kUsage) on an unknown operator, a wrong number of arguments, an id that is no node of the graph, and on a
// condition where a value is needed or the other way round.
common::Result<NodeId> apply(Graph& graph, std::string_view op, std::span<const NodeId> arguments);

struct Piece {
  NodeId condition;
  NodeId value;
};

// The value of the first piece whose condition is true. The last condition must be `true`, else kUsage.
common::Result<NodeId> piecewise(Graph& graph, std::span<const Piece> pieces);

// Whether the operator's argument number `index`, from 0, is a condition.
bool takes_condition(Op op, std::size_t index);

}  // namespace jitc::graph
