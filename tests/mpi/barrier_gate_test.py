"""The published deadlock: under a gate with a barrier in a branch the ranks hang, under jitc's they end.

usage: barrier_gate_test.py BARRIER_GATE VIEWS_MPI_TEST MPIRUN...
"""
import os
import select
import subprocess
import sys
import time

BARRIER_GATE, VIEWS, *MPIRUN = sys.argv[1:]
RANKS = 4
CALLS = 10
SEES = {"root": {0}, "but_root": {1, 2, 3}}  # as in views.h
IN_THE_GATE, BEHIND_IT = "waits in the gate", "is through the gate and waits for the others"


def start(*program):
    return subprocess.Popen([*MPIRUN, "-n", str(RANKS), *program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def lines_until(job, is_enough, seconds=60):
    """The lines that the ranks have said when `is_enough(lines)`, or when they have no more to say."""
    said = b""
    deadline = time.monotonic() + seconds
    while not is_enough(said.decode().splitlines()):
        ready, _, _ = select.select([job.stdout], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing new for {seconds} s after: {said}"
        more = os.read(job.stdout.fileno(), 65536)
        if not more:
            break
        said += more
    return said.decode().splitlines()


def end(job):
    """Ends the job by its own process id; mpirun ends its ranks."""
    job.terminate()
    try:
        job.wait(timeout=60)
    except subprocess.TimeoutExpired:
        job.kill()
        raise


def hangs(view):
    """Every rank waits, some in the gate and the others behind it: no message is under way that could free them."""
    job = start(BARRIER_GATE, view)
    waiting = {f"rank {rank}: {BEHIND_IT if rank in SEES[view] else IN_THE_GATE}" for rank in range(RANKS)}
    try:
        said = lines_until(job, lambda lines: waiting <= set(lines))
        assert waiting <= set(said), f"{view}: {said}"
        try:
            job.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"{view}: the peer ended by itself with {job.returncode}: this test shows nothing")
    finally:
        if job.poll() is None:
            end(job)


def ends(program, *arguments):
    job = start(program, *arguments)
    try:
        out, _ = job.communicate(timeout=100)
    finally:
        if job.poll() is None:
            end(job)
    assert job.returncode == 0, f"{program} {arguments}: {job.returncode} {out}"
    return out.decode()


# The peer itself works where all see the same.
assert "all are through" in ends(BARRIER_GATE, "nobody")
for name in SEES:
    hangs(name)
    assert "all ranks agree" in ends(VIEWS, str(CALLS), name)
    print(f"{name}: the barrier in a branch hangs, jitc's gate does not", flush=True)
