#!/usr/bin/python3
"""A store that fails: every operation of look-up and publish, in the daemon and on rank 0, with each of the errors that
shared file systems give. The solver gets the right function all the same, the store never shows half an artifact and is
left clean, and ranks other than the root never touch it.

usage: store_faults_test.py BIN_DIRECTORY SHIM SOLVER MPIRUN...
"""
import contextlib
import sys
import time

from fault_bench import COMPILED, FROM_DAEMON, FROM_STORE, Hold, Shim, Solver, artifacts, source, temporaries
from harness import Node

BIN, SHIM, SOLVER, *MPIRUN = sys.argv[1:]
ERRORS = ("ENOENT", "ESTALE", "EBUSY", "ENOSPC", "EIO")
TEMPORARY, FINAL = "v1/tmp/*", "v1/??/*"
ONCE, ALWAYS = "call 1", "from 1"


class Bench:
    """A daemon under the shim, and a job of two ranks whose root is under a shim of its own."""

    def __init__(self, ranks=2, daemon=None, **settings):
        self._stack = contextlib.ExitStack()
        self.node = self._stack.enter_context(Node(BIN))
        self.daemon = Shim(SHIM, self.node.scratch, "daemon")
        self.ranks = Shim(SHIM, self.node.scratch, "ranks")
        started = self.node.jitc("daemon", "start", further={**self.daemon.environment(), **(daemon or {})})
        assert started.returncode == 0, started.stderr
        self.environments = [{**self.node.settings(), **self.ranks.environment(), **settings}] * ranks

    def __enter__(self):
        self.solver = self._stack.enter_context(Solver(MPIRUN, SOLVER, self.environments))
        return self

    def __exit__(self, *details):
        self._stack.__exit__(*details)

    def rule(self, effect, operations, place, *rest):
        """Of a place in the store."""
        return " ".join((effect, operations, f"{self.node.store}/{place}", *rest))

    def expect_clean(self, what, temporary=0):
        verified = self.node.jitc("cache", "verify")
        assert verified.returncode == 0, (what, verified.stdout, verified.stderr)
        assert len(temporaries(self.node.store)) == temporary, (what, temporaries(self.node.store))


# What the daemon does to publish: the operation that fails, where, and the rules that lead it there.
PUBLISHING = [("open", TEMPORARY, ()), ("write", TEMPORARY, ()), ("chmod", TEMPORARY, ()), ("close", TEMPORARY, ()),
              ("stat", TEMPORARY, ()), ("link", TEMPORARY, ()), ("unlink", TEMPORARY, ()),
              ("mkdir", "v1/??", (("fail", "link", TEMPORARY, "ENOENT", "call 1"),)),
              ("rename", TEMPORARY, (("fail", "link", TEMPORARY, "EPERM"),)),
              ("read", FINAL, ()), ("stat", FINAL, ()), ("touch", FINAL, ())]


def daemon_publishes_under_faults():
    """One compile each, right on all ranks, and kept or not, but whole."""
    with Bench() as bench:
        cases = 0
        for operation, place, lead in PUBLISHING:
            # Not made at all a close would leave the descriptor.
            after = ("after",) if operation == "close" else ()
            for error in ERRORS:
                for when in (ONCE, ALWAYS):
                    what = f"{operation} {place} {error} {when}"
                    path, value = source(bench.node, cases)
                    bench.daemon.set(*(bench.rule(*rule) for rule in lead),
                                     bench.rule("fail", operation, place, error, when, *after))
                    bench.solver.expect(path, value, COMPILED)
                    faults = [line for line in bench.daemon.faults()
                              if line["operation"] == operation and line["effect"] == error]
                    assert faults and all(line["program"] == "jitcd" for line in faults), (what, faults)
                    left = temporaries(bench.node.store)
                    assert len(left) == (operation == "unlink"), (what, left)
                    for path in left:
                        path.unlink()
                    cases += 1
        bench.daemon.set()
        bench.expect_clean("the matrix")
        stats = bench.node.stats()
        assert stats["compiles_started"] == cases, stats
        kept = len(artifacts(bench.node.store))
        # Some are kept, and answered with their bytes all the same: they could not be read back.
        assert stats["published"] == kept >= cases / 3 and kept + stats["publish_failures"] >= cases, (kept, stats)
        print(f"  {cases} faults: {kept} kept, {stats['publish_failures']} answered with their bytes")


