"""jitc: compiled C for MPI solvers that generate code while they run.

    problem = jitc.from_sympy({"f0_0": [...], "f1_0": [...]}, dim=2, leaves={...}, constants=[...])
    module = problem.compile(comm)                # collective over an mpi4py communicator; None: this process alone
    module.functions["g3_0_0"].address            # for PETSc
    module.functions["g3_0_0"](u=u, u_x=u_x)      # for numpy

    module = jitc.compile("double f(double x) { return x * x; }", comm=comm)
    module.functions["f"](3.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .context import Comm, Context, Progress, compile, compile_all, default_context
from .errors import (BrokenError, CancelledError, CompileError, CompilerCrashedError, CorruptError, DivergentError,
                     DrainingError, Error, InternalError, MiscompiledError, NotLoadedError, OutOfMemoryError,
                     RefusedError, StoreFullError, StoreUnavailableError, TimedOutError, UnreachableError,
                     UnsupportedExpression, UsageError, VersionSkewError)
from .module import BatchFunction, CFunction, Constant, Module, PointwiseFunction
from ._version import VERSION as __version__
from .problem import Field, Problem

if TYPE_CHECKING:
    from .sympy_bridge import Block, Leaf, Residual, field_leaves, from_sympy

_SYMPY = ("Block", "Leaf", "Residual", "field_leaves", "from_sympy")  # need SymPy, which the rest does not

__all__ = ["BatchFunction", "BrokenError", "CFunction", "CancelledError", "Comm", "CompileError",
           "CompilerCrashedError", "Constant", "Context", "CorruptError", "DivergentError", "DrainingError", "Error",
           "Field", "InternalError", "MiscompiledError", "Module", "NotLoadedError", "OutOfMemoryError",
           "PointwiseFunction", "Problem", "Progress", "RefusedError", "StoreFullError", "StoreUnavailableError",
           "TimedOutError", "UnreachableError", "UnsupportedExpression", "UsageError", "VersionSkewError",
           "__version__", "compile", "compile_all", "default_context", *_SYMPY]


def __getattr__(name: str) -> Any:
    if name in _SYMPY:
        from . import sympy_bridge

        return getattr(sympy_bridge, name)
    raise AttributeError(f"module 'jitc' has no attribute {name!r}")
