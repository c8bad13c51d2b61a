// Numeric literals with the types that C gives them.
#pragma once

#include "client/graph/c_text/value.h"

namespace jitc::graph::c {

struct Literal {
  bool is_integer = false;
  bool is_long = false;
  std::int64_t integer = 0;
  double real = 0.0;
};

// Of a preprocessing number. Refused: float, long double and unsigned literals, and what a double cannot hold.
Or<Literal> literal(std::string_view text);

}  // namespace jitc::graph::c
