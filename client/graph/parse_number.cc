#include "client/graph/parse_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace jitc::graph {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<double> parse_double(std::string_view text, std::chars_format format) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || !(text[0] >= '0' && text[0] <= '9')) return std::nullopt;
  std::optional<double> value;
  if (text.starts_with("0x")) {
    if (text.size() > 2 && text[2] != '-') value = parse_double(text.substr(2), std::chars_format::hex);
  } else if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    const auto above = text.substr(0, slash);
    const auto below = text.substr(slash + 1);
    if (!is_digits(above) || !is_digits(below)) return std::nullopt;
    const auto numerator = parse_double(above, std::chars_format::fixed);
    const auto denominator = parse_double(below, std::chars_format::fixed);
    if (numerator && denominator && *denominator != 0.0) value = *numerator / *denominator;
  } else {
    value = parse_double(text, std::chars_format::general);
  }
  return value && is_negative ? -*value : value;
}

}  // namespace jitc::graph
