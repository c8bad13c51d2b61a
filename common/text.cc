#include "common/text.h"

#include <array>
#include <charconv>
#include <ranges>

namespace jitc::common {

std::string mebibytes(std::uint64_t bytes) {
  const std::uint64_t whole = bytes >> 20;
  const std::uint64_t rest = bytes & ((std::uint64_t{1} << 20) - 1);
  return std::to_string(whole + (rest >> 19)) + " MiB";
}

std::string utc_text(std::time_t seconds) {
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

std::optional<std::uint64_t> field_number(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    const std::string_view digits = line.substr(name.size() + 1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc{}) return value;
  }
  return std::nullopt;
}

}  // namespace jitc::common
