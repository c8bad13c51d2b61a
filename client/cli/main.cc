// jitc: the compile service from a shell.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "client/cli/cc.h"
#include "client/cli/cc_compiler.h"
#include "client/cli/context.h"
#include "common/identity.h"

namespace {

constexpr int kUsage = 2;
constexpr int kBug = 70;

// What is wrong with the command line, of which command, and where it is explained.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  // What it does not know comes before what it misses for that reason.
  const auto unknown = app.remaining(/*recurse=*/true);
  const std::string what = unknown.empty() ? error.what() : "no such command, option or argument: " + unknown.front();
  return jitc::cli::report(jitc::common::fail(jitc::common::ErrorKind::kUsage, what, command,
                                              "'" + command + " --help' explains it, with examples")
                               .error());
}

// The words behind `jitc cc` are a compiler's. So are all those of a link: jitc-cc, or one with a compiler's name.
int run(int argc, char** argv) {
  const std::string called = argc > 0 ? std::string(argv[0]) : std::string();
  const std::string link = called.substr(called.rfind('/') + 1);
  if (link == "jitc-cc") return jitc::cli::run_cc({}, {argv + 1, argv + argc});
  if (jitc::cli::is_compiler_name(link)) return jitc::cli::run_cc(link, {argv + 1, argv + argc});
  if (argc > 1 && std::string(argv[1]) == "cc") return jitc::cli::run_cc({}, {argv + 2, argv + argc});
  CLI::App app("Compiles C sources once per node and keeps what it compiled.", "jitc");
  app.set_version_flag("--version", std::string("jitc ") + jitc::common::build_version());
  app.require_subcommand(1);
  app.footer(jitc::common::help_footer(
      "Each subcommand has its own --help; exit codes are in 'jitc submit --help'.\n"
      "Settings come from flags, JITC_ variables and jitc.toml files: 'jitc config --explain' lists them.",
      {"jitc submit kernel.c", "jitc status", "jitc doctor"}));
  jitc::cli::Action action;
  jitc::cli::add_submit(app, action);
  jitc::cli::add_lower(app, action);
  app.add_subcommand("cc", "serve a C compiler's command line: CC=\"jitc cc\" (all its words are the compiler's)");
  jitc::cli::add_share(app, action);
  jitc::cli::add_warm(app, action);
  jitc::cli::add_status(app, action);
  jitc::cli::add_top(app, action);
  jitc::cli::add_stats(app, action);
  jitc::cli::add_trace(app, action);
  jitc::cli::add_jobs(app, action);
  jitc::cli::add_cancel(app, action);
  jitc::cli::add_drain(app, action);
  jitc::cli::add_cache(app, action);
  jitc::cli::add_explain(app, action);
  jitc::cli::add_replay(app, action);
  jitc::cli::add_daemon(app, action);
  jitc::cli::add_config(app, action);
  jitc::cli::add_doctor(app, action);
  jitc::cli::add_version(app, action);
  jitc::cli::add_man(app, action);
  jitc::cli::add_completion(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : refuse(app, error);
  }
  return action();
}

// Results that did not reach standard output (a full disk) are no success.
int flush(int code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fputs("jitc: standard output: cannot be written\n", stderr);
  return code == 0 ? kUsage : code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return flush(run(argc, argv));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "jitc: bug: %s\n", exception.what());
    return kBug;
  }
}
