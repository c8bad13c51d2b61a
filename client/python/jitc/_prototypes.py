"""The functions that a C text defines, as far as their arguments are numbers and arrays of numbers."""

from __future__ import annotations

import ctypes
import re
from typing import Any, Union

_TYPES: dict[str, Any] = {"double": ctypes.c_double, "PetscScalar": ctypes.c_double, "PetscReal": ctypes.c_double,
          "float": ctypes.c_float, "int": ctypes.c_int, "PetscInt": ctypes.c_int, "long": ctypes.c_long,
          "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "void": None}
_QUALIFIERS = {"const", "restrict", "volatile", "inline", "extern", "__restrict", "__restrict__"}
_TYPEDEF = re.compile(r"\btypedef\s+(\w+)\s+(\w+)\s*;")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\([^;{}]*?\)\)")
_DEFINITION = re.compile(r"(?:^|(?<=[;}]))[ \t]*((?:[A-Za-z_]\w*[\s*]+)+)([A-Za-z_]\w*)\s*\(([^(){};]*)\)\s*\{",
                         re.MULTILINE)


class Pointer:
    """An array argument of elements of one ctypes type; `is_const`: the function only reads it."""

    def __init__(self, element: Any, is_const: bool) -> None:
        self.element = element
        self.is_const = is_const


Type = Union[Any, Pointer]  # a ctypes type; None for void


class Signature:
    """What a function returns and takes: ctypes types, Pointer for arrays, None for void. `arguments` is None where a
    type is not a number or an array of numbers; such a function has an address only."""

    def __init__(self, result: Any, arguments: list[Type] | None) -> None:
        self.result = result
        self.arguments = arguments


def defined_functions(text: str) -> dict[str, Signature]:
    """By name, in the order of the text. Functions with internal linkage are left out."""
    text = _ATTRIBUTE.sub(" ", _COMMENT.sub(" ", text))
    types = dict(_TYPES)
    types.update((name, types[known]) for known, name in _TYPEDEF.findall(text) if known in types)
    found = {}
    for before, name, inside in _DEFINITION.findall(text):
        words = before.split()
        if "static" in words or words[0] in ("else", "return", "typedef"):
            continue
        try:
            result = _type(before, types)
            arguments = [] if inside.strip() in ("", "void") else [_argument(one, types) for one in inside.split(",")]
            found[name] = Signature(None if isinstance(result, Pointer) else result,
                                    None if isinstance(result, Pointer) else arguments)
        except KeyError:
            found[name] = Signature(None, None)
    return found


def _argument(text: str, types: dict[str, Any]) -> Type:
    array = "[" in text
    declarator = text.split("[")[0]
    words = re.findall(r"[A-Za-z_]\w*|\*", declarator)
    is_const = "const" in declarator.split("*")[0].split()  # what it points to; after the star it is the pointer
    kept = [word for word in words if word not in _QUALIFIERS]
    if len(kept) > 1 and kept[-1] not in types and kept[-1] != "*":
        kept.pop()  # the argument's name
    kind = _type(("const " if is_const else "") + " ".join(kept) + (" *" if array else ""), types)
    if kind is None:
        raise KeyError(text)
    return kind


def _type(text: str, types: dict[str, Any]) -> Type:
    found = re.findall(r"[A-Za-z_]\w*|\*", text)
    words = [word for word in found if word not in _QUALIFIERS]
    stars = words.count("*")
    base = types[" ".join(word for word in words if word != "*")]
    if stars == 0:
        return base
    if stars > 1 or base is None:
        raise KeyError(text)
    return Pointer(base, "const" in found)
