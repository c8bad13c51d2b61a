// jitc trace: what the daemon did when, for Perfetto or as a picture.
#include <optional>
#include <string>

#include "client/cli/ask.h"
#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/trace_view.h"

namespace jitc::cli {
namespace {

constexpr double kQuerySeconds = 30;  // megabytes

struct Options {
  std::optional<std::string> output, svg;
  double last = 0;  // seconds; 0: all
  SettingFlags settings;
};

int run(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto answer = ask(*context, "trace", kQuerySeconds);
  if (!answer) return report(answer.error());
  TraceView view = trace_view(*answer);
  const auto write = [](const std::optional<std::string>& to, const std::string& text) {
    return write_text(to == "-" ? std::nullopt : to, text);
  };
  if (options.last > 0) view = last_part(std::move(view), options.last);
  if (options.svg)
    if (auto written = write(options.svg, svg_timeline(view)); !written) return report(written.error());
  if (options.svg && !options.output) return 0;
  const bool picture = options.output && options.output->ends_with(".svg");
  const auto written = write(options.output, picture ? svg_timeline(view) : chrome_trace(view));
  return written ? 0 : report(written.error());
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* trace = app.add_subcommand("trace", "what the daemon did when: JSON for ui.perfetto.dev, or a picture");
  trace
      ->add_option("-o", options->output,
                   "write there, not to standard output (-); a picture when its name ends in .svg")
      ->type_name("FILE");
  trace->add_option("--svg", options->svg, "write a picture there; - is standard output")->type_name("FILE");
  add_seconds(*trace, "--last", options->last, "only the last so many seconds");
  options->settings.add(*trace, {"runtime_dir"});
  trace->footer(common::help_footer("", {"jitc trace -o trace.json", "jitc trace --last 60 --svg timeline.svg"}));
  trace->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
