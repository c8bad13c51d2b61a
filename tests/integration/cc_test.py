#!/usr/bin/python3
"""`jitc cc` beside the compiler that it stands for: exit code, outputs and standard error of many command lines, twice,
so that the second one may be a hit; then merging, hits, directories, kills and missing daemons, by the counters.

    cc_test.py --bin BUILD/bin
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(f"{what}: {got!r} instead of {wanted!r}")


FILES = {
    "a.c": '#include <math.h>\n#include "h.h"\nint f(int x) { return x + H; }\ndouble g(double x) { return sin(x); }\n',
    "b.c": "int g2(int x) { return 2 * x; }\n",
    "warn.c": "int f(void) { int unused; int x = 3; if (x = 4) return 1; return 0; }\n",
    "fall.c": "int f(int x) { switch (x) { case 1: x++; /* fallthrough */ case 2: return x; } return 0; }\n",
    "broken.c": "int f(int x) { return x +; }\n",
    "undeclared.c": "int f(void) { return nowhere; }\n",
    "missing.c": '#include "nowhere.h"\n',
    "says.c": '#warning "hear this"\nint f(void) { return 1; }\n',
    "main.c": "int main(void) { return 0; }\n",
    "calls.c": "int missing_symbol(int); int f(void) { return missing_symbol(1); }\n",
    "has space.c": "int spaced;\n",
    "quote'd.c": "int quoted;\n",
    "data.c": 'asm(".section .rodata\\n.incbin \\"h.h\\"\\n.previous"); int x;\n',
    "cxx.cc": "#include <vector>\ntemplate <class T> T twice(T x) { return x + x; } int f() { return twice(2); }\n",
    "text": "int as_language(void) { return 7; }\n",
    "asm.s": ".globl s\ns:\n  ret\n",
    "asm2.S": "#define NAME s2\n.globl NAME\nNAME:\n  ret\n",
    "h.h": "#define H 41\n",
    "inc/h2.h": "#pragma once\nstatic inline int two(void) { return 2; }\n",
    "uses.c": '#include <h2.h>\nint u(void) { return two(); }\n',
    "time.c": 'const char* at = __FILE__;\n',
    "empty.c": "",
    "nul.c": "int a;\0\n",
    "args": "-O1 -c a.c\n  -DQ='\"x y\"' -o args.o",
    "args2": "@args -Wall",
    "ver.map": "{ global: f; local: *; };\n",
}

# Outputs that some of these make: removed before each, compared after.
LINES = [
    # compiles
    ["-c", "a.c"], ["-c", "a.c", "-o", "o.o"], ["-o", "o.o", "-c", "a.c"], ["a.c", "-c", "-oo.o"],
    ["-O2", "-c", "a.c"], ["-O0", "-O3", "-c", "a.c"], ["-Os", "-fPIC", "-c", "a.c", "-o", "o.o"],
    ["-std=c99", "-pedantic", "-c", "a.c"], ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", "a.c"],
    ["-ansi", "-c", "b.c"], ["-march=native", "-O2", "-c", "a.c"], ["-mavx2", "-ffast-math", "-c", "a.c"],
    ["-g", "-c", "a.c"], ["-g3", "-O1", "-c", "a.c"], ["-ggdb", "-c", "a.c"], ["-g0", "-c", "a.c"],
    ["-gdwarf-4", "-c", "a.c"], ["-DX=1", "-UX", "-D", "Y=2", "-c", "a.c"], ["-DM(x)=x", "-c", "b.c"],
    ["-DX", "-DX=2", "-c", "b.c"], ["-Iinc", "-c", "uses.c"], ["-I", "inc", "-c", "uses.c"],
    ["-isystem", "inc", "-c", "uses.c"], ["-iquote", "inc", "-c", "uses.c"], ["-idirafter", "inc", "-c", "uses.c"],
    ["-I", "nowhere", "-c", "b.c"], ["-include", "h.h", "-c", "b.c"], ["-imacros", "h.h", "-c", "b.c"],
    ["-c", "has space.c"], ["-c", "has space.c", "-o", "an output.o"], ["-c", "quote'd.c"], ["-c", "./a.c", "-o", "./o.o"],
    ["-c", "time.c"], ["-c", "./time.c", "-o", "o.o"], ["-ffile-prefix-map=.=/x", "-c", "time.c"], ["-c", "empty.c"],
    ["-c", "nul.c"], ["-pipe", "-c", "a.c"], ["-pthread", "-c", "a.c"], ["-fopenmp", "-c", "a.c"],
    ["-fvisibility=hidden", "-c", "a.c"], ["-Wp,-D_FORTIFY_SOURCE=2", "-O2", "-c", "a.c"], ["-Wa,--noexecstack", "-c", "a.c"],
    ["--param", "max-inline-insns-single=10", "-O2", "-c", "a.c"], ["--param=inline-unit-growth=10", "-O2", "-c", "a.c"],
    ["-x", "c", "-c", "text"], ["-xc", "-c", "text", "-o", "o.o"], ["-x", "c++", "-c", "a.c"], ["-c", "cxx.cc"],
    ["-std=c++20", "-O2", "-c", "cxx.cc"], ["-m32", "-c", "b.c"], ["-nostdinc", "-c", "b.c"],
    # what they say
    ["-Wall", "-c", "warn.c"], ["-Wall", "-Wextra", "-c", "fall.c"], ["-Wall", "-Werror", "-c", "warn.c"], ["-w", "-c", "warn.c"],
    ["-Wall", "-fdiagnostics-color=always", "-c", "warn.c"], ["-fno-diagnostics-show-caret", "-Wall", "-c", "warn.c"],
    ["-Wall", "-fmessage-length=40", "-c", "warn.c"], ["-c", "broken.c"], ["-c", "broken.c", "-o", "o.o"], ["-c", "undeclared.c"],
    ["-fdiagnostics-color=always", "-c", "broken.c"], ["-c", "missing.c"], ["-c", "says.c"], ["-c", "nowhere.c"],
    ["-c", "a.c", "nowhere.c"], ["-Wno-nothing-of-this-name", "-c", "a.c"], ["-Wnothing-of-this-name", "-c", "a.c"],
    ["-fnothing-of-this-name", "-c", "a.c"], ["-std=c1234", "-c", "a.c"], ["-O9", "-c", "a.c"], ["-c", "a.c", "-o", "nowhere/o.o"],
    ["-c"], [], ["-o"], ["-c", "a.c", "-o"], ["--no-such-option", "-c", "a.c"],
    # dependency files
    ["-MD", "-c", "a.c"], ["-MMD", "-c", "a.c", "-o", "o.o"], ["-MMD", "-MP", "-MF", "dep.d", "-c", "a.c"],
    ["-MD", "-MT", "target", "-MF", "dep.d", "-c", "a.c"], ["-MD", "-MQ", "t$x", "-MFdep.d", "-c", "a.c"],
    ["-MD", "-c", "has space.c"], ["-MMD", "-c", "broken.c"], ["-MD", "-MF", "nowhere/dep.d", "-c", "a.c"],
    ["-MMD", "-MF", "/dev/null", "-c", "a.c"],
    # other doings
    ["-E", "a.c"], ["-E", "-P", "a.c", "-o", "a.i"], ["-M", "a.c"], ["-MM", "a.c"], ["-S", "a.c"], ["-S", "-O2", "a.c", "-o", "a.s"],
    ["-fsyntax-only", "a.c"], ["--version"], ["-dumpversion"], ["-print-file-name=libc.so"], ["-c", "a.c", "b.c"],
    ["-c", "asm.s"], ["-c", "asm2.S"], ["-c", "data.c"], ["-c", "a.c", "-save-temps"], ["-c", "-fstack-usage", "a.c"],
    ["-c", "a.c", "-o", "/dev/null"], ["main.c", "-o", "program"], ["main.c"], ["-Q", "--help=warnings"],
    # files of arguments
    ["@args"], ["@args2"], ["@nowhere", "-c", "a.c"],
    # links
    ["-shared", "-fPIC", "a.c", "-o", "m.so"], ["-shared", "-fPIC", "a.c", "b.o", "-lm", "-o", "m.so"],
    ["-shared", "pic.o", "-o", "m.so"], ["-shared", "pic.o", "b.o", "-lm", "-lc", "-o", "m.so"], ["-o", "m.so", "pic.o", "-shared"],
    ["-shared", "pic.o", "-L.", "-lown", "-o", "m.so"], ["-shared", "pic.o", "-Wl,-soname,m.so.1", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-O1", "-Wl,-Bsymbolic-functions", "-g", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-rpath,/x", "-Wl,--as-needed", "-lm", "-o", "m.so"], ["-shared", "pic.o"],
    ["-shared", "pic.o", "-Wl,--version-script=ver.map", "-o", "m.so"], ["-shared", "calls.c", "-Wl,-z,defs", "-o", "m.so"],
    ["-shared", "calls.c", "-o", "m.so"], ["-shared", "pic.o", "-lnowhere", "-o", "m.so"], ["-shared", "nowhere.o", "-o", "m.so"],
    ["-shared", "-nostdlib", "pic.o", "-o", "m.so"], ["-shared", "-fPIC", "broken.c", "-o", "m.so"],
    ["-shared", "-fPIC", "-Wall", "warn.c", "-o", "m.so"], ["-shared", "-flto", "-fPIC", "a.c", "-o", "m.so"],
    ["-shared", "pic.o", "-o", "nowhere/m.so"], ["pic.o", "-o", "program"],
]
# Temporary names of compilers, which no two runs have in common.
RANDOM = b"/tmp/cc"


class Place:
    """One directory with the files, and what a run in it does."""

    def __init__(self, directory):
        self.directory = directory
        for name, text in FILES.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for words in (["-fPIC", "-c", "a.c", "-o", "pic.o"], ["-fPIC", "-c", "b.c", "-o", "b.o"], ["-c", "b.c", "-o", "own.o"]):
            subprocess.run(["gcc", *words], cwd=directory, check=True)
        subprocess.run(["ar", "rcs", "libown.a", "own.o"], cwd=directory, check=True)
        self.given = set(self.names())

    def names(self):
        return [str(p.relative_to(self.directory)) for p in self.directory.rglob("*") if p.is_file()]

    def run(self, command, **more):
        done = subprocess.run(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **more)
        made = {}
        for name in sorted(set(self.names()) - self.given):
            path = self.directory / name
            made[name] = (path.stat().st_mode & 0o7777, path.read_bytes())
            path.unlink()
        return done.returncode, made, done.stdout, done.stderr


def comparable(text):
    """Without the random part of temporary names."""
    parts = text.split(RANDOM)
    return RANDOM.join([parts[0]] + [part[6:] for part in parts[1:]])


class Service:
    def __init__(self, binaries, directory):
        self.jitc = os.path.join(binaries, "jitc")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("JITC_")}
        self.environment.update(JITC_RUNTIME_DIR=str(directory / "run"), JITC_STORE=str(directory / "store"),
                                JITC_AUTOSTART="0", JITC_TIMEOUT="120s", JITC_GRACE="30s", JITC_MAX_COMPILERS="1")

    def start(self):
        subprocess.run([self.jitc, "daemon", "start"], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        subprocess.run([self.jitc, "daemon", "stop"], env=self.environment, stdout=subprocess.DEVNULL)

    def counters(self):
        done = subprocess.run([self.jitc, "stats", "--json"], env=self.environment, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def cc(self, *words):
        return [self.jitc, "cc", *words]

    def jobs(self):
        done = subprocess.run([self.jitc, "jobs", "--json"], env=self.environment, stdout=subprocess.PIPE)
        return json.loads(done.stdout)["jobs"]


@contextlib.contextmanager
def changed(service, what, **wanted):
    before = service.counters()
    yield
    after = service.counters()
    for name, difference in wanted.items():
        expect(f"{what}: {name}", after[name] - before[name], difference)


def same_as_compiler(service, place):
    for words in LINES:
        real = place.run(["gcc", *words])
        for turn in ("first", "second"):
            ours = place.run(service.cc(*words), env=service.environment)
            for what, one, other in zip(("exit code", "files", "standard output", "standard error"), ours, real):
                if isinstance(one, bytes):
                    one, other = comparable(one), comparable(other)
                expect(f"{words}, {turn} time: {what}", one, other)


def what_is_kept(service, place):
    def cc(*words, **more):
        return place.run(service.cc(*words), env={**service.environment, **more})

    place.directory.joinpath("k.c").write_text("int k(void) { return 1; }\n")
    place.given.add("k.c")
    with changed(service, "first", cc_requests=1, cc_hits=0, compiles_started=1):
        first = cc("-O2", "-c", "k.c")
    with changed(service, "second", cc_requests=1, cc_hits=1, compiles_started=0):
        expect("a hit", cc("-O2", "-c", "k.c"), first)
    with changed(service, "another output", cc_hits=1):
        expect("its bytes", cc("-O2", "-c", "k.c", "-o", "q.o")[1]["q.o"], first[1]["k.o"])
    with changed(service, "another option", cc_hits=0, compiles_started=1):
        cc("-O1", "-c", "k.c")
    with changed(service, "another macro", cc_hits=0, compiles_started=1):
        cc("-O2", "-DK", "-c", "k.c")
    with changed(service, "another language of messages", cc_hits=0, compiles_started=1):
        cc("-O2", "-c", "k.c", LANG="xx_XX")
    with changed(service, "a preprocessor's run", cc_requests=0, cc_passed=1, compiles_started=1):
        cc("-E", "k.c")
    with changed(service, "a failure, twice", cc_requests=2, cc_hits=0, compiles_started=2):
        expect("a failure", cc("-c", "broken.c"), cc("-c", "broken.c"))
    place.directory.joinpath("k.c").write_text("int k(void) { return 2; }\n")
    with changed(service, "another text", cc_hits=0, compiles_started=1):
        expect("another object", cc("-O2", "-c", "k.c")[1] != first[1], True)
    # Comments decide about warnings.
    place.directory.joinpath("k.c").write_text(FILES["fall.c"])
    expect("no warning", cc("-Wextra", "-c", "k.c")[3], b"")
    place.directory.joinpath("k.c").write_text(FILES["fall.c"].replace("fallthrough", "carry over  "))
    expect("a warning", b"may fall through" in cc("-Wextra", "-c", "k.c")[3], True)
    with changed(service, "a warning from the store", cc_hits=1):
        expect("a warning again", b"may fall through" in cc("-Wextra", "-c", "k.c")[3], True)
    # A header that begins to be found earlier.
    place.directory.joinpath("k.c").write_text("#include <h2.h>\nint k(void) { return two(); }\n")
    place.directory.joinpath("early").mkdir()
    before = cc("-Iearly", "-Iinc", "-c", "k.c")
    place.directory.joinpath("early/h2.h").write_text("static inline int two(void) { return 22; }\n")
    place.given.add("early/h2.h")
    expect("another header", cc("-Iearly", "-Iinc", "-c", "k.c")[1] != before[1], True)
    # Links: by contents, and a library that begins to be found earlier.
    link = ["-shared", "pic.o", "-Learly", "-L.", "-lown", "-Wl,--whole-archive", "-lown", "-Wl,--no-whole-archive", "-o", "l.so"]
    place.run(["gcc", "-fPIC", "-shared", "b.c", "-o", "x"])
    with changed(service, "a link", cc_requests=1, compiles_started=1):
        linked = cc(*link)
    expect("it links", linked[0], 0)
    with changed(service, "a link again", cc_hits=1, compiles_started=0):
        expect("the same", cc(*link), linked)
    subprocess.run(["gcc", "-fPIC", "-shared", "b.c", "-o", "early/libown.so"], cwd=place.directory, check=True)
    place.given.add("early/libown.so")
    with changed(service, "another library", cc_hits=0, compiles_started=1):
        expect("another link", cc(*link)[1] != linked[1], True)


def directories(service, one, other):
    """Under -g the directory is in the output; the setting decides whether it is in the key."""
    words = ["-g", "-O1", "-c", "b.c"]
    with changed(service, "debug, relaxed", cc_hits=1, compiles_started=1):
        a = one.run(service.cc(*words), env=service.environment)
        b = other.run(service.cc(*words), env=service.environment)
    expect("one object for both directories", a, b)
    strict = {**service.environment, "JITC_CC_RELAXED_DEBUG": "0"}
    with changed(service, "debug, strict", cc_hits=0, compiles_started=2):
        a = one.run(service.cc(*words), env=strict)
        b = other.run(service.cc(*words), env=strict)
    for place, ours in ((one, a), (other, b)):
        expect("as the compiler, strictly", ours, place.run(["gcc", *words]))
    with changed(service, "without debug", cc_hits=1, compiles_started=1):
        a = one.run(service.cc("-O1", "-fno-math-errno", "-c", "b.c"), env=service.environment)
        b = other.run(service.cc("-O1", "-fno-math-errno", "-c", "b.c"), env=service.environment)
    expect("one object without debug", a, b)


def umasks(service, place):
    for umask in (0o022, 0o077, 0o002):
        real = place.run(["gcc", "-c", "b.c"], umask=umask)
        expect(f"modes under {umask:o}", place.run(service.cc("-c", "b.c"), env=service.environment, umask=umask), real)
        real = place.run(["gcc", "-shared", "pic.o", "-o", "m.so"], umask=umask)
        expect(f"modes of a link under {umask:o}",
               place.run(service.cc("-shared", "pic.o", "-o", "m.so"), env=service.environment, umask=umask), real)


def slow_source(place, name):
    """One that a compiler works on for seconds."""
    body = "".join(f"  x = x * {i + 3}.5 + sin(x) * y[{i % 7}];\n" for i in range(6000))
    place.directory.joinpath(name).write_text(f"#include <math.h>\ndouble f(double x, const double* y) {{\n{body}  return x;\n}}\n")
    place.given.add(name)


def wait_for(what, condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    failures.append(f"{what} did not come")


def merging(service, place):
    slow_source(place, "slow.c")
    with changed(service, "eight at once", cc_requests=8, compiles_started=1):
        running = [subprocess.Popen(service.cc("-O2", "-c", "slow.c", "-o", f"s{i}.o"), cwd=place.directory,
                                    env=service.environment) for i in range(8)]
        codes = [one.wait() for one in running]
    expect("eight ends", codes, [0] * 8)
    objects = {place.directory.joinpath(f"s{i}.o").read_bytes() for i in range(8)}
    expect("one object", len(objects), 1)
    for i in range(8):
        place.directory.joinpath(f"s{i}.o").unlink()


def killed_clients(service, place):
    slow_source(place, "slow2.c")
    # One of two that wait is killed: the other gets the object.
    command = service.cc("-O3", "-c", "slow2.c", "-o", "k1.o")
    first = subprocess.Popen(command, cwd=place.directory, env=service.environment)
    wait_for("a compile", lambda: any(job["phase"] == "running" for job in service.jobs()))
    second = subprocess.Popen(service.cc("-O3", "-c", "slow2.c", "-o", "k2.o"), cwd=place.directory, env=service.environment)
    first.send_signal(signal.SIGKILL)
    first.wait()
    expect("the other one's end", second.wait(), 0)
    expect("no half output", place.directory.joinpath("k1.o").exists(), False)
    place.directory.joinpath("k2.o").unlink()
    expect("nothing is left over", [n for n in place.names() if n not in place.given], [])
    # Whose turn it is, is killed: the turn ends, and the next one's comes.
    passed = subprocess.Popen(service.cc("-O3", "-S", "slow2.c", "-o", "/dev/null"), cwd=place.directory, env=service.environment)
    wait_for("a turn", lambda: any(job["phase"] == "running" for job in service.jobs()))
    waiting = subprocess.Popen(service.cc("-S", "b.c", "-o", "/dev/null"), cwd=place.directory, env=service.environment)
    wait_for("a queue", lambda: any(job["phase"] == "queued" for job in service.jobs()))
    expect("it waits", waiting.poll(), None)
    passed.send_signal(signal.SIGKILL)
    passed.wait()
    expect("the next one's end", waiting.wait(), 0)
    wait_for("the end of all turns", lambda: not service.jobs())
    expect("at once", service.counters()["running_peak"], 1)


def names_and_links(service, place, directory):
    real = place.run(["gcc", "-O1", "-c", "a.c"])
    links = directory / "links"
    links.mkdir()
    for name in ("jitc-cc", "gcc", "x86_64-linux-gnu-gcc"):
        links.joinpath(name).symlink_to(service.jitc)
    environment = {**service.environment, "PATH": f"{links}:{os.environ['PATH']}"}
    for command in ([str(links / "jitc-cc")], ["gcc"], [service.jitc, "cc", "gcc"], [service.jitc, "cc", "/usr/bin/gcc"]):
        expect(f"{command}", place.run([*command, "-O1", "-c", "a.c"], env=environment), real)
    # A compiler that is a script which comes back here.
    script = directory / "round"
    script.write_text(f'#!/bin/sh\nexec "{service.jitc}" cc "$0" "$@"\n')
    script.chmod(0o755)
    expect("a round trip ends", place.run([service.jitc, "cc", str(script), "-c", "a.c"], env=environment)[0], 2)
    unknown = place.run(service.cc("-c", "a.c"), env={**environment, "JITC_CC_COMPILER": "no-such-compiler"})
    expect("no compiler", (unknown[0], b"no-such-compiler" in unknown[3]), (2, True))


def absent_daemon(service, place):
    for words in (["-O2", "-c", "a.c"], ["-E", "a.c"], ["-c", "broken.c"], ["-shared", "pic.o", "-o", "m.so"]):
        expect(f"{words} without a daemon", place.run(service.cc(*words), env=service.environment), place.run(["gcc", *words]))
    needs = {**service.environment, "JITC_REQUIRE_DAEMON": "1"}
    needed = place.run(service.cc("-c", "a.c"), env=needs)
    expect("a daemon is required", (needed[0] != 0, needed[1]), (True, {}))


def out_of_memory(service, place, directory):
    small = Service("", directory / "small")
    small.jitc = service.jitc
    small.environment.update(JITC_MEMORY_BUDGET="130M")
    place.directory.joinpath("large.cc").write_text("#include <regex>\n#include <functional>\n#include <map>\n"
                                                    "bool f() { return std::regex_match(\"a\", std::regex(\"a+b*\")); }\n")
    place.given.add("large.cc")
    small.start()
    try:
        code, made, _, said = place.run(small.cc("-O2", "-c", "large.cc"), env=small.environment)
        expect("out of memory", (code, made, b"OUT_OF_MEMORY" in said), (1, {}, True))
        expect("nothing ran beyond the budget", small.counters()["cc_passed"], 0)
    finally:
        small.stop()


def killed_daemon(service, place, directory):
    slow_source(place, "slow3.c")
    real = place.run(["gcc", "-O2", "-c", "slow3.c"])
    running = subprocess.Popen(service.cc("-O2", "-c", "slow3.c"), cwd=place.directory, env=service.environment)
    wait_for("a compile", lambda: any(job["phase"] == "running" for job in service.jobs()))
    os.kill(int((directory / "run" / "jitcd.lock").read_text().split()[0]), signal.SIGKILL)
    expect("the end after the daemon's", running.wait(), 0)
    expect("the object", place.directory.joinpath("slow3.o").read_bytes(), real[1]["slow3.o"][1])
    place.directory.joinpath("slow3.o").unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    os.environ["LC_ALL"] = "C.UTF-8"
    for variable in ("LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "LD_PRELOAD"):
        os.environ.pop(variable, None)
    with tempfile.TemporaryDirectory(prefix="jitc-cc-") as name:
        directory = pathlib.Path(name)
        for one in ("one", "other"):
            (directory / one).mkdir()
        one, other = Place(directory / "one"), Place(directory / "other")
        service = Service(binaries, directory)
        absent_daemon(service, one)
        service.start()
        try:
            same_as_compiler(service, one)
            what_is_kept(service, one)
            directories(service, one, other)
            umasks(service, one)
            merging(service, one)
            killed_clients(service, one)
            names_and_links(service, one, directory)
            out_of_memory(service, one, directory)
            killed_daemon(service, one, directory)
        finally:
            service.stop()
    print(f"{len(LINES)} command lines")
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
