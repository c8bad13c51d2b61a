#!/usr/bin/python3
"""Daemon, worker and compile child are killed (-9) at random moments, 100 rounds: the next request works each time, and in
the end no process, control group, socket or temporary file is left. Then the same with compilers whose processes escape
into sessions of their own, and with SIGTERM."""
import os
import pathlib
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


def groups_of(makers):
    """Control groups made by processes with these ids: the id is in the name."""
    found = []
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = "/sys/fs/cgroup/" + controllers if controllers in ("memory", "pids") else "/sys/fs/cgroup"
        found += [group for group in pathlib.Path(mount + path).glob("jitc-*.*.*.*") if int(group.name.split(".")[-3]) in makers]
    return found


def tree(pid):
    """Everything that descends from the process."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def wait_gone(pids):
    """The processes have ended, each within ten seconds."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([handle], [], [], 10)[0], f"process {pid} does not end"
        os.close(handle)


def check_escapees(bin_directory, kind, number):
    """A compiler whose processes are in other sessions and double-forked, when `kind` gets the signal."""
    compiler = pathlib.Path(bin_directory).resolve() / "jitc-fakecc"
    with Node(bin_directory, JITC_COMPILERS=str(compiler)) as node:
        assert node.jitc("daemon", "start").returncode == 0
        reached = node.scratch / "reached"
        os.mkfifo(reached)
        path = node.write("f.c", f"// fakecc: orphan\n// fakecc: fork\n// fakecc: note {reached}\n// fakecc: hold /never\nint x;\n")
        running = node.start_jitc("submit", f"--cc={compiler}", path)
        reached.read_bytes()  # until the compiler writes
        daemon = node.daemon_pid()
        workers = children(daemon)
        processes = tree(daemon)
        assert len(processes) >= 5, node.processes()  # worker, supervisor, compiler, its child, the orphan
        os.kill(workers[0] if kind == "worker" else daemon, number)
        if kind == "worker":
            # It is started again once, and so is the compile.
            reached.read_bytes()
        else:
            # Else it would have another daemon do it.
            running.terminate()
        wait_gone(processes)
        workers += children(daemon)
        node.jitc("daemon", "stop")
        running.communicate(timeout=60)
        wait_gone(node.processes())
        assert not groups_of(workers), groups_of(workers)


def main():
    for kind, number in (("daemon", signal.SIGTERM), ("daemon", signal.SIGKILL), ("worker", signal.SIGKILL)):
        check_escapees(sys.argv[1], kind, number)
    generator = random.Random(7)
    random.seed(7)
    killed = dict.fromkeys(("daemon", "worker", "child"), 0)
    outcomes = {}
    workers = set()
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
            # 0: it was done or done again, by another daemon too; 8: the child was killed under each try.
            assert running.returncode in (0, 8), f"round {number}, {kind}: exit {running.returncode}: {errors}"
            # Another request than the one that may be remembered as crashed.
            after = node.jitc("submit", node.write("next.c", source(10_000 + number, 5)))
            workers.update(children(node.daemon_pid()))
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
        assert not groups_of(workers), groups_of(workers)
        temporary = [str(p) for p in (node.store / "v1" / "tmp").iterdir()] + [str(p) for p in (node.scratch / "tmp").iterdir()]
        assert not temporary, f"temporary files left: {temporary}"
    assert all(killed.values()), killed
    print(f"{ROUNDS} rounds, killed {killed}, exit codes of the requests under fire {outcomes}")


if __name__ == "__main__":
    main()
