// The exact solution that the example is measured against, and the force that makes it one.
//
// On the unit square, with the shear rate gamma:
//   u = (gamma y + sin(pi x) cos(pi y) / pi,  -cos(pi x) sin(pi y) / pi),   div u = 0,
//   p = cos(pi x) sin(pi y),                                                mean 0.
// The second invariant e of the strain rate is gamma / 2 or more everywhere, so the viscosity stays smooth and the
// finite elements can reach their full order.
#pragma once

#include <petscds.h>
#include <petscsnes.h>

#include <cstdint>

namespace jitc::stokes {

inline constexpr PetscErrorCode kSuccess{};  // PETSC_SUCCESS, from PETSc 3.19 on

// How the viscosity eta depends on the strain rate, with e^2 = 1/2 eps:eps + e_min^2, eps = 1/2 (grad u + grad u^T).
enum class Law : std::uint8_t {
  kPowerLaw,      // eta0 e^(1/n - 1)
  kViscoplastic,  // 1 / (1/eta0 + 2 e / tau_y): the stress 2 eta e approaches the yield stress tau_y
};

// The constants of both laws, in the order of the pointwise functions' `constants` argument.
struct Material {
  PetscScalar eta0 = 2;
  PetscScalar n = 3;
  PetscScalar tau_y = 2;
  PetscScalar e_min = 1e-3;
};
inline constexpr PetscInt kConstants = sizeof(Material) / sizeof(PetscScalar);

// Signatures of DMProjectFunction and DMAddBoundary.
PetscErrorCode exact_velocity(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt components, PetscScalar u[],
                              void* context);
PetscErrorCode exact_pressure(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt components, PetscScalar p[],
                              void* context);

// f0 of the velocity: div tau - grad p at the exact solution, which the weak form  phi f0 + grad phi : (tau - p I)
// needs to vanish there. For PetscDSSetResidual; its `constants` are a Material.
PetscPointFunc force_of(Law law);

}  // namespace jitc::stokes
