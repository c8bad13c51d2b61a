// Checks for programs under mpirun: the first one that fails says where, on which rank, and ends the whole job.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <sstream>
#include <string>

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

[[noreturn]] inline void fail_check(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_of_world(), file, line, what.c_str());
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

// Sum over all ranks, on all ranks.
inline long total(long mine) {
  long sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

// Do all ranks have this text?
inline bool same_everywhere(const std::string& text) {
  std::string root = text;
  unsigned long length = text.size();
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
  root.resize(length);
  MPI_Bcast(root.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
  return total(root == text) == size_of_world();
}

}  // namespace jitc::testing

#define CHECK(condition) ((condition) ? void() : jitc::testing::fail_check(__FILE__, __LINE__, "not so: " #condition))
#define CHECK_EQ(a, b) jitc::testing::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
