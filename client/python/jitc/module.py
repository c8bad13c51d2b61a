"""Loaded modules and their functions, callable on numpy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Union

import numpy as np

from . import _library
from ._prototypes import Pointer, Signature
from .errors import UsageError, check

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

ORIGINS = ("memory", "rank", "store", "daemon", "compiled")


@dataclasses.dataclass(frozen=True)
class Constant:
    """A slot of constants[] and the value that its problem gives it."""

    slot: int
    name: str
    value: float


@dataclasses.dataclass(frozen=True)
class Layout:
    """The arguments and the output of a problem's function."""

    fields: tuple[int, ...]  # components of each unknown field
    aux_fields: tuple[int, ...]
    dim: int
    entries: int  # doubles in the output, flat: as f1[fc*dim+df], g3[((fc*Ng+gc)*dim+df)*dim+dg]
    jacobian: bool  # takes u_t_shift
    boundary: bool  # takes n
    int_bits: int


@dataclasses.dataclass(frozen=True)
class Batch:
    """All functions of a problem in one."""

    layout: Layout
    entries: Mapping[str, int]  # of each function's output, in order


Kind = Union[Signature, Layout, Batch]


class Function:
    """What every function of a module has.

    Attributes:
        name: as the problem or the source calls it.
        address: for C: of the code, valid while the module lives; 0 for a function that is identically zero (PETSc
            takes NULL for that).
    """

    def __init__(self, module: Module, name: str, address: int) -> None:
        self._module = module  # the code lives as long as anybody can call it
        self.name = name
        self.address = address

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise UsageError(f"the arguments of {self.name} are not all numbers or arrays of numbers: use its address")

    def __repr__(self) -> str:
        return f"<jitc {type(self).__name__} {self.name} at {self.address:#x}>"


class CFunction(Function):
    """A function of a C text. Call it with the arguments of its definition.

    Numbers may be arrays where all arguments are numbers: the function is then called for every element, with numpy's
    rules of broadcasting, and an array of the common shape is returned. Array arguments are numpy arrays of the
    element's type, contiguous in memory; the function reads and writes them in place.
    """

    def __init__(self, module: Module, name: str, address: int, signature: Signature) -> None:
        super().__init__(module, name, address)
        self._arguments = signature.arguments or []
        types = [ctypes.c_void_p if isinstance(one, Pointer) else one for one in self._arguments]
        self._call = ctypes.CFUNCTYPE(signature.result, *types)(address)
        self._result = signature.result

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != len(self._arguments):
            raise UsageError(f"{self.name} takes {len(self._arguments)} arguments by position, not {len(arguments)}"
                             + (f" and {', '.join(named)} by name" if named else ""))
        if self._result is not None and not any(isinstance(one, Pointer) for one in self._arguments):
            return self._broadcast(arguments)
        return self._call(*(self._pointer(place, one, given) if isinstance(one, Pointer)
                            else _numbers(given, one, f"argument {place + 1} of {self.name}").item()
                            for place, (one, given) in enumerate(zip(self._arguments, arguments))))

    def _broadcast(self, arguments: tuple[ArrayLike, ...]) -> Any:
        given = [_numbers(one, kind, f"argument {place + 1} of {self.name}")
                 for place, (one, kind) in enumerate(zip(arguments, self._arguments))]
        if all(one.ndim == 0 for one in given):
            return self._call(*(one.item() for one in given))
        spread = np.broadcast(*given)
        return np.fromiter((self._call(*point) for point in spread), np.dtype(self._result),
                           spread.size).reshape(spread.shape)

    def _pointer(self, place: int, kind: Pointer, given: Any) -> int | None:
        """The memory of the caller's own array: nothing is copied, so the array must be as the function reads it."""
        if given is None:
            return None
        wanted: Any = np.dtype(kind.element)
        if not isinstance(given, np.ndarray):
            wrong = f"is a {type(given).__name__}"
        elif given.dtype != wanted:
            wrong = f"has elements of {given.dtype}"
        elif not given.flags.c_contiguous:
            wrong = f"is not contiguous: its strides are {given.strides}"
        elif not kind.is_const and not given.flags.writeable:
            wrong = "cannot be written, and the function may write it"
        else:
            return given.ctypes.data
        raise UsageError(f"the argument {wrong}; it must be a contiguous array of {wanted.name}",
                         thing=f"argument {place + 1} of {self.name}",
                         remedy=f"numpy.ascontiguousarray(..., dtype=numpy.{wanted.name}) makes such an array")


