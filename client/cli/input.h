// Texts that the command reads.
#pragma once

#include <cstddef>
#include <string>

#include "client/cli/context.h"

namespace jitc::cli {

// The file's bytes; "-" is standard input. kUsage, kCancelled, kTimedOut.
common::Result<std::string> read_input(const std::string& file, const Deadline& deadline);

// What the descriptor has next, waited for until the deadline or an interrupt; 0 at its end. `name` is for errors:
// kUsage, kCancelled, kTimedOut.
common::Result<std::size_t> read_some(int descriptor, char* buffer, std::size_t most, const std::string& name,
                                      const Deadline& deadline);

}  // namespace jitc::cli
