// What this process may really use: cores (affinity, cgroup quota) and memory (cgroup limits, what the host has left),
// and whether the kernel reports memory pressure. Reads /proc and /sys below a root that tests replace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::service {

// "0-3,8,10-11" -> 7; 0 when it cannot be read.
std::uint32_t count_cpu_list(std::string_view list);
// The value in bytes of a "Name:   123 kB" line.
std::optional<std::uint64_t> field_kb(std::string_view text, std::string_view name);
// The number of a "name 123" line (memory.stat).
std::optional<std::uint64_t> field_number(std::string_view text, std::string_view name);
// A cgroup limit: "max" and v1's "no limit" (beyond 2^60) are nothing.
std::optional<std::uint64_t> parse_limit(std::string_view text);
// cpu.max, "quota period" -> cores, rounded up; nothing for "max".
std::optional<std::uint32_t> parse_cpu_max(std::string_view text);
// "some avg10=1.50 ..." of a PSI file, in percent.
std::optional<double> parse_pressure(std::string_view text);

// Where a controller's files for this process are: its own group's directory first, then the parents up to the mount.
// `controller` is empty for cgroup v2. Both texts are /proc/self/cgroup and /proc/self/mountinfo.
std::vector<std::string> cgroup_directories(std::string_view cgroup, std::string_view mountinfo,
                                            std::string_view controller);

class Machine {
 public:
  explicit Machine(std::string root = {}) : root_(std::move(root)) {}
  std::uint32_t cores() const;
  // Bytes that processes of ours may still take before the cgroup's limit or the host's memory (less a reserve) ends.
  // Page cache that the kernel can drop does not count as used.
  std::uint64_t memory_left() const;
  // The share of time, in percent of the last ten seconds, that some task stalled on memory; 0 when not readable.
  double memory_pressure() const;

 private:
  std::string read(const std::string& path) const;  // empty when not readable
  std::vector<std::string> directories(std::string_view controller) const;
  std::string root_;
};

// How many compiles `descriptors` per process are enough for, at least one: a daemon has those of its clients, of gRPC
// and of the objects that it publishes, a worker those of its children.
std::uint32_t slots_within(std::uint64_t descriptors);

// The budget to use next, so that it does not flutter with every reading: it falls at once when memory was lost (beyond
// one part in twenty), and rises only by more than one part in eight.
std::uint64_t steady_budget(std::uint64_t current, std::uint64_t measured);
// Pressure begins above 10 % and ends below 5 %.
bool steady_pressure(bool current, double percent);

}  // namespace jitc::service
