#!/usr/bin/python3
"""`jitc cc`: what is kept, merging, hits, directories, kills, limits and missing daemons, by the counters and beside
the compiler that it stands for (cc_lines_test.py has its command lines).

    cc_test.py --bin BUILD/bin
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from cc_place import FILES, Gate, Place, Service, own_environment

failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(f"{what}: {got!r} instead of {wanted!r}")


@contextlib.contextmanager
def changed(service, what, **wanted):
    before = service.counters()
    yield
    after = service.counters()
    for name, difference in wanted.items():
        expect(f"{what}: {name}", after[name] - before[name], difference)


def what_is_kept(service, place):
    def cc(*words, **more):
        return place.run(service.cc(*words), env={**service.environment, **more})

    place.add("k.c", "int k(void) { return 1; }\n")
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
    place.add("k.c", "int k(void) { return 2; }\n")
    with changed(service, "another text", cc_hits=0, compiles_started=1):
        expect("another object", cc("-O2", "-c", "k.c")[1] != first[1], True)
    # Comments decide about warnings.
    place.add("k.c", FILES["fall.c"])
    expect("no warning", cc("-Wextra", "-c", "k.c")[3], b"")
    place.add("k.c", FILES["fall.c"].replace("fallthrough", "carry over  "))
    expect("a warning", b"may fall through" in cc("-Wextra", "-c", "k.c")[3], True)
    with changed(service, "a warning from the store", cc_hits=1):
        expect("a warning again", b"may fall through" in cc("-Wextra", "-c", "k.c")[3], True)
    # A header that begins to be found earlier.
    place.add("k.c", "#include <h2.h>\nint k(void) { return two(); }\n")
    place.directory.joinpath("early").mkdir()
    before = cc("-Iearly", "-Iinc", "-c", "k.c")
    place.add("early/h2.h", "static inline int two(void) { return 22; }\n")
    expect("another header", cc("-Iearly", "-Iinc", "-c", "k.c")[1] != before[1], True)
    # Links: by contents, and a library that begins to be found earlier.
    whole = ["-Wl,--whole-archive", "-lown", "-Wl,--no-whole-archive"]
    link = ["-shared", "pic.o", "-Learly", "-L.", "-lown", *whole, "-o", "l.so"]
    place.run(["gcc", "-fPIC", "-shared", "b.c", "-o", "x"])
    with changed(service, "a link", cc_requests=1, compiles_started=1):
        linked = cc(*link)
    expect("it links", linked[0], 0)
    with changed(service, "a link again", cc_hits=1, compiles_started=0):
        expect("the same", cc(*link), linked)
    subprocess.run(["gcc", "-fPIC", "-shared", "b.c", "-o", "early/libown.so"], cwd=place.directory, check=True)
    place.given["early/libown.so"] = place.directory.joinpath("early/libown.so").read_bytes()
    with changed(service, "another library", cc_hits=0, compiles_started=1):
        expect("another link", cc(*link)[1] != linked[1], True)


def what_a_hit_must_not_miss(service, place):
    """Each time the compiler's own answer, though the one before would look right."""
    def compare(what, *words, **more):
        environment = {**service.environment, **more}
        expect(what, place.run(service.cc(*words), env=environment), place.run(["gcc", *words], env=environment))

    def make(name, *words):
        subprocess.run(["gcc", *words, "-o", name], cwd=place.directory, check=True)
        place.given[name] = place.directory.joinpath(name).read_bytes()

    for name in ("s1", "s2", "early", "late"):
        place.directory.joinpath(name).mkdir(exist_ok=True)
    place.add("uses_g2.c", "int g2(int); int h(void) { return g2(1); }\n")
    make("uses_g2.o", "-fPIC", "-c", "uses_g2.c")
    for name in ("s1/libbare.so", "s2/libbare.so"):  # which the output names by its path
        make(name, "-shared", "-fPIC", "b.c")
        compare(f"a library without a name of its own, {name}", "-shared", "uses_g2.o", name, "-o", "m.so")
    place.add("late/v.h", "#define V 1\n")
    place.add("other.h", "#define V 2\n")
    place.add("v.c", "#include \"v.h\"\nint v(void) { return V; }\n")
    words = ["-Iearly", "-Ilate", "-O1", "-g", "-fPIC", "-c", "v.c"]
    compare("before there is a precompiled header", *words)
    make("early/v.h.gch", "-O1", "-g", "-fPIC", "-x", "c-header", "other.h")
    compare("a precompiled header of another directory", *words)
    place.directory.joinpath("linked").symlink_to("inc")
    for name in ("inc", "linked"):
        compare(f"debug in {name}, by its logical name", "-g", "-c", "b.c", JITC_CC_RELAXED_DEBUG="0",
                PWD=f"{place.directory}/{name}/..")
    place.add("blob", "one\n")
    place.add("escaped.c", "asm(\".section .rodata\\n.in\\143bin \\\"blob\\\"\\n.previous\");\nint x;\n")
    compare("a directive in escapes", "-c", "escaped.c")
    place.add("blob", "two\n")
    compare("a directive in escapes, of another file", "-c", "escaped.c")
    for words in (["-c", "b.c", "-o", "private"], ["-shared", "pic.o", "-o", "private"]):
        for command in (["gcc"], service.cc()):
            private = place.directory / "private"
            private.touch(mode=0o600)
            os.link(private, place.directory / "its other name")
            made = place.run([*command, *words], env=service.environment)[1]
            modes = [made[name][0] for name in ("private", "its other name")]
            expect(f"{command} fills an empty file, {words}", modes, [0o600 if "-c" in words else 0o711] * 2)
    place.add("broken.o", "old\n")
    compare("a failure with -pipe", "-pipe", "-MMD", "-c", "broken.c")


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


