"""Problems from SymPy expressions."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable, Iterable, Mapping, Sequence, Union, cast

import sympy
from sympy import Basic, Expr
from sympy.vector import Dyadic, Vector

from ._sympy_walk import Walk
from .errors import UsageError
from .problem import LEAVES, Field, Problem

_LEAF = re.compile(r"(petsc_)?(\w+?)(?:\[(\d+)(?:,\s*(\d+))?\])?\Z", re.ASCII)
_FUNCTION = re.compile(r"(?:bd_)?(f[01])_(\d+)\Z")
_BLOCK = re.compile(r"(?:bd_)?(g[0-3])_(\d+)_(\d+)\Z")
_SCALARS = ("t", "u_t_shift")


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An argument of the functions: an element of u, u_t, u_x, a, a_t, a_x, x, n or constants, or t or u_t_shift.

    `index` is flat, for u_x and a_x component * dim + direction, or there a pair (component, direction).
    """

    array: str
    index: Union[int, tuple[int, int]] = 0

    @classmethod
    def parse(cls, text: str) -> Leaf:
        """From "u[0]", "u_x[0, 1]", "constants[2]", "t", or as C calls it: "petsc_u_x[1]". Raises UsageError."""
        found = _LEAF.match(text)
        array = found.group(2).replace("u_tShift", "u_t_shift") if found else ""
        first, second = (found.group(3), found.group(4)) if found else (None, None)
        if array not in LEAVES or (first is None) != (array in _SCALARS) or second and array not in ("u_x", "a_x"):
            raise UsageError("no argument of a pointwise function is called so", thing=text,
                             remedy=f"such are u[0], u_x[0, 1], x[1], t: one of {', '.join(LEAVES)}")
        return cls(array, (int(first or 0), int(second)) if second else int(first or 0))

    def flat(self, dim: int) -> tuple[str, int]:
        """The array and the flat index."""
        if isinstance(self.index, tuple):
            return self.array, self.index[0] * dim + self.index[1]
        return self.array, self.index


@dataclasses.dataclass(frozen=True)
class Residual:
    """f0[fc] or f1[fc, df] of a field: entries as a list or matrix, row-major."""

    name: str
    kind: str  # "f0" or "f1"
    field: int
    entries: Any
    boundary: bool = False


@dataclasses.dataclass(frozen=True)
class Block:
    """A Jacobian block. Kind and fields are read from a name such as "g3_0_1" where they are left out."""

    name: str
    kind: str | None = None  # "g0" to "g3"
    test: int | None = None  # field of the residual
    trial: int | None = None  # field of the unknowns
    boundary: bool | None = None  # None: as the residuals of the test field
    entries: Any = None  # given instead of derivatives, for preconditioners; PETSc's layout, flat
    tangent: str = "newton"  # or "picard", "continuation"; see Problem.add_block
    continuation: Any = None  # the constant's symbol, or its index
    frozen: Sequence[str] = ()


def field_leaves(components: Iterable[Expr], coordinates: Sequence[Expr], array: str = "u",
                 first: int = 0) -> dict[Basic, Leaf]:
    """Leaves for a field that is written as applied functions, such as V_0(x, y): the functions and their first
    derivatives by the coordinates. `array`: "u" or "a"; `first`: flat index of the field's component 0."""
    leaves: dict[Basic, Leaf] = {}
    for place, component in enumerate(flatten(components)):
        leaves[component] = Leaf(array, first + place)
        for direction, coordinate in enumerate(coordinates):
            leaves[component.diff(coordinate)] = Leaf(f"{array}_x", (first + place, direction))
    return leaves


