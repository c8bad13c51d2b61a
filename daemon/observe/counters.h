// The numbers of Stats: the scheduler's, and those of the rooms around it. The names are part of the contract.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/schedule/prediction_error.h"
#include "daemon/schedule/scheduler.h"

namespace jitc::observe {

// Of `jitc cc`.
struct CommandCounters {
  std::uint64_t requests = 0;  // commands that were understood
  std::uint64_t hits = 0;      // of these, answered from the store
  std::uint64_t passed = 0;    // others, whose compiler ran in its caller
};

struct DaemonCounters {
  CommandCounters commands;
  std::uint64_t direct_hits = 0;  // that clients served themselves and told of
  std::uint64_t lookups = 0;      // by key
  std::uint64_t lookup_hits = 0;
  std::uint64_t refused_peers = 0;
  std::uint64_t published = 0;
  std::uint64_t evicted = 0;
  std::uint64_t quarantined = 0;
  std::uint64_t untrusted = 0;
  std::uint64_t publish_failures = 0;
  std::uint64_t worker_restarts = 0;
  std::uint64_t canaries_run = 0;
  std::uint64_t canaries_refused = 0;     // of these: the module was wrong
  std::uint64_t canaries_unfinished = 0;  // of these: nothing can be said
  std::uint64_t memory_bytes = 0;         // of compiles and spares, now
  std::uint64_t memory_peak_bytes = 0;    // and at most so far
  std::uint64_t memory_budget_bytes = 0;
  std::uint64_t max_compilers = 0;
  bool draining = false;
  std::uint64_t peaks_recalled = 0;  // from the store's manifests, for predictions
};

// requests = hits + merged + what was compiled or failed: hits of every kind count as requests too.
std::map<std::string, std::uint64_t> collect(const schedule::Counters& schedule, const DaemonCounters& daemon);

// What is no count; absent as long as there is nothing to tell.
std::map<std::string, double> gauges(const schedule::PredictionError& error);

// Resident memory of this process, from /proc/self/statm.
std::uint64_t resident_bytes();

}  // namespace jitc::observe
