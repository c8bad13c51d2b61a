#include "client/graph/literal.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace jitc::graph {

void append_literal(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "0.0 / 0.0";
    return;
  }
  if (std::isinf(value)) {
    text += value < 0.0 ? "-1.0 / 0.0" : "1.0 / 0.0";
    return;
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view shortest(digits.data(), end);
  text += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) text += ".0";  // a double, not an int
}

}  // namespace jitc::graph
