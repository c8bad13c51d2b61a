// From C text to the function pointers that PETSc calls.
#pragma once

#include <cstdint>
#include <jitc/jitc.hpp>
#include <string>

#include "client/examples/stokes/problem.h"

namespace jitc::stokes {

struct Compiled {
  jitc::Module module;  // keeps `functions` loaded
  Pointwise functions;
  double seconds = 0;  // from the call to the function pointers
  std::uint64_t compilers_started = 0;
};

// Collective over the context's ranks; throws jitc::Error, the same on every rank. Every rank makes the source: here
// it reads the file `path`, a real generator would print it. Its functions are those of Pointwise, by name.
Compiled compile_pointwise(jitc::Context& context, const std::string& path);

}  // namespace jitc::stokes
