// The exact solution that the example is measured against, and the force that makes it one.
//
// On the unit square, with the shear rate gamma:
//   u = (gamma y + sin(pi x) cos(pi y) / pi,  -cos(pi x) sin(pi y) / pi),   div u = 0,
//   p = cos(pi x) sin(pi y),                                                mean 0.
// The second invariant e of the strain rate is gamma / 2 or more everywhere, so the power law stays smooth and the
// finite elements can reach their full order.
#pragma once

#include <petscsnes.h>

namespace jitc::stokes {

inline constexpr PetscErrorCode kSuccess{};  // PETSC_SUCCESS, from PETSc 3.19 on

// The constants of the power law, in the order of the pointwise functions' `constants` argument:
//   eta = eta0 (e^2 + e_min^2)^((1/n - 1)/2),  e^2 = 1/2 eps:eps,  eps = 1/2 (grad u + grad u^T).
// The last slot belongs to the buoyancy, which this example replaces by its own force.
struct PowerLaw {
  PetscScalar eta0 = 2;
  PetscScalar n = 3;
  PetscScalar e_min = 1e-3;
  PetscScalar rayleigh = 0;
};
inline constexpr PetscInt kConstants = sizeof(PowerLaw) / sizeof(PetscScalar);

// Signatures of DMProjectFunction and DMAddBoundary.
PetscErrorCode exact_velocity(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt components, PetscScalar u[],
                              void* context);
PetscErrorCode exact_pressure(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt components, PetscScalar p[],
                              void* context);

// f0 of the velocity: div tau - grad p at the exact solution, which the weak form  phi f0 + grad phi : (tau - p I)
// needs to vanish there. Signature of PetscDSSetResidual; `constants` is a PowerLaw.
void force(PetscInt dim, PetscInt fields, PetscInt aux_fields, const PetscInt u_offset[], const PetscInt u_x_offset[],
           const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt a_offset[],
           const PetscInt a_x_offset[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[],
           PetscReal t, const PetscReal x[], PetscInt constant_count, const PetscScalar constants[], PetscScalar f0[]);

}  // namespace jitc::stokes
