// Bracketed texts that were read before, and what they stand for: printed trees repeat theirs many times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "client/graph/c_text/value.h"

namespace jitc::graph::c {

// What stands before the opening bracket: a function, or nothing.
using Opening = std::uint64_t;

class Memo {
 public:
  // The value of the bracket that begins `rest`, behind its opening; `size` becomes that of its text with the closing
  // one. Null when it is not known. `state` counts what may change values: only those of the same state are found.
  const Value* find(Opening opening, std::string_view rest, std::size_t state, std::size_t& size);
  // `rest` must outlive the memo; `size` of it are the bracket's, with the closing one.
  void keep(Opening opening, std::string_view rest, std::size_t size, std::size_t state, const Value& value);

 private:
  static constexpr std::size_t kLeast = 16;  // bytes: shorter ones are read as fast
  static constexpr std::size_t kHead = 64;   // bytes that choose the row
  static constexpr std::size_t kWays = 4;    // of one row, the oldest is replaced
  static constexpr std::size_t kFirstRows = 16;
  static constexpr std::size_t kMostRows = 1024;
  struct Known {
    Opening opening = 0;
    std::string_view text;
    std::size_t state = 0;
    Value value;
  };
  struct Row {
    std::array<Known, kWays> known;
    std::size_t next = 0;
  };
  Row& row(Opening opening, std::string_view rest);

  std::vector<Row> rows_;  // grows with what is kept: most functions keep little
  std::size_t kept_ = 0;
  std::size_t found_ = 0;     // bytes
  std::size_t compared_ = 0;  // bytes in vain: limited, so that time stays linear
};

}  // namespace jitc::graph::c
