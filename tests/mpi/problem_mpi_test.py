"""Problems on ranks over a real daemon: a cold job, then one that finds everything in the store.

usage: problem_mpi_test.py BIN_DIRECTORY PROGRAM RANKS MPIRUN...
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN, PROGRAM, RANKS, *MPIRUN = sys.argv[1:]

with Node(BIN) as node:
    started = node.jitc("daemon", "start")
    assert started.returncode == 0, started.stderr
    for job, compiles in (("cold", 4), ("stored", 4)):
        done = subprocess.run([*MPIRUN, "-n", RANKS, PROGRAM, job], text=True, timeout=100, stdin=subprocess.DEVNULL,
                              env={**node.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        assert done.returncode == 0, f"the {job} job ended with {done.returncode}"
        # The problem, the larger, the fused and the adopted one; the second job compiles nothing.
        assert node.stats()["compiles_started"] == compiles, node.stats()
