"""The package against a real daemon: compiling, calling, errors. Without MPI.

usage: compile_test.py BIN_DIRECTORY [unittest's arguments]
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

import jitc
import numpy as np
from sympy import Function, Matrix, Symbol, sqrt
from sympy.abc import x, y

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN = sys.argv.pop(1)
SOURCE = """#include <math.h>
/* static double hidden(double x) { return x; } in a comment */
typedef double Real;
static double helper(double x) { return 2.0 * x; }
double twice(double x) { return helper(x); }
double power(Real x, int n) { return pow(x, n); }
void add(int n, const double a[], const double *restrict b, double out[]) {
  for (int i = 0; i < n; ++i) { out[i] = a[i] + b[i]; }
}
struct pair { double first, second; };
double first(const struct pair *p) { return p->first; }
double table[2] = {7.0, 8.0};
"""


def nonlinear_poisson(**options):
    """f1 = k (1 + |grad v|^2)^n grad v, f0 = v^3 - x: all of its blocks are wanted."""
    v = Function("v")(x, y)
    k, n = Symbol("k"), Symbol("n")
    gradient = Matrix([v.diff(x), v.diff(y)])
    flux = k * (1 + gradient.dot(gradient))**n * gradient
    leaves = {x: "x[0]", y: "x[1]", **jitc.field_leaves([v], [x, y])}
    return jitc.from_sympy({"f0_0": [v**3 - x], "f1_0": flux}, leaves=leaves, constants=[(k, 2.0), (n, 0.5)], **options)


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node(BIN)
        os.environ.update({key: cls.node.environment[key] for key in ("JITC_RUNTIME_DIR", "JITC_STORE")})
        done = cls.node.jitc("daemon", "start")
        assert done.returncode == 0, done.stderr
        cls.addClassCleanup(cls.node.__exit__)

    def test_functions_of_a_text(self):
        module = jitc.compile(SOURCE, flags=["-O2"], name="text.c")
        self.assertEqual(list(module.functions), ["twice", "power", "add", "first"])
        twice = module.functions["twice"]
        self.assertEqual(twice(3.0), 6.0)
        np.testing.assert_array_equal(twice(np.arange(6.0).reshape(2, 3)), 2 * np.arange(6.0).reshape(2, 3))
        np.testing.assert_array_equal(module.functions["power"]([[2.0], [3.0]], [1, 2]), [[2, 4], [3, 9]])
        self.assertEqual(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(twice.address)(4.0), 8.0)
        out = np.empty(3)
        module.functions["add"](3, np.ones(3), np.arange(3.0), out)
        np.testing.assert_array_equal(out, [1, 2, 3])
        self.assertEqual(ctypes.c_double.from_address(module.symbol("table")).value, 7.0)
        self.assertEqual(len(module.key), 64)
        self.assertEqual(module.constants, ())

    def test_wrong_arguments_are_refused_before_the_call(self):
        functions = jitc.compile(SOURCE).functions
        for call in (lambda: functions["add"](3, np.ones(3), np.ones(3, np.float32), np.ones(3)),
                     lambda: functions["add"](3, np.ones(3), np.ones((3, 2))[:, 0], np.ones(3)),
                     lambda: functions["twice"](), lambda: functions["first"](None)):
            with self.assertRaises(jitc.UsageError):
                call()
        with self.assertRaises(KeyError):
            functions["absent"]
        with self.assertRaises(jitc.UsageError):
            jitc.compile(SOURCE).symbol("absent")

    def test_arguments_that_would_lose_something_are_refused(self):
        functions = jitc.compile(SOURCE).functions
        fixed = np.ones(3)
        fixed.flags.writeable = False
        for call, words in ((lambda: functions["power"](2.0, 1.5), "float64 cannot be taken for int32"),
                            (lambda: functions["twice"](1j), "complex128 cannot be taken for float64"),
                            (lambda: functions["add"](2.5, np.ones(3), np.ones(3), np.ones(3)), "argument 1 of add"),
                            (lambda: functions["add"](3, np.ones(3), np.ones(3), fixed), "argument 4 of add"),
                            (lambda: functions["add"](3, [1.0] * 3, np.ones(3), np.ones(3)), "is a list"),
                            (lambda: functions["add"](3, np.ones(3, ">f8"), np.ones(3), np.ones(3)), ">f8"),
                            (lambda: nonlinear_poisson().compile().functions["f0_0"](u=[1j]), "argument u of f0_0")):
            with self.assertRaises(jitc.UsageError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        out = np.empty(3)
        functions["add"](3, fixed, fixed, out)  # const arrays are only read
        np.testing.assert_array_equal(out, [2, 2, 2])

    def test_results_in_the_callers_array(self):
        function = nonlinear_poisson().compile().functions["f1_0"]
        out = np.full((2, 2), 7.0)
        self.assertIs(function(u_x=[[1.0, 0.0], [0.0, 0.0]], out=out), out)
        np.testing.assert_array_equal(out[1], [0, 0])
        for wrong in (np.empty((2, 3)), np.empty((2, 2), np.float32), np.empty((2, 4))[:, ::2]):
            with self.assertRaises(jitc.UsageError):
                function(u_x=[[1.0, 0.0], [0.0, 0.0]], out=wrong)

    def test_functions_that_are_zero_can_be_kept(self):
        module = nonlinear_poisson().compile(keep_zero=True)
        self.assertNotEqual(module.functions["g1_0_0"].address, 0)
        np.testing.assert_array_equal(module.functions["g1_0_0"](u=[1.0]), [0, 0])

    def test_path_of_a_module(self):
        module = jitc.compile(SOURCE)
        self.assertEqual(pathlib.Path(module.path).read_bytes()[:4], b"\x7fELF")

    def test_functions_live_longer_than_their_module_object(self):
        twice = jitc.compile("double twice(double x) { return 2 * x; }").functions["twice"]
        self.assertEqual(twice(2.0), 4.0)

    def test_second_compile_starts_no_compiler(self):
        before = self.node.stats()["compiles_started"]
        source = "double second(double x) { return x + 2; }"
        self.assertEqual(jitc.compile(source).origin, "compiled")
        self.assertEqual(jitc.compile(source).origin, "memory")
        with jitc.Context() as context:
            self.assertEqual(context.compile(source).origin, "memory")
            self.assertEqual((context.stats["calls"], context.stats["compilers_started"]), (1, 0))
        self.assertEqual(self.node.stats()["compiles_started"], before + 1)

    def test_exact_flags_are_another_request(self):
        source = "double exact(double x) { return x - 1; }"
        self.assertEqual(jitc.compile(source).origin, "compiled")
        exact = jitc.compile(source, exact_flags=True)
        self.assertEqual((exact.origin, exact.functions["exact"](3.0)), ("compiled", 2.0))
        self.assertEqual(jitc.compile(source, exact_flags=True).origin, "memory")

    def test_stored_code_for_a_better_cpu_is_refused(self):
        source = "double native(double x) { return 2 * x; }"
        self.assertEqual(jitc.compile(source, isa="native").functions["native"](2.0), 4.0)
        program = f"""import jitc
            try:
                jitc.compile({source!r}, isa="native")
            except jitc.RefusedError as error:
                print(error.message)
            print(jitc.compile({source!r}).functions["native"](2.0))"""
        program = "\n".join(line.removeprefix(12 * " ") for line in program.splitlines())
        done = subprocess.run([sys.executable, "-B", "-c", program], env={**os.environ, "JITC_TEST_ISA_MASK": "1"}, text=True,
                              timeout=100, stdout=subprocess.PIPE, check=True)
        lines = done.stdout.splitlines()
        self.assertIn(", this CPU has x86-64", lines[0])
        self.assertEqual(lines[1:], ["4.0"])

    def test_several_together(self):
        before = self.node.stats()["compiles_started"]
        texts = [f"double f(double x) {{ return x + {number}; }}" for number in (11, 12)]
        problem = nonlinear_poisson(name="together")
        with jitc.Context() as context:
            asked = [texts[0], {"source": lambda: texts[1], "name": "second.c"}, problem, texts[0]]
            modules = context.compile_all(asked, flags=["-O1"])
            self.assertEqual([module.origin for module in modules], ["compiled"] * 4)
            self.assertEqual([modules[i].functions["f"](1.0) for i in (0, 1, 3)], [12.0, 13.0, 12.0])
            self.assertIn("f1_0", modules[2].functions)
            self.assertEqual([module.origin for module in context.compile_all(asked, flags=["-O1"])], ["memory"] * 4)
            self.assertEqual((context.stats["calls"], context.stats["compilers_started"]), (2, 3))
            with self.assertRaises(jitc.CompileError) as caught:
                context.compile_all(["double g;", {"source": "double f(double x) { return ; + }", "name": "wrong.c"}])
            self.assertIn("wrong.c", str(caught.exception))
            for wrong in ({"name": "no source"}, {"source": texts[0], "wishes": 3}, 3):
                with self.assertRaises(jitc.UsageError):
                    context.compile_all([texts[0], wrong])
            with self.assertRaises(jitc.UsageError):
                context.compile_all([])
        self.assertEqual(jitc.compile_all(asked[:1], flags=["-O1"])[0].functions["f"](1.0), 12.0)
        self.assertEqual(self.node.stats()["compiles_started"], before + 5)

    def test_broken_source(self):
        with self.assertRaises(jitc.CompileError) as caught:
            jitc.compile("double f(double x) { return x + ; }", name="broken.c")
        error = caught.exception
        self.assertEqual((error.kind, error.ranks, error.is_broken), ("INVALID_SOURCE", (), False))
        self.assertEqual((error.diagnostics[0]["line"], error.diagnostics[0]["column"]), (1, 33))
        self.assertIn("broken.c", str(error))
        self.assertIn("expected expression", str(error))
        self.assertIsInstance(error, jitc.Error)

    def test_refused_flag_and_wrong_setting(self):
        with self.assertRaises(jitc.RefusedError) as caught:
            jitc.compile("double f;", flags=["-fplugin=evil.so"])
        self.assertIn("-fplugin", str(caught.exception))
        with jitc.Context(settings={"timeout": "soon"}) as context, self.assertRaises(jitc.UsageError) as caught:
            context.compile("double f;")
        self.assertIn("timeout", str(caught.exception))

    def test_unreachable_daemon(self):
        settings = {"runtime_dir": str(self.node.scratch / "nowhere"), "store": str(self.node.scratch / "other")}
        with jitc.Context(settings=settings) as context, self.assertRaises(jitc.UnreachableError) as caught:
            context.compile("double nobody(void) { return 1; }")
        self.assertTrue(caught.exception.remedy)

    def test_failure_to_make_the_source(self):
        def fail():
            raise ValueError("no such viscosity")

        with self.assertRaises(jitc.Error) as caught:
            jitc.compile(fail)
        self.assertIn("ValueError: no such viscosity", str(caught.exception))
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        self.assertEqual(jitc.compile(lambda: "double f(void) { return 1; }").functions["f"](), 1.0)

    def test_what_is_no_source_is_a_failure_to_make_it(self):
        for source in (b"double f;", None, lambda: 3, "double f; /* \ud800 */"):
            with self.assertRaises(jitc.UsageError) as caught:
                jitc.compile(source)
            self.assertIn("the source could not be made", str(caught.exception))

    def test_functions_of_one_line(self):
        text = ("double one(void) { return 1; } __attribute__((noinline)) double two(double x) "
                "{ if (x > 0) { x = 2; } return x; }")
        functions = jitc.compile(text).functions
        self.assertEqual(list(functions), ["one", "two"])
        self.assertEqual(functions["two"](1.0), 2.0)

    def test_names_of_enumerators(self):
        problem = jitc.Problem()
        for call in (lambda: problem.leaf("q"), lambda: problem.add_residual("f", "h0", 0, []),
                     lambda: problem.add_block("g", "g9", 0, 0), lambda: problem.emit(layout="round"),
                     lambda: problem.add_block("g", "g0", 0, 0, tangent="secant")):
            with self.assertRaises(jitc.UsageError):
                call()

    def test_progress_is_a_callable(self):
        told = []
        with jitc.Context(progress=told.append) as context:
            context.compile("double with_progress(void) { return 1; }")
        self.assertTrue(all(isinstance(one, jitc.Progress) for one in told))

    def test_problem(self):
        problem = nonlinear_poisson()
        self.assertEqual([one.name for one in problem.blocks()], ["g0_0_0", "g1_0_0", "g2_0_0", "g3_0_0"])
        module = problem.compile()
        self.assertEqual([(one.name, one.value) for one in module.constants], [("k", 2.0), ("n", 0.5)])
        chance = np.random.default_rng(1)
        u, u_x, at = chance.normal(size=(7, 1)), chance.normal(size=(7, 2)), chance.normal(size=(7, 2))
        square = 1 + np.sum(u_x**2, axis=1, keepdims=True)
        f1 = 2 * square**0.5 * u_x
        np.testing.assert_allclose(module.functions["f1_0"](u_x=u_x), f1, rtol=1e-14)
        np.testing.assert_allclose(module.functions["f0_0"](u=u, x=at), u**3 - at[:, :1], rtol=1e-14)
        g3 = 2 * square[..., None]**0.5 * np.eye(2) + 2 * square[..., None]**-0.5 * u_x[:, :, None] * u_x[:, None, :]
        np.testing.assert_allclose(module.functions["g3_0_0"](u_x=u_x[:, None, :]).reshape(7, 2, 2), g3, rtol=1e-13)
        np.testing.assert_allclose(module.functions["f1_0"](u_x=u_x, constants=[1.0, 0.0]), u_x, rtol=1e-15)
        for function in problem.functions:
            np.testing.assert_allclose(module.functions[function.name](u=u[0], u_x=u_x[0], x=at[0]),
                                       problem.evaluate(function.name, u=u[0], u_x=u_x[0], x=at[0]), rtol=1e-14)
        zero = module.functions["g1_0_0"]
        self.assertEqual(zero.address, 0)
        np.testing.assert_array_equal(zero(u=u, u_x=u_x), np.zeros((7, 2)))
        self.assertNotEqual(module.functions["g0_0_0"].address, 0)

    def test_values_of_constants_compile_nothing(self):
        problem = nonlinear_poisson()
        key = problem.compile().key
        problem.set_constant(0, 5.0)
        again = problem.compile()
        self.assertEqual((again.key, again.origin), (key, "memory"))
        self.assertEqual(again.constants[0].value, 5.0)
        np.testing.assert_array_equal(again.functions["f1_0"](u_x=[1.0, 0.0]), [5 * sqrt(2.0), 0.0])

    def test_many_points_at_once(self):
        problem = nonlinear_poisson()
        batch, single = problem.compile(layout="batch").functions["batch"], problem.compile().functions
        chance = np.random.default_rng(2)
        at = {"u": chance.normal(size=(3, 5, 1)), "u_x": chance.normal(size=(3, 5, 2)), "x": chance.normal(size=(5, 2))}
        together = batch(**at)
        self.assertEqual(list(together), [one.name for one in problem.functions])
        for name, values in together.items():
            np.testing.assert_allclose(values, single[name](**at), rtol=1e-14, atol=1e-14)
        with self.assertRaises(jitc.UsageError):
            batch(v=[1.0])

    def test_wide_integers(self):
        module = nonlinear_poisson().compile(int_bits=64)
        np.testing.assert_array_equal(module.functions["f0_0"](u=[2.0], x=[1.0, 0.0]), [7.0])

    def test_from_json(self):
        text = (pathlib.Path(__file__).parent.parent / "data/corpus/vp_stokes_2d/problem.json").read_text()
        problem = jitc.Problem.from_json(text)
        self.assertEqual(sum(field.components for field in problem.fields), 3)
        self.assertGreater(len(problem.compile().functions), 3)
        with self.assertRaises(jitc.CompileError):
            jitc.Problem.from_json(text[:-20])

    def test_library_is_named_when_it_is_missing(self):
        done = subprocess.run([sys.executable, "-c", "import jitc; jitc.compile('')"], text=True,
                              stderr=subprocess.PIPE, env={**os.environ, "JITC_LIBRARY": "/nowhere/libjitc.so"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/nowhere/libjitc.so", done.stderr)
        self.assertIn("set JITC_LIBRARY", done.stderr)


if __name__ == "__main__":
    unittest.main()
