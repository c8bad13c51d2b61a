/* A table that libjitc calls MPI by, for Fortran, whose handles are integers. */
#include "../c/communicator.h"

const jitc_communicator* fortran_communicator(int comm) {
  static jitc_communicator table;
  table = communicator_of(MPI_Comm_f2c(comm));
  return &table;
}
