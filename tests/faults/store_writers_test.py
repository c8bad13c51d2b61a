#!/usr/bin/python3
"""Daemons that know nothing of each other on one store: two that clean it at once, as two nodes do, and two with the same
process id in two pid namespaces, whose temporary files stay behind. What needs rights that are not there is skipped, and
says so.

usage: store_writers_test.py BIN_DIRECTORY SHIM
"""
import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from fault_bench import Hold, Shim, skip, temporaries
from harness import Node, children

BIN, SHIM = sys.argv[1:]
PATIENCE = 100


def may_unshare(*namespaces):
    return subprocess.run(["unshare", *namespaces, "true"], check=False, capture_output=True).returncode == 0


class Daemon:
    """A jitcd in namespaces of its own."""

    def __init__(self, node, namespaces, further=None):
        self._ready, its_end = os.pipe()
        self._is_forked = "--fork" in namespaces
        self._process = subprocess.Popen(
            ["unshare", *namespaces, str(node.bin / "jitcd"), "--foreground", "--ready-fd", str(its_end)],
            env={**node.environment, **(further or {})}, pass_fds=[its_end], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(its_end)
        self.node = node

    def __enter__(self):
        """When it serves."""
        woken, _, _ = select.select([self._ready], [], [], PATIENCE)
        assert woken and os.read(self._ready, 1), "jitcd does not come up"
        os.close(self._ready)
        return self

    def __exit__(self, *_):
        # By its id out here; its own is in its files.
        os.kill(children(self._process.pid)[0] if self._is_forked else self._process.pid, signal.SIGTERM)
        self._process.wait(PATIENCE)


def cleaners_at_once():
    """Each entry is removed once, and none that need not go."""
    size, count, limit = 4 << 10, 1000, 3 << 20
    left = int(0.9 * limit) // size
    # One cleaner at a time on a node is a matter of its network namespace.
    namespaces = ("--net",)
    if not may_unshare(*namespaces):
        return print("two cleaners: skipped, a network namespace needs rights", flush=True)
    with tempfile.TemporaryDirectory(prefix="jitc-writers-") as scratch, contextlib.ExitStack() as stack:
        store = pathlib.Path(scratch) / "store"
        store.mkdir(mode=0o700)
        nodes = [stack.enter_context(Node(BIN, JITC_STORE=str(store), JITC_STORE_MAX=str(limit))) for _ in range(2)]
        for number in range(count):
            entry = store / "v1" / f"{number % 256:02x}" / f"{number:064x}.so"
            entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            entry.write_bytes(bytes(size))
            used = time.time() - 7200 - 60 * (count - number)
            os.utime(entry, (used, used))
        # Both stand at the first thing that a cleaner does.
        hold, shim = Hold(scratch), Shim(SHIM, scratch, "daemons")
        shim.set(f"hold list {store}/v1/tmp {hold.path}")
        for daemon in [Daemon(node, namespaces, shim.environment()) for node in nodes]:
            stack.enter_context(daemon)
        held = []
        while len(held) < len(nodes):
            held += shim.wait_for_a_line()
        evicted = []
        while sum(evicted) < count - left:
            with contextlib.suppress(OSError):  # nobody stands there any more
                os.close(os.open(hold.path, os.O_WRONLY | os.O_NONBLOCK))
            evicted = [node.stats()["evicted"] for node in nodes]
        kept = sorted(int(path.stem, 16) for path in store.glob("v1/??/*.so"))
        assert sum(evicted) == count - left, evicted
        assert kept == list(range(count - left, count)), kept
        print(f"two cleaners: {evicted} evicted, {len(kept)} kept", flush=True)


def one_pid_on_two_nodes():
    """Their temporary files have different names, and neither takes the other's for those of a dead one."""
    namespaces = ("--pid", "--fork", "--mount-proc", "--kill-child")
    if not may_unshare(*namespaces):
        return print("one pid on two nodes: skipped, a pid namespace needs rights", flush=True)
    with tempfile.TemporaryDirectory(prefix="jitc-writers-") as scratch, contextlib.ExitStack() as stack:
        store = pathlib.Path(scratch) / "store"
        nodes = [stack.enter_context(Node(BIN, JITC_STORE=str(store), JITC_AUTOSTART="0")) for _ in range(3)]
        shim = Shim(SHIM, scratch, "daemons")
        shim.set(f"fail unlink {store}/v1/tmp/* EBUSY")
        daemons = [Daemon(node, namespaces, shim.environment()) for node in nodes[:2]]
        first, second = (stack.enter_context(daemon) for daemon in daemons)
        sources = [nodes[0].write(f"f{number}.c", f"double f{number};\n") for number in range(10)]
        clients = [daemon.node.start_jitc("submit", *sources) for daemon in (first, second)]
        for client in clients:
            output, errors = client.communicate(timeout=PATIENCE)
            assert client.returncode == 0, errors
            assert len(output.splitlines()) == len(sources), output
        names = [path.name.split(".") for path in temporaries(store)]
        assert {name[-3] for name in names} == {"1"}, names
        makers = {name[-4] for name in names}
        assert len(names) >= len(sources), names
        print(f"one pid on two nodes: {len(names)} temporary files of {len(makers)} daemons", flush=True)
        # A third daemon cleans as it comes up; who made these is not for it to say.
        third = nodes[2]
        assert third.jitc("daemon", "start").returncode == 0
        assert third.jitc("submit", third.write("g.c", "double g;\n")).returncode == 0
        assert third.jitc("daemon", "stop").returncode == 0
        assert {path.name for path in temporaries(store)} >= {".".join(name) for name in names}
        verified = third.jitc("cache", "verify")
        assert verified.returncode == 0, verified.stdout


def main():
    if shutil.which("unshare") is None:
        skip("there is no unshare")
    cleaners_at_once()
    one_pid_on_two_nodes()


if __name__ == "__main__":
    main()
