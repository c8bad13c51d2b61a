// One call of a solver in miniature, whose module defines answer(), and what came of it.
#pragma once

#include <mpi.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <jitc/jitc.hpp>
#include <string>
#include <vector>

#include "tests/mpi/check.h"

namespace jitc::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path);
  CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Told {
  std::string kind = "OK";
  std::string error = "null";  // JSON
  int origin = -1;
  std::vector<int> ranks;
  bool is_broken = false;
  double value = 0;  // of answer(2)
  double seconds = 0;
  double ended = 0;  // of the wall clock, which a driver has too
};

inline Told told_compile(Context& context, const Request& request, Module& module) {
  Told told;
  const double start = MPI_Wtime();
  try {
    module = context.compile(request);
    told.origin = module.origin();
    told.value = module.symbol<double(double)>("answer")(2.0);
  } catch (const Error& error) {
    told.kind = error.kind_name;
    told.error = error.json;
    told.is_broken = error.is_broken;
    told.ranks = error.ranks;
  }
  told.seconds = MPI_Wtime() - start;
  told.ended = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return told;
}

// Has every rank been told the same, times aside?
inline bool is_same_everywhere(const Told& told) {
  std::string text = told.kind + " " + std::to_string(told.origin) + " " + std::to_string(told.value) + " " +
                     told.error + (told.is_broken ? " broken" : "");
  for (const int rank : told.ranks) text += " " + std::to_string(rank);
  return same_everywhere(text);
}

}  // namespace jitc::testing
