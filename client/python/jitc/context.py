"""Contexts: over which ranks, and with which settings, modules are compiled."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Mapping, Protocol, Sequence, Union

from . import _library
from ._prototypes import defined_functions
from .errors import Error, UsageError, check
from .module import Module

if TYPE_CHECKING:
    from mpi4py import MPI

    from ._communicator import MpiCommunicator
    from .problem import Problem


class HasMpi4py(Protocol):
    """petsc4py's communicators."""

    def tompi4py(self) -> MPI.Comm: ...


# The ranks of a collective call: mpi4py's communicator or petsc4py's, a Fortran handle (MPI_Comm_c2f), or the address
# of an MPI_Comm (ctypes.c_void_p) of the MPI that mpi4py is built with.
Comm = Union["MPI.Comm", HasMpi4py, int, ctypes.c_void_p]
Source = Union[str, "Problem", Callable[[], Union[str, "Problem"]]]
PHASES = ("connecting", "queued", "compiling", "loading", "arriving", "reconnecting", "elsewhere")


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a waiting rank is told about once a second."""

    phase: str  # one of PHASES
    place: int  # in the daemon's queue, 1: next; 0: running
    seconds: float  # since the compile began on the root; arriving: of waiting here
    memory_bytes: int  # of the compiler; 0: not known
    name: str


class Context:
    """Compiles over all ranks of `comm`, or in this process alone (None), which needs no MPI.

    Making one, `compile` and `close` are collective: every rank calls them in the same order. The communicator is
    duplicated.

    Args:
        comm: the ranks: a communicator of mpi4py or petsc4py, a Fortran handle (int), or the address of an MPI_Comm
            (ctypes.c_void_p) of the MPI that mpi4py is built with.
        settings: as in `jitc config`, by name: {"timeout": "30s", "runtime_dir": "/path"}.
        progress: called on every rank once a second of waiting; what it raises is printed and goes no further.
    """

    def __init__(self, comm: Comm | MpiCommunicator | None = None, settings: Mapping[str, str] | None = None,
                 progress: Callable[[Progress], None] | None = None) -> None:
        self._handle = ctypes.c_void_p()
        self._library = _library.library()
        self._communicator: MpiCommunicator | None = None
        table = None
        options = self._options(settings or {}, progress)
        if comm is not None:
            from ._communicator import MpiCommunicator  # mpi4py, and with it MPI, only where it is wanted

            is_borrowed = isinstance(comm, MpiCommunicator)
            self._communicator = comm if isinstance(comm, MpiCommunicator) else MpiCommunicator(comm)
            table = self._communicator.borrowed_table() if is_borrowed else self._communicator.table
        error = ctypes.c_void_p()
        check(self._library.jitc_context_open(None if table is None else ctypes.byref(table), ctypes.byref(options),
                                              ctypes.byref(self._handle), ctypes.byref(error)), error)

    def _options(self, settings: Mapping[str, str], progress: Callable[[Progress], None] | None) -> Any:
        pairs = [_library.Setting(name.encode(), str(value).encode()) for name, value in settings.items()]
        array = (_library.Setting * len(pairs))(*pairs)
        options = _library.Options(size=ctypes.sizeof(_library.Options), settings=array, setting_count=len(pairs))
        if progress is not None:
            hear = progress

            def tell(_state: int, told: Any) -> None:
                one = told.contents
                hear(Progress(PHASES[one.phase], one.place, one.seconds, one.memory_bytes,
                              (one.name or b"").decode("utf-8", "replace")))

            options.progress = _library.ProgressCallback(tell)
        self._kept = options, array
        return options

    def compile(self, source: Source, *, flags: Sequence[str] = (),
                name: str | None = None, compiler: str | None = None, abi_tag: str | None = None,
                isa: str | None = None, headers: Mapping[str, str] | None = None, manifest: bytes = b"",
                exact_flags: bool = False, no_cache: bool = False, **emit: Any) -> Module:
        """Compiles (or finds) and loads. Collective: the same module, or the same exception, on every rank.

        Args:
            source: C text, or a Problem, or a function that makes one of them. What that function raises on one rank,
                as any wrong argument, is raised on all, with this rank named; raise before this call instead, and the
                others wait for you.
            flags: appended to the setting `cflags`.
            name: for people, in progress lines and diagnostics.
            compiler: "clang" (embedded), "gcc" or an allow-listed path.
            abi_tag: what else decides the binary interface, for example PETSc's version and sizes; part of the key.
            isa: "common" (of all ranks), "native" (of the daemon's node) or a level.
            headers: travel with the request, {name as #include spells it: text}.
            manifest: of C text: the layout of its constants, any bytes; must be equal on all ranks.
            exact_flags: never at another optimisation level than the flags say, when the compiler runs out of memory.
            no_cache: compiled although the store has it; what the process holds already is taken all the same.
            emit: of a Problem: the options of Problem.emit.
        """
        wanted = _Wanted(self._library, source, flags=flags, name=name, compiler=compiler, abi_tag=abi_tag, isa=isa,
                         headers=headers, manifest=manifest, exact_flags=exact_flags, no_cache=no_cache, **emit)
        if wanted.problem is not None:
            return wanted.problem._compile(self, wanted.request, wanted.options)
        try:
            handle = self._run(self._library.jitc_compile, ctypes.byref(wanted.request.structure))
        except Error as told:
            raise told from wanted.failure
        return wanted.module(handle)

    def compile_all(self, sources: Sequence[Union[Source, Mapping[str, Any]]], **common: Any) -> list[Module]:
        """Compiles (or finds) and loads several modules together: one certificate, compiles at the same time, spread
        over the nodes. Collective, and all or nothing: the exception names the modules that failed. What one of the
        sources or its arguments raises on one rank is raised on all. Not so what is raised while `sources` itself is
        gone through, or for a context that this rank has closed: that is this rank's alone, and the others wait for it.

        Args:
            sources: what `compile` takes as its source, each alone or with arguments of its own:
                {"source": ..., "name": ..., "flags": ...}.
            common: arguments of `compile` for all of them.
        """
        if not self._handle:
            raise UsageError("the context is closed")
        wanted = [_Wanted(self._library, **{**common, **(one if isinstance(one, Mapping) else {"source": one})})
                  for one in sources]
        items = (_library.Item * len(wanted))(*(one.item() for one in wanted))
        handles, error = (ctypes.c_void_p * len(wanted))(), ctypes.c_void_p()
        try:
            check(self._library.jitc_compile_all(self._handle, items, len(wanted), handles, ctypes.byref(error)), error)
        except Error as told:
            raise told from next((one.failure for one in wanted if one.failure), None)
        return [one.module(ctypes.c_void_p(handle)) for one, handle in zip(wanted, handles)]

    def _run(self, function: Callable[..., int], *arguments: Any) -> ctypes.c_void_p:
        """A jitc_compile... of the library: context, arguments, module, error."""
        if not self._handle:
            raise UsageError("the context is closed")
        module, error = ctypes.c_void_p(), ctypes.c_void_p()
        check(function(self._handle, *arguments, ctypes.byref(module), ctypes.byref(error)), error)
        return module

    @property
    def is_broken(self) -> bool:
        """True after a call has timed out or the communicator has failed."""
        return bool(self._handle and self._library.jitc_context_is_broken(self._handle))

    @property
    def stats(self) -> dict[str, Union[int, float]]:
        """What the context has done so far, by the names of jitc_stats: "compilers_started", "memory_hits", ..."""
        if not self._handle:
            raise UsageError("the context is closed")
        stats = _library.Stats(size=ctypes.sizeof(_library.Stats))
        self._library.jitc_context_stats(self._handle, ctypes.byref(stats))
        return {name: getattr(stats, name) for name, _ in _library.Stats._fields_ if name != "size"}

    def close(self) -> None:
        """Collective where the context has a communicator. Modules stay loaded."""
        if self._handle:
            if self.is_broken and self._communicator is not None:
                self._communicator.keep_for_ever()
            self._library.jitc_context_close(self._handle)
            self._handle = ctypes.c_void_p()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _made(source: Any) -> Union[str, Problem]:
    """What a source is; raises where it is neither C text nor a problem."""
    made = source() if callable(source) else source
    if isinstance(made, str):
        made.encode()
    elif not hasattr(made, "_compile"):
        raise TypeError(f"a source is C text (str) or a Problem, not {type(made).__name__}")
    return made


class _Wanted:
    """One module that is asked for. What its source or its arguments raise is told to all ranks."""

    def __init__(self, library: Any, source: Source | None = None, *, flags: Sequence[str] = (),
                 name: str | None = None, compiler: str | None = None, abi_tag: str | None = None,
                 isa: str | None = None, headers: Mapping[str, str] | None = None, manifest: bytes = b"",
                 exact_flags: bool = False, no_cache: bool = False, **emit: Any) -> None:
        self.failure: Exception | None = None
        self.text = ""
        self.problem: Problem | None = None  # in place of the text
        self.options: Any = None
        try:
            made = _made(source)
            self.request = _Request(flags, name, compiler, abi_tag, isa, headers, manifest, exact_flags,
                                    no_cache)
            if not isinstance(made, str):
                self.options = made._compile_options(emit)
                self.problem = made
            elif emit:
                raise UsageError(f"C text has no option {sorted(emit)[0]!r}")
            else:
                self.text = made
                self.request.set_source(made)
        except Exception as raised:  # told to all ranks by the library
            self.failure, self.request = raised, _Request(name=name if isinstance(name, str) else None)
            self.request.set_failure(library, f"{type(raised).__name__}: {raised}")

    def item(self) -> Any:
        """The jitc_item; valid while this lives."""
        item = _library.Item(size=ctypes.sizeof(_library.Item), request=ctypes.pointer(self.request.structure))
        if self.problem is not None:
            item.problem, item.options = self.problem._handle, ctypes.pointer(self.options)
        return item

    def module(self, handle: ctypes.c_void_p) -> Module:
        if self.problem is not None:
            return self.problem._module(handle, self.options)
        return Module(handle, defined_functions(self.text))


class _Request:
    """A jitc_request with the memory that it points to."""

    def __init__(self, flags: Sequence[str] = (), name: str | None = None, compiler: str | None = None,
                 abi_tag: str | None = None, isa: str | None = None, headers: Mapping[str, str] | None = None,
                 manifest: bytes = b"", exact_flags: bool = False, no_cache: bool = False) -> None:
        def text(value: str | None) -> bytes | None:
            return None if value is None else value.encode()

        if isinstance(flags, str):
            flags = flags.split()
        array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        pairs = [_library.Header(key.encode(), value.encode()) for key, value in (headers or {}).items()]
        texts = (_library.Header * len(pairs))(*pairs)
        self.structure = _library.Request(
            size=ctypes.sizeof(_library.Request), name=text(name), flags=array, flag_count=len(flags),
            compiler=text(compiler), abi_tag=text(abi_tag), isa=text(isa), headers=texts, header_count=len(pairs),
            manifest=manifest or None, manifest_length=len(manifest), exact_flags=bool(exact_flags),
            no_cache=bool(no_cache))
        self._kept: list[Any] = [array, texts]

    def set_source(self, source: str) -> None:
        data = source.encode()
        self.structure.source, self.structure.source_length = data, len(data)

    def set_failure(self, library: Any, message: str) -> None:
        data = message.encode()

        def fail(_state: int, text: int) -> int:
            library.jitc_text_fail(text, data)
            return 1

        self.structure.make_source = _library.SourceCallback(fail)


_alone: list[Context] = []  # the one context of this process without MPI
_keyval: list[int] = []  # under which communicators keep theirs


def default_context(comm: Comm | None = None) -> Context:
    """The context of `comm` with default settings, made at first use (which is collective) and kept with the
    communicator until that is freed; of this process alone for None."""
    if comm is None:
        if not _alone:
            _alone.append(Context())
        return _alone[0]
    from ._communicator import mpi_communicator

    given = mpi_communicator(comm)
    if not _keyval:
        _keyval.append(type(given).Create_keyval())
    context: Any = given.Get_attr(_keyval[0])
    if not isinstance(context, Context):
        context = Context(given)
        given.Set_attr(_keyval[0], context)
    return context


def compile(source: Source, flags: Sequence[str] | None = None, comm: Comm | None = None, name: str | None = None,
            **options: Any) -> Module:
    """Compiles (or finds) and loads, in the default context of `comm`. Collective over `comm`: the same module, or the
    same exception, on every rank.

    Args:
        source: C text, or a Problem, or a function that makes one of them.
        flags: appended to the setting `cflags` (JITC_CFLAGS).
        comm: as for Context; None: this process alone.
        name: for people, in progress lines and diagnostics.
        options: the others of Context.compile.
    """
    return default_context(comm).compile(source, flags=flags or (), name=name, **options)


def compile_all(sources: Sequence[Union[Source, Mapping[str, Any]]], comm: Comm | None = None,
                **common: Any) -> list[Module]:
    """Context.compile_all in the default context of `comm`. Collective over `comm`."""
    return default_context(comm).compile_all(sources, **common)
