#include "client/graph/c_text/literal.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace jitc::graph::c {
namespace {

constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::string_view kHexadecimalDigits = "0123456789abcdefABCDEF";

bool is_hexadecimal(std::string_view text) { return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x'; }

Or<Literal> real(std::string_view text, bool hexadecimal) {
  if (hexadecimal) text.remove_prefix(2);
  Literal literal;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  const auto [at, error] = std::from_chars(begin, end, literal.real, format);
  if (error == std::errc::result_out_of_range) return refused("a literal that a double cannot hold");
  if (error != std::errc{} || at != end) return refused("a literal that is not a double's or an int's");
  return literal;
}

Or<Literal> integer(std::string_view text, int base, std::string_view digits) {
  const auto count = std::min(text.find_first_not_of(digits), text.size());
  const std::string_view suffix = text.substr(count);
  const bool is_long = suffix == "l" || suffix == "L" || suffix == "ll" || suffix == "LL";
  if (!suffix.empty() && !is_long) return refused("a literal that is not a double's or an int's");
  std::uint64_t value = 0;
  const char* const begin = text.data();
  const auto [at, error] = std::from_chars(begin, begin + count, value, base);
  if (error != std::errc{} || at != begin + count) return refused("a literal that no integer type holds");
  using Int = std::numeric_limits<std::int32_t>;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
      (base != 10 && !is_long && value > Int::max() && value <= std::numeric_limits<std::uint32_t>::max()))
    return refused("an unsigned literal");
  return Literal{true, is_long || value > Int::max(), static_cast<std::int64_t>(value), 0.0};
}

}  // namespace

Or<Literal> literal(std::string_view text) {
  if (text.size() == 1) return Literal{true, false, text[0] - '0', 0.0};
  if (is_hexadecimal(text)) {
    if (text.find_first_of(".pP") != std::string_view::npos) return real(text, true);
    return integer(text.substr(2), 16, kHexadecimalDigits);
  }
  if (text.find_first_of(".eE") != std::string_view::npos) return real(text, false);
  // A leading 0 makes an octal number.
  return text[0] == '0' ? integer(text, 8, "01234567") : integer(text, 10, kDecimalDigits);
}

}  // namespace jitc::graph::c
