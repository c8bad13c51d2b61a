#!/usr/bin/python3
"""Two nodes with a store on one shared file system, each with a daemon and a mount of its own that shows late what the
other did: absent names that are there, names without contents, files that are gone (ESTALE). One outcome on all ranks,
the right function, at most one compile a job, one artifact in the end. A second file system refuses locks, links and
fsync and forbids to execute: nothing of jitc needs them.

usage: lagging_store_test.py BIN_DIRECTORY LAGGING_FS SOLVER MPIRUN...
"""
import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import sys
import tempfile
import time

from fault_bench import COMPILED, FROM_DAEMON, FROM_STORE, Mount, Solver, artifacts, source
from harness import Node

BIN, LAGGING_FS, SOLVER, *MPIRUN = sys.argv[1:]


class Cluster:
    """Nodes `a` and `b`; `on_a` is a job whose root is on a and whose other rank is on b, `on_b` the reverse."""

    def __init__(self, *options, **settings):
        self._stack = contextlib.ExitStack()
        scratch = pathlib.Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="jitc-lag-")))
        backing = scratch / "backing"
        backing.mkdir(0o700)
        self.backing = backing / "store"
        self.mounts, self.nodes = [], []
        for name in "ab":
            self.mounts.append(self._stack.enter_context(Mount(LAGGING_FS, backing, scratch / name, *options)))
            store = str(self.mounts[-1].path / "store")
            self.nodes.append(self._stack.enter_context(Node(BIN, JITC_STORE=store, **settings)))
        self.a, self.b = self.nodes
        self.sight_of_a, self.sight_of_b = self.mounts

    def __enter__(self):
        for node in self.nodes:
            started = node.jitc("daemon", "start")
            assert started.returncode == 0, started.stderr
        environments = [node.settings() for node in self.nodes]
        self.on_a = self._stack.enter_context(Solver(MPIRUN, SOLVER, environments))
        self.on_b = self._stack.enter_context(Solver(MPIRUN, SOLVER, environments[::-1]))
        return self

    def __exit__(self, *details):
        self._stack.__exit__(*details)

    def look_again(self):
        for mount in self.mounts:
            mount.look_again()

    def compiles(self):
        return [node.stats()["compiles_started"] for node in self.nodes]

    def expect_one_whole_artifact(self):
        """By the truth, and by both daemons' own account."""
        verified = self.a.jitc("cache", "verify", f"--store={self.backing}")
        assert verified.returncode == 0 and "1 good" in verified.stderr, verified.stderr
        for node in self.nodes:
            assert node.stats()["publish_failures"] == 0, node.stats()
        (artifact,) = artifacts(self.backing)
        return artifact


def published_elsewhere_and_not_seen():
    with Cluster("--snapshot") as cluster:
        path, value = source(cluster.a, 1)
        cluster.on_a.expect(path, value, COMPILED)
        assert cluster.compiles() == [1, 0], cluster.compiles()
        artifact = cluster.expect_one_whole_artifact()
        first = artifact.stat()
        assert len(artifacts(cluster.sight_of_a.path / "store")) == 1
        assert not artifacts(cluster.sight_of_b.path / "store")
        cluster.on_a.expect(path, value, FROM_STORE)

        # The other node does not see it: it compiles once and finds at its publish that somebody was faster.
        cluster.on_b.expect(path, value, COMPILED)
        assert cluster.sight_of_b.counters()["hidden"] > 0, cluster.sight_of_b.counters()
        assert cluster.compiles() == [1, 1], cluster.compiles()
        second = cluster.expect_one_whole_artifact().stat()
        assert (second.st_ino, second.st_size) == (first.st_ino, first.st_size)
        cluster.on_b.expect(path, value, FROM_STORE)
        cluster.on_a.expect(path, value, FROM_STORE)
        assert cluster.compiles() == [1, 1], cluster.compiles()


def negative_entry_outlives_the_publish():
    """Of the name: the other node compiles too. Of its directory: making that for the lease shows what is in it."""
    for of_directory in (False, True):
        with Cluster() as cluster:
            path, value = source(cluster.a, 2)
            cluster.on_a.expect(path, value, COMPILED)
            artifact = cluster.expect_one_whole_artifact()
            name = artifact.relative_to(cluster.backing)
            artifact.unlink()
            if of_directory:
                artifact.parent.rmdir()
            cluster.look_again()
            assert not (cluster.sight_of_b.path / "store" / name).exists()  # now it is remembered there as absent
            cluster.on_a.expect(path, value, COMPILED)
            assert artifact.exists()
            hidden = cluster.sight_of_b.counters()["hidden"]
            cluster.on_b.expect(path, value, FROM_DAEMON if of_directory else COMPILED)
            assert cluster.sight_of_b.counters()["hidden"] > hidden
            cluster.on_b.expect(path, value, FROM_STORE)
            assert cluster.compiles() == [2, 0 if of_directory else 1], cluster.compiles()
            cluster.expect_one_whole_artifact()


