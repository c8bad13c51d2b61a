"""The adapter for Underworld3 in one process: blocks and residuals against an independent evaluation, constants, keys,
the environment's variables, and the store's troubles. Over several ranks: underworld_mpi_test.py.

usage: underworld_test.py BIN_DIRECTORY [unittest's arguments]
"""
import contextlib
import ctypes
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

import jitc
import numpy as np
import sympy
from jitc import underworld
from sympy import Heaviside, Matrix, Max, Piecewise, Rational, Symbol

import underworld_models as models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN = sys.argv.pop(1)
TEXT = """#include "petscsystypes.h"
#include "helpers.h"
void eqn_0(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
           const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[],
           const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[],
           PetscReal t, const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar out[]) {
  out[0] = twice(u[0]) + constants[0];
}
void eqn_1(double *out) { out[0] = M_PI; }
"""
HELPERS = "#include <math.h>\nstatic double twice(double x) { return FACTOR * x; }\n"


def sources(factor=2):
    return [("kernel.c", TEXT.replace("twice(u", f"twice({factor} * 0.5 * u")), underworld.petsc_types(),
            ("helpers.h", "#define FACTOR 2.0\n" + HELPERS)]


ENTRY = {"residual": ["eqn_0"], "bcs": ["eqn_1"]}


def call_number(address):
    out = ctypes.c_double()
    ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_double))(address)(ctypes.byref(out))
    return out.value


class Daemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node(BIN)
        cls.addClassCleanup(cls.node.__exit__)
        names = {key: cls.node.environment[key] for key in ("JITC_RUNTIME_DIR", "JITC_STORE", "TMPDIR", "HOME")}
        others = [name for name in os.environ if name.startswith(("UW_", "UW3_"))]
        patch = mock.patch.dict(os.environ, names)
        patch.start()
        cls.addClassCleanup(patch.stop)
        for name in others:
            del os.environ[name]
        done = cls.node.jitc("daemon", "start")
        assert done.returncode == 0, done.stderr

    def started(self):
        return self.node.stats()["compiles_started"]


