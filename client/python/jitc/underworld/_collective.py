"""Level 0: C texts in, addresses of functions out, the same on all ranks."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import struct
import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, Union

from ..context import Context, Progress
from ..errors import CompilerCrashedError, Error, OutOfMemoryError, UsageError
from ..errors import CompileError as InvalidSource
from ..module import Module
from ._environment import Environment

if TYPE_CHECKING:
    from .._communicator import MpiCommunicator
    from ..context import Comm

Sources = Sequence["tuple[str, str]"]
_ORIGINS = {"memory": "memory", "rank": "memory", "store": "disk", "daemon": "daemon", "compiled": "daemon"}
_FOOTER = struct.Struct("<8sII32sQQQ32s")  # docs/formats.md


class CompileError(RuntimeError):
    """A compile failed, on all ranks alike. str() is the whole text for people; `__cause__` is the jitc.Error.

    Attributes:
        returncode: what a compiler would have ended with: 1 when the source is wrong; None: it gave no answer.
        signal: the number of the signal that ended the compiler; None: none did, or it is not known.
        oom: it took more memory than there is for it.
        stderr: the compiler's words, with the places in the source.
        source_path: a file on the first rank's node from which `jitc replay` compiles again; "" where none was kept.
    """

    def __init__(self, failure: Error) -> None:
        super().__init__(str(failure))
        self.returncode = 1 if isinstance(failure, InvalidSource) else None
        by_signal = re.search(r"signal (\d+)", failure.message) if isinstance(failure, CompilerCrashedError) else None
        self.signal = int(by_signal.group(1)) if by_signal else None
        self.oom = isinstance(failure, OutOfMemoryError)
        self.stderr = str(failure)
        self.source_path: str = failure.details.get("capsule", "")


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A compiled module, loaded on this rank. It and what load() makes of it keep the code in memory.

    Attributes:
        path: a file with the module's bytes, for this process and as long as the module is loaded.
        key: 256 bits as 64 hexadecimal digits, the same on all ranks.
        origin: "memory": a rank held it; "disk": read from the store; "daemon".
        compilers_started: by this call; 0 on any hit.
        seconds: of this call.
        flags: that were asked for.
        entry: the functions' names by role.
    """

    path: str
    key: str
    origin: str
    compilers_started: int
    seconds: float
    flags: tuple[str, ...]
    entry: Mapping[str, tuple[str, ...]]
    module: Module = dataclasses.field(repr=False, compare=False)

    @functools.cached_property
    def sha256(self) -> str:
        """Of the file, 64 hexadecimal digits; the same on all ranks."""
        return hashlib.sha256(pathlib.Path(self.path).read_bytes()).hexdigest()

    @property
    def compile_seconds(self) -> float:
        """What its compile took, whenever that was."""
        return float(self._manifest.get("compile_seconds", 0.0))

    @property
    def peak_rss(self) -> int:
        """Bytes of memory that its compile took."""
        return int(self._manifest.get("peak_bytes", 0))

    @property
    def log(self) -> str:
        """The compiler's warnings."""
        return str(self._manifest.get("log", ""))

    @functools.cached_property
    def _manifest(self) -> dict[str, Any]:
        data = pathlib.Path(self.path).read_bytes()
        _, _, _, _, _, elf_size, manifest_size, _ = _FOOTER.unpack(data[-_FOOTER.size:])
        told: dict[str, Any] = json.loads(data[elf_size:elf_size + manifest_size])
        return told


class Library:
    """The functions of an artifact. Addresses are valid as long as this, the artifact or its module lives."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.module = artifact.module

    def addresses(self, role: str) -> list[int]:
        """Of the functions of a role, in the order in which they were asked for."""
        if role not in self.artifact.entry:
            raise UsageError("the artifact has no functions of this role", thing=role,
                             remedy=f"it has {', '.join(self.artifact.entry) or 'none'}")
        return [self._address(name) for name in self.artifact.entry[role]]

    def _address(self, name: str) -> int:
        return self.module.symbol(name)


def compile_collective(comm: Comm | None, sources: Union[Sources, Callable[[], Sources]],
                       entry: Mapping[str, Sequence[str]], flags: Sequence[str] | None = None, salt: bytes = b"",
                       manifest_digest: bytes = b"", timeout_s: float | None = None,
                       on_progress: Callable[[Progress], None] | None = None, *, name: str | None = None,
                       compiler: str | None = None) -> Artifact:
    """Compiles C texts once for all ranks, or finds what was compiled of them. Collective over `comm`.

    What goes wrong on one rank (its sources or arguments, a wrong environment variable, a module that cannot be loaded)
    is raised on all ranks. Ranks with different texts, flags or manifests get jitc.DivergentError, which names them.

    Args:
        comm: the ranks, as for jitc.Context; any communicator, not only the world. None: this process alone.
        sources: (name, text), or a function that makes them: what it raises is raised on all ranks. Those whose names
            end in .h are what the others include; several others are compiled as one text, in order.
        entry: the functions that are wanted, as names by role.
        flags: of the compiler, beside -std=gnu99; UW3_JIT_CFLAGS replaces them. None: -O3 -g0 -fno-math-errno.
        salt: what else decides the binary interface, such as PETSc's version and the sizes of its types.
        manifest_digest: of the order of constants[]. Not part of the key, but it must be the same on all ranks.
        timeout_s: seconds to wait for a rank that does not begin the call, or for a daemon that says nothing. None: as
            the settings `arrival_timeout` and `timeout` say.
        on_progress: called once a second of waiting. None: the first rank prints a line on a terminal.
        name: for people, in progress and diagnostics. None: that of the first text.
        compiler: "clang" (embedded), "gcc" or a path that the daemon allows.

    Raises:
        CompileError: the source does not compile, or the compiler crashed or had too little memory.
        jitc.Error: everything else, by kind.
    """
    def ask(context: Context, environment: Environment, chosen: Sequence[str]) -> Module:
        given = sources() if callable(sources) else sources
        text, headers = _one_text(given)
        title = name or next(one for one, _ in given if not one.endswith(".h"))
        return context.compile(text, flags=chosen, name=title, headers=headers, compiler=compiler, abi_tag=salt.hex(),
                               manifest=bytes(manifest_digest), no_cache=not environment.cache)

    artifact = run(comm, ask, flags, timeout_s, on_progress, name or "underworld",
                   {role: tuple(names) for role, names in entry.items()})
    library = load(artifact)
    for role in artifact.entry:
        library.addresses(role)  # the module is the same on all ranks, and so is what it lacks
    return artifact


def load(artifact: Artifact) -> Library:
    """The functions of a module, which compile_collective has already loaded on every rank. Local."""
    return Library(artifact)


def petsc_types(int_bits: int = 32) -> tuple[str, str]:
    """A source for compile_collective that stands for <petscsystypes.h>: PetscInt of `int_bits` bits, PetscReal and
    PetscScalar double. So a node without PETSc's headers compiles the text as it is, and the key has no path in it."""
    if int_bits not in (32, 64):
        raise UsageError(f"PetscInt has 32 or 64 bits, not {int_bits}", thing="int_bits")
    return "petscsystypes.h", ("#include <stdint.h>\n" f"typedef int{int_bits}_t PetscInt;\n"
                               "typedef double PetscReal;\ntypedef double PetscScalar;\n")


