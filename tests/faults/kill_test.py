#!/usr/bin/python3
"""Daemon, worker and compile child are killed (-9) at random moments, 100 rounds: the next request works each time, and in
the end no process, socket or temporary file is left."""
import os
import random
import select
import signal
import sys

from harness import Node, children

ROUNDS = 100


def source(number, statements=400):
    body = "".join(f"  s = s * {1 + i % 7}.5 + sin(s + {number + i}.25) * u[{i % 3}];\n" for i in range(statements))
    return f"#include <math.h>\nvoid f(const double *u, double *out) {{\n  double s = u[0];\n{body}  out[0] = s;\n}}\n"


def victim(node, kind):
    """A pid of the wanted kind; None when there is none at this moment."""
    daemon = node.daemon_pid()
    if daemon is None or kind == "daemon":
        return daemon
    workers = children(daemon)
    if not workers or kind == "worker":
        return workers[0] if workers else None
    compilers = children(workers[0])
    return random.choice(compilers) if compilers else None


def kill_at_random_moment(node, kind, running, generator):
    """The moment is random, not waited for: any of them must be survived."""
    ended = os.pidfd_open(running.pid)
    select.select([ended], [], [], generator.uniform(0, 0.15))
    os.close(ended)
    pid = victim(node, kind)
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def main():
    generator = random.Random(7)
    random.seed(7)
    killed = dict.fromkeys(("daemon", "worker", "child"), 0)
    outcomes = {}
    with Node(sys.argv[1]) as node:
        assert node.jitc("daemon", "start").returncode == 0
        for number in range(ROUNDS):
            kind = generator.choice(sorted(killed))
            compiler = generator.choice(["clang", "gcc"])
            path = node.write("f.c", source(number))
            running = node.start_jitc("submit", f"--cc={compiler}", path)
            killed[kind] += kill_at_random_moment(node, kind, running, generator)
            _, errors = running.communicate(timeout=60)
            outcomes[running.returncode] = outcomes.get(running.returncode, 0) + 1
            # 0: it was done or done again; 3: the daemon was gone; 8: the child was killed under the compile.
            assert running.returncode in (0, 3, 8), f"round {number}, {kind}: exit {running.returncode}: {errors}"
            # Another request than the one that may be remembered as crashed.
            after = node.jitc("submit", node.write("next.c", source(10_000 + number, 5)))
            assert after.returncode == 0, f"round {number}, {kind} killed: exit {after.returncode}: {after.stderr}"
        assert node.jitc("cache", "verify").returncode == 0
        stop = node.jitc("daemon", "stop")
        assert stop.returncode == 0, stop.stderr
        left = node.processes()
        assert not left, f"processes left: {left}"
        sockets = [p.name for p in node.run_directory.iterdir() if p.is_socket()]
        assert not sockets, sockets
        # The next daemon clears what dead owners left.
        assert node.jitc("daemon", "start").returncode == 0
        assert node.jitc("submit", node.write("last.c", source(99_999, 5))).returncode == 0
        assert node.jitc("daemon", "stop").returncode == 0
        temporary = [str(p) for p in (node.store / "v1" / "tmp").iterdir()] + [str(p) for p in (node.scratch / "tmp").iterdir()]
        assert not temporary, f"temporary files left: {temporary}"
    assert all(killed.values()), killed
    print(f"{ROUNDS} rounds, killed {killed}, exit codes of the requests under fire {outcomes}")


if __name__ == "__main__":
    main()
