// Which compiler flags may be used: those whose whole effect is in their text. Everything that reads, writes or runs
// something else is refused by name, because its effect is not in the key.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::common {

// kRefused, naming the first flag that is not allowed. `-I dir` and `-Idir` are allowed inside `include_roots`.
Result<void> check_flags(std::span<const std::string> flags, std::span<const std::string> include_roots);

// Do all these flags leave IEEE arithmetic as it is, up to the contraction of a product and a sum?
bool keep_values(std::span<const std::string> flags);

// Splits a setting's value at white space; quotes and backslashes are refused (kUsage), since no flag needs them.
Result<std::vector<std::string>> split_flags(std::string_view text);

// The linear scan before any compiler sees the text.
struct SourceScan {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::uint64_t calls = 0;             // an identifier followed by an opening parenthesis
  std::uint64_t largest_function = 0;  // bytes of the largest outermost { } block
  std::uint64_t nesting = 0;           // deepest ( [ and runs of prefix operators, casts, calls, indices
  std::uint64_t blocks = 0;            // deepest {
  std::uint64_t chain = 0;             // longest run of `else if`, ? :, assignments, statements without braces
};
// Stops where the text first goes beyond a limit below; what it counted until then is given.
SourceScan scan_source(std::string_view text);
inline constexpr std::uint64_t kMaxNesting = 10'000;
inline constexpr std::uint64_t kMaxBlocks = 10'000;
inline constexpr std::uint64_t kMaxChain = 10'000;
// kInvalidSource (with line and column) for what is beyond these limits, a NUL byte or invalid UTF-8; kUsage when
// empty. Compilers go down one level of their stack for each. The scan knows no types and no macros: what comes past
// it is bounded by the compile child's stack, whose end is INVALID_SOURCE as well.
Result<SourceScan> check_source(std::string_view text);

}  // namespace jitc::common
