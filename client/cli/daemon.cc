// jitc daemon: start, stop, status.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "client/cli/ask.h"
#include "client/cli/context.h"
#include "client/cli/jobs_text.h"
#include "client/cli/start.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;

constexpr double kQuerySeconds = 2;

struct Options {
  double timeout = 60;
  bool json = false;
  SettingFlags settings;
};

// Does it say so? Not when it does not answer, as one that comes up.
bool drains(const Context& context) {
  const auto hello = ask(context, "hello", kQuerySeconds);
  return hello && is_draining(*hello);
}

// A daemon that drains serves no new work: its successor must wait for it.
common::Result<void> wait_for_drained(const Context& context, const LockHolder& holder, const Deadline& deadline) {
  if (!drains(context)) return {};
  const std::string who = "pid " + std::to_string(holder.pid);
  say("jitc: " + who + " is draining; waiting for its end\n");
  auto ended = wait_for_end(holder, deadline);
  if (ended || ended.error().kind != ErrorKind::kTimedOut) return ended;
  return fail(ErrorKind::kDraining, "the daemon is draining and has not ended yet; no other was started", who,
              "wait for what it compiles ('jitc jobs'), or end it at once with 'jitc daemon stop'");
}

// Standard error for people, the object for scripts.
int say_state(const Options& options, const char* state, const Context& context, pid_t pid) {
  std::fprintf(stderr, "jitc: %s, pid %d, %s\n", state, pid, context.runtime_dir.c_str());
  if (options.json) std::printf("%s\n", daemon_json(state, context.runtime_dir, pid).c_str());
  return 0;
}

int start(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto before = lock_holder(context->runtime_dir);
  if (before)
    if (auto ended = wait_for_drained(*context, *before, deadline); !ended) return report(ended.error());
  if (auto serves = ensure_daemon(*context, true, deadline); !serves) return report(serves.error());
  const auto holder = lock_holder(context->runtime_dir);
  const bool same = before && holder && before->pid == holder->pid;
  return say_state(options, same ? "already running" : "started", *context, holder ? holder->pid : 0);
}

int stop(const Options& options) {
  const Deadline deadline(options.timeout);
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto holder = find_daemon(*context);
  if (!holder) {
    if (options.json) std::printf("%s\n", daemon_json("not running", context->runtime_dir, 0).c_str());
    return 0;
  }
  const std::string who = "pid " + std::to_string(holder->pid);
  if (::syscall(SYS_pidfd_send_signal, holder->process.get(), SIGTERM, nullptr, 0) != 0 && errno != ESRCH)
    return report(common::fail_errno(ErrorKind::kRefused, errno, "the daemon cannot be signalled", who).error());
  if (!wait_for_end(*holder, deadline))
    return report(fail(ErrorKind::kTimedOut, "the daemon was told to end and has not yet", who,
                       "wait, or look into jitcd.log in " + context->runtime_dir)
                      .error());
  return say_state(options, "stopped", *context, holder->pid);
}

int status(const Options& options) {
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto holder = lock_holder(context->runtime_dir);
  if (!holder)
    return report(
        fail(ErrorKind::kUnreachable, "no daemon runs", context->runtime_dir, "start one with 'jitc daemon start'")
            .error());
  const char* state = drains(*context) ? "draining" : "running";
  if (options.json) {
    std::printf("%s\n", daemon_json(state, context->runtime_dir, holder->pid).c_str());
  } else {
    std::printf("%s, pid %d, %s\n", state, holder->pid, context->runtime_dir.c_str());
  }
  return 0;
}

void add(CLI::App& daemon, Action& action, const char* name, const char* help, int (*run)(const Options&)) {
  auto options = std::make_shared<Options>();
  auto* command = daemon.add_subcommand(name, help);
  options->settings.add(*command, {"runtime_dir"});
  command->add_flag("--json", options->json, "one JSON object");
  const std::string example = std::string("jitc daemon ") + name;
  command->footer(common::help_footer("", {example, example + " --json"}));
  if (run != status) add_timeout(*command, options->timeout, "seconds to wait for it; 0: no end");
  command->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
}

}  // namespace

void add_daemon(CLI::App& app, Action& action) {
  auto* daemon = app.add_subcommand("daemon", "start, stop or find the daemon");
  daemon->require_subcommand(1);
  add(*daemon, action, "start", "start a daemon unless one runs; returns when it serves", start);
  add(*daemon, action, "stop", "end the daemon; returns when it has ended", stop);
  add(*daemon, action, "status", "does one run? Exit code 3: no", status);
}

}  // namespace jitc::cli
