// Lost ranks over a real MPI: what the others say of each other, and of the one that is lost.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <jitc/mpi.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/gate/gate.h"
#include "tests/mpi/check.h"
#include "tests/support/gate_sources.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using namespace std::chrono_literals;

// The root gives up a second after the others, and hears them; they wait for its answer as long as it takes.
Pacing pacing_of(int rank) {
  const bool is_root = rank == 0;
  return {.silence = is_root ? 2s : 1s, .beat = 100ms, .roll_call = is_root ? 1s : 30s};
}

struct Rank {
  int rank = testing::rank_of_world();
  int last = testing::size_of_world() - 1;
  ModuleTable modules;
  testing::FakeStore store;
  testing::FakeCompiler compiler;
  Gate gate;

  explicit Rank(const Pacing& pacing, Gate::OnProgress on_progress = {})
      : gate(mpi::communicator(MPI_COMM_WORLD).release(), {.pacing = pacing, .host_isa = 0xf},
             testing::services_of(modules, store, compiler), std::move(on_progress)) {}
  Outcome<Delivery> compile() { return gate.compile({testing::request_for("int a;\n"), ""}); }
};

// A time-out that names the last rank as missing, and all others with the step in which they wait.
void check_named(Rank& self, const std::string& step) {
  const auto outcome = self.compile();
  CHECK(!outcome.has_value() && outcome.error().error.kind == ErrorKind::kTimedOut);
  CHECK(outcome.error().is_broken);
  std::vector<int> here;
  for (int rank = 0; rank < self.last; ++rank) here.push_back(rank);
  const std::string& message = outcome.error().error.message;
  for (const std::string& text : {"no answer from rank " + std::to_string(self.last) + " ",
                                  name_ranks(here, self.last + 1) + " wait " + step + " call 1"})
    if (message.find(text) == std::string::npos)
      testing::fail_check(__FILE__, __LINE__, "'" + text + "' is not in: " + message);
  const auto later = self.compile();
  CHECK(!later.has_value() && later.error().error.kind == ErrorKind::kBroken);
}

// The program's own communication is undisturbed.
void absent_rank() {
  Pacing pacing = pacing_of(testing::rank_of_world());
  pacing.arrival = pacing.silence;
  Rank self(pacing);
  if (self.rank != self.last) check_named(self, "for all ranks to begin");
  CHECK_EQ(testing::total(1), self.last + 1);
}

// The last rank is stopped by SIGSTOP when it is to load; the others end, and then let it go on.
void stopped_rank() {
  const int last = testing::size_of_world() - 1;
  const bool is_lost = testing::rank_of_world() == last;
  pid_t lost = getpid();
  MPI_Bcast(&lost, sizeof lost, MPI_BYTE, last, MPI_COMM_WORLD);
  Pacing pacing = pacing_of(testing::rank_of_world());
  if (is_lost) pacing.roll_call = 100ms;  // nobody will answer it
  Rank self(pacing, [is_lost](const std::string&, const rpc::Progress& progress) {
    if (is_lost && progress.phase == rpc::Progress::Phase::kLoading) raise(SIGSTOP);
  });
  if (is_lost) {
    // MPI may complete what the others have left behind: it is right, or fails, too.
    const auto outcome = self.compile();
    CHECK(outcome.has_value() || outcome.error().error.kind == ErrorKind::kTimedOut);
  } else {
    check_named(self, "for all ranks to load");
  }
  // The others have to be through before it goes on and can answer them.
  if (self.rank == 0) {
    for (int other = 1; other < last; ++other)
      MPI_Recv(nullptr, 0, MPI_BYTE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    kill(lost, SIGCONT);
  } else if (!is_lost) {
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace jitc::gate

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  jitc::gate::absent_rank();
  jitc::gate::stopped_rank();
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
