"""Level 2: from SymPy expressions to Jacobian blocks in PETSc's layout, C text and compiled functions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence, Union

import sympy
from sympy import Basic
from sympy.logic.boolalg import Boolean

from .._sympy_walk import Walk
from ..context import Context, Progress
from ..errors import UsageError
from ..module import Function as CompiledFunction
from ..module import Module
from ..problem import Field, Problem
from ..sympy_bridge import Leaf, flatten
from ._collective import Artifact, Library, run
from ._constants import Constants, Wrappers, _constants_in
from ._environment import Environment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..context import Comm

_ROLES = ("residual", "bcs", "jacobian", "bd_residual", "bd_jacobian")
_JACOBIAN = ("jacobian", "bd_jacobian")


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of a graph: addresses(role)[place] of what is compiled, and eqn_<k> in its text, k counting through
    all roles in order."""

    role: str
    place: int


@dataclasses.dataclass
class _Stated:
    """A function whose entries are given. One that blocks are derived of is a form: f0 or f1 of a test field."""

    entries: list[Any]
    given: Any  # the caller's object
    components: int | None = None  # of the test field, where blocks are derived of it


@dataclasses.dataclass(frozen=True)
class _Derived:
    form: _Stated
    kind: str
    trial: int
    tangent: str
    continuation: Any
    see_through: frozenset[Basic] | None  # None: as the tangent says


