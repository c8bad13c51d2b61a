// Checks for programs under mpirun: the first one that fails says where, on which rank, and ends the whole job.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

namespace jitc::testing {

inline int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int size_of_world() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// What is under way, for the message of a check that fails.
inline std::string& under_way() {
  static std::string text;
  return text;
}

[[noreturn]] inline void fail_check(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "rank %d: %s:%d: %s%s%s\n", rank_of_world(), file, line, what.c_str(),
               under_way().empty() ? "" : " in ", under_way().c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (a == b) return;
  std::ostringstream out;
  out << text << ": " << a << " != " << b;
  fail_check(file, line, out.str());
}

// Ends with the operation. Between two looks it sleeps: where ranks outnumber cores they must give way to each other,
// which not every MPI does while it blocks.
inline void finish(MPI_Request request) {
  int done = 0;
  for (;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

inline void barrier(MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  finish(request);
}

// Sum over all ranks, on all ranks.
inline long total(long mine, MPI_Comm comm = MPI_COMM_WORLD) {
  long sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm, &request);
  finish(request);
  return sum;
}

// Do all ranks have this text? Compared by its hash: a bit that is set in both ORs differs between two ranks.
inline bool same_everywhere(const std::string& text, MPI_Comm comm = MPI_COMM_WORLD) {
  const std::uint64_t hash = std::hash<std::string>()(text);
  const std::uint64_t mine[2] = {hash, ~hash};
  std::uint64_t all[2] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(mine, all, 2, MPI_UINT64_T, MPI_BOR, comm, &request);
  finish(request);
  return (all[0] & all[1]) == 0;
}

}  // namespace jitc::testing

#define CHECK(condition) ((condition) ? void() : jitc::testing::fail_check(__FILE__, __LINE__, "not so: " #condition))
#define CHECK_EQ(a, b) jitc::testing::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
