#include "client/examples/stokes/equations.h"

namespace jitc::stokes {

Problem equations(Law law, jitc_tangent tangent) {
  Problem problem(law == Law::kPowerLaw ? "stokes_power_law" : "stokes_viscoplastic", 2);
  const Field u = problem.field("velocity", 2);
  const Field p = problem.field("pressure", 1);
  const Material material;
  const Constant eta0 = problem.constant("eta0", material.eta0);
  const Constant n = problem.constant("n", material.n);
  const Constant tau_y = problem.constant("tau_y", material.tau_y);
  const Constant e_min = problem.constant("e_min", material.e_min);

  const Expression eps_xx = u.grad(0, 0);
  const Expression eps_yy = u.grad(1, 1);
  const Expression eps_xy = 0.5 * (u.grad(0, 1) + u.grad(1, 0));
  const Expression e2 = 0.5 * (eps_xx * eps_xx + eps_yy * eps_yy) + eps_xy * eps_xy + e_min * e_min;
  const Expression eta =
      problem.named("viscosity", law == Law::kPowerLaw ? eta0 * pow(e2, 0.5 * (1.0 / n - 1.0))
                                                       : 1.0 / (1.0 / eta0 + 2.0 * sqrt(e2) / tau_y));

  const Expression tau_xy = 2.0 * eta * eps_xy;
  problem.residual("f1_0", JITC_F1, u, {2.0 * eta * eps_xx - p(0), tau_xy, tau_xy, 2.0 * eta * eps_yy - p(0)});
  problem.residual("f0_1", JITC_F0, p, {u.grad(0, 0) + u.grad(1, 1)});

  BlockOptions options;
  options.tangent = tangent;
  problem.block("g3_0_0", JITC_G3, u, u, options);
  problem.block("g2_0_1", JITC_G2, u, p, options);
  problem.block("g1_1_0", JITC_G1, p, u, options);
  return problem;
}

}  // namespace jitc::stokes