def daemon_syncs_under_faults():
    """After the reply: nobody waits for it, and the artifact stands."""
    with Bench() as bench:
        for number, error in enumerate(ERRORS):
            path, value = source(bench.node, number)
            bench.daemon.set(bench.rule("fail", "fsync", "v1*", error))
            bench.solver.expect(path, value, COMPILED)
            assert bench.daemon.wait_for_a_line()[0]["operation"] == "fsync"
            bench.solver.expect(path, value, FROM_STORE)
        bench.expect_clean("fsync")


def daemon_looks_up_under_faults():
    """The root cannot read, so that the daemon does: a hit where a second look succeeds, else one compile; what stands
    in the store is whole and stays."""
    with Bench() as bench:
        path, value = source(bench.node, 0)
        settled, moved = bench.rule("watch", "fsync", "v1"), bench.rule("watch", "rename", "*")
        bench.daemon.set(settled)
        bench.solver.expect(path, value, COMPILED)
        bench.daemon.wait_for_a_line()
        (artifact,) = artifacts(bench.node.store)
        whole = artifact.read_bytes()
        bench.ranks.set(bench.rule("fail", "open", FINAL, "EIO", "rank 0"))
        for operation in ("open", "stat", "read"):
            for error in ERRORS:
                for when in (ONCE, ALWAYS):
                    what = f"{operation} {error} {when}"
                    bench.daemon.set(bench.rule("fail", operation, FINAL, error, when), settled, moved)
                    told = bench.solver.expect(path, value, COMPILED, FROM_DAEMON)
                    lines = bench.daemon.told()
                    if told["origin"] == COMPILED and when == ONCE:
                        lines += wait_for_sync(bench.daemon, lines)
                    seen = {line["operation"] for line in lines}
                    assert operation in seen and "rename" not in seen, (what, lines)
                    assert told["origin"] == FROM_DAEMON or when == ALWAYS or operation == "open", (what, told)
                    assert artifact.read_bytes() == whole, what
        bench.expect_clean("look-ups")


def wait_for_sync(shim, lines=()):
    """The last thing that a publish does, after its reply. `lines`: what the shim told since; more is returned."""
    more = []
    while not any(line["operation"] == "fsync" for line in [*lines, *more]):
        more += shim.wait_for_a_line()
    return more


def root_looks_up_under_faults():
    """What rank 0 cannot read the daemon gives it: never a second compile."""
    with Bench() as bench:
        path, value = source(bench.node, 0)
        bench.solver.expect(path, value, COMPILED)
        for operation in ("open", "stat", "read", "touch"):
            for error in ERRORS:
                for when in (ONCE, ALWAYS):
                    bench.ranks.set(bench.rule("fail", operation, FINAL, error, "rank 0", when))
                    told = bench.solver.expect(path, value, FROM_STORE, FROM_DAEMON)
                    assert bench.ranks.faults(), (operation, error, when)
                    is_hit = operation == "touch" or (when == ONCE and (operation != "open" or error == "ESTALE"))
                    assert told["origin"] == (FROM_STORE if is_hit else FROM_DAEMON), (operation, error, when, told)
        stats = bench.node.stats()
        assert stats["compiles_started"] == 1 and stats["quarantined"] == 0, stats
        bench.expect_clean("the root's look-ups")


def other_ranks_never_touch_the_store():
    """Every operation of theirs in it would fail, and none is made."""
    with Bench(ranks=4) as bench:
        for number in range(3):
            path, value = source(bench.node, number)
            bench.ranks.set(*(f"fail all {bench.node.store}* EIO rank {rank}" for rank in (1, 2, 3)),
                            bench.rule("watch", "open", FINAL, "rank 0"), "watch stat /mark/begin")
            bench.solver.expect(path, value, COMPILED)
            bench.solver.expect(path, value, FROM_STORE)
            told = bench.ranks.told()
            begun = [line for line in told if line["path"] == "/mark/begin"]
            assert {line["rank"] for line in begun} == set("0123"), told  # the shim is in all of them
            touched = [line for line in told if line not in begun]
            assert touched and all(line["rank"] == "0" for line in touched), touched
        assert bench.node.stats()["compiles_started"] == 3, bench.node.stats()


