"""The Fortran example against a real daemon: compiled once, found the second time.

usage: fortran_test.py BIN_DIRECTORY PROGRAM
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN, PROGRAM = sys.argv[1:]
VALUES = ["g2_0_0   0.37500  -3.00000", "g3_0_0   1.87500   0.00000   0.00000   1.87500"]


def run(node):
    return subprocess.run([PROGRAM], env=node.environment, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


with Node(BIN) as node:
    alone = run(node)
    assert alone.returncode != 0 and "FAILED: UNREACHABLE" in alone.stdout, alone.stdout
    started = node.jitc("daemon", "start")
    assert started.returncode == 0, started.stderr
    for lines in (VALUES + ["one compiler started"], VALUES):
        done = run(node)
        assert done.returncode == 0 and done.stdout.splitlines() == lines, done.stdout
