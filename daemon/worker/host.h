// What this machine and this build of the compiler are, for the artifact keys.
#pragma once

#include <jitc/v1/worker.pb.h>

namespace jitc::worker {

v1::WorkerReport::Ready describe_host();

}  // namespace jitc::worker
