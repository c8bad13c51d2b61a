// What a collective call fails with: the error, the ranks it happened on, and whether the communicator survived it.
#pragma once

#include <cstddef>
#include <expected>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"

namespace jitc::gate {

struct Failure {
  common::Error error;
  std::vector<int> ranks;  // ascending; empty: not of particular ranks
  bool is_broken = false;  // operations may be pending for ever: nothing more can be done with this communicator
};

template <class T>
using Outcome = std::expected<T, Failure>;

// The reasons of the failing ranks, in the order of `ranks`; for a crowd only the first few are known.
using Reasons = std::vector<common::Error>;

// One failure out of several ranks' errors: the first one's kind, thing and diagnostics, with the ranks and differing
// further reasons in the message. `size` is the number of ranks of the communicator.
Failure join_errors(std::vector<int> ranks, const Reasons& reasons, int size);

// What went wrong with some of the modules of a call, by name.
using ModuleErrors = std::vector<std::pair<std::string, common::Error>>;

// One failure out of several modules' errors: the first one's, with the modules' names and further reasons in the
// message. `asked` is the number of modules of the call; with one it is that one's error as it is.
Failure join_modules(const ModuleErrors& errors, std::size_t asked);

// "rank 3", "ranks 1, 2, 5 and 40 more", "all ranks".
std::string name_ranks(const std::vector<int>& ranks, int size);

// Does what is good to have, so far as there is memory for it. True: all of it.
template <class What>
bool with_memory(const What& what) {
  try {
    what();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// To have this error needs no memory.
common::Error out_of_memory() noexcept;

// The error without more text than may travel to all ranks.
common::Error bounded(common::Error error);

}  // namespace jitc::gate
