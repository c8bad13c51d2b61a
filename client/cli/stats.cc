// jitc stats: the daemon's counters.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/cli/context.h"

namespace jitc::cli {
namespace {

constexpr double kQuerySeconds = 10;

struct Options {
  bool json = false;
  SettingFlags settings;
};

int run(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto stats = daemon_client(*context).query("stats", kQuerySeconds);
  if (!stats) return report(stats.error());
  if (options.json) {
    std::printf("%s\n", stats->c_str());
    return 0;
  }
  const auto counters = nlohmann::json::parse(*stats);
  for (const auto& [name, value] : counters.items()) std::printf("%-24s %s\n", name.c_str(), value.dump().c_str());
  return 0;
}

}  // namespace

void add_stats(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* stats = app.add_subcommand("stats", "the daemon's counters since its start");
  stats->add_flag("--json", options->json, "one flat JSON object");
  options->settings.add(*stats, {"runtime_dir"});
  stats->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
