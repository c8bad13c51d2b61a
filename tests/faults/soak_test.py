#!/usr/bin/python3
"""Random submits, cancels and kills (of clients and of the worker) for five minutes, or JITC_SOAK_SECONDS. After a warm-up
and at the end everybody is let finish: then memory and descriptors of daemon and worker are what they were, slots and
budget are whole, and when the daemon ends nothing is left. The seed is printed; JITC_SOAK_SEED repeats its decisions (not
their timing)."""
import json
import os
import pathlib
import random
import resource
import select
import signal
import sys
import time

from harness import Node, children

BIN = sys.argv[1]
SECONDS = float(os.environ.get("JITC_SOAK_SECONDS", 300))
SEED = int(os.environ.get("JITC_SOAK_SEED", random.SystemRandom().randrange(1 << 32)))
WARM_UP = min(60, SECONDS / 4)
MOST_CLIENTS = 12
SLOTS = 3
# What a client that was not killed may end with: done, invalid source, out of memory, crash, cancelled.
EXIT_CODES = {0, 1, 5, 8, 9}
# Resident memory at the end beside that after the warm-up: allocators keep some of the largest burst they saw.
MEMORY_TOLERANCE = 8 << 20
DESCRIPTOR_TOLERANCE = 4  # gRPC's own come and go with its pollers
PATIENCE = 120  # seconds; who is not through by then hangs


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"no VmRSS of {pid}")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Soak:
    def __init__(self, node):
        self.node = node
        self.random = random.Random(SEED)
        self.clients = {}  # pidfd to process
        self.counts = dict.fromkeys(("submits", "killed", "interrupted", "cancels", "workers killed"), 0)
        self.exit_codes = {}
        self.worker_killed = 0.0
        self.fakecc = os.path.join(BIN, "jitc-fakecc")

    # ---- what is submitted

    def source(self):
        number = self.random.randrange(40)
        return f"double f{number}(double x) {{ return x * {number}.5; }}\n"

    def order(self):
        orders = ("crash 11", "exit 3", "half", "orphan", "fork", "allocate 40M", "print 1M",
                  f"hold {self.node.scratch}/never")
        chosen = self.random.sample(orders, self.random.randrange(1, 3))
        return "".join(f"// fakecc: {order}\n" for order in chosen) + self.source()

    def submit(self):
        kind = self.random.choice(("hit", "hit", "again", "broken", "gcc", "fakecc", "fakecc", "many"))
        arguments = {"again": ["--no-cache"], "gcc": ["--cc=gcc"], "fakecc": [f"--cc={self.fakecc}"]}.get(kind, [])
        texts = {"broken": lambda: "int f(void) { return " + str(self.random.randrange(5)),
                 "fakecc": self.order}.get(kind, self.source)
        self.counts["submits"] += 1
        names = [self.node.write(f"{self.counts['submits']}-{part}.c", texts()) for part in range(6 if kind == "many" else 1)]
        process = self.node.start_jitc("submit", *arguments, *names)
        process.files, process.spared, process.began = names, True, time.monotonic()
        self.clients[os.pidfd_open(process.pid)] = process

    # ---- what happens to them

    def signal_client(self, number, name):
        if not self.clients:
            return
        process = self.random.choice(list(self.clients.values()))
        process.spared = False
        process.send_signal(number)
        self.counts[name] += 1

    def flights(self):
        done = self.node.jitc("jobs", "--json")
        assert done.returncode == 0, done.stderr
        return [job["flight"] for job in json.loads(done.stdout)["jobs"]]

    def cancel(self):
        for flight in self.random.sample(flights := self.flights(), min(1, len(flights))):
            assert self.node.jitc("cancel", flight).returncode in (0, 2)  # 2: it ended meanwhile
            self.counts["cancels"] += 1

    def worker(self):
        workers = children(self.node.daemon_pid())
        return workers[0] if workers else None

    def kill_worker(self):
        worker = self.worker()
        # Not so often that its jobs never get through.
        if worker is None or time.monotonic() - self.worker_killed < 5:
            return
        os.kill(worker, signal.SIGKILL)
        self.worker_killed = time.monotonic()
        self.counts["workers killed"] += 1

    def step(self):
        if len(self.clients) < MOST_CLIENTS:
            self.submit()
        chance = self.random.random()
        if chance < 0.10:
            self.signal_client(signal.SIGKILL, "killed")
        elif chance < 0.15:
            self.signal_client(signal.SIGINT, "interrupted")
        elif chance < 0.25 or len(self.clients) == MOST_CLIENTS:
            self.cancel()
        elif chance < 0.27:
            self.kill_worker()
        self.collect(self.random.uniform(0, 0.05))

    def collect(self, seconds):
        ready, _, _ = select.select(list(self.clients), [], [], seconds)
        for end in ready:
            process = self.clients.pop(end)
            os.close(end)
            _, errors = process.communicate(timeout=PATIENCE)
            for name in process.files:
                name.unlink()
            code = process.returncode
            self.exit_codes[code] = self.exit_codes.get(code, 0) + 1
            assert not process.spared or code in EXIT_CODES, f"exit {code}: {errors}"
        for process in self.clients.values():
            assert time.monotonic() - process.began < PATIENCE, f"hangs: {process.args}"

    # ---- rest

    def run_until(self, end):
        while time.monotonic() < end:
            self.step()
        while self.clients or self.flights():
            for flight in self.flights():
                self.node.jitc("cancel", flight)
            self.collect(0.1)

    def sample(self):
        """At rest. The worker may be on its way again, or clear away what it ended."""
        daemon = self.node.daemon_pid()
        while (worker := self.worker()) is None:
            self.node.stats()
        stats = self.node.stats()
        assert stats["running"] == 0 and stats["memory_reserved_bytes"] == 0, stats
        assert stats["running_peak"] <= SLOTS, stats
        assert stats["published"] <= stats["compiles_started"] <= stats["requests"] + stats["retries"], stats
        assert stats["worker_restarts"] == self.counts["workers killed"], (stats, self.counts)
        found = {"daemon": (resident(daemon), descriptors(daemon)), "worker": (resident(worker), descriptors(worker))}
        for name, (memory, open_files) in found.items():
            print(f"  {name}: {memory / 2**20:.1f} MiB resident, {open_files} descriptors")
        return found


