#!/usr/bin/python3
"""A viscoplastic flux as Underworld3 states it, through jitc.underworld: fields are applied functions, parameters are
symbols that stand for an expression. Prints residual and Newton's block of a point.

    mpirun -n 2 rheology.py
"""
import itertools

import numpy as np
import sympy
from jitc import underworld
from mpi4py import MPI
from sympy import Function, Matrix, Min, Symbol, sqrt


class Parameter(Symbol):
    """A symbol that stands for `sym`; two of one name are two."""

    _created = itertools.count()

    def __new__(cls, name, sym):
        one = Symbol.__xnew__(cls, name, real=True)
        one.instance_number, one.sym = next(cls._created), sympy.sympify(sym)
        return one

    def _hashable_content(self):
        return (*super()._hashable_content(), getattr(self, "instance_number", None))


x, y = sympy.symbols("x y", real=True)
V, P = Matrix([Function("V_0")(x, y), Function("V_1")(x, y)]), Function("P")(x, y)
L = V.jacobian([x, y])
leaves = {V[0]: "petsc_u[0]", V[1]: "petsc_u[1]", P: "petsc_u[2]", x: "petsc_x[0]", y: "petsc_x[1]"}
leaves.update((L[i, d], f"petsc_u_x[{2 * i + d}]") for i in range(2) for d in range(2))

E = (L + L.T) / 2
eta0, tau_y = Parameter("eta", 1.0), Parameter("tau_y", 0.4)  # read no field: slots of constants[]
e = Parameter("e_II", sqrt(sum(one**2 for one in E) / 2) + 1e-6)  # named nodes
viscosity = Parameter("eta_eff", Min(eta0, tau_y / (2 * e)))
F1 = 2 * viscosity * E - P * sympy.eye(2)

graph = underworld.Graph.from_sympy({"residual": [F1]}, leaves, fields=[("V", 2), ("P", 1)])
graph.jacobian(F1, L, components=2)                     # Newton
graph.jacobian(F1, L, components=2, see_through=False)  # Picard: the viscosity held fixed
library = graph.compile(MPI.COMM_WORLD)

at = {"u": np.zeros(3), "u_x": np.array([0.5, 0.2, 0.1, -0.5, 0, 0])}
stress = library.functions("residual")[0](**at)
newton, picard = (block(**at) for block in library.functions("jacobian"))
tau_y.sym = sympy.Float(0.8)  # a value: nothing is compiled again
stronger = library.functions("residual")[0](constants=library.pack(), **at)
if MPI.COMM_WORLD.rank == 0:
    print("constants:", [one.name for _, one in library.constants.entries])
    print("stress:", stress)
    print("of twice the yield stress:", stronger)
    print("Newton's block differs from Picard's:", bool(np.any(newton != picard)))
    print("addresses for PETSc:", len(library.addresses("residual")), len(library.addresses("jacobian")))
