"""Underworld3's run-time compiles through jitc, in two steps that can be taken one at a time.

Level 0 keeps the solver's own lowering to C, and replaces build, cache and gate:

    artifact = jitc.underworld.compile_collective(comm, [("kernel.c", text)], {"residual": ["eqn_0", "eqn_1"]})
    addresses = jitc.underworld.load(artifact).addresses("residual")

Level 2 takes the SymPy expressions themselves, derives Jacobian blocks in PETSc's layout and prints the C:

    graph = jitc.underworld.Graph.from_sympy({"residual": [F0, F1]}, leaves, fields=[("V", 2), ("P", 1)])
    g3 = graph.jacobian(F1, gradient_of_V, components=2)
    library = graph.compile(comm)

Calls that say so are collective: every rank of `comm` makes them, in the same order, and gets the same module or the
same exception. Level 0 needs no SymPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._collective import Artifact, CompileError, Library, compile_collective, load, petsc_types
from ._environment import Environment

if TYPE_CHECKING:
    from ._constants import Constants, find_constants
    from ._graph import Compiled, Function, Graph, compile_graph

_SYMPY = {"Constants": "_constants", "find_constants": "_constants", "Compiled": "_graph", "Function": "_graph",
          "Graph": "_graph", "compile_graph": "_graph"}
ROLES = ("residual", "bcs", "jacobian", "bd_residual", "bd_jacobian")  # the order of the functions eqn_0, eqn_1, ...

__all__ = ["Artifact", "CompileError", "Compiled", "Constants", "Environment", "Function", "Graph", "Library", "ROLES",
           "compile_collective", "compile_graph", "find_constants", "load", "petsc_types"]


def __getattr__(name: str) -> Any:
    if name in _SYMPY:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_SYMPY[name]}"), name)
    raise AttributeError(f"module 'jitc.underworld' has no attribute {name!r}")