def name_before_contents():
    with Cluster("--snapshot") as cluster:
        path, value = source(cluster.a, 3)
        cluster.on_a.expect(path, value, COMPILED)
        cluster.sight_of_b.look_again("names")
        (empty,) = artifacts(cluster.sight_of_b.path / "store")
        assert empty.stat().st_size == 0
        cluster.on_b.expect(path, value, COMPILED)
        assert cluster.sight_of_b.counters()["hollow"] > 0, cluster.sight_of_b.counters()
        assert cluster.compiles() == [1, 1], cluster.compiles()
        cluster.look_again()
        cluster.expect_one_whole_artifact()
        for job in (cluster.on_a, cluster.on_b):
            job.expect(path, value, FROM_STORE)
        assert cluster.compiles() == [1, 1], cluster.compiles()


def removed_or_replaced_elsewhere():
    """The open file of a name that is no more: ESTALE, and the next open tells the truth."""
    with Cluster() as cluster:
        path, value = source(cluster.a, 4)
        cluster.on_a.expect(path, value, COMPILED)
        cluster.on_b.expect(path, value, FROM_STORE)
        artifact = cluster.expect_one_whole_artifact()

        again = artifact.with_suffix(".again")
        shutil.copy2(artifact, again)
        again.rename(artifact)
        cluster.on_b.expect(path, value, FROM_STORE)
        stale = cluster.sight_of_b.counters()["stale"]
        assert stale > 0, cluster.sight_of_b.counters()
        assert cluster.compiles() == [1, 0], cluster.compiles()

        artifact.unlink()
        cluster.on_b.expect(path, value, COMPILED)
        assert cluster.sight_of_b.counters()["stale"] > stale, cluster.sight_of_b.counters()
        assert cluster.compiles() == [1, 1], cluster.compiles()
        cluster.expect_one_whole_artifact()


def want_the_same_at_once(cluster, count):
    """Two jobs on two nodes compile one text at the same time, so many times: one artifact each, and nobody fails."""
    for number in range(count):
        path, value = source(cluster.a, number)
        for job in (cluster.on_a, cluster.on_b):
            job.tell(f"compile {path}")
        told = [job.answer() for job in (cluster.on_a, cluster.on_b)]
        assert all(one["kind"] == "OK" and one["value"] == value for one in told), told
    assert len(artifacts(cluster.backing)) == count
    for node, compiles in zip(cluster.nodes, cluster.compiles()):
        stats = node.stats()
        assert compiles <= count and stats["publish_failures"] == stats["quarantined"] == 0, stats
    verified = cluster.a.jitc("cache", "verify", f"--store={cluster.backing}")
    assert verified.returncode == 0 and f"{count} good" in verified.stderr, verified.stderr


def both_publish_at_once():
    with Cluster(JITC_STORE_LEASE="0") as cluster:
        want_the_same_at_once(cluster, 20)


def absent_names_outlive_the_lease():
    """Who waited for the other and does not see what it has published compiles too; nobody waits in vain."""
    for options in ((), ("--snapshot",)):
        with Cluster(*options) as cluster:
            want_the_same_at_once(cluster, 5)
            print(f"  5 texts, compiles {cluster.compiles()}", flush=True)


def without_locks_links_and_fsync():
    with Cluster("--no-locks", "--no-link", "--no-fsync", "-o", "noexec") as cluster:
        probe = cluster.sight_of_a.path / "probe"
        with open(probe, "w", encoding="ascii") as file:
            for number, work in ((errno.ENOLCK, lambda: fcntl.flock(file, fcntl.LOCK_EX)),
                                 (errno.EINVAL, lambda: os.fsync(file.fileno())),
                                 (errno.EPERM, lambda: os.link(probe, f"{probe}.link"))):
                try:
                    work()
                    raise AssertionError(f"no error {number}")
                except OSError as error:
                    assert error.errno == number, error
        path, value = source(cluster.a, 5)
        cluster.on_a.expect(path, value, COMPILED)
        cluster.on_b.expect(path, value, FROM_STORE)
        assert cluster.compiles() == [1, 0], cluster.compiles()
        cluster.expect_one_whole_artifact()


if __name__ == "__main__":
    for scenario in (published_elsewhere_and_not_seen, negative_entry_outlives_the_publish, name_before_contents,
                     removed_or_replaced_elsewhere, both_publish_at_once, absent_names_outlive_the_lease,
                     without_locks_links_and_fsync):
        begin = time.monotonic()
        scenario()
        print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