class PointwiseFunction(Function):
    """A residual function or Jacobian block of a problem, in PETSc's signature.

    Call it with the values at points, each an array whose last axis has the length given here and whose leading axes,
    broadcast together, are the points; all of it is in the units that the problem was stated in:

        u, u_t        components of all unknown fields, in order
        u_x           components * dim: [..., component * dim + direction]; [..., component, direction] is taken too
        a, a_t, a_x   the same of the auxiliary fields
        x, n          dim
        t, u_t_shift  numbers
        constants     one per slot; the problem's own values where it is left out

    Arguments that are left out are zeros. Returns (..., entries) doubles, flat in PETSc's order (f1[fc*dim+df],
    g3[((fc*Ng+gc)*dim+df)*dim+dg]), in `out` where it is given. Arrays of doubles that are contiguous, and have all the
    points or none, are read where they are; others are copied first.
    """

    def __init__(self, module: Module, name: str, address: int, layout: Layout) -> None:
        super().__init__(module, name, address)
        self.layout = layout
        integer = ctypes.c_int64 if layout.int_bits == 64 else ctypes.c_int32
        pointer, real = ctypes.c_void_p, ctypes.c_double
        types: list[Any] = [integer] * 3 + [pointer] * 10 + [real] * (2 if layout.jacobian else 1)
        types += [pointer] * (2 if layout.boundary else 1) + [integer, pointer, pointer]
        self._call: Any = ctypes.CFUNCTYPE(None, *types)(address) if address else None
        self._offsets = [self._offsets_of(fields, factor, integer) for fields in (layout.fields, layout.aux_fields)
                         for factor in (1, layout.dim)]

    @staticmethod
    def _offsets_of(fields: tuple[int, ...], factor: int, integer: Any) -> Any:
        sums = [factor * sum(fields[:count]) for count in range(len(fields) + 1)]
        return (integer * len(sums))(*sums)

    def __call__(self, u: ArrayLike | None = None, u_x: ArrayLike | None = None, *, t: float = 0.0,
                 u_t_shift: float = 0.0, out: NDArray[np.float64] | None = None,
                 **others: ArrayLike) -> NDArray[np.float64]:
        arrays, shape = _points(self._module, self.layout, self.name, {"u": u, "u_x": u_x, **others})
        out = _output(out, (*shape, self.layout.entries), self.name)
        if self._call is not None:
            spread = {key: np.ascontiguousarray(np.broadcast_to(one, (*shape, one.shape[-1])))
                      if one.ndim > 1 else np.ascontiguousarray(one) for key, one in arrays.items()}
            self._run(spread, out, t, u_t_shift, arrays["constants"].shape[-1])
        return out

    def _run(self, arrays: Mapping[str, NDArray[np.float64]], out: NDArray[np.float64], t: float, shift: float,
             constant_count: int) -> None:
        layout, (u_offset, u_x_offset, a_offset, a_x_offset) = self.layout, self._offsets
        at = {key: one.ctypes.data for key, one in arrays.items()}
        step = {key: one.itemsize * one.shape[-1] if one.ndim > 1 else 0 for key, one in arrays.items()}
        place, stride = out.ctypes.data, out.itemsize * layout.entries
        counts = layout.dim, len(layout.fields), len(layout.aux_fields)
        times = (t, shift) if layout.jacobian else (t,)
        last = ("x", "n") if layout.boundary else ("x",)
        for point in range(out.size // max(1, layout.entries)):
            def here(key: str) -> int:
                return at[key] + point * step[key]

            self._call(*counts, u_offset, u_x_offset, here("u"), here("u_t"), here("u_x"), a_offset, a_x_offset,
                       here("a"), here("a_t"), here("a_x"), *times, *map(here, last), constant_count,
                       here("constants"), place + point * stride)


class BatchFunction(Function):
    """All functions of a problem in one, for many points at once (layout "batch").

    Call it as a PointwiseFunction; `constants` are then of all points. Returns {function's name: (..., entries)}.
    """

    def __init__(self, module: Module, name: str, address: int, layout: Layout, entries: Mapping[str, int]) -> None:
        super().__init__(module, name, address)
        self.layout = layout
        self._entries = entries
        pointer, real = ctypes.c_void_p, ctypes.c_double
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_long, *[pointer] * 6, real, real,
                                      *[pointer] * (3 + len(entries)))(address)

    def __call__(self, u: ArrayLike | None = None, u_x: ArrayLike | None = None, *, t: float = 0.0,
                 u_t_shift: float = 0.0, **others: ArrayLike) -> dict[str, NDArray[np.float64]]:
        arrays, shape = _points(self._module, self.layout, self.name, {"u": u, "u_x": u_x, **others})
        constants = np.ascontiguousarray(arrays.pop("constants"))
        if constants.ndim != 1:
            raise UsageError("a batch takes one set of constants for all points", thing=self.name)
        count = int(np.prod(shape))  # components outermost: element i of point p is array[i * count + p]
        spread = {key: np.ascontiguousarray(np.broadcast_to(one, (*shape, one.shape[-1])).reshape(count, -1).T)
                  for key, one in arrays.items()}
        out = [np.empty((entries, count)) for entries in self._entries.values()]
        at = {key: one.ctypes.data for key, one in spread.items()}
        self._call(count, *(at[key] for key in ("u", "u_t", "u_x", "a", "a_t", "a_x")), t, u_t_shift, at["x"], at["n"],
                   constants.ctypes.data, *(one.ctypes.data for one in out))
        return {name: one.T.reshape(*shape, one.shape[0]) for name, one in zip(self._entries, out)}


