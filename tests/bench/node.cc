// Large compiles under a small budget: whether any is lost, how much memory the service takes, and how long it takes,
// beside plain compilers in a control group of the same size.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/api/sharing.h"
#include "common/identity.h"
#include "daemon/worker/delegation.h"
#include "daemon/worker/process_tree.h"
#include "tests/bench/measure.h"
#include "tests/bench/plain_compilers.h"

namespace jitc::bench {
namespace {

constexpr int kVariants = 20;
constexpr std::chrono::milliseconds kSample{20};
constexpr double kMiB = 1 << 20;

nlohmann::json stats_of(rpc::Daemon& daemon) {
  const auto text = daemon.query("stats", {.seconds = 10});
  if (!text) give_up(common::to_line(text.error()));
  return nlohmann::json::parse(*text);
}

// The largest sum of resident bytes of the daemon and all that descend from it, as seen from outside while `work` runs.
// Pages that two of them share count twice.
std::uint64_t peak_resident_during(pid_t daemon, const std::function<void()>& work) {
  std::uint64_t peak = 0;
  std::jthread sampler([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      peak = std::max(peak, worker::use_of_tree(daemon).resident_bytes);
      std::this_thread::sleep_for(kSample);
    }
  });
  work();
  sampler.request_stop();
  sampler.join();
  return peak;
}

struct Load {
  std::string compiler, share, level;
};

void through_the_daemon(const char* name, rpc::Daemon& daemon, pid_t pid, const std::string& text, const Load& load) {
  const auto before = stats_of(daemon);
  double seconds = 0;
  const std::uint64_t resident = peak_resident_during(pid, [&] {
    seconds = 1e-3 * milliseconds([&] {
                std::vector<std::jthread> clients;
                for (int i = 0; i < kVariants; ++i) {
                  clients.emplace_back([&] {
                    auto request = request_of(fresh(text));
                    request.compiler = load.compiler;
                    request.share = load.share;
                    request.flags.front() = load.level;
                    if (api::wants_sharing(request)) request.code = api::shared_text(request);
                    compile(daemon, request);
                  });
                }
              });
  });
  const auto after = stats_of(daemon);
  const auto grown = [&](const char* counter) {
    return after.at(counter).get<std::uint64_t>() - before.at(counter).get<std::uint64_t>();
  };
  std::printf(
      "%-48s %8.1f s   lost %llu   retries %llu   peak of compiles %7.0f MiB   daemon and all %7.0f MiB (RSS)\n", name,
      seconds, static_cast<unsigned long long>(grown("compiles_failed")),
      static_cast<unsigned long long>(grown("retries")),
      static_cast<double>(after.at("memory_peak_bytes").get<std::uint64_t>()) / kMiB,
      static_cast<double>(resident) / kMiB);
  std::fflush(stdout);
}

}  // namespace

void node(const Places& places) {
  const auto identity = common::read_identity(places.runtime_dir);
  if (!identity) give_up("no identity file");
  const std::string text = read_text(places.scratch + "/level_sets_16.c");
  const auto daemon = open_daemon(places);
  const auto budget = stats_of(*daemon).at("memory_budget_bytes").get<std::uint64_t>();
  std::printf("%d variants of level_sets_16, a budget of %.0f MiB\n", kVariants, static_cast<double>(budget) / kMiB);
  through_the_daemon("through the daemon, gcc -O0, not shared", *daemon, static_cast<pid_t>(identity->pid), text,
                     {"gcc", "0", "-O0"});
  through_the_daemon("through the daemon, embedded, shared, -O3", *daemon, static_cast<pid_t>(identity->pid), text,
                     {"clang", "1", "-O3"});
  std::vector<std::vector<std::string>> commands;
  for (int i = 0; i < kVariants; ++i) {
    const std::string source = places.scratch + "/large" + std::to_string(i) + ".c";
    std::ofstream(source) << fresh(text);
    commands.push_back({"gcc", "-O0", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                        "-fPIC", "-shared", "-o", source + ".so", source, "-lm"});
  }
  const auto delegation = worker::Delegation::find();
  if (!delegation) give_up(common::to_line(delegation.error()));
  for (const std::size_t parallel : {std::size_t{1}, std::size_t{2}, std::size_t{kVariants}}) {
    auto group = worker::ControlGroup::make(delegation->place());
    if (!group) give_up(common::to_line(group.error()));
    if (auto limited = group->limit_memory(budget); !limited) give_up(common::to_line(limited.error()));
    const PlainRun plain = run_plain(commands, parallel, &*group);
    group->remove();
    std::printf("%-48s %8.1f s   lost %d\n",
                ("plain gcc, " + std::to_string(parallel) + " at a time, group of the budget").c_str(), plain.seconds,
                plain.failed);
    std::fflush(stdout);
  }
}

}  // namespace jitc::bench
