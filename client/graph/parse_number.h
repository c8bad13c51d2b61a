// Numbers as the problem format writes them: exact, whatever the locale.
#pragma once

#include <optional>
#include <string_view>

namespace jitc::graph {

// The nearest double of "3", "-1/3" (numerator and denominator rounded first), "0.25" or "-0x1.8p+1". Nothing for what
// is none of these, or is too large or too small for a double.
std::optional<double> parse_number(std::string_view text);

}  // namespace jitc::graph
