// jitc-bench NAME BIN SCRATCH [ARTIFACTS]: measurements against a daemon that bench.sh started; `store` starts its own.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "common/runtime_dir.h"
#include "common/settings.h"
#include "tests/bench/measure.h"

int main(int argc, char** argv) {
  using namespace jitc;
  const std::map<std::string, void (*)(const bench::Places&)> benches{
      {"cold", bench::cold},   {"hits", bench::hits}, {"herd", bench::herd},     {"memory", bench::memory},
      {"graph", bench::graph}, {"node", bench::node}, {"jitter", bench::jitter}, {"store", bench::store}};
  if (argc < 4 || argc > 5 || !benches.contains(argv[1]))
    bench::give_up("usage: jitc-bench cold|hits|herd|memory|graph|node|jitter|store BIN SCRATCH [ARTIFACTS]");
  const auto settings = common::Settings::load();
  if (!settings) bench::give_up(common::to_line(settings.error()));
  bench::Places places;
  places.bin = argv[2];
  places.scratch = argv[3];
  places.runtime_dir = common::runtime_directory(settings->text("runtime_dir"));
  places.store = settings->text("store");
  if (argc == 5) places.artifacts = static_cast<std::size_t>(std::atoll(argv[4]));
  benches.at(argv[1])(places);
  return 0;
}
