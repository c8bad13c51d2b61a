// jitc jobs, cancel, drain: what the daemon is doing, and how to end one thing of it or all.
#include <algorithm>
#include <cstdio>

#include "client/cli/ask.h"
#include "client/cli/context.h"
#include "client/cli/jobs_text.h"
#include "client/cli/start.h"
#include "client/cli/watch.h"

namespace jitc::cli {
namespace {

using common::Result;

constexpr double kQuerySeconds = 10;

struct Options {
  std::vector<std::string> ids;
  bool json = false;
  bool no_wait = false;
  double timeout = 0;
  SettingFlags settings;
};

// As the daemon has them now.
Result<std::vector<JobInfo>> ask_for_jobs(const Context& context, const Deadline& deadline) {
  const auto answer = ask(context, "jobs", kQuerySeconds, deadline);
  if (!answer) return std::unexpected(answer.error());
  return jobs_of(*answer);
}

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int list(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto answer = ask(*context, "jobs", kQuerySeconds);
  if (!answer) return report(answer.error());
  const std::string text = options.json ? *answer + "\n" : jobs_table(jobs_of(*answer), locale_is_utf8());
  put(text);
  if (is_draining(*answer)) say("jitc: the daemon is draining: it ends when these have\n");
  return 0;
}

Result<JobInfo> cancel_one(const Context& context, const std::string& id) {
  const Deadline no_end(0);
  const auto jobs = ask_for_jobs(context, no_end);
  if (!jobs) return std::unexpected(jobs.error());
  auto job = find_job(*jobs, id, locale_is_utf8());
  if (!job) return job;
  const auto limits = short_call(context, kQuerySeconds);
  auto cancelled = daemon_client(context).cancel(job->flight, limits);
  if (!cancelled) return std::unexpected(explained(context, std::move(cancelled.error()), limits));
  return job;
}

// Each that can be; the exit code is that of the first that cannot.
int cancel(const Options& options) {
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  int code = 0;
  for (const auto& id : options.ids) {
    const auto job = cancel_one(*context, id);
    if (!job) {
      const int failed = report(job.error());
      if (code == 0) code = failed;
    }
    if (options.json) {
      put(cancelled_json(id, job) + "\n");
    } else if (job) {
      put("cancelled " + description(*job, locale_is_utf8()) + "\n");
    }
    if (interrupted()) break;
  }
  return code;
}

void show_left(const Context& context, const Deadline& deadline, bool progress) {
  const auto jobs = ask_for_jobs(context, deadline);
  if (!jobs || !progress) return;  // at its end it answers nobody
  const auto queued = std::ranges::count(*jobs, "queued", &JobInfo::phase);
  std::fprintf(stderr, "jitc: draining, %td running, %td queued\n", std::ssize(*jobs) - queued, queued);
}

// Standard error for people, the object for scripts.
int say_state(const Options& options, const char* state, const Context& context, pid_t pid) {
  if (pid != 0) std::fprintf(stderr, "jitc: %s, pid %d\n", state, pid);
  if (options.json) put(daemon_json(state, context.runtime_dir, pid) + "\n");
  return 0;
}

int drain(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto holder = find_daemon(*context);
  if (!holder) return say_state(options, "not running", *context, 0);
  const auto limits = short_call(*context, kQuerySeconds, deadline);
  auto told = daemon_client(*context).drain(limits);
  if (!told) return report(explained(*context, std::move(told.error()), limits, deadline));
  if (options.no_wait) return say_state(options, "draining", *context, holder->pid);
  const bool progress = context->settings.text("progress") != "0";
  const auto tell = [&] { show_left(*context, deadline, progress); };
  if (auto ended = wait_for_end(*holder, deadline, tell); !ended) {
    ended.error().remedy = "the daemon goes on draining; 'jitc jobs' shows what it waits for, 'jitc cancel' ends it";
    return report(ended.error());
  }
  return say_state(options, "drained", *context, holder->pid);
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
  auto* command = add(app, action, "jobs", "what the daemon compiles, and what waits", list, options);
  command->add_flag("--json", options->json, "one JSON object");
  command->footer(common::help_footer("", {"jitc jobs", "jitc jobs --json"}));
}

void add_cancel(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = add(app, action, "cancel", "end a compile, for all that wait for it", cancel, options);
  command->add_option("ID", options->ids, "the number of a flight, or the first digits of its key: see 'jitc jobs'")
      ->required();
  command->add_flag("--json", options->json, "one JSON object for each ID");
  command->footer(common::help_footer(
      "What waits for it fails with CANCELLED (exit code 9). Exit code 2: no such compile waits or runs.",
      {"jitc cancel 7", "jitc cancel --json 8f02"}));
}

void add_drain(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = add(app, action, "drain", "end the daemon once it has finished what it took on", drain, options);
  command->add_flag("--no-wait", options->no_wait, "return as soon as the daemon knows");
  command->add_flag("--json", options->json, "one JSON object");
  add_timeout(*command, options->timeout, "seconds to wait for its end; 0: no end");
  command->footer(
      common::help_footer("Meanwhile it serves what is in the store, and refuses what would have to be compiled.",
                          {"jitc drain", "jitc drain --no-wait --json"}));
}

}  // namespace jitc::cli
