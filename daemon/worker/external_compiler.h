// Runs somebody else's compiler on one source, as a process tree under this process, and tells its outcomes apart.
#pragma once

#include "daemon/worker/job.h"

namespace jitc::worker {

// In a child of the worker that has nothing else to do: changes directory to the job's private one, becomes a
// subreaper, waits for the compiler, ends whatever the compiler left running.
Outcome compile_external(const Job& job);

}  // namespace jitc::worker
