// What can be said about a compile's memory without a compiler: the counts of common::scan_source, and the flags.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace jitc::schedule {

struct Features {
  std::string compiler = "clang";
  int optimisation = 3;                // of -O
  bool math_errno = true;              // may calls of math.h set errno?
  std::uint64_t bytes = 0;             // of the text
  std::uint64_t calls = 0;             // a name and a bracket
  std::uint64_t largest_function = 0;  // bytes between its outermost braces
  std::uint64_t nesting = 0;           // of brackets of any kind
};

// What a compile took.
struct Experience {
  Features features;
  std::uint64_t peak_bytes = 0;
};

// The level of the last -O flag: 0 to 3; without one a compiler does not optimise.
int optimisation_of(std::span<const std::string> flags);
// May functions of math.h set errno with these flags? They may unless a flag says otherwise.
bool math_errno_of(std::span<const std::string> flags);

}  // namespace jitc::schedule
