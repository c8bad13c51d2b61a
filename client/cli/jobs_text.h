// The daemon's flights, as people read and name them. Pure. `utf8`: what the terminal takes; names become printable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::cli {

struct JobInfo {
  std::uint64_t flight = 0;
  std::string key, name, phase;  // key: 64 hex digits
  std::uint32_t waiters = 0, place = 0;
  double seconds = 0;  // since it was asked for; of a compile that runs: since its start
  std::uint64_t memory_bytes = 0, predicted_bytes = 0;
};

// Of the daemon's answer to `jobs`.
std::vector<JobInfo> jobs_of(std::string_view json);

// Of its answer to `jobs` or `hello`: does it end when what it took on is finished?
bool is_draining(std::string_view json);

// A line for each, under a line of headings.
std::string jobs_table(const std::vector<JobInfo>& jobs, bool utf8);

// "running", "queued 2"
std::string phase_text(const JobInfo& job);

// "flight 7, kernel.c (running, 3 waiting)"
std::string description(const JobInfo& job, bool utf8);

// What `jitc cancel --json` says of an ID: the compile that was ended, as it was before, or why none was.
std::string cancelled_json(const std::string& id, const common::Result<JobInfo>& job);

// What `jitc drain --json` says: "draining", "drained" or "not running"; `pid` 0: there is no daemon.
std::string daemon_json(const std::string& state, const std::string& runtime_dir, std::int64_t pid);

// Which one somebody means by the number of its flight, or by the first digits (four at least) of its key, in either
// case. kUsage when none fits, or several do.
common::Result<JobInfo> find_job(const std::vector<JobInfo>& jobs, std::string_view id, bool utf8);

}  // namespace jitc::cli
