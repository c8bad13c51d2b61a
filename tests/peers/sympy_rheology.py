#!/usr/bin/python3
"""The work of tests/bench/rheology.cc done by SymPy: 13 outputs, 169 derivatives, cse, C text.

    sympy_rheology.py DIRECTORY

Writes DIRECTORY/{small,medium,large}.c, each with one function `g` of PETSc's Jacobian signature that computes the 169
derivatives after cse, and DIRECTORY/times.txt: a line `NAME SHARED PLAIN` each, in milliseconds of CPU time; SHARED is
build + diff + cse + print, PLAIN build + diff + print ("-" but for `small`: the others take minutes).
"""
import os
import re
import sys
import time

import sympy
from sympy import Max, Min, Rational, Symbol, exp, sqrt
from sympy.printing.c import C99CodePrinter

SYMMETRIC = (0, 1, 2, 1, 3, 4, 2, 4, 5)
HALF = Rational(1, 2)
SIGNATURE = (
    "void g(int dim, int Nf, int NfAux, const int *restrict uOff, const int *restrict uOff_x, "
    "const double *restrict u, const double *restrict u_t, const double *restrict u_x, const int *restrict aOff, "
    "const int *restrict aOff_x, const double *restrict a, const double *restrict a_t, const double *restrict a_x, "
    "double t, double u_tShift, const double *restrict x, int numConstants, const double *restrict c, "
    "double *restrict out)"
)


def leaf(array, index):
    return Symbol(f"{array}[{index}]", real=True)


def gradient(i, j):
    return leaf("u_x", 3 * i + j)


def constant(k):
    return leaf("c", k)


def aux(k):
    return leaf("a", k)


PRESSURE = leaf("u", 3)
DIRECTIONS = [leaf("u_x", k) for k in range(9)] + [leaf("u", i) for i in range(4)]


def strain_rate():
    return [gradient(i, i) if i == j else HALF * (gradient(i, j) + gradient(j, i)) for i in range(3) for j in range(3)]


def invariant(tensor, floor):
    return sqrt(HALF * sum(component**2 for component in tensor) + floor)


def forces(temperature):
    speed = sqrt(sum(leaf("u", i) ** 2 for i in range(3)) + constant(30))
    return [
        constant(31) * (1 - constant(32) * temperature) * constant(33 + i) + constant(36) * speed * leaf("u", i)
        for i in range(3)
    ]


def outputs(temperature, deviatoric):
    stresses = [stress - PRESSURE if k % 4 == 0 else stress for k, stress in enumerate(deviatoric)]
    return forces(temperature) + stresses + [gradient(0, 0) + gradient(1, 1) + gradient(2, 2)]


def small():
    rate = strain_rate()
    temperature = aux(0)
    scalar = invariant(rate, constant(0))
    n = 3.5
    creep = (
        constant(1)
        * scalar ** ((1 - n) / n)
        * exp((constant(2) + PRESSURE * constant(3)) / (constant(4) * temperature * n))
    )
    plastic = (constant(5) * constant(6) + PRESSURE * constant(7)) / (2 * scalar)
    viscosity = Max(Min(1 / (1 / creep + 1 / plastic), constant(8)), constant(9))
    return outputs(temperature, [2 * viscosity * component for component in rate])


def composite_creep(elastic, temperature, scalar):
    inverse = 1 / elastic
    for k, (n, grain) in enumerate(((1, 3), (3.5, 0), (2, 2), (2.9, 1.4))):
        law = constant(10 + 4 * k)
        if n != 1:
            law *= scalar ** ((1 - n) / n)
        if grain:
            power = grain / n
            law *= aux(2) ** (int(power) if power == int(power) else power)
        energy = constant(11 + 4 * k) + PRESSURE * constant(12 + 4 * k)
        inverse += 1 / (law * exp(energy / (constant(13 + 4 * k) * temperature * n)))
    return 1 / inverse


def yield_stress():
    weakening = Min(1, aux(1) / constant(40))
    cohesion = constant(41) + (constant(42) - constant(41)) * weakening
    friction = constant(43) + (constant(44) - constant(43)) * weakening
    return Max(cohesion * sqrt(1 - friction**2) + PRESSURE * friction, constant(45))


def weak_plane(i, j, k, l, n):
    terms = -2 * n[i] * n[j] * n[k] * n[l]
    for equal, product in (
        (j == l, n[i] * n[k]),
        (l == i, n[j] * n[k]),
        (j == k, n[i] * n[l]),
        (k == i, n[j] * n[l]),
    ):
        if equal:
            terms += HALF * product
    return terms


def large(is_isotropic):
    temperature = aux(0)
    elastic = constant(0) * constant(1)
    rate = [component + aux(10 + SYMMETRIC[k]) / (2 * elastic) for k, component in enumerate(strain_rate())]
    scalar = invariant(rate, constant(2))
    isotropic = Max(Min(composite_creep(elastic, temperature, scalar), yield_stress() / (2 * scalar)), constant(46))
    if is_isotropic:
        return outputs(temperature, [2 * isotropic * component for component in rate])
    n = [aux(3), aux(4), aux(5)]
    traction = [sum(rate[3 * i + j] * n[j] for j in range(3)) for i in range(3)]
    normal = sum(traction[i] * n[i] for i in range(3))
    shear = sqrt(sum(component**2 for component in traction) - normal**2 + constant(2))
    weak = Max(Min(isotropic, (constant(47) + PRESSURE * constant(48)) / (2 * shear)), constant(46))
    planes = [
        sum(weak_plane(i, j, kl // 3, kl % 3, n) * rate[kl] for kl in range(9)) for i in range(3) for j in range(3)
    ]
    return outputs(temperature, [2 * isotropic * rate[k] - 2 * (isotropic - weak) * planes[k] for k in range(9)])


MODELS = {"small": small, "medium": lambda: large(True), "large": lambda: large(False)}


def milliseconds(work):
    sympy.core.cache.clear_cache()
    start = time.process_time()
    result = work()
    return result, 1e3 * (time.process_time() - start)


def derivatives(name):
    return [sympy.diff(output, direction) for output in MODELS[name]() for direction in DIRECTIONS]


def text(temporaries, entries):
    printer = C99CodePrinter()
    lines = [f"  const double {symbol} = {printer.doprint(value)};" for symbol, value in temporaries]
    lines += [f"  out[{i}] = {printer.doprint(entry)};" for i, entry in enumerate(entries)]
    # SymPy prints its step function by name; C has none.
    return re.sub(r"\bHeaviside\(", "heaviside(", "\n".join(lines))


def main(directory):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "times.txt"), "w", encoding="ascii") as times:
        for name in MODELS:
            body, shared = milliseconds(lambda: text(*sympy.cse(derivatives(name), symbols=sympy.numbered_symbols("s"))))
            plain = f"{milliseconds(lambda: text([], derivatives(name)))[1]:.3f}" if name == "small" else "-"
            with open(os.path.join(directory, f"{name}.c"), "w", encoding="ascii") as source:
                source.write(
                    "#include <math.h>\n"
                    "static inline double heaviside(double x, double mid) { return x < 0 ? 0 : x > 0 ? 1 : mid; }\n"
                    f"{SIGNATURE}\n{{\n{body}\n}}\n"
                )
            times.write(f"{name} {shared:.3f} {plain}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
