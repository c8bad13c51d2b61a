"""What Underworld3's environment variables ask for."""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import Mapping, Sequence

from ..errors import UsageError

# Always there. gnu99 and not c99: a strict dialect has no M_PI. Both leave sums and products as they are written, which
# compilers do under c99 too.
BASE_FLAGS = "-std=gnu99 -ffp-contract=off"
DEFAULT_FLAGS = ("-O3", "-g0", "-fno-math-errno")
_FALSE, _TRUE = ("0", "false", "no", "off"), ("1", "true", "yes", "on")
_THIS_CPU = ("-march=native", "-mtune=native", "-mcpu=native")


@dataclasses.dataclass(frozen=True)
class Environment:
    """The variables' values.

    Attributes:
        flags: UW3_JIT_CFLAGS, in place of all flags but -std; None: not set. Without -march=native and its like, which
            would be the CPU of one node: code is made for the instruction set that all ranks have (JITC_ISA).
        store: UW_JIT_CACHE_DIR, the store of the daemon that the first compile starts; None: not set.
        cache: False for UW_JIT_CACHE=0: everything is compiled, though still once for all ranks.
        sharing: UW_JIT_CSE: "0" as written, "1" common subexpressions once, "auto" by size.
    """

    flags: tuple[str, ...] | None = None
    store: str | None = None
    cache: bool = True
    sharing: str = "auto"

    @classmethod
    def read(cls, variables: Mapping[str, str] = os.environ) -> Environment:
        """Raises UsageError, naming the variable, for a value that means nothing."""
        flags = None
        if "UW3_JIT_CFLAGS" in variables:
            try:
                words = shlex.split(variables["UW3_JIT_CFLAGS"])
            except ValueError as failure:
                raise UsageError(f"{failure}: {variables['UW3_JIT_CFLAGS']}", thing="UW3_JIT_CFLAGS") from None
            flags = tuple(word for word in words if word not in _THIS_CPU and not word.startswith("-std="))
        sharing = variables.get("UW_JIT_CSE", "auto")
        if sharing != "auto":
            sharing = "1" if _switch("UW_JIT_CSE", sharing) else "0"
        return cls(flags, variables.get("UW_JIT_CACHE_DIR") or None,
                   _switch("UW_JIT_CACHE", variables.get("UW_JIT_CACHE", "1")), sharing)

    def flags_for(self, given: Sequence[str] | None) -> tuple[str, ...]:
        """UW3_JIT_CFLAGS, else what the caller gives, else Underworld3's own."""
        if self.flags is not None:
            return self.flags
        return DEFAULT_FLAGS if given is None else tuple(given)

    def settings(self, timeout_s: float | None) -> dict[str, str]:
        """Of a context. One daemon for all ranks of a node is started where none runs, unless JITC_AUTOSTART says
        otherwise: never a compiler in each rank."""
        settings = {"cflags": BASE_FLAGS, "share": self.sharing, "divergent": "error"}
        if "JITC_AUTOSTART" not in os.environ:
            settings["autostart"] = "1"
        if self.store is not None:
            settings["store"] = os.path.abspath(os.path.expanduser(self.store))
        if timeout_s is not None:
            settings["timeout"] = settings["arrival_timeout"] = f"{timeout_s:g}s"
        return settings

    def describe(self, flags: Sequence[str]) -> str:
        """One line for people."""
        cache = f"cache {self.store or 'of the daemon'}" if self.cache else "no cache"
        return f"jitc: flags {BASE_FLAGS} {shlex.join(flags)}; {cache}; common subexpressions {self.sharing}"


def _switch(name: str, value: str) -> bool:
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise UsageError(f"{value!r} is neither yes nor no", thing=name, remedy=f"one of {', '.join((*_TRUE, *_FALSE))}")
