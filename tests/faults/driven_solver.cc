// A solver that does as it is told, so that a test can change the world between two of its calls: all ranks follow the
// lines that rank 0 reads from its standard input. Each is answered by one line of JSON (rank 0).
//
//   compile FILE   gives the module back, compiles the file's text and calls answer(2)
//   again COUNT    compiles that text so many times while it holds the module
//
// The answer says kind of error ("OK"), origin, value, whether all ranks ended alike, whether the communicator is
// broken, and the error. Under strace a call begins and ends with a look at the file "/mark/begin" or "/mark/end", on
// each rank.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <jitc/mpi.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "tests/mpi/told_call.h"

namespace {

using jitc::testing::Told;

void tell(const Told& told) {
  const bool is_same = jitc::testing::is_same_everywhere(told);
  if (jitc::testing::rank_of_world() != 0) return;
  std::printf(R"({"kind": "%s", "origin": %d, "value": %.17g, "same": %s, "broken": %s, "error": %s})"
              "\n",
              told.kind.c_str(), told.origin, told.value, is_same ? "true" : "false", told.is_broken ? "true" : "false",
              told.error.c_str());
  std::fflush(stdout);
}

// Ends with the operation. Asleep between two looks: while nobody tells this job what to do, others have the cores.
void finish(MPI_Request request) {
  for (int done = 0; done == 0; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// The next line, on all ranks; empty at the end.
std::string next_line() {
  std::string line;
  if (jitc::testing::rank_of_world() == 0) std::getline(std::cin, line);
  unsigned long size = line.size();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&size, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD, &request);
  finish(request);
  line.resize(size);
  MPI_Bcast(line.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
  return line;
}

void mark(const char* file) { static_cast<void>(::access(file, F_OK)); }

void run() {
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD), {});
  jitc::Request request;
  request.name = "answer.c";
  jitc::Module module;
  for (std::string line = next_line(); !line.empty(); line = next_line()) {
    std::istringstream words(line);
    std::string what, argument;
    CHECK(words >> what >> argument);
    Told told;
    int calls = 1;
    if (what == "compile") {
      module = jitc::Module();
      request.source = jitc::testing::read_file(argument);
    } else {
      CHECK_EQ(what, "again");
      calls = std::atoi(argument.c_str());
    }
    mark("/mark/begin");
    for (int call = 0; call < calls; ++call) told = jitc::testing::told_compile(context, request, module);
    mark("/mark/end");
    tell(told);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
  return 0;
}
