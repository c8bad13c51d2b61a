// Names that can stand in C text.
#pragma once

#include <string_view>

#include "common/error.h"

namespace jitc::graph {

// Longer ones are refused: compilers and linkers have limits of their own.
inline constexpr std::size_t kLongestName = 255;

// An identifier that is no keyword of C (to C23) and no macro or type of math.h (kInvalidSource).
common::Result<void> check_identifier(std::string_view name);

// A name for a function that the text defines: not one that C reserves, math.h declares or the printed text defines.
common::Result<void> check_function_name(std::string_view name);

}  // namespace jitc::graph
