"""SymPy expressions as nodes of a problem, with the values of what SymPy's C99 printer prints.

Terms and factors come in the printer's order, quotients as it groups them, powers as the function that it calls: the
tree text of the problem and sympy.ccode's give the same bits. The walk takes each distinct object once and needs no
stack for depth.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

import sympy
from sympy import Basic, Expr, S
from sympy.codegen import cfunctions
from sympy.core.mul import _keep_coeff
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean, BooleanFunction
from sympy.printing.c import get_math_macros
from sympy.printing.codeprinter import CodePrinter

from ._memo import Memo, Steps
from ._sympy_order import Order, arguments
from .errors import UnsupportedExpression
from .problem import Problem

_RELATIONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_FUNCTIONS: dict[type, str] = {
    getattr(sympy, name): op for name, op in {
        **{same: same for same in ("exp log sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc "
                                   "sign floor").split()},
        "Abs": "abs", "ceiling": "ceil", "Heaviside": "heaviside"}.items()}
_FUNCTIONS |= {getattr(cfunctions, name): op for name, op in {
    "expm1": "expm1", "log1p": "log1p", "log2": "log2", "log10": "log10", "hypot": "hypot", "Sqrt": "sqrt",
    "Cbrt": "cbrt"}.items()}
# Of the C library, known by name only: they have no derivatives here.
_LIBRARY = {cfunctions.exp2: "exp2", cfunctions.fma: "fma", sympy.gamma: "tgamma", sympy.loggamma: "lgamma"}
# What the C library's M_... constants are.
_MACROS = {"M_E": 2.7182818284590452354, "M_LOG2E": 1.4426950408889634074, "M_LOG10E": 0.43429448190325182765,
           "M_LN2": 0.69314718055994530942, "M_LN10": 2.30258509299404568402, "M_PI": 3.14159265358979323846,
           "M_PI_2": 1.57079632679489661923, "M_PI_4": 0.78539816339744830962, "M_1_PI": 0.31830988618379067154,
           "M_2_PI": 0.63661977236758134308, "M_2_SQRTPI": 1.12837916709551257390,
           "M_SQRT2": 1.41421356237309504880, "M_SQRT1_2": 0.70710678118654752440}


class Walk:
    """From expressions to node ids of one problem.

    Args:
        problem: where the nodes go.
        leaves: what stands for an argument of the functions: (leaf, flat index) by expression.
        bodies: what stands for a named node: (name, body) of a symbol, or None.
        functions: the C names of functions that are known by name only, by class.
        products: integer powers become products instead of pow.
    """

    def __init__(self, problem: Problem, leaves: Callable[[Basic], tuple[str, int] | None],
                 bodies: Callable[[Basic], tuple[str, Basic] | None], functions: Mapping[Any, str],
                 products: bool) -> None:
        self._problem = problem
        self._leaves = leaves
        self._bodies = bodies
        self._names = functions
        self._power_op = "pow" if products else "power"
        self._declared: dict[type, int] = {}
        self._order = Order(self._tie)
        self._macros = {expr: _MACROS[name] for expr, name in get_math_macros().items()}
        self._node = Memo(self._node_steps)
        self.entry = ""  # what is being built, for errors

    def value(self, expr: Any, entry: str) -> int:
        """The node of one entry; `entry` names it in errors."""
        self.entry = entry
        try:
            node = self._node(sympy.sympify(expr, strict=True))
        except sympy.SympifyError:
            raise self._refuse(f"an object of type {type(expr).__name__} is no expression: {expr!r:.80}") from None
        if isinstance(node, _Condition):
            raise self._refuse(f"the condition {_short(expr)} stands where a value is wanted")
        return node

    def _tie(self, symbol: sympy.Symbol) -> str:
        leaf = self._leaves(symbol)
        return "" if leaf is None else f"{leaf[0]}[{leaf[1]}]"

    def _refuse(self, message: str, remedy: str = "") -> UnsupportedExpression:
        return UnsupportedExpression(message, thing=self.entry, remedy=remedy)

    # ---- dispatch ----------------------------------------------------------------------------------------------

    def _node_steps(self, expr: Basic) -> Steps:
        known = self._known(expr)
        if known is not None:
            return known
        named = self._bodies(expr)
        if named is not None:
            name, body = named
            node = yield from self._value(body)
            return self._from(expr, lambda: self._problem.named(name, node))
        for kind in type(expr).__mro__:
            rule = _RULES.get(kind)
            if rule is not None:
                made: Any = rule(self, expr)
                if hasattr(made, "send"):
                    made = yield from made
                return made
        raise self._refuse(f"{_kind(expr)} has no meaning in C: {_short(expr)}")

    def _known(self, expr: Basic) -> int | None:
        """A leaf, or one of the C library's constants."""
        if not (isinstance(expr, sympy.Add) or expr.is_Number):
            leaf = self._leaves(expr)
            if leaf is not None:
                array, index = leaf
                return self._from(expr, lambda: self._problem.leaf(array, index))
        if isinstance(expr, (sympy.Mul, sympy.Pow, sympy.Function, sympy.NumberSymbol)) and \
                self._order.is_number(expr) and expr in self._macros:
            return self._problem.number(self._macros[expr])
        return None

    def _from(self, expr: Basic, build: Callable[[], int]) -> int:
        """A node about which there may be an error later: it is told what it comes from."""
        self._problem.set("origin", f"{self.entry}: {_short(expr)}")
        node = build()
        self._problem.set("origin", self.entry)
        return node

    def _value(self, expr: Basic) -> Steps:
        node = yield self._node, expr
        if isinstance(node, _Condition):
            raise self._refuse(f"the condition {_short(expr)} stands where a value is wanted")
        return node

    def _values(self, exprs: Any) -> Steps:
        found = []
        for expr in exprs:
            found.append((yield from self._value(expr)))
        return found

    def _condition(self, expr: Basic) -> Steps:
        node = yield self._node, expr
        if not isinstance(node, _Condition):
            raise self._refuse(f"{_kind(expr)} stands where a condition is wanted: {_short(expr)}")
        return node

    # ---- numbers and names -------------------------------------------------------------------------------------

    def _number(self, expr: Expr) -> int:
        try:
            return self._problem.number(to_double(expr))
        except OverflowError:
            raise self._refuse(f"{_short(expr)} is too large for a double") from None

    def _number_symbol(self, expr: Expr) -> int:
        return self._problem.number(to_double(expr.evalf(40)))

    def _imaginary(self, expr: Expr) -> int:
        raise self._refuse("the imaginary unit I: jitc's functions are real")

    def _complex_infinity(self, expr: Expr) -> int:
        raise self._refuse(f"{expr} is no real number", "look for a division by zero in the expression")

    def _symbol(self, expr: Expr) -> int:
        raise self._refuse(f"the symbol {expr} ({type(expr).__name__}) is neither a leaf nor a constant",
                           "say what it stands for in `leaves`, `constants` or `named`")

    # ---- sums, products, powers --------------------------------------------------------------------------------

    def _add(self, expr: Expr) -> Steps:
        terms = yield self._order.terms, expr
        nodes = yield from self._values(terms)
        return self._problem.apply("add", *nodes) if len(nodes) > 1 else nodes[0]

    def _mul(self, expr: Expr) -> Steps:
        if not expr.is_commutative:
            raise self._refuse(f"a product of factors that do not commute: {_short(expr)}")
        coefficient, rest = expr.as_coeff_Mul()
        negative = coefficient.is_extended_negative
        if negative:
            rest = _keep_coeff(-coefficient, rest)
        numerators, denominators = [], []
        for factor in (yield self._order.factors, rest if negative else expr):
            if factor.is_Pow and factor.exp.is_Rational and factor.exp.is_negative:
                denominators.append((yield from self._power(factor.base, -factor.exp)))
            else:
                numerators.append((yield from self._value(factor)))
        node = self._product(numerators) if numerators else self._problem.number(1.0)
        if denominators:
            node = self._problem.apply("div", node, self._product(denominators))
        return self._problem.apply("neg", node) if negative else node

    def _product(self, factors: list[int]) -> int:
        node = factors[0]
        for factor in factors[1:]:
            node = self._problem.apply("times", node, factor)
        return node

    def _pow(self, expr: Expr) -> Steps:
        return self._power(expr.base, expr.exp)

    def _power(self, base: Expr, exponent: Expr) -> Steps:
        if exponent is S.One:
            return (yield from self._value(base))
        node = yield from self._value(base)
        if _is(exponent, S.NegativeOne):
            return self._problem.apply("div", self._problem.number(1.0), node)
        if _is(exponent, S.Half):
            return self._problem.apply("sqrt", node)
        if exponent == sympy.Rational(1, 3):
            return self._problem.apply("cbrt", node)
        return self._problem.apply(self._power_op, node, (yield from self._value(exponent)))

    # ---- functions ---------------------------------------------------------------------------------------------

    def _function(self, expr: Expr) -> Steps:
        kind = type(expr)
        op = _FUNCTIONS.get(kind)
        if op is not None:
            return self._problem.apply(op, *(yield from self._values(expr.args)))
        if kind in _LIBRARY or kind in self._names or _has_own_derivatives(kind):
            function = self._declare(expr)
            nodes = yield from self._values(expr.args)
            return self._from(expr, lambda: self._problem.call(function, *nodes))
        other = CodePrinter._rewriteable_functions.get(kind.__name__)
        if other is not None:
            rewritten = expr.rewrite(other[0])
            if not rewritten.has(kind):
                return (yield from self._value(rewritten))
        if isinstance(expr, sympy.core.function.AppliedUndef):
            raise self._refuse(f"the function {_short(expr)} is no leaf", "say what it stands for in `leaves`, or give "
                               "its C name in `functions`")
        raise self._refuse(f"the function {kind.__name__} is not known: {_short(expr)}",
                           "give its C name in `functions`, or define its fdiff")

    def _declare(self, expr: Expr) -> int:
        """The function of this application; its partial derivatives are those that fdiff gives as functions of the
        same arguments."""
        kind = type(expr)
        if kind not in self._declared:
            partials: list[int | None] = [None] * len(expr.args)
            for place in range(len(expr.args) if _has_own_derivatives(kind) else 0):
                partial = expr.fdiff(place + 1)
                if isinstance(partial, sympy.Function) and partial.args == expr.args:
                    partials[place] = self._problem.declare(self._c_name(type(partial)), len(expr.args))
            self._declared[kind] = self._problem.declare(self._c_name(kind), len(expr.args), partials)
        return self._declared[kind]

    def _c_name(self, kind: type) -> str:
        return _LIBRARY.get(kind) or self._names.get(kind) or kind.__name__

    def _extremum(self, expr: Expr) -> Steps:
        sorted_arguments = []
        for argument in arguments(expr):
            sorted_arguments.append(((yield self._order.key, argument), argument))
        sorted_arguments.sort(key=lambda pair: pair[0])
        nodes = yield from self._values(argument for _, argument in sorted_arguments)
        return self._problem.apply("max" if isinstance(expr, sympy.Max) else "min", *nodes)

    def _mod(self, expr: Expr) -> Steps:
        value, modulus = yield from self._values(expr.args)
        rest = self._problem.apply("fmod", value, modulus)
        number, by = expr.args
        if number.is_integer and by.is_integer and not (number.is_nonnegative and by.is_nonnegative or
                                                        number.is_nonpositive and by.is_nonpositive):
            return self._problem.apply("fmod", self._problem.apply("add", rest, modulus), modulus)
        return rest

    def _real_part(self, expr: Expr) -> Steps:
        return self._value(expr.args[0])  # all leaves are real

    def _imaginary_part(self, expr: Expr) -> int:
        return self._problem.number(0.0)

    def _derivative(self, expr: Expr) -> int:
        raise self._refuse(f"the derivative {_short(expr)} is no leaf", "say what it stands for in `leaves`, or "
                           "evaluate it by doit()")

    # ---- conditions --------------------------------------------------------------------------------------------

    def _piecewise(self, expr: Expr) -> Steps:
        pieces = arguments(expr)
        if pieces[-1].cond != True:  # noqa: E712: as SymPy's printer asks
            raise self._refuse(f"the last condition of a Piecewise is not True: {_short(expr)}",
                               "say by a last (value, True) what holds when no condition does")
        built = []
        for piece in pieces:
            built.append((yield from self._condition(piece.cond)))
            built.append((yield from self._value(piece.expr)))
        return self._problem.apply("piecewise", *built)

    def _truth(self, expr: Boolean) -> int:
        return _Condition(self._problem.apply("true" if expr == True else "false"))  # noqa: E712

    def _relation(self, expr: Relational) -> Steps:
        left, right = yield from self._values((expr.lhs, expr.rhs))
        return _Condition(self._problem.apply(_RELATIONS[expr.rel_op], left, right))

    def _junction(self, expr: BooleanFunction) -> Steps:
        keyed = []
        for argument in arguments(expr):
            keyed.append(((yield self._order.key, argument), argument))
        keyed.sort(key=lambda pair: pair[0])
        nodes = []
        for _, argument in keyed:
            nodes.append((yield from self._condition(argument)))
        return _Condition(self._problem.apply("and" if isinstance(expr, sympy.And) else "or", *nodes))

    def _not(self, expr: BooleanFunction) -> Steps:
        return _Condition(self._problem.apply("not", (yield from self._condition(expr.args[0]))))

    def _ite(self, expr: BooleanFunction) -> Steps:
        condition, then, otherwise = expr.args
        return (yield from self._condition(sympy.Or(sympy.And(condition, then), sympy.And(~condition, otherwise))))

    def _boolean(self, expr: BooleanFunction) -> Steps:
        normal = expr.to_nnf()
        if type(normal) is type(expr):
            raise self._refuse(f"{_kind(expr)} has no meaning in C: {_short(expr)}")
        return (yield from self._condition(normal))


