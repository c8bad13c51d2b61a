"""Compiled functions for petsc4py, which has no setters of its own for them: residual functions and Jacobian blocks of
a PetscDS, its constants, and whatever else libpetsc has.

    from jitc import petsc

    module = problem.compile(comm, **petsc.types())
    petsc.set_residual(ds, 0, module.functions["f0_0"], module.functions["f1_0"])
    petsc.set_jacobian(ds, 0, 0, *(module.functions[f"g{kind}_0_0"] for kind in range(4)))
    petsc.set_constants(ds, problem.constant_values())

Functions are given as objects of jitc (a function that is identically zero is NULL), as addresses, or None for NULL.
PETSc keeps their addresses: keep the module as long as the solver.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Sequence

import numpy as np
from petsc4py import PETSc

from .errors import UsageError
from .module import Function


def types() -> dict[str, Any]:
    """What compile must know of this PETSc: its version as `abi_tag`, and the bits of PetscInt. Raises UsageError for
    one whose scalars are not double."""
    if np.dtype(PETSc.ScalarType) != np.float64:
        raise UsageError(f"this PETSc has scalars of {np.dtype(PETSc.ScalarType).name}; jitc's functions take double")
    version = ".".join(map(str, PETSc.Sys.getVersion()))
    return {"abi_tag": f"PETSc {version}", "int_bits": 8 * np.dtype(PETSc.IntType).itemsize}


def set_residual(ds: Any, field: int, f0: Any, f1: Any = None) -> None:
    """f0[fc] and f1[fc*dim+df] of a field. PetscDSSetResidual."""
    call("PetscDSSetResidual", ds, _index(field), _pointer(f0), _pointer(f1))


def set_jacobian(ds: Any, test: int, trial: int, g0: Any = None, g1: Any = None, g2: Any = None,
                 g3: Any = None) -> None:
    """The blocks of a pair of fields, in PETSc's layout. PetscDSSetJacobian."""
    call("PetscDSSetJacobian", ds, _index(test), _index(trial), *map(_pointer, (g0, g1, g2, g3)))


def set_preconditioner(ds: Any, test: int, trial: int, g0: Any = None, g1: Any = None, g2: Any = None,
                       g3: Any = None) -> None:
    """Those that the preconditioner is made of. PetscDSSetJacobianPreconditioner."""
    call("PetscDSSetJacobianPreconditioner", ds, _index(test), _index(trial), *map(_pointer, (g0, g1, g2, g3)))


def set_constants(ds: Any, values: Sequence[float]) -> None:
    """constants[], one value per slot; PETSc copies them. PetscDSSetConstants."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    call("PetscDSSetConstants", ds, _index(array.size), ctypes.c_void_p(array.ctypes.data))


def call(name: str, *arguments: Any) -> None:
    """A function of libpetsc by name. Arguments are objects of petsc4py, jitc's functions, None for NULL, and what
    ctypes takes: a Python int is a C int, so say ctypes.c_double for a number of PetscReal. Raises PETSc.Error."""
    code = getattr(_library(), name)(*map(_argument, arguments))
    if code:
        raise PETSc.Error(code)


def pointers(*functions: Any) -> Any:
    """A C array of function pointers, such as DMProjectFunction takes."""
    return (ctypes.c_void_p * len(functions))(*(_pointer(one).value for one in functions))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(PETSc.__file__)  # looks into the libpetsc that petsc4py is linked with


def _index(value: int) -> Any:
    return (ctypes.c_int64 if np.dtype(PETSc.IntType).itemsize == 8 else ctypes.c_int32)(value)


def _pointer(given: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(given.address if isinstance(given, Function) else given)


def _argument(given: Any) -> Any:
    if isinstance(given, PETSc.Object):
        return ctypes.c_void_p(given.handle)
    return _pointer(given) if given is None or isinstance(given, Function) else given
