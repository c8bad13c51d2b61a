"""The trees that jitc prints give the same bits as SymPy's own C text, for every residual of the corpus and for nodes
that the corpus lacks, under one compiler and one set of flags. Any NaN equals any NaN, and any zero any zero: C leaves
open which of two zeros fmax and fmin give."""
import ctypes
import gzip
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import jitc
import sympy
from sympy import Float, Max, Min, Mod, Piecewise, Rational, Symbol, exp, log, pi, sqrt
from sympy.codegen.cfunctions import Cbrt, Sqrt, exp2, expm1, fma, hypot, log1p, log2, log10

import corpus

POINTS = 200
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e308, float("inf"), float("-inf"), float("nan")]
SIZE = 256  # of every argument array: more than any problem has


def points():
    chance = random.Random(7)
    for place in range(POINTS):
        def value():
            return chance.choice(SPECIAL) if place % 4 == 3 and chance.random() < 0.3 else chance.uniform(-2, 2) * \
                10 ** chance.randint(-3, 3 if place % 2 else 0)

        yield [[value() for _ in range(SIZE)] for _ in range(9)]


class Text:
    """A C text compiled by gcc."""

    def __init__(self, directory, name, text):
        source, target = (pathlib.Path(directory) / f"{name}{end}" for end in (".c", ".so"))
        source.write_text(text)
        flags = "-O1", "-std=gnu99", "-ffp-contract=off", "-shared", "-fPIC"
        subprocess.run(["gcc", *flags, "-o", target, source, "-lm"], check=True)
        self._loaded = ctypes.CDLL(str(target))

    def __call__(self, function, size, point, boundary=False):
        """Bits of the outputs; a NaN is a NaN."""
        u, u_t, u_x, a, a_t, a_x, x, n, constants = ((ctypes.c_double * SIZE)(*values) for values in point)
        out = (ctypes.c_double * size)()
        normal = [n] if boundary else []
        getattr(self._loaded, function)(2, 1, 1, None, None, u, u_t, u_x, None, None, a, a_t, a_x,
                                        ctypes.c_double(point[0][0]), x, *normal, SIZE, constants, out)
        return ["nan" if value != value else struct.pack("<d", value + 0.0) for value in out]  # -0.0 + 0.0 is 0.0


def printed(name):
    """SymPy's own text of a problem, made by its C99 printer."""
    plain = corpus.FOLDER / name / "tree.c"
    return plain.read_text() if plain.exists() else gzip.decompress(plain.with_suffix(".c.gz").read_bytes()).decode()


def residual_part(text):
    """Up to the first Jacobian block: the rest takes gcc long."""
    return text[:text.index("\nvoid g")]


u, v, k = Symbol("petsc_u[0]", real=True), Symbol("petsc_u[1]", real=True), Symbol("constants[0]", real=True)
EXPRESSIONS = [
    -(u + v), -2*(u + v), 1 - 2*u, u - 3*v + 1, -u/v, -1/u, 2/(3*u*v), u/v**2, u**-2, u**Rational(-1, 2),
    u**Rational(1, 3), (u + v)**Rational(-3, 2)/v, u**Rational(-1, 3)*v, u**k, u**(-k), u**Rational(2, 7),
    u**Float("0.1"), u**Float(-1.0)*v, u**Float("0.5"), Rational(1, 3)*u, Rational(-7, 10)*u*v, Rational(2, 3)*sqrt(u)/v,
    Float("0.1")*u,
    Float("0.1", 40)*u, Float("1.23456789012345678901234567890", 30) + u, 10**15*u, sympy.Integer(2)**62 + u,
    pi*u, 2*u/pi,
    sqrt(2)*u, u/sqrt(2), 2/sqrt(pi) + u, log(2)*u, u/log(2), log(10) + u, sympy.E*u, exp(u), exp(-2*u*v), exp(u)**2/v,
    sympy.EulerGamma*u, sympy.GoldenRatio + u, Max(u, v, k), Min(u, v, k, 1), Max(u, 0)/Max(v, Rational(1, 3)),
    sympy.Abs(u - v), sympy.sign(u)*v, Mod(u, v), Mod(u, 2), sympy.floor(u) + sympy.ceiling(v), sympy.atan2(u, v),
    sympy.erf(u), sympy.erfc(v), sympy.sinh(u), sympy.cosh(u)*sympy.tanh(v), sympy.asinh(u), sympy.acosh(u),
    sympy.atanh(u),
    sympy.asin(u) + sympy.acos(v) - sympy.atan(k), sympy.tan(u), sympy.gamma(u), sympy.loggamma(v), log2(u),
    log10(u), log1p(u),
    expm1(u), exp2(v), hypot(u, v), fma(u, v, k), Cbrt(u), Sqrt(v), sympy.sec(u), sympy.cot(v), sympy.sinc(u),
    Piecewise((u, u < v), (v**2, sympy.And(u >= 1, v <= 2)), (k, sympy.Or(u > 3, sympy.Eq(v, 0))), (0, True)),
    Piecewise((sqrt(u), ~(sympy.Ne(u, 1) & (v > 0))), (Piecewise((1, v < 0), (2, True)), True)),
    Piecewise((u, sympy.ITE(u > 0, v > 0, k > 0)), (v, True)), Piecewise((u, sympy.Xor(u > 0, v > 0)), (v, True)),
    u*(v + k) + v*(u - k) - (u - v)**2 + (u + v + k)**3/(u*v*k), u + sympy.oo*sympy.sign(v),
]


class Bits(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="jitc-bits-")
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name

    def compare(self, ours, theirs, functions, boundary=False):
        compared = 0
        for point in points():
            for function, size in functions:
                found, wanted = (text(function, size, point, boundary) for text in (ours, theirs))
                self.assertEqual(found, wanted, function)
                compared += size
        self.assertGreater(compared, 0)

    def test_residuals_of_the_corpus(self):
        for name in corpus.NAMES:
            with self.subTest(name):
                told = corpus.description(name)
                functions = [(one["name"], one["size"]) for one in told["residual"]]
                ours = Text(self.directory, f"{name}_ours", residual_part(corpus.problem(name).emit(sharing="0")))
                theirs = Text(self.directory, f"{name}_theirs", residual_part(printed(name)))
                self.compare(ours, theirs, functions, told["where"] == "boundary")

    def test_single_nodes(self):
        problem = jitc.from_sympy(EXPRESSIONS, constants=["k"], aux_fields=[1], blocks=(), fields=[len(EXPRESSIONS)])
        ours = problem.emit(sharing="0")
        printer = sympy.printing.c.C99CodePrinter({"human": False})
        lines = "".join(f"  out[{place}] = {printer.doprint(_printable(expr))[2]};\n"
                        for place, expr in enumerate(EXPRESSIONS))
        head = ours[ours.index("void f0_0"):ours.index("out[0] =")]
        theirs = "#include <math.h>\ntypedef int PetscInt;\ntypedef double PetscReal, PetscScalar;\n" + \
            "static const double EulerGamma = 0.57721566490153286, GoldenRatio = 1.6180339887498948;\n" + \
            head + lines + "}\n"
        self.compare(Text(self.directory, "ours", ours), Text(self.directory, "theirs", theirs),
                     [("f0_0", len(EXPRESSIONS))])


def _printable(expr):
    """What SymPy 1.11's printer refuses or prints wrongly, as it would be right."""
    return expr.replace(sympy.Xor, lambda *both: sympy.Xor(*both).to_nnf()).replace(Sqrt, sympy.sqrt)


if __name__ == "__main__":
    unittest.main()
