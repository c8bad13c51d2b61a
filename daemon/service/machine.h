// What this process may really use: cores (affinity, cgroup quota, the batch system's word), processes and descriptors,
// memory (cgroup limits, the batch system's, what the host has left), and whether the kernel reports memory pressure.
// Reads /proc and /sys below a root that tests replace; what cannot be read or understood gives no figure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/service/figures.h"

namespace jitc::service {

// "0-3,8,10-11" -> 7; 0 when it cannot be read.
std::uint32_t count_cpu_list(std::string_view list);
// The value in bytes of a "Name:   123 kB" line.
std::optional<std::uint64_t> field_kb(std::string_view text, std::string_view name);
// A cgroup limit: "max" and v1's "no limit" (beyond 2^60) are nothing.
std::optional<std::uint64_t> parse_limit(std::string_view text);
// cpu.max, "quota period" -> cores, rounded up; nothing for "max".
std::optional<std::uint32_t> parse_cpu_max(std::string_view text);
// "some avg10=1.50 ..." of a PSI file, in percent.
std::optional<double> parse_pressure(std::string_view text);

// Environment variables by name, as far as they matter here.
using Variables = std::map<std::string, std::string, std::less<>>;
// The batch system's (SLURM_...), of this process.
Variables batch_variables();

class Machine {
 public:
  explicit Machine(std::string root = {}, Variables variables = batch_variables())
      : root_(std::move(root)), variables_(std::move(variables)) {}

  // Of each the figures that are there. Cores: affinity, CPU quotas from the own cgroup to the outermost, the job's
  // share of this node. At least one.
  std::vector<Figure> cores() const;
  // Processes (pids controller, RLIMIT_NPROC) and descriptors (RLIMIT_NOFILE), as the compiles that they are enough
  // for. What our children are already does not count as used.
  std::vector<Figure> processes(const Holdings& ours) const;
  // Bytes that our children may hold before a limit or the host's memory, less a reserve, ends. Page cache, which the
  // kernel can drop, does not count as used; nor does what our children hold already.
  std::vector<Figure> memory(const Holdings& ours) const;
  // The whole machine's, the own group's and those around it (cgroup v2 only).
  std::vector<Figure> pressure() const;

 private:
  std::string read(const std::string& path) const;  // empty when not readable
  std::vector<std::string> directories(std::string_view controller) const;
  std::optional<std::uint64_t> variable(std::string_view name) const;
  std::optional<Figure> job_cores() const;
  std::optional<Figure> job_memory(std::uint64_t narrowest_group) const;
  std::uint64_t memory_of_job() const;
  // Of our user: our children too, and what cannot be seen from here not.
  std::vector<std::string> own_processes() const;
  std::uint64_t own_tasks() const;
  std::string root_;
  Variables variables_;
};

// How many compiles `descriptors` per process are enough for, at least one: a daemon has those of its clients, of gRPC
// and of the objects that it publishes, a worker those of its children.
std::uint32_t slots_within(std::uint64_t descriptors);

}  // namespace jitc::service
