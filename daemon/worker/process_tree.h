// A process and all that descend from it, whatever group or session they moved to: sizes and ends them. The roots are
// subreapers, so that an orphan of the tree stays in it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/files.h"

namespace jitc::worker {

struct Memory {
  std::uint64_t resident = 0;   // bytes in RAM
  std::uint64_t anonymous = 0;  // of these: neither of a file nor shared memory
  std::uint64_t data = 0;       // private writable bytes of address space, as RLIMIT_DATA counts them
};
Memory memory_of(pid_t pid);  // zeros: no such process

// Living descendants, without the root; zombies are left out.
std::vector<pid_t> descendants(pid_t root);
// What a tree holds and has used, as one look at it shows.
struct TreeUse {
  std::uint64_t resident_bytes = 0;  // the sum: what processes share counts for each of them
  std::uint64_t anonymous_bytes = 0;
  std::size_t processes = 0;
  // CPU time. Not monotonic: what a process used goes to its parent when it is reaped. Two equal values mean that
  // nothing ran in between (to the kernel's clock tick).
  double cpu_seconds = 0;
};
TreeUse use_of_tree(pid_t root);

// Sends the signal to the process that had this id and for which `is_it` held then: ids are given to others, what holds
// the process (a pidfd) is not.
void signal_if(pid_t pid, int signal, const std::function<bool()>& is_it);

// What kills does not wait: a process may hang in the kernel for as long as it likes.
// One pass: SIGKILL to every living descendant, which are returned; the last is gone when a pass finds none. The root
// must be this process or be stopped, lest it make new ones meanwhile.
std::vector<pid_t> kill_descendants(pid_t root);
// Readable when the process ends; empty: it is gone.
common::Fd end_of(pid_t pid);
// Waits until they have ended, not longer than `patience` altogether.
void await_ends(const std::vector<pid_t>& processes, std::chrono::milliseconds patience);
// Passes until no descendant is left (bounded), with waits.
void end_descendants(pid_t root);

}  // namespace jitc::worker
