"""What from_sympy understands, in which time, and what it refuses with which words. Nothing is compiled."""
import fractions
import math
import time
import unittest

import jitc
import numpy as np
import sympy
from jitc._sympy_order import Order
from jitc._sympy_walk import to_double
from sympy import Float, Function, I, Matrix, Max, Piecewise, Rational, S, Symbol, cos, sin
from sympy.abc import x, y
from sympy.vector import CoordSys3D

import corpus

U, U_X = Symbol("petsc_u[0]", real=True), Symbol("petsc_u_x[0]", real=True)


def value(expr, **point):
    """Of one expression, by jitc's evaluator."""
    options = {key: point.pop(key) for key in list(point) if key in ("leaves", "constants", "named", "functions")}
    problem = jitc.from_sympy({"f0_0": [expr]}, blocks=(), **options)
    return problem.evaluate("f0_0", **point)[0]


def refusal(expr, **options):
    try:
        jitc.from_sympy({"f0_0": [U, expr]}, fields=[2], **options)
    except jitc.UnsupportedExpression as error:
        return f"{error.thing}|{error.message}|{error.remedy}"
    raise AssertionError(f"{expr} was taken")


class Viscosity(sympy.Symbol):
    """A symbol that stands for an expression, as solvers wrap theirs."""

    def __new__(cls, name, body):
        made = super().__new__(cls, name)
        made.sym = body
        return made


class law(Function):
    """Known by name only; its derivatives are functions of the same arguments."""

    nargs = 2

    def fdiff(self, argindex=1):
        return (law_by_first if argindex == 1 else law_by_second)(*self.args)


class law_by_first(Function):
    nargs = 2


class law_by_second(Function):
    nargs = 2


class Sorting(unittest.TestCase):
    def test_is_sympys_own(self):
        compared = 0
        for name in ("operators_zoo", "vp_stokes_2d", "navier_stokes_bdf2", "spiegelman_notch",
                     "hyperelastic_neohookean_3d"):
            order, seen = Order(lambda _: ""), set()
            left = [entry for entries in corpus.expressions(name).values() for entry in entries]
            while left:
                expr = left.pop()
                if expr in seen:
                    continue
                seen.add(expr)
                left.extend(expr.args)
                if expr.is_Add:
                    self.assertEqual(order.terms(expr), expr.as_ordered_terms())
                    compared += 1
                if expr.is_Mul:
                    self.assertEqual(order.factors(expr), expr.as_ordered_factors())
                    compared += 1
        self.assertGreater(compared, 150)

    def test_symbols_of_one_name_are_told_apart_by_their_slots(self):
        texts = set()
        for swap in False, True:
            first, second = Symbol("eta", real=True), Symbol("eta", positive=True)
            pair = [second, first] if swap else [first, second]
            expr = sympy.Add(*[symbol * U for symbol in pair], evaluate=False)
            texts.add(jitc.from_sympy([expr], constants=[(first, 1), (second, 2)], blocks=()).emit())
        self.assertEqual(len(texts), 1)
        self.assertEqual(value(first + 10 * second, constants=[(first, 1), (second, 2)]), 21)


class Numbers(unittest.TestCase):
    def test_floats_of_any_precision_are_rounded_once(self):
        for text in ("0.1", "1.00000000000000011102230246251565404", "1.00000000000000011102230246251565405",
                     "4.9e-324", "2.4e-324", "2.5e-324", "2.2250738585072011e-308", "-1.7976931348623157e308",
                     "123456789012345678901234567890"):
            for digits in 15, 17, 40, 400:
                number = Float(text, digits)
                sign, mantissa, exponent, _ = number._mpf_
                exact = fractions.Fraction(int(mantissa)) * fractions.Fraction(2)**int(exponent)
                self.assertEqual(to_double(number), (-1)**sign * float(exact), (text, digits))
        self.assertEqual(to_double(Float("1e-5000")), 0.0)
        self.assertEqual(to_double(Rational(1, 3)), 1 / 3)
        self.assertEqual(to_double(Rational(10**400, 10**400 + 1)), 1.0)
        self.assertRegex(refusal(Float("1e400")), r"f0_0\[1\]\|10+\S* is too large for a double")
        self.assertIn("too large", refusal(S(10)**400))
        self.assertEqual(value(S.Infinity), math.inf)
        self.assertTrue(math.isnan(value(S.NaN)))

    def test_python_and_numpy_numbers(self):
        self.assertEqual(value(3), 3.0)
        self.assertEqual(value(0.1), 0.1)
        problem = jitc.from_sympy({"f1_0": np.array([[U, 2 * U]], dtype=object)}, blocks=())
        np.testing.assert_array_equal(problem.evaluate("f1_0", u=[3.0]), [3, 6])


