// The engine's memory: what compiles and spares hold, what they may, and how many spares there are.
#include <algorithm>

#include "daemon/service/engine.h"
#include "daemon/service/marshal.h"

namespace jitc::service {
namespace {

constexpr std::chrono::seconds kSparesLive{60};  // without a compile
constexpr std::uint32_t kMostSpares = 4;
constexpr std::uint64_t kSpareBytes = std::uint64_t{56} << 20;  // as measured; they may take a quarter of the budget
constexpr std::uint64_t kNoticeable = std::uint64_t{1} << 20;   // changes of the budget below this are noise

}  // namespace

void Engine::on(WorkerUsage& usage) {
  std::uint64_t sum = usage.spare_bytes;
  for (const auto& [job, bytes] : usage.jobs) {
    sum += bytes;
    const auto entry = jobs_.find(job);
    if (entry == jobs_.end()) continue;
    if (const auto flight = flights_.find(entry->second); flight != flights_.end()) flight->second.memory_bytes = bytes;
  }
  memory_now_ = sum;
  memory_peak_ = std::max(memory_peak_, sum);
  spare_bytes_ = usage.spare_bytes;
  holdings_ = {usage.processes, usage.anonymous_bytes};
  trace_memory();
  apply_limits(false);
}

void Engine::set_machine_limits(std::uint32_t slots, std::uint64_t budget_bytes, bool pressure) {
  budget_ = budget_bytes;
  const bool changed = slots != limits_.slots || pressure != limits_.pressure;
  limits_.slots = slots;
  limits_.pressure = pressure;
  trace_memory();
  keep_spares();
  apply_limits(changed);
}

// What the spares hold is not there for compiles.
void Engine::apply_limits(bool at_once) {
  const std::uint64_t compiles = budget_ - std::min(budget_, spare_bytes_);
  const std::uint64_t difference = std::max(compiles, limits_.budget_bytes) - std::min(compiles, limits_.budget_bytes);
  if (!at_once && difference < kNoticeable) return;
  limits_.budget_bytes = compiles;
  limits_.spare_bytes = budget_ - compiles;
  carry_out(scheduler_.set_limits(Clock::now(), limits_));
}

// Spares while somebody compiles now and then and memory is not short.
void Engine::keep_spares() {
  const bool wanted = !limits_.pressure && !scheduler_.alone_runs() && Clock::now() - last_compile_ < kSparesLive;
  const auto affordable = static_cast<std::uint32_t>(std::min<std::uint64_t>(budget_ / 4 / kSpareBytes, kMostSpares));
  const std::uint32_t count = wanted ? std::min(limits_.slots, affordable) : 0;
  if (count == spares_wanted_ || !worker_.up()) return;
  spares_wanted_ = count;
  worker_.send(spares_command(count));
}

void Engine::trace_memory() { trace_.sample({Clock::now(), memory_now_, budget_, limits_.slots}); }

}  // namespace jitc::service
