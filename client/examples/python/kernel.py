#!/usr/bin/python3
"""C text as functions of numpy arrays, with and without MPI.

    kernel.py
    mpirun -n 4 kernel.py      where there is mpi4py: one compile for all ranks

A daemon must run (`jitc daemon start`), or JITC_AUTOSTART=1 be set.
"""
import jitc
import numpy as np

SOURCE = """#include <math.h>
double viscosity(double strain_rate, double exponent) { return pow(strain_rate, 1.0 / exponent - 1.0); }
void scale(int n, const double *restrict a, double factor, double *restrict out) {
  for (int i = 0; i < n; ++i) out[i] = factor * a[i];
}
"""

try:
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
except ImportError:
    comm = None  # this process alone

module = jitc.compile(SOURCE, flags=["-O2"], comm=comm, name="kernel.c")
viscosity, scale = module.functions["viscosity"], module.functions["scale"]

rates = np.array([0.25, 1.0, 4.0])
out = np.empty_like(rates)
scale(rates.size, rates, 2.0, out)  # the caller's own memory: nothing is copied
if comm is None or comm.rank == 0:
    print("viscosity:", viscosity(rates, 2.0))  # called for each element
    print("scaled:", out)

try:
    jitc.compile("double f(double x) { return x + ; }", comm=comm, name="wrong.c")
except jitc.CompileError as error:  # on all ranks alike
    if comm is None or comm.rank == 0:
        place = error.diagnostics[0]
        print(f"{error.kind} in line {place['line']}, column {place['column']}: {place['message']}")
