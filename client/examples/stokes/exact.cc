#include "client/examples/stokes/exact.h"

#include <cmath>
#include <numbers>

namespace jitc::stokes {
namespace {

constexpr PetscReal kPi = std::numbers::pi;
constexpr PetscReal kShear = 0.5;  // gamma

}  // namespace

PetscErrorCode exact_velocity(PetscInt, PetscReal, const PetscReal x[], PetscInt, PetscScalar u[], void*) {
  u[0] = kShear * x[1] + std::sin(kPi * x[0]) * std::cos(kPi * x[1]) / kPi;
  u[1] = -std::cos(kPi * x[0]) * std::sin(kPi * x[1]) / kPi;
  return kSuccess;
}

PetscErrorCode exact_pressure(PetscInt, PetscReal, const PetscReal x[], PetscInt, PetscScalar p[], void*) {
  p[0] = std::cos(kPi * x[0]) * std::sin(kPi * x[1]);
  return kSuccess;
}

// With tau = 2 eta eps and div u = 0 (so that 2 div eps = lap u):
//   div tau = eta lap u + 2 eps grad eta,   grad eta = eta m grad(e^2) / (e^2 + e_min^2),   m = (1/n - 1)/2.
void force(PetscInt, PetscInt, PetscInt, const PetscInt[], const PetscInt[], const PetscScalar[], const PetscScalar[],
           const PetscScalar[], const PetscInt[], const PetscInt[], const PetscScalar[], const PetscScalar[],
           const PetscScalar[], PetscReal, const PetscReal x[], PetscInt, const PetscScalar constants[],
           PetscScalar f0[]) {
  const PetscReal eta0 = constants[0], n = constants[1], e_min = constants[2];
  const PetscReal sx = std::sin(kPi * x[0]), cx = std::cos(kPi * x[0]);
  const PetscReal sy = std::sin(kPi * x[1]), cy = std::cos(kPi * x[1]);

  // Strain rate: the parts of the shear that vary cancel in the symmetric gradient.
  const PetscReal eps_xx = cx * cy, eps_yy = -eps_xx, eps_xy = kShear / 2;
  const PetscReal eps_xx_x = -kPi * sx * cy, eps_xx_y = -kPi * cx * sy;
  const PetscReal lap_u = -2 * kPi * sx * cy, lap_v = 2 * kPi * cx * sy;

  // e^2 = 1/2 (eps_xx^2 + eps_yy^2) + eps_xy^2 = eps_xx^2 + eps_xy^2
  const PetscReal base = eps_xx * eps_xx + eps_xy * eps_xy + e_min * e_min;
  const PetscReal exponent = (1 / n - 1) / 2;
  const PetscReal eta = eta0 * std::pow(base, exponent);
  const PetscReal eta_x = eta * exponent * 2 * eps_xx * eps_xx_x / base;
  const PetscReal eta_y = eta * exponent * 2 * eps_xx * eps_xx_y / base;

  const PetscReal p_x = -kPi * sx * sy, p_y = kPi * cx * cy;

  f0[0] = eta * lap_u + 2 * (eps_xx * eta_x + eps_xy * eta_y) - p_x;
  f0[1] = eta * lap_v + 2 * (eps_xy * eta_x + eps_yy * eta_y) - p_y;
}

}  // namespace jitc::stokes
