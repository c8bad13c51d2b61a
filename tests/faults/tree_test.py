#!/usr/bin/python3
"""A compile's whole tree ends with it: helpers in sessions of their own, children that nobody waits for. Whoever ends it:
the daemon's end by any signal, its worker's death, a cancel, the last client that goes."""
import os
import select
import signal
import sys

from harness import Node, children

BIN = sys.argv[1]
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


def wait_for_end(processes):
    """Of all with these ids."""
    for pid in processes:
        try:
            end = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([end], [], [], 60)
        os.close(end)
        assert ended, f"lives on: {pid} {processes[pid]}"


class Tree:
    """A node, and a compile that holds in a grandchild of another session beside an orphan in yet another."""

    def __init__(self, **settings):
        compiler = os.path.join(BIN, "jitc-fakecc")
        self.node = Node(BIN, JITC_COMPILERS=compiler, JITC_CC=compiler, JITC_AUTOSTART="0", JITC_TIMEOUT="2s", **settings)
        self.holds = self.node.scratch / "holds"
        os.mkfifo(self.holds)

    def __enter__(self):
        assert self.node.jitc("daemon", "start").returncode == 0
        self.daemon = self.node.daemon_pid()
        self.worker = children(self.daemon)[0]
        path = self.node.write("tree.c", f"// fakecc: orphan\n// fakecc: fork\n// fakecc: note {self.holds}\n"
                                         f"// fakecc: hold {self.node.scratch}/never\nint f(void) {{ return 1; }}\n")
        self.client = self.node.start_jitc("submit", path)
        self.wait_until_it_holds()
        self.tree = {pid: command for pid, command in self.node.processes().items() if "jitc-fakecc " in command}
        assert len(self.tree) >= 3, self.node.processes()  # the driver, its child, the orphan
        return self

    def __exit__(self, *_):
        self.client.kill()
        self.client.communicate()
        self.node.__exit__()

    def wait_until_it_holds(self):
        with open(self.holds, "rb") as fifo:
            fifo.read()


def daemon_ends():
    for number in SIGNALS:
        with Tree() as tree:
            everybody = {pid: command for pid, command in tree.node.processes().items() if pid != tree.client.pid}
            os.kill(tree.daemon, number)
            wait_for_end(everybody)
            _, errors = tree.client.communicate(timeout=60)
            assert tree.client.returncode == 3, errors
            assert not tree.node.processes(), tree.node.processes()


def worker_dies():
    with Tree() as tree:
        os.kill(tree.worker, signal.SIGKILL)
        wait_for_end(tree.tree)
        tree.wait_until_it_holds()  # it is compiled anew
        assert tree.node.stats()["worker_restarts"] == 1
        assert tree.node.daemon_pid() == tree.daemon


def expect_only_the_service(tree):
    wait_for_end(tree.tree)
    left = {pid for pid, command in tree.node.processes().items() if "jitc-fakecc " in command}
    assert not left, left
    # The daemon hears of the ends from the worker; ctest ends a slot that never comes back.
    while (stats := tree.node.stats())["running"] != 0:
        pass
    assert stats["memory_reserved_bytes"] == 0 and stats["cancelled"] == 1, stats


def cancelled():
    with Tree() as tree:
        flight = tree.node.jitc("jobs").stdout.splitlines()[1].split()[0]
        done = tree.node.jitc("cancel", flight)
        assert done.returncode == 0, done.stderr
        tree.client.communicate(timeout=60)
        assert tree.client.returncode == 9
        expect_only_the_service(tree)


def last_client_goes():
    with Tree(JITC_GRACE="100ms") as tree:
        tree.client.kill()
        expect_only_the_service(tree)


if __name__ == "__main__":
    for scenario in (daemon_ends, worker_dies, cancelled, last_client_goes):
        scenario()
        print(scenario.__name__, flush=True)
