// Texts for people and small texts of the kernel.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::common {

// "123 MiB", to the nearest.
std::string mebibytes(std::uint64_t bytes);
// "2026-11-30T17:05:09Z".
std::string utc_text(std::time_t seconds);
// The parts between separators, empty ones too; none of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
// The number of a line "name 123" (memory.stat, pids.events).
std::optional<std::uint64_t> field_number(std::string_view text, std::string_view name);

}  // namespace jitc::common
