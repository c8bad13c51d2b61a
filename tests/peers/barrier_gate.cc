// The gate that this project began with, in its shortest form: a barrier inside a branch that each rank takes by what
// it sees itself. Where all see the same it works; where they do not, the ranks wait for each other in different
// places, for ever. tests/mpi/barrier_gate_test.py watches both.
//
//   barrier_gate VIEW     a view of tests/mpi/views.h
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/mpi/views.h"

namespace {

// In one write, so that the lines of several ranks do not mix.
void tell(int rank, const char* what) {
  const std::string line = "rank " + std::to_string(rank) + ": " + what + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::perror("write");
}

void barrier_gate(MPI_Comm comm, int rank, bool is_cached) {
  if (is_cached) return;
  if (rank == 0) tell(rank, "compiles and publishes");
  tell(rank, "waits in the gate");
  MPI_Barrier(comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const jitc::testing::View* view = argc == 2 ? jitc::testing::view_named(argv[1]) : nullptr;
  if (!view) {
    std::fprintf(stderr, "usage: barrier_gate VIEW\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  // A duplicate, as jitc's gate has one: the barrier can meet nothing but a barrier of the gate.
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  barrier_gate(comm, rank, view->sees(rank, ranks));
  tell(rank, "is through the gate and waits for the others");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (rank == 0) tell(rank, "all are through");
  return 0;
}
