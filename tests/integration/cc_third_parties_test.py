#!/usr/bin/python3
"""A generator of others with CC="jitc cc": it makes its module in one directory, then in another one, where what is
kept is not compiled any more; and what it made works.

    cc_third_parties_test.py --bin BUILD/bin PARTY
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

CYTHON = {
    "module.pyx": "def total(double[:] x):\n    cdef double s = 0\n    cdef int i\n    for i in range(x.shape[0]):\n"
                  "        s += x[i]\n    return s\n",
    "setup.py": "from setuptools import setup, Extension\nfrom Cython.Build import cythonize\n"
                "module = Extension('module', ['module.pyx'])\n"
                "setup(name='module', ext_modules=cythonize([module], language_level=3))\n",
    "run.py": "import array, subprocess, sys\n"
              "subprocess.run([sys.executable, 'setup.py', '-q', 'build_ext', '--inplace'], check=True)\n"
              "import module\nassert module.total(array.array('d', [1, 2, 3.5])) == 6.5\n",
}
CFFI = {
    "run.py": "import sys, cffi\nffi = cffi.FFI()\nffi.cdef('double twice(double);')\n"
              "ffi.set_source('_twice', 'double twice(double x) { return 2 * x; }')\nffi.compile(tmpdir='built')\n"
              "sys.path.insert(0, 'built')\nimport _twice\nassert _twice.lib.twice(1.25) == 2.5\n",
}
AUTOWRAP = {
    "run.py": "import os\nfrom sympy.abc import x, y\nfrom sympy import sin\n"
              "from sympy.utilities.autowrap import autowrap\nos.mkdir('built')\n"
              "f = autowrap(sin(x) * y**2, backend='cython', tempdir=os.path.abspath('built'), args=[x, y])\n"
              "import math\nassert abs(f(0.5, 3.0) - 9 * math.sin(0.5)) < 1e-12\n",
}
FFCX = {
    "run.py": "import ufl, ffcx.codegeneration.jit as jit\n"
              "cell = ufl.triangle\nelement = ufl.FiniteElement('Lagrange', cell, 2)\n"
              "u, v = ufl.TrialFunction(element), ufl.TestFunction(element)\nkappa = ufl.Coefficient(element)\n"
              "form = ufl.inner((1 + kappa**2) * ufl.grad(u), ufl.grad(v)) * ufl.dx\n"
              "forms, module, code = jit.compile_forms([form], cache_dir='cache')\nassert forms[0].rank == 2\n",
}
MPICC = {
    "k.c": "#include <mpi.h>\nint size(MPI_Comm c) { int n; MPI_Comm_size(c, &n); return n; }\n",
    "run.py": "import os, subprocess\nos.environ['OMPI_CC'] = os.environ['CC']\n"
              "for words in (['-fPIC', '-c', 'k.c'], ['-shared', 'k.o', '-o', 'k.so']):\n"
              "    subprocess.run(['mpicc.openmpi', *words], check=True)\n",
}
# PETSc's own example by PETSc's own makefile. Its last step makes a program, which is the compiler's alone.
PETSC_DIRECTORY = pathlib.Path("/usr/lib/petscdir/petsc-real")
PETSC_EXAMPLE = pathlib.Path("/usr/share/petsc/3.18/share/petsc/examples/src/ksp/ksp/tutorials")
PETSC = {
    "run.py": "import os, shutil, subprocess\n"
              f"for name in ('ex2.c', 'makefile'):\n    shutil.copy('{PETSC_EXAMPLE}/' + name, name)\n"
              "os.environ['OMPI_CC'] = os.environ['CC']\n"
              f"make = ['make', 'PETSC_DIR={PETSC_DIRECTORY.resolve()}', 'CC=mpicc.openmpi']\n"
              "subprocess.run([*make, 'ex2.o'], check=True)\n"
              "subprocess.run(['mpicc.openmpi', 'ex2.o', '-o', 'ex2', "
              f"'-L{PETSC_DIRECTORY}/lib', '-lpetsc_real'], check=True)\n"
              "said = subprocess.run(['./ex2'], check=True, stdout=subprocess.PIPE, text=True).stdout\n"
              "assert said.startswith('Norm of error'), said\n",
}
# Poisson's equation on four ranks.
DOLFINX = {
    "poisson.py": "from mpi4py import MPI\nfrom petsc4py import PETSc\nimport numpy, ufl\n"
                  "from dolfinx import fem, mesh\n"
                  "from dolfinx.fem.petsc import LinearProblem\n"
                  "square = mesh.create_unit_square(MPI.COMM_WORLD, 8, 8)\n"
                  "space = fem.FunctionSpace(square, ('Lagrange', 1))\n"
                  "u, v = ufl.TrialFunction(space), ufl.TestFunction(space)\n"
                  "force = fem.Constant(square, PETSc.ScalarType(1))\n"
                  "sides = mesh.locate_entities_boundary(square, 1, lambda x: numpy.isclose(x[0] * (1 - x[0]), 0))\n"
                  "fixed = fem.dirichletbc(PETSc.ScalarType(0), fem.locate_dofs_topological(space, 1, sides), space)\n"
                  "a, b = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, force * v * ufl.dx\n"
                  "problem = LinearProblem(a, b, bcs=[fixed], petsc_options={'ksp_rtol': 1e-12})\n"
                  "assert abs(problem.solve().vector.max()[1] - 0.125) < 1e-6\n",
    "run.py": "import os, subprocess, sys\nos.environ['XDG_CACHE_HOME'] = os.path.abspath('cache')\n"
              "os.environ.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',\n"
              "                  OMPI_MCA_rmaps_base_oversubscribe='1', OMP_NUM_THREADS='1')\n"
              "subprocess.run(['mpirun.openmpi', '-n', '4', sys.executable, 'poisson.py'], check=True)\n",
}


class Party:
    def __init__(self, files, modules=(), needs=(), kept=2, passed=0, moves=True):
        self.files = files
        self.modules, self.needs = modules, needs  # of Python; programs and paths
        self.kept = kept      # least number of compiles and links that a second run finds
        self.passed = passed  # commands of a run that are the compiler's alone
        self.moves = moves    # False: its objects name whole paths of sources, so it comes back to its place

    def missing(self):
        return [name for name in self.modules if importlib.util.find_spec(name) is None] + \
               [str(name) for name in self.needs if not shutil.which(name) and not os.path.exists(name)]


PARTIES = {
    "cython": Party(CYTHON, ["Cython", "setuptools"]),
    "cffi": Party(CFFI, ["cffi", "setuptools"]),
    "autowrap": Party(AUTOWRAP, ["sympy", "Cython", "numpy"]),
    "ffcx": Party(FFCX, ["ffcx", "cffi"]),
    "mpicc": Party(MPICC, needs=["mpicc.openmpi"]),
    "petsc": Party(PETSC, needs=["mpicc.openmpi", "make", PETSC_DIRECTORY, PETSC_EXAMPLE / "ex2.c"],
                   kept=1, passed=1, moves=False),
    "dolfinx": Party(DOLFINX, ["dolfinx", "ffcx", "petsc4py"], ["mpirun.openmpi"], kept=4),
}


def run(party, jitc, directory):
    """What went wrong."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JITC_")}
    environment.update(JITC_RUNTIME_DIR=str(directory / "run"), JITC_STORE=str(directory / "store"),
                       JITC_TIMEOUT="120s", PYTHONDONTWRITEBYTECODE="1")

    def counters():
        done = subprocess.run([jitc, "stats", "--json"], env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    subprocess.run([jitc, "daemon", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        for turn in ("first", "second"):
            place = directory / (turn if party.moves else "first")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for file, text in party.files.items():
                place.joinpath(file).write_text(text)
            before = counters()
            done = subprocess.run([sys.executable, "run.py"], cwd=place, env={**environment, "CC": f"{jitc} cc"},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            after = counters()
            if done.returncode != 0:
                return [f"{turn} run: {done.stdout}"]
            names = ("compiles_started", "cc_requests", "cc_hits", "cc_passed")
            print(f"{turn} run:", ", ".join(f"{name} {before[name]} -> {after[name]}" for name in names))
            grown = {name: after[name] - before[name] for name in names}
            found = grown["cc_hits"] if turn == "second" else grown["compiles_started"] - grown["cc_passed"]
            if found < party.kept or grown["cc_passed"] != party.passed:
                return [f"{turn} run: {grown}"]
            if turn == "second" and grown["compiles_started"] != party.passed:
                return [f"compilers were started for what is kept: {grown}"]
        return []
    finally:
        subprocess.run([jitc, "daemon", "stop"], env=environment, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("party", choices=PARTIES)
    arguments = parser.parse_args()
    party = PARTIES[arguments.party]
    if missing := party.missing():
        print("skipped, not installed:", *missing)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="jitc-cc-") as name:
        failures = run(party, os.path.abspath(os.path.join(arguments.bin, "jitc")), pathlib.Path(name))
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