def from_sympy(residual: Any, *, dim: int = 2, leaves: Mapping[Basic, Union[str, Leaf]] | None = None,
               fields: Sequence[Any] | None = None, aux_fields: Sequence[Any] = (),
               constants: Union[Mapping[Any, float], Iterable[Any]] = (),
               blocks: Union[str, Iterable[Union[str, Block]]] = "all", boundary: bool = False,
               named: Union[str, Mapping[Basic, Basic], None] = None, functions: Mapping[Any, str] | None = None,
               tangent: str = "newton", ties: str = "half", guard: float = 0.0, sort_constants: bool = False,
               products: bool = False, name: str = "problem") -> Problem:
    """A problem from SymPy expressions. The trees that it prints have the values, bit for bit, of sympy.ccode's text.

    What has no meaning in C is refused (jitc.UnsupportedExpression), naming the symbol or node and the entry. Mod is
    C's fmod, as SymPy prints it: the sign of the first argument.

    Args:
        residual: {"f0_0": entries, "f1_0": entries, ...}, or Residual objects, or the entries of f0_0 alone. Entries
            are an expression, or a list, matrix, array or sympy.vector of them, taken row-major.
        dim: of space.
        leaves: the argument of the functions that each expression stands for: {x: "x[0]", V(x, y): "u[0]",
            V(x, y).diff(x): "u_x[0, 0]"}; see field_leaves. Symbols that are named as C names arguments, such as
            petsc_u[0], need no entry.
        fields, aux_fields: Field objects, (name, components) or numbers of components, in order. Unknown fields that
            are left out are counted from the residuals' sizes.
        constants: the slots of constants[], in order: symbols or names, each perhaps with a value (symbol, value). Two
            of one name stay two. Values are no part of the source.
        blocks: "all", or names ("g3_0_0") and Block objects.
        boundary: the functions are those of a boundary, with the normal n.
        named: symbols that stand for an expression and become named nodes, {symbol: body}; or the name of the
            attribute under which symbols hold their bodies, such as "sym".
        functions: C names of functions that are known by name only, by class; see Problem.declare. Subclasses of
            sympy.Function with an fdiff are such functions under their own name; the derivatives that fdiff gives as
            functions of the same arguments are used.
        tangent: of the blocks that are given by name: "newton" or "picard".
        ties, guard, sort_constants: see Problem.set.
        products: integer powers become products, which are faster than the pow that SymPy prints.
        name: for people.
    """
    residuals = _residuals(residual, boundary)
    problem = Problem(name, dim)
    for option, value in (("ties", ties), ("guard", repr(float(guard))), ("sort_constants", str(int(sort_constants)))):
        problem.set(option, value)
    for field in (fields if fields is not None else _fields_of(residuals, dim)):
        problem.add_field(*_field(field, len(problem.fields)))
    for field in aux_fields:
        problem.add_aux_field(*_field(field, len(problem.aux_fields)))
    slots = _add_constants(problem, constants)
    walk = Walk(problem, _leaf_of({**(leaves or {}), **slots}, dim), _body_of(named), functions or {}, products)
    for one in residuals:
        entries = _entries(problem, walk, one.name, one.entries, dim)
        problem.add_residual(one.name, one.kind, one.field, entries, one.boundary)
    for block in _blocks(blocks, residuals, len(problem.fields), tangent):
        given = None if block.entries is None else _entries(problem, walk, block.name, block.entries, dim)
        problem.add_block(block.name, cast(str, block.kind), cast(int, block.test), cast(int, block.trial),
                          boundary=bool(block.boundary), entries=given, tangent=block.tangent,
                          continuation=_slot(block.continuation, slots), frozen=block.frozen)
    problem.check()
    return problem


def flatten(entries: Any, dim: int = 3) -> list[Any]:
    """Expressions of a scalar, list, matrix, array, vector or dyadic, row-major; vectors are cut to dim components."""
    if isinstance(entries, (Vector, Dyadic)):
        systems = {base._system for base in entries.atoms(sympy.vector.BaseVector)}
        if len(systems) != 1:
            raise UsageError("a vector is not of one coordinate system; give its components", thing=str(entries)[:100])
        matrix = entries.to_matrix(systems.pop())
        return list(matrix[:dim, :dim] if matrix.cols > 1 else matrix[:dim, :])
    if isinstance(entries, sympy.NDimArray):
        return list(entries.reshape(len(entries))) if len(entries) else []
    if isinstance(entries, sympy.MatrixBase):
        return list(entries)
    if hasattr(entries, "as_explicit"):
        return flatten(entries.as_explicit(), dim)
    if hasattr(entries, "ravel"):
        return list(entries.ravel())
    if isinstance(entries, (list, tuple, sympy.Tuple)) or hasattr(entries, "__next__"):
        return [one for entry in entries for one in flatten(entry, dim)]
    return [entries]


def _residuals(given: Any, boundary: bool) -> list[Residual]:
    if isinstance(given, Mapping):
        made = []
        for name, entries in given.items():
            found = _FUNCTION.match(name)
            if not found:
                raise UsageError("the name does not say kind and field, as f0_0 and f1_2 do", thing=name,
                                 remedy="give a jitc.Residual")
            made.append(Residual(name, found.group(1), int(found.group(2)), entries, boundary))
        return made
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, Residual) for one in given):
        return list(given)
    return [Residual("f0_0", "f0", 0, given, boundary)]


