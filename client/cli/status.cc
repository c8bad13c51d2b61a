// jitc status: who serves, and what it is doing.
#include "client/cli/status_text.h"

#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/cli/context.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

constexpr double kQuerySeconds = 10;

// A process's age; below 0: not known.
double age_of(pid_t pid) {
  const std::uint64_t start = common::process_start_time(pid);
  timespec now{};
  if (start == 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - static_cast<double>(start) / ticks;
}

int run(const SettingFlags& flags) {
  const auto context = Context::load(flags);
  if (!context) return report(context.error());
  rpc::Daemon& daemon = daemon_client(*context);
  std::array<std::string, 3> answers;
  constexpr std::array<std::string_view, 3> kQueries = {"hello", "jobs", "stats"};
  for (std::size_t i = 0; i < kQueries.size(); ++i) {
    auto answer = daemon.query(kQueries[i], kQuerySeconds);
    if (!answer) return report(answer.error());
    answers[i] = std::move(*answer);
  }
  const auto pid = nlohmann::json::parse(answers[0]).value("pid", std::int64_t{0});
  std::fputs(status_text(answers[0], answers[1], answers[2], age_of(static_cast<pid_t>(pid))).c_str(), stdout);
  std::printf("socket     %s\n", context->socket().c_str());
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto flags = std::make_shared<SettingFlags>();
  auto* status = app.add_subcommand("status", "the daemon, its store, and what runs and waits");
  flags->add(*status, {"runtime_dir"});
  status->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

}  // namespace jitc::cli