class Shapes(unittest.TestCase):
    def test_matrices_arrays_and_vectors_are_row_major(self):
        frame = CoordSys3D("N")
        a, b, c, d = (U * factor for factor in (1, 2, 3, 4))
        for entries in (Matrix([[a, b], [c, d]]), sympy.ImmutableMatrix([[a, b], [c, d]]),
                        sympy.Array([[a, b], [c, d]]), [[a, b], [c, d]], [Matrix([a, b]), c, d],
                        (one for one in (a, b, c, d)),
                        a * (frame.i | frame.i) + b * (frame.i | frame.j) + c * (frame.j | frame.i) +
                        d * (frame.j | frame.j)):
            problem = jitc.from_sympy({"f1_0": entries}, fields=[2], blocks=())
            np.testing.assert_array_equal(problem.evaluate("f1_0", u=[1.0, 0.0]), [1, 2, 3, 4])
        problem = jitc.from_sympy({"f0_0": a * frame.i + b * frame.j}, blocks=())
        np.testing.assert_array_equal(problem.evaluate("f0_0", u=[1.0, 0.0]), [1, 2])

    def test_fields_and_blocks_are_counted_from_the_residuals(self):
        problem = jitc.from_sympy({"f0_0": [U, U], "f1_0": [U] * 4, "f1_1": [U, U]})
        self.assertEqual([field.components for field in problem.fields], [2, 1])
        self.assertEqual([one.name for one in problem.blocks()],
                         "g0_0_0 g1_0_0 g2_0_0 g3_0_0 g2_1_0 g3_1_0 g0_0_1 g1_0_1 g2_0_1 g3_0_1 g2_1_1 g3_1_1".split())
        self.assertEqual({one.name: one.entries for one in problem.blocks()}["g3_0_0"], 16)

    def test_boundaries_and_given_blocks(self):
        n = Symbol("n_x")
        problem = jitc.from_sympy({"f0_0": [U * n]}, leaves={n: "n[0]"}, boundary=True,
                                  blocks=["g0_0_0", jitc.Block("mass", "g0", 0, 0, entries=[1 / U])])
        self.assertIn("petsc_n[0]", problem.emit())
        self.assertEqual(problem.evaluate("g0_0_0", u=[2.0], n=[3.0, 4.0])[0], 3.0)
        self.assertEqual(problem.evaluate("mass", u=[2.0], n=[3.0, 4.0])[0], 0.5)


class Leaves(unittest.TestCase):
    def test_fields_as_applied_functions_and_their_derivatives(self):
        frame = CoordSys3D("N")
        for at in (x, y), (frame.x, frame.y):
            v0, v1, t = Function("V_0")(*at), Function("V_1")(*at), Function("T")(*at)
            leaves = {**jitc.field_leaves(Matrix([v0, v1]), at), **jitc.field_leaves([t], at, "a", 2),
                      at[0]: "x[0]", at[1]: "x[1]"}
            expr = v0.diff(at[1]) + 10 * v1.diff(at[0]) + 100 * v1 + 1000 * t.diff(at[1]) + at[1]
            problem = jitc.from_sympy({"f0_0": [expr, 0]}, leaves=leaves, aux_fields=[2, 1])
            found = problem.evaluate("f0_0", u=[0, 5], u_x=[1, 2, 3, 4], a_x=[0, 0, 0, 0, 6, 7], x=[8, 9])
            self.assertEqual(found[0], 2 + 30 + 500 + 7000 + 9)

    def test_texts(self):
        for text, leaf in (("u_x[1, 0]", ("u_x", 2)), ("petsc_u_x[3]", ("u_x", 3)), ("constants[4]", ("constants", 4)),
                           ("t", ("t", 0)), ("petsc_t", ("t", 0)), ("petsc_u_tShift", ("u_t_shift", 0)),
                           ("a_t[1]", ("a_t", 1))):
            self.assertEqual(jitc.Leaf.parse(text).flat(2), leaf)
        for text in ("w[0]", "u", "t[0]", "u[1,2]", "u[-1]", "u[0] ", ""):
            with self.assertRaises(jitc.UsageError):
                jitc.Leaf.parse(text)


