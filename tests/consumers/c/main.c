/* Compiles a C text once for all ranks, calls it on each, and tells the value and the compilers that were started. */
#include <jitc/jitc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "communicator.h"

typedef double (*function)(double);

static void demand(jitc_kind kind, jitc_error* error) {
  if (kind == JITC_OK) return;
  fprintf(stderr, "%s\n", jitc_error_text(error));
  jitc_error_free(error);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

int main(int argc, char** argv) {
  jitc_communicator communicator;
  jitc_context* context;
  jitc_request request;
  jitc_module* module;
  jitc_stats stats;
  jitc_error* error;
  void* address;
  function twice;
  double value, sum;

  MPI_Init(&argc, &argv);
  communicator = communicator_of(MPI_COMM_WORLD);
  demand(jitc_context_open(&communicator, NULL, &context, &error), error);

  memset(&request, 0, sizeof request);
  request.size = sizeof request;
  request.name = "twice.c";
  request.source = "double twice(double x) { return 2.0 * x; }\n";
  demand(jitc_compile(context, &request, &module, &error), error);
  demand(jitc_module_symbol(module, "twice", &address, &error), error);
  memcpy(&twice, &address, sizeof twice); /* ISO C has no conversion of an object's address to a function's */

  value = twice(21.0);
  MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  stats.size = sizeof stats;
  jitc_context_stats(context, &stats);
  if (communicator.rank == 0)
    printf("ranks %d, mean %g, compilers started %d\n", communicator.ranks, sum / communicator.ranks,
           (int)stats.compilers_started);

  jitc_module_release(module);
  jitc_context_close(context);
  MPI_Finalize();
  return 0;
}
