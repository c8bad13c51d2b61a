#!/usr/bin/python3
"""The memory model beside what compilers take: each text by a daemon that knows nothing but its table.

    prediction.py BIN SCRATCH [TEXT...]     ./run bench prediction

One line a compile: size, compiler, level, predicted, measured peak, predicted/peak; then the quantiles. A text's name is
that of a problem of the corpus, with `.shared` for its shared form, or `tiny`.
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"
TINY = "double f(double x) { return x * x; }\n"
LEVELS = [("gcc", "-O0"), ("gcc", "-O2"), ("gcc", "-O3"), ("clang", "-O0"), ("clang", "-O3")]
MIB = 1 << 20


def tree_of(problem):
    plain = CORPUS / problem / "tree.c"
    return plain.read_text() if plain.exists() else gzip.open(f"{plain}.gz", "rt").read()


def write_texts(binaries, scratch, names):
    """Names of all texts, or those asked for; each as a file of the scratch directory."""
    problems = sorted(entry.name for entry in CORPUS.iterdir() if (entry / "problem.json").exists())
    names = names or ["tiny"] + problems + [f"{problem}.shared" for problem in problems]
    for name in names:
        path = scratch / f"{name}.c"
        problem, shared = name.removesuffix(".shared"), name.endswith(".shared")
        path.write_text(TINY if name == "tiny" else tree_of(problem))
        if shared:
            text = subprocess.run([binaries / "jitc", "share", path], check=True, capture_output=True, text=True).stdout
            path.write_text(text)
    return names


def measure(binaries, scratch, name, compiler, level):
    """The manifest of one compile by a daemon of its own; None when there is none."""
    place = scratch / "daemon"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JITC_")}
    environment |= {"JITC_RUNTIME_DIR": str(place / "run"), "JITC_STORE": str(place / "store")}

    def jitc(*arguments):
        return subprocess.run([binaries / "jitc", *arguments], env=environment, capture_output=True, text=True)

    submitted = jitc("submit", "--json", "--share=0", f"--cc={compiler}", f"--flag={level}", scratch / f"{name}.c")
    shown = jitc("cache", "show", json.loads(submitted.stdout)["key"]) if submitted.returncode == 0 else None
    jitc("daemon", "stop")
    shutil.rmtree(place, ignore_errors=True)
    if shown is None:
        print(f"{name} {compiler} {level}: {submitted.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(shown.stdout)


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def summarise(what, ratios):
    if ratios:
        print(f"{what:10} {len(ratios):4} compiles, predicted/measured: least {min(ratios):.2f}, "
              f"p5 {quantile(ratios, 0.05):.2f}, p50 {quantile(ratios, 0.5):.2f}, p95 {quantile(ratios, 0.95):.2f}")


def main():
    binaries, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    ratios = {level: [] for level in LEVELS}
    for name in write_texts(binaries, scratch, sys.argv[3:]):
        size = (scratch / f"{name}.c").stat().st_size
        for compiler, level in LEVELS:
            manifest = measure(binaries, scratch, name, compiler, level)
            if manifest is None:
                continue
            predicted, peak = manifest["predicted_bytes"], manifest["peak_bytes"]
            ratios[compiler, level].append(predicted / peak)
            print(f"{name:32} {size:9} {compiler:6} {level} {predicted / MIB:8.1f} {peak / MIB:8.1f} "
                  f"{predicted / peak:6.2f}", flush=True)
    for (compiler, level), some in ratios.items():
        summarise(f"{compiler} {level}", some)
    summarise("all", sum(ratios.values(), []))


if __name__ == "__main__":
    main()
