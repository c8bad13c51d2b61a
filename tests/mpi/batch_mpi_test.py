"""Several modules in one call over ranks on two nodes: two daemons with a runtime directory each, and one store.

usage: batch_mpi_test.py BIN_DIRECTORY CLIENT_PROGRAM RANKS MPIRUN...
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN, CLIENT, RANKS, *MPIRUN = sys.argv[1:]
RANKS = int(RANKS)
FROM_STORE, COMPILED = 2, 4


def run(first, second, *numbers):
    """The first half of the ranks on the first node, the others on the second."""
    environment = {**first.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    client = [CLIENT, *map(str, numbers)]
    command = [*MPIRUN, "-n", str(RANKS // 2), *client, ":", "-n", str(RANKS - RANKS // 2), "env",
               f"JITC_RUNTIME_DIR={second.run_directory}", *client]
    done = subprocess.run(command, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=200)
    assert done.returncode == 0, f"mpirun ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert told["same"], told
    return told


def compiles(*nodes):
    return [node.stats()["compiles_started"] for node in nodes]


def main():
    with Node(BIN) as first, Node(BIN, JITC_STORE=str(first.store)) as second:
        for node in (first, second):
            done = node.jitc("daemon", "start")
            assert done.returncode == 0, done.stderr

        cold = run(first, second, 1, 2, 3, 4, 5, 1)
        assert cold["kind"] == "OK" and cold["origins"] == [COMPILED] * 6 and cold["compilers_started"] == 5, cold
        assert compiles(first, second) == [3, 2], compiles(first, second)

        again = run(first, second, 5, 4, 3)
        assert again["origins"] == [FROM_STORE] * 3 and again["compilers_started"] == 0, again
        assert compiles(first, second) == [3, 2], compiles(first, second)

        # What did compile beside a failure is kept. A single miss is the root's.
        wrong = run(first, second, 1, 6, -1, 7)
        assert wrong["kind"] == "INVALID_SOURCE" and "module 'module-1.c'" in wrong["error"]["message"], wrong
        assert compiles(first, second) == [5, 3], compiles(first, second)
        kept = run(first, second, 6, 7, 8)
        assert kept["origins"] == [FROM_STORE, FROM_STORE, COMPILED] and kept["compilers_started"] == 1, kept
        assert compiles(first, second) == [6, 3], compiles(first, second)


main()
