#include "tests/bench/measure.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "common/identity.h"
#include "common/runtime_dir.h"

extern char** environ;

namespace jitc::bench {

double milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) give_up("nothing was measured");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

void give_up(const std::string& why) {
  std::fprintf(stderr, "jitc-bench: %s\n", why.c_str());
  std::exit(1);
}

ProcessCost measure_process(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const auto& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ProcessCost cost;
  cost.seconds = 1e-3 * milliseconds([&] {
                   pid_t pid = -1;
                   int status = 0;
                   rusage usage{};
                   if (::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ) != 0 ||
                       ::wait4(pid, &status, 0, &usage) != pid || status != 0) {
                     give_up(argv[0] + " failed");
                   }
                   const auto seconds_of = [](const timeval& time) {
                     return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
                   };
                   cost.processor_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
                   cost.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
                 });
  posix_spawn_file_actions_destroy(&actions);
  return cost;
}

void run(const std::vector<std::string>& argv) { measure_process(argv); }

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) give_up("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string fresh(std::string_view text) {
  static std::mt19937_64 random{std::random_device{}()};
  return std::string(text) + "/* " + std::to_string(random()) + " */\n";
}

std::unique_ptr<rpc::Daemon, void (*)(rpc::Daemon*)> open_daemon(const Places& places) {
  const std::string socket = places.runtime_dir + "/" + common::kSocketName;
  return {jitc_rpc_open(rpc::interface_version(common::build_version()), socket.c_str()), jitc_rpc_close};
}

common::Request request_of(std::string text) {
  common::Request request;
  request.origin = std::move(text);
  request.flags = {"-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"};
  return request;
}

std::string compile(rpc::Daemon& daemon, const common::Request& request) {
  std::string path;
  rpc::Daemon::Events events;
  events.reply = [&](const rpc::Reply& reply) { path = reply.path; };
  events.failure = [](const common::Error& error) { give_up(common::to_line(error)); };
  rpc::Daemon::Options options;
  options.want_bytes = false;
  daemon.compile(request, options, events);
  return path;
}

std::optional<double> pss_kib(pid_t pid) {
  std::ifstream text("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("Pss:")) return std::stod(line.substr(4));
  return std::nullopt;
}

void print_row(std::string_view name, double ours, double peer, std::string_view peer_name, std::string_view target) {
  std::printf("%-46.*s %10.3f ms   %-24.*s %10.3f ms   ratio %7.4f   target %.*s\n", static_cast<int>(name.size()),
              name.data(), ours, static_cast<int>(peer_name.size()), peer_name.data(), peer, ours / peer,
              static_cast<int>(target.size()), target.data());
  std::fflush(stdout);
}

}  // namespace jitc::bench
