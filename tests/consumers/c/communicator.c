#include "communicator.h"

#include <stdlib.h>
#include <string.h>

static int begun(int code, MPI_Request request, jitc_pending* pending) {
  memcpy(pending, &request, sizeof request);
  return code;
}

static int iallreduce_or(void* state, const uint64_t* send, uint64_t* receive, size_t count, jitc_pending* pending) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Iallreduce(send, receive, (int)count, MPI_UINT64_T, MPI_BOR, *(MPI_Comm*)state, &request);
  return begun(code, request, pending);
}

static int ibcast(void* state, void* buffer, size_t bytes, int root, jitc_pending* pending) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibcast(buffer, (int)bytes, MPI_BYTE, root, *(MPI_Comm*)state, &request);
  return begun(code, request, pending);
}

static int test(void* state, jitc_pending* pending, int* done) {
  MPI_Request request;
  int code;
  (void)state;
  memcpy(&request, pending, sizeof request);
  code = MPI_Test(&request, done, MPI_STATUS_IGNORE);
  return begun(code, request, pending);
}

static void release(void* state) {
  MPI_Comm_free(state);
  free(state);
}

jitc_communicator communicator_of(MPI_Comm comm) {
  jitc_communicator table;
  MPI_Comm* duplicate = malloc(sizeof *duplicate);
  if (!duplicate) MPI_Abort(comm, EXIT_FAILURE);
  memset(&table, 0, sizeof table);
  table.size = sizeof table;
  MPI_Comm_dup(comm, duplicate);
  MPI_Comm_set_errhandler(*duplicate, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &table.rank);
  MPI_Comm_size(comm, &table.ranks);
  table.state = duplicate;
  table.iallreduce_or = iallreduce_or;
  table.ibcast = ibcast;
  table.test = test;
  table.release = release;
  return table;
}
