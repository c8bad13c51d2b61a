// Texts that the command reads.
#pragma once

#include <string>

#include "client/cli/context.h"

namespace jitc::cli {

// The file's bytes; "-" is standard input. kUsage, kCancelled, kTimedOut.
common::Result<std::string> read_input(const std::string& file, const Deadline& deadline);

}  // namespace jitc::cli
