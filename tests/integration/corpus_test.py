#!/usr/bin/python3
"""Every problem of the corpus goes through `jitc submit`, and the artifact's functions are checked against the oracle.

    corpus_test.py --bin BUILD/bin --cc clang --opt -O3 [--only NAME | --skip NAME]

A daemon with a fresh store and runtime directory is started and stopped. Exit status 1 names what failed.
"""
import argparse
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"


def source_of(problem, directory):
    """The problem's C text as a plain file."""
    plain = problem / "tree.c"
    if plain.exists():
        return plain
    target = directory / (problem.name + ".c")
    target.write_bytes(gzip.decompress((problem / "tree.c.gz").read_bytes()))
    return target


def submit(jitc, source, arguments):
    # The texts as they are: what sharing makes of them is compared elsewhere.
    command = [jitc, "submit", "--share=0", *arguments, "--flag=-g0", "--flag=-std=gnu11", "--flag=-ffp-contract=off",
               "--flag=-fno-math-errno", str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None, f"jitc submit exited with {done.returncode}: {done.stderr.strip()}"
    return done.stdout.strip(), None


def check(problem, artifact):
    """The problem's own check script; None when every value agrees."""
    done = subprocess.run([sys.executable, str(CORPUS / "check_c.py"), str(problem), "--c", artifact],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--opt", required=True)
    parser.add_argument("--only")
    parser.add_argument("--skip")
    options = parser.parse_args()
    problems = sorted(p.parent for p in CORPUS.glob("*/problem.json"))
    problems = [p for p in problems if p.name != options.skip and options.only in (None, p.name)]
    if not problems:
        print("no problem was selected")
        return 1
    jitc = os.path.join(options.bin, "jitc")
    failures = []
    with tempfile.TemporaryDirectory(prefix="jitc-corpus-") as name:
        directory = pathlib.Path(name)
        for setting in [name for name in os.environ if name.startswith(("JITC_", "XDG_"))]:
            del os.environ[setting]
        os.environ.update(JITC_RUNTIME_DIR=str(directory / "run"), JITC_STORE=str(directory / "store"),
                          JITC_CFLAGS=options.opt, HOME=name)
        subprocess.run([jitc, "daemon", "start"], check=True, stdout=subprocess.DEVNULL)
        try:
            for problem in problems:
                artifact, failure = submit(jitc, source_of(problem, directory), [f"--cc={options.cc}"])
                failure = failure or check(problem, artifact)
                print(f"{problem.name}: {'ok' if failure is None else failure}", flush=True)
                if failure is not None:
                    failures.append(problem.name)
            stats = json.loads(subprocess.run([jitc, "stats", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)
            if stats["compiles_started"] != len(problems):
                failures.append(f"{stats['compiles_started']} compilers started for {len(problems)} sources")
        finally:
            subprocess.run([jitc, "daemon", "stop"], check=True)
    print(f"{len(problems) - len(failures)} of {len(problems)} problems agree with the oracle", *failures, sep="\n  ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