class Named(unittest.TestCase):
    def residual(self):
        eta = Viscosity("eta", U_X**2 + 1)
        return {"f1_0": [eta * U_X, 0]}, eta

    def test_newton_and_picard(self):
        residual, eta = self.residual()
        for named in "sym", {eta: eta.sym}:
            problem = jitc.from_sympy(residual, named=named, blocks=[
                "g3_0_0", jitc.Block("picard", "g3", 0, 0, tangent="picard"),
                jitc.Block("frozen", "g3", 0, 0, frozen=["eta"])])
            at = {"u_x": [3.0, 0.0]}
            self.assertEqual(problem.evaluate("f1_0", **at)[0], 30)
            found = [problem.evaluate(block, **at)[0] for block in ("g3_0_0", "picard", "frozen")]
            self.assertEqual(found, [28, 10, 10])

    def test_continuation(self):
        residual, eta = self.residual()
        c = Symbol("c")
        problem = jitc.from_sympy(residual, named="sym", constants=[(c, 0.5)], blocks=[
            jitc.Block("g3_0_0", tangent="continuation", continuation=c)])
        self.assertEqual(problem.evaluate("g3_0_0", u_x=[3.0, 0.0])[0], 19)

    def test_a_wrapper_without_the_option_is_refused(self):
        residual, _ = self.residual()
        with self.assertRaises(jitc.UnsupportedExpression) as caught:
            jitc.from_sympy(residual)
        self.assertIn("the symbol eta (Viscosity)", caught.exception.message)
        self.assertEqual(caught.exception.thing, "f1_0[0]")


class growth(Function):
    """Its own derivative."""

    nargs = 1

    def fdiff(self, argindex=1):
        return self


class UserFunctions(unittest.TestCase):
    def test_a_function_that_is_its_own_derivative(self):
        text = jitc.from_sympy([growth(3 * U)]).emit(sharing="1")
        self.assertIn("growth(3.0 * petsc_u[0]) * 3.0", text[text.index("void g0_0_0"):])

    def test_an_unknown_derivative_is_an_error_with_its_name(self):
        with self.assertRaises(jitc.Error) as caught:
            jitc.from_sympy([sympy.gamma(U)]).emit()
        self.assertIn("tgamma", str(caught.exception))
        self.assertRegex(caught.exception.thing, r"^f0_0\[0\], node \d+ at f0_0\[0\]: gamma\(petsc_u\[0\]\)$")

    def test_a_leaf_outside_the_layout_is_named_by_its_symbol(self):
        with self.assertRaises(jitc.Error) as caught:
            jitc.from_sympy({"f0_0": [U, U * Symbol("petsc_u[7]")]}, fields=[2])
        self.assertRegex(caught.exception.thing, r"^f0_0\[1\], node \d+ at f0_0\[1\]: petsc_u\[7\]$")
        self.assertIn("tgamma(", jitc.from_sympy([sympy.gamma(U)], blocks=()).emit())

    def test_partials_come_from_fdiff(self):
        problem = jitc.from_sympy([law(U, 2 * U)])
        text = problem.emit(sharing="1")
        self.assertIn("double law(double, double)", text)
        block = text[text.index("void g0_0_0"):]
        self.assertIn("law_by_first(", block)
        self.assertIn("law_by_second(", block)

    def test_names_for_c(self):
        f = Function("f")
        text = jitc.from_sympy([f(U)], functions={f: "my_f"}, blocks=()).emit()
        self.assertIn("my_f(petsc_u[0])", text)
        with self.assertRaises(jitc.Error) as caught:
            jitc.from_sympy([f(U)], functions={f: "my_f"}).emit()
        self.assertIn("my_f", str(caught.exception))


