#include "client/cli/state.h"

#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cli/ask.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

// A process's age; below 0: not known.
double age_of(pid_t pid) {
  const std::uint64_t start = common::process_start_time(pid);
  timespec now{};
  if (start == 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - static_cast<double>(start) / ticks;
}

}  // namespace

nlohmann::json json_of(const State& state, const Context& context) {
  nlohmann::json object = {{"daemon", nlohmann::json::parse(state.hello)},
                           {"stats", nlohmann::json::parse(state.stats)},
                           {"jobs", nlohmann::json::parse(state.jobs)["jobs"]},
                           {"runtime_dir", context.runtime_dir},
                           {"socket", context.socket()}};
  if (state.uptime_seconds >= 0) object["daemon"]["uptime_seconds"] = state.uptime_seconds;
  return object;
}

common::Result<State> ask_state(const Context& context, double patience) {
  State state;
  for (const auto& [what, answer] :
       {std::pair("hello", &state.hello), std::pair("jobs", &state.jobs), std::pair("stats", &state.stats)}) {
    auto got = ask(context, what, patience);
    if (!got) return std::unexpected(std::move(got.error()));
    *answer = std::move(*got);
  }
  const auto pid = nlohmann::json::parse(state.hello).value("pid", std::int64_t{0});
  state.uptime_seconds = age_of(static_cast<pid_t>(pid));
  return state;
}

}  // namespace jitc::cli
