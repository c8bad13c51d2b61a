// Manual pages in roff (macros of man(7)), from what the programs know of themselves: a command line, and the table of
// settings.
#pragma once

#include <string>

#include "common/command_tree.h"

namespace jitc::common {

// Of a program. `summary` is the one line that man -k shows; `see` names other pages: "jitcd(8)".
std::string command_manual(const CommandHelp& program, int section, const std::string& summary,
                           const std::vector<std::string>& see);

// jitc.toml(5): the files, and each setting.
std::string settings_manual();

}  // namespace jitc::common