class Refusals(unittest.TestCase):
    def test_each_names_the_entry_and_the_node(self):
        f = Function("f")
        for expr, words in ((I * U, "imaginary unit I"), (Symbol("mystery") + U, "the symbol mystery (Symbol)"),
                            (sympy.zoo, "zoo is no real number"), (f(U), "the function f(petsc_u[0]) is no leaf"),
                            (f(x).diff(x), "derivative Derivative(f(x), x)"),
                            (sympy.besselj(1, U), "function besselj is not known"),
                            (Piecewise((U, U > 0)), "last condition of a Piecewise is not True"),
                            (sympy.Integral(x, x), "node of type Integral"),
                            (sympy.DiracDelta(U), "DiracDelta is not known"),
                            (U > 0, "condition petsc_u[0] > 0 stands where a value"),
                            (Symbol("A", commutative=False) * Symbol("B", commutative=False), "do not commute"),
                            ("petsc_u[0] + 1", "an object of type str is no expression")):
            with self.subTest(expr):
                told = refusal(expr)
                self.assertTrue(told.startswith("f0_0[1]|"), told)
                self.assertIn(words, told)

    def test_wrong_arguments(self):
        for call in (lambda: jitc.from_sympy({"residual": [U]}), lambda: jitc.from_sympy({"f0_1": [U]}),
                     lambda: jitc.from_sympy([U], blocks=["jacobian"]), lambda: jitc.from_sympy([U], blocks="none"),
                     lambda: jitc.from_sympy([U], leaves={x: "w[0]"}),
                     lambda: jitc.from_sympy([U], ties="both"),
                     lambda: jitc.from_sympy([U]).emit(sharing="perhaps"),
                     lambda: jitc.from_sympy([U]).emit(colour="red")):
            with self.assertRaises(jitc.UsageError):
                call()
        for residual, thing in (([Symbol("petsc_u[7]")], "f0_0[0]"), ({"f0_0": [U], "f1_0": [U]}, "f1_0")):
            with self.assertRaises(jitc.Error) as caught:
                jitc.from_sympy(residual)
            self.assertIn(thing, str(caught.exception))


class Size(unittest.TestCase):
    def test_deep_chains_need_no_stack(self):
        expr = U
        for place in range(20000):
            expr = sin(expr, evaluate=False) if place % 2 else sympy.Add(expr, Rational(1, 3), evaluate=False)
        problem = jitc.from_sympy([expr], blocks=())
        at = 0.5
        for place in range(20000):
            at = math.sin(at) if place % 2 else at + 1 / 3
        self.assertEqual(problem.evaluate("f0_0", u=[0.5])[0], at)

    def test_time_is_of_distinct_nodes_not_of_trees(self):
        expr = U
        for _ in range(200):  # a tree of 2^200 nodes
            expr = sympy.Add(sin(expr, evaluate=False), cos(expr, evaluate=False), evaluate=False)
        begin = time.monotonic()
        problem = jitc.from_sympy([expr, sympy.Mul(expr, U, evaluate=False)], fields=[2])
        self.assertLess(time.monotonic() - begin, 60)  # and not the age of the universe
        at = 0.5
        for _ in range(200):
            at = math.sin(at) + math.cos(at)
        self.assertAlmostEqual(problem.evaluate("f0_0", u=[0.5, 0])[0], at, delta=1e-12)

    def test_equal_subexpressions_that_are_different_objects(self):
        def build():
            expr = U
            for _ in range(60):
                expr = sympy.Mul(sin(expr, evaluate=False), sympy.Add(expr, Max(U, 1), evaluate=False), evaluate=False)
            return expr

        self.assertGreater(len(jitc.from_sympy([build(), build()], fields=[2], blocks=()).emit(sharing="1")), 1000)


if __name__ == "__main__":
    unittest.main()
