"""libjitc: where it is, and the prototypes of all its functions that this package calls (jitc.h, problem.h)."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import shutil
import sysconfig
from ctypes import (CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any, Iterator, Sequence

from ._version import VERSION

NONE = 2**32 - 1  # JITC_NONE


class Pending(ctypes.Structure):
    _fields_ = [("opaque", c_uint64 * 2)]


AllreduceCallback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(Pending))
BcastCallback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_int, POINTER(Pending))
TestCallback = CFUNCTYPE(c_int, c_void_p, POINTER(Pending), POINTER(c_int))
ErrorTextCallback = CFUNCTYPE(None, c_void_p, c_int, c_void_p, c_size_t)
ReleaseCallback = CFUNCTYPE(None, c_void_p)
MessageCallback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_int, POINTER(Pending))
ProbeCallback = CFUNCTYPE(c_int, c_void_p, POINTER(c_int))


class Communicator(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("state", c_void_p), ("rank", c_int), ("ranks", c_int),
                ("iallreduce_or", AllreduceCallback), ("ibcast", BcastCallback), ("test", TestCallback),
                ("error_text", ErrorTextCallback), ("release", ReleaseCallback), ("isend", MessageCallback),
                ("irecv", MessageCallback), ("iprobe", ProbeCallback)]


class Progress(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("phase", c_int), ("place", c_uint32), ("seconds", c_double),
                ("memory_bytes", c_uint64), ("name", c_char_p)]


ProgressCallback = CFUNCTYPE(None, c_void_p, POINTER(Progress))


class Setting(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("settings", POINTER(Setting)), ("setting_count", c_size_t),
                ("progress", ProgressCallback), ("progress_state", c_void_p)]


class Stats(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("calls", c_uint64), ("memory_hits", c_uint64), ("shared_hits", c_uint64),
                ("store_hits", c_uint64), ("daemon_hits", c_uint64), ("merged", c_uint64),
                ("compilers_started", c_uint64), ("failures", c_uint64), ("last_seconds", c_double),
                ("total_seconds", c_double), ("last_compile_seconds", c_double), ("last_peak_bytes", c_uint64)]


class Header(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p)]


SourceCallback = CFUNCTYPE(c_int, c_void_p, c_void_p)


class Request(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("source", c_char_p), ("source_length", c_size_t),
                ("make_source", SourceCallback), ("make_source_state", c_void_p), ("name", c_char_p),
                ("flags", POINTER(c_char_p)), ("flag_count", c_size_t), ("compiler", c_char_p),
                ("abi_tag", c_char_p), ("isa", c_char_p), ("headers", POINTER(Header)), ("header_count", c_size_t),
                ("manifest", c_char_p), ("manifest_length", c_size_t), ("exact_flags", c_int),
                ("no_cache", c_int)]


class Block(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("kind", c_int), ("test", c_uint32), ("trial", c_uint32),
                ("boundary", c_int), ("entries", POINTER(c_uint32)), ("entry_count", c_size_t), ("tangent", c_int),
                ("continuation", c_uint32), ("frozen", POINTER(c_char_p)), ("frozen_count", c_size_t)]


class FunctionInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("kind", c_int), ("test", c_uint32), ("trial", c_uint32),
                ("boundary", c_int), ("entries", c_size_t)]


class EmitOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("sharing", c_char_p), ("types", c_char_p), ("int_bits", c_uint32),
                ("complex_scalar", c_int), ("runtime_offsets", c_int), ("prefix", c_char_p), ("skip_zero", c_int),
                ("table", c_int), ("lazy_arms", c_int), ("layout", c_int), ("canary", c_char_p),
                ("keep_zero", c_int)]


class Item(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("request", POINTER(Request)), ("problem", c_void_p),
                ("options", POINTER(EmitOptions))]


class Point(ctypes.Structure):
    _fields_ = [("size", c_size_t), *((name, c_void_p) for name in ("u", "u_t", "u_x", "a", "a_t", "a_x")),
                ("t", c_double), ("u_t_shift", c_double), ("x", c_void_p), ("n", c_void_p), ("constants", c_void_p)]


_error = POINTER(c_void_p)
_nodes = POINTER(c_uint32)
# name: (result, arguments)
_PROTOTYPES = {
    "jitc_version": (c_char_p, []),
    "jitc_error_kind_name": (c_char_p, [c_void_p]),
    "jitc_error_message": (c_char_p, [c_void_p]),
    "jitc_error_thing": (c_char_p, [c_void_p]),
    "jitc_error_remedy": (c_char_p, [c_void_p]),
    "jitc_error_text": (c_char_p, [c_void_p]),
    "jitc_error_json": (c_char_p, [c_void_p]),
    "jitc_error_ranks": (POINTER(c_int), [c_void_p, POINTER(c_size_t)]),
    "jitc_error_is_broken": (c_int, [c_void_p]),
    "jitc_error_free": (None, [c_void_p]),
    "jitc_context_open": (c_int, [POINTER(Communicator), POINTER(Options), POINTER(c_void_p), _error]),
    "jitc_context_close": (None, [c_void_p]),
    "jitc_context_is_broken": (c_int, [c_void_p]),
    "jitc_context_stats": (None, [c_void_p, POINTER(Stats)]),
    "jitc_text_bytes": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "jitc_text_free": (None, [c_void_p]),
    "jitc_text_append": (None, [c_void_p, c_char_p, c_size_t]),
    "jitc_text_fail": (None, [c_void_p, c_char_p]),
    "jitc_compile": (c_int, [c_void_p, POINTER(Request), POINTER(c_void_p), _error]),
    "jitc_compile_all": (c_int, [c_void_p, POINTER(Item), c_size_t, POINTER(c_void_p), _error]),
    "jitc_module_symbol": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), _error]),
    "jitc_module_key": (c_char_p, [c_void_p]),
    "jitc_module_origin": (c_int, [c_void_p]),
    "jitc_module_path": (c_char_p, [c_void_p]),
    "jitc_module_manifest": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "jitc_module_release": (None, [c_void_p]),
    "jitc_problem_open": (c_void_p, [c_char_p, c_uint32]),
    "jitc_problem_from_json": (c_int, [c_char_p, c_size_t, POINTER(c_void_p), _error]),
    "jitc_problem_free": (None, [c_void_p]),
    "jitc_problem_set": (None, [c_void_p, c_char_p, c_char_p]),
    "jitc_problem_check": (c_int, [c_void_p, _error]),
    "jitc_problem_field": (c_uint32, [c_void_p, c_char_p, c_uint32]),
    "jitc_problem_aux_field": (c_uint32, [c_void_p, c_char_p, c_uint32]),
    "jitc_problem_constant": (c_uint32, [c_void_p, c_char_p, c_double]),
    "jitc_problem_set_constant": (None, [c_void_p, c_uint32, c_double]),
    "jitc_problem_constants": (c_size_t, [c_void_p, POINTER(c_double), c_size_t]),
    "jitc_problem_function": (c_uint32, [c_void_p, c_char_p, c_uint32, _nodes]),
    "jitc_node_number": (c_uint32, [c_void_p, c_double]),
    "jitc_node_leaf": (c_uint32, [c_void_p, c_int, c_uint32]),
    "jitc_node_apply": (c_uint32, [c_void_p, c_char_p, _nodes, c_size_t]),
    "jitc_node_call": (c_uint32, [c_void_p, c_uint32, _nodes, c_size_t]),
    "jitc_node_named": (c_uint32, [c_void_p, c_char_p, c_uint32]),
    "jitc_problem_residual": (None, [c_void_p, c_char_p, c_int, c_uint32, c_int, _nodes, c_size_t]),
    "jitc_problem_block": (None, [c_void_p, POINTER(Block)]),
    "jitc_problem_function_count": (c_size_t, [c_void_p]),
    "jitc_problem_function_info": (c_int, [c_void_p, c_size_t, POINTER(FunctionInfo), _error]),
    "jitc_problem_emit": (c_int, [c_void_p, POINTER(EmitOptions), POINTER(c_void_p), _error]),
    "jitc_problem_manifest": (c_int, [c_void_p, POINTER(c_void_p), _error]),
    "jitc_problem_evaluate": (c_int, [c_void_p, c_char_p, POINTER(Point), POINTER(c_double), c_size_t, _error]),
    "jitc_compile_problem": (c_int, [c_void_p, c_void_p, POINTER(EmitOptions), POINTER(Request), POINTER(c_void_p),
                                     _error]),
    "jitc_module_function": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), _error]),
}
_NAMES = (f"libjitc.so.{VERSION.partition('.')[0]}", "libjitc.so")


def _candidates() -> Iterator[str]:
    """Places to look, in order: JITC_LIBRARY alone where it is set; the build trees and the installation that this
    package stands in; the installation whose `jitc` is on the PATH; what ld.so knows (LD_LIBRARY_PATH, ldconfig)."""
    given = os.environ.get("JITC_LIBRARY")
    if given:
        yield given
        return
    parents = list(pathlib.Path(__file__).resolve().parents)
    command = shutil.which("jitc")
    if command:
        parents.append(pathlib.Path(command).resolve().parent.parent)
    folders = ("build/lib", "lib", f"lib/{sysconfig.get_config_var('MULTIARCH')}", "lib64")
    for path in (parent / folder / name for parent in parents for folder in folders for name in _NAMES):
        if path.is_file():
            yield str(path)
    yield from _NAMES


def _check_version(loaded: ctypes.CDLL, path: str) -> None:
    """The C interface only grows within a major version, and within a minor one before 1.0. Raises VersionSkewError."""
    from . import errors  # which itself needs this module

    def numbers(version: str) -> list[int]:
        return [int(part) for part in version.split("-")[0].split(".")]

    loaded.jitc_version.restype = c_char_p
    told = loaded.jitc_version().decode()
    library, package = numbers(told), numbers(VERSION)
    fixed = 1 if package[0] > 0 else 2
    if library[:fixed] != package[:fixed] or library < package:
        raise errors.VersionSkewError(f"the library's version is {told}, this package's {VERSION}", thing=path,
                                      remedy="install library and package of one version; JITC_LIBRARY names another "
                                             "libjitc.so")


def _set_prototypes(loaded: ctypes.CDLL, path: str) -> None:
    from . import errors  # as above

    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise errors.VersionSkewError(f"the library has no function {name}", thing=path,
                                          remedy="use the libjitc of this package's version") from None
        function.restype, function.argtypes = result, arguments


@functools.cache
def library() -> Any:
    """The loaded library with its prototypes set. Raises UnreachableError, which names the places that were looked at,
    or VersionSkewError for the library of another version."""
    from . import errors  # as above

    failures = []
    for path in _candidates():
        try:
            loaded = ctypes.CDLL(path)
        except OSError as failure:
            failures.append(f"{path} ({failure})")
            continue
        _check_version(loaded, path)
        _set_prototypes(loaded, path)
        return loaded
    raise errors.UnreachableError(
        "it cannot be loaded; looked at: " + "; ".join(failures) + "; beside this package in "
        f"{pathlib.Path(__file__).resolve().parent}, and beside the command jitc on the PATH", thing=_NAMES[-1],
        remedy="set JITC_LIBRARY to the path of libjitc.so, or LD_LIBRARY_PATH to its directory")


def nodes(values: Sequence[int]) -> ctypes.Array[c_uint32]:
    """An array of node ids."""
    return (c_uint32 * len(values))(*values)
