#!/usr/bin/python3
"""Nonlinear Stokes flow from SymPy expressions: the equations of ../stokes, solved by petsc4py.

    mpirun -n 4 stokes.py [-cells 4,8] [PETSc's options]

A power-law fluid on the unit square, Q2 velocity and Q1 pressure, with a manufactured solution whose force SymPy
derives. jitc differentiates the residual and compiles it once for all ranks while the program runs; petsc4py has no
setter for pointwise functions, jitc.petsc has. A daemon must run (`jitc daemon start`). Ends
with 0 when Newton converges on every mesh and the velocity's order is that of Q2.
"""
import ctypes
import math
import sys

import petsc4py

petsc4py.init(sys.argv)
import jitc  # noqa: E402
import sympy  # noqa: E402
from jitc import petsc  # noqa: E402
from petsc4py import PETSc  # noqa: E402
from sympy import Function, Matrix, Rational, cos, pi, sin, symbols  # noqa: E402

VELOCITY, PRESSURE = 0, 1
QUADRATURE_ORDER = 3  # four Gauss points per direction
ESSENTIAL = 1  # DM_BC_ESSENTIAL
OPTIONS = {  # block factorisation with exact blocks
    "snes_rtol": "1e-9", "ksp_type": "fgmres", "ksp_rtol": "1e-4", "ksp_atol": "1e-14", "pc_type": "fieldsplit",
    "pc_fieldsplit_type": "schur", "pc_fieldsplit_schur_fact_type": "full", "pc_fieldsplit_schur_precondition": "a11",
    "fieldsplit_velocity_ksp_type": "preonly", "fieldsplit_velocity_pc_type": "lu",
    "fieldsplit_velocity_pc_factor_mat_solver_type": "mumps", "fieldsplit_pressure_ksp_type": "gmres",
    "fieldsplit_pressure_ksp_rtol": "1e-5", "fieldsplit_pressure_ksp_max_it": "200",
    "fieldsplit_pressure_ksp_gmres_restart": "100", "fieldsplit_pressure_pc_type": "none"}

x, y = symbols("x y", real=True)
eta0, n, e_min = symbols("eta0 n e_min", positive=True)
SHEAR = Rational(1, 2)
EXACT_VELOCITY = Matrix([SHEAR * y + sin(pi * x) * cos(pi * y) / pi, -cos(pi * x) * sin(pi * y) / pi])
EXACT_PRESSURE = cos(pi * x) * sin(pi * y)


def flux(velocity, pressure):
    """2 eta eps - p I with eta = eta0 (e^2 + e_min^2)^((1/n - 1)/2); row f, column d: the derivative by x_d."""
    gradient = velocity.jacobian([x, y])
    strain_rate = (gradient + gradient.T) / 2
    e2 = sum(entry**2 for entry in strain_rate) / 2 + e_min**2
    return 2 * eta0 * e2**((1 / n - 1) / 2) * strain_rate - pressure * sympy.eye(2)


def equations():
    """f0 - div f1 = 0 for both fields, as a jitc.Problem."""
    velocity = Matrix([Function("u")(x, y), Function("v")(x, y)])
    pressure = Function("p")(x, y)
    stress = flux(EXACT_VELOCITY, EXACT_PRESSURE)
    force = [stress[row, 0].diff(x) + stress[row, 1].diff(y) for row in range(2)]
    return jitc.from_sympy(
        {"f0_0": force, "f1_0": flux(velocity, pressure), "f0_1": velocity[0].diff(x) + velocity[1].diff(y)},
        fields=[("velocity", 2), ("pressure", 1)], constants=[(eta0, 1.0), (n, 2.0), (e_min, 0.1)],
        leaves={x: "x[0]", y: "x[1]", **jitc.field_leaves([*velocity, pressure], (x, y))}, name="stokes")


def functions_of_space(**expressions):
    """C text of functions in the form that PETSc wants boundary values and projections in."""
    text = "#include <math.h>\n"
    for name, values in expressions.items():
        lines = "".join(f"  value[{place}] = {sympy.ccode(value)};\n" for place, value in enumerate(values))
        text += (f"int {name}(int dim, double t, const double at[], int components, double value[], void *context) {{\n"
                 f"  const double x = at[0], y = at[1];\n  (void)x; (void)y;\n{lines}  return 0;\n}}\n")
    return text


