// Starts jitcd as a process: what the command and a rank have in common when they start a daemon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"

namespace jitc::rpc {

// jitcd's first process, which ends when its daemon serves, or with the reason why it does not. A child of this
// process: whoever started it calls exit_code().
struct FirstProcess {
  pid_t pid = 0;
  common::Fd handle;  // a pidfd, readable once the process has ended; none when this program reaped it already
};

// Starts `program` (a path, or a name that the PATH knows) with these flags, by posix_spawn, in a session of its own
// with clean signals and on the whole cpuset. Its words go to the descriptor `words`; without one those on standard
// error go where this process's go. kUnreachable: it cannot be started.
common::Result<FirstProcess> spawn_daemon(const std::string& program, std::vector<std::string> flags, int words = -1);

// Waits for its end until `deadline`; false: not yet.
bool wait_for_end(const FirstProcess& process, std::chrono::steady_clock::time_point deadline);

// Ends it and what it has started, politely first.
void end_daemon(const FirstProcess& process);

// Waits for its end and reaps it: its exit code, or 128 + the signal. 0 when this program reaps all its children
// itself: then only the socket can tell.
int exit_code(const FirstProcess& process);

}  // namespace jitc::rpc
