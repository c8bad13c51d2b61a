// Loads a module, calls its functions and compares with what they must give. In a child of its own: the module may do
// anything.
#pragma once

#include <vector>

#include "common/files.h"
#include "daemon/worker/job.h"

namespace jitc::worker {

// Descriptors: the shared object, a v1::Canary message. DONE, MISCOMPILED with the entry, the point, what came and what
// was wanted, or REFUSED when nothing can be said.
Outcome run_canary(const std::vector<common::Fd>& descriptors);

}  // namespace jitc::worker
