// What the end of a compile child means, told from what the worker did to it, what was measured and how it ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/worker/enforcement.h"
#include "daemon/worker/job.h"

namespace jitc::worker {

// How much longer than its CPU limit a compile may take: the node may be crowded.
inline constexpr std::uint32_t kTimePerCpuTime = 10;

// What the worker ended it for.
enum class Ending { kNone, kCancelled, kBreach, kStalled, kCpuTime, kTime, kUnreadable };

struct End {
  const v1::WorkerCommand::Start& start;
  Ending ending;
  const std::optional<Breach>& breach;
  double cpu_seconds;          // sampled, of the whole tree
  std::chrono::seconds stall;  // the patience with a tree that does nothing
  int status;                  // as wait() gives it
  std::string log;             // what the child wrote
};
Finished verdict(const End& end);

// Is it why a child that lives to tell it says this of its compiler?
bool explains(const std::optional<Breach>& breach, Finished::Outcome outcome);
Outcome outcome_of(const Breach& breach);

}  // namespace jitc::worker
