// A process and all that descend from it, whatever group or session they moved to: sizes and ends them. The roots are
// subreapers, so that an orphan of the tree stays in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace jitc::worker {

struct Memory {
  std::uint64_t resident = 0;  // bytes in RAM
  std::uint64_t data = 0;      // private writable bytes of address space, as RLIMIT_DATA counts them
};
Memory memory_of(pid_t pid);  // zeros: no such process

std::vector<pid_t> children_of(pid_t pid);
// Living descendants, without the root; zombies are left out.
std::vector<pid_t> descendants(pid_t root);
// Resident bytes of the whole tree.
std::uint64_t tree_bytes(pid_t root);

// CPU time that the tree used; seconds. Not monotonic: what a process used goes to its parent when it is reaped. Two
// equal values mean that nothing ran in between (to the kernel's clock tick).
double tree_cpu_seconds(pid_t root);

// SIGKILL to every descendant until none is left (bounded). The root must be this process or be stopped, lest it make
// new ones meanwhile.
void end_descendants(pid_t root);
// Stops the root, ends its descendants, then the root itself; the caller reaps it.
void end_tree(pid_t root);

}  // namespace jitc::worker
