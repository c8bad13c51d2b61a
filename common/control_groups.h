// Where this process stands in the hierarchies of control groups. Pure text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jitc::common {

// Directories of the control group and of those around it, innermost first, from the texts of /proc/self/cgroup and
// /proc/self/mountinfo. The controller of version 1, or empty for version 2. Empty: no such hierarchy is mounted.
std::vector<std::string> cgroup_directories(std::string_view cgroup, std::string_view mountinfo,
                                            std::string_view controller);

}  // namespace jitc::common