def _numbers(given: Any, kind: Any, thing: str) -> NDArray[Any]:
    """An array of the type's elements; refuses what would lose more than last digits: fractions, imaginary parts."""
    array, wanted = np.asarray(given), np.dtype(kind)
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise UsageError(f"{array.dtype} cannot be taken for {wanted.name}", thing=thing,
                         remedy=f"convert it first, by .astype(numpy.{wanted.name})")
    return array.astype(wanted, copy=False)


def _output(given: NDArray[np.float64] | None, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Zeros of this shape, in the caller's array where there is one."""
    if given is None:
        return np.zeros(shape)
    if given.shape != shape or given.dtype != np.float64 or not (given.flags.c_contiguous and given.flags.writeable):
        raise UsageError(f"`out` has the shape {given.shape} of {given.dtype}; it must be a contiguous array of "
                         f"doubles that can be written, of the shape {shape}", thing=name)
    given[...] = 0.0
    return given


def _points(module: Module, layout: Layout, name: str, given: Mapping[str, ArrayLike | None]) -> \
        tuple[dict[str, NDArray[np.float64]], tuple[int, ...]]:
    """Every argument as an array that ends in its number of elements, and the common shape of the points."""
    components, aux_components = sum(layout.fields), sum(layout.aux_fields)
    sizes = {"u": components, "u_t": components, "u_x": components * layout.dim, "a": aux_components,
             "a_t": aux_components, "a_x": aux_components * layout.dim, "x": layout.dim, "n": layout.dim,
             "constants": len(module.constants)}
    unknown = sorted(set(given) - set(sizes))
    if unknown:
        raise UsageError(f"there is no argument {unknown[0]!r}", thing=name, remedy=f"one of {', '.join(sizes)}")
    arrays = {}
    for key, size in sizes.items():
        array = np.zeros(size)
        if given.get(key) is not None:
            array = _numbers(given[key], np.float64, f"argument {key} of {name}")
        elif key == "constants":
            array = np.array([one.value for one in module.constants], dtype=np.float64)
        if key in ("u_x", "a_x") and array.ndim > 1 and array.shape[-1] != size == array.shape[-1] * array.shape[-2]:
            array = array.reshape(*array.shape[:-2], size)
        if array.ndim == 0 and size == 1:
            array = array.reshape(1)
        if array.ndim == 0 or array.shape[-1] != size:
            raise UsageError(f"the argument {key} has the shape {array.shape} and must end in {size}", thing=name)
        arrays[key] = array
    return arrays, np.broadcast_shapes(*(one.shape[:-1] for one in arrays.values()))


class Functions(Mapping[str, Function]):
    """The functions of a module by name."""

    def __init__(self, module: Module, kinds: Mapping[str, Kind]) -> None:
        self._module = module
        self._kinds = kinds
        self._made: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._made:
            if name not in self._kinds:
                raise KeyError(name)
            self._made[name] = self._make(name, self._kinds[name])
        return self._made[name]

    def _make(self, name: str, kind: Kind) -> Function:
        if isinstance(kind, Batch):
            address = self._module._address("jitc_module_function", name)
            return BatchFunction(self._module, name, address, kind.layout, kind.entries)
        if isinstance(kind, Layout):
            return PointwiseFunction(self._module, name, self._module._address("jitc_module_function", name), kind)
        address = self._module.symbol(name)
        if kind.arguments is None:
            return Function(self._module, name, address)
        return CFunction(self._module, name, address, kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class Module:
    """Compiled code in this process. Its functions, and this object, keep it loaded; addresses are valid as long.

    Attributes:
        functions: by name: of a problem PointwiseFunction (or one BatchFunction, "batch"), of C text CFunction.
        constants: the slots of constants[], in order; empty for C text.
    """

    def __init__(self, handle: ctypes.c_void_p, kinds: Mapping[str, Kind],
                 constants: tuple[Constant, ...] = ()) -> None:
        self._handle = handle
        self._library = _library.library()
        self.functions = Functions(self, kinds)
        self.constants = constants

    def __del__(self) -> None:
        self._library.jitc_module_release(self._handle)

    def symbol(self, name: str) -> int:
        """The address of a function or variable that the module defines. Raises UsageError where there is none."""
        return self._address("jitc_module_symbol", name)

    def _address(self, function: str, name: str) -> int:
        address, error = ctypes.c_void_p(), ctypes.c_void_p()
        check(getattr(self._library, function)(self._handle, name.encode(), ctypes.byref(address),
                                               ctypes.byref(error)), error)
        return address.value or 0

    @property
    def key(self) -> str:
        """Of the artifact, 64 hexadecimal digits."""
        return self._library.jitc_module_key(self._handle).decode()

    @property
    def path(self) -> str:
        """A file with the artifact's bytes, for as long as the module lives and for this process alone."""
        return self._library.jitc_module_path(self._handle).decode()

    @property
    def origin(self) -> str:
        """Where it came from, the same on all ranks; one of ORIGINS."""
        return ORIGINS[self._library.jitc_module_origin(self._handle)]

    @property
    def manifest(self) -> bytes:
        """The manifest of constants in force: the caller's own, or the root's when it was adopted."""
        length = ctypes.c_size_t()
        data = self._library.jitc_module_manifest(self._handle, ctypes.byref(length))
        return ctypes.string_at(data, length.value) if data else b""
