"""mpi4py's communicators under the gate, over a real daemon: one compile for all ranks, the same exception on all
ranks; and the Stokes example in Python.

usage: mpi_test.py BIN_DIRECTORY RANKS MPIRUN...
"""
import ranks
from ranks import HERE, RANKS

STOKES = HERE.parent.parent / "client/examples/python/stokes.py"


class Ranks(ranks.RanksCase):
    def scenario(self, name):
        return self.scenarios(HERE / "mpi_ranks.py", name)[name]

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
    ranks.main()
