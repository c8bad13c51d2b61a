// The files that a compiler consists of: its driver, the programs that this runs, their shared libraries.
#pragma once

#include <sys/stat.h>

#include <span>
#include <string>
#include <vector>

#include "common/digest.h"

namespace jitc::service {

inline constexpr const char* kCompilersPath = "/usr/local/bin:/usr/bin:/bin";  // as the worker sets it

// A name with a slash is itself; others are looked for in these directories (':' between). Empty: no such program.
std::string find_program(const std::string& name, const std::string& directories);

std::string without_blanks_around(std::string text);

// `driver` is how it is called: its path, after `env` and an environment where it gets one of its own. It says which
// programs and files `helpers` and `parts` name for it; names without a folder are found in `directories`. Asks the
// driver and the dynamic loader: a dozen short processes.
std::vector<std::string> files_of_compiler(const std::vector<std::string>& driver, const std::string& directories,
                                           std::span<const char* const> helpers, std::span<const char* const> parts);

// Size and time of change of a file: equal between two readings unless somebody takes pains. `inode`: also what only
// this node knows.
void add_stat(common::Hasher& hasher, const std::string& name, const struct stat& status, bool inode);
// The contents; false when there is a file that cannot be read although this user may.
bool add_content(common::Hasher& hasher, const std::string& name, const std::string& path);

}  // namespace jitc::service
