// The daemon's child processes: its worker, short commands that it asks something, and orphans that it adopted.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace jitc::service {

// Standard output and error of a short command in the C locale; what it printed until it ended or ten seconds passed.
// Empty when it cannot be started.
std::string answer_of(std::vector<std::string> command);

// Ends the commands that run; those that are asked for from now on are not started. Any thread.
void end_commands();

// Children of this process, dead ones included, but for `worker` and the commands that answer_of waits for. They came
// from a worker that died, and only the caller may reap them: their ids stay theirs until it does.
std::vector<pid_t> adopted_children(pid_t worker);

}  // namespace jitc::service
