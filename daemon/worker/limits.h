// What a compile child may take, and how it says that it could not go on: by exit codes of our own, so that nothing is
// guessed from what a crash looks like.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace jitc::worker {

inline constexpr int kExitRefusedMemory = 96;  // an allocation failed, and our limit is not why
inline constexpr int kExitOutOfMemory = 97;    // an allocation failed under our limit
inline constexpr int kExitFatalError = 98;     // LLVM gave up; its reason is in the child's log
inline constexpr int kExitDeepSource = 99;     // the stack is used up to its limit: the source recurses too deeply

// RLIMIT_CPU ends a single process at its limit; what it does about that, and the sum of a tree's processes, have so
// many seconds more.
inline constexpr std::uint32_t kCpuGrace = 2;

// The stack that a compile may use: deep expressions recurse deeply.
inline constexpr std::uint64_t kStackBytes = std::uint64_t{1} << 30;
// What a level of nesting takes of it, measured with an ample reserve.
inline constexpr std::uint64_t kStackPerLevel = 16 << 10;
// What this process may use.
std::uint64_t stack_bytes();
// Raises the soft limit of this process's next program to kStackBytes, or to the hard limit. True: it was raised.
bool raise_stack_limit();

// A terminal or a batch system sends signals to a whole tree of processes (SIGTERM at a job's end, SIGUSR1 before it).
// What they are about is the daemon's to say: a worker that they ended could not put its things away.
void leave_signals_to_daemon();

// For a forked child, before anything else: dies with `parent`, own session, no signal handlers, no core dumps, polite
// to the solver (nice, first victim of the kernel's out-of-memory killer). Exits when the parent is gone already.
void become_child(pid_t parent);

// Limits this process to `memory_bytes` of resident memory (what it has counts) and `cpu_seconds` from now on; 0: none.
void limit_compile(std::uint64_t memory_bytes, std::uint32_t cpu_seconds);
// Of limit_compile's memory limit and of RLIMIT_AS, is it the former that leaves this process less, and so the one that
// refuses it memory? Allocates nothing.
bool is_own_limit_nearer();
// Allocation failures and fatal errors of LLVM end this process with the exit codes above, a text on standard error.
void install_failure_handlers();

// For the child of a vfork, just before it becomes an external compiler: only system calls. The limits hold for each
// process of its tree.
void limit_external(std::uint64_t memory_bytes, std::uint32_t cpu_seconds) noexcept;

// What a process may map (ulimit -v), whoever set it; nothing: as much as it likes.
std::optional<std::uint64_t> address_space_limit();

// CPU time of this process, or of its ended descendants; seconds.
double cpu_seconds_of_self();
double cpu_seconds_of_children();
std::uint64_t peak_bytes_of_self();
std::uint64_t peak_bytes_of_children();

}  // namespace jitc::worker
