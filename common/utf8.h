// UTF-8: what is valid, and what to make of what is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitc::common {

// Length of the valid UTF-8 sequence at `at`, 0 when there is none (overlong forms and surrogates are not valid).
std::size_t utf8_length(std::string_view text, std::size_t at);

bool is_utf8(std::string_view text);

// The text with '?' for each byte that belongs to no valid sequence.
std::string valid_utf8(std::string_view text);

}  // namespace jitc::common
