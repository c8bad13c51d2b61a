"""Problems: what a solver states, ready to be printed or compiled. Built by from_sympy or from JSON."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from . import _library
from .context import default_context
from .errors import UsageError, check
from .module import Batch, Constant, Layout, Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .context import Comm, Context, _Request

KINDS = ("f0", "f1", "g0", "g1", "g2", "g3")
TANGENTS = ("newton", "picard", "continuation")
LAYOUTS = ("separate", "fused", "batch")  # as enum jitc_layout
LEAVES = ("u", "u_t", "u_x", "a", "a_t", "a_x", "t", "u_t_shift", "x", "n", "constants")  # as enum jitc_leaf


@dataclasses.dataclass(frozen=True)
class Field:
    """An unknown or auxiliary field. Component c is u[first + c], `first` counting the fields before it."""

    name: str
    components: int = 1


@dataclasses.dataclass(frozen=True)
class Function:
    """A function of a problem."""

    name: str
    kind: str  # one of KINDS
    test: int  # field of the residual
    trial: int | None  # field of the unknowns; None for residuals
    boundary: bool
    entries: int  # doubles in its output


def _place(value: str, values: tuple[str, ...], what: str) -> int:
    """Of an enumerator's name among its values."""
    if value not in values:
        raise UsageError(f"there is no {what} {value!r}", remedy=f"one of {', '.join(values)}")
    return values.index(value)


