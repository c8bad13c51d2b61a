// From the equations to the function pointers that PETSc calls.
#pragma once

#include <cstdint>
#include <jitc/jitc.hpp>

#include "client/examples/stokes/problem.h"

namespace jitc::stokes {

struct Compiled {
  jitc::Module module;  // keeps `functions` loaded
  Pointwise functions;
  double seconds = 0;  // from the call to the function pointers
  std::uint64_t compilers_started = 0;
};

// Collective over the context's ranks; throws jitc::Error, the same on every rank.
Compiled compile_pointwise(jitc::Context& context, Law law, jitc_tangent tangent);

}  // namespace jitc::stokes
