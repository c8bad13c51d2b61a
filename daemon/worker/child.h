// A compile child: forked from the worker, exercised if it is to be a spare, given one job, gone.
#pragma once

#include <sys/types.h>

#include "common/error.h"
#include "common/files.h"
#include "daemon/worker/job.h"

namespace jitc::worker {

struct Child {
  pid_t pid = -1;
  common::Fd channel;  // the worker's end, non-blocking
  common::Fd log;      // what the child wrote on standard output and error
};

// A spare compiles and links a dummy in itself first (then it says so by an empty Ready message): what it touched so is
// its own before a request comes. The next message is a Start, the answer a Finished.
enum class Warmth { kExercised, kCold };
common::Result<Child> fork_child(Warmth warmth);

// Of a failure: what was run, where nothing says so yet. The flags are among its words.
void tell_command(Finished& finished, const v1::WorkerCommand::Start& start);

}  // namespace jitc::worker
