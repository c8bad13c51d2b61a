// jitc submit: sources to artifacts.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "client/cli/compile.h"
#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/input.h"
#include "client/cli/source_options.h"
#include "common/plan.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

constexpr const char* kFooter =
    "The artifacts' paths go to standard output, one a line, in the order of the files; everything else goes to\n"
    "standard error. A daemon is started when none runs (JITC_AUTOSTART=0 forbids it). Ctrl-C cancels.\n\n"
    "Exit codes (of the first file, in order, that failed):\n"
    "  0  done                              6  timed out\n"
    "  1  the source does not compile       7  the store cannot be used, or\n"
    "  2  wrong usage; a file, -o or           did not keep the artifact\n"
    "     standard output cannot be used    8  the compiler crashed, or was wrong\n"
    "  3  no daemon, or draining, or of     9  cancelled\n"
    "     another version                  70  a bug in jitc\n"
    "  4  refused by policy\n"
    "  5  out of memory";

struct Options {
  std::vector<std::string> files;
  std::optional<std::string> output;
  bool json = false;
  bool no_cache = false;
  double timeout = 0;
  SourceOptions source;
};

// What is wrong whatever the files hold.
Result<void> check_options(const Options& options) {
  if (options.output && options.files.size() > 1)
    return fail(ErrorKind::kUsage, "one output, but " + std::to_string(options.files.size()) + " files", "-o",
                "submit one file with -o");
  if (std::ranges::count(options.files, "-") > 1)
    return fail(ErrorKind::kUsage, "standard input can be read once", "-");
  return options.output ? check_copy(*options.output) : Result<void>();
}

// A source for each file; those that cannot be read, or asked for, have an error in their outcome.
std::vector<Source> read_sources(const Options& options, const common::Request& request, const Deadline& deadline,
                                 std::vector<Outcome>& outcomes) {
  std::vector<Source> sources;
  for (const auto& file : options.files) {
    Source source{.name = file == "-" ? "<stdin>" : file, .request = {}, .copy_to = options.output.value_or("")};
    Outcome& outcome = outcomes.emplace_back();
    outcome.name = source.name;
    if (auto text = read_input(file, deadline); !text) {
      outcome.error = std::move(text.error());
    } else if (auto asked = request_for(request, source.name, std::move(*text)); !asked) {
      outcome.error = std::move(asked.error());
    } else {
      source.request = std::move(*asked);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

// Into the plan that JITC_RECORD names. What cannot be is told once and compiled all the same.
void record(const Context& context, const std::vector<Source>& sources, const std::vector<Outcome>& outcomes) {
  const std::string file = context.settings.text("record");
  if (file.empty()) return;
  common::PlanRecorder plan(file);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (outcomes[i].error) continue;
    const auto lacks = plan.lacks(common::request_digest(sources[i].request));
    const auto added = !lacks ? std::unexpected(lacks.error()) : *lacks ? plan.add(sources[i].request) : Result<void>();
    if (added) continue;
    say("jitc: warning: not recorded: " + common::to_line(added.error()) + "\n");
    return;
  }
}

// Everything for people to stderr, results to stdout (which main() flushes), in order; the exit code.
int print(const std::vector<Outcome>& outcomes, bool json) {
  int code = 0;
  std::string out;
  for (const auto& outcome : outcomes) {
    const int failed = tell(outcome);
    if (code == 0) code = failed;
    if (json) {
      out += to_json(outcome) + "\n";
    } else if (!outcome.error) {
      out += outcome.path + "\n";
    }
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return code;
}

int run(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.source.settings);
  if (!context) return report(context.error());
  if (auto checked = check_options(options); !checked) return report(checked.error());
  auto request = common_request(options.source, *context);
  if (!request) return report(request.error());
  request->no_cache = options.no_cache;
  std::vector<Outcome> outcomes;
  const auto sources = read_sources(options, *request, deadline, outcomes);
  record(*context, sources, outcomes);
  obtain_all(*context, sources, deadline, outcomes, options.json);
  warn_of_other_store(*context);
  return print(outcomes, options.json);
}

}  // namespace

void add_submit(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* submit = app.add_subcommand("submit", "compile C sources; print the artifacts' paths");
  submit->footer(
      common::help_footer(kFooter, {"jitc submit kernel.c other.c", "jitc submit --flag=-O2 -o kernel.so kernel.c",
                                    "jitc submit --cc gcc --json kernel.c"}));
  submit->add_option("FILE", options->files, "C sources; - is standard input")->required();
  add_source_options(*submit, options->source);
  submit->add_option("-o,--output", options->output, "copy the artifact to this file (one source only)")
      ->type_name("OUT.so");
  submit->add_flag("--json", options->json, "one JSON object per file instead of its path");
  add_timeout(*submit, options->timeout, "seconds that everything may take, reading - too; 0: no end");
  submit->add_flag("--no-cache", options->no_cache, "compile although the store has it");
  submit->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
