/* What libjitc needs of MPI, for C and Fortran. C++ has it in <jitc/mpi.hpp>. */
#ifndef COMMUNICATOR_H
#define COMMUNICATOR_H

#include <jitc/jitc.h>
#include <mpi.h>

/* A table over a duplicate of `comm`, which jitc_context_close frees. Collective. Ends the program where memory ends.
 */
jitc_communicator communicator_of(MPI_Comm comm);

#endif
