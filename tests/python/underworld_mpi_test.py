"""The adapter for Underworld3 under mpirun, over a real daemon: one compile, the same module on all ranks, the same
exception on all ranks; and the ways in which a gate of barriers and files hangs or computes wrong numbers.

usage: underworld_mpi_test.py BIN_DIRECTORY RANKS MPIRUN...
"""
import ranks
from ranks import HERE, RANKS

PROGRAM = HERE / "underworld_ranks.py"
LAST = int(RANKS) - 1


class Underworld(ranks.RanksCase):
    def started(self):
        return self.node.stats()["compiles_started"]

    def test_one_compile_and_one_module(self):
        out, err = self.end_of(self.start_ranks(PROGRAM, "once", "stokes"))
        self.assertEqual(self.started(), 2)
        self.assertEqual(err.count("jitc: flags "), 1, err)  # by the first rank alone, once
        self.assertIn('"origin": "memory"', out)
        told = self.scenarios(PROGRAM, "once")["once"]  # another job
        self.assertEqual((told["first"][2], told["again"][2]), ("disk", "memory"))
        self.assertIn(told["first"][0], out)
        self.assertEqual(self.started(), 2)
        self.run_ranks(PROGRAM, "once", UW_JIT_CACHE="0")  # one compile, whatever the store has
        self.assertEqual(self.started(), 3)

    def test_failures_reach_all(self):
        names = ("broken_source", "one_rank_fails_to_lower", "one_rank_fails_to_build_its_graph",
                 "one_rank_has_a_wrong_variable", "one_rank_has_other_flags", "one_rank_has_another_text",
                 "one_rank_has_another_manifest", "one_rank_has_another_order_of_constants")
        told = self.scenarios(PROGRAM, *names, "last_rank_stays_away")
        self.assertEqual(told["broken_source"]["kind"], "CompileError")
        self.assertIn("broken.c:1:", told["broken_source"]["text"])
        for name, words in (("one_rank_fails_to_lower", "ValueError: no such rheology"),
                            ("one_rank_fails_to_build_its_graph", "besselj"),
                            ("one_rank_has_a_wrong_variable", "UW_JIT_CACHE")):
            self.assertIn(words, told[name]["text"])
            self.assertEqual(told[name]["ranks"], [LAST], name)
        for name in names[4:]:
            self.assertEqual(told[name]["kind"], "DivergentError", name)
            self.assertIn(LAST, told[name]["ranks"], name)
        for text in told["last_rank_stays_away"]["texts"]:
            self.assertRegex(text, rf"no answer from ranks? (\d+, )*{LAST}\b")

    def test_what_ranks_see_differently_hangs_nobody(self):
        told = self.scenarios(PROGRAM, "one_rank_has_forgotten", "each_rank_has_its_own_directory",
                              "ranks_differ_in_what_is_no_part_of_the_call", "halves", "communicators_by_other_names",
                              "old_cpu")
        self.assertEqual(told["one_rank_has_forgotten"]["started"], 0)
        self.assertEqual(told["each_rank_has_its_own_directory"]["value"], 1.5)
        self.assertEqual(told["communicators_by_other_names"]["origin"], "memory")
        self.assertEqual((told["old_cpu"]["flags"], told["old_cpu"]["value"]), (["-O2"], 1.5))

    def test_jobs_at_the_same_time_share_one_compile(self):
        jobs = [self.start_ranks(PROGRAM, "once") for _ in range(2)]
        for job in jobs:
            self.end_of(job)
        self.assertEqual(self.started(), 1)


if __name__ == "__main__":
    ranks.main()
