"""A directory with sources in many shapes, the service under test, and what differs between two runs in them: for the
tests of `jitc cc`."""
import fcntl
import json
import os
import pathlib
import select
import subprocess

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
    "args3": "-O1 @args4 -c",
    "args4": "-DZ=3\n@args5",
    "args5": "'a.c' -DQ=\"x y\"",
    "args6": "-O1\r\n-c\r\na.c\r\n-DA=a\\ b",
    "unended": "-O1 'a.c",
    "itself": "@itself -c a.c",
    "stamp.c": "const char* d = __DATE__; const char* t = __TIME__;\n",
    "base.c": "const char* b = __BASE_FILE__; int l = __INCLUDE_LEVEL__, c = __COUNTER__;\n",
    "pragma.c": '#pragma GCC optimize("O3")\n#pragma message("hi there")\n#pragma weird\n'
                "int f(int x) { return x * 3; }\n",
    "line.c": '#line 7 "gen.pyx"\nint f(int x) { int unused; return x; }\n',
    "badline.c": '#line 100 "other name.c"\nint f(void) { return undeclared; }\n',
    "sub/deep.c": '#include "../h.h"\nint d = H;\n',
    "next.c": "#include_next <stdio.h>\nint a;\n",
    "error.c": "#error no way\n",
    "utf8.c": "const char* s = \"h\u00e4\u00df\"; int \u00e4;\n",
    "bom.c": "\ufeffint a;\n",
    "quotes.c": "int f(void) { return \u201cx\u201d; }\n",
    "odd$name.c": "int o;\n",
    "back\\slash.c": "int b;\n",
    "new\nline.c": "int n;\n",
    "-dash.c": "int dash;\n",
    "done.i": "int pre(void) { return 1; }\n",
    "spec": "*cc1:\n+ -O3\n",
    "dir/file": "",
}


# Temporary names of compilers, which no two runs have in common.
RANDOM = b"/tmp/cc"




def comparable(text):
    """Without the random part of temporary names."""
    parts = text.split(RANDOM)
    return RANDOM.join([parts[0]] + [part[6:] for part in parts[1:]])


def own_environment():
    """Nothing of this process's environment but what a test says decides what compilers do."""
    os.environ["LC_ALL"] = "C.UTF-8"
    for variable in ("LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "LD_PRELOAD"):
        os.environ.pop(variable, None)


class Place:
    """One directory with the files, and what a run in it does."""

    def __init__(self, directory):
        directory.mkdir()
        self.directory = directory
        for name, text in FILES.items():
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        for words in (["-fPIC", "-c", "a.c", "-o", "pic.o"], ["-fPIC", "-c", "b.c", "-o", "b.o"],
                      ["-c", "b.c", "-o", "own.o"]):
            subprocess.run(["gcc", *words], cwd=directory, check=True)
        subprocess.run(["ar", "rcs", "libown.a", "own.o"], cwd=directory, check=True)
        directory.joinpath("a link.c").symlink_to("a.c")
        self.given = {name: directory.joinpath(name).read_bytes() for name in self.names()}

    def add(self, name, text):
        self.directory.joinpath(name).write_text(text)
        self.given[name] = text.encode()

    def names(self):
        return [str(p.relative_to(self.directory)) for p in self.directory.rglob("*")
                if p.is_file() and not p.is_symlink()]

    def run(self, command, stdin=b"", **more):
        """Exit code, files that it made or changed (they are as before then), standard output and standard error."""
        done = subprocess.run(command, cwd=self.directory, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **more)
        made = {}
        for name in sorted(set(self.names()) | set(self.given)):
            path = self.directory / name
            text = path.read_bytes() if path.exists() else None
            if text == self.given.get(name):
                continue
            made[name] = (path.stat().st_mode & 0o7777 if path.exists() else 0, text)
            path.unlink(missing_ok=True)
            if name in self.given:
                path.write_bytes(self.given[name])
        return done.returncode, made, done.stdout, done.stderr


class Service:
    """A daemon with a store of its own, and the command that asks it."""

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


class Gate:
    """An assembler, the first one on `path`, that says that it began and goes on when the gate is opened."""

    LONGEST = 300  # seconds

    def __init__(self, directory):
        directory.mkdir()
        os.mkfifo(directory / "began")
        self.began = os.open(directory / "began", os.O_RDWR)
        self.lock = open(directory / "lock", "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        assembler = directory / "as"
        assembler.write_text(f"#!/bin/sh\necho began > '{directory}/began'\nflock -s '{directory}/lock' true\n"
                             "exec /usr/bin/as \"$@\"\n")
        assembler.chmod(0o755)
        self.path = f"{directory}:{os.environ['PATH']}"

    def await_beginning(self):
        if not select.select([self.began], [], [], self.LONGEST)[0]:
            raise TimeoutError("no assembler began")
        os.read(self.began, 100)

    def open(self):
        fcntl.flock(self.lock, fcntl.LOCK_UN)
