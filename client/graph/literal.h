// Numbers as C literals of type double: the shortest decimal that reads back to the same bits.
#pragma once

#include <string>

namespace jitc::graph {

// "2.0", "1e-18", "-0.5". Infinities and NaN have no literal: "1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0".
void append_literal(std::string& text, double value);

}  // namespace jitc::graph
