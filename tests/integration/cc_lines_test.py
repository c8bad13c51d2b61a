#!/usr/bin/python3
"""`jitc cc` beside the compiler that it stands for: exit code, outputs, standard output and standard error of many
command lines, twice, so that the second one may be a hit.

    cc_lines_test.py --bin BUILD/bin
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from cc_place import Place, Service, comparable, own_environment

# Of gcc.
LINES = [
    # compiles
    ["-c", "a.c"], ["-c", "a.c", "-o", "o.o"], ["-o", "o.o", "-c", "a.c"], ["a.c", "-c", "-oo.o"], ["-O2", "-c", "a.c"],
    ["-O0", "-O3", "-c", "a.c"], ["-Os", "-fPIC", "-c", "a.c", "-o", "o.o"], ["-std=c99", "-pedantic", "-c", "a.c"],
    ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", "a.c"], ["-ansi", "-c", "b.c"],
    ["-march=native", "-O2", "-c", "a.c"], ["-mavx2", "-ffast-math", "-c", "a.c"], ["-g", "-c", "a.c"],
    ["-g3", "-O1", "-c", "a.c"], ["-ggdb", "-c", "a.c"], ["-g0", "-c", "a.c"], ["-gdwarf-4", "-c", "a.c"],
    ["-DX=1", "-UX", "-D", "Y=2", "-c", "a.c"], ["-DM(x)=x", "-c", "b.c"], ["-DX", "-DX=2", "-c", "b.c"],
    ["-Iinc", "-c", "uses.c"], ["-I", "inc", "-c", "uses.c"], ["-isystem", "inc", "-c", "uses.c"],
    ["-iquote", "inc", "-c", "uses.c"], ["-idirafter", "inc", "-c", "uses.c"], ["-I", "nowhere", "-c", "b.c"],
    ["-include", "h.h", "-c", "b.c"], ["-imacros", "h.h", "-c", "b.c"], ["-c", "has space.c"],
    ["-c", "has space.c", "-o", "an output.o"], ["-c", "quote'd.c"], ["-c", "./a.c", "-o", "./o.o"], ["-c", "time.c"],
    ["-c", "./time.c", "-o", "o.o"], ["-ffile-prefix-map=.=/x", "-c", "time.c"], ["-c", "empty.c"], ["-c", "nul.c"],
    ["-pipe", "-c", "a.c"], ["-pthread", "-c", "a.c"], ["-fopenmp", "-c", "a.c"], ["-fvisibility=hidden", "-c", "a.c"],
    ["-Wp,-D_FORTIFY_SOURCE=2", "-O2", "-c", "a.c"], ["-Wa,--noexecstack", "-c", "a.c"],
    ["--param", "max-inline-insns-single=10", "-O2", "-c", "a.c"],
    ["--param=inline-unit-growth=10", "-O2", "-c", "a.c"], ["-x", "c", "-c", "text"],
    ["-xc", "-c", "text", "-o", "o.o"], ["-x", "c++", "-c", "a.c"], ["-c", "cxx.cc"],
    ["-std=c++20", "-O2", "-c", "cxx.cc"], ["-m32", "-c", "b.c"], ["-nostdinc", "-c", "b.c"],
    # what they say
    ["-Wall", "-c", "warn.c"], ["-Wall", "-Wextra", "-c", "fall.c"], ["-Wall", "-Werror", "-c", "warn.c"],
    ["-w", "-c", "warn.c"], ["-Wall", "-fdiagnostics-color=always", "-c", "warn.c"],
    ["-fno-diagnostics-show-caret", "-Wall", "-c", "warn.c"], ["-Wall", "-fmessage-length=40", "-c", "warn.c"],
    ["-c", "broken.c"], ["-c", "broken.c", "-o", "o.o"], ["-c", "undeclared.c"],
    ["-fdiagnostics-color=always", "-c", "broken.c"], ["-c", "missing.c"], ["-c", "says.c"], ["-c", "nowhere.c"],
    ["-c", "a.c", "nowhere.c"], ["-Wno-nothing-of-this-name", "-c", "a.c"], ["-Wnothing-of-this-name", "-c", "a.c"],
    ["-fnothing-of-this-name", "-c", "a.c"], ["-std=c1234", "-c", "a.c"], ["-O9", "-c", "a.c"],
    ["-c", "a.c", "-o", "nowhere/o.o"], ["-c"], [], ["-o"], ["-c", "a.c", "-o"], ["--no-such-option", "-c", "a.c"],
    # dependency files
    ["-MD", "-c", "a.c"], ["-MMD", "-c", "a.c", "-o", "o.o"], ["-MMD", "-MP", "-MF", "dep.d", "-c", "a.c"],
    ["-MD", "-MT", "target", "-MF", "dep.d", "-c", "a.c"], ["-MD", "-MQ", "t$x", "-MFdep.d", "-c", "a.c"],
    ["-MD", "-c", "has space.c"], ["-MMD", "-c", "broken.c"], ["-MD", "-MF", "nowhere/dep.d", "-c", "a.c"],
    ["-MMD", "-MF", "/dev/null", "-c", "a.c"],
    # other doings
    ["-E", "a.c"], ["-E", "-P", "a.c", "-o", "a.i"], ["-M", "a.c"], ["-MM", "a.c"], ["-S", "a.c"],
    ["-S", "-O2", "a.c", "-o", "a.s"], ["-fsyntax-only", "a.c"], ["--version"], ["-dumpversion"],
    ["-print-file-name=libc.so"], ["-c", "a.c", "b.c"], ["-c", "asm.s"], ["-c", "asm2.S"], ["-c", "data.c"],
    ["-c", "a.c", "-save-temps"], ["-c", "-fstack-usage", "a.c"], ["-c", "a.c", "-o", "/dev/null"],
    ["main.c", "-o", "program"], ["main.c"], ["-Q", "--help=warnings"],
    # files of arguments
    ["@args"], ["@args2"], ["@nowhere", "-c", "a.c"],
    # links
    ["-shared", "-fPIC", "a.c", "-o", "m.so"], ["-shared", "-fPIC", "a.c", "b.o", "-lm", "-o", "m.so"],
    ["-shared", "pic.o", "-o", "m.so"], ["-shared", "pic.o", "b.o", "-lm", "-lc", "-o", "m.so"],
    ["-o", "m.so", "pic.o", "-shared"], ["-shared", "pic.o", "-L.", "-lown", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-soname,m.so.1", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-O1", "-Wl,-Bsymbolic-functions", "-g", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-rpath,/x", "-Wl,--as-needed", "-lm", "-o", "m.so"], ["-shared", "pic.o"],
    ["-shared", "pic.o", "-Wl,--version-script=ver.map", "-o", "m.so"],
    ["-shared", "calls.c", "-Wl,-z,defs", "-o", "m.so"], ["-shared", "calls.c", "-o", "m.so"],
    ["-shared", "pic.o", "-lnowhere", "-o", "m.so"], ["-shared", "nowhere.o", "-o", "m.so"],
    ["-shared", "-nostdlib", "pic.o", "-o", "m.so"], ["-shared", "-fPIC", "broken.c", "-o", "m.so"],
    ["-shared", "-fPIC", "-Wall", "warn.c", "-o", "m.so"], ["-shared", "-flto", "-fPIC", "a.c", "-o", "m.so"],
    ["-shared", "pic.o", "-o", "nowhere/m.so"], ["pic.o", "-o", "program"],
    # files of arguments in files of arguments
    ["@args3"], ["@args3", "-o", "o.o"], ["@args6"], ["@unended", "-c"], ["@itself"], ["@dir", "-c", "a.c"], ["@"],
    # odd outputs
    ["-o", "o.o", "-o", "p.o", "-c", "a.c"], ["-o=o.o", "-c", "a.c"], ["-c", "a.c", "-o", ""], ["-c", "", "a.c"], [""],
    ["-c", "a.c", "-I", ""], ["-c", "a.c", "-o", "dir"], ["-c", "a.c", "-o", "dir/"], ["-c", "a.c", "-o", "-"],
    ["-c", "a.c", "-o", "a.c"], ["-c", "a.c", "-o", "./sub/../a.c"], ["-c", "a.c", "-o", "h.h"],
    ["-c", "a link.c", "-o", "a.c"], ["-shared", "pic.o", "-o", "pic.o"], ["-shared", "pic.o", "-o", "dir"],
    ["a.c", "b.c", "-c", "-o", "o.o"], ["-c", "dir"], ["-c", "a.c", "-MD", "-MF", "a.c"],
    ["-c", "a.c", "-MD", "-MF", "a.o"],
    # odd inputs
    ["-c", "a link.c"], ["-c", "base.c"], ["-c", "sub/../base.c"], ["-c", "pragma.c"], ["-Wall", "-c", "pragma.c"],
    ["-Wall", "-c", "line.c"], ["-c", "badline.c"], ["-MD", "-c", "sub/deep.c"],
    ["-MD", "-c", "sub/deep.c", "-o", "dir/d.o"], ["-c", "next.c"], ["-c", "error.c"], ["-c", "utf8.c"],
    ["-c", "bom.c"], ["-c", "quotes.c"], ["-MD", "-c", "odd$name.c"], ["-c", "back\\slash.c"], ["-c", "new\nline.c"],
    ["-c", "-dash.c"], ["-c", "./-dash.c"], ["-c", "done.i"], ["-fpreprocessed", "-c", "a.c"],
    ["-Wno-nothing-of-this-name", "-c", "broken.c"], ["-Wfatal-errors", "-c", "broken.c"],
    # odd dependency files
    ["-Wp,-MD,dep.d", "-c", "a.c"], ["-Wp,-MMD,dep.d,-MT,x", "-c", "a.c"], ["-MD", "-MF", "", "-c", "a.c"],
    ["-MD", "-MF", "a.d", "-MF", "b.d", "-c", "a.c"], ["-MMD", "main.c"],
    ["-MMD", "-shared", "-fPIC", "a.c", "-o", "m.so"], ["-MD", "-MG", "-c", "missing.c"], ["-MT", "x", "-c", "a.c"],
    ["-MD", "-c", "a.c", "-o", "x.y.o"], ["-MD", "-E", "a.c"], ["-MD", "-MF", "dir", "-c", "a.c"],
    ["-MD", "-MF", "-", "-c", "a.c"], ["-MD", "-c", "a.c", "-dumpbase", "zz"],
    # what it says of itself and of what it does
    ["-###", "-c", "a.c"], ["-v", "-c", "a.c"], ["-v"], ["--help"], ["-H", "-c", "a.c"],
    ["-dM", "-E", "-xc", "/dev/null"], ["-fdiagnostics-format=json", "-Wall", "-c", "warn.c"],
    ["-specs=spec", "-c", "a.c"], ["-B.", "-c", "a.c"], ["-save-temps=obj", "-c", "a.c", "-o", "dir/o.o"],
    ["-c", "a.c", "-fprofile-use"],
    # odd links
    ["-shared", "pic.o", "-Wl,-o,n.so", "-o", "m.so"], ["-shared", "pic.o", "-Wl,-o,n.so"],
    ["-shared", "-fPIC", "a.c", "asm.s", "-o", "m.so"], ["-shared", "-fPIC", "pic.o", "main.c", "-o", "m.so"],
    ["-shared", "pic.o", "pic.o", "-o", "m.so"], ["-shared", "text", "-o", "m.so"],
    ["-shared", "pic.o", "-Wl,-t", "-o", "m.so"], ["-shared", "pic.o", "-Wl,-Map=m.map", "-o", "m.so"],
    ["-shared", "pic.o", "-l:libown.a", "-L.", "-o", "m.so"],
    ["-shared", "pic.o", "-L", "nowhere", "-lm", "-o", "m.so"],
    ["-shared", "-Wl,-rpath,$ORIGIN", "pic.o", "-o", "m.so"],
    ["-shared", "-Wl,--no-such-option", "pic.o", "-o", "m.so"], ["-shared", "-Wl,--defsym,zz=5", "pic.o", "-o", "m.so"],
    ["-shared", "-s", "pic.o", "-o", "m.so"], ["-shared", "-pie", "pic.o", "-o", "m.so"],
    ["-r", "pic.o", "b.o", "-o", "r.o"], ["main.c", "a.c", "-lm", "-o", "program"], ["main.c", "-lnowhere"],
    ["-no-pie", "main.c", "-o", "program"],
]
# Compiler, words, standard input, variables.
SOURCE = b'#include "h.h"\nint f(void) { int unused; return H; }\n'
OTHERS = [
    *[("gcc", words, SOURCE, {}) for words in (
        ["-"], ["-E", "-"], ["-x", "c", "-"], ["-xc", "-E", "-"], ["-xc", "-dM", "-E", "-"], ["-xc", "-c", "-"],
        ["-xc", "-Wall", "-c", "-", "-o", "o.o"], ["-c", "-xc", "/dev/stdin", "-o", "o.o"],
        ["-include", "/dev/stdin", "-c", "b.c"])],
    *[("g++", words, b"", {}) for words in (
        ["-c", "cxx.cc"], ["-c", "a.c"], ["-Wall", "-c", "warn.c"], ["-shared", "-fPIC", "cxx.cc", "-o", "m.so"],
        ["-shared", "pic.o", "-o", "m.so"])],
    ("gcc", ["-c", "stamp.c"], b"", {"SOURCE_DATE_EPOCH": "1000000"}),
    *[("gcc", words, b"", variables)
      for variables in (
          {"LANG": "de_DE.UTF-8", "LC_ALL": ""}, {"LC_ALL": "C"}, {"SOURCE_DATE_EPOCH": "bad"}, {"COLUMNS": "30"},
          {"GCC_COLORS": "error=01;35"}, {"CPATH": "inc"}, {"LIBRARY_PATH": "."}, {"TMPDIR": "/nowhere"},
          {"DEPENDENCIES_OUTPUT": "deps x"}, {"COMPILER_PATH": "/nowhere"}, {"GCC_EXEC_PREFIX": "/nowhere/"})
      for words in (["-Wall", "-c", "warn.c"], ["-c", "broken.c"], ["-c", "uses.c"],
                    ["-shared", "pic.o", "-lown", "-o", "m.so"])],
]


def compare(service, place, lines):
    """What differs."""
    failures = []
    for compiler, words, stdin, variables in lines:
        real = place.run([compiler, *words], stdin=stdin, env={**os.environ, **variables})
        command = service.cc(*([] if compiler == "gcc" else [compiler]), *words)
        for turn in ("first", "second"):
            ours = place.run(command, stdin=stdin, env={**service.environment, **variables})
            for what, one, other in zip(("exit code", "files", "standard output", "standard error"), ours, real):
                if isinstance(one, bytes):
                    one, other = comparable(one), comparable(other)
                if one != other:
                    failures.append(f"{compiler} {words} {variables}, {turn} time, {what}: "
                                    f"{one!r} instead of {other!r}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    own_environment()
    lines = [("gcc", words, b"", {}) for words in LINES] + OTHERS
    with tempfile.TemporaryDirectory(prefix="jitc-cc-") as name:
        directory = pathlib.Path(name)
        service = Service(binaries, directory)
        service.environment["JITC_MAX_COMPILERS"] = "2"
        places = [Place(directory / "one"), Place(directory / "other")]
        service.start()
        try:
            # Two at once, each in a directory of its own.
            with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
                parts = [pool.submit(compare, service, place, lines[i::len(places)]) for i, place in enumerate(places)]
                failures = [failure for part in parts for failure in part.result()]
            seen = service.counters()
        finally:
            service.stop()
    print(f"{len(lines)} command lines, each twice: {seen['cc_requests']} understood, {seen['cc_hits']} of them hits, "
          f"{seen['cc_passed']} passed on")
    if min(seen["cc_hits"], seen["cc_passed"]) < 100:
        failures.append(f"too few hits, or too few commands that were passed on: {seen}")
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