def short_reads():
    """Bytes that come in pieces are put together; a file that ends too soon is found out and read or built again."""
    with Bench() as bench:
        path, value = source(bench.node, 0)
        bench.daemon.set(bench.rule("watch", "fsync", "v1"))
        bench.solver.expect(path, value, COMPILED)
        wait_for_sync(bench.daemon)
        bench.ranks.set(bench.rule("short", "read", FINAL, "1000", "rank 0"))
        bench.solver.expect(path, value, FROM_STORE)
        assert len(bench.ranks.faults()) > 2
        for cut in ("0", "10", "1000"):
            end = (bench.rule("short", "read", FINAL, cut, "call 1"), bench.rule("short", "read", FINAL, "0"))
            bench.ranks.set(*(f"{rule} rank 0" for rule in end))
            bench.solver.expect(path, value, FROM_DAEMON)
            assert bench.ranks.faults()
            bench.ranks.set(bench.rule("fail", "open", FINAL, "EIO", "rank 0"))
            # For the daemon's look-up only: three tries where there are no bytes at all.
            bench.daemon.set(bench.rule("short", "read", FINAL, cut, "call 1"),
                             *(bench.rule("short", "read", FINAL, "0", f"call {call}") for call in (2, 3)))
            bench.solver.expect(path, value, COMPILED, FROM_DAEMON)
            assert bench.daemon.faults()
        bench.expect_clean("short reads")


def reported_as_failed_though_done():
    """A link that was carried out is a publish, whatever it reported."""
    with Bench() as bench:
        for shard in range(256):  # else the first link fails truly
            (bench.node.store / "v1" / f"{shard:02x}").mkdir()
        for number, error in enumerate(ERRORS):
            path, value = source(bench.node, number)
            bench.daemon.set(bench.rule("fail", "link", TEMPORARY, error, "after"))
            bench.solver.expect(path, value, COMPILED)
            assert bench.daemon.faults()
            bench.solver.expect(path, value, FROM_STORE)
        stats = bench.node.stats()
        assert stats["publish_failures"] == 0 and len(artifacts(bench.node.store)) == len(ERRORS), stats
        bench.expect_clean("links")


def store_wiped_meanwhile():
    """Removed and emptied while requests come in: each is answered, and who holds a module keeps it."""
    with Bench() as bench:
        compiled = 0
        for number in range(50):
            path, value = source(bench.node, number % 10)
            if number % 3 == 2:
                # By its very name, since an artifact may come into being while the directory is removed.
                bench.node.store.rename(bench.node.scratch / f"wiped{number}")
            compiled += bench.solver.expect(path, value, COMPILED, FROM_STORE)["origin"] == COMPILED
            if number % 3 == 1:
                bench.solver.expect(path, value, FROM_STORE)
        stats = bench.node.stats()
        assert stats["compiles_started"] == compiled and stats["publish_failures"] == 0, (compiled, stats)
        bench.expect_clean("a wiped store")


def hung_store_of_the_root():
    """All ranks end at the deadline with the reason; others work meanwhile, and this job when the store is back."""
    with Bench(JITC_TIMEOUT="5s") as bench:
        path, value = source(bench.node, 0)
        hold = Hold(bench.node.scratch)
        bench.solver.expect(path, value, COMPILED)
        bench.ranks.set(bench.rule("hold", "open", FINAL, str(hold.path), "rank 0", "call 1"))
        told = bench.solver.compile(path)
        assert told["kind"] == "TIMED_OUT" and not told["broken"], told
        assert "the store does not answer" in told["error"]["message"], told
        other = bench.node.jitc("submit", source(bench.node, 1)[0])
        assert other.returncode == 0, other.stderr
        hold.release()
        bench.solver.expect(path, value, FROM_STORE)


def hung_store_of_the_daemon():
    """In a look-up and in a publish: the waiters hear why within the daemon's patience, and all works afterwards."""
    with Bench(daemon={"JITC_TIMEOUT": "2s"}) as bench:
        for number, (operation, place) in enumerate((("open", FINAL), ("link", TEMPORARY))):
            path, value = source(bench.node, number)
            hold = Hold(bench.node.scratch, operation)
            bench.daemon.set(bench.rule("hold", operation, place, str(hold.path), "call 1"))
            told = bench.solver.compile(path)
            assert told["kind"] == "TIMED_OUT" and not told["broken"], told
            assert "the daemon waits for the store, which does not answer" in told["error"]["message"], told
            hold.release()
            bench.solver.expect(path, value, COMPILED, FROM_STORE, FROM_DAEMON)
        bench.expect_clean("a hung store")


SCENARIOS = (daemon_publishes_under_faults, daemon_syncs_under_faults, daemon_looks_up_under_faults,
             root_looks_up_under_faults, other_ranks_never_touch_the_store, short_reads, reported_as_failed_though_done,
             store_wiped_meanwhile, hung_store_of_the_root, hung_store_of_the_daemon)

if __name__ == "__main__":
    for scenario in SCENARIOS:
        begin = time.monotonic()
        scenario()
        print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
