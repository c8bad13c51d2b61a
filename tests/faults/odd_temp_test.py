#!/usr/bin/python3
"""A temporary directory with blanks, quotes and a long name, on a file system from which nothing can be executed: gcc
compiles there, and nothing is left.

usage: odd_temp_test.py BIN_DIRECTORY
"""
import ctypes
import json
import shutil
import subprocess
import sys

from harness import Node

BIN = sys.argv[1]
NAME = "it's a \"long\" one; $(touch oops) `x` & *" + "-" * 80


def compile_in(temporary, node):
    node.environment["TMPDIR"] = str(temporary)
    file = node.write("f.c", "#include <math.h>\ndouble f(double x) { return exp(x) + 1; }\n")
    for compiler in ("gcc", "clang"):
        done = node.jitc("submit", "--cc", compiler, "--json", file)
        assert done.returncode == 0, done.stderr
        function = ctypes.CDLL(json.loads(done.stdout)["path"]).f
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        assert function(0.0) == 2.0
    assert node.jitc("daemon", "stop").returncode == 0
    left = list(temporary.rglob("*"))
    assert not left, left


if not shutil.which("gcc"):
    print("no gcc")
    sys.exit(77)
assert len(NAME) >= 120
with Node(BIN) as node:
    temporary = node.scratch / NAME
    temporary.mkdir()
    compile_in(temporary, node)
with Node(BIN) as node:
    temporary = node.scratch / NAME
    temporary.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,nosuid,size=16m", "tmpfs", str(temporary)],
                             stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        print("the part with noexec is left out: mounting needs root")
        sys.exit(0)
    try:
        program = temporary / "true"
        shutil.copy("/bin/true", program)
        try:
            subprocess.run([str(program)])
            raise AssertionError("the file system lets programs run")
        except PermissionError:
            program.unlink()
        compile_in(temporary, node)
    finally:
        subprocess.run(["umount", "-l", str(temporary)], check=True)
# A socket's path has a limit, which is said with the path.
with Node(BIN) as node:
    node.environment["JITC_RUNTIME_DIR"] = str(node.scratch / NAME)
    done = node.jitc("submit", node.write("f.c", "int f(void) { return 1; }\n"))
    assert done.returncode == 2 and "107" in done.stderr, done
print("odd temporary directories are as good as others")
