#include "client/examples/stokes/exact.h"

#include <cmath>
#include <numbers>

namespace jitc::stokes {
namespace {

constexpr PetscReal kPi = std::numbers::pi;
constexpr PetscReal kShear = 0.5;  // gamma

// The viscosity and its derivative by e^2.
struct Viscosity {
  PetscReal value;
  PetscReal slope;
};

Viscosity viscosity(Law law, const Material& material, PetscReal e2) {
  const PetscReal e = std::sqrt(e2);
  if (law == Law::kPowerLaw) {
    const PetscReal exponent = (1 / material.n - 1) / 2;
    const PetscReal eta = material.eta0 * std::pow(e2, exponent);
    return {eta, eta * exponent / e2};
  }
  const PetscReal eta = 1 / (1 / material.eta0 + 2 * e / material.tau_y);
  return {eta, -eta * eta / (material.tau_y * e)};
}

// With tau = 2 eta eps and div u = 0 (so that 2 div eps = lap u):
//   div tau = eta lap u + 2 eps grad eta,   grad eta = d eta / d e^2  grad e^2.
template <Law law>
void force(PetscInt, PetscInt, PetscInt, const PetscInt[], const PetscInt[], const PetscScalar[], const PetscScalar[],
           const PetscScalar[], const PetscInt[], const PetscInt[], const PetscScalar[], const PetscScalar[],
           const PetscScalar[], PetscReal, const PetscReal x[], PetscInt, const PetscScalar constants[],
           PetscScalar f0[]) {
  const Material material{constants[0], constants[1], constants[2], constants[3]};
  const PetscReal sx = std::sin(kPi * x[0]), cx = std::cos(kPi * x[0]);
  const PetscReal sy = std::sin(kPi * x[1]), cy = std::cos(kPi * x[1]);

  // Strain rate: the parts of the shear that vary cancel in the symmetric gradient.
  const PetscReal eps_xx = cx * cy, eps_yy = -eps_xx, eps_xy = kShear / 2;
  const PetscReal eps_xx_x = -kPi * sx * cy, eps_xx_y = -kPi * cx * sy;
  const PetscReal lap_u = -2 * kPi * sx * cy, lap_v = 2 * kPi * cx * sy;

  // 1/2 (eps_xx^2 + eps_yy^2) + eps_xy^2 = eps_xx^2 + eps_xy^2
  const PetscReal e2 = eps_xx * eps_xx + eps_xy * eps_xy + material.e_min * material.e_min;
  const Viscosity eta = viscosity(law, material, e2);
  const PetscReal eta_x = eta.slope * 2 * eps_xx * eps_xx_x;
  const PetscReal eta_y = eta.slope * 2 * eps_xx * eps_xx_y;

  const PetscReal p_x = -kPi * sx * sy, p_y = kPi * cx * cy;

  f0[0] = eta.value * lap_u + 2 * (eps_xx * eta_x + eps_xy * eta_y) - p_x;
  f0[1] = eta.value * lap_v + 2 * (eps_xy * eta_x + eps_yy * eta_y) - p_y;
}

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

PetscPointFunc force_of(Law law) { return law == Law::kPowerLaw ? force<Law::kPowerLaw> : force<Law::kViscoplastic>; }

}  // namespace jitc::stokes
