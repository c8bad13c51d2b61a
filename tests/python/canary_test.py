"""Modules of problems are called before anybody gets them: right ones pass, wrong ones are refused by name.

usage: canary_test.py BIN_DIRECTORY [--corpus=FLAGS | --cost=NAMES | unittest's arguments]

With --corpus, every problem of the corpus is compiled in every way of printing with each compiler and each of these
flags (comma separated, as -O0,-O3), and none may be refused. With --cost, it is measured how much longer a cold compile
of these problems takes.
"""
import hashlib
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time
import unittest

import jitc

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "faults"))
from harness import Node  # noqa: E402

CORPUS = HERE.parent.parent / "data" / "corpus"
NAMES = sorted(path.parent.name for path in CORPUS.glob("*/problem.json"))
LARGE = ("level_sets_16", "hyperelastic_neohookean_3d", "arrhenius_vep_3d", "ti_newton_3d")
STRICT = ("-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
WRAPPER = """#!/bin/sh
# A compiler that changes what it compiles: the text that the preprocessor left here, when it comes to that.
case " $* " in *" cpp-output "*) %s ;; esac
exec gcc "$@"
"""


def problem(name):
    return jitc.Problem.from_json((CORPUS / name / "problem.json").read_text())


def compile_in_child(node, name, settings, **options):
    """In a process of its own, which holds no module yet: "OK", or the error."""
    done = subprocess.run([sys.executable, "-B", str(HERE), str(node.bin), "--child", name, json.dumps(settings),
                           json.dumps(options)], env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def child(name, settings, options):
    try:
        with jitc.Context(settings=json.loads(settings)) as context:
            context.compile(problem(name), **json.loads(options))
        print(json.dumps("OK"))
    except jitc.Error as error:
        print(json.dumps({"kind": error.kind, "thing": error.thing, "message": error.message}))


def name_of(path):
    """In an artifact's manifest, which stands before the footer."""
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[-104 + 64:-104 + 72])
    return json.loads(data[-104 - size:-104])["name"]


def exchanged(ours, theirs):
    """The artifact `theirs` under the key of `ours`, as whole as any (common/artifact.h)."""
    key = ours[-104 + 16:-104 + 48]
    body = theirs[:-32]
    body = body[:-72 + 16] + key + body[-72 + 48:]
    return body + hashlib.sha256(body).digest()


class Canary(unittest.TestCase):
    def setUp(self):
        self.node = Node(sys.argv[0])
        self.addCleanup(self.node.__exit__)
        for key in ("JITC_RUNTIME_DIR", "JITC_STORE"):
            os.environ[key] = self.node.environment[key]

    def start(self, **settings):
        done = self.node.jitc("daemon", "start", further=settings)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_stats(self, **expected):
        stats = self.node.stats()
        self.assertEqual({name: stats[name] for name in expected}, expected)

    def test_a_wrong_entry_is_refused_by_its_name_and_not_remembered(self):
        path = self.node.write("wrapped-cc", WRAPPER % (
            r"sed -i '/_g3_0_0(/,/^}/s/out\[5\] = \(.*\);/out[5] = (\1) * 1.0000001 + 1e-7;/' source.i"))
        path.chmod(0o755)
        self.start(JITC_COMPILERS=str(path))
        arguments = {"compiler": str(path), "flags": [*STRICT]}
        with jitc.Context() as context, self.assertRaises(jitc.MiscompiledError) as caught:
            context.compile(problem("vp_stokes_2d"), **arguments)
        error = caught.exception
        self.assertEqual(error.thing, "vp_stokes_2d: g3[0][1][0][1] of block velocity-velocity (g3_0_0)")
        self.assertRegex(error.message, r"at point 1 it gives .* instead of .*, which may differ by .*e-")
        self.assertIn("canary=off", error.remedy)
        self.assert_stats(canaries_run=1, canaries_refused=1, published=0)
        self.assertEqual(list(self.node.store.glob("v1/??/*.so")), [])
        capsule = json.loads(pathlib.Path(error.details["capsule"]).read_text())
        self.assertEqual((capsule["error"]["kind"], capsule["command"][0]), ("MISCOMPILED", str(path)))
        self.assertIn("g3_0_0", capsule["request"]["code"])
        # Who wants the module as it is gets it.
        with jitc.Context(settings={"canary": "off"}) as context:
            context.compile(problem("vp_stokes_2d"), **arguments)
        self.assert_stats(canaries_run=1, published=1)
        # Who does not is not served with it: a process that asks anew has it refused, and compiled anew, which is wrong.
        told = compile_in_child(self.node, "vp_stokes_2d", {}, **arguments)
        self.assertEqual((told["kind"], told["thing"]), ("MISCOMPILED", error.thing))
        self.assert_stats(canaries_run=3, canaries_refused=3, quarantined=1, published=1)

    def test_flags_that_let_values_differ_leave_it_out(self):
        self.start()
        checks = 0
        for flags, setting, checked in ((["-ffast-math"], "auto", 0), (["-O1"], "off", 0), (["-O1"], None, 1),
                                        (["-O1", "-ffinite-math-only"], "on", 1)):
            checks += checked
            with jitc.Context() as context:
                context.compile(problem("poisson_nl_2d"), flags=flags, abi_tag=f"{flags} {setting}",
                                **({"canary": setting} if setting else {}))
            self.assert_stats(canaries_run=checks)
        with jitc.Context() as context, self.assertRaises(jitc.UsageError):
            context.compile(problem("poisson_nl_2d"), canary="perhaps")

    def test_a_root_reads_what_was_checked_and_asks_for_the_rest(self):
        self.start()
        self.assertEqual(compile_in_child(self.node, "poisson_nl_2d", {}), "OK")
        self.assertEqual(compile_in_child(self.node, "poisson_nl_2d", {}), "OK")
        self.assert_stats(canaries_run=1, hits_direct=1, hits=1)
        self.assertEqual(compile_in_child(self.node, "poisson_nl_3d", {"canary": "off"}), "OK")
        self.assert_stats(canaries_run=1)
        for runs in (2, 2):  # what has passed is not checked twice
            self.assertEqual(compile_in_child(self.node, "poisson_nl_3d", {}), "OK")
            self.assert_stats(canaries_run=runs, compiles_started=2)
        self.node.jitc("daemon", "stop")  # nobody is there to check it
        self.assertEqual(compile_in_child(self.node, "poisson_nl_3d", {"autostart": "0"}), "OK")

    def test_what_the_store_has_is_checked_once_on_each_cpu(self):
        self.start()
        arguments = {"compiler": "gcc", "flags": ["-O1"]}
        for name in ("poisson_nl_2d", "poisson_nl_3d"):
            self.assertEqual(compile_in_child(self.node, name, {}, **arguments), "OK")
        self.node.jitc("daemon", "stop")
        (self.node.run_directory / "passed").unlink()  # as that of another node
        self.start()
        for _ in range(2):
            self.assertEqual(compile_in_child(self.node, "poisson_nl_2d", {}, **arguments), "OK")
        self.assert_stats(hits=2, canaries_run=1, canaries_refused=0)
        self.node.jitc("daemon", "stop")
        self.start()
        self.assertEqual(compile_in_child(self.node, "poisson_nl_2d", {}, **arguments), "OK")
        self.assert_stats(hits=1, canaries_run=0)

        # Another module under its key, with a footer that verifies.
        paths = {name_of(path): path for path in self.node.store.glob("v1/??/*.so")}
        ours, theirs = paths["poisson_nl_2d"], paths["poisson_nl_3d"]
        ours.chmod(0o600)
        ours.write_bytes(exchanged(ours.read_bytes(), theirs.read_bytes()))
        self.node.jitc("daemon", "stop")
        self.start()
        for _ in range(2):
            self.assertEqual(compile_in_child(self.node, "poisson_nl_2d", {}, **arguments), "OK")
        self.assert_stats(canaries_run=2, canaries_refused=1, compiles_started=1, quarantined=1, hits=1)


def check_corpus(all_flags):
    """Every problem, in every way; no two have one key."""
    ways = [{"sharing": "1"}, {"sharing": "auto", "lazy_arms": 1}, {"sharing": "1", "layout": "fused"},
            {"sharing": "1", "layout": "batch"}, {"sharing": "1", "int_bits": 64, "runtime_offsets": 1},
            {"sharing": "1", "types": "plain"}]
    with Node(sys.argv[0]) as node:
        for key in ("JITC_RUNTIME_DIR", "JITC_STORE"):
            os.environ[key] = node.environment[key]
        done = node.jitc("daemon", "start")
        assert done.returncode == 0, done.stderr
        compiles = 0
        with jitc.Context() as context:
            for name in NAMES:
                for flags in all_flags:
                    for compiler in ("clang", "gcc"):
                        for way in ways + ([] if name in LARGE else [{"sharing": "0"}]):
                            context.compile(problem(name), compiler=compiler, flags=[*STRICT, *flags.split()], **way)
                            compiles += 1
        stats = node.stats()
    assert stats["compiles_started"] == compiles, stats
    assert stats["canaries_run"] == compiles and stats["canaries_refused"] == stats["canaries_unfinished"] == 0, stats
    print(f"{compiles} modules passed")


def measure_cost(names, pairs=20):
    """Cold compiles by the embedded compiler with and without a canary, in turns: their medians and the ratio's."""
    with Node(sys.argv[0]) as node:
        for key in ("JITC_RUNTIME_DIR", "JITC_STORE"):
            os.environ[key] = node.environment[key]
        done = node.jitc("daemon", "start")
        assert done.returncode == 0, done.stderr
        with jitc.Context() as context:
            context.compile(problem("poisson_nl_2d"))  # the daemon is connected to, its spares are there
            for name in names:
                seconds = {"off": [], "auto": []}
                for pair in range(pairs):
                    for canary in seconds:
                        asked = problem(name)
                        begin = time.perf_counter()
                        context.compile(asked, canary=canary, abi_tag=f"{pair} {canary}")
                        seconds[canary].append(time.perf_counter() - begin)
                off, auto = (statistics.median(one) for one in seconds.values())
                ratio = statistics.median(b / a for a, b in zip(*seconds.values()))
                print(f"{name}: {off * 1e3:.1f} ms without, {auto * 1e3:.1f} ms with, ratio {ratio:.3f}")


if __name__ == "__main__":
    sys.argv.pop(0)
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    elif sys.argv[1:] and sys.argv[1].startswith("--corpus="):
        check_corpus(sys.argv[1].partition("=")[2].split(","))
    elif sys.argv[1:] and sys.argv[1].startswith("--cost="):
        measure_cost(sys.argv[1].partition("=")[2].split(","))
    else:
        unittest.main(argv=[str(HERE), *sys.argv[1:]])