def run(comm: Comm | None, ask: Callable[[Context, Environment, Sequence[str]], Module], flags: Sequence[str] | None,
        timeout_s: float | None, on_progress: Callable[[Progress], None] | None, name: str,
        entry: Mapping[str, tuple[str, ...]]) -> Artifact:
    """One collective call: `ask` makes it over a context. What fails before it on this rank becomes its part of it."""
    try:
        environment, failure = Environment.read(), None
    except Error as wrong:
        environment, failure = Environment(), wrong
    chosen = environment.flags_for(flags)
    ranks = None if comm is None else _ranks_of(comm)
    context = ranks.broken if ranks is not None and ranks.broken is not None else Context(
        None if ranks is None else ranks.communicator, environment.settings(timeout_s), on_progress)
    try:
        if failure is None:
            _say(environment.describe(chosen), ranks)
            module = _told_to_all(context, lambda: ask(context, environment, chosen), name)
        else:
            module = _fail(context, failure, name)
        return _artifact(module, context, chosen, entry)
    except (InvalidSource, OutOfMemoryError, CompilerCrashedError) as wrong:
        raise CompileError(wrong) from wrong
    finally:
        if not context.is_broken:
            context.close()
        elif ranks is not None:
            ranks.broken = context  # later calls say so at once


class _Ranks:
    """A duplicate of a communicator, made at its first use and kept with it. Each call has a context of its own over
    it, so that settings may differ from call to call without anything collective: what ranks set differently they hear
    of in the call itself, and no rank waits in another operation than the rest."""

    def __init__(self, communicator: MpiCommunicator) -> None:
        self.communicator = communicator
        self.broken: Context | None = None


_keyval: list[int] = []  # under which communicators keep theirs


def _ranks_of(comm: Comm) -> _Ranks:
    from .._communicator import MpiCommunicator, mpi_communicator

    given = mpi_communicator(comm)
    if not _keyval:
        _keyval.append(type(given).Create_keyval())
    ranks: Any = given.Get_attr(_keyval[0])
    if not isinstance(ranks, _Ranks):
        ranks = _Ranks(MpiCommunicator(given))
        given.Set_attr(_keyval[0], ranks)
    return ranks


class _NotAsked(Exception):
    """This rank's part of the call could not be stated; its cause says why."""


def _told_to_all(context: Context, ask: Callable[[], Module], name: str) -> Module:
    """What `ask` raises before the library was called is raised on all ranks."""
    before = context.stats["calls"]
    try:
        return ask()
    except Exception as failure:
        if context.stats["calls"] != before or context.is_broken:
            raise  # the call was made: all ranks have heard of it
        return _fail(context, failure, name)


def _fail(context: Context, failure: Exception, name: str) -> Module:
    def fail() -> str:
        raise failure

    return context.compile(fail, name=name)


_said: set[str] = set()


def _say(line: str, ranks: _Ranks | None) -> None:
    """Once for each line, on the first rank."""
    if line not in _said and (ranks is None or ranks.communicator.comm.rank == 0):
        _said.add(line)
        print(line, file=sys.stderr, flush=True)


def _one_text(sources: Sources) -> tuple[str, dict[str, str]]:
    """What is compiled, and what it includes. Several texts become one that includes them, so that diagnostics name
    each by its name."""
    texts = {name: text for name, text in sources if not name.endswith(".h")}
    headers = {name: text for name, text in sources if name.endswith(".h")}
    if len(texts) + len(headers) != len(sources):
        raise UsageError("two sources have one name", thing=", ".join(name for name, _ in sources))
    if not texts:
        raise UsageError("there is no C text among the sources", remedy="give one whose name does not end in .h")
    if len(texts) == 1:
        return next(iter(texts.values())), headers
    return "".join(f'#include "{name}"\n' for name in texts), {**headers, **texts}


def _artifact(module: Module, context: Context, flags: Sequence[str], entry: Mapping[str, tuple[str, ...]]) -> Artifact:
    stats = context.stats
    return Artifact(module.path, module.key, _ORIGINS[module.origin], int(stats["compilers_started"]),
                    float(stats["last_seconds"]), tuple(flags), entry, module)
