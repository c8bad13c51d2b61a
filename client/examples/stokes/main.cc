// A nonlinear Stokes solver whose pointwise functions are compiled while it runs: by one compiler for all ranks, or by
// none where they are known already. Each run asks for them and solves on refined grids against an exact solution.
// Ends with 0 when every check holds.
#include <cmath>
#include <jitc/mpi.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "client/examples/stokes/pointwise.h"
#include "client/examples/stokes/problem.h"

namespace jitc::stokes {
namespace {

constexpr char kHelp[] = "Nonlinear Stokes flow whose pointwise functions jitc compiles at run time.\n";

// What must hold. The elements' orders are 3 and 2; Newton's method has 2 at its end, a wrong Jacobian makes it 1.
constexpr double kLeastVelocityOrder = 2.8;
constexpr double kLeastPressureOrder = 1.8;
constexpr double kLeastNewtonOrder = 1.4;
constexpr double kMostJacobianError = 1e-6;

struct Settings {
  Law law = Law::kPowerLaw;
  jitc_tangent tangent = JITC_NEWTON;
  PetscInt cells = 4;
  PetscInt refinements = 2;
  PetscInt runs = 1;
  Material material;
};

PetscErrorCode read_settings(Settings* settings) {
  const char* const laws[] = {"power_law", "viscoplastic"};  // as Law has them
  const char* const tangents[] = {"newton", "picard"};       // as jitc_tangent has them
  PetscInt law = 0, tangent = 0;

  PetscFunctionBeginUser;
  PetscOptionsBegin(PETSC_COMM_WORLD, "", "Stokes example", "");
  PetscCall(PetscOptionsEList("-rheology", "How the viscosity depends on the strain rate", "", laws, 2, laws[0], &law,
                              nullptr));
  PetscCall(PetscOptionsEList("-tangent", "newton: of the viscosity too; picard: with the viscosity held fixed", "",
                              tangents, 2, tangents[0], &tangent, nullptr));
  PetscCall(PetscOptionsBoundedInt("-cells", "Cells per direction of the coarsest grid", "", settings->cells,
                                   &settings->cells, nullptr, 2));
  PetscCall(PetscOptionsBoundedInt("-refinements", "Further grids, each of half the cell size", "",
                                   settings->refinements, &settings->refinements, nullptr, 0));
  PetscCall(PetscOptionsBoundedInt("-runs", "Times to ask for the functions and solve", "", settings->runs,
                                   &settings->runs, nullptr, 1));
  for (const auto& [name, help, value] :
       {std::tuple("-eta0", "Viscosity at small strain rates (power law: at 1)", &settings->material.eta0),
        std::tuple("-n", "Exponent of the power law", &settings->material.n),
        std::tuple("-tau_y", "Yield stress", &settings->material.tau_y),
        std::tuple("-e_min", "Regularisation of the strain rate", &settings->material.e_min)})
    PetscCall(PetscOptionsScalar(name, help, "", *value, value, nullptr));
  PetscOptionsEnd();
  settings->law = static_cast<Law>(law);
  settings->tangent = static_cast<jitc_tangent>(tangent);
  PetscFunctionReturn(kSuccess);
}

const char* tiers(jitc_origin origin) {
  switch (origin) {
    case JITC_FROM_MEMORY:
      return "memory hit";
    case JITC_FROM_RANK:
      return "memory hit on the root, which sent it to the others";
    case JITC_FROM_STORE:
      return "memory miss, store hit";
    case JITC_FROM_DAEMON:
      return "memory miss, store miss, daemon hit";
    case JITC_COMPILED:
      return "memory miss, store miss, daemon miss";
  }
  return "of an origin that this program does not know";
}

// The order of convergence between two grids; NaN for the first one.
double order(double coarse, double fine) { return std::log2(coarse / fine); }

std::vector<std::string> failed_checks(jitc_tangent tangent, const Solution* coarse, const Solution& fine) {
  std::vector<std::string> failed;
  const auto require = [&](bool holds, const char* what) {
    if (!holds) failed.emplace_back(what);
  };
  require(fine.reason > 0, "the iteration did not converge");
  if (tangent == JITC_NEWTON) {
    require(fine.order == 0 || fine.order >= kLeastNewtonOrder, "Newton's method is not superlinear");
    require(fine.jacobian_error <= kMostJacobianError, "the Jacobian differs from finite differences");
  } else {
    require(fine.jacobian_error > kMostJacobianError, "the Jacobian is Newton's, not Picard's");
  }
  if (coarse) {
    require(order(coarse->velocity_error, fine.velocity_error) >= kLeastVelocityOrder,
            "the velocity's order is too low");
    require(order(coarse->pressure_error, fine.pressure_error) >= kLeastPressureOrder,
            "the pressure's order is too low");
  }
  return failed;
}

PetscErrorCode print_solution(const Settings& settings, const Solution* coarse, const Solution& fine) {
  const MPI_Comm comm = PETSC_COMM_WORLD;

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(comm, "  %5d  %6d  %5.2f  %8.1e", static_cast<int>(fine.cells),
                        static_cast<int>(fine.iterations), fine.order, fine.jacobian_error));
  if (coarse) {
    PetscCall(PetscPrintf(comm, "  %9.2e  %5.2f  %9.2e  %5.2f", fine.velocity_error,
                          order(coarse->velocity_error, fine.velocity_error), fine.pressure_error,
                          order(coarse->pressure_error, fine.pressure_error)));
  } else {
    PetscCall(PetscPrintf(comm, "  %9.2e      -  %9.2e      -", fine.velocity_error, fine.pressure_error));
  }
  PetscCall(PetscPrintf(comm, "  %7.2f\n", fine.seconds));
  for (const std::string& what : failed_checks(settings.tangent, coarse, fine))
    PetscCall(PetscPrintf(comm, "FAILED on %d x %d cells: %s\n", static_cast<int>(fine.cells),
                          static_cast<int>(fine.cells), what.c_str()));
  PetscFunctionReturn(kSuccess);
}

// Solves on all grids and prints a line for each. *passed becomes false when a check fails.
PetscErrorCode study_convergence(const Settings& settings, const Pointwise& functions, bool* passed) {
  std::vector<Solution> solutions;
  double seconds = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                        "  cells  %6s  order  Jac. err   velocity  order   pressure  order  solve s\n",
                        settings.tangent == JITC_NEWTON ? "Newton" : "Picard"));
  for (PetscInt level = 0; level <= settings.refinements; ++level) {
    const Solution* coarse = solutions.empty() ? nullptr : &solutions.back();
    Solution fine;
    PetscCall(solve(PETSC_COMM_WORLD, functions, settings.material, settings.cells << level, &fine));
    PetscCall(print_solution(settings, coarse, fine));
    *passed = *passed && failed_checks(settings.tangent, coarse, fine).empty();
    seconds += fine.seconds;
    solutions.push_back(fine);
  }
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solve: %.2f s\n", seconds));
  PetscFunctionReturn(kSuccess);
}

