// Clocks, medians and processes for the measurements.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/rpc/daemon.h"
#include "common/request.h"

namespace jitc::bench {

// Where things are; filled from the command line and environment by main.
struct Places {
  std::string bin;          // jitc, jitcd
  std::string scratch;      // a directory for outputs
  std::string runtime_dir;  // of the daemon that bench.sh started
  std::string store;
  std::size_t artifacts = 100'000;  // of the store that store() makes
};

double milliseconds(const std::function<void()>& work);
double quantile(std::vector<double> values, double q);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// Runs a command to its end, output discarded; a non-zero exit ends the bench with the command's name.
void run(const std::vector<std::string>& argv);
struct ProcessCost {
  double seconds = 0;
  double processor_seconds = 0;
  double peak_mib = 0;  // of the largest process that it waited for
};
ProcessCost measure_process(const std::vector<std::string>& argv);
std::string read_text(const std::string& path);
// The same text made new for every cache by a comment that was never used before.
std::string fresh(std::string_view text);
[[noreturn]] void give_up(const std::string& why);

std::unique_ptr<rpc::Daemon, void (*)(rpc::Daemon*)> open_daemon(const Places& places);
common::Request request_of(std::string text);
// Compiles and returns the artifact's path; ends the bench on failure.
std::string compile(rpc::Daemon& daemon, const common::Request& request);

// Proportional set size of a process in KiB, from smaps_rollup; nothing when it has ended.
std::optional<double> pss_kib(pid_t pid);

void print_row(std::string_view name, double ours, double peer, std::string_view peer_name, std::string_view target);

void cold(const Places& places);
void hits(const Places& places);
void herd(const Places& places);
void memory(const Places& places);
void graph(const Places& places);
void node(const Places& places);
void jitter(const Places& places);
void store(const Places& places);

}  // namespace jitc::bench
