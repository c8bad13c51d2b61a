// Bounds what all processes of one compile take together: their memory, and how many they are. The kernel does it where
// this process may make control groups; elsewhere it is found by sampling. Which of the two is tried out once, at
// start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/worker/process_tree.h"

namespace jitc::worker {

// Compilers that start this many at once do something else than to compile one source.
inline constexpr std::uint32_t kMostProcesses = 256;
// Room for a tree whose limit is below what it has already: it must be able to say so.
inline constexpr std::uint64_t kLeastGrowth = 8 << 20;

// A limit that was met, and what proves it.
struct Breach {
  enum class Of { kMemory, kProcesses };
  Of of;
  std::string evidence;
  // Not the tree's own limit: that of a group around it (`around`, which is empty when it cannot be seen from here), or
  // what the node has. The kernel ended or refused a process of this tree all the same.
  bool outside = false;
  std::string around;
};

// The bounds of one tree. Their end is the end of every process that is still within them.
class TreeBounds {
 public:
  virtual ~TreeBounds() = default;
  // The tree may hold so many bytes from now on, with those that it holds as `use` shows it; 0: no limit.
  virtual void limit_memory(std::uint64_t bytes, const TreeUse& use) = 0;
  // Does the kernel see to the memory limit? If not, each process needs one of its own as well (RLIMIT_DATA).
  virtual bool kept_by_kernel() const = 0;
  virtual std::optional<Breach> breach(const TreeUse& use) const = 0;
  // The most that the tree held since its limit was set, beyond what samples show; 0: not known. Asked when its
  // processes have ended: pages of files that are still held then were in nobody's way, and are left out.
  virtual std::uint64_t peak_bytes() const = 0;
  // SIGKILL to every process of the tree, wherever it has moved to; does not wait for their ends.
  virtual void kill_processes() = 0;
};

class Enforcement {
 public:
  virtual ~Enforcement() = default;
  // "control groups v1 below /sys/fs/cgroup/memory/job"; "sampling: ..." with the reason.
  virtual std::string description() const = 0;
  // For a child that was just forked; never null.
  virtual std::unique_ptr<TreeBounds> bounds_of(pid_t child) = 0;
  // Removes what was still in use when its tree ended. True: nothing is left.
  virtual bool tidy() = 0;
};
// Call while this process has no children. `groups_allowed`: else by sampling, whatever is possible.
std::unique_ptr<Enforcement> choose_enforcement(bool groups_allowed);

}  // namespace jitc::worker