def create_mesh(comm, cells):
    dm = PETSc.DMPlex().createBoxMesh([cells, cells], simplex=False, comm=comm)
    dm.setFromOptions()
    dm.distribute()
    for field, (name, components, degree) in enumerate((("velocity", 2, 2), ("pressure", 1, 1))):
        element = PETSc.FE().createLagrange(2, components, False, degree, QUADRATURE_ORDER, comm=comm)
        element.setName(name)
        dm.setField(field, element)
    dm.createDS()
    return dm


def set_equations(dm, problem, module, space):
    ds, functions = dm.getDS(), module.functions
    petsc.set_residual(ds, VELOCITY, functions["f0_0"], functions["f1_0"])
    petsc.set_residual(ds, PRESSURE, functions["f0_1"])
    for test in VELOCITY, PRESSURE:
        for trial in VELOCITY, PRESSURE:
            blocks = [functions.get(f"g{kind}_{test}_{trial}") for kind in range(4)]
            petsc.set_jacobian(ds, test, trial, *blocks)
    petsc.set_constants(ds, problem.constant_values())
    wall = (ctypes.c_int * 1)(1)  # the box mesh marks its boundary by 1
    petsc.call("DMAddBoundary", dm, ESSENTIAL, b"wall", dm.getLabel("marker"), 1, wall, VELOCITY, 0, None,
               space.functions["velocity"], None, None, None)


def constant_pressure(dm, space):
    """No velocity, pressure 1: what the equations leave open."""
    vector = dm.createGlobalVector()
    values = petsc.pointers(space.functions["zero"], space.functions["one"])
    petsc.call("DMProjectFunction", dm, ctypes.c_double(0), values, None, int(PETSc.InsertMode.INSERT_ALL_VALUES),
               vector)
    return vector


def solve(comm, problem, module, space, cells):
    """Newton iterations and the velocity's L2 error."""
    dm = create_mesh(comm, cells)
    set_equations(dm, problem, module, space)
    # On the pressure's own subproblems the constants are the null space.
    pressure, _ = dm.getField(PRESSURE)
    pressure.compose("nullspace", PETSc.NullSpace().create(constant=True, comm=comm))
    petsc.call("DMPlexCreateClosureIndex", dm, None)
    snes = PETSc.SNES().create(comm)
    snes.setDM(dm)
    petsc.call("DMPlexSetSNESLocalFEM", dm, None, None, None)
    snes.setFromOptions()
    snes.setUp()
    free = constant_pressure(dm, space)
    free.normalize()
    snes.getJacobian()[0].setNullSpace(PETSc.NullSpace().create(vectors=[free], comm=comm))
    solution = dm.createGlobalVector()
    snes.solve(None, solution)
    if snes.getConvergedReason() <= 0:
        raise RuntimeError(f"Newton did not converge on {cells} cells: reason {snes.getConvergedReason()}")
    errors = (ctypes.c_double * 2)()
    exact = petsc.pointers(space.functions["velocity"], space.functions["pressure"])
    petsc.call("DMComputeL2FieldDiff", dm, ctypes.c_double(0), exact, None, solution, errors)
    return snes.getIterationNumber(), errors[VELOCITY]


def main():
    comm = PETSc.COMM_WORLD
    options = PETSc.Options()
    for name, value in OPTIONS.items():
        if not options.hasName(name):
            options[name] = value
    problem = equations()
    ranks = comm.tompi4py()
    module = problem.compile(ranks, **petsc.types())
    space = jitc.compile(functions_of_space(velocity=EXACT_VELOCITY, pressure=[EXACT_PRESSURE], zero=[0, 0], one=[1]),
                         comm=ranks, name="exact.c")
    stats = jitc.default_context(ranks).stats
    PETSc.Sys.Print(f"{comm.size} ranks, compilers started: {stats['compilers_started']}")
    PETSc.Sys.Print("  cells  Newton   velocity  order")
    previous = None
    for cells in map(int, options.getString("cells", "4,8").split(",")):
        iterations, error = solve(comm, problem, module, space, cells)
        order = previous and math.log(previous[1] / error) / math.log(cells / previous[0])
        PETSc.Sys.Print(f"{cells:7d} {iterations:7d}   {error:8.2e}  " + (f"{order:5.2f}" if order else "    -"))
        previous = cells, error
    if order is not None and not 2.8 < order < 3.3:
        PETSc.Sys.Print(f"the velocity's order is {order:.2f}, not that of Q2")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
