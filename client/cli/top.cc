// jitc top: what runs and waits, renewed every second.
#include <chrono>
#include <nlohmann/json.hpp>

#include "client/cli/json_text.h"
#include "client/cli/state.h"
#include "client/cli/top_text.h"
#include "client/cli/watch.h"

namespace jitc::cli {
namespace {

constexpr double kQuerySeconds = 2;  // q must not wait for a daemon that hangs

struct Options {
  Watch watch;
  SettingFlags settings;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int run(const Options& options, bool plain_is_once) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  CompileRate rate;
  Watch how = options.watch;
  if (plain_is_once && !stdout_is_terminal()) how.count = 1;
  return watch(how, [&](const Screen& screen) -> common::Result<std::string> {
    const auto state = ask_state(*context, kQuerySeconds);
    if (!state) return std::unexpected(state.error());
    TopView view = top_view(state->hello, state->jobs, state->stats);
    view.uptime_seconds = state->uptime_seconds;
    rate.add(now_seconds(), view.compiles_started);
    view.compiles_per_minute = rate.per_minute(view.uptime_seconds);
    if (how.in_lines) {
      auto object = json_of(*state, *context);
      object["compiles_per_minute"] = view.compiles_per_minute;
      return one_line(object) + "\n";
    }
    return top_text(view, screen);
  });
}

}  // namespace

void add_top(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* top = app.add_subcommand("top", "what runs and waits, renewed every second; q ends it");
  add_interval(*top, "--interval", options->watch.interval, "seconds between two looks");
  top->add_option("--count", options->watch.count, "end after so many looks; 0: on a terminal no end, else one")
      ->capture_default_str()
      ->type_name("N");
  top->add_flag("--json", options->watch.in_lines, "one JSON object for each look, a line each");
  options->settings.add(*top, {"runtime_dir"});
  top->footer(common::help_footer("", {"jitc top --count 1", "jitc top --json --count 2 --interval 0.1"}));
  top->callback([options, top, &action] {
    const bool plain_is_once = top->count("--interval") == 0 && options->watch.count == 0;
    action = [options, plain_is_once] { return run(*options, plain_is_once); };
  });
}

}  // namespace jitc::cli