class Blocks(Daemon):
    """Every block and residual of a viscoplastic Stokes problem, compiled, at random points."""

    def check(self, dim):
        stokes = models.Stokes(dim)
        layout = stokes.layout
        graph = underworld.Graph.from_sympy(
            {"residual": [stokes.F0, stokes.F1, stokes.PF0], "bcs": [stokes.dirichlet, stokes.zero],
             "bd_residual": [stokes.nitsche]}, layout.leaves, **layout.options())
        V, L, P, Gp = (layout.U["V"], layout.L["V"], layout.U["P"], layout.L["P"])
        blocks = [(F, components, trial) for F, components in ((stokes.F0, dim), (stokes.F1, dim), (stokes.PF0, 1))
                  for trial in (V, L, P, Gp)]
        for F, components, trial in blocks:
            self.assertEqual(graph.jacobian(F, trial, components=components).role, "jacobian")
        on_boundary = [(stokes.nitsche, dim, V), (stokes.nitsche, dim, P)]
        for F, components, trial in on_boundary:
            graph.jacobian(F, trial, components=components, boundary=True)
        library = graph.compile()
        self.assertEqual({role: len(library.addresses(role)) for role in underworld.ROLES},
                         {"residual": 3, "bcs": 2, "jacobian": 12, "bd_residual": 1, "bd_jacobian": 2})
        self.assertTrue(all(library.addresses("bcs")), "a function that is zero is a function")
        oracles = {id(F): models.Oracle(list(F), layout.leaves) for F in (
            stokes.F0, stokes.F1, stokes.PF0, stokes.dirichlet, stokes.zero, stokes.nitsche)}
        chance = np.random.default_rng(dim)
        for _ in range(4 - dim):
            point = layout.random_point(chance)
            arrays = {**layout.arrays(point), "constants": library.pack()}
            without_normal = {name: values for name, values in arrays.items() if name != "n"}
            for role, functions, given in (
                    ("residual", (stokes.F0, stokes.F1, stokes.PF0), without_normal),
                    ("bcs", (stokes.dirichlet, stokes.zero), without_normal),
                    ("bd_residual", (stokes.nitsche,), arrays)):
                for F, function in zip(functions, library.functions(role)):
                    self.agree(function(**given), oracles[id(F)].values(point), (role, dim))
            for role, wanted, given in (("jacobian", blocks, without_normal), ("bd_jacobian", on_boundary, arrays)):
                for place, (F, components, trial) in enumerate(wanted):
                    exact = oracles[id(F)].block(point, components, dim, trial)
                    self.agree(library.functions(role)[place](**given), exact, (role, place, dim))

    def agree(self, got, exact, where):
        exact = np.array([float(one) for one in exact])
        self.assertEqual(got.shape, exact.shape, where)
        smallest = 1e-12 * max(1e-3, np.max(np.abs(exact)))
        np.testing.assert_allclose(got, exact, rtol=1e-12, atol=smallest, err_msg=str(where))

    def test_two_dimensions(self):
        self.check(2)

    def test_three_dimensions(self):
        self.check(3)

    def test_major_transpose_is_another_block(self):
        """The check above sees a block whose indices are in another order."""
        stokes = models.Stokes(2)
        point = stokes.layout.random_point(np.random.default_rng(5))
        g3 = models.Oracle(list(stokes.F1), stokes.layout.leaves).block(point, 2, 2, stokes.layout.L["V"])
        for order in ((2, 3, 0, 1), (1, 0, 3, 2), (0, 2, 1, 3)):
            self.assertGreater(np.max(np.abs(g3.reshape(2, 2, 2, 2).transpose(order).ravel() - g3)), 1e-3, order)

    def test_residuals_against_lambdify(self):
        stokes = models.Stokes(2)
        layout = stokes.layout
        graph = underworld.Graph.from_sympy([[stokes.F0, stokes.F1, stokes.PF0]], layout.leaves, **layout.options())
        functions = graph.compile().functions("residual")
        chance = np.random.default_rng(8)
        for F, function in zip((stokes.F0, stokes.F1, stokes.PF0), functions):
            for _ in range(2):
                point = layout.random_point(chance)
                arrays = {name: values for name, values in layout.arrays(point).items() if name != "n"}
                self.agree(function(**arrays), models.evaluated(list(F), point), function.name)

    def test_scalar_flux_without_symmetry(self):
        """G3 of a scalar field is dF1[df]/dL[dg], not its transpose; by SymPy's own derivatives."""
        layout = models.Layout(2, {"T": 1})
        T, L = layout.U["T"], layout.L["T"]
        k = models.Expression("k", 3)
        F1 = Matrix([[k * L[0] * (1 + L[1]**2) + T[0] * L[1], L[1] * sympy.exp(L[0] / 3)]])
        graph = underworld.Graph.from_sympy({"residual": [F1]}, layout.leaves, **layout.options())
        graph.jacobian(F1, L, components=1)
        graph.jacobian(F1, T, components=1)
        g3, g2 = graph.compile().functions("jacobian")
        point = layout.random_point(np.random.default_rng(4))
        arrays = {name: values for name, values in layout.arrays(point).items() if name != "n"}
        exact = [models.derivative(models.unwrapped(F1[df]), L[dg]) for df in range(2) for dg in range(2)]
        self.agree(g3(**arrays), models.evaluated(exact, point), "g3")
        exact = [models.derivative(models.unwrapped(F1[df]), T[0]) for df in range(2)]
        self.agree(g2(**arrays), models.evaluated(exact, point), "g2")

    def test_picard_newton_and_between(self):
        stokes = models.Stokes(2)
        layout, L = stokes.layout, stokes.layout.L["V"]
        graph = underworld.Graph.from_sympy({"residual": [stokes.F1]}, layout.leaves, **layout.options())
        for how in ({}, {"see_through": False}, {"continuation": stokes.alpha}, {"see_through": [stokes.viscosity]}):
            graph.jacobian(stokes.F1, L, components=2, **how)
        library = graph.compile()
        point = layout.random_point(np.random.default_rng(11))
        arrays = {name: values for name, values in layout.arrays(point).items() if name != "n"}
        newton, picard, between, partly = (one(constants=library.pack(), **arrays)
                                           for one in library.functions("jacobian"))
        number = models.evaluated([stokes.viscosity], point)[0]
        frozen = models.Oracle(list(stokes.F1.xreplace({stokes.viscosity: number})), layout.leaves)
        np.testing.assert_allclose(picard, frozen.block(point, 2, 2, L), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(between, picard + 0.25 * (newton - picard), rtol=1e-12, atol=1e-13)
        self.assertGreater(np.max(np.abs(newton - picard)), 1e-3)
        self.assertGreater(np.max(np.abs(partly - newton)), 1e-6)

    def test_kinks_and_rest(self):
        """Half of a Max at a tie; finite values where the strain rate is zero."""
        layout = models.Layout(2, {"V": 2})
        L = layout.L["V"]
        E = models.strain_rate(L)
        eta = models.Expression("eta", models.second_invariant(E) + 1)
        F1 = 2 * eta * E + Matrix([[Max(L[0, 0], L[1, 1]), 0], [0, 0]])
        graph = underworld.Graph.from_sympy({"residual": [F1]}, layout.leaves, **layout.options())
        graph.jacobian(F1, L, components=2)
        graph.jacobian(F1, L, components=2, see_through=False)
        newton, picard = (one(u_x=np.zeros(4)) for one in graph.compile().functions("jacobian"))
        self.assertTrue(np.all(np.isfinite(newton)) and np.all(np.isfinite(picard)))
        self.assertEqual((picard.reshape(2, 2, 2, 2)[0, 0, 0, 0], picard.reshape(2, 2, 2, 2)[0, 1, 0, 1]), (2.5, 0.5))


class Constants(Daemon):
    def setUp(self):
        self.layout = models.Layout(2, {"T": 1})
        self.T = self.layout.U["T"][0]

    def graph(self, expr):
        return underworld.Graph.from_sympy({"residual": [Matrix([expr])]}, self.layout.leaves, **self.layout.options())

    def test_values_and_names_are_no_part_of_the_key(self):
        k = models.Expression("k", 2.0)
        first = self.graph(k * self.T**2).compile()
        before = self.started()
        k.sym = sympy.Float(5)
        again = self.graph(k * self.T**2).compile()
        self.assertEqual((again.artifact.key, again.artifact.origin), (first.artifact.key, "memory"))
        self.assertEqual(list(again.pack()), [5.0])
        np.testing.assert_array_equal(again.functions("residual")[0](u=[3.0]), [45.0])
        renamed = models.Expression("conductivity", 1.0)
        self.assertEqual(self.graph(renamed * self.T**2).compile().artifact.key, first.artifact.key)
        self.assertEqual(self.started(), before)

    def test_from_constant_to_expression_and_back(self):
        k = models.Expression("k", 2.0)
        constant = self.graph(k * self.T + 1).compile().artifact.key
        k.sym = self.T**2
        graph = self.graph(k * self.T + 1)
        self.assertEqual(len(graph.constants), 0)
        self.assertNotEqual(graph.compile().artifact.key, constant)
        k.sym = sympy.Integer(7)
        self.assertEqual(self.graph(k * self.T + 1).compile().artifact.key, constant)
        graph = self.graph(k * self.T + 1)  # the same graph sees it as well
        keys = []
        for body in (sympy.Integer(3), self.T**2, sympy.Integer(4)):
            k.sym = body
            keys.append(graph.compile().artifact.key)
        self.assertEqual([key == constant for key in keys], [True, False, True])

    def test_two_of_one_name_are_two_slots(self):
        first, second = models.Expression("eta", 2.0), models.Expression("eta", 3.0)
        library = self.graph(first * self.T + second * self.T**2).compile()
        self.assertEqual([(slot, one.instance_number) for slot, one in library.constants.entries],
                         [(0, first.instance_number), (1, second.instance_number)])
        np.testing.assert_array_equal(library.functions("residual")[0](u=[10.0]), [320.0])

    def test_slots_are_by_structure_and_never_by_value(self):
        m = models.Expression("m", 0)
        looks_constant = models.Expression("w", (1 + self.T**2)**(-m) + 1)  # 2 for every T while m is 0
        graph = self.graph(looks_constant * self.T)
        self.assertEqual([one.name for _, one in graph.constants.entries], ["m"])
        a, b = models.Expression("b", 9.0), models.Expression("a", 1.0)
        graph = self.graph(a * self.T + b)
        self.assertEqual([one.name for _, one in graph.constants.entries], ["a", "b"])

    def test_what_is_no_number_any_more_is_never_packed(self):
        k = models.Expression("k", 2.0)
        library = self.graph(k * self.T).compile()
        k.sym = self.T
        with self.assertRaisesRegex(RuntimeError, r"constants\[0\], k, is no number any more"):
            library.pack()

    def test_values_with_units(self):
        k = models.Expression("k", sympy.Integer(4) * Symbol("metre"))
        graph = underworld.Graph.from_sympy(
            {"residual": [[k * self.T]]}, self.layout.leaves, **self.layout.options(),
            value=lambda one: float(one.sym.subs(Symbol("metre"), Rational(1, 2))))
        self.assertEqual(list(graph.compile().pack()), [2.0])

    def test_text_is_the_same_under_every_hash_seed(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "import underworld_models as models\nfrom jitc import underworld\n"
                   "s = models.Stokes(2)\n"
                   "exprs = {'residual': [s.F0, s.F1]}\n"
                   "g = underworld.Graph.from_sympy(exprs, s.layout.leaves, **s.layout.options())\n"
                   "g.jacobian(s.F1, s.layout.L['V'], components=2)\nprint(g.emit())")
        texts = [subprocess.run([sys.executable, "-B", "-c", program, str(pathlib.Path(__file__).parent)],
                                env={**os.environ, "PYTHONHASHSEED": seed}, text=True, stdout=subprocess.PIPE,
                                timeout=300, check=True).stdout for seed in ("0", "1", "2")]
        self.assertEqual(len(set(texts)), 1)
        self.assertIn("eqn_2", texts[0])


class Refusals(Daemon):
    def setUp(self):
        self.layout = models.Layout(2, {"V": 2, "P": 1})
        self.V, self.L = self.layout.U["V"], self.layout.L["V"]

    def graph(self, exprs):
        return underworld.Graph.from_sympy(exprs, self.layout.leaves, **self.layout.options())

    def test_what_has_no_meaning_in_c(self):
        for expr, words in ((Symbol("mystery") + self.V[0], "mystery"),
                            (sympy.besselj(0, self.V[0]), "besselj"),
                            (sympy.Function("lost")(self.V[0]), "lost")):
            with self.assertRaises(jitc.UnsupportedExpression) as caught:
                self.graph({"residual": [[1], [expr]]}).problem()
            self.assertIn(words, str(caught.exception))
            self.assertIn("eqn_1[0]", str(caught.exception))

    def test_normals_are_of_boundaries_alone(self):
        flux = [self.V[0] * self.layout.normal[0]]
        with self.assertRaisesRegex(jitc.CompileError, "normal"):
            self.graph({"residual": [flux]}).problem()
        self.graph({"bd_residual": [flux]}).problem()

    def test_second_derivatives(self):
        with self.assertRaises(RuntimeError):
            self.L[0, 0].diff(self.layout.x[0])

    def test_wrong_blocks(self):
        graph = self.graph({"residual": [self.V]})
        for call in (lambda: graph.jacobian(self.V, self.V, components=1, layout="row"),
                     lambda: graph.jacobian(self.V, self.V, components=3),
                     lambda: graph.jacobian(self.V, [self.V[1], self.V[0]], components=2),
                     lambda: graph.jacobian(self.V, self.L.T, components=2)):
            with self.assertRaises(jitc.UsageError):
                call()
        graph.jacobian(self.V, self.V, components=2)
        with self.assertRaises(jitc.UsageError):
            graph.jacobian(self.V, self.V, components=2, guard=1e-20)
        with self.assertRaises(jitc.UsageError):
            self.graph({"jacobians": []})

    def test_entries_that_are_no_lists(self):
        i, j = models.N.i, models.N.j
        matrix = models.Expression("flux", self.V[0])
        matrix.sym = Matrix([[self.V[0], 1], [2, self.V[1]]])
        condition = models.Expression("below", self.V[0] < 0)
        graph = self.graph({"residual": [self.V[0] * i + 2 * j, matrix, Piecewise((self.V[1], condition), (0, True)),
                                         Heaviside(self.V[0])]})
        vector, tensor, piece, step = graph.compile().functions("residual")
        np.testing.assert_array_equal(vector(u=[3.0, 4.0, 0.0]), [3, 2])
        np.testing.assert_array_equal(tensor(u=[3.0, 4.0, 0.0]), [3, 1, 2, 4])
        np.testing.assert_array_equal([piece(u=[sign, 4.0, 0.0])[0] for sign in (-1.0, 1.0)], [4, 0])
        np.testing.assert_array_equal([step(u=[value, 0, 0])[0] for value in (-1.0, 0.0, 1.0)], [0, 0.5, 1])


class Texts(Daemon):
    """Level 0."""

    def test_text_with_headers(self):
        before = self.started()
        artifact = underworld.compile_collective(None, sources(), ENTRY, salt=b"petsc 3.18")
        self.assertEqual((artifact.origin, artifact.compilers_started), ("daemon", 1))
        self.assertEqual(hashlib.sha256(pathlib.Path(artifact.path).read_bytes()).hexdigest(), artifact.sha256)
        self.assertEqual((len(artifact.key), artifact.flags), (64, ("-O3", "-g0", "-fno-math-errno")))
        self.assertGreater(artifact.peak_rss, 1 << 20)
        library = underworld.load(artifact)
        self.assertEqual(call_number(library.addresses("bcs")[0]), np.pi)
        self.assertEqual(len(library.addresses("residual")), 1)
        again = underworld.compile_collective(None, sources, ENTRY, salt=b"petsc 3.18")
        self.assertEqual((again.origin, again.compilers_started, again.key), ("memory", 0, artifact.key))
        other = underworld.compile_collective(None, sources(), ENTRY, salt=b"petsc 3.19")
        self.assertNotEqual(other.key, artifact.key)
        self.assertEqual(self.started(), before + 2)
        with self.assertRaises(jitc.UsageError):
            library.addresses("jacobian")

    def test_several_texts_and_missing_symbols(self):
        texts = [("one.c", "int one(void) { return 1; }"),
                 ("two.c", "int one(void);\nint two(void) { return one() + 1; }")]
        library = underworld.load(underworld.compile_collective(None, texts, {"residual": ["two", "one"]}))
        self.assertEqual([ctypes.CFUNCTYPE(ctypes.c_int)(one)() for one in library.addresses("residual")], [2, 1])
        for wrong in ([], [("only.h", "")], [("one.c", ""), ("one.c", "")]):
            with self.assertRaises(jitc.UsageError):
                underworld.compile_collective(None, wrong, {})
        with self.assertRaises(jitc.UsageError) as caught:
            underworld.compile_collective(None, texts, {"residual": ["three"]})
        self.assertIn("three", str(caught.exception))

    def test_broken_text(self):
        with self.assertRaises(underworld.CompileError) as caught:
            underworld.compile_collective(None, [("broken.c", "void f(void) { return 1 + ; }")], {})
        error = caught.exception
        self.assertEqual((error.returncode, error.oom), (1, False))
        self.assertIn("broken.c:1:", error.stderr)
        self.assertIsInstance(error, RuntimeError)
        self.assertEqual(error.__cause__.kind, "INVALID_SOURCE")

    def test_a_compiler_that_a_signal_ended(self):
        crashed = underworld.CompileError(jitc.CompilerCrashedError("the compile child was ended by signal 11 (SIGSEGV)"))
        self.assertEqual((crashed.signal, crashed.returncode, crashed.oom), (11, None, False))
        self.assertIsNone(underworld.CompileError(jitc.CompileError("by signal 3")).signal)

    def test_modules_with_one_function_name_keep_their_own(self):
        texts = [f"double eqn_0(void) {{ return {value}; }}" for value in (1, 2)]
        libraries = [underworld.load(underworld.compile_collective(None, [("k.c", text)], {"residual": ["eqn_0"]}))
                     for text in texts]
        values = [ctypes.CFUNCTYPE(ctypes.c_double)(one.addresses("residual")[0])() for one in libraries]
        self.assertEqual(values, [1, 2])

    def test_damaged_entry_is_replaced(self):
        """A half file in the store is a miss, once; the next process finds the new one."""
        program = ("import sys; from jitc import underworld\n"
                   "a = underworld.compile_collective(None, [('d.c', 'double damaged(void) { return 4; }')], {})\n"
                   "print(a.origin, a.compilers_started, a.key)")

        def run():
            done = subprocess.run([sys.executable, "-B", "-c", program], text=True, stdout=subprocess.PIPE, timeout=300,
                                  check=True)
            return done.stdout.split()

        origin, started, key = run()
        self.assertEqual((origin, started), ("daemon", "1"))
        path = self.node.store / "v1" / key[:2] / f"{key}.so"
        whole = path.read_bytes()
        path.unlink()
        path.write_bytes(whole[:len(whole) // 2])
        path.chmod(0o600)
        self.assertEqual(run(), ["daemon", "1", key])
        self.assertEqual(run(), ["disk", "0", key])


class Variables(Daemon):
    def compile(self, text="double f(void) { return 1; }", **variables):
        with mock.patch.dict(os.environ, variables):
            return underworld.compile_collective(None, [("v.c", text)], {})

    def test_flags_replace_all_but_the_dialect(self):
        text = ("#ifndef SEEN\n#error not seen\n#endif\n#ifdef __OPTIMIZE__\n#error optimised\n#endif\n"
                "double one(void) { return 1; }")
        artifact = self.compile(text, UW3_JIT_CFLAGS="-O0 -DSEEN='a b'")
        self.assertEqual(artifact.flags, ("-O0", "-DSEEN=a b"))
        with self.assertRaises(underworld.CompileError):
            self.compile(text)

    def test_flags_of_this_cpu_are_left_out(self):
        artifact = self.compile(UW3_JIT_CFLAGS="-O2 -march=native -mtune=native -std=c99")
        self.assertEqual(artifact.flags, ("-O2",))

    def test_no_cache_compiles_what_the_store_has(self):
        text = "double stored(void) { return 2; }"
        program = ("import sys; from jitc import underworld\n"
                   f"a = underworld.compile_collective(None, [('s.c', {text!r})], {{}})\nprint(a.compilers_started)")
        run = [sys.executable, "-B", "-c", program]
        counts = [subprocess.run(run, text=True, stdout=subprocess.PIPE, timeout=300, check=True,
                                 env={**os.environ, **variables}).stdout.strip()
                  for variables in ({}, {}, {"UW_JIT_CACHE": "no"}, {"UW_JIT_CACHE": "1"})]
        self.assertEqual(counts, ["1", "0", "1", "0"])

    def test_sharing(self):
        x, leaves = Symbol("T"), {Symbol("T"): "petsc_u[0]"}
        graph = underworld.Graph.from_sympy({"residual": [[sympy.sin(x) + sympy.sin(x)**3, sympy.sin(x)]]}, leaves)
        texts = {}
        for value in ("0", "1"):
            with mock.patch.dict(os.environ, {"UW_JIT_CSE": value}):
                texts[value] = graph.emit()
        self.assertEqual([texts[value].count("sin(") for value in ("0", "1")], [3, 1])
        self.assertEqual(graph.cse(False).emit().count("sin("), 3)
        self.assertEqual(graph.cse().emit().count("sin("), 1)

    def test_wrong_values_are_named(self):
        for name, value in (("UW_JIT_CACHE", "perhaps"), ("UW_JIT_CSE", "2"), ("UW3_JIT_CFLAGS", "-D'open")):
            with self.assertRaises(jitc.UsageError) as caught:
                self.compile(**{name: value})
            self.assertIn(name, str(caught.exception))

    def test_line_of_flags_is_printed_once(self):
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            for _ in range(2):
                self.compile(UW3_JIT_CFLAGS="-O1 -DONCE=1")
        self.assertEqual(told.getvalue().count("-DONCE=1"), 1)
        self.assertIn("jitc: flags -std=gnu99 -ffp-contract=off -O1 -DONCE=1;", told.getvalue())


class OwnDaemon(unittest.TestCase):
    """No daemon runs: the first compile starts one, on the directory of UW_JIT_CACHE_DIR."""

    def test_cache_directory(self):
        with Node(BIN) as node:
            directory = node.scratch / "cache of underworld"
            program = ("from jitc import underworld\n"
                       "a = underworld.compile_collective(None, [('c.c', 'double c(void) { return 1; }')], {})\n"
                       "print(a.key)")
            environment = {**node.environment, "UW_JIT_CACHE_DIR": str(directory)}
            done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, text=True, timeout=300,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            key = done.stdout.strip()
            self.assertEqual(node.jitc("daemon", "stop").returncode, 0)  # it has published what it had to
            self.assertTrue((directory / "v1" / key[:2] / f"{key}.so").is_file())
            self.assertFalse(node.store.exists())

    def test_directory_that_cannot_be_written(self):
        with Node(BIN) as node:
            node.write("file", "")  # in place of a directory
            environment = {**node.environment, "UW_JIT_CACHE_DIR": str(node.scratch / "file" / "below")}
            program = ("from jitc import underworld\n"
                       "a = underworld.compile_collective(None, [('c.c', 'double c(void) { return 1; }')], {})\n"
                       "print(a.compilers_started)")
            done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, text=True, timeout=300,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout.strip()), (0, "1"), done.stderr)


if __name__ == "__main__":
    unittest.main()
