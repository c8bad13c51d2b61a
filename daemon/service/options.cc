#include "daemon/service/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/files.h"
#include "common/identity.h"
#include "common/manual.h"
#include "common/runtime_dir.h"
#include "common/utf8.h"
#include "daemon/service/process.h"

namespace jitc::service {
namespace {

using common::ErrorKind;

// The settings that have a flag here; the others come from environment and files.
constexpr std::array<std::string_view, 8> kFlags{"runtime_dir",   "store",     "store_max", "max_compilers",
                                                 "memory_budget", "idle_exit", "log",       "log_format"};

constexpr const char* kFooter =
    "Starts in the background unless told otherwise, or started by srun itself, and returns when it serves. One "
    "daemon\n"
    "serves one user on one node (inside a batch job: the job); when one runs already, jitcd says so and ends with 0.\n"
    "Exit codes: 0 done, 2 usage, 4 refused (a directory that others may write), 7 store, 70 bug.\n"
    "SIGTERM, SIGINT and SIGHUP end it: what runs is cancelled, no process is left behind.";

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

std::string default_store() {
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr && *home != '\0' ? home : "/tmp") + "/.cache/jitc";
}

// Beside this program in a build tree, else where the installation has it.
std::string own_worker() {
  std::string beside = executable_directory() + "/jitc-worker";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  return absolute(executable_directory() + "/" JITC_WORKER_FROM_BIN);
}

// Slurm takes a step for done when its first process goes into the background.
bool is_task_of_slurm() {
  return std::getenv("SLURM_STEP_ID") != nullptr &&
         common::read_file("/proc/" + std::to_string(::getppid()) + "/comm").value_or("") == "slurmstepd\n";
}

}  // namespace

common::Result<CommandLine> read_command_line(int argc, const char* const* argv) {
  const std::string version = std::string("jitcd ") + common::build_version();
  CLI::App app("jitcd: the node's compile service", "jitcd");
  app.set_version_flag("--version", version);
  app.footer(common::help_footer(kFooter, {"jitcd", "jitcd --foreground --max-compilers 2 --memory-budget 4G",
                                           "jitcd --store /scratch/me/jitc --log debug"}));
  Options options;
  app.add_flag("--foreground", options.foreground, "do not detach; log to standard error");
  app.add_option("--ready-fd", options.ready_fd, "write one byte to this descriptor when the daemon serves");
  app.add_option("--worker", options.worker, "path of jitc-worker (default: that of this build)")
      ->envname("JITC_WORKER");
  bool manual = false;
  app.add_flag("--man", manual, "print the manual page jitcd(8)");
  std::map<std::string, std::string> given;
  for (const auto& info : common::settings_table()) {
    if (std::find(kFlags.begin(), kFlags.end(), info.name) == kFlags.end()) continue;
    const std::string name(info.name);
    app.add_option_function<std::string>(
           std::string(info.flag), [&given, name](const std::string& text) { given[name] = text; },
           std::string(info.help) + " [" + std::string(info.environment) + "]")
        ->type_name(common::value_name(info));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{std::nullopt, app.help()};
  } catch (const CLI::CallForVersion&) {
    return CommandLine{std::nullopt, version + "\n"};
  } catch (const CLI::ParseError& error) {
    return common::fail(ErrorKind::kUsage, error.what(), "command line", "see jitcd --help");
  }
  if (manual)
    return CommandLine{std::nullopt, common::command_manual(common::command_tree(app), 8, "the node's compile service",
                                                            {"jitc(1)", "jitc.toml(5)", "libjitc(3)"})};
  auto settings = common::Settings::load(given);
  if (!settings) return std::unexpected(settings.error());
  options.settings = std::move(*settings);
  options.runtime_dir = absolute(common::runtime_directory(options.settings.text("runtime_dir")));
  options.is_jobs = common::in_batch_job() && options.runtime_dir == absolute(common::runtime_directory({}));
  options.foreground |= is_task_of_slurm();
  // A job's own step is meant to last as long as the job: solvers compute for hours between two compiles.
  const bool lasts = options.foreground && common::in_batch_job() && !options.settings.is_set("idle_exit");
  options.idle_seconds = lasts ? 0 : options.settings.seconds("idle_exit");
  const std::string store = options.settings.text("store");
  options.store = absolute(store.empty() ? default_store() : store);
  if (!common::is_utf8(options.store))  // this process may be in any directory
    return common::fail(ErrorKind::kUsage, "the path is not UTF-8", common::valid_utf8(options.store),
                        "name another store (JITC_STORE)");
  if (const std::string file = options.settings.text("metrics_file"); !file.empty())
    options.metrics_file = absolute(file);
  options.worker = options.worker.empty() ? own_worker() : absolute(options.worker);
  return CommandLine{std::move(options), {}};
}

common::Result<observe::LogOptions> log_options(const Options& options) {
  auto log = observe::parse_log_spec(options.settings.text("log"));
  if (!log) return log;
  log->format = options.settings.text("log_format") == "json" ? observe::LogFormat::kJson : observe::LogFormat::kText;
  if (log->file.empty() && !options.foreground) log->file = options.runtime_dir + "/jitcd.log";
  return log;
}

}  // namespace jitc::service
