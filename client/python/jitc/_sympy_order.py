"""The order in which SymPy's printers print terms and factors, computed once per distinct node.

SymPy sorts by nested keys (Expr.sort_key, Expr.as_terms) that it computes by recursion behind a cache of bounded size:
on deep expressions it runs out of stack, on much shared ones out of time. Here the same keys are made bottom-up and
kept; equal keys are one object, so that comparing two stops at their first difference. Where SymPy leaves the order of
two symbols of one name to chance, `tie` decides.
"""

from __future__ import annotations

from typing import Any, Callable

from sympy import Add, Basic, Expr, Mul, Number, S, Symbol
from sympy.core.exprtools import decompose_power
from sympy.core.function import AppliedUndef, Function
from sympy.core.numbers import NumberSymbol

from ._memo import Memo, Steps

Key = tuple[Any, ...]


def arguments(expr: Basic) -> tuple[Basic, ...]:
    """As they are stored: Max, And and their like sort them anew whenever their own property is asked."""
    return Basic.args.fget(expr)


class Order:
    """Sort keys and what is sorted by them.

    Args:
        tie: what tells apart symbols of one name, a text; "" for others.
    """

    def __init__(self, tie: Callable[[Symbol], str]) -> None:
        self._tie = tie
        self.key = Memo(self._key_steps)  # as expr.sort_key()
        self.terms = Memo(self._term_steps)  # as expr.as_ordered_terms()
        self.factors = Memo(self._factor_steps)  # as expr.as_ordered_factors()
        self.is_number = Memo(self._number_steps)  # as expr.is_number
        self._interned: dict[Any, Any] = {}
        self._one = self._intern_atom(S.One.sort_key())

    def _number_steps(self, expr: Basic) -> Steps:
        if type(expr).is_number is not Expr.is_number or isinstance(expr, AppliedUndef) or not arguments(expr):
            return bool(expr.is_number)
        for argument in arguments(expr):
            if not (yield self.is_number, argument):
                return False
        return True

    # ---- keys --------------------------------------------------------------------------------------------------

    def _intern_atom(self, key: Any) -> Any:
        return self._interned.setdefault(key, key)

    def _intern(self, kind: tuple[Any, ...], parts: tuple[Any, ...], exponent: Key, coefficient: Any) -> Key:
        """Of interned parts: so equal keys are one object, found without looking into them."""
        identity = kind, tuple(map(id, parts)), id(exponent), coefficient
        return self._interned.setdefault(identity, (kind, (len(parts), parts), exponent, coefficient))

    def _name(self, atom: Basic) -> str:
        tie = self._tie(atom) if isinstance(atom, Symbol) else ""
        return self._intern_atom(f"{atom}\0{tie}" if tie else str(atom))

    def _key_steps(self, expr: Basic) -> Steps:
        rule = type(expr).sort_key
        if rule is Symbol.sort_key:
            return self._intern(expr.class_key(), (self._name(expr),), self._one, S.One)
        if rule is Expr.sort_key:
            return (yield from self._expression_key(expr))
        if rule is not Basic.sort_key:
            return self._intern_atom(expr.sort_key())
        parts = []
        for argument in arguments(expr):
            parts.append((yield self.key, argument) if isinstance(argument, Basic) else self._intern_atom(argument))
        return self._intern(expr.class_key(), tuple(parts), self._one, S.One)

    def _expression_key(self, expr: Expr) -> Steps:
        coefficient, rest = expr.as_coeff_Mul()
        exponent: Expr = S.One
        if rest.is_Pow:
            if rest.base is S.Exp1:
                rest = Function("exp")(rest.exp)
            else:
                rest, exponent = rest.args
        if rest.is_Dummy:
            parts: tuple[Any, ...] = ((yield self.key, rest),)
        elif rest.is_Atom:
            parts = (self._name(rest),)
        else:
            children = arguments(rest)
            if rest.is_Add:
                children = yield self.terms, rest
            elif rest.is_Mul:
                children = yield self.factors, rest
            keys = []
            for child in children:
                keys.append((yield self.key, child))
            parts = tuple(keys)
        return self._intern(rest.class_key(), parts, (yield self.key, exponent), coefficient)

    # ---- factors and terms -------------------------------------------------------------------------------------

    def _factor_steps(self, expr: Expr) -> Steps:
        if not isinstance(expr, Mul):
            return [expr]
        factors = list(expr.args)
        first = factors[0]
        if first.is_Number and first.is_extended_negative and first is not S.NegativeOne:
            factors[:1] = [S.NegativeOne, -first]
        for factor in factors:
            yield self.key, factor
        return sorted(factors, key=self.key.known)

    def _term_steps(self, expr: Expr) -> Steps:
        terms = Add.make_args(expr)
        simple = _number_minus_product(terms)
        if simple:
            return simple
        found = []  # term, coefficient, {id of base's key: exponent}
        bases: dict[int, Key] = {}
        for term in terms:
            coefficient, powers = yield from self._monomial(term, bases)
            found.append((term, coefficient, powers))
        generators = sorted(bases, key=bases.__getitem__)

        def key(one: tuple[Expr, complex, dict[int, Any]]) -> Key:
            _, coefficient, powers = one
            real, imaginary = coefficient.real, coefficient.imag
            return tuple(-powers.get(base, 0) for base in generators), (bool(imaginary), imaginary), (real, imaginary)

        return [term for term, _, _ in sorted(found, key=key)]

    def _monomial(self, term: Expr, bases: dict[int, Key]) -> Steps:
        """Coefficient, and exponent by base; the bases' keys are added to `bases`."""
        number, rest = term.as_coeff_Mul()
        coefficient = complex(number)
        powers: dict[int, Any] = {}
        if rest is S.One:
            return coefficient, powers
        for factor in Mul.make_args(rest):
            if (yield self.is_number, factor):
                try:
                    coefficient *= complex(factor)
                    continue
                except (TypeError, ValueError):  # not a plain number, whatever SymPy says: a base like others
                    pass
            base, exponent = decompose_power(factor)
            key = yield self.key, base
            bases[id(key)] = key
            powers[id(key)] = exponent
        return coefficient, powers


def _number_minus_product(terms: tuple[Expr, ...]) -> list[Expr] | None:
    """SymPy prints 1 - 2*x so, and not -2*x + 1."""
    def not_number(one: Expr) -> bool:
        return not isinstance(one, (Number, NumberSymbol))

    ordered = sorted(terms, key=not_number)
    if len(ordered) == 2 and not not_number(ordered[0]) and isinstance(ordered[1], Mul):
        factors = sorted(Mul.make_args(ordered[1]), key=not_number)
        if len(factors) == 2 and isinstance(factors[0], Number) and ordered[0].is_positive and factors[0].is_negative:
            return ordered
    return None
