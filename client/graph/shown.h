// Words of a text for errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitc::graph {

// The text, or its beginning when it is long: hostile ones are. No character of UTF-8 is cut in two.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;  // bytes
  if (text.size() <= kMost) return std::string(text);
  const auto goes_on = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U; };
  std::size_t end = kMost;
  while (end > kMost - 3 && goes_on(end)) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace jitc::graph
