#!/usr/bin/python3
"""Four daemons, as on four nodes, over one store. First nothing goes wrong, and each key is compiled about once. Then
daemons are killed (-9) and started again, the store's file system fills up and is emptied, and the store is removed:
every request is answered with the right function or with a typed error. In the end no key is lost, the store verifies and
what the dead have left is gone.

usage: nodes_test.py BIN_DIRECTORY KEYS (JITC_NODES_KEYS comes before it; JITC_NODES_SEED repeats a run's decisions)
"""
import contextlib
import ctypes
import os
import pathlib
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import Node

BIN = sys.argv[1]
KEYS = int(os.environ.get("JITC_NODES_KEYS", sys.argv[2]))
SEED = int(os.environ.get("JITC_NODES_SEED", random.SystemRandom().randrange(1 << 32)))
NODES = 4
CLIENTS = 6       # at once, of all nodes
PATIENCE = 120    # seconds; who is not through by then hangs
ROOM = 48 << 20   # of the store's file system
# Of all keys while nothing goes wrong: one each. A machine that is short of processors for a second costs a few more.
MOST_COMPILES = KEYS + KEYS // 10 + 4
KILLS = (0.1, 0.2, 0.5, 0.8, 0.9)  # after these parts of the requests
# No daemon, or draining; timed out; the store did not keep it; its compiler was killed with the daemon; cancelled.
TYPED_ERRORS = {3, 6, 7, 8, 9}


class SharedStore:
    """A directory for stores, on a small file system of its own where that can be had."""

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="jitc-nodes-")
        self.place = pathlib.Path(self._scratch.name)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=0700", "jitc-nodes", str(self.place)]
        self.is_small = subprocess.run(mount, check=False, capture_output=True).returncode == 0
        self.store = self.place / "store"
        return self

    def __exit__(self, *_):
        if self.is_small:
            subprocess.run(["umount", "--lazy", str(self.place)], check=True)
        self._scratch.cleanup()

    def fill(self):
        with contextlib.suppress(OSError), open(self.place / "ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1 << 16))

    def empty(self):
        with contextlib.suppress(FileNotFoundError):
            (self.place / "ballast").unlink()


class Request:
    """One client that wants one function of one node, as a file of its own."""

    def __init__(self, node, number):
        self.node, self.number = node, number
        self.source = node.write(f"f{number}.c", f"double f(double x) {{ return x * {number}.5; }}\n")
        self.output = node.scratch / f"f{number}.so"
        self.process = node.start_jitc("submit", "-o", self.output, self.source)
        self.end = os.pidfd_open(self.process.pid)

    def answer(self):
        """The exit code, of one who has ended. What he has got is right."""
        os.close(self.end)
        _, errors = self.process.communicate()
        code = self.process.returncode
        if code == 0:
            function = ctypes.CDLL(str(self.output)).f
            function.argtypes, function.restype = (ctypes.c_double,), ctypes.c_double
            assert function(2.0) == 2 * self.number + 1, (self.number, function(2.0))
            self.output.unlink()
        else:
            assert code in TYPED_ERRORS, f"exit {code}: {errors}"
        return code


def ask(requests, happenings=()):
    """All of `requests` (node, number), in order; each of `happenings` (a count of answers, what to do) in between. The
    numbers of answers by exit code."""
    waiting, running, codes, answered = list(reversed(requests)), {}, {}, 0
    happenings = sorted(happenings, key=lambda one: one[0])
    while waiting or running:
        while waiting and len(running) < CLIENTS:
            request = Request(*waiting.pop())
            running[request.end] = request
        ready, _, _ = select.select(list(running), [], [], PATIENCE)
        assert ready, "hangs: " + ", ".join(map(str, (request.process.args for request in running.values())))
        for end in ready:
            code = running.pop(end).answer()
            codes[code] = codes.get(code, 0) + 1
            answered += 1
        while happenings and happenings[0][0] <= answered:
            happenings.pop(0)[1]()
    return codes


def start(node):
    started = node.jitc("daemon", "start")
    assert started.returncode == 0, started.stderr


def kill(node):
    pid = node.daemon_pid()
    end = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([end], [], [], PATIENCE)
    os.close(end)
    start(node)


def in_turn(nodes, numbers):
    """Every node wants every number, all about the same at the same time."""
    return [(node, number) for number in numbers for node in nodes]


def quiet(nodes):
    numbers = range(KEYS)
    codes = ask(in_turn(nodes, numbers))
    assert set(codes) == {0}, codes
    stats = [node.stats() for node in nodes]
    compiles, elsewhere = (sum(one[name] for one in stats) for name in ("compiles_started", "elsewhere"))
    print(f"quiet: {KEYS} keys, {NODES * KEYS} requests, {compiles} compiles, {compiles / KEYS:.3f} for each key; "
          f"{elsewhere} waited for another node", flush=True)
    assert KEYS <= compiles <= MOST_COMPILES, stats
    assert sum(one["published"] for one in stats) == KEYS, stats


def wild(nodes, shared, generator):
    numbers = [KEYS + number for number in range(KEYS)]
    generator.shuffle(numbers)
    requests = in_turn(nodes, numbers)
    happenings = [(int(len(requests) * part), lambda: kill(generator.choice(nodes))) for part in KILLS]
    if shared.is_small:
        happenings += [(int(len(requests) * 0.3), shared.fill), (int(len(requests) * 0.45), shared.empty)]
    else:
        print("the store's file system does not fill up: mounting one needs rights", flush=True)
    happenings.append((int(len(requests) * 0.65), lambda: shutil.rmtree(shared.store, ignore_errors=True)))
    codes = ask(requests, happenings)
    print(f"wild: {len(requests)} requests, answers by exit code {codes}", flush=True)
    # A killed daemon fails those who ask it just then, and is started again before anybody else asks: nobody else fails.
    failed = sum(count for code, count in codes.items() if code != 0)
    assert failed <= len(KILLS) * CLIENTS, codes


def recovered(nodes, shared):
    codes = ask(in_turn(nodes[:1], range(2 * KEYS)))
    assert set(codes) == {0}, codes
    verified = nodes[0].jitc("cache", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    for node in nodes:
        assert node.jitc("daemon", "stop").returncode == 0
    # The next one removes what dead ones have left, soon after it serves.
    start(nodes[0])
    end = time.monotonic() + PATIENCE
    while left := [*shared.store.glob("v1/tmp/*"), *shared.store.glob("v1/??/*.lease")]:
        assert time.monotonic() < end, f"nobody removes {left}"
        nodes[0].stats()


def main():
    print(f"seed {SEED}", flush=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with SharedStore() as shared, contextlib.ExitStack() as stack:
        settings = {"JITC_STORE": str(shared.store), "JITC_AUTOSTART": "0", "JITC_MAX_COMPILERS": "2"}
        nodes = [stack.enter_context(Node(BIN, **settings)) for _ in range(NODES)]
        for node in nodes:
            start(node)
        quiet(nodes)
        wild(nodes, shared, random.Random(SEED))
        recovered(nodes, shared)


if __name__ == "__main__":
    main()
