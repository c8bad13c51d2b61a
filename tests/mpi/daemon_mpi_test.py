"""Ranks and a real daemon: who compiles, what is touched, and that every failure is the same on all ranks, in time.

usage: daemon_mpi_test.py BIN_DIRECTORY CLIENT_PROGRAM RANKS MPIRUN...
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

BIN, CLIENT, RANKS, *MPIRUN = sys.argv[1:]
RANKS = int(RANKS)
SOURCE = "#include <math.h>\ndouble answer(double x) { return 42.0 * x + cos(0.0) - 1.0; }\n"
FROM_MEMORY, FROM_RANK, FROM_STORE, FROM_DAEMON, COMPILED = range(5)
NOWHERE = {name: "/proc/nowhere" for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "JITC_STORE",
                                              "JITC_RUNTIME_DIR")}
TIMEOUT = 3  # JITC_TIMEOUT in seconds
PATIENCE = 60  # until a failure is on all ranks after that: a bound against hangs, on however busy a machine


def start(node, source, *how, wrapper=(), odd_rank=None, odd=None, **settings):
    """All ranks run the client; rank `odd_rank` with the further environment `odd`."""
    environment = {**node.environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **settings}
    client = [*wrapper, CLIENT, str(source), *how]
    if odd_rank is None:
        ranks = ["-n", str(RANKS), *client]
    else:
        different = ["env", *(f"{name}={value}" for name, value in odd.items())]
        ranks = ["-n", str(odd_rank), *client, ":", "-n", "1", *different, *client, ":", "-n", str(RANKS - odd_rank - 1),
                 *client]
    return subprocess.Popen([*MPIRUN, *ranks], env=environment, text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(job):
    out, err = job.communicate(timeout=100)
    assert job.returncode == 0, f"mpirun ended with {job.returncode}\n{out}\n{err}"
    told = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert told and all(one["same"] for one in told), (out, err)
    return told


def run(node, source, *how, **kwargs):
    return finish(start(node, source, *how, **kwargs))


def start_daemon(node):
    done = node.jitc("daemon", "start")
    assert done.returncode == 0, done.stderr


def expect(condition, told):
    assert condition, told


def cold_warm_and_second_job():
    with Node(BIN) as node:
        start_daemon(node)
        source = node.write("answer.c", SOURCE)
        cold, warm = run(node, source, "again")
        expect(cold["origin"] == COMPILED and cold["compilers_started"] == 1 and cold["value"] == 84, cold)
        expect(warm["origin"] == FROM_MEMORY and warm["compilers_started"] == 1, warm)
        assert node.stats()["compiles_started"] == 1, node.stats()
        (second,) = run(node, source)
        expect(second["origin"] == FROM_STORE and second["compilers_started"] == 0 and second["value"] == 84, second)
        assert node.stats()["compiles_started"] == 1, node.stats()


def store_hit_without_a_daemon():
    """Whether the daemon was killed or told to stop: what it has published is found."""
    for end in (lambda node: os.kill(node.daemon_pid(), signal.SIGKILL), lambda node: node.jitc("daemon", "stop")):
        with Node(BIN) as node:
            start_daemon(node)
            source = node.write("answer.c", SOURCE)
            run(node, source)
            end(node)
            (alone,) = run(node, source)
            expect(alone["origin"] == FROM_STORE and alone["value"] == 84, alone)


def strace_program():
    strace = shutil.which("strace")
    assert strace, "strace is not installed: it shows what ranks touch"
    return strace


def one_start_before_the_first_connection():
    """With autostart a process starts one daemon, before it connects; a second context of it starts none."""
    with Node(BIN, JITC_AUTOSTART="1") as node:
        logs = node.scratch / "start"
        logs.mkdir()
        # The started daemon is not followed: strace lets go of what calls execve.
        strace = (strace_program(), "-ff", "-ttt", "-b", "execve", "-e", "trace=clone,clone3,fork,vfork,openat", "-o",
                  str(logs / "log"))
        first, second = run(node, node.write("answer.c", SOURCE), "elsewhere", str(node.scratch / "elsewhere"),
                            wrapper=strace)
        expect(first["origin"] == COMPILED and first["compilers_started"] == 1, first)
        expect(second["kind"] == "UNREACHABLE" and not second["broken"], second)
        lines = [line for path in logs.iterdir() for line in path.read_text(errors="replace").splitlines()]
        times = {what: [float(line.split()[0]) for line in lines if is_it(line)]
                 for what, is_it in (("starts", is_process_start), ("connects", lambda line: "libjitc-rpc.so" in line))}
        assert len(times["starts"]) == 1, times
        assert times["connects"] and times["starts"][0] < min(times["connects"]), times


def is_process_start(line):
    call = line.split()[1] if line[:1].isdigit() else line
    return call.startswith(("clone", "fork", "vfork")) and "CLONE_THREAD" not in line and "resumed" not in line


def what_ranks_touch():
    """Ranks never fork once connected; on a hit none but the root opens a file of the store or the runtime directory."""
    strace = strace_program()
    with Node(BIN) as node:
        start_daemon(node)
        source = node.write("answer.c", SOURCE)
        for job in ("cold", "warm"):
            logs = node.scratch / job
            logs.mkdir()
            calls = "trace=clone,clone3,fork,vfork,execve,openat,connect,write"
            run(node, source, "again", wrapper=(strace, "-ff", "-y", "-s", "200", "-e", calls, "-o", str(logs / "log")))
            traces = {path: path.read_text(errors="replace") for path in logs.iterdir()}
            ours = [text for text in traces.values() if str(node.run_directory) in text or str(node.store) in text]
            rpc = [text for text in traces.values() if "libjitc-rpc.so" in text]
            forks = [line for text in traces.values() for line in text.splitlines()
                     if is_process_start(line)]
            assert len(rpc) == (1 if job == "cold" else 0), f"{job}: {len(rpc)} threads opened the RPC library"
            assert not forks, forks
            assert ours, "the root's own look-up must be in the trace"
            # Threads that touched the service's files all belong to one process: the root.
            assert len(root_only(traces, node)) == 1, f"{job}: several ranks touched the service's files"


def root_only(traces, node):
    """Process ids of the ranks (the main threads that ran execve) that, with their threads, touched our files."""
    touching = set()
    parents = {}
    for path, text in traces.items():
        pid = int(path.name.rsplit(".", 1)[1])
        parents.setdefault(pid, pid)
        for line in text.splitlines():
            if "CLONE_THREAD" in line and "=" in line:
                child = line.rsplit("=", 1)[1].split()[0].strip("{[]}")
                if child.isdigit():
                    parents[int(child)] = pid

    def root_of(pid):
        while parents.get(pid, pid) != pid:
            pid = parents[pid]
        return pid

    for path, text in traces.items():
        if str(node.run_directory) in text or str(node.store) in text:
            touching.add(root_of(int(path.name.rsplit(".", 1)[1])))
    return touching


def rank_without_directories():
    """No home, no temporary directory, no store, no runtime directory: nothing that a rank other than the root needs."""
    with Node(BIN) as node:
        start_daemon(node)
        source = node.write("answer.c", SOURCE)
        for origin in (COMPILED, FROM_STORE):
            (told,) = run(node, source, odd_rank=2, odd=NOWHERE)
            expect(told["origin"] == origin and told["value"] == 84, told)
        assert node.stats()["compiles_started"] == 1, node.stats()


def two_hundred_rounds():
    """Only the root holds the module, only rank 3 does, or nobody and rank 2 has no directory to write into."""
    for keeper, origin, odd in ((0, FROM_RANK, {}), (3, FROM_STORE, {}), (-1, FROM_STORE, NOWHERE)):
        with Node(BIN) as node:
            start_daemon(node)
            first, last = run(node, node.write("answer.c", SOURCE), "rounds", str(keeper), odd_rank=2 if odd else None,
                              odd=odd)
            expect(first["origin"] == COMPILED and first["value"] == 84, first)
            expect(last["origin"] == origin and last["value"] == 84 and last["compilers_started"] == 1, last)
            expect(last["store_hits"] == (200 if origin == FROM_STORE else 0), last)
            assert node.stats()["compiles_started"] == 1, node.stats()


def rank_without_memory():
    """A rank that may not map the module takes part all the same, and is named on all ranks; the next call is fine."""
    with Node(BIN) as node:
        start_daemon(node)
        # 24 MiB of data, which make an artifact of that size.
        source = node.write("large.c", "double large[3000000] = {42.0};\n"
                                       "double answer(double x) { return large[0] * x; }\n")
        limited, then = run(node, source, "limited", "2")
        expect(limited["kind"] == "NOT_LOADED" and not limited["broken"], limited)
        expect("rank 2: no memory" in limited["error"]["message"], limited)
        expect(then["origin"] == FROM_STORE and then["value"] == 84, then)


def older_cpu_on_one_rank():
    """The job's code is for the CPU that all ranks have, and is another artifact than the better CPU's."""
    with Node(BIN) as node:
        start_daemon(node)
        source = node.write("answer.c", SOURCE)
        (told,) = run(node, source, odd_rank=1, odd={"JITC_TEST_ISA_MASK": "1"})
        expect(told["origin"] == COMPILED and told["value"] == 84, told)
        (told,) = run(node, source, odd_rank=1, odd={"JITC_TEST_ISA_MASK": "1"})
        expect(told["origin"] == FROM_STORE, told)
        (told,) = run(node, source)
        expect(told["origin"] == (FROM_STORE if has_baseline_cpu() else COMPILED), told)


def has_baseline_cpu():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "avx2" not in flags and "ssse3" not in flags


def differing_flags():
    with Node(BIN) as node:
        (told,) = run(node, node.write("answer.c", SOURCE), odd_rank=1, odd={"JITC_CFLAGS": "-O1"})
        expect(told["kind"] == "DIVERGENT" and "rank 1" in told["error"]["message"], told)
        expect("-O1" in told["error"]["message"], told)


def compile_error():
    with Node(BIN) as node:
        start_daemon(node)
        source = node.write("bad.c", "double answer(double x) {\n  return x +;\n}\n")
        first, second = run(node, source, "again")
        for told in (first, second):
            expect(told["kind"] == "INVALID_SOURCE" and not told["broken"], told)
        expect(first["error"]["diagnostics"][0]["line"] == 2, first)


def out_of_memory():
    with Node(BIN, JITC_MEMORY_BUDGET="60M") as node:
        start_daemon(node)
        # Wide arithmetic in one function: far more than 60 MiB at -O3.
        terms = "\n".join(f"  s += exp(x * {i}.5) * pow(x, {i}.25) / (x + {i});" for i in range(60000))
        source = node.write("wide.c", "#include <math.h>\ndouble answer(double x) {\n  double s = 0;\n" + terms + "\n  return s;\n}\n")
        (told,) = run(node, source, JITC_SHARE="0")
        expect(told["kind"] == "OUT_OF_MEMORY" and not told["broken"], told)
        expect(told["error"]["budget_bytes"] > 0, told)


def slow_compiler(node):
    """A compiler that tells through a FIFO that it runs, and goes on when another one is opened for writing."""
    # Whatever else it is asked (its version, to preprocess) it answers as gcc does.
    path = node.write("slowcc", "#!/bin/sh\ncase \" $* \" in *' -shared '*) ;; *) exec gcc \"$@\";; esac\n"
                                f"echo > {node.scratch}/compiling\nread line < {node.scratch}/go\nexec gcc \"$@\"\n")
    path.chmod(0o755)
    for name in ("compiling", "go"):
        os.mkfifo(node.scratch / name)
    return str(path)


def slow_node(**settings):
    node = Node(BIN, JITC_TIMEOUT=f"{TIMEOUT}s", **settings)
    compiler = slow_compiler(node)
    node.environment.update(JITC_COMPILERS=compiler, JITC_CC=compiler)
    return node


def wait_for_compiler(node, job):
    compiling = os.open(node.scratch / "compiling", os.O_RDONLY | os.O_NONBLOCK)
    ended = os.pidfd_open(job.pid)
    ready, _, _ = select.select([compiling, ended], [], [], 100)
    os.close(compiling)
    os.close(ended)
    assert compiling in ready, job.communicate(timeout=1)


def in_time(told, kinds, since):
    """`since`: when the fault was made, by the wall clock."""
    expect(told["kind"] in kinds, told)
    expect(not told["broken"], told)
    took = told["ended"] - since
    assert took <= TIMEOUT + PATIENCE, f"{took:.1f} s until the last rank was through: {told}"


def daemon_killed_during_the_compile():
    with slow_node() as node:
        start_daemon(node)
        job = start(node, node.write("answer.c", SOURCE))
        wait_for_compiler(node, job)
        since = time.time()
        os.kill(node.daemon_pid(), signal.SIGKILL)
        (told,) = finish(job)
        in_time(told, ("UNREACHABLE",), since)


def daemon_restarted_during_the_compile():
    for number in (signal.SIGKILL, signal.SIGTERM):
        with slow_node() as node:
            start_daemon(node)
            job = start(node, node.write("answer.c", SOURCE), JITC_TIMEOUT="60s")
            wait_for_compiler(node, job)
            first = node.daemon_pid()
            end = os.pidfd_open(first)
            os.kill(first, number)
            select.select([end], [], [])
            os.close(end)
            start_daemon(node)
            wait_for_compiler(node, job)
            with open(node.scratch / "go", "w", encoding="ascii"):
                pass
            (told,) = finish(job)
            expect(told["kind"] == "OK" and told["value"] == 84 and not told["broken"], told)
            stats = node.stats()
            assert stats["requests"] == stats["compiles_started"] == 1, stats
            assert node.daemon_pid() != first


def daemon_stopped_during_the_compile():
    with slow_node() as node:
        start_daemon(node)
        job = start(node, node.write("answer.c", SOURCE))
        wait_for_compiler(node, job)
        since = time.time()
        daemon = node.daemon_pid()
        os.kill(daemon, signal.SIGSTOP)
        try:
            (told,) = finish(job)
        finally:
            os.kill(daemon, signal.SIGCONT)
        in_time(told, ("TIMED_OUT",), since)
        expect(told["beats"], told)


def no_daemon():
    with Node(BIN) as node:
        source = node.write("answer.c", SOURCE)
        (told,) = run(node, source, JITC_TIMEOUT=f"{TIMEOUT}s")
        expect(told["kind"] == "UNREACHABLE" and not told["broken"], told)
        (told,) = run(node, source, JITC_AUTOSTART="1")
        expect(told["origin"] == COMPILED and told["compilers_started"] == 1, told)


def main():
    for scenario in (cold_warm_and_second_job, what_ranks_touch, one_start_before_the_first_connection,
                     rank_without_directories, two_hundred_rounds, rank_without_memory, older_cpu_on_one_rank,
                     differing_flags, compile_error, out_of_memory, daemon_killed_during_the_compile,
                     daemon_restarted_during_the_compile, daemon_stopped_during_the_compile, no_daemon,
                     store_hit_without_a_daemon):
        begin = time.monotonic()
        scenario()
        print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


main()
