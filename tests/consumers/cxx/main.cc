// Compiles a C text once for all ranks, calls it on each, and tells the value and the compilers that were started.
#include <mpi.h>

#include <cstdio>
#include <jitc/jitc.hpp>
#include <jitc/mpi.hpp>

namespace {

void run() {
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
  jitc::Request request;
  request.name = "twice.c";
  request.source = "double twice(double x) { return 2.0 * x; }\n";
  const jitc::Module module = context.compile(request);
  const double value = module.symbol<double(double)>("twice")(21.0);

  int rank = 0, ranks = 0;
  double sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("ranks %d, mean %g, compilers started %d\n", ranks, sum / ranks,
                static_cast<int>(context.stats().compilers_started));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    run();
  } catch (const jitc::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