class Problem:
    """Fields, constants, residual functions and Jacobian blocks. Not to be used by two threads at once.

    The building methods give node ids; from_sympy is the convenient way to build. What goes wrong while building is
    raised by the next method that uses the problem.

    Args:
        name: for people.
        dim: of space, 1 to 3.
    """

    def __init__(self, name: str = "problem", dim: int = 2) -> None:
        self._library = _library.library()
        self._attach(ctypes.c_void_p(self._library.jitc_problem_open(name.encode(), dim)))
        if not self._handle:
            raise MemoryError("there is no memory for a problem")
        self.dim = dim

    def _attach(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle
        self.fields: tuple[Field, ...] = ()
        self.aux_fields: tuple[Field, ...] = ()

    @classmethod
    def from_json(cls, text: str | bytes) -> Problem:
        """From the JSON format of docs/problem_format.md. Raises CompileError naming the node that is wrong."""
        data = text.encode() if isinstance(text, str) else text
        problem = cls.__new__(cls)
        problem._library = _library.library()
        problem._handle = ctypes.c_void_p()
        handle, error = ctypes.c_void_p(), ctypes.c_void_p()
        check(problem._library.jitc_problem_from_json(data, len(data), ctypes.byref(handle), ctypes.byref(error)),
              error)
        problem._attach(handle)
        told = json.loads(data)  # what the library has accepted
        problem.dim = told["dim"]
        for key in "fields", "aux_fields":
            setattr(problem, key, tuple(Field(one["name"], one["components"]) for one in told.get(key, ())))
        return problem

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.jitc_problem_free(self._handle)

    # ---- building ----------------------------------------------------------------------------------------------

    def set(self, option: str, value: str) -> None:
        """"ties": "half" or "first"; "guard": a number; "sort_constants": "0" or "1"; "origin": text for errors."""
        self._library.jitc_problem_set(self._handle, option.encode(), value.encode())

    def add_field(self, name: str, components: int = 1) -> int:
        """An unknown field; returns its index."""
        self.fields += (Field(name, components),)
        return self._library.jitc_problem_field(self._handle, name.encode(), components)

    def add_aux_field(self, name: str, components: int = 1) -> int:
        """An auxiliary field; returns its index."""
        self.aux_fields += (Field(name, components),)
        return self._library.jitc_problem_aux_field(self._handle, name.encode(), components)

    def add_constant(self, name: str, value: float = 0.0) -> int:
        """A slot of constants[]; returns its index by order of creation. Two constants of one name stay two."""
        return self._library.jitc_problem_constant(self._handle, name.encode(), value)

    def set_constant(self, constant: int, value: float) -> None:
        """By order of creation. No value is part of the source or of a key: nothing is compiled again."""
        self._library.jitc_problem_set_constant(self._handle, constant, value)

    def declare(self, name: str, arity: int, partials: Sequence[int | None] | None = None) -> int:
        """A function of `arity` doubles that is known by name only: whoever links the text of `emit` defines it; a
        module that `compile` makes has no undefined symbols, so there it is a CompileError. partials[i]: the declared
        function that is its derivative by argument i, None: not known."""
        array = None
        if partials is not None:
            array = _library.nodes([_library.NONE if one is None else one for one in partials])
        return self._library.jitc_problem_function(self._handle, name.encode(), arity, array)

    def number(self, value: float) -> int:
        """The node of a double, by its 64 bits."""
        return self._library.jitc_node_number(self._handle, value)

    def leaf(self, leaf: str, index: int = 0) -> int:
        """`leaf`: one of LEAVES; `index`: flat."""
        return self._library.jitc_node_leaf(self._handle, _place(leaf, LEAVES, "leaf"), index)

    def apply(self, op: str, *arguments: int) -> int:
        """An operator by name, as problem.h lists them."""
        return self._library.jitc_node_apply(self._handle, op.encode(), _library.nodes(arguments), len(arguments))

    def call(self, function: int, *arguments: int) -> int:
        """A call of a declared function (its index) with as many nodes as it takes."""
        return self._library.jitc_node_call(self._handle, function, _library.nodes(arguments), len(arguments))

    def named(self, name: str, body: int) -> int:
        """`body` under a name: derivatives see through it (Newton) or hold it fixed (Picard), by block."""
        return self._library.jitc_node_named(self._handle, name.encode(), body)

    def add_residual(self, name: str, kind: str, field: int, entries: Sequence[int], boundary: bool = False) -> None:
        """f0[fc] or f1[fc*dim+df] of a field, as node ids."""
        self._library.jitc_problem_residual(self._handle, name.encode(), _place(kind, KINDS, "kind"), field, boundary,
                                            _library.nodes(entries), len(entries))

    def add_block(self, name: str, kind: str, test: int, trial: int, *, boundary: bool = False,
                  entries: Sequence[int] | None = None, tangent: str = "newton", continuation: int = 0,
                  frozen: Sequence[str] = ()) -> None:
        """A Jacobian block, in PETSc's layout (problem.h).

        Args:
            entries: given instead of derivatives, for preconditioners.
            tangent: "newton" (named nodes are differentiated, except those in `frozen`), "picard" (all are held
                fixed), "continuation" (Picard + c * (Newton - Picard), c the constant `continuation`).
        """
        names = (ctypes.c_char_p * len(frozen))(*(one.encode() for one in frozen))
        block = _library.Block(
            size=ctypes.sizeof(_library.Block), name=name.encode(), kind=_place(kind, KINDS, "kind"), test=test,
            trial=trial, boundary=boundary, entries=None if entries is None else _library.nodes(entries),
            entry_count=0 if entries is None else len(entries), tangent=_place(tangent, TANGENTS, "tangent"),
            continuation=continuation, frozen=names, frozen_count=len(frozen))
        self._library.jitc_problem_block(self._handle, ctypes.byref(block))

    # ---- using -------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises the first error of building, or what does not fit together."""
        error = ctypes.c_void_p()
        check(self._library.jitc_problem_check(self._handle, ctypes.byref(error)), error)

    @property
    def functions(self) -> list[Function]:
        """Residual functions, then blocks, in order."""
        self.check()
        found = []
        for index in range(self._library.jitc_problem_function_count(self._handle)):
            info, error = _library.FunctionInfo(size=ctypes.sizeof(_library.FunctionInfo)), ctypes.c_void_p()
            check(self._library.jitc_problem_function_info(self._handle, index, ctypes.byref(info),
                                                           ctypes.byref(error)), error)
            found.append(Function(info.name.decode(), KINDS[info.kind], info.test,
                                  None if info.trial == _library.NONE else info.trial, bool(info.boundary),
                                  info.entries))
        return found

    def blocks(self) -> list[Function]:
        """The Jacobian blocks."""
        return [one for one in self.functions if one.trial is not None]

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The slots of constants[], in order."""
        values = self.constant_values()
        return tuple(Constant(one["slot"], one["name"], values[one["slot"]]) for one in json.loads(self.manifest()))

    def constant_values(self) -> NDArray[np.float64]:
        """One value per slot, in order: what PetscDSSetConstants takes."""
        count = self._library.jitc_problem_constants(self._handle, None, 0)
        values = (ctypes.c_double * count)()
        self._library.jitc_problem_constants(self._handle, values, count)
        return np.array(values, dtype=np.float64)

    def manifest(self) -> str:
        """The layout of constants[] as JSON: [{"slot": 0, "name": "n"}, ...]."""
        text, error = ctypes.c_void_p(), ctypes.c_void_p()
        check(self._library.jitc_problem_manifest(self._handle, ctypes.byref(text), ctypes.byref(error)), error)
        return self._take(text)

    def emit(self, **options: Any) -> str:
        """The C text, one translation unit that includes math.h alone.

        Args:
            sharing: "0" trees, "1" common subexpressions once, "auto" (default, or the setting `cse`).
            types: "petsc" (default) or "plain".
            int_bits: of PetscInt, 32 (default) or 64.
            runtime_offsets: True: fields are found by uOff, uOff_x, aOff, aOff_x instead of baked offsets.
            prefix: of all symbols.
            skip_zero: True: functions that are identically zero are left out.
            table: True: with the exported table of functions.
            lazy_arms: True: nothing that only an arm of a Piecewise needs is computed outside it.
            keep_zero: of compile alone: True: functions that are identically zero are functions, too; else their
                address is 0.
            layout: "separate" (default); "batch": all functions in one, for many points at once.
            canary: of compile alone: "auto" (default, or the setting `canary`) calls a fresh module at a few points and
                compares before anybody gets it, unless its flags let values differ; "off"; "on".
        """
        text, error = ctypes.c_void_p(), ctypes.c_void_p()
        check(self._library.jitc_problem_emit(self._handle, ctypes.byref(_emit_options(options)), ctypes.byref(text),
                                              ctypes.byref(error)), error)
        return self._take(text)

    def _take(self, text: ctypes.c_void_p) -> str:
        try:
            length = ctypes.c_size_t()
            data = self._library.jitc_text_bytes(text, ctypes.byref(length))
            return ctypes.string_at(data, length.value).decode()
        finally:
            self._library.jitc_text_free(text)

    def evaluate(self, function: str, **point: ArrayLike) -> NDArray[np.float64]:
        """A function's values at one point, without a compiler; arguments and units as in PointwiseFunction."""
        entries = next((one.entries for one in self.functions if one.name == function), None)
        if entries is None:
            raise UsageError("the problem has no such function", thing=function)
        where, kept = _library.Point(size=ctypes.sizeof(_library.Point)), []
        for key, value in point.items():
            if key in ("t", "u_t_shift"):
                setattr(where, key, float(np.asarray(value)))
                continue
            if key not in LEAVES:
                raise UsageError("a point has no such argument", thing=key, remedy=f"one of {', '.join(LEAVES)}")
            kept.append(np.ascontiguousarray(value, dtype=np.float64))
            setattr(where, key, kept[-1].ctypes.data)
        values, error = (ctypes.c_double * entries)(), ctypes.c_void_p()
        check(self._library.jitc_problem_evaluate(self._handle, function.encode(), ctypes.byref(where), values,
                                                  entries, ctypes.byref(error)), error)
        return np.array(values, dtype=np.float64)

    def compile(self, comm: Comm | None = None, *, context: Context | None = None, **options: Any) -> Module:
        """Compiles (or finds) and loads the functions. Collective over `comm`: the same module, or the same
        exception, on every rank. `options`: those of Context.compile, and of emit."""
        return (context or default_context(comm)).compile(self, **options)

    def _compile_options(self, emit: Mapping[str, Any]) -> Any:
        return _emit_options(emit)

    def _compile(self, context: Context, request: _Request, options: Any) -> Module:
        handle = context._run(self._library.jitc_compile_problem, self._handle, ctypes.byref(options),
                              ctypes.byref(request.structure))
        return self._module(handle, options)

    def _module(self, handle: ctypes.c_void_p, options: Any) -> Module:
        """What was compiled of this problem, with its functions."""
        layouts = {one.name: Layout(tuple(field.components for field in self.fields),
                                    tuple(field.components for field in self.aux_fields), self.dim, one.entries,
                                    one.trial is not None, one.boundary, options.int_bits or 32)
                   for one in self.functions}
        if options.layout == LAYOUTS.index("batch") and layouts:
            batch = Batch(next(iter(layouts.values())), {name: one.entries for name, one in layouts.items()})
            return Module(handle, {"batch": batch}, self.constants)
        return Module(handle, layouts, self.constants)


def _emit_options(given: Mapping[str, Any]) -> Any:
    options = _library.EmitOptions(size=ctypes.sizeof(_library.EmitOptions))
    known = {name for name, _ in _library.EmitOptions._fields_} - {"size"}
    for key, value in given.items():
        if key not in known:
            raise UsageError("printing has no such option", thing=key, remedy=f"one of {', '.join(sorted(known))}")
        if key == "layout":
            value = _place(value, LAYOUTS, "layout")
        setattr(options, key, str(value).encode() if key in ("sharing", "types", "prefix", "canary") else value)
    return options
