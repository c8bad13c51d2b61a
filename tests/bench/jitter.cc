// A thread of a solver on the same node wakes every millisecond: how late, while nothing else runs, while the daemon
// compiles, and while as many plain compilers run.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/bench/measure.h"
#include "tests/bench/plain_compilers.h"

namespace jitc::bench {
namespace {

constexpr int kCompiles = 50;
constexpr long kNanoseconds = 1'000'000'000;
constexpr long kBeat = 1'000'000;
constexpr std::chrono::seconds kIdle{5};

long now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNanoseconds + time.tv_nsec;
}

// Lateness of each beat while `work` runs; microseconds.
std::vector<double> lateness_during(const std::function<void()>& work) {
  std::vector<double> late;
  std::jthread beat([&late](const std::stop_token& stop) {
    for (long next = now() + kBeat; !stop.stop_requested();) {
      const timespec until{next / kNanoseconds, next % kNanoseconds};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      const long woken = now();
      late.push_back(1e-3 * static_cast<double>(woken - next));
      next = std::max(next + kBeat, woken);  // a beat that was missed is one late beat, not many
    }
  });
  work();
  beat.request_stop();
  beat.join();
  return late;
}

void print(const char* name, double seconds, const std::vector<double>& late) {
  std::printf("%-46s %8.1f s   late by p50 %8.1f us   p99 %8.1f us   most %8.1f us\n", name, seconds, median(late),
              quantile(late, 0.99), quantile(late, 1.0));
  std::fflush(stdout);
}

template <class Work>
void measure(const char* name, Work work) {
  double seconds = 0;
  const auto late = lateness_during([&] { seconds = 1e-3 * milliseconds(work); });
  print(name, seconds, late);
}

}  // namespace

void jitter(const Places& places) {
  const std::string text = read_text(places.scratch + "/vp_stokes_3d.c");
  const auto daemon = open_daemon(places);
  measure("a beat per millisecond, idle", [] { std::this_thread::sleep_for(kIdle); });
  const auto submit_all = [&](const std::string& compiler) {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kCompiles; ++i) {
      clients.emplace_back([&] {
        auto request = request_of(fresh(text));
        request.compiler = compiler;
        compile(*daemon, request);
      });
    }
  };
  measure("beside 50 compiles of the daemon", [&] { submit_all("clang"); });
  measure("beside 50 compiles of the daemon by gcc", [&] { submit_all("gcc"); });
  std::vector<std::vector<std::string>> commands;
  for (int i = 0; i < kCompiles; ++i) {
    const std::string source = places.scratch + "/beat" + std::to_string(i) + ".c";
    std::ofstream(source) << fresh(text);
    commands.push_back({"gcc", "-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                        "-fPIC", "-shared", "-o", source + ".so", source, "-lm"});
  }
  measure("beside 50 plain gcc at once", [&] { run_plain(commands, kCompiles, nullptr); });
}

}  // namespace jitc::bench
