// Programs on disk, and the words that they are started with.
#pragma once

#include <string>
#include <vector>

namespace jitc::common {

// A regular file, perhaps behind links, that this user may run.
bool is_program(const std::string& path);
// By its first bytes: no script. False for what cannot be read.
bool is_elf(const std::string& path);

// As exec and posix_spawn take arguments and environments: with a null pointer at the end. Valid as long as `words` are
// neither changed nor moved.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace jitc::common