def wait_for(what, condition):
    """For a state that lasts until the test ends it."""
    end = time.monotonic() + Gate.LONGEST
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come")
        time.sleep(0.05)


def start(service, place, *words, **more):
    return subprocess.Popen(service.cc(*words), cwd=place.directory, **{"env": service.environment, **more})


def closed_streams(service, place):
    """A compiler that cannot say its warning fails."""
    for stream in range(3):
        def close(stream=stream):
            os.close(stream)
        words = ["-Wall", "-c", "warn.c"]
        codes = [subprocess.run([*command, *words], cwd=place.directory, env=service.environment, preexec_fn=close,
                                stderr=None if stream == 2 else subprocess.DEVNULL).returncode
                 for command in (["gcc"], service.cc())]
        expect(f"stream {stream} is closed", codes[1], codes[0])
    place.directory.joinpath("warn.o").unlink(missing_ok=True)


def merging(service, place, directory):
    gate = Gate(directory / "merging")
    environment = {**service.environment, "PATH": gate.path}
    place.add("merged.c", "int merged;\n")
    asked = service.counters()["cc_requests"]
    with changed(service, "eight at once", cc_requests=8, cc_hits=0, compiles_started=1):
        running = [start(service, place, "-c", "merged.c", "-o", f"s{i}.o", env=environment) for i in range(8)]
        gate.await_beginning()
        wait_for("eight requests", lambda: service.counters()["cc_requests"] == asked + 8)
        gate.open()
        expect("eight ends", [one.wait() for one in running], [0] * 8)
    expect("one object", len({place.directory.joinpath(f"s{i}.o").read_bytes() for i in range(8)}), 1)
    for i in range(8):
        place.directory.joinpath(f"s{i}.o").unlink()


def ended_clients(service, place, directory):
    """One of two that wait for the same is ended: the other one gets the object."""
    for ending in (signal.SIGKILL, signal.SIGINT):
        gate = Gate(directory / ending.name)
        environment = {**service.environment, "PATH": gate.path}
        place.add("ended.c", f"int ended_by_{ending.name};\n")
        asked = service.counters()["cc_requests"]
        with changed(service, ending.name, cc_requests=2, cc_hits=0, compiles_started=1):
            first = start(service, place, "-c", "ended.c", "-o", "k1.o", env=environment)
            gate.await_beginning()
            second = start(service, place, "-c", "ended.c", "-o", "k2.o", env=environment)
            wait_for("two requests", lambda: service.counters()["cc_requests"] == asked + 2)
            first.send_signal(ending)
            expect(f"the end by {ending.name}", first.wait(), -ending)
            gate.open()
            expect("the other one's end", second.wait(), 0)
        expect("no half output", place.directory.joinpath("k1.o").exists(), False)
        place.directory.joinpath("k2.o").unlink()
        expect("nothing is left over", [name for name in place.names() if name not in place.given], [])


