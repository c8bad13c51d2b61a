// Nonlinear Stokes flow on the unit square: Q2 velocity, Q1 pressure, Dirichlet velocity on the whole boundary, solved
// by Newton's method or, with blocks that hold the viscosity fixed, by Picard's. Its pointwise functions come from
// outside.
#pragma once

#include <petscds.h>
#include <petscsnes.h>

#include "client/examples/stokes/exact.h"

namespace jitc::stokes {

// Weak form  phi f0 + grad phi : f1  and its derivatives in PETSc's layout; field 0 is the velocity, 1 the pressure.
struct Pointwise {
  PetscPointFunc f0_0 = nullptr;   // [2]        the force
  PetscPointFunc f1_0 = nullptr;   // [2,2]      tau - p I
  PetscPointFunc f0_1 = nullptr;   // [1]        div u
  PetscPointJac g3_0_0 = nullptr;  // [2,2,2,2]  d f1_0 / d grad u
  PetscPointJac g2_0_1 = nullptr;  // [2,1,2]    d f1_0 / d p
  PetscPointJac g1_1_0 = nullptr;  // [1,2,2]    d f0_1 / d grad u
};

struct Solution {
  PetscInt cells = 0;  // per direction
  PetscInt iterations = 0;
  SNESConvergedReason reason = SNES_CONVERGED_ITERATING;
  PetscReal order = 0;           // of the iteration, from the last residuals above rounding; 0: too few of them
  PetscReal jacobian_error = 0;  // relative, of J v against central differences, at the solution
  PetscReal velocity_error = 0;  // L2
  PetscReal pressure_error = 0;  // L2, of the pressure with mean 0
  PetscReal seconds = 0;         // the nonlinear solve
};

// The solver's options where the command line has nothing else to say. Called before PetscInitialize.
PetscErrorCode set_default_options();

// Collective. `cells`: per direction. A solve that does not converge is a Solution whose reason is negative.
PetscErrorCode solve(MPI_Comm comm, const Pointwise& pointwise, const Material& material, PetscInt cells,
                     Solution* solution);

}  // namespace jitc::stokes
