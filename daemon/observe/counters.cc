#include "daemon/observe/counters.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "common/files.h"

namespace jitc::observe {

std::uint64_t resident_bytes() {
  const auto statm = common::read_file("/proc/self/statm");
  if (!statm) return 0;
  char* rest = nullptr;
  std::strtoull(statm->c_str(), &rest, 10);  // the first number is the address space
  return std::strtoull(rest, nullptr, 10) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::map<std::string, std::uint64_t> collect(const schedule::Counters& schedule, const DaemonCounters& daemon) {
  return {
      {"requests", schedule.requests + daemon.direct_hits + daemon.lookups},
      {"hits", schedule.hits + daemon.direct_hits + daemon.lookup_hits},
      {"hits_direct", daemon.direct_hits},
      {"lookups", daemon.lookups},
      {"merged", schedule.merged},
      {"compiles_started", schedule.compiles_started},
      {"compiles_failed", schedule.compiles_failed},
      {"out_of_memory", schedule.out_of_memory},
      {"retries", schedule.retries},
      {"rung_alone", schedule.rung_alone},
      {"rung_degraded", schedule.rung_degraded},
      {"rung_crashed", schedule.rung_crashed},
      {"rung_worker_lost", schedule.rung_worker_lost},
      {"degraded", schedule.degraded},
      {"cancelled", schedule.cancelled},
      {"elsewhere", schedule.elsewhere},
      {"refused_queue_full", schedule.refused_queue_full},
      {"failures_remembered", schedule.failures_remembered},
      {"cc_requests", daemon.commands.requests},
      {"cc_hits", daemon.commands.hits},
      {"cc_passed", daemon.commands.passed},
      {"published", daemon.published},
      {"evicted", daemon.evicted},
      {"quarantined", daemon.quarantined},
      {"untrusted", daemon.untrusted},
      {"publish_failures", daemon.publish_failures},
      {"refused_peers", daemon.refused_peers},
      {"worker_restarts", daemon.worker_restarts},
      {"canaries_run", daemon.canaries_run},
      {"canaries_refused", daemon.canaries_refused},
      {"canaries_unfinished", daemon.canaries_unfinished},
      {"running", schedule.running},
      {"running_peak", schedule.running_peak},
      {"max_compilers", daemon.max_compilers},
      {"draining", daemon.draining ? 1 : 0},
      {"memory_reserved_bytes", schedule.reserved_bytes},
      {"memory_budget_bytes", daemon.memory_budget_bytes},
      {"memory_bytes", daemon.memory_bytes},
      {"memory_peak_bytes", daemon.memory_peak_bytes},
      {"peaks_recalled", daemon.peaks_recalled},
      {"daemon_rss_bytes", resident_bytes()},
  };
}

std::map<std::string, double> gauges(const schedule::PredictionError& error) {
  std::map<std::string, double> gauges;
  for (const auto& [name, part] :
       {std::pair{"prediction_ratio_p5", 0.05}, {"prediction_ratio_p50", 0.5}, {"prediction_ratio_p95", 0.95}}) {
    if (const auto ratio = error.quantile(part)) gauges[name] = std::round(*ratio * 1e3) / 1e3;
  }
  return gauges;
}

}  // namespace jitc::observe