// Throws jitc::Error, the same on every rank.
PetscErrorCode run(const Settings& settings, bool* passed) {
  const MPI_Comm comm = PETSC_COMM_WORLD;
  PetscMPIInt ranks;
  PetscCallMPI(MPI_Comm_size(comm, &ranks));

  jitc::Context context(jitc::mpi::communicator(comm));
  std::vector<Compiled> held;  // until the end, as a program does that solves more than once
  for (PetscInt i = 1; i <= settings.runs; ++i) {
    held.push_back(compile_pointwise(context, settings.law, settings.tangent));
    const Compiled& compiled = held.back();
    PetscCall(
        PetscPrintf(comm, "run %d of %d, %d ranks\n", static_cast<int>(i), static_cast<int>(settings.runs), ranks));
    PetscCall(PetscPrintf(comm, "pointwise functions: %s\n", tiers(compiled.module.origin())));
    PetscCall(
        PetscPrintf(comm, "compilers started: %llu\n", static_cast<unsigned long long>(compiled.compilers_started)));
    PetscCall(PetscPrintf(comm, "function pointers: after %.6f s\n", compiled.seconds));
    PetscCall(study_convergence(settings, compiled.functions, passed));
  }
  return kSuccess;
}

}  // namespace
}  // namespace jitc::stokes

int main(int argc, char** argv) {
  using namespace jitc::stokes;
  Settings settings;
  bool passed = true;

  PetscCall(set_default_options());
  PetscCall(PetscInitialize(&argc, &argv, nullptr, kHelp));
  PetscCall(read_settings(&settings));
  try {
    PetscCall(run(settings, &passed));
  } catch (const jitc::Error& error) {
    passed = false;
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "FAILED: %s\n", error.what()));
    // Operations are pending for ever then: MPI cannot be finalised.
    if (error.is_broken) PETSCABORT(PETSC_COMM_WORLD, PETSC_ERR_LIB);
  }
  PetscCall(PetscFinalize());
  return passed ? 0 : 1;
}
