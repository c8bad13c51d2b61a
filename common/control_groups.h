// What the files of control groups say, and where this process stands in their hierarchies. Pure text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitc::common {

// Directories of the control group and of those around it, innermost first, from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. The controller of version 1, or empty for version 2. Empty: no such hierarchy is mounted.
std::vector<std::string> cgroup_directories(std::string_view cgroup, std::string_view mountinfo,
                                            std::string_view controller);

// Is the word in the list? Words are separated by `separator`; a line's end is no part of one.
bool lists(std::string_view text, std::string_view word, char separator);

}  // namespace jitc::common