def turns(service, place):
    """Who has a turn waits for its source until it is ended; then the next one's turn comes."""
    for ending in (signal.SIGKILL, signal.SIGINT):
        passed = start(service, place, "-E", "-xc", "-", "-o", "/dev/null", stdin=subprocess.PIPE,
                       start_new_session=True)
        wait_for("a turn", lambda: any(job["phase"] == "running" for job in service.jobs()))
        waiting = start(service, place, "-S", "b.c", "-o", "/dev/null")
        wait_for("a queue", lambda: any(job["phase"] == "queued" for job in service.jobs()))
        expect("it waits", waiting.poll(), None)
        if ending == signal.SIGINT:
            os.killpg(passed.pid, ending)  # as a terminal does
        else:
            passed.send_signal(ending)  # its compiler's end follows
        expect(f"the end by {ending.name}", passed.wait(), -ending)
        passed.stdin.close()
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
    for command in ([str(links / "jitc-cc")], ["gcc"], service.cc("gcc"), service.cc("/usr/bin/gcc")):
        expect(f"{command}", place.run([*command, "-O1", "-c", "a.c"], env=environment), real)
    # Compilers that are not GCC's own drivers.
    for compiler in ("clang-19", "mpicc.openmpi"):
        for words in (["-O1", "-c", "a.c"], ["-Wall", "-c", "warn.c"], ["-c", "broken.c"],
                      ["-shared", "pic.o", "-o", "m.so"]):
            if shutil.which(compiler):
                with changed(service, f"{compiler} {words}", cc_requests=0, cc_passed=1):
                    ours = place.run(service.cc(compiler, *words), env=environment)
                expect(f"{compiler} {words}", ours, place.run([compiler, *words]))
    # A compiler that is a script which comes back here.
    script = directory / "round"
    script.write_text(f'#!/bin/sh\nexec "{service.jitc}" cc "$0" "$@"\n')
    script.chmod(0o755)
    expect("a round trip ends", place.run([service.jitc, "cc", str(script), "-c", "a.c"], env=environment)[0], 2)
    unknown = place.run(service.cc("-c", "a.c"), env={**environment, "JITC_CC_COMPILER": "no-such-compiler"})
    expect("no compiler", (unknown[0], b"no-such-compiler" in unknown[3]), (2, True))


def absent_daemon(service, place):
    for words in (["-O2", "-c", "a.c"], ["-E", "a.c"], ["-c", "broken.c"], ["-shared", "pic.o", "-o", "m.so"]):
        ours = place.run(service.cc(*words), env=service.environment)
        expect(f"{words} without a daemon", ours, place.run(["gcc", *words]))
    # One that cannot be started.
    broken = {**service.environment, "JITC_AUTOSTART": "1", "JITC_RUNTIME_DIR": "/dev/null/run"}
    expect("no daemon can be", place.run(service.cc("-c", "a.c"), env=broken), place.run(["gcc", "-c", "a.c"]))
    needs = {**service.environment, "JITC_REQUIRE_DAEMON": "1"}
    needed = place.run(service.cc("-c", "a.c"), env=needs)
    expect("a daemon is required", (needed[0] != 0, needed[1]), (True, {}))


def out_of_memory(service, place, directory):
    small = Service("", directory / "small")
    small.jitc = service.jitc
    small.environment.update(JITC_MEMORY_BUDGET="130M")
    place.add("large.cc", "#include <regex>\n#include <functional>\n#include <map>\n"
                          "bool f() { return std::regex_match(\"a\", std::regex(\"a+b*\")); }\n")
    small.start()
    try:
        code, made, _, said = place.run(small.cc("-O2", "-c", "large.cc"), env=small.environment)
        expect("out of memory", (code, made, b"OUT_OF_MEMORY" in said, b"JITC_SHARE" in said), (1, {}, True, False))
        expect("nothing ran beyond the budget", small.counters()["cc_passed"], 0)
    finally:
        small.stop()


def killed_daemon(service, place, directory):
    gate = Gate(directory / "killed")
    place.add("left.c", "int left;\n")
    real = place.run(["gcc", "-c", "left.c"])
    running = start(service, place, "-c", "left.c", env={**service.environment, "PATH": gate.path})
    gate.await_beginning()
    os.kill(int((directory / "run" / "jitcd.lock").read_text().split()[0]), signal.SIGKILL)
    gate.open()
    expect("the end after the daemon's", running.wait(), 0)
    expect("the object", place.directory.joinpath("left.o").read_bytes(), real[1]["left.o"][1])
    place.directory.joinpath("left.o").unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    own_environment()
    with tempfile.TemporaryDirectory(prefix="jitc-cc-") as name:
        directory = pathlib.Path(name)
        one, other = Place(directory / "one"), Place(directory / "other")
        service = Service(binaries, directory)
        absent_daemon(service, one)
        service.start()
        try:
            what_is_kept(service, one)
            what_a_hit_must_not_miss(service, one)
            directories(service, one, other)
            umasks(service, one)
            closed_streams(service, one)
            merging(service, one, directory)
            ended_clients(service, one, directory)
            turns(service, one)
            names_and_links(service, one, directory)
            out_of_memory(service, one, directory)
            killed_daemon(service, one, directory)
        finally:
            service.stop()
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
