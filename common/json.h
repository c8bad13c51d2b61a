// JSON texts of files and of others.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace jitc::common {

// No format of ours nests deeper than a few levels. Copies and dumps of a value recurse into it: what is nested without
// end would run out of stack.
inline constexpr int kDeepestJson = 64;

// Discarded (is_discarded(), and no object or other value): no JSON, or nested deeper than kDeepestJson.
nlohmann::json parse_json(std::string_view text);

}  // namespace jitc::common
