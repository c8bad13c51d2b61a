"""mpi4py's communicators under the gate, over a real daemon: one compile for all ranks, the same exception on all
ranks; and the Stokes example in Python.

usage: mpi_test.py BIN_DIRECTORY RANKS MPIRUN...
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN, RANKS, *MPIRUN = sys.argv[1:]
HERE = pathlib.Path(__file__).resolve().parent
STOKES = HERE.parent.parent / "client/examples/python/stokes.py"


class Ranks(unittest.TestCase):
    def setUp(self):
        self.node = self.enterContext(Node(BIN))
        done = self.node.jitc("daemon", "start")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.environment = {**self.node.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def run_ranks(self, program, *arguments):
        job = subprocess.Popen([*MPIRUN, "-n", RANKS, sys.executable, str(program), *arguments], env=self.environment,
                               text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = job.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            job.terminate()  # mpirun ends its ranks
            out, err = job.communicate()
            self.fail(f"{program} {arguments} hangs\n{out}\n{err}")
        self.assertEqual(job.returncode, 0, f"{out}\n{err}")
        return out

    def scenario(self, name):
        return json.loads(self.run_ranks(HERE / "mpi_ranks.py", name))

    def test_one_compile_for_all_ranks(self):
        told = self.scenario("compile_twice")
        self.assertEqual(told["origins"], ["compiled", "memory"])
        self.assertEqual((told["stats"]["calls"], told["stats"]["compilers_started"]), (2, 1))
        self.assertEqual(self.node.stats()["compiles_started"], 1)
        self.assertEqual(self.scenario("compile_twice")["origins"], ["store", "memory"])
        self.assertEqual(self.node.stats()["compiles_started"], 1)

    def test_failures_are_the_same_on_all_ranks(self):
        told = self.scenario("broken_source")
        self.assertEqual(told["kind"], "CompileError")
        for name, words in (("one_rank_cannot_make_its_source", "ValueError: no such viscosity"),
                            ("one_rank_gives_no_source", "not NoneType"),
                            ("one_rank_has_wrong_arguments", "int"),
                            ("one_rank_cannot_make_its_problem", "the symbol mystery")):
            told = self.scenario(name)
            self.assertIn(words, told["text"])
            self.assertEqual(told["ranks"], [int(RANKS) - 1])
        told = self.scenario("divergent_problems")
        self.assertEqual(told["kind"], "DivergentError")
        self.assertIn(1, told["ranks"])

    def test_any_communicator(self):
        self.scenario("halves")
        self.scenario("contexts_of_their_own")

    def test_lost_rank_is_named_on_the_others(self):
        last = int(RANKS) - 1
        for rank, text in enumerate(self.scenario("last_rank_stays_away")["texts"]):
            self.assertIn(f"rank {rank} waited ", text)
            self.assertIn(f"no answer from rank {last} ", text)
            self.assertIn(f"ranks {', '.join(map(str, range(last)))} wait for all ranks to begin call 1", text)

    def test_stokes_example(self):
        out = self.run_ranks(STOKES)
        self.assertIn(f"{RANKS} ranks, compilers started: 2", out)  # the equations, the exact solution
        self.assertEqual(self.node.stats()["compiles_started"], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
