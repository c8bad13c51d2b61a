// Text for a terminal: what is not ours is made harmless, what is too long is cut. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jitc::cli {

// Where a text is shown. 0: no limit.
struct Screen {
  std::size_t columns = 0, rows = 0;
  bool utf8 = false;
  bool colours = false;  // and other attributes
};

// '?' for control characters, those that turn the writing's direction or take no room, and what is not UTF-8 (with
// `utf8` false: not ASCII). No escape sequence gets through.
std::string printable(std::string_view text, bool utf8);

// The same of a text that has lines and tabs.
std::string printable_lines(std::string_view text, bool utf8);

// Columns that a printable text takes.
std::size_t columns_of(std::string_view text);

// A printable text in exactly so many columns: cut (its end or its front, and marked so) or filled with blanks.
enum class Cut { kEnd, kFront };
std::string fitted(std::string_view text, std::size_t columns, bool utf8, Cut cut = Cut::kEnd);

// Printable lines, each cut to the screen's columns, no more than its rows.
std::string clipped(std::string_view lines, const Screen& screen);

// "[######==....]" in so many columns: the part that is used, what is reserved beyond it, the rest. Of 1.
std::string bar(std::size_t columns, double used, double reserved, bool utf8);

}  // namespace jitc::cli
