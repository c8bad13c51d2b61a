#!/usr/bin/python3
"""System calls on the shared store, counted by strace on every rank and by the shim in the daemon: they are the same
for 2, 4 and 8 ranks, for a compile and for a hit, and all are the root's. A call for a module that is held touches no
file and no connection on any rank.

usage: file_calls_test.py BIN_DIRECTORY SHIM SOLVER MPIRUN...
"""
import collections
import pathlib
import re
import shutil
import sys
import time

from fault_bench import COMPILED, FROM_MEMORY, FROM_STORE, Shim, Solver, source
from harness import Node

BIN, SHIM, SOLVER, *MPIRUN = sys.argv[1:]
SIZES = (2, 4, 8)
WARM_CALLS = 20
# Files, connections, and what goes through descriptors. Each thread of rank N has a file N.<thread id>.
CALLS = "%file,%network,read,readv,pread64,write,writev,pwrite64,fstat,mmap,fsync,ftruncate,close"
STRACE = ("sh", "-c", f'exec strace -ff -ttt -y -s 200 --seccomp-bpf -e trace={CALLS} -o "$0/$FAULT_RANK" "$@"')
CALL = re.compile(r"(?P<time>\d+\.\d+) (?P<name>\w+)\((?P<rest>.*)")


class Traces:
    """Lines of each rank's threads, and its calls: from "/mark/begin" to "/mark/end"."""

    def __init__(self, directory):
        self.ranks = collections.defaultdict(dict)
        for path in pathlib.Path(directory).iterdir():
            rank, thread = path.name.split(".")
            lines = filter(None, map(CALL.match, path.read_text(errors="replace").splitlines()))
            self.ranks[int(rank)][thread] = [(float(line["time"]), line["name"], line["rest"]) for line in lines]

    def windows(self, rank):
        """Begin and end of each call, by the thread that made it."""
        marks = {"begin": [], "end": []}
        for lines in self.ranks[rank].values():
            for when, _, rest in lines:
                for mark, times in marks.items():
                    if f'"/mark/{mark}"' in rest:
                        times.append(when)
        return list(zip(sorted(marks["begin"]), sorted(marks["end"]), strict=True))

    def between(self, rank, window):
        """(thread, name, rest) of all threads of the rank, the marks left out."""
        begin, end = window
        return [(thread, name, rest) for thread, lines in self.ranks[rank].items() for when, name, rest in lines
                if begin <= when <= end and "/mark/" not in rest]

    def main_thread(self, rank):
        return next(thread for thread, lines in self.ranks[rank].items()
                    if any("/mark/begin" in rest for _, _, rest in lines))


def daemons_calls(shim):
    """By kind, until the artifact is durable. Listings are left out: what is in the store at the start is looked
    through at any time."""
    lines = []
    while not any(line["operation"] == "fsync" and line["path"].endswith("/v1") for line in lines):
        lines += shim.wait_for_a_line()
    return collections.Counter(line["operation"] for line in lines
                               if line["operation"] in ("open", "read", "write", "fsync", "link", "unlink", "mkdir"))


def job_of(ranks):
    """Store calls of the ranks in a compile and in a hit, and of the daemon."""
    with Node(BIN) as node:
        shim = Shim(SHIM, node.scratch, "daemon")
        started = node.jitc("daemon", "start", further=shim.environment())
        assert started.returncode == 0, started.stderr
        path, value = source(node, 7)
        shim.set(f"watch all {node.store}*")
        with traced_solver(node, ranks, "cold") as solver:
            solver.expect(path, value, COMPILED)
            by_daemon = daemons_calls(shim)
        # A job that has asked the daemon nothing: what a connection does by itself would be in the way.
        with traced_solver(node, ranks, "warm") as solver:
            solver.expect(path, value, FROM_STORE)
            solver.tell(f"again {WARM_CALLS}")
            told = solver.answer()
            assert told["kind"] == "OK" and told["origin"] == FROM_MEMORY and told["value"] == value, told
        traces = [Traces(node.scratch / job) for job in ("cold", "warm")]
        for rank in range(ranks):
            expect_idle(traces[1], rank)
        return (*(calls_on_the_store(node, trace, ranks) for trace in traces), by_daemon)


def traced_solver(node, ranks, job):
    logs = node.scratch / job
    logs.mkdir()
    environments = [{**node.settings(), "FAULT_RANK": str(rank)} for rank in range(ranks)]
    return Solver(MPIRUN, SOLVER, environments, (*STRACE, logs))


def calls_on_the_store(node, traces, ranks):
    """By kind; all of them are the root's."""
    assert len(traces.ranks) == ranks, traces.ranks.keys()
    for rank, threads in traces.ranks.items():
        touched = [line for lines in threads.values() for line in lines if touches(node, *line[1:])]
        assert bool(touched) == (rank == 0), (rank, touched)
    calls = traces.between(0, traces.windows(0)[0])
    return collections.Counter(name for _, name, rest in calls if touches(node, name, rest))


def touches(node, name, rest):
    """Is it a call on the store? The daemon's messages speak of it too."""
    return str(node.store) in rest and not name.startswith(("send", "recv"))


def expect_idle(traces, rank):
    """In the calls for the module that is held the calling thread asks the kernel nothing; MPI's own threads may tend
    their descriptors, but touch no file and open or use no connection."""
    windows = traces.windows(rank)
    assert len(windows) == 2, windows
    lines = traces.between(rank, windows[1])
    main = traces.main_thread(rank)
    assert not [line for line in lines if line[0] == main], lines
    tending = ("read", "readv", "write", "writev", "close")
    assert not [line for line in lines if line[1] not in tending or "</" in line[2]], lines


def main():
    assert shutil.which("strace"), "strace is not installed: it counts what ranks do"
    seen = {}
    for ranks in SIZES:
        begin = time.monotonic()
        seen[ranks] = job_of(ranks)
        print(f"{ranks} ranks: compile {dict(seen[ranks][0])}, hit {dict(seen[ranks][1])}, "
              f"daemon {dict(seen[ranks][2])}: {time.monotonic() - begin:.1f} s", flush=True)
    first = seen[SIZES[0]]
    assert all(first), first  # each was seen to do something
    assert all(counts == first for counts in seen.values()), seen


main()
