"""The failures of jitc as exceptions: one class per kind, with what happened, to which thing, and what to do."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Sequence

from . import _library


class Error(Exception):
    """A failure; on every rank the same one, where the call was collective. str() is the whole text for people.

    Attributes:
        kind: "INVALID_SOURCE", "OUT_OF_MEMORY", ... as in jitc.h.
        message: what happened.
        thing: to which thing; may be "".
        remedy: what to do; may be "".
        ranks: the ranks on which it happened, ascending; empty when it is not of particular ranks.
        diagnostics: the compiler's, as dictionaries {"line", "column", "severity", "message", ...}.
        is_broken: the context cannot be used any more.
        details: everything the library tells, among it "log", "needed_bytes", "budget_bytes", "tries" and "capsule".
    """

    kind = "INTERNAL"

    def __init__(self, message: str, *, thing: str = "", remedy: str = "", ranks: Sequence[int] = (),
                 details: dict[str, Any] | None = None, is_broken: bool = False, text: str | None = None) -> None:
        parts = [message if not thing else f"{thing}: {message}", remedy]
        super().__init__(text if text is not None else "\n".join(part for part in parts if part))
        self.message = message
        self.thing = thing
        self.remedy = remedy
        self.ranks = tuple(ranks)
        self.details = details or {}
        self.diagnostics: list[dict[str, Any]] = self.details.get("diagnostics", [])
        self.is_broken = is_broken


class CompileError(Error):
    """The source does not compile; `diagnostics` say where."""

    kind = "INVALID_SOURCE"


class RefusedError(Error):
    """Policy: a flag, an include, another user's daemon."""

    kind = "REFUSED"


class OutOfMemoryError(Error):
    """The compiler needs more than the budget; `details` hold needed_bytes and budget_bytes."""

    kind = "OUT_OF_MEMORY"


class TimedOutError(Error):
    """Silence for longer than the setting `timeout`, or a rank that never came."""

    kind = "TIMED_OUT"


class CancelledError(Error):
    """Somebody ended the compile."""

    kind = "CANCELLED"


class CompilerCrashedError(Error):
    """The compiler died; `details["log"]` holds its last words."""

    kind = "COMPILER_CRASHED"


class StoreFullError(Error):
    """There is no room in the store."""

    kind = "STORE_FULL"


class StoreUnavailableError(Error):
    """The store cannot be read or written."""

    kind = "STORE_UNAVAILABLE"


class DrainingError(Error):
    """The daemon is shutting down."""

    kind = "DRAINING"


class VersionSkewError(Error):
    """Library and daemon, or library and this package, do not understand each other."""

    kind = "VERSION_SKEW"


class UnreachableError(Error):
    """There is no daemon, or no library."""

    kind = "UNREACHABLE"


class UsageError(Error):
    """A wrong argument or setting."""

    kind = "USAGE"


class UnsupportedExpression(UsageError):
    """An expression holds what has no meaning in C; `thing` names the entry, the message the symbol or node."""


class DivergentError(Error):
    """The ranks asked for different things; `ranks` and the message say which."""

    kind = "DIVERGENT"


class BrokenError(Error):
    """The context cannot be used any more: an earlier call timed out."""

    kind = "BROKEN"


class NotLoadedError(Error):
    """A rank could not load the module."""

    kind = "NOT_LOADED"


class CorruptError(Error):
    """An artifact does not verify."""

    kind = "CORRUPT"


class MiscompiledError(Error):
    """The module does not compute what the problem says; `thing` is the entry."""

    kind = "MISCOMPILED"


class InternalError(Error):
    """A bug in jitc."""

    kind = "INTERNAL"


CLASSES = (CompileError, RefusedError, OutOfMemoryError, TimedOutError, CancelledError, CompilerCrashedError,
           StoreFullError, StoreUnavailableError, DrainingError, VersionSkewError, UnreachableError, UsageError,
           DivergentError, BrokenError, NotLoadedError, CorruptError, MiscompiledError, InternalError)
_BY_KIND: dict[str, type[Error]] = {one.kind: one for one in CLASSES}


def check(status: int, error: ctypes.c_void_p) -> None:
    """Raises what `status` and `error` of a call into the library say, and frees the error."""
    if status == 0:
        return
    library = _library.library()
    if not error.value:
        raise InternalError(f"the library failed with status {status} and no error")
    try:
        raise _take(library, error)
    finally:
        library.jitc_error_free(error)


def _take(library: ctypes.CDLL, error: ctypes.c_void_p) -> Error:
    def text(function: str) -> str:
        return getattr(library, function)(error).decode("utf-8", "replace")

    count = ctypes.c_size_t()
    ranks = library.jitc_error_ranks(error, ctypes.byref(count))
    kind = text("jitc_error_kind_name")
    return _BY_KIND.get(kind, InternalError)(
        text("jitc_error_message"), thing=text("jitc_error_thing"), remedy=text("jitc_error_remedy"),
        ranks=ranks[:count.value] if ranks else (), details=json.loads(text("jitc_error_json")),
        is_broken=bool(library.jitc_error_is_broken(error)), text=text("jitc_error_text"))
