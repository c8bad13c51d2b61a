#include "client/examples/stokes/problem.h"

#include <petscdmplex.h>

#include <array>
#include <cmath>
#include <span>

namespace jitc::stokes {
namespace {

constexpr PetscInt kDim = 2;
constexpr PetscInt kVelocity = 0, kPressure = 1;
// Four Gauss points per direction. With three, the error of Q2 would be sampled where it is smallest.
constexpr PetscInt kQuadratureOrder = 3;
constexpr PetscInt kHistory = 64;

PetscErrorCode create_mesh(MPI_Comm comm, PetscInt cells, DM* dm) {
  const PetscInt faces[kDim] = {cells, cells};

  PetscFunctionBeginUser;
  PetscCall(DMPlexCreateBoxMesh(comm, kDim, PETSC_FALSE, faces, nullptr, nullptr, nullptr, PETSC_TRUE, dm));
  PetscCall(DMSetFromOptions(*dm));  // also distributes it
  PetscFunctionReturn(kSuccess);
}

// On subproblems of the pressure alone (fieldsplit makes them) the constants are the null space.
PetscErrorCode mark_pressure_null_space(DM dm) {
  PetscObject pressure;
  MatNullSpace constants;

  PetscFunctionBeginUser;
  PetscCall(DMGetField(dm, kPressure, nullptr, &pressure));
  PetscCall(MatNullSpaceCreate(PetscObjectComm(pressure), PETSC_TRUE, 0, nullptr, &constants));
  PetscCall(PetscObjectCompose(pressure, "nullspace", reinterpret_cast<PetscObject>(constants)));
  PetscCall(MatNullSpaceDestroy(&constants));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode add_element(DM dm, PetscInt field, PetscInt components, PetscInt degree, const char* name) {
  PetscFE element;

  PetscFunctionBeginUser;
  PetscCall(PetscFECreateLagrange(PetscObjectComm(reinterpret_cast<PetscObject>(dm)), kDim, components, PETSC_FALSE,
                                  degree, kQuadratureOrder, &element));
  PetscCall(PetscObjectSetName(reinterpret_cast<PetscObject>(element), name));
  PetscCall(DMSetField(dm, field, nullptr, reinterpret_cast<PetscObject>(element)));
  PetscCall(PetscFEDestroy(&element));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode set_equations(DM dm, const Pointwise& pointwise, const Material& material) {
  PetscDS ds;
  DMLabel boundary;
  const PetscInt marked = 1;  // by the box mesh, before its distribution

  PetscFunctionBeginUser;
  PetscCall(DMGetDS(dm, &ds));
  PetscCall(PetscDSSetResidual(ds, kVelocity, pointwise.f0_0, pointwise.f1_0));
  PetscCall(PetscDSSetResidual(ds, kPressure, pointwise.f0_1, nullptr));
  PetscCall(PetscDSSetJacobian(ds, kVelocity, kVelocity, nullptr, nullptr, nullptr, pointwise.g3_0_0));
  PetscCall(PetscDSSetJacobian(ds, kVelocity, kPressure, nullptr, nullptr, pointwise.g2_0_1, nullptr));
  PetscCall(PetscDSSetJacobian(ds, kPressure, kVelocity, nullptr, pointwise.g1_1_0, nullptr, nullptr));
  std::array<PetscScalar, kConstants> constants = {material.eta0, material.n, material.tau_y, material.e_min};
  PetscCall(PetscDSSetConstants(ds, kConstants, constants.data()));
  PetscCall(PetscDSSetExactSolution(ds, kVelocity, exact_velocity, nullptr));
  PetscCall(PetscDSSetExactSolution(ds, kPressure, exact_pressure, nullptr));
  PetscCall(DMGetLabel(dm, "marker", &boundary));
  PetscCall(DMAddBoundary(dm, DM_BC_ESSENTIAL, "wall", boundary, 1, &marked, kVelocity, 0, nullptr,
                          reinterpret_cast<void (*)()>(exact_velocity), nullptr, nullptr, nullptr));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode create_problem(MPI_Comm comm, const Pointwise& pointwise, const Material& material, PetscInt cells,
                              DM* dm) {
  PetscFunctionBeginUser;
  PetscCall(create_mesh(comm, cells, dm));
  PetscCall(add_element(*dm, kVelocity, kDim, 2, "velocity"));
  PetscCall(add_element(*dm, kPressure, 1, 1, "pressure"));
  PetscCall(DMCreateDS(*dm));
  PetscCall(set_equations(*dm, pointwise, material));
  PetscCall(mark_pressure_null_space(*dm));
  PetscCall(DMPlexCreateClosureIndex(*dm, nullptr));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode zero(PetscInt, PetscReal, const PetscReal[], PetscInt components, PetscScalar value[], void*) {
  for (PetscInt c = 0; c < components; ++c) value[c] = 0;
  return kSuccess;
}

PetscErrorCode one(PetscInt, PetscReal, const PetscReal[], PetscInt components, PetscScalar value[], void*) {
  for (PetscInt c = 0; c < components; ++c) value[c] = 1;
  return kSuccess;
}

// No velocity, pressure 1: the whole problem's null space.
PetscErrorCode create_constant_pressure(DM dm, Vec* constant) {
  PetscErrorCode (*functions[])(PetscInt, PetscReal, const PetscReal[], PetscInt, PetscScalar[], void*) = {zero, one};

  PetscFunctionBeginUser;
  PetscCall(DMCreateGlobalVector(dm, constant));
  PetscCall(DMProjectFunction(dm, 0, functions, nullptr, INSERT_ALL_VALUES, *constant));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode attach_null_space(SNES snes, DM dm) {
  Vec constant;
  Mat jacobian;
  MatNullSpace null_space;

  PetscFunctionBeginUser;
  PetscCall(create_constant_pressure(dm, &constant));
  PetscCall(VecNormalize(constant, nullptr));
  PetscCall(
      MatNullSpaceCreate(PetscObjectComm(reinterpret_cast<PetscObject>(dm)), PETSC_FALSE, 1, &constant, &null_space));
  PetscCall(SNESGetJacobian(snes, &jacobian, nullptr, nullptr, nullptr));
  PetscCall(MatSetNullSpace(jacobian, null_space));
  PetscCall(MatNullSpaceDestroy(&null_space));
  PetscCall(VecDestroy(&constant));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode create_solver(DM dm, SNES* snes) {
  PetscFunctionBeginUser;
  PetscCall(SNESCreate(PetscObjectComm(reinterpret_cast<PetscObject>(dm)), snes));
  PetscCall(SNESSetDM(*snes, dm));
  PetscCall(DMPlexSetSNESLocalFEM(dm, nullptr, nullptr, nullptr));
  PetscCall(SNESSetFromOptions(*snes));
  PetscCall(SNESSetUp(*snes));
  PetscCall(attach_null_space(*snes, dm));
  PetscFunctionReturn(kSuccess);
}

// The observed order of the iteration, log(r2/r1) / log(r1/r0), over the last three residuals that stand well above
// the rounding of the first.
PetscReal observed_order(std::span<const PetscReal> residuals) {
  if (residuals.empty()) return 0;
  const PetscReal floor = 1e-12 * residuals.front();
  while (!residuals.empty() && residuals.back() < floor) residuals = residuals.first(residuals.size() - 1);
  if (residuals.size() < 3) return 0;
  const auto last = residuals.last(3);
  return std::log(last[2] / last[1]) / std::log(last[1] / last[0]);
}

// || J v - (F(u + h v) - F(u - h v)) / 2h || / || J v || in a random direction v.
PetscErrorCode check_jacobian(SNES snes, Vec u, PetscReal* error) {
  const PetscReal step = 1e-6;
  Mat jacobian, preconditioner;
  Vec v, jv, shifted, plus, minus;
  PetscReal norm;

  PetscFunctionBeginUser;
  PetscCall(SNESGetJacobian(snes, &jacobian, &preconditioner, nullptr, nullptr));
  PetscCall(SNESComputeJacobian(snes, u, jacobian, preconditioner));
  for (Vec* vector : {&v, &jv, &shifted, &plus, &minus}) PetscCall(VecDuplicate(u, vector));
  PetscCall(VecSetRandom(v, nullptr));
  PetscCall(MatMult(jacobian, v, jv));
  PetscCall(VecWAXPY(shifted, step, v, u));
  PetscCall(SNESComputeFunction(snes, shifted, plus));
  PetscCall(VecWAXPY(shifted, -step, v, u));
  PetscCall(SNESComputeFunction(snes, shifted, minus));
  PetscCall(VecAXPY(plus, -1, minus));
  PetscCall(VecAXPBY(plus, -1, 1 / (2 * step), jv));
  PetscCall(VecNorm(plus, NORM_2, error));
  PetscCall(VecNorm(jv, NORM_2, &norm));
  *error /= norm;
  for (Vec* vector : {&v, &jv, &shifted, &plus, &minus}) PetscCall(VecDestroy(vector));
  PetscFunctionReturn(kSuccess);
}

void pressure_value(PetscInt, PetscInt, PetscInt, const PetscInt u_offset[], const PetscInt[], const PetscScalar u[],
                    const PetscScalar[], const PetscScalar[], const PetscInt[], const PetscInt[], const PetscScalar[],
                    const PetscScalar[], const PetscScalar[], PetscReal, const PetscReal[], PetscInt,
                    const PetscScalar[], PetscScalar value[]) {
  value[0] = u[u_offset[kPressure]];
}

// Of all pressures that solve the problem, the one whose mean is 0. The domain's area is 1.
PetscErrorCode remove_mean_pressure(DM dm, Vec u) {
  PetscDS ds;
  Vec constant;
  PetscScalar integrals[2];

  PetscFunctionBeginUser;
  PetscCall(DMGetDS(dm, &ds));
  PetscCall(PetscDSSetObjective(ds, kPressure, pressure_value));
  PetscCall(DMPlexComputeIntegralFEM(dm, u, integrals, nullptr));
  PetscCall(create_constant_pressure(dm, &constant));
  PetscCall(VecAXPY(u, -integrals[kPressure], constant));
  PetscCall(VecDestroy(&constant));
  PetscFunctionReturn(kSuccess);
}

PetscErrorCode measure_errors(DM dm, Vec u, Solution* solution) {
  PetscErrorCode (*exact[])(PetscInt, PetscReal, const PetscReal[], PetscInt, PetscScalar[], void*) = {exact_velocity,
                                                                                                       exact_pressure};
  PetscReal errors[2];

  PetscFunctionBeginUser;
  PetscCall(DMComputeL2FieldDiff(dm, 0, exact, nullptr, u, errors));
  solution->velocity_error = errors[kVelocity];
  solution->pressure_error = errors[kPressure];
  PetscFunctionReturn(kSuccess);
}

}  // namespace

PetscErrorCode set_default_options() {
  // Block factorisation with exact blocks: MUMPS for the velocity, and for the Schur complement GMRES without a
  // preconditioner (it is as well conditioned as the pressure's mass matrix, on any uniform grid).
  static constexpr const char* kOptions[][2] = {
      {"-snes_rtol", "1e-9"},
      {"-ksp_type", "fgmres"},
      {"-ksp_rtol", "1e-4"},
      {"-ksp_atol", "1e-14"},
      {"-pc_type", "fieldsplit"},
      {"-pc_fieldsplit_type", "schur"},
      {"-pc_fieldsplit_schur_fact_type", "full"},
      {"-pc_fieldsplit_schur_precondition", "a11"},
      {"-fieldsplit_velocity_ksp_type", "preonly"},
      {"-fieldsplit_velocity_pc_type", "lu"},
      {"-fieldsplit_velocity_pc_factor_mat_solver_type", "mumps"},
      {"-fieldsplit_pressure_ksp_type", "gmres"},
      {"-fieldsplit_pressure_ksp_rtol", "1e-5"},
      {"-fieldsplit_pressure_ksp_max_it", "200"},
      {"-fieldsplit_pressure_ksp_gmres_restart", "100"},
      {"-fieldsplit_pressure_pc_type", "none"},
  };
  for (const auto& [name, value] : kOptions) {
    if (const PetscErrorCode error = PetscOptionsSetValue(nullptr, name, value)) return error;
  }
  return kSuccess;
}

PetscErrorCode solve(MPI_Comm comm, const Pointwise& pointwise, const Material& material, PetscInt cells,
                     Solution* solution) {
  DM dm;
  SNES snes;
  Vec u;
  std::array<PetscReal, kHistory> residuals;
  PetscInt residual_count;

  PetscFunctionBeginUser;
  PetscCall(create_problem(comm, pointwise, material, cells, &dm));
  PetscCall(DMCreateGlobalVector(dm, &u));
  PetscCall(create_solver(dm, &snes));
  PetscCall(SNESSetConvergenceHistory(snes, residuals.data(), nullptr, kHistory, PETSC_TRUE));
  PetscCall(VecSet(u, 0));
  const double begin = MPI_Wtime();
  PetscCall(SNESSolve(snes, nullptr, u));
  solution->seconds = MPI_Wtime() - begin;

  solution->cells = cells;
  PetscCall(SNESGetConvergedReason(snes, &solution->reason));
  PetscCall(SNESGetIterationNumber(snes, &solution->iterations));
  PetscCall(SNESGetConvergenceHistory(snes, nullptr, nullptr, &residual_count));
  solution->order = observed_order(std::span(residuals).first(static_cast<std::size_t>(residual_count)));
  PetscCall(check_jacobian(snes, u, &solution->jacobian_error));
  PetscCall(remove_mean_pressure(dm, u));
  PetscCall(measure_errors(dm, u, solution));
  PetscCall(SNESDestroy(&snes));
  PetscCall(VecDestroy(&u));
  PetscCall(DMDestroy(&dm));
  PetscFunctionReturn(kSuccess);
}

}  // namespace jitc::stokes
