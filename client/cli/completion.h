// Completion in shells, from the command line that the parser knows. Pure.
#pragma once

#include <string>

#include "common/command_tree.h"

namespace jitc::cli {

// A script for bash to source, or for its directory of completions.
std::string bash_completion(const common::CommandHelp& program);
// The file _PROGRAM for a directory of zsh's fpath.
std::string zsh_completion(const common::CommandHelp& program);

}  // namespace jitc::cli
