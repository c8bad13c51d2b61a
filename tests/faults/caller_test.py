#!/usr/bin/python3
"""A daemon whose caller ignores or blocks signals, pipes its output, has open files, an odd environment, or few
descriptors or processes: none of it reaches a compiler, and it works within the limits or says which one it is."""
import os
import pathlib
import resource
import signal
import subprocess
import sys

from harness import Node

BIN = sys.argv[1]
OTHER_UID = 64321  # nobody's: what it may start is its own to count


def expect_works(node, **how):
    for compiler in ("clang", "gcc"):
        source = node.write(f"{compiler}.c", "#include <math.h>\ndouble f(double x) { return sin(x); }\n")
        os.chmod(source, 0o644)
        done = node.jitc("submit", f"--cc={compiler}", source, **how)
        assert done.returncode == 0, done.stderr


def children_are_ignored():
    with Node(BIN) as node:
        started = node.jitc("daemon", "start", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        assert started.returncode == 0, started.stderr
        expect_works(node)
        # Its worker's end is seen, too.
        assert node.jitc("daemon", "stop").returncode == 0
        assert not node.processes(), node.processes()


def output_is_a_pipe():
    with Node(BIN) as node:
        command = f"'{BIN}/jitc' daemon start 2>&1 | cat"
        done = subprocess.run(["/bin/sh", "-c", command], env=node.environment, text=True, timeout=60, stdout=subprocess.PIPE)
        assert "started, pid" in done.stdout, done.stdout


def compilers_see_nothing_of_the_caller():
    with Node(BIN, JITC_AUTOSTART="0") as node:
        seen = node.scratch / "seen"
        compiler = node.write("cc", f"""#!/bin/sh
case " $* " in
*' -shared '*)
  env > {seen}.env
  grep Sig /proc/self/status > {seen}.signals
  ls -l /proc/self/fd > {seen}.files
esac
exec gcc "$@"
""")
        compiler.chmod(0o755)
        odd = {"LD_PRELOAD": f"{node.scratch}/no-such-library.so", "LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8",
               "CPATH": str(node.scratch), "GCC_EXEC_PREFIX": "/nowhere/", "A_SECRET": "of the caller"}
        node.environment.update(odd, JITC_COMPILERS=str(compiler))
        inherited = os.open(node.write("open.txt", ""), os.O_RDONLY)

        def prepare():
            signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)

        assert node.jitc("daemon", "start", preexec_fn=prepare, pass_fds=[inherited]).returncode == 0
        os.close(inherited)
        done = node.jitc("submit", f"--cc={compiler}", node.write("f.c", "int f(void) { return 1; }\n"))
        assert done.returncode == 0, done.stderr
        environment = dict(line.split("=", 1) for line in pathlib.Path(f"{seen}.env").read_text().splitlines())
        assert environment["LC_ALL"] == "C" and not {"LD_PRELOAD", "CPATH", "GCC_EXEC_PREFIX", "A_SECRET"} & set(environment)
        files = dict(line.split(" -> ") for line in pathlib.Path(f"{seen}.files").read_text().splitlines() if " -> " in line)
        files = {int(name.split()[-1]): path for name, path in files.items()}
        others = [path for number, path in files.items() if number > 2 and not path.startswith("/proc/")]  # ls's own
        assert not others and {0, 1, 2} <= set(files), files
        masks = dict(line.split(":\t") for line in pathlib.Path(f"{seen}.signals").read_text().splitlines() if ":" in line)
        assert int(masks["SigBlk"], 16) == 0, masks
        assert not int(masks["SigIgn"], 16) >> (signal.SIGUSR1 - 1) & 1, masks


def few_descriptors():
    with Node(BIN) as node:
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))}
        assert node.jitc("daemon", "start", **few).returncode == 0
        expect_works(node, **few)


def few_processes():
    """Of a user of its own, since root has no such limit and the caller's other processes would count."""
    if os.geteuid() != 0:
        print("few_processes: skipped: needs root, to be another user")
        return
    worked = 0
    for most in (1, 4, 12, 40, 200):
        with Node(BIN) as node:
            for path in (node.scratch, *node.scratch.iterdir()):
                os.chown(path, OTHER_UID, OTHER_UID)

            def limit(most=most):
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))

            how = {"preexec_fn": limit, "user": OTHER_UID, "group": OTHER_UID, "extra_groups": []}
            started = node.jitc("daemon", "start", **how)
            if started.returncode == 0:
                source = node.write("f.c", "int f(void) { return 1; }\n")
                os.chmod(source, 0o644)
                done = node.jitc("submit", source, **how)
                assert done.returncode in (0, 3, 6, 70), (most, done.returncode, done.stderr)
                worked += done.returncode == 0
                words = done.stderr if done.returncode else ""
            else:
                words = started.stderr
            log = node.run_directory / "jitcd.log"
            words += log.read_text() if words and log.exists() else ""
            assert not words or "ulimit -u" in words, (most, words)
            print(f"few_processes: {most}: {'works' if not words else words.splitlines()[0]}")
            stopped = node.jitc("daemon", "stop", user=OTHER_UID, group=OTHER_UID, extra_groups=[])
            assert stopped.returncode == 0, stopped.stderr
            assert not node.processes(), node.processes()
    assert worked, "no number of processes was enough"


if __name__ == "__main__":
    assert pathlib.Path(BIN).is_dir()
    for scenario in (children_are_ignored, output_is_a_pipe, compilers_see_nothing_of_the_caller, few_descriptors,
                     few_processes):
        scenario()
        print(scenario.__name__, flush=True)
