#!/usr/bin/python3
"""Bratu's equation, -div grad u = lambda exp(u) on the unit square, u = 0 on its boundary: a SNES of petsc4py whose
callbacks call compiled functions on numpy arrays.

    mpirun -n 2 bratu.py [-cells 24] [-lambda 5] [PETSc's options]

The reaction is stated in SymPy; jitc derives its derivative and compiles both once for all ranks, as one function for
many points. The grid's part, five-point differences on a DMDA, is numpy. A daemon must run (`jitc daemon start`). Ends
with 0 when Newton converges.
"""
import sys

import petsc4py

petsc4py.init(sys.argv)
import jitc  # noqa: E402
import numpy as np  # noqa: E402
import sympy  # noqa: E402
from petsc4py import PETSc  # noqa: E402


class Bratu:
    """Residual and Jacobian on this rank's part of the grid."""

    def __init__(self, da, module, strength):
        self.da = da
        self.reaction = module.functions["batch"]
        self.strength = [strength]
        self.spacing = 1.0 / (da.getSizes()[0] - 1)

    def on_boundary(self):
        (x0, x1), (y0, y1) = self.da.getRanges()
        last = self.da.getSizes()[0] - 1
        i, j = np.meshgrid(np.arange(x0, x1), np.arange(y0, y1), indexing="ij")
        return (i == 0) | (i == last) | (j == 0) | (j == last)

    def of_points(self, u):
        """-lambda exp(u) and its derivative, as u has them: (nx, ny) values in, (nx, ny) out."""
        told = self.reaction(u=u[..., None], constants=self.strength)
        return told["f0_0"][..., 0], told["g0_0_0"][..., 0]

    def residual(self, snes, vector, result):
        local = self.da.getLocalVec()
        self.da.globalToLocal(vector, local)
        (x0, x1), (y0, y1) = self.da.getRanges()
        (gx, gy), _ = self.da.getGhostCorners()
        with_ghosts = self.da.getVecArray(local)[:]
        padded = np.pad(with_ghosts, 1)  # what is beyond the boundary is read and not used
        i, j = slice(x0 - gx + 1, x1 - gx + 1), slice(y0 - gy + 1, y1 - gy + 1)
        u = padded[i, j]
        neighbours = sum(padded[shift(i, di), shift(j, dj)] for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)))
        value, _ = self.of_points(np.ascontiguousarray(u))
        self.da.getVecArray(result)[:] = np.where(self.on_boundary(), u, 4 * u - neighbours + self.spacing**2 * value)
        self.da.restoreLocalVec(local)

    def jacobian(self, snes, vector, matrix, preconditioner):
        u = np.ascontiguousarray(self.da.getVecArray(vector)[:])
        _, slope = self.of_points(u)
        edge = self.on_boundary()
        (x0, x1), (y0, y1) = self.da.getRanges()
        row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
        for i in range(x0, x1):
            for j in range(y0, y1):
                row.index = (i, j)
                here = edge[i - x0, j - y0]
                preconditioner.setValueStencil(row, row, 1.0 if here else 4 + self.spacing**2 * slope[i - x0, j - y0])
                for column.index in () if here else ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                    preconditioner.setValueStencil(row, column, -1.0)
        preconditioner.assemble()
        return PETSc.Mat.Structure.SAME_NONZERO_PATTERN


def shift(one, by):
    return slice(one.start + by, one.stop + by)


def main():
    options = PETSc.Options()
    cells, strength = options.getInt("cells", 24), options.getReal("lambda", 5.0)
    u, k = sympy.Function("u")(sympy.Symbol("x"), sympy.Symbol("y")), sympy.Symbol("lambda")
    problem = jitc.from_sympy({"f0_0": [-k * sympy.exp(u)]}, leaves={u: "u[0]"}, constants=[k], blocks=["g0_0_0"],
                              name="bratu")
    module = problem.compile(PETSc.COMM_WORLD, layout="batch")
    da = PETSc.DMDA().create([cells + 1, cells + 1], stencil_width=1, comm=PETSc.COMM_WORLD)
    bratu = Bratu(da, module, strength)
    snes = PETSc.SNES().create(PETSc.COMM_WORLD)
    snes.setDM(da)
    snes.setFunction(bratu.residual, da.createGlobalVec())
    snes.setJacobian(bratu.jacobian, da.createMatrix())
    snes.getKSP().setTolerances(rtol=1e-8)
    snes.setTolerances(rtol=1e-10)
    snes.setFromOptions()
    solution = da.createGlobalVec()
    snes.solve(None, solution)
    steps, largest = snes.getIterationNumber(), solution.max()[1]
    PETSc.Sys.Print(f"module from: {module.origin}; Newton steps: {steps}; largest u: {largest:.5f}")
    return 0 if snes.getConvergedReason() > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
