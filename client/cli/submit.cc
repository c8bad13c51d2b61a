// jitc submit: sources to artifacts.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>

#include "client/api/sharing.h"
#include "client/cli/compile.h"
#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/input.h"
#include "client/cli/parallel.h"
#include "client/cli/progress.h"
#include "client/cli/start.h"
#include "common/flags.h"
#include "common/runtime_dir.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

// Threads only wait for the daemon, which decides how many compilers run.
constexpr std::size_t kMaxThreads = 64;

constexpr const char* kFooter =
    "The artifacts' paths go to standard output, one a line, in the order of the files; everything else goes to\n"
    "standard error. A daemon is started when none runs (JITC_AUTOSTART=0 forbids it). Ctrl-C cancels.\n\n"
    "Exit codes (of the first file, in order, that failed):\n"
    "  0  done                              6  timed out\n"
    "  1  the source does not compile       7  the store cannot be used, or\n"
    "  2  wrong usage; a file, -o or           did not keep the artifact\n"
    "     standard output cannot be used    8  the compiler crashed\n"
    "  3  no daemon, or draining, or of     9  cancelled\n"
    "     another version                  70  a bug in jitc\n"
    "  4  refused by policy\n"
    "  5  out of memory";

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> flags;
  std::optional<std::string> output;
  bool json = false;
  bool no_cache = false;
  bool exact_flags = false;
  double timeout = 0;
  SettingFlags settings;
};

// What all sources have in common.
Result<common::Request> common_request(const Options& options, const Context& context) {
  const auto& settings = context.settings;
  auto flags = common::split_flags(settings.text("cflags"));
  if (!flags) return std::unexpected(std::move(flags.error()));
  common::Request request;
  request.flags = std::move(*flags);
  request.flags.insert(request.flags.end(), options.flags.begin(), options.flags.end());
  request.compiler = settings.text("cc");
  request.share = settings.text("share");
  request.cse = settings.text("cse");
  request.isa_wish = settings.text("isa");
  request.no_cache = options.no_cache;
  request.exact_flags = options.exact_flags;
  return request;
}

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
    Source source{.name = file == "-" ? "<stdin>" : file, .request = request, .copy_to = options.output.value_or("")};
    source.request.name = source.name;
    Outcome& outcome = outcomes.emplace_back();
    outcome.name = source.name;
    if (auto text = read_input(file, deadline); !text) {
      outcome.error = std::move(text.error());
    } else {
      source.request.origin = std::move(*text);
      source.request.emitter_version = api::sharing_version(source.request);
      if (auto checked = common::check_request(source.request); !checked) outcome.error = std::move(checked.error());
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

// Asks the daemon for the sources with these indices, all at the same time.
void compile_all(const Context& context, const std::vector<Source>& sources, const std::vector<std::size_t>& indices,
                 const Deadline& deadline, std::vector<Outcome>& outcomes) {
  const bool may_start = context.settings.text("autostart") != "0";
  if (may_start || !common::in_batch_job()) {  // there the call itself waits for the job's daemon
    if (auto serves = ensure_daemon(context, may_start, deadline); !serves) {
      for (const auto i : indices) outcomes[i].error = serves.error();
      return;
    }
  }
  std::vector<std::string> names;
  for (const auto i : indices) names.push_back(shown_name(sources[i].name));
  ProgressDisplay display(ProgressDisplay::mode_of(context.settings.text("progress")), std::move(names));
  rpc::Daemon& daemon = daemon_client(context);
  // For a daemon that was about to end when it was found, or that ends under the compile.
  Restart restart(context, deadline);
  const std::function<bool()> start = may_start ? std::function<bool()>(std::ref(restart)) : nullptr;
  const auto work = [&](std::size_t at) {
    const auto tell = [&](const rpc::Progress& progress) {
      display.update(at, progress);
      return !interrupted();
    };
    const auto i = indices[at];
    outcomes[i] = compile(context, daemon, sources[i], deadline, tell, start);
    auto& error = outcomes[i].error;
    if (error && error->kind == ErrorKind::kUnreachable)
      if (auto why = restart.failure()) error = std::move(why);
    display.done(at);
  };
  const auto failed = [&](std::size_t at, const std::exception& exception) {
    outcomes[indices[at]].error = fail(ErrorKind::kInternal, exception.what(), sources[indices[at]].name).error();
  };
  in_parallel(indices.size(), kMaxThreads, work, failed);
}

// Of several files, or in a batch job's log, an error must say which file it is about, whatever else it names.
common::Error named(common::Error error, const std::string& name) {
  if (!error.thing.starts_with(name)) error.thing = name + (error.thing.empty() ? "" : ": ") + error.thing;
  return error;
}

// Everything for people to stderr, results to stdout (which main() flushes), in order; the exit code.
int print(const std::vector<Outcome>& outcomes, bool json) {
  int code = 0;
  std::string out;
  for (const auto& outcome : outcomes) {
    const std::string name = shown_name(outcome.name);
    for (const auto& rung : outcome.rungs) say("jitc: " + name + ": note: " + rung + "\n");
    for (const auto& warning : outcome.warnings) say("jitc: " + name + ": warning: " + warning + "\n");
    if (outcome.error) {
      const int failed = report(named(*outcome.error, outcome.name), outcome.name);
      if (code == 0) code = failed;
    }
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
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  if (auto checked = check_options(options); !checked) return report(checked.error());
  const auto request = common_request(options, *context);
  if (!request) return report(request.error());
  std::vector<Outcome> outcomes;
  const auto sources = read_sources(options, *request, deadline, outcomes);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (outcomes[i].error) continue;
    if (auto hit = look_up(*context, sources[i], deadline, options.json)) {
      outcomes[i] = std::move(*hit);
    } else {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) compile_all(*context, sources, missing, deadline, outcomes);
  warn_of_other_store(*context);
  return print(outcomes, options.json);
}

}  // namespace

void add_submit(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* submit = app.add_subcommand("submit", "compile C sources; print the artifacts' paths");
  submit->footer(kFooter);
  submit->add_option("FILE", options->files, "C sources; - is standard input")->required();
  submit->add_option("--flag", options->flags, "one more compiler flag, as --flag=-O2 (repeatable)")
      ->allow_extra_args(false)
      ->type_name("F");
  options->settings.add(*submit, {"cc", "cflags", "share", "isa", "runtime_dir"});
  submit->add_option("-o,--output", options->output, "copy the artifact to this file (one source only)")
      ->type_name("OUT.so");
  submit->add_flag("--json", options->json, "one JSON object per file instead of its path");
  add_timeout(*submit, options->timeout, "seconds that everything may take, reading - too; 0: no end");
  submit->add_flag("--no-cache", options->no_cache, "compile although the store has it");
  submit->add_flag("--exact-flags", options->exact_flags,
                   "never compile at another optimisation level than asked, when memory runs out");
  submit->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
