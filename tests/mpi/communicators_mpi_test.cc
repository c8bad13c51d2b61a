// Which communicators the gate takes, over a real MPI, and what becomes of them: parts of the ranks at work at the same
// time, communicators that the caller frees, contexts that are opened and closed again and again.
//
//   communicators_mpi_test ROUNDS OPENED     calls in each part; how often a context is opened and closed
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/mpi/gate_rank.h"

namespace jitc::gate {
namespace {

using testing::check_delivered;
using testing::kind_of;
using testing::Rank;
using testing::source;
using testing::total;

// Frees the communicator at the end, unless that was done before.
class Part {
 public:
  Part(int color, int key) { MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm_); }
  ~Part() { free(); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  MPI_Comm comm() const { return comm_; }
  void free() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Counts the duplicates of a communicator that are alive in this process, by an attribute that MPI copies with it.
class Duplicates {
 public:
  explicit Duplicates(MPI_Comm comm) : comm_(comm) {
    const auto copied = [](MPI_Comm, int, void*, void* value, void* copy, int* is_kept) {
      ++*static_cast<int*>(value);
      *static_cast<void**>(copy) = value;
      *is_kept = 1;
      return MPI_SUCCESS;
    };
    const auto deleted = [](MPI_Comm, int, void* value, void*) {
      --*static_cast<int*>(value);
      return MPI_SUCCESS;
    };
    MPI_Comm_create_keyval(copied, deleted, &keyval_, nullptr);
    MPI_Comm_set_attr(comm_, keyval_, &alive_);
  }
  ~Duplicates() {
    MPI_Comm_delete_attr(comm_, keyval_);
    MPI_Comm_free_keyval(&keyval_);
  }
  Duplicates(const Duplicates&) = delete;
  Duplicates& operator=(const Duplicates&) = delete;
  int alive() const { return alive_; }

 private:
  MPI_Comm comm_;
  int keyval_ = MPI_KEYVAL_INVALID;
  int alive_ = 0;
};

// Two parts of the ranks, each over its own communicator, compile different modules at the same time; between that all
// ranks compile together.
void parts_at_once(int rounds, const std::string& name, int color, int key) {
  Part part(color, key);
  Rank everybody;
  Rank self({}, part.comm());
  for (int round = 0; round < rounds; ++round) {
    const std::string text = source(name + std::to_string(color) + "_", round);
    check_delivered(self.compile(text), text, Origin::kCompiled);
    if (round % 4 != 0) continue;
    const std::string common_text = source(name, round);
    check_delivered(everybody.compile(common_text), common_text, Origin::kCompiled);
  }
  CHECK_EQ(total(self.compiler.compiles, part.comm()), rounds);
  CHECK_EQ(total(everybody.compiler.compiles), (rounds + 3) / 4);
}

void halves_at_once(int rounds) {
  const int rank = testing::rank_of_world();
  const int size = testing::size_of_world();
  parts_at_once(rounds, "half", rank < (size + 1) / 2, rank);
  // In reverse: rank 0 of a part is another one than it seems.
  parts_at_once(rounds, "parity", rank % 2, -rank);
}

// Ranks that have no part in it are not waited for.
void one_half_alone() {
  const int rank = testing::rank_of_world();
  Part part(rank % 2, rank);
  long compiles = 0;
  if (rank % 2 == 0) {
    Rank self({}, part.comm());
    check_delivered(self.compile("int a;\n"), "int a;\n", Origin::kCompiled);
    compiles = self.compiler.compiles;
  }
  CHECK_EQ(total(compiles), 1);
}

void freed_by_the_user(int rounds) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < 3; ++i) {
    Part part(0, testing::rank_of_world());
    ranks.push_back(std::make_unique<Rank>(GateOptions(), part.comm()));
    const std::string before = source("before", i);
    check_delivered(ranks.back()->compile(before), before, Origin::kCompiled);
    part.free();
    for (int round = 0; round < rounds; ++round) {
      const std::string text = source("freed", round);
      for (const auto& self : ranks) check_delivered(self->compile(text), text, Origin::kCompiled);
    }
  }
}

void opened_and_closed(int rounds) {
  Part part(0, testing::rank_of_world());
  const Duplicates duplicates(part.comm());
  for (int round = 0; round < rounds; ++round) {
    Rank self({}, part.comm());
    CHECK_EQ(duplicates.alive(), 1);
    if (round % 8 != 0) continue;
    const std::string text = source("opened", round);
    check_delivered(self.compile(text), text, Origin::kCompiled);
  }
  CHECK_EQ(duplicates.alive(), 0);
}

// The same on all ranks, and nothing is left of the attempt.
void refused() {
  CHECK_EQ(kind_of(MPI_COMM_NULL), JITC_USAGE);
  if (testing::size_of_world() < 2) return;
  const int rank = testing::rank_of_world();
  const Part half(rank % 2, rank);
  MPI_Comm both = MPI_COMM_NULL;
  MPI_Intercomm_create(half.comm(), 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 1, &both);
  {
    const Duplicates duplicates(both);
    CHECK_EQ(kind_of(both), JITC_USAGE);
    CHECK_EQ(duplicates.alive(), 0);
  }
  MPI_Comm_free(&both);
  CHECK_EQ(kind_of(MPI_COMM_WORLD), JITC_OK);
}

}  // namespace

void run(int rounds, int opened) {
  halves_at_once(rounds);
  one_half_alone();
  freed_by_the_user(rounds);
  opened_and_closed(opened);
  refused();
}

}  // namespace jitc::gate

int main(int argc, char** argv) {
  const jitc_kind before = jitc::testing::kind_of(MPI_COMM_WORLD);
  MPI_Init(&argc, &argv);
  CHECK_EQ(before, JITC_USAGE);
  CHECK_EQ(argc, 3);
  jitc::gate::run(std::atoi(argv[1]), std::atoi(argv[2]));
  // A program's last objects may end after MPI has.
  std::optional<jitc::testing::Rank> gate(std::in_place);
  jitc::testing::check_delivered(gate->compile("int last;\n"), "int last;\n", jitc::gate::Origin::kCompiled);
  std::optional<jitc::Context> context(jitc::mpi::communicator(MPI_COMM_WORLD));
  const bool is_root = jitc::testing::rank_of_world() == 0;
  MPI_Finalize();
  gate.reset();
  context.reset();
  CHECK_EQ(jitc::testing::kind_of(MPI_COMM_WORLD), JITC_USAGE);
  if (is_root) std::puts("all ranks agree");
  return 0;
}
