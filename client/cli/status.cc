// jitc status: who serves, and what it is doing.
#include <nlohmann/json.hpp>
#include <optional>

#include "client/cli/json_text.h"
#include "client/cli/state.h"
#include "client/cli/status_text.h"
#include "client/cli/watch.h"

namespace jitc::cli {
namespace {

constexpr double kWatchSeconds = 2;
constexpr double kQuerySeconds = 10, kWatchQuerySeconds = 2;  // q must not wait for a daemon that hangs

struct Options {
  double interval = kWatchSeconds;
  bool json = false;
  SettingFlags settings;
};

int run(const Options& options, bool again) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const Watch how{.interval = options.interval, .count = again ? 0U : 1U};
  return watch(how, [&](const Screen& screen) -> common::Result<std::string> {
    const auto state = ask_state(*context, again ? kWatchQuerySeconds : kQuerySeconds);
    if (!state) return std::unexpected(state.error());
    if (options.json) return one_line(json_of(*state, *context)) + "\n";
    const std::string text = status_text(state->hello, state->jobs, state->stats, state->uptime_seconds, screen.utf8);
    return clipped(text + "socket     " + printable(context->socket(), screen.utf8) + "\n", screen);
  });
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* status = app.add_subcommand("status", "the daemon, its store, and what runs and waits");
  auto* interval = add_interval(*status, "--watch", options->interval, "look again every so many seconds");
  interval->expected(0, 1);
  status->add_flag("--json", options->json, "one JSON object")->excludes(interval);
  options->settings.add(*status, {"runtime_dir"});
  status->footer(common::help_footer("", {"jitc status", "jitc status --json"}));
  status->callback([options, interval, &action] {
    action = [options, again = interval->count() > 0] { return run(*options, again); };
  });
}

}  // namespace jitc::cli
