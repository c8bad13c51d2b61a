// A warm hit by each way: the store read directly, the daemon's look-up, the command as a process.
#include <fstream>
#include <jitc/jitc.hpp>

#include "client/loader/module.h"
#include "common/identity.h"
#include "common/store_reader.h"
#include "tests/bench/look_up.h"
#include "tests/bench/measure.h"

namespace jitc::bench {
namespace {

void must(bool ok, const char* what) {
  if (!ok) give_up(what);
}

// Key, store read, verification and load: what the root does on a hit, without any daemon.
void direct_hit(const Places& places, const common::Request& request) {
  const auto identity = common::read_identity(places.runtime_dir);
  must(identity.has_value(), "no identity file");
  const auto resolved = common::resolve(request, *identity);
  must(resolved.has_value(), "the request does not resolve");
  common::StoredArtifact artifact;
  must(common::StoreReader(common::store_layers(*identity)).look_up(resolved->key, artifact) ==
           common::LookupOutcome::kFound,
       "no hit");
  must(loader::Module::load(artifact.bytes, &resolved->key, {common::host_isa(), {}}).has_value(), "not loaded");
}

std::vector<double> in_process(const std::string& text) {
  Context context;
  Request request;
  request.source = text;
  const Module module = context.compile(request);
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) times.push_back(milliseconds([&] { (void)context.compile(request); }));
  return times;
}

void print_quantiles(const char* name, const std::vector<double>& times, const char* target) {
  std::printf("%-46s p50 %7.4f ms  p99 %7.4f ms   target %s\n", name, median(times), quantile(times, 0.99), target);
}

}  // namespace

void hits(const Places& places) {
  const auto daemon = open_daemon(places);
  const std::string text = fresh(read_text(places.scratch + "/stokes_shared.c"));
  const common::Request request = request_of(text);
  compile(*daemon, request);
  const auto identity = common::read_identity(places.runtime_dir);
  must(identity.has_value(), "no identity file");
  const common::Digest key = common::resolve(request, *identity)->key;
  LookUp by_rpc(places.runtime_dir);
  std::vector<double> direct, lookup, rpc, process, ccache;
  for (int i = 0; i < 2000; ++i)
    lookup.push_back(milliseconds([&] { must(by_rpc.finds(key), "the look-up found nothing"); }));
  for (int i = 0; i < 500; ++i) direct.push_back(milliseconds([&] { direct_hit(places, request); }));
  for (int i = 0; i < 2000; ++i) rpc.push_back(milliseconds([&] { compile(*daemon, request); }));
  print_quantiles("direct hit (identity, store, verify, load)", direct, "p50 0.3 ms");
  print_quantiles("Lookup by RPC (key sent, path answered)", lookup, "p50 0.2 ms, p99 2 ms");
  print_quantiles("Compile by RPC, a hit (source sent)", rpc, "-");
  print_quantiles("in-process table (libjitc, one rank)", in_process(text), "p50 0.005 ms");
  const std::string file = places.scratch + "/hit.c";
  std::ofstream(file) << text;
  const std::vector<std::string> ours{places.bin + "/jitc", "submit", file};
  const std::vector<std::string> peer{"ccache", "gcc", "-O3", "-fPIC", "-c", "-o", places.scratch + "/hit.o", file};
  run(ours);
  run(peer);
  for (int i = 0; i < 50; ++i) {
    process.push_back(milliseconds([&] { run(ours); }));
    ccache.push_back(milliseconds([&] { run(peer); }));
  }
  print_row("hit, jitc submit", median(process), median(ccache), "ccache gcc -c, hit", "0.5");
}

}  // namespace jitc::bench
