"""An mpi4py communicator as the table of functions that libjitc wants.

The library calls these functions from inside jitc_compile, on the caller's thread. None may raise: an exception would
be printed and swallowed by ctypes, and the library would go on with nonsense.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable

from mpi4py import MPI

from . import _library
from .errors import UsageError

if TYPE_CHECKING:
    from .context import Comm

# What pending operations of broken contexts may still write into: kept for ever, on purpose.
_immortal: list["MpiCommunicator"] = []


def mpi_communicator(comm: Comm) -> MPI.Comm:
    """mpi4py's object for whatever is taken as a communicator. Raises UsageError for anything else."""
    if isinstance(comm, MPI.Comm):
        return comm
    if isinstance(comm, ctypes.c_void_p):  # where an MPI_Comm lies
        found = MPI.Intracomm()
        ctypes.memmove(MPI._addressof(found), comm, MPI._sizeof(found))
        return found
    if isinstance(comm, int):
        return MPI.Comm.f2py(comm)
    if hasattr(comm, "tompi4py"):
        return comm.tompi4py()
    raise UsageError("this is no communicator", thing=repr(comm)[:80],
                     remedy="give one of mpi4py or petsc4py, a Fortran handle (int), or None for this process alone")


class MpiCommunicator:
    """A duplicate of `comm`, so that jitc's messages never meet the caller's. Making one is collective over `comm`.

    Keep it alive as long as the context that uses its `table`.
    """

    def __init__(self, comm: Comm) -> None:
        if not MPI.Is_initialized() or MPI.Is_finalized():
            raise UsageError("MPI is not initialised, or already finalised")
        given = mpi_communicator(comm)
        if given == MPI.COMM_NULL or given.Is_inter():
            raise UsageError("jitc works within one group of ranks: give an intracommunicator")
        self.comm = given.Dup()
        self.comm.Set_errhandler(MPI.ERRORS_RETURN)
        self._pending: dict[int, tuple[MPI.Request, tuple[Any, ...]]] = {}
        self._next = 1
        self.table = _library.Communicator(
            size=ctypes.sizeof(_library.Communicator), state=None, rank=self.comm.rank, ranks=self.comm.size,
            iallreduce_or=_library.AllreduceCallback(self._iallreduce_or), ibcast=_library.BcastCallback(self._ibcast),
            test=_library.TestCallback(self._test), error_text=_library.ErrorTextCallback(self._error_text),
            release=_library.ReleaseCallback(self._release), isend=_library.MessageCallback(self._isend),
            irecv=_library.MessageCallback(self._irecv), iprobe=_library.ProbeCallback(self._iprobe))

    def borrowed_table(self) -> _library.Communicator:
        """For one of several contexts that follow each other: closing it leaves the communicator as it is."""
        table = _library.Communicator()
        ctypes.pointer(table)[0] = self.table
        table.release = _library.ReleaseCallback(0)
        return table

    def keep_for_ever(self) -> None:
        """For a broken context: its operations stay pending."""
        _immortal.append(self)

    def _start(self, pending: Any, make: Callable[[], tuple[MPI.Request, tuple[Any, ...]]]) -> int:
        try:
            started = make()
            self._pending[self._next] = started
            pending.contents.opaque[0] = self._next
            self._next += 1
            return MPI.SUCCESS
        except BaseException as failure:  # nothing may leave a callback, an interrupt neither
            return _code(failure)

    def _iallreduce_or(self, _state: int, send: int, receive: int, count: int, pending: Any) -> int:
        def make() -> tuple[MPI.Request, tuple[Any, ...]]:
            given, result = (MPI.memory.fromaddress(address, 8 * count) for address in (send, receive))
            request = self.comm.Iallreduce([given, count, MPI.UINT64_T], [result, count, MPI.UINT64_T], MPI.BOR)
            return request, (given, result)

        return self._start(pending, make)

    def _ibcast(self, _state: int, buffer: int, size: int, root: int, pending: Any) -> int:
        def make() -> tuple[MPI.Request, tuple[Any, ...]]:
            memory = MPI.memory.fromaddress(buffer, size)
            return self.comm.Ibcast([memory, size, MPI.BYTE], root), (memory,)

        return self._start(pending, make)

    def _isend(self, _state: int, buffer: int, size: int, to: int, pending: Any) -> int:
        def make() -> tuple[MPI.Request, tuple[Any, ...]]:
            memory = MPI.memory.fromaddress(buffer, size)
            return self.comm.Isend([memory, size, MPI.BYTE], to), (memory,)

        return self._start(pending, make)

    def _irecv(self, _state: int, buffer: int, size: int, source: int, pending: Any) -> int:
        def make() -> tuple[MPI.Request, tuple[Any, ...]]:
            memory = MPI.memory.fromaddress(buffer, size)
            return self.comm.Irecv([memory, size, MPI.BYTE], source, 0), (memory,)

        return self._start(pending, make)

    def _iprobe(self, _state: int, is_there: Any) -> int:
        try:
            is_there[0] = self.comm.Iprobe(MPI.ANY_SOURCE, 0)
            return MPI.SUCCESS
        except BaseException as failure:  # as in _start
            return _code(failure)

    def _test(self, _state: int, pending: Any, done: Any) -> int:
        try:
            place = pending.contents.opaque[0]
            request, _ = self._pending[place]
            done[0] = request.Test()
            if done[0]:
                del self._pending[place]
            return MPI.SUCCESS
        except BaseException as failure:  # as in _start
            return _code(failure)

    def _error_text(self, _state: int, code: int, text: int, capacity: int) -> None:
        try:
            if capacity:
                words = MPI.Get_error_string(code).encode()[:capacity - 1] + b"\0"
                ctypes.memmove(text, words, len(words))
        except BaseException:  # the text stays as it is
            return

    def _release(self, _state: int) -> None:
        try:
            if not MPI.Is_finalized():
                self.comm.Free()
        except BaseException:  # there is nobody left to tell
            return


def _code(failure: BaseException) -> int:
    """The error code that the library is told; never MPI_SUCCESS."""
    return (failure.Get_error_code() if isinstance(failure, MPI.Exception) else 0) or MPI.ERR_OTHER
