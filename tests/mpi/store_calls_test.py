#!/usr/bin/python3
"""Calls on the store in a job that compiles and in one that finds the artifact, by strace: the same however many ranks
there are, and as many as the simulator (tests/bench/scale.py) says.

    store_calls_test.py BIN CLIENT MPIRUN...
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "faults"), str(TESTS / "bench")]
from harness import Node  # noqa: E402
import scale  # noqa: E402

BIN, CLIENT, MPIRUN = sys.argv[1], sys.argv[2], sys.argv[3:]
RANKS = (2, 4, 7)
SOURCE = "double answer(double x) { return 42 * x; }\n"
TRACED = ("trace=%file,read,readv,pread64,write,writev,pwrite64,fstat,fsync,fdatasync,ftruncate,fchmod,fchown,flock,"
          "fcntl,getdents64")


def strace(logs):
    logs.mkdir()
    return ["strace", "-ff", "-y", "-s", "200", "--seccomp-bpf", "-e", TRACED, "-o", str(logs / "log")]


def calls(logs, store):
    """(name, path below the store) of each call on a path or descriptor of the store."""
    found = []
    for log in logs.iterdir():
        for line in log.read_text(errors="replace").splitlines():
            call = re.match(r"(\w+)\((?:AT_FDCWD<[^>]*>, |\d+<)?\"?" + re.escape(str(store)) + r"(/[^\">]*)?", line)
            if call and "O_DIRECTORY" not in line:
                found.append((call[1], call[2] or "/"))
    return found


def is_of_a_job(call):
    """Not of the daemon's start, which looks at the store's directories."""
    name, path = call
    return path not in ("/", "/v1/tmp", "/v1/quarantine") and (path != "/v1" or name in ("openat", "fsync"))


def start_daemon(node):
    ready, told = os.pipe()
    daemon = subprocess.Popen([*strace(node.scratch / "daemon"), f"{BIN}/jitcd", "--foreground", f"--ready-fd={told}"],
                              env=node.environment, pass_fds=[told], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(told)
    assert os.read(ready, 1), "the daemon did not start"
    os.close(ready)
    return daemon


def job(node, ranks, name, source):
    environment = {**node.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([*MPIRUN, "-n", str(ranks), *strace(node.scratch / name), CLIENT, str(source), "again"],
                          env=environment, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return calls(node.scratch / name, node.store)


def count(ranks):
    """By who calls: names of calls with their numbers, of a cold and a warm job together with their daemon."""
    with Node(BIN) as node:
        daemon = start_daemon(node)
        source = node.write("answer.c", SOURCE)
        of_ranks = {name: job(node, ranks, name, source) for name in ("cold", "warm")}
        # The root tells the daemon of its hit by a datagram, which is not to be overtaken by the end.
        assert any(node.stats()["hits_direct"] for _ in range(1000)), "the daemon did not hear of the hit"
        node.jitc("daemon", "stop")
        daemon.wait(timeout=100)
        of_daemon = [call for call in calls(node.scratch / "daemon", node.store) if is_of_a_job(call)]
    return {who: collections.Counter(name for name, _ in found)
            for who, found in ({**of_ranks, "daemon": of_daemon}).items()}


def main():
    counts = {ranks: count(ranks) for ranks in RANKS}
    for ranks, found in counts.items():
        print(ranks, "ranks:", {who: dict(calls) for who, calls in found.items()}, flush=True)
    first = counts[RANKS[0]]
    assert all(found == first for found in counts.values()), "the number of calls on the store grows with the ranks"
    assert first["cold"] and first["warm"] and first["daemon"], "nothing was traced"
    p = scale.Parameters()
    total = sum(calls.total() for calls in first.values())
    assert total == p.cold_operations + p.warm_operations, (
        f"{total} calls, tests/bench/scale.py says {p.cold_operations} + {p.warm_operations}: change it and "
        "'./run bench scale'")


main()
