// A solver in miniature over the public interface: compiles one source on all ranks, calls it, and tells what happened.
// The driver (daemon_mpi_test.py) runs it against real daemons and judges what it tells.
//
//   client_mpi_test SOURCE [again | elsewhere RUNTIME_DIRECTORY | rounds KEEPER | limited RANK]
//
// again:     calls a second time.
// elsewhere: a second context asks for another source in another runtime directory.
// rounds:    200 further calls; before each all ranks but KEEPER (-1: all) have given their module back.
//
// limited:   during the first of two calls RANK may grow by 16 MiB only.
//
// One line of JSON for each call (of the rounds: for the last): kind, origin, counters, seconds, when the last rank was
// through, the value of answer(2), and whether all ranks ended alike.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <jitc/mpi.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tests/mpi/told_call.h"

namespace {

using jitc::testing::is_same_everywhere;
using jitc::testing::Told;
using jitc::testing::told_compile;

double longest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

void tell(const Told& told, const jitc_stats& stats, int beats) {
  const bool is_same = is_same_everywhere(told);
  const double seconds = longest(told.seconds);
  const double ended = longest(told.ended);
  const bool beats_everywhere = jitc::testing::total(beats > 0) == jitc::testing::size_of_world();
  if (jitc::testing::rank_of_world() != 0) return;
  std::printf(
      "{\"kind\": \"%s\", \"origin\": %d, \"same\": %s, \"broken\": %s, \"value\": %g, \"seconds\": %.6f, "
      "\"ended\": %.6f, "
      "\"compilers_started\": %llu, \"store_hits\": %llu, \"memory_hits\": %llu, \"daemon_hits\": %llu, \"beats\": %s, "
      "\"error\": %s}\n",
      told.kind.c_str(), told.origin, is_same ? "true" : "false", told.is_broken ? "true" : "false", told.value,
      seconds, ended, static_cast<unsigned long long>(stats.compilers_started),
      static_cast<unsigned long long>(stats.store_hits), static_cast<unsigned long long>(stats.memory_hits),
      static_cast<unsigned long long>(stats.daemon_hits), beats_everywhere ? "true" : "false", told.error.c_str());
  std::fflush(stdout);
}

// This process may map `bytes` more than it has.
class AddressSpace {
 public:
  explicit AddressSpace(unsigned long bytes) {
    unsigned long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) + bytes;
    CHECK_EQ(setrlimit(RLIMIT_AS, &now), 0);
  }
  ~AddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  rlimit before_{};
};

// Calls on while only `keeper` holds the module; every call must give the right function on every rank.
void rounds(jitc::Context& context, const jitc::Request& request, jitc::Module& module, int keeper) {
  Told told;
  for (int round = 0; round < 200; ++round) {
    if (jitc::testing::rank_of_world() != keeper) module = jitc::Module();
    jitc::Module next;
    told = told_compile(context, request, next);
    CHECK_EQ(told.kind, "OK");
    CHECK_EQ(told.value, 84.0);
    CHECK(is_same_everywhere(told));
    module = std::move(next);
  }
  tell(told, context.stats(), 0);
}

int run(int argc, char** argv) {
  CHECK(argc >= 2);
  const std::string how = argc > 2 ? argv[2] : "";
  CHECK(argc > 3 || how.empty() || how == "again");
  {
    int beats = 0;
    jitc::Options options;
    options.progress = [&beats](const jitc::Progress&) { ++beats; };
    jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD), options);
    jitc::Request request;
    request.source = jitc::testing::read_file(argv[1]);
    request.name = "answer.c";
    jitc::Module module;
    std::optional<AddressSpace> limit;
    if (how == "limited" && jitc::testing::rank_of_world() == std::atoi(argv[3])) limit.emplace(16UL << 20);
    const Told first = told_compile(context, request, module);
    limit.reset();
    tell(first, context.stats(), beats);
    if (how == "again" || how == "limited") {
      jitc::Module second;
      const Told told = told_compile(context, request, second);
      tell(told, context.stats(), beats);
    } else if (how == "elsewhere") {
      options.settings = {{"runtime_dir", argv[3]}};
      jitc::Context other(jitc::mpi::communicator(MPI_COMM_WORLD), options);
      request.source += "/* another */\n";
      jitc::Module second;
      const Told told = told_compile(other, request, second);
      tell(told, other.stats(), beats);
    } else if (how == "rounds") {
      rounds(context, request, module, std::atoi(argv[3]));
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}
