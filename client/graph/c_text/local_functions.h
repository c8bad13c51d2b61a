// Static functions of a text that nothing calls: sharing puts small ones in place of their calls, and compilers that
// are told to be strict refuse what is left of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::graph::c {

struct Place {
  std::size_t begin = 0, end = 0;  // in a text
};

struct LocalFunction {
  std::string_view name;
  std::vector<Place> places;  // of its declarations and its definition
};

// Which of them the text can do without: their names stand nowhere but in their own places and in those of others that
// it can do without. Words of directives and strings count, since they may become calls; where words may be put
// together from pieces, all functions are needed.
std::vector<bool> find_unused(std::string_view text, std::span<const LocalFunction> functions);

// The text without what stands there.
std::string without(std::string_view text, std::vector<Place> places);

}  // namespace jitc::graph::c
