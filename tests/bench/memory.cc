// The daemon's and the worker's own memory before and after many submits.
#include "common/files.h"
#include "common/identity.h"
#include "tests/bench/measure.h"

namespace jitc::bench {
namespace {

constexpr int kSubmits = 10'000;

std::vector<pid_t> children_of(pid_t pid) {
  const auto text = common::read_file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
  std::vector<pid_t> pids;
  if (!text) return pids;
  for (std::size_t at = 0; at < text->size();) {
    pids.push_back(static_cast<pid_t>(std::stol(text->substr(at))));
    at = text->find(' ', at);
    if (at == std::string::npos) break;
    ++at;
    if (text->find_first_not_of(" \n", at) == std::string::npos) break;
  }
  return pids;
}

void print(const char* when, pid_t daemon) {
  const auto workers = children_of(daemon);
  if (workers.empty()) give_up("the daemon has no worker");
  double spares = 0;
  for (const pid_t spare : children_of(workers.front()))
    spares += pss_kib(spare).value_or(0);  // one may just have ended
  const auto of_daemon = pss_kib(daemon), of_worker = pss_kib(workers.front());
  if (!of_daemon || !of_worker) give_up("the daemon or its worker has ended");
  std::printf("%-34s daemon %6.1f MiB   worker %6.1f MiB   spares %6.1f MiB   (PSS; targets 25, 45)\n", when,
              *of_daemon / 1024, *of_worker / 1024, spares / 1024);
  std::fflush(stdout);
}

}  // namespace

void memory(const Places& places) {
  const auto identity = common::read_identity(places.runtime_dir);
  if (!identity) give_up("no identity file");
  const auto pid = static_cast<pid_t>(identity->pid);
  const auto daemon = open_daemon(places);
  const std::string tiny = "double f(double x) { return x * x; }\n";
  for (int i = 0; i < 100; ++i) compile(*daemon, request_of(fresh(tiny)));
  print("after 100 submits", pid);
  for (int i = 0; i < kSubmits; ++i) compile(*daemon, request_of(fresh(tiny)));
  print(("after " + std::to_string(kSubmits) + " more").c_str(), pid);
}

}  // namespace jitc::bench
