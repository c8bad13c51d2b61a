#include "client/cli/terminal_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "common/utf8.h"

namespace jitc::cli {
namespace {

struct Range {
  std::uint32_t first, last;
};
constexpr auto kHidden = std::to_array<Range>({{0x00, 0x1f},  // C0
                                               {0x7f, 0x9f},  // DEL, C1
                                               {0xad, 0xad},
                                               {0x300, 0x36f},  // combining marks
                                               {0x200b, 0x200f},
                                               {0x2028, 0x202e},  // line separators, directions
                                               {0x2060, 0x206f},
                                               {0xfe00, 0xfe0f},
                                               {0xfeff, 0xfeff},
                                               {0xfff9, 0xfffb},
                                               {0xe0000, 0x10ffff}});  // tags, private use
constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115f},
                                             {0x2e80, 0xa4cf},
                                             {0xac00, 0xd7a3},
                                             {0xf900, 0xfaff},
                                             {0xfe30, 0xfe6f},
                                             {0xff00, 0xff60},
                                             {0xffe0, 0xffe6},
                                             {0x1f300, 0x1faff},
                                             {0x20000, 0x3fffd}});

template <class Ranges>
bool in(const Ranges& ranges, std::uint32_t character) {
  return std::ranges::any_of(ranges, [&](const Range& r) { return character >= r.first && character <= r.last; });
}

// Of a valid sequence.
std::uint32_t character_at(std::string_view text, std::size_t at, std::size_t length) {
  const auto first = static_cast<unsigned char>(text[at]);
  std::uint32_t value = length == 1 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  return value;
}

// Calls `take(sequence, character)` for each character of a text; an invalid byte is '?'.
template <class Take>
void each_character(std::string_view text, Take take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = common::utf8_length(text, at);
    if (length == 0) {
      take(std::string_view("?"), std::uint32_t{'?'});
      ++at;
      continue;
    }
    take(text.substr(at, length), character_at(text, at, length));
    at += length;
  }
}

std::size_t columns_of(std::uint32_t character) { return in(kWide, character) ? 2 : 1; }

}  // namespace

std::string printable(std::string_view text, bool utf8) {
  std::string out;
  each_character(text, [&](std::string_view sequence, std::uint32_t character) {
    out += in(kHidden, character) || (!utf8 && character >= 0x80) ? "?" : sequence;
  });
  return out;
}

std::string printable_lines(std::string_view text, bool utf8) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, end), utf8);
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  each_character(text, [&](std::string_view, std::uint32_t character) { columns += columns_of(character); });
  return columns;
}

std::string fitted(std::string_view text, std::size_t columns, bool utf8, Cut cut) {
  const std::size_t full = columns_of(text);
  if (full <= columns) return std::string(text) + std::string(columns - full, ' ');
  if (columns == 0) return {};
  const std::string mark = utf8 ? "…" : "~";
  // What is kept is where the other end is not reached.
  std::string kept;
  std::size_t seen = 0, width = 0;
  each_character(text, [&](std::string_view sequence, std::uint32_t character) {
    const std::size_t wide = columns_of(character);
    const bool keep = cut == Cut::kEnd ? seen + wide <= columns - 1 : full - seen <= columns - 1;
    seen += wide;
    if (!keep) return;
    kept += sequence;
    width += wide;
  });
  const std::string blanks(columns - 1 - width, ' ');
  return cut == Cut::kEnd ? kept + mark + blanks : mark + kept + blanks;
}

std::string clipped(std::string_view lines, const Screen& screen) {
  std::string out;
  for (std::size_t row = 0; !lines.empty() && (screen.rows == 0 || row < screen.rows); ++row) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    const bool fits = screen.columns == 0 || columns_of(line) <= screen.columns;
    out += fits ? std::string(line) : fitted(line, screen.columns, screen.utf8);
    out += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

std::string bar(std::size_t columns, double used, double reserved, bool utf8) {
  if (columns < 3) return {};
  const double room = static_cast<double>(columns - 2);
  const auto cells = [&](double part) { return std::lround(std::clamp(part, 0.0, 1.0) * room); };
  const long full = cells(used), half = std::max(cells(reserved), full);
  std::string text = "[";
  for (long i = 0; i < static_cast<long>(room); ++i) {
    if (utf8) {
      text += i < full ? "█" : i < half ? "▒" : "·";
    } else {
      text += i < full ? "#" : i < half ? "=" : ".";
    }
  }
  return text + "]";
}

}  // namespace jitc::cli
