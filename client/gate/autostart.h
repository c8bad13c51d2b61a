// Starts the node's daemon from a rank (JITC_AUTOSTART=1).
#pragma once

#include <chrono>
#include <string>

#include "client/gate/sources.h"
#include "common/error.h"

namespace jitc::gate {

struct Start {
  std::string runtime_dir;
  std::string store;    // empty: what the new daemon's own settings say
  std::string program;  // empty: the jitcd installed beside this library, else the one on the PATH
  // jitcd's first process ends when its daemon serves. One that does not end within this time is ended.
  std::chrono::milliseconds limit = std::chrono::minutes(1);
};

// Somebody serves the runtime directory, or jitcd is started, once. By posix_spawn, never by fork: a solver's pages may
// be pinned by its network. Blocks until the new daemon serves, has said why it does not, or the limit has passed
// (kUnreachable); reports each second meanwhile, and gives up when told to (kCancelled). Runs on a helper thread, whose
// affinity it widens to the whole cpuset meanwhile.
common::Result<void> ensure_daemon(const Start& start, const Report& report);

}  // namespace jitc::gate
