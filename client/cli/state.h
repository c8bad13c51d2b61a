// What a daemon says of itself now, for those who look at it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/cli/context.h"

namespace jitc::cli {

struct State {
  std::string hello, jobs, stats;  // JSON objects, as rpc::Daemon::query gives them
  double uptime_seconds = -1;      // below 0: not known
};
// One JSON object: what the daemon says of itself under `daemon`, with what only its clients know; `jobs`, `stats`.
nlohmann::json json_of(const State& state, const Context& context);
// `patience`: seconds after which it gives up.
common::Result<State> ask_state(const Context& context, double patience);

}  // namespace jitc::cli
