"""The slots of constants[]: which expressions get one, in which order, and what is packed into them."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

import numpy as np
import sympy
from sympy import Basic

from .._memo import Memo, Steps

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Wrappers:
    """Symbols that stand for an expression, as UWexpression does, and where their bodies are.

    Args:
        body: the attribute that holds the body; a Symbol without it, or with None there, is just a Symbol.
        is_leaf: whether an expression is an argument of the functions: a field, coordinate or normal.
    """

    def __init__(self, body: str, is_leaf: Callable[[Basic], bool]) -> None:
        self._attribute = body
        self._is_leaf = is_leaf
        self._reads_leaf = Memo(self._reads_leaf_steps)
        self._kept: list[Basic] = []  # bodies may be made anew at each look, and the memo knows them by identity
        self._bodies: dict[Basic, Any] = {}

    def fresh(self) -> Wrappers:
        """The same, knowing no body yet: bodies are assigned anew."""
        return Wrappers(self._attribute, self._is_leaf)

    def body(self, expr: Any) -> Any:
        """What a wrapper stands for; None for anything else."""
        if not isinstance(expr, sympy.Symbol):
            return None
        if expr not in self._bodies:
            body = getattr(expr, self._attribute, None)
            self._bodies[expr] = None if body is None else sympy.sympify(body)
        return self._bodies[expr]

    def is_constant(self, expr: Basic) -> bool:
        """A wrapper whose body reads no leaf, in whatever it wraps itself. By structure, never by value: a value that
        happens to make a term vanish does not move anything into a slot."""
        return self.body(expr) is not None and not self._is_leaf(expr) and not self._reads_leaf(expr)

    def _reads_leaf_steps(self, expr: Any) -> Steps:
        if self._is_leaf(expr):
            return True
        body = self.body(expr)
        for child in (body,) if body is not None else expr.args if isinstance(expr, Basic) else ():
            if (yield self._reads_leaf, child):
                return True
        return False

    def in_tree(self, exprs: Iterable[Any], is_end: Callable[[Basic], bool] = lambda _: False) -> Iterator[Basic]:
        """Every wrapper that the expressions reach, bodies included, once each; not into those where `is_end`."""
        seen: set[int] = set()
        stack = list(exprs)
        while stack:
            one = stack.pop()
            if id(one) in seen or not isinstance(one, Basic):
                continue
            seen.add(id(one))
            self._kept.append(one)
            if self._is_leaf(one):
                continue
            body = self.body(one)
            if body is None:
                stack.extend(one.args)
                continue
            yield one
            if not is_end(one):
                stack.append(body)

    def unwrapped(self, expr: Any) -> Any:
        """With all wrappers replaced by what they stand for."""
        while True:
            found = {one: self.body(one) for one in getattr(expr, "free_symbols", ()) if self.body(one) is not None}
            if not found:
                return expr
            expr = self.body(expr) if expr in found else expr.xreplace(found)


def find_constants(exprs: Iterable[Any], is_leaf: Callable[[Basic], bool], body: str = "sym") -> list[Basic]:
    """The wrappers that get a slot of constants[], in order: by name, then by `instance_number`, which is the order of
    creation; never by value. Of nested ones the outermost.

    Args:
        exprs: all expressions of all functions.
        is_leaf, body: as for Graph.from_sympy.
    """
    return _constants_in(exprs, Wrappers(body, is_leaf))


def _constants_in(exprs: Iterable[Any], wrappers: Wrappers) -> list[Basic]:
    found = {one for one in wrappers.in_tree(exprs, wrappers.is_constant) if wrappers.is_constant(one)}
    return sorted(found, key=_order)


def _order(constant: Any) -> tuple[str, int, str]:
    return constant.name, getattr(constant, "instance_number", 0), sympy.srepr(constant)


class Constants:
    """The manifest: which expression each slot of constants[] takes its value from.

    Attributes:
        entries: [(slot, expression)].
    """

    def __init__(self, expressions: Iterable[Basic], wrappers: Wrappers | None = None,
                 value: Callable[[Any], float] | None = None) -> None:
        self._wrappers = wrappers or Wrappers("sym", lambda _: False)
        self._value = value
        self.entries: list[tuple[int, Basic]] = list(enumerate(expressions))

    def __len__(self) -> int:
        return len(self.entries)

    def slot(self, constant: Basic) -> int | None:
        return next((slot for slot, one in self.entries if one == constant), None)

    def pack(self) -> NDArray[np.float64]:
        """The values now, one per slot: what PetscDSSetConstants takes. Raises RuntimeError, naming slot and
        expression, where one is no number any more; nothing is packed in its place."""
        return np.array([self._number(slot, one) for slot, one in self.entries], dtype=np.float64)

    def _number(self, slot: int, constant: Any) -> float:
        fresh = self._wrappers.fresh()
        try:
            return self._value(constant) if self._value is not None else float(fresh.unwrapped(constant))
        except (TypeError, ValueError) as failure:
            raise RuntimeError(f"constants[{slot}], {constant.name}, is no number any more: "
                               f"{fresh.body(constant)}. Build the solver's functions again.") from failure

    def digest(self) -> bytes:
        """SHA-256 of slots and names, for compile_collective: ranks with another order must not share a module."""
        return hashlib.sha256(json.dumps([[slot, str(one)] for slot, one in self.entries]).encode()).digest()
