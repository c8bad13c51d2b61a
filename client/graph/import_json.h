// The problem format "jitc-corpus-problem-1": a flat table of expression nodes with the fields and functions that use
// it; specified in docs/problem_format.md.
//
// n-ary sums and products fold left; a - b and a / b come from add(a, mul(-1, b)) and mul(a, pow(b, -1)): a product
// with negative powers is the product of the numerators over the product of the denominators. Integer powers become
// products.
#pragma once

#include <string_view>

#include "client/graph/problem.h"
#include "common/error.h"

namespace jitc::graph {

// Fails (kInvalidSource) naming the node or function: malformed text, forward references, duplicate ids, unknown
// operators, wrong numbers of arguments, indices outside the fields.
common::Result<Problem> import_json(std::string_view text);

}  // namespace jitc::graph