class Graph:
    """The functions of a solver: expressions in the five roles of Underworld3, and blocks derived of them.

    A graph is this rank's alone; compile is collective.
    """

    def __init__(self, leaves: Mapping[Basic, Union[str, Leaf]], *, constants: Iterable[Basic] | None = None,
                 opaque_names: str = "sym", dim: int = 2, fields: Sequence[Any] | None = None,
                 aux_fields: Sequence[Any] = (), functions: Mapping[Any, str] | None = None,
                 value: Callable[[Any], float] | None = None) -> None:
        """See from_sympy."""
        self._leaves = {expr: (leaf if isinstance(leaf, Leaf) else Leaf.parse(leaf)).flat(dim)
                        for expr, leaf in leaves.items()}
        self._opaque_names = opaque_names
        self._given_constants = None if constants is None else list(constants)
        self._value = value
        self.dim = dim
        self._fields = _fields(fields, self._leaves, "u", dim)
        self._aux_fields = _fields(aux_fields or None, self._leaves, "a", dim)
        self._functions = dict(functions or {})
        self._roles: dict[str, list[Union[_Stated, _Derived]]] = {role: [] for role in _ROLES}
        self._sources: dict[str, list[_Stated]] = {role: [] for role in _JACOBIAN}  # of blocks, in no role
        self._guard: float | None = None
        self._sharing: str | None = None

    @classmethod
    def from_sympy(cls, exprs: Union[Mapping[str, Sequence[Any]], Sequence[Sequence[Any]]],
                   leaf_c_names: Mapping[Basic, Union[str, Leaf]], constants: Iterable[Basic] | None = None,
                   opaque_names: str = "sym", *, dim: int = 2, fields: Sequence[Any] | None = None,
                   aux_fields: Sequence[Any] = (), functions: Mapping[Any, str] | None = None,
                   value: Callable[[Any], float] | None = None) -> Graph:
        """Reads the expressions; nothing is differentiated or printed yet.

        Args:
            exprs: {role: functions}, or the five tuples in the order residual, bcs, jacobian, bd_residual, bd_jacobian.
                A function's entries are an expression, or a list, matrix, sympy.vector or wrapper of them, row-major.
            leaf_c_names: the argument of the functions that each expression stands for, as C calls it:
                {V_0(x, y): "petsc_u[0]", V_0(x, y).diff(x): "petsc_u_x[0]", x: "petsc_x[0]", ...}. Gradients are flat:
                component * dim + direction.
            constants: the slots of constants[], in order. None: the wrappers that read no leaf, as find_constants
                orders them.
            opaque_names: the attribute under which a Symbol's subclass holds the expression that it stands for. One
                that reads a leaf is a named node: computed once, and seen through or held fixed by each block.
            dim: of space, which is also the number of directions of a gradient.
            fields: unknown fields in field_id order, (name, components) each. None: one field of all components.
            aux_fields: those of petsc_a, likewise; fields of the DM whose variables are dropped count, too.
            functions: C names of functions that are known by name only, by class, as for jitc.from_sympy.
            value: of a constant, for those with units; None: float() of the unwrapped expression.
        """
        graph = cls(leaf_c_names, constants=constants, opaque_names=opaque_names, dim=dim, fields=fields,
                    aux_fields=aux_fields, functions=functions, value=value)
        given = exprs if isinstance(exprs, Mapping) else dict(zip(_ROLES, exprs))
        for role, functions_of_role in given.items():
            if role not in _ROLES:
                raise UsageError("there is no such role", thing=str(role), remedy=f"one of {', '.join(_ROLES)}")
            for one in functions_of_role:
                graph._roles[role].append(graph._stated(one))
        return graph

    def cse(self, on: bool | None = True) -> Graph:
        """Common subexpressions are computed once (True), or trees printed (False); None: as UW_JIT_CSE says, else by
        size. The values are the same to the last bit. Returns the graph."""
        self._sharing = None if on is None else str(int(on))
        return self

    def jacobian(self, F: Any, vars: Any, layout: str = "petsc", *, components: int,
                 see_through: Union[bool, Iterable[Basic]] = True, continuation: Basic | None = None,
                 guard: float = 1e-36, boundary: bool = False) -> Function:
        """A block of derivatives, which becomes the next function of its role.

        With Nc components of the test field, Ng of the trial field, entries are, flat:

            F of Nc entries (f0), vars U:       g0[fc*Ng+gc]
            F of Nc entries (f0), vars L:       g1[(fc*Ng+gc)*dim+dg]
            F of Nc*dim entries (f1), vars U:   g2[(fc*Ng+gc)*dim+df]
            F of Nc*dim entries (f1), vars L:   g3[((fc*Ng+gc)*dim+df)*dim+dg]

        Args:
            F: f0 or f1 of the test field. Where it is not itself a function of the residual, it is compiled as well.
            vars: U, all components of one unknown field in order, or L, its gradient [gc, dg], row-major.
            layout: "petsc".
            components: Nc.
            see_through: True: named nodes are differentiated (Newton); False: all are held fixed (Picard); or the
                wrappers that are differentiated, the others being held fixed.
            continuation: a constant alpha: the block is Picard + alpha * (Newton - Picard).
            guard: added to the base of half-integer powers before Newton's derivatives are taken; never in residuals
                nor Picard's. One for all blocks.
            boundary: a block of bd_jacobian, of F in bd_residual.
        """
        if layout != "petsc":
            raise UsageError("there is no such layout", thing=str(layout), remedy="petsc")
        if self._guard not in (None, guard):
            raise UsageError(f"the guard {guard:g} differs from that of the blocks before, {self._guard:g}")
        form = self._form(F, components, boundary)
        trial, of_gradient = self._trial(vars)
        is_flux = len(form.entries) != components
        kind = ("g3" if of_gradient else "g2") if is_flux else ("g1" if of_gradient else "g0")
        chosen = None if isinstance(see_through, bool) else frozenset(see_through)
        tangent = "continuation" if continuation is not None else "picard" if see_through is False else "newton"
        if continuation is not None and see_through is not True:
            raise UsageError("a continuation goes from Picard to Newton: it takes no `see_through`")
        self._guard = guard
        role = _JACOBIAN[boundary]
        self._roles[role].append(_Derived(form, kind, trial, tangent, continuation, chosen))
        return Function(role, len(self._roles[role]) - 1)

    @property
    def constants(self) -> Constants:
        """The manifest of the expressions as they are now."""
        wrappers, given = self._wrappers(), self._given_constants
        if given is None:
            every = [*self._expressions(), *(one.continuation for role in _JACOBIAN for one in self._roles[role]
                                             if isinstance(one, _Derived) and one.continuation is not None)]
            given = _constants_in(every, wrappers)
        return Constants(given, wrappers, self._value)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The C functions' names by role: eqn_<k>, k counting through residual, bcs, jacobian, bd_residual,
        bd_jacobian."""
        names, count = {}, 0
        for role in _ROLES:
            names[role] = tuple(f"eqn_{count + place}" for place in range(len(self._roles[role])))
            count += len(names[role])
        return names

    def problem(self) -> Problem:
        """The jitc.Problem that is printed and compiled. Raises jitc.UnsupportedExpression, naming function and symbol,
        for what has no meaning in C."""
        return _Building(self).problem

    def emit(self, sharing: str | None = None, int_bits: int = 32, prefix: str = "") -> str:
        """The C text of all functions, one translation unit. `sharing`: "0", "1" or "auto"; None: as cse() or
        UW_JIT_CSE say."""
        return self.problem().emit(sharing=sharing or self._sharing or Environment.read().sharing, int_bits=int_bits,
                                   prefix=prefix)

    def compile(self, comm: Comm | None = None, **options: Any) -> Compiled:
        """compile_graph of this graph. Collective over `comm`."""
        return compile_graph(comm, self, **options)

    # ---- what it is made of --------------------------------------------------------------------------------------

    def _wrappers(self) -> Wrappers:
        """The wrappers with the bodies that they have now: those may be assigned anew at any time."""
        return Wrappers(self._opaque_names, self._leaves.__contains__)

    def _stated(self, given: Any) -> _Stated:
        body = self._wrappers().body(given)
        if isinstance(body, (sympy.MatrixBase, sympy.NDimArray)):  # a matrix is expanded in place, never a node
            return self._stated(body)
        return _Stated(flatten(given, self.dim), given)

    def _expressions(self) -> list[Any]:
        stated = [one for role in _ROLES for one in self._roles[role] if isinstance(one, _Stated)]
        return [entry for one in (*stated, *self._sources["jacobian"], *self._sources["bd_jacobian"])
                for entry in one.entries]

    def _form(self, given: Any, components: int, boundary: bool) -> _Stated:
        wanted = self._stated(given)
        if len(wanted.entries) not in (components, components * self.dim):
            raise UsageError(f"F has {len(wanted.entries)} entries; a test field of {components} components has "
                             f"{components} in f0 and {components * self.dim} in f1", thing=str(given)[:80])
        role, sources = ("bd_residual" if boundary else "residual"), self._sources[_JACOBIAN[boundary]]
        for one in (*self._roles[role], *sources):
            if isinstance(one, _Stated) and one.entries == wanted.entries and one.components in (None, components):
                one.components = components
                return one
        wanted.components = components
        sources.append(wanted)
        return wanted

    def _trial(self, given: Any) -> tuple[int, bool]:
        """The field whose components, or gradient, these are."""
        leaves = [self._leaves.get(one) for one in flatten(given, self.dim)]
        first = 0
        for place, field in enumerate(self._fields):
            components = [("u", first + one) for one in range(field.components)]
            gradient = [("u_x", first * self.dim + one) for one in range(field.components * self.dim)]
            if leaves == components:
                return place, False
            if leaves == gradient:
                return place, True
            first += field.components
        raise UsageError("vars are neither all components of one unknown field nor its gradient, in order",
                         thing=str(given)[:80],
                         remedy=f"the fields are {', '.join(f'{one.name} ({one.components})' for one in self._fields)}")


class _Problem(Problem):
    """A problem whose callers see the solver's fields alone."""

    visible: tuple[Field, ...] = ()

    def _module(self, handle: Any, options: Any) -> Module:
        every, self.fields = self.fields, self.visible
        try:
            return super()._module(handle, options)
        finally:
            self.fields = every


