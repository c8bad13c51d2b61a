// Runs somebody else's compiler on one source, as a process tree under this process, and tells its outcomes apart.
#pragma once

#include <string>
#include <vector>

#include "daemon/worker/job.h"

namespace jitc::worker {

// In a child of the worker that has nothing else to do: changes directory to the job's private one, becomes a
// subreaper, waits for the compiler, ends whatever the compiler left running.
Outcome compile_external(const Job& job);

// The compile step, which takes most of the time: what a job ran whose child could not say it.
std::vector<std::string> external_command(const v1::WorkerCommand::Start& start);

}  // namespace jitc::worker