class _Condition(int):
    """The node of a condition."""


_RULES: dict[type, Callable[[Walk, Any], Any]] = {
    sympy.Number: Walk._number, sympy.NumberSymbol: Walk._number_symbol, sympy.core.numbers.ImaginaryUnit:
    Walk._imaginary, sympy.core.numbers.ComplexInfinity: Walk._complex_infinity, sympy.core.expr.AtomicExpr:
    Walk._symbol, sympy.Add: Walk._add, sympy.Mul: Walk._mul, sympy.Pow: Walk._pow, sympy.Function: Walk._function,
    sympy.Max: Walk._extremum, sympy.Min: Walk._extremum, sympy.Mod: Walk._mod, sympy.re: Walk._real_part,
    sympy.conjugate: Walk._real_part, sympy.im: Walk._imaginary_part, sympy.Derivative: Walk._derivative,
    sympy.Piecewise: Walk._piecewise, sympy.logic.boolalg.BooleanAtom: Walk._truth, Relational: Walk._relation,
    sympy.And: Walk._junction, sympy.Or: Walk._junction, sympy.Not: Walk._not, sympy.ITE: Walk._ite,
    BooleanFunction: Walk._boolean}


def to_double(number: Expr) -> float:
    """The double that C reads: of a Float the nearest, ties to even; of a rational the quotient of its nearest
    numerator and denominator, as it is printed. Raises OverflowError."""
    if number.is_Float:
        sign, mantissa, exponent, _ = number._mpf_
        if not mantissa and exponent:  # mpmath's infinities and NaN
            return float(number)
        return -_scaled(mantissa, exponent) if sign else _scaled(mantissa, exponent)
    if number.is_Integer:
        return float(int(number))
    if number.is_Rational:
        numerator, denominator = int(number.p), int(number.q)
        try:
            return float(numerator) / float(denominator)
        except OverflowError:
            return numerator / denominator
    return float(number)  # oo, -oo, nan


