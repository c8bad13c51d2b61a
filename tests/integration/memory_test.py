#!/usr/bin/python3
"""Compiles that together need more memory than there is: none is killed, each that fits ends well. Beside it what plain
compilers do with the same memory. Figures are printed."""
import argparse
import atexit
import gzip
import json
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "faults"))
from harness import Node  # noqa: E402

SOURCE = TESTS / "data/corpus/level_sets_4/tree.c.gz"
VARIANTS = 6
BUDGET = 400 << 20
SLACK = 1.05
OUT_OF_MEMORY = 5  # exit code


def variants():
    text = gzip.decompress(SOURCE.read_bytes()).decode()
    return [f"/* variant {number} */\n{text}" for number in range(VARIANTS)]


def submit_all(node, arguments, sources):
    """Submits at once; the answers in order."""
    running = [node.start_jitc("submit", "--json", *arguments, source) for source in sources]
    answers = []
    for process in running:
        out, errors = process.communicate(timeout=500)
        assert out, errors
        answers.append((process.returncode, json.loads(out)))
    return answers


def check_variants(node, around):
    around.begin()
    files = [node.write(f"variant{number}.c", text) for number, text in enumerate(variants())]
    answers = submit_all(node, ["--cc=gcc", "--flag=-O0", "--share=0"], files)
    stats = node.stats()
    print(f"jitc: {VARIANTS} variants, exit codes {[code for code, _ in answers]}, at once {stats['running_peak']}, "
          f"peak {stats['memory_peak_bytes'] >> 20} MiB of {BUDGET >> 20} MiB, retries {stats['retries']}")
    for code, answer in answers:
        assert code == 0, answer
    assert stats["running_peak"] == 1, stats
    assert stats["memory_peak_bytes"] <= SLACK * BUDGET, stats
    # Samples miss what is short; the kernel does not.
    peak = around.peak()
    print("the kernel's figure:", "not to be had" if peak is None else f"{peak >> 20} MiB")
    assert peak is None or peak <= SLACK * BUDGET, peak
    assert stats["compiles_started"] == VARIANTS and stats["retries"] == 0 and stats["out_of_memory"] == 0, stats


def check_surprises(node, compiler, around):
    """Small sources whose compiler takes more than the 199 MiB that they are given at first, or more than there is."""
    def source(name, megabytes):
        return node.write(name, f"// fakecc: fork\n// fakecc: allocate {megabytes}M\nint {name[:-2]}(void) {{ return 1; }}\n")

    before = node.stats()
    # First, and by itself: from a peak the daemon learns for the next ones.
    (code, answer), = submit_all(node, [f"--cc={compiler}"], [source("more.c", 228)])
    assert code == 0, answer
    assert node.stats()["retries"] - before["retries"] == 1, node.stats()
    around.begin()
    beyond, *others = submit_all(node, [f"--cc={compiler}"], [
        source("beyond.c", 600), source("one.c", 1), source("two.c", 1), source("three.c", 1)])
    stats = node.stats()
    for code, answer in others:
        assert code == 0, answer
    assert beyond[0] == OUT_OF_MEMORY, beyond
    error = beyond[1]["error"]
    assert error["tries"] == 2 and 0 < error["budget_bytes"] <= BUDGET <= SLACK * error["needed_bytes"], error
    assert stats["out_of_memory"] - before["out_of_memory"] == 1, stats
    # The daemon's figure has pages in it that compiles share with each other: here, where the limit is met, too many.
    peak = around.peak()
    assert peak is None or peak <= SLACK * BUDGET or node.environment["JITC_CGROUP"] == "0", peak
    assert stats["running"] == 0 and stats["memory_reserved_bytes"] == 0, stats
    print(f"surprises: 228 MiB ended well, 600 MiB is {error['kind']}: {error['message']}")


def own_memory_group():
    """The directory of this process's group of version 1; None: there is no such hierarchy."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        directory = pathlib.Path("/sys/fs/cgroup/memory" + path)
        if "memory" in controllers.split(",") and directory.is_dir():
            return directory
    return None


class EnclosingGroup:
    """A group without a limit around what is started inside `with`: the kernel counts what that held at most. None of it
    where there is no version 1 to write to."""

    def __init__(self):
        self.home = own_memory_group()
        self.path = self.home and self.home / f"jitc-around-{os.getpid()}"
        try:
            if self.path:
                self.path.mkdir()
        except OSError:
            self.path = None

    def __enter__(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_):
        if self.path:
            (self.home / "cgroup.procs").write_text(str(os.getpid()))

    def _number(self, name):
        return int((self.path / name).read_text())

    def _files(self):
        stat = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        return int(stat["total_inactive_file"]) + int(stat["total_active_file"])

    def begin(self):
        """From here on; what is held now (the daemon, its worker and spares) is not the compiles'."""
        if self.path:
            self.base = self._number("memory.usage_in_bytes") - self._files()
            (self.path / "memory.max_usage_in_bytes").write_text("0")

    def peak(self):
        """Beyond that, without pages of files; nothing: not known."""
        return self.path and self._number("memory.max_usage_in_bytes") - self._files() - self.base

    def remove(self):
        if self.path:
            self.path.rmdir()


def plain_compilers(scratch):
    """Six plain gcc in a group with the same memory: how many of them failed, how many processes the kernel killed."""
    parent = own_memory_group()
    if parent is None:
        return "no memory controller of version 1 here"
    group = parent / f"jitc-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        return str(error)
    try:
        (group / "memory.limit_in_bytes").write_text(str(BUDGET))
        swap = group / "memory.memsw.limit_in_bytes"
        if swap.exists():
            swap.write_text(str(BUDGET))
        running = []
        for number, text in enumerate(variants()):
            source = scratch / f"plain{number}.c"
            source.write_text(text)
            command = ["gcc", "-O0", "-std=gnu11", "-fPIC", "-shared", "-o", f"{source}.so", str(source), "-lm"]
            running.append(subprocess.Popen(["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command],
                                            stderr=subprocess.DEVNULL))
        failed = sum(process.wait(timeout=500) != 0 for process in running)
        events = dict(line.split() for line in (group / "memory.oom_control").read_text().splitlines())
        return failed, int(events["oom_kill"])
    finally:
        group.rmdir()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cgroup", choices=["auto", "0"], required=True)
    options = parser.parse_args()
    compiler = (pathlib.Path(options.bin) / "jitc-fakecc").resolve()
    with Node(options.bin, JITC_MEMORY_BUDGET=str(BUDGET), JITC_MAX_COMPILERS="4", JITC_CGROUP=options.cgroup,
              JITC_COMPILERS=str(compiler)) as node:
        around = EnclosingGroup()
        atexit.register(around.remove)  # when the daemon has ended, whatever the test found
        with around:
            assert node.jitc("daemon", "start").returncode == 0
        limits = next((line for line in node.jitc("status").stdout.splitlines() if line.startswith("limits")), "")
        print(limits)
        if options.cgroup == "auto" and "control groups" not in limits:
            print("SKIPPED: no control group can be made here")
            return 77
        check_variants(node, around)
        check_surprises(node, compiler, around)
        plain = plain_compilers(node.scratch)
    if isinstance(plain, str):
        print(f"plain gcc: not tried: {plain}")
    else:
        failed, killed = plain
        print(f"plain gcc: {failed} of {VARIANTS} failed, the kernel killed {killed} processes")
        assert failed > 0 and killed > 0, plain
    return 0


if __name__ == "__main__":
    sys.exit(main())
