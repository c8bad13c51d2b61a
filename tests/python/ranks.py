"""A daemon of one's own and programs under mpirun beside it.

usage of the tests: FILE BIN_DIRECTORY RANKS MPIRUN...
"""
import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "faults"))
from harness import Node  # noqa: E402

BIN, RANKS, *MPIRUN = sys.argv[1:]


class RanksCase(unittest.TestCase):
    def setUp(self):
        self.node = self.enterContext(Node(BIN))
        done = self.node.jitc("daemon", "start")
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = {name: value for name, value in self.node.environment.items()
                       if not name.startswith(("UW_", "UW3_"))}
        self.environment = {**environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def start_ranks(self, program, *arguments, **further):
        return subprocess.Popen([*MPIRUN, "-n", RANKS, sys.executable, "-B", str(program), *arguments],
                                env={**self.environment, **further}, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end_of(self, job):
        """(what it said on standard output, on standard error); a hang or a failure ends the test."""
        try:
            out, err = job.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            job.terminate()  # mpirun ends its ranks
            out, err = job.communicate()
            self.fail(f"{job.args} hangs\n{out}\n{err}")
        self.assertEqual(job.returncode, 0, f"{out}\n{err}")
        return out, err

    def run_ranks(self, program, *arguments, **further):
        return self.end_of(self.start_ranks(program, *arguments, **further))[0]

    def scenarios(self, program, *names, **further):
        """What the first rank told of each, by name."""
        told = [json.loads(line) for line in self.run_ranks(program, *names, **further).splitlines()]
        return {one["scenario"]: one for one in told}


def main():
    unittest.main(argv=sys.argv[:1])
