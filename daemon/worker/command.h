// Runs a compiler's command line as its caller wrote it, in the caller's directory and environment; only the output
// goes to a private place, and so do the compiler's temporary files.
#pragma once

#include "daemon/worker/job.h"

namespace jitc::worker {

// In a child of the worker that has nothing else to do. DONE however the compiler ended, unless it was ended by a limit
// or could not be run: the caller gets its exit code and its words.
Outcome run_command(const Job& job);

}  // namespace jitc::worker
