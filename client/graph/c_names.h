// Names that can stand in C text.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/error.h"

namespace jitc::graph {

// Longer ones are refused: compilers and linkers have limits of their own.
inline constexpr std::size_t kLongestName = 255;

// An identifier that is no keyword of C (to C23) and no macro or type of math.h (kInvalidSource).
common::Result<void> check_identifier(std::string_view name);

// A name for a function that the text defines: not one that C reserves, that its library has or that the printed text
// uses.
common::Result<void> check_function_name(std::string_view name);

// A name for a function of `arity` doubles that the text calls and others define. math.h's own are allowed where they
// are such functions.
common::Result<void> check_called_name(std::string_view name, std::uint32_t arity);

// "t12"
bool is_temporary(std::string_view name);

}  // namespace jitc::graph