class _Building:
    """One problem from one graph.

    A problem knows functions as f0 and f1 of a field, and blocks. What Underworld3 has in its roles has any number of
    entries, so each function gets a field of its own behind the solver's: no argument is read from there, and the
    solver's fields keep their places.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._wrappers = graph._wrappers()
        self.problem = problem = _Problem("underworld", graph.dim)
        problem.visible = graph._fields
        problem.set("guard", repr(float(graph._guard or 0.0)))
        for field in graph._fields:
            problem.add_field(field.name, field.components)
        for field in graph._aux_fields:
            problem.add_aux_field(field.name, field.components)
        constants = graph.constants
        values = [constants._number(slot, one) for slot, one in constants.entries]
        self._slots = {one: problem.add_constant(str(one), values[slot]) for slot, one in constants.entries}
        self._names: dict[Basic, str] = {}
        self._walk = Walk(problem, self._leaf, self._body, graph._functions, products=False)
        self._forms: dict[int, int] = {}  # field by form
        self._one: int | None = None
        self._add_functions()
        problem.check()

    def _leaf(self, expr: Basic) -> tuple[str, int] | None:
        slot = self._slots.get(expr)
        return ("constants", slot) if slot is not None else self._graph._leaves.get(expr)

    def _body(self, expr: Basic) -> tuple[str, Basic] | None:
        body = self._wrappers.body(expr)
        return None if body is None else (self._name(expr), body)

    def _name(self, wrapper: Any) -> str:
        """Of a named node: two of one name are two."""
        if wrapper not in self._names:
            self._names[wrapper] = f"{wrapper.name} ({len(self._names)})"
        return self._names[wrapper]

    def _add_functions(self) -> None:
        graph, names = self._graph, self._graph.names
        sources = {role: graph._sources[role] for role in _JACOBIAN}
        for role in ("residual", "bcs", "bd_residual"):
            for name, one in zip(names[role], graph._roles[role]):
                if isinstance(one, _Stated):
                    self._add_form(name, one, role == "bd_residual")
        for role in _JACOBIAN:
            for place, source in enumerate(sources[role]):
                self._add_form(f"{role}_source_{place}", source, role == "bd_jacobian")
        for role in _JACOBIAN:
            for name, one in zip(names[role], graph._roles[role]):
                self._add_block(name, one, role == "bd_jacobian")

    def _add_form(self, name: str, one: _Stated, boundary: bool) -> None:
        components = one.components or len(one.entries)
        kind = "f0" if len(one.entries) == components else "f1"
        field = self._forms[id(one)] = self.problem.add_field(name, components)
        self.problem.add_residual(name, kind, field, self._nodes(name, one.entries), boundary)

    def _add_block(self, name: str, one: Union[_Stated, _Derived], boundary: bool) -> None:
        if isinstance(one, _Stated):
            if self._one is None:
                self._one = self.problem.add_field("one", 1)
            field = self.problem.add_field(name, len(one.entries))
            self.problem.add_block(name, "g0", field, self._one, boundary=boundary,
                                   entries=self._nodes(name, one.entries))
            return
        frozen: list[str] = []
        if one.see_through is not None:
            frozen = [text for wrapper, text in self._names.items() if wrapper not in one.see_through]
        continuation = 0 if one.continuation is None else self._slots.get(one.continuation)
        if continuation is None:
            raise UsageError("the continuation is none of the constants", thing=str(one.continuation))
        self.problem.add_block(name, one.kind, self._forms[id(one.form)], one.trial, boundary=boundary,
                               tangent=one.tangent, continuation=continuation, frozen=frozen)

    def _nodes(self, name: str, entries: Sequence[Any]) -> list[int]:
        nodes = []
        for place, entry in enumerate(entries):
            origin = f"{name}[{place}]"
            self.problem.set("origin", origin)
            nodes.append(self._walk.value(self._with_conditions(entry), origin))
        self.problem.set("origin", name)
        return nodes

    def _with_conditions(self, expr: Any) -> Any:
        """Conditions are expanded in place: a node is a value."""
        while True:
            found = {one: self._wrappers.body(one) for one in getattr(expr, "free_symbols", ())
                     if isinstance(self._wrappers.body(one), Boolean)}
            if not found:
                return expr
            expr = expr.xreplace(found)


def _fields(given: Sequence[Any] | None, leaves: Mapping[Basic, tuple[str, int]], array: str,
            dim: int) -> tuple[Field, ...]:
    if given is not None:
        return tuple(one if isinstance(one, Field) else Field(*one) for one in given)
    sizes = [index + 1 if name == array else -(-(index + 1) // dim) for name, index in leaves.values()
             if name in (array, f"{array}_x")]
    return (Field(array, max(sizes)),) if sizes else ()


class Compiled(Library):
    """A graph's functions, compiled and loaded on all ranks. Addresses are valid as long as this lives.

    Attributes:
        constants: the manifest of the graph that was compiled.
    """

    def __init__(self, artifact: Artifact, constants: Constants) -> None:
        super().__init__(artifact)
        self.constants = constants

    def _address(self, name: str) -> int:
        return self.module.functions[name].address

    def functions(self, role: str) -> list[CompiledFunction]:
        """Those of a role as jitc.PointwiseFunction, to be called with numpy arrays."""
        return [self.module.functions[name] for name in self.artifact.entry[role]]

    def pack(self) -> NDArray[Any]:
        """Constants.pack: the values of constants[] now."""
        return self.constants.pack()


def compile_graph(comm: Comm | None, graph: Union[Graph, Callable[[], Graph]], flags: Sequence[str] | None = None,
                  salt: bytes = b"", timeout_s: float | None = None,
                  on_progress: Callable[[Progress], None] | None = None, *, int_bits: int = 32,
                  name: str = "underworld") -> Compiled:
    """Compiles a graph's functions once for all ranks. Collective over `comm`.

    A hit takes no derivative and prints nothing. Names of fields, constants and wrappers, and values of constants, are
    no part of the key; ranks whose constants come in another order get jitc.DivergentError.

    Args:
        comm, flags, salt, timeout_s, on_progress, name: as for compile_collective.
        graph: or a function that makes it: what that raises on one rank is raised on all.
        int_bits: of PetscInt, 32 or 64.
    """
    made: list[Graph] = []

    def ask(context: Context, environment: Environment, chosen: Sequence[str]) -> Module:
        made.append(graph() if callable(graph) else graph)
        problem = made[0].problem()
        return context.compile(problem, flags=chosen, name=name, abi_tag=salt.hex(), no_cache=not environment.cache,
                               sharing=made[0]._sharing or environment.sharing, int_bits=int_bits, keep_zero=True)

    artifact = run(comm, ask, flags, timeout_s, on_progress, name, {})
    entry = {role: names for role, names in made[0].names.items() if names}
    return Compiled(dataclasses.replace(artifact, entry=entry), made[0].constants)