def expect_flat(before, after):
    for name, (memory, open_files) in after.items():
        assert memory <= before[name][0] + MEMORY_TOLERANCE, f"{name}: {before[name]} became {after[name]}"
        assert open_files <= before[name][1] + DESCRIPTOR_TOLERANCE, f"{name}: {before[name]} became {after[name]}"


def main():
    print(f"seed {SEED}, {SECONDS:.0f} s", flush=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    settings = {"JITC_COMPILERS": os.path.join(BIN, "jitc-fakecc"), "JITC_MAX_COMPILERS": str(SLOTS), "JITC_AUTOSTART": "0",
                "JITC_GRACE": "200ms", "JITC_FAILURE_MEMORY": "1s", "JITC_MEMORY_BUDGET": "2G"}
    with Node(BIN, **settings) as node:
        assert node.jitc("daemon", "start").returncode == 0
        soak = Soak(node)
        begin = time.monotonic()
        soak.run_until(begin + WARM_UP)
        print("after the warm-up", flush=True)
        before = soak.sample()
        soak.run_until(begin + SECONDS)
        print(f"at the end; {soak.counts}, exit codes {soak.exit_codes}", flush=True)
        expect_flat(before, soak.sample())
        print({name: value for name, value in node.stats().items() if value})
        assert node.jitc("cache", "verify").returncode == 0
        assert node.jitc("daemon", "stop").returncode == 0
        assert not node.processes(), node.processes()
        temporary = [*(node.store / "v1" / "tmp").iterdir(), *(node.scratch / "tmp").iterdir()]
        assert len(temporary) <= soak.counts["workers killed"], f"more than killed workers leave: {temporary}"


if __name__ == "__main__":
    main()
