// The Stokes equations as a jitc::Problem: expressions, of which jitc takes the derivatives and prints the C.
#pragma once

#include <jitc/jitc.hpp>

#include "client/examples/stokes/exact.h"

namespace jitc::stokes {

// Functions f1_0, f0_1, g3_0_0, g2_0_1 and g1_1_0 of field 0, the velocity, and field 1, the pressure; constants as in
// Material. JITC_NEWTON differentiates the viscosity, JITC_PICARD holds it fixed.
Problem equations(Law law, jitc_tangent tangent);

}  // namespace jitc::stokes
