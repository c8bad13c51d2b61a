// Ranks that see different things, over a real MPI: the deadlock that this project began with (rank 0 sees the
// artifact, the others do not) and its mirror images. The same ranks under a gate with a barrier in a branch do not
// end: barrier_gate_test.py.
//
//   views_mpi_test CALLS [VIEW]     CALLS calls in each view, or in one, of the store and of the memory
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/mpi/gate_rank.h"
#include "tests/mpi/views.h"

namespace jitc::gate {
namespace {

using testing::check_delivered;
using testing::Rank;
using testing::source;
using testing::total;

// What each rank sees is in the store. The root's view decides, and it alone looks.
void views_of_the_store(const testing::View& view, int calls) {
  Rank self;
  const bool root_sees = view.sees(0, self.size);
  self.store.has_it = view.sees(self.rank, self.size);
  for (int call = 1; call <= calls; ++call) {
    const std::string text = source("stored", call);
    check_delivered(self.compile(text), text, root_sees ? Origin::kStore : Origin::kCompiled);
  }
  CHECK_EQ(total(self.compiler.compiles), root_sees ? 0 : calls);
  CHECK_EQ(total(self.store.lookups), calls);
}

// What each rank sees is in its memory, from an earlier call that others did not make.
void views_of_the_memory(const testing::View& view, int calls) {
  Rank self;
  const bool root_holds = view.sees(0, self.size);
  const bool all_hold = total(view.sees(self.rank, self.size)) == self.size;
  const Origin origin = all_hold ? Origin::kMemory : root_holds ? Origin::kRank : Origin::kCompiled;
  for (int call = 1; call <= calls; ++call) {
    const std::string text = source("held", call);
    std::shared_ptr<loader::Module> held;
    if (view.sees(self.rank, self.size)) held = self.hold(testing::request_for(text));
    check_delivered(self.compile(text), text, origin);
  }
  CHECK_EQ(total(self.compiler.compiles), root_holds ? 0 : calls);
  CHECK_EQ(total(self.store.lookups), root_holds ? 0 : calls);
}

}  // namespace

void run(const testing::View& view, int calls) {
  testing::under_way() = "view " + std::string(view.name);
  views_of_the_store(view, calls);
  views_of_the_memory(view, calls);
}

}  // namespace jitc::gate

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2 || argc == 3);
  const int calls = std::atoi(argv[1]);
  CHECK(calls > 0);
  if (argc == 3) {
    const jitc::testing::View* view = jitc::testing::view_named(argv[2]);
    CHECK(view != nullptr);
    jitc::gate::run(*view, calls);
  } else {
    for (const jitc::testing::View& view : jitc::testing::kViews) jitc::gate::run(view, calls);
  }
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
