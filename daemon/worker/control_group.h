// One control group, of version 1 (a directory for each controller) or 2 (one directory): made, filled, read, removed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/files.h"

namespace jitc::worker {

// Where groups are made, and what the files in them are called.
struct GroupPlace {
  int version = 0;
  std::string memory;  // directories; with version 2 the same one
  std::string pids;    // empty: without that controller
};

// Version 1 has no counter of the times that a group had nothing left to give up, which a limit that was met does not
// say: pages of files fill a group too. But it tells who asks beforehand.
class ExhaustionWatch {
 public:
  // Of a group and all around it. Counts nothing where the kernel does not take it.
  explicit ExhaustionWatch(const std::string& group);
  // Since the watch began; nothing: it cannot be known.
  std::optional<std::uint64_t> count();

 private:
  common::Fd event_;
  std::uint64_t count_ = 0;
};

class ControlGroup {
 public:
  // A new group, empty and without limits, named after this process so that others can tell when it is left behind.
  static common::Result<ControlGroup> make(const GroupPlace& place);
  // Ends the processes and removes the groups of processes of ours that are gone.
  static void remove_left_behind(const GroupPlace& place);

  common::Result<void> take_in(pid_t process);
  // Memory with swap. The peak counts from here, where the kernel can forget the one before.
  common::Result<void> limit_memory(std::uint64_t bytes);
  common::Result<void> limit_processes(std::uint32_t count);
  std::uint64_t held_bytes() const;
  // Pages of files that are held: they count, but would have been given up for more.
  std::uint64_t file_bytes() const;
  std::uint64_t peak_bytes() const;  // 0: the kernel is too old to say
  // Processes of this group that the kernel killed for want of memory, and forks that it refused: for this group's
  // limit, or for that of one around it. Kernels from 6.11 count a fork where the limit was (version 2).
  std::uint64_t memory_kills() const;
  std::uint64_t refused_processes() const;
  // The innermost group around this one that has refused forks since watch_around(), by such a kernel; empty: none.
  void watch_around();
  std::string refusing_around() const;
  // Was it this group's own limit?
  bool met_memory_limit() const;
  std::optional<std::uint64_t> peak_processes() const;  // nothing: the kernel does not count them
  // What tells of it, for people.
  std::string memory_events() const;
  // The innermost group around this one whose limit was met; empty: none that can be seen from here.
  std::string full_memory_around() const;
  std::string full_processes_around() const;

  std::vector<pid_t> processes() const;
  // One pass, without waiting: SIGKILL to all that are in it, which are returned.
  std::vector<pid_t> kill_processes();
  // False: still in use.
  bool remove();
  // Kills, waits (bounded; what hangs in the kernel stays) and removes.
  bool end();

 private:
  explicit ControlGroup(const GroupPlace& place, std::string name);
  std::vector<std::string> directories() const;

  // How many forks a group had refused.
  struct Refused {
    std::string group;
    std::uint64_t forks;
  };

  int version_;
  std::string memory_, pids_;
  std::vector<Refused> around_;  // innermost first
};

// One write, as the kernel wants it. The error names the file.
common::Result<void> write_control(const std::string& path, std::string_view text);

}  // namespace jitc::worker
