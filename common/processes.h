// What the kernel tells of processes.
#pragma once

#include <sys/types.h>

#include <vector>

namespace jitc::common {

// The children of every thread of the process, dead ones that nobody has reaped included. Those that come or go
// meanwhile may be missing.
std::vector<pid_t> children_of(pid_t pid);

}  // namespace jitc::common
