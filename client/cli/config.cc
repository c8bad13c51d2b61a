// jitc config: every setting, its value, and where that came from. jitc version.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/cli/context.h"
#include "client/cli/json_text.h"
#include "common/identity.h"

namespace jitc::cli {
namespace {

struct Options {
  bool json = false;
  bool help_texts = false;
  SettingFlags settings;
};

int run(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  auto object = nlohmann::ordered_json::object();
  for (const auto& info : common::settings_table()) {
    const std::string name(info.name);
    const auto& value = context->settings.value(name);
    // What an empty value stands for is known for this one.
    const std::string& text = name == "runtime_dir" && value.text.empty() ? context->runtime_dir : value.text;
    if (options.json) {
      object[name] = {{"value", text}, {"origin", value.origin}, {"environment", std::string(info.environment)}};
      continue;
    }
    std::printf("%-18s %s  (%s)\n", name.c_str(), text.empty() ? "-" : text.c_str(), value.origin.c_str());
    if (options.help_texts)
      std::printf("%-18s   %s; %s\n", "", std::string(info.environment).c_str(), std::string(info.help).c_str());
  }
  if (options.json) std::printf("%s\n", one_line(object).c_str());
  for (const auto& name : common::unknown_variables())
    say("jitc: warning: " + name + ": no setting has this variable\n");
  return 0;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* config = app.add_subcommand("config", "each setting, its value and where it came from");
  config->add_flag("--json", options->json, "one JSON object");
  config->add_flag("--explain", options->help_texts, "say what each setting means");
  options->settings.add(*config, {"runtime_dir"});
  config->footer(
      common::help_footer("A flag goes before the environment, then the job's file (JITC_JOB_FILE), the user's "
                          "(~/.config/jitc/jitc.toml),\n"
                          "the site's (/etc/jitc/jitc.toml), then the default.\n"
                          "The files are TOML, of 64 KiB at most; every value is UTF-8.",
                          {"jitc config", "jitc config --explain", "jitc config --json"}));
  config->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_version(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  auto* version = app.add_subcommand("version", "this program's version");
  version->add_flag("--json", *json, "one JSON object");
  version->footer(common::help_footer("", {"jitc version", "jitc version --json"}));
  version->callback([json, &action] {
    action = [json] {
      const std::string text = *json ? one_line(nlohmann::ordered_json{{"version", common::build_version()}})
                                     : std::string("jitc ") + common::build_version();
      std::printf("%s\n", text.c_str());
      return 0;
    };
  });
}

}  // namespace jitc::cli