def _scaled(mantissa: int, exponent: int) -> float:
    """mantissa * 2^exponent, correctly rounded."""
    if exponent >= 0:
        if mantissa.bit_length() + exponent > 1024:
            raise OverflowError
        return float(mantissa << exponent)
    if mantissa.bit_length() + exponent < -1100:
        return 0.0
    return mantissa / (1 << -exponent)  # Python rounds quotients of integers correctly


def _is(exponent: Expr, value: sympy.Rational) -> bool:
    """Whether the printer takes it for this number: newer SymPys do not say that Float(0.5) == Rational(1, 2)."""
    return exponent == value or exponent.is_Float and to_double(exponent) == float(value)


def _has_own_derivatives(kind: type) -> bool:
    """A user's subclass of sympy.Function that says by fdiff what its derivatives are."""
    return (issubclass(kind, sympy.Function) and not (kind.__module__ or "").startswith("sympy.")
            and not issubclass(kind, sympy.core.function.AppliedUndef)
            and getattr(kind, "fdiff") is not sympy.Function.fdiff)


def _kind(expr: Basic) -> str:
    return f"a node of type {type(expr).__name__}"


def _short(expr: Basic) -> str:
    """The text of an expression that may be huge or too deep to be printed."""
    head = expr if not getattr(expr, "args", ()) or sum(1 for _ in _first_nodes(expr, 60)) < 60 else None
    text = str(head) if head is not None else f"{type(expr).__name__}(...)"
    return text if len(text) <= 100 else text[:97] + "..."


def _first_nodes(expr: Basic, most: int) -> Any:
    """The first nodes of the expanded expression, at most that many."""
    left = [expr]
    while left and most > 0:
        one = left.pop()
        most -= 1
        yield one
        left.extend(getattr(one, "args", ()))
