// jitc-bench NAME BIN SCRATCH: measurements against a daemon that bench.sh started.
#include <cstdio>
#include <map>
#include <string>

#include "common/runtime_dir.h"
#include "common/settings.h"
#include "tests/bench/measure.h"

int main(int argc, char** argv) {
  using namespace jitc;
  const std::map<std::string, void (*)(const bench::Places&)> benches{
      {"cold", bench::cold},   {"hits", bench::hits}, {"herd", bench::herd},    {"memory", bench::memory},
      {"graph", bench::graph}, {"node", bench::node}, {"jitter", bench::jitter}};
  if (argc != 4 || !benches.contains(argv[1]))
    bench::give_up("usage: jitc-bench cold|hits|herd|memory|graph|node|jitter BIN SCRATCH");
  const auto settings = common::Settings::load();
  if (!settings) bench::give_up(common::to_line(settings.error()));
  bench::Places places;
  places.bin = argv[2];
  places.scratch = argv[3];
  places.runtime_dir = common::runtime_directory(settings->text("runtime_dir"));
  places.store = settings->text("store");
  benches.at(argv[1])(places);
  return 0;
}
