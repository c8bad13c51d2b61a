// jitc stats: the daemon's counters.
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/ask.h"
#include "client/cli/context.h"
#include "common/metrics.h"

namespace jitc::cli {
namespace {

constexpr double kQuerySeconds = 10;

struct Options {
  std::string format = "text";
  bool json = false;
  SettingFlags settings;
};

std::string text_of(const std::map<std::string, double>& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const common::MetricInfo* metric = common::find_metric(name);
    const std::string number = common::metric_text(value);
    text += name + std::string(name.size() < 24 ? 24 - name.size() : 1, ' ');
    text += std::string(number.size() < 12 ? 12 - number.size() : 0, ' ') + number;
    if (metric != nullptr) text += "  " + std::string(metric->help);
    text += "\n";
  }
  return text;
}

int run(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto stats = ask(*context, "stats", kQuerySeconds);
  if (!stats) return report(stats.error());
  std::string text = *stats + "\n";
  if (!options.json && options.format != "json") {
    const auto values = nlohmann::json::parse(*stats).get<std::map<std::string, double>>();
    text = options.format == "text" ? text_of(values)
                                    : common::prometheus_text(values, common::metric_labels(context->runtime_dir));
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_stats(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* stats = app.add_subcommand("stats", "the daemon's counters since its start");
  stats->add_option("--format", options->format, "text, json (one flat object) or prometheus")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "prometheus"}))
      ->type_name("FORMAT");
  stats->add_flag("--json", options->json, "the same as --format=json");
  options->settings.add(*stats, {"runtime_dir"});
  stats->footer(common::help_footer("", {"jitc stats", "jitc stats --format prometheus"}));
  stats->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
