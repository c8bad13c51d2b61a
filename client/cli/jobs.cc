// jitc jobs, cancel, drain: what the daemon is doing, and how to end one thing of it or all.
#include <algorithm>
#include <cstdio>

#include "client/cli/context.h"
#include "client/cli/jobs_text.h"
#include "client/cli/start.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

constexpr double kQuerySeconds = 10;
constexpr double kShowSeconds = 1;

struct Options {
  std::vector<std::string> ids;
  bool json = false;
  bool no_wait = false;
  double timeout = 0;
  SettingFlags settings;
};

// As the daemon has them now.
Result<std::vector<JobInfo>> ask_for_jobs(rpc::Daemon& daemon) {
  const auto answer = daemon.query("jobs", kQuerySeconds);
  if (!answer) return std::unexpected(answer.error());
  return jobs_of(*answer);
}

int list(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto answer = daemon_client(*context).query("jobs", kQuerySeconds);
  if (!answer) return report(answer.error());
  std::printf("%s", options.json ? (*answer + "\n").c_str() : jobs_table(jobs_of(*answer)).c_str());
  return 0;
}

Result<JobInfo> cancel_one(rpc::Daemon& daemon, const std::string& id) {
  const auto jobs = ask_for_jobs(daemon);
  if (!jobs) return std::unexpected(jobs.error());
  auto job = find_job(*jobs, id);
  if (!job) return job;
  if (auto cancelled = daemon.cancel(job->flight); !cancelled) return std::unexpected(std::move(cancelled.error()));
  return job;
}

// Each that can be; the exit code is that of the first that cannot.
int cancel(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  int code = 0;
  for (const auto& id : options.ids) {
    const auto job = cancel_one(daemon_client(*context), id);
    if (job) {
      std::printf("cancelled %s\n", description(*job).c_str());
    } else if (const int failed = report(job.error()); code == 0) {
      code = failed;
    }
  }
  return code;
}

void show_left(rpc::Daemon& daemon, bool progress) {
  const auto jobs = ask_for_jobs(daemon);
  if (!jobs || !progress) return;  // at its end it answers nobody
  const auto queued = std::ranges::count(*jobs, "queued", &JobInfo::phase);
  std::fprintf(stderr, "jitc: draining, %td running, %td queued\n", std::ssize(*jobs) - queued, queued);
}

// Until the daemon has ended; what is left is told once a second.
Result<void> wait_for_end(rpc::Daemon& daemon, const LockHolder& holder, const Deadline& deadline, bool progress) {
  for (;;) {
    const auto ended = wait_readable({holder.process.get()}, deadline, kShowSeconds);
    if (!ended) return std::unexpected(ended.error());
    if (*ended > 0) return {};
    show_left(daemon, progress);
  }
}

int drain(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto holder = lock_holder(context->runtime_dir);
  if (!holder) {
    std::fprintf(stderr, "jitc: no daemon runs in %s\n", context->runtime_dir.c_str());
    return 0;
  }
  rpc::Daemon& daemon = daemon_client(*context);
  if (auto told = daemon.drain(); !told) return report(told.error());
  if (options.no_wait) {
    std::fprintf(stderr, "jitc: draining, pid %d\n", holder->pid);
    return 0;
  }
  const bool progress = context->settings.text("progress") != "0";
  if (auto ended = wait_for_end(daemon, *holder, deadline, progress); !ended) {
    ended.error().remedy = "the daemon goes on draining; 'jitc jobs' shows what it waits for, 'jitc cancel' ends it";
    return report(ended.error());
  }
  std::fprintf(stderr, "jitc: drained, pid %d\n", holder->pid);
  return 0;
}

CLI::App* add(CLI::App& app, Action& action, const char* name, const char* help, int (*run)(const Options&),
              std::shared_ptr<Options> options) {
  auto* command = app.add_subcommand(name, help);
  options->settings.add(*command, {"runtime_dir"});
  command->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return command;
}

}  // namespace

void add_jobs(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  add(app, action, "jobs", "what the daemon compiles, and what waits", list, options)
      ->add_flag("--json", options->json, "one JSON object");
}

void add_cancel(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = add(app, action, "cancel", "end a compile, for all that wait for it", cancel, options);
  command->add_option("ID", options->ids, "the number of a flight, or the first digits of its key: see 'jitc jobs'")
      ->required();
  command->footer("What waits for it fails with CANCELLED (exit code 9). Exit code 2: no such compile waits or runs.");
}

void add_drain(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = add(app, action, "drain", "end the daemon once it has finished what it took on", drain, options);
  command->add_flag("--no-wait", options->no_wait, "return as soon as the daemon knows");
  add_timeout(*command, options->timeout, "seconds to wait for its end; 0: no end");
  command->footer("Meanwhile it serves what is in the store, and refuses what would have to be compiled.");
}

}  // namespace jitc::cli
