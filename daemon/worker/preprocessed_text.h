// Looks at what an external compiler's own preprocessor read and wrote, token by token. This does not depend on how
// much of the text Clang can parse: what reaches an assembler or another file is found whatever stands around it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::worker {

// The name that stands for __TIME__ and its like in the text, so that their use can be told from the text.
std::string stand_in_for(std::string_view macro);
std::span<const std::string_view> clock_macros();

// Before preprocessing, for the source and each header of the request. kRefused for directives that would make the
// markers below say something else than what was read (#line), or that read without leaving a marker (#embed,
// __has_include).
common::Result<void> check_before_preprocessing(const std::string& text, std::string_view name);

// After preprocessing; this process must be in the directory of the source. kRefused for a file outside of the
// `directories` and of the source's own; for a header of the system that the embedded compiler does not have either;
// for assembler; for strings that the compiler would hand to the assembler as they are; for a raised instruction set,
// the clock, and directives that are not known to be harmless.
common::Result<void> check_preprocessed(const std::string& text, std::span<const std::string> directories,
                                        std::span<const std::string> roots);

// What `CC -v -E` lists between its two well-known lines, which come before the first line of the source is read.
std::vector<std::string> include_directories_in(std::string_view log);
// Does it, by its lines before the first one of the source is read, come from a compiler whose front end is Clang's?
bool is_of_clang(std::string_view log);
// The log without what -v adds around the diagnostics.
std::string without_verbose_lines(std::string_view log);

}  // namespace jitc::worker
