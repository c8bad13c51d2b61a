#!/usr/bin/python3
"""Generators of others with CC="jitc cc": each makes a module in one directory, then in another one, where nothing is
compiled any more; and what they made works.

    cc_third_parties_test.py --bin BUILD/bin
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
                "setup(name='module', ext_modules=cythonize([Extension('module', ['module.pyx'])], language_level=3))\n",
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
    "run.py": "import os\nfrom sympy.abc import x, y\nfrom sympy import sin\nfrom sympy.utilities.autowrap import autowrap\n"
              "os.mkdir('built')\nf = autowrap(sin(x) * y**2, backend='cython', tempdir=os.path.abspath('built'), args=[x, y])\n"
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
# Name, the packages that it needs, its files, least number of compiles and links.
PARTIES = [
    ("Cython by setuptools", ["Cython", "setuptools"], CYTHON, 2),
    ("cffi", ["cffi", "setuptools"], CFFI, 2),
    ("SymPy's autowrap", ["sympy", "Cython", "numpy"], AUTOWRAP, 2),
    ("FFCx", ["ffcx", "cffi"], FFCX, 2),
]
if shutil.which("mpicc.openmpi"):
    PARTIES.append(("mpicc of Open MPI", [], MPICC, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    jitc = os.path.abspath(os.path.join(parser.parse_args().bin, "jitc"))
    failures, ran = [], 0
    with tempfile.TemporaryDirectory(prefix="jitc-cc-") as name:
        directory = pathlib.Path(name)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("JITC_")}
        environment.update(JITC_RUNTIME_DIR=str(directory / "run"), JITC_STORE=str(directory / "store"),
                           JITC_TIMEOUT="120s", PYTHONDONTWRITEBYTECODE="1")
        subprocess.run([jitc, "daemon", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)

        def counters():
            return json.loads(subprocess.run([jitc, "stats", "--json"], env=environment, stdout=subprocess.PIPE).stdout)

        try:
            for party, packages, files, least in PARTIES:
                missing = [package for package in packages if importlib.util.find_spec(package) is None]
                if missing:
                    print(f"{party}: left out, {missing} missing")
                    continue
                ran += 1
                for turn in ("first", "second"):
                    place = directory / turn / party.split()[0]
                    place.mkdir(parents=True)
                    for file, text in files.items():
                        place.joinpath(file).write_text(text)
                    before = counters()
                    done = subprocess.run([sys.executable, "run.py"], cwd=place, env={**environment, "CC": f"{jitc} cc"},
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    after = counters()
                    if done.returncode != 0:
                        failures.append(f"{party}, {turn}: {done.stdout}")
                        break
                    started = after["compiles_started"] - before["compiles_started"]
                    hits = after["cc_hits"] - before["cc_hits"]
                    print(f"{party}, {turn} directory: compilers started {before['compiles_started']} -> "
                          f"{after['compiles_started']}, hits {before['cc_hits']} -> {after['cc_hits']}")
                    fits = started >= least if turn == "first" else started == 0 and hits >= least
                    if not fits:
                        failures.append(f"{party}, {turn}: {started} compilers started, {hits} hits")
        finally:
            subprocess.run([jitc, "daemon", "stop"], env=environment, stdout=subprocess.DEVNULL)
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0 if ran else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