def _fields_of(residuals: Sequence[Residual], dim: int) -> list[Field]:
    sizes: dict[int, int] = {}
    for one in residuals:
        count = len(flatten(one.entries, dim))
        sizes.setdefault(one.field, count if one.kind == "f0" else count // dim)
    missing = [place for place in range(max(sizes, default=-1) + 1) if place not in sizes]
    if missing:
        raise UsageError(f"field {missing[0]} has no residual that tells how many components it has",
                         remedy="give `fields`")
    return [Field(f"field_{place}", sizes[place]) for place in sorted(sizes)]


def _field(given: Any, place: int) -> tuple[str, int]:
    if isinstance(given, Field):
        return given.name, given.components
    if isinstance(given, int):
        return f"field_{place}", given
    name, components = given
    return name, components


def _add_constants(problem: Problem, given: Union[Mapping[Any, float], Iterable[Any]]) -> dict[Any, Leaf]:
    slots: dict[Any, Leaf] = {}
    for one in given.items() if isinstance(given, Mapping) else given:
        key, value = one if isinstance(one, tuple) else (one, 0.0)
        slot = problem.add_constant(key if isinstance(key, str) else str(key), float(value))
        if not isinstance(key, str):
            slots[key] = Leaf("constants", slot)
    return slots


def _leaf_of(leaves: Mapping[Basic, Union[str, Leaf]], dim: int) -> Callable[[Basic], tuple[str, int] | None]:
    known = {expr: (leaf if isinstance(leaf, Leaf) else Leaf.parse(leaf)).flat(dim) for expr, leaf in leaves.items()}

    def find(expr: Basic) -> tuple[str, int] | None:
        leaf = known.get(expr)
        if leaf is None and isinstance(expr, sympy.Symbol) and expr.name.startswith(("petsc_", "constants[")):
            leaf = known[expr] = Leaf.parse(expr.name).flat(dim)
        return leaf

    return find


def _body_of(named: Union[str, Mapping[Basic, Basic], None]) -> Callable[[Basic], tuple[str, Basic] | None]:
    def find(expr: Basic) -> tuple[str, Basic] | None:
        if named is None or not isinstance(expr, sympy.Symbol):
            return None
        body = getattr(expr, named, None) if isinstance(named, str) else named.get(expr)
        return None if body is None else (expr.name, sympy.sympify(body, strict=True))

    return find


def _entries(problem: Problem, walk: Walk, name: str, entries: Any, dim: int) -> list[int]:
    nodes = []
    for place, expr in enumerate(flatten(entries, dim)):
        entry = f"{name}[{place}]"
        problem.set("origin", entry)
        nodes.append(walk.value(expr, entry))
    problem.set("origin", name)
    return nodes


def _blocks(given: Union[str, Iterable[Union[str, Block]]], residuals: Sequence[Residual], field_count: int,
            tangent: str) -> list[Block]:
    on_boundary = {one.field: one.boundary for one in residuals}
    if isinstance(given, str):
        if given != "all":
            raise UsageError("blocks are \"all\" or a list", thing=given)
        given = [f"{kind}_{one.field}_{trial}" for trial in range(field_count) for one in residuals
                 for kind in (("g0", "g1") if one.kind == "f0" else ("g2", "g3"))]
    made = []
    for one in given:
        block = one if isinstance(one, Block) else Block(one, tangent=tangent)
        if block.kind is None or block.test is None or block.trial is None:
            found = _BLOCK.match(block.name)
            if not found:
                raise UsageError("the name does not say kind and fields, as g3_0_1 does", thing=block.name,
                                 remedy="give kind, test and trial")
            block = dataclasses.replace(block, kind=found.group(1), test=int(found.group(2)),
                                        trial=int(found.group(3)))
        if block.boundary is None:
            block = dataclasses.replace(block, boundary=on_boundary.get(cast(int, block.test), False))
        made.append(block)
    return made


def _slot(constant: Any, slots: Mapping[Any, Leaf]) -> int:
    if constant is None or isinstance(constant, int):
        return constant or 0
    if constant not in slots:
        raise UsageError("the continuation's constant is none of `constants`", thing=str(constant))
    return slots[constant].flat(1)[1]
