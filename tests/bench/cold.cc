// Cold latency: a source that no cache has seen, from submit to a verified path, against gcc as a process.
#include <fstream>

#include "common/artifact.h"
#include "common/files.h"
#include "tests/bench/measure.h"

namespace jitc::bench {
namespace {

constexpr int kRounds = 15;

constexpr std::string_view kTiny = R"(#include <math.h>
typedef double PetscScalar;
void f1(const PetscScalar u[], const PetscScalar u_x[], const PetscScalar constants[], PetscScalar out[])
{
  const double s = sqrt(u_x[0]*u_x[0] + u_x[1]*u_x[1] + constants[1]);
  const double k = constants[0]*pow(s, constants[2]);
  out[0] = k*u_x[0] - u[0];
  out[1] = k*u_x[1] - u[0];
}
void f0(const PetscScalar u[], const PetscScalar x[], PetscScalar out[])
{
  out[0] = exp(-x[0]*x[0]) * sin(u[0]);
}
)";

struct Case {
  std::string name;
  std::string text;
  std::string target_library, target_process;
};

void verify(const std::string& path) {
  const auto bytes = common::read_file(path);
  if (!bytes || !common::verify_artifact(*bytes)) give_up("the artifact does not verify: " + path);
}

void measure(const Places& places, rpc::Daemon& daemon, const Case& sample) {
  std::vector<double> library, process, gcc;
  for (int round = -1; round < kRounds; ++round) {  // the first round warms up
    const double by_library = milliseconds([&] { verify(compile(daemon, request_of(fresh(sample.text)))); });
    const std::string file = places.scratch + "/cold.c";
    std::ofstream(file) << fresh(sample.text);
    const double by_process = milliseconds([&] { run({places.bin + "/jitc", "submit", file}); });
    const double by_gcc =
        milliseconds([&] { run({"gcc", "-O3", "-shared", "-fPIC", "-o", places.scratch + "/cold.so", file, "-lm"}); });
    if (round < 0) continue;
    library.push_back(by_library);
    process.push_back(by_process);
    gcc.push_back(by_gcc);
  }
  print_row(sample.name + ", library", median(library), median(gcc), "gcc -O3 -shared", sample.target_library);
  print_row(sample.name + ", jitc submit", median(process), median(gcc), "gcc -O3 -shared", sample.target_process);
}

}  // namespace

void cold(const Places& places) {
  const auto daemon = open_daemon(places);
  measure(places, *daemon, {"cold tiny", std::string(kTiny), "0.15", "0.35"});
  measure(places, *daemon, {"cold shared Stokes", read_text(places.scratch + "/stokes_shared.c"), "0.35", "-"});
}

}  // namespace jitc::bench
