"""Every problem of the corpus from SymPy's srepr to C text that agrees with the oracle; the text is the same bytes
whatever the hash seed. Without a daemon: gcc compiles the text.

    sympy_corpus_test.py             checks all problems
    sympy_corpus_test.py --digests   prints a digest of each problem's text
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

import corpus

LARGE = "level_sets_16", "arrhenius_vep_3d", "level_sets_4"  # as trees gcc takes long for them


def check(name, text, directory, *flags):
    """The problem's check script; None when every value agrees."""
    source = pathlib.Path(directory) / "emitted.c"
    source.write_text(text)
    done = subprocess.run([sys.executable, str(corpus.FOLDER / "check_c.py"), str(corpus.FOLDER / name),
                           "--c", str(source), "--cflags=-O0 -std=c99 -pedantic -Wall -Wextra -Werror", *flags],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout.strip()


def guarded(name):
    return "out_guarded" in (corpus.FOLDER / name / "oracle.json").read_text()


def digests():
    for name in corpus.NAMES:
        problem = corpus.problem(name)
        texts = "".join(problem.emit(sharing=sharing) for sharing in ("1", "auto"))
        print(name, hashlib.sha256(texts.encode()).hexdigest())


def same_bytes_whatever_the_hash_seed():
    told = {}
    for seed in "0", "1", "2", "random":
        done = subprocess.run([sys.executable, __file__, "--digests"], env={**os.environ, "PYTHONHASHSEED": seed},
                              stdout=subprocess.PIPE, text=True, check=True)
        assert len(done.stdout.splitlines()) == len(corpus.NAMES), done.stdout
        told[seed] = done.stdout
    return None if len(set(told.values())) == 1 else f"the text depends on PYTHONHASHSEED: {told}"


def main():
    failures = []

    def report(what, failure):
        print(f"{what}: {'ok' if failure is None else failure}", flush=True)
        if failure is not None:
            failures.append(what)

    with tempfile.TemporaryDirectory(prefix="jitc-sympy-") as directory:
        for name in corpus.NAMES:
            problem = corpus.problem(name)
            for sharing in ("1",) if name in LARGE else ("0", "1"):
                report(f"{name}, sharing {sharing}", check(name, problem.emit(sharing=sharing), directory))
            if guarded(name):
                text = corpus.problem(name, guard=1e-36).emit()
                report(f"{name}, guarded", check(name, text, directory, "--guarded"))
        report("integer powers as products", check("powerlaw_stokes_3d", corpus.problem(
            "powerlaw_stokes_3d", products=True).emit(), directory))
    report("hash seeds", same_bytes_whatever_the_hash_seed())
    return 1 if failures or not corpus.NAMES else 0


if __name__ == "__main__":
    sys.exit(digests() if sys.argv[1:] == ["--digests"] else main())
