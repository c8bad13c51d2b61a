#!/usr/bin/python3
"""Every problem's C text against its shared form, bit by bit.

    share_bits_test.py --bin BUILD/bin [--only NAME] [--least-bytes N] [--most-bytes N] [--compiler gcc ...] [--points 5000]

Both texts are compiled by each compiler with the same flags and called at the same random points, among them NaN,
infinities, zeros of both signs, subnormal numbers and ties; any NaN equals any NaN. The shared text must agree with the
oracle (check_c.py), too, and sharing it again must change nothing. Exit status 1 names what differs.

C leaves the sign of fmax(+0, -0) open, and with -fno-trapping-math gcc exchanges the arguments of fmax as its own
numbering of values has it, so that any change of a text may change that sign. The driver therefore has an fmax and an
fmin of its own that do not depend on the order.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"
DEFAULT = "-O3 -g0 -std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math"
FLAGS = ["-O0 -std=gnu11 -ffp-contract=off", "-O0 -march=native -std=gnu11 -ffp-contract=off",
         "-O3 -std=gnu11 -ffp-contract=off", "-O3 -march=native -std=gnu11 -ffp-contract=off", DEFAULT,
         DEFAULT + " -march=native"]

DRIVER = r"""
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double fmax(double a, double b) { return a != a ? b : b != b ? a : a > b ? a : b > a ? b : signbit(a) ? b : a; }
double fmin(double a, double b) { return a != a ? b : b != b ? a : a < b ? a : b < a ? b : signbit(a) ? a : b; }
#define KIND(name, extra) typedef void (*name)(int, int, int, const int *, const int *, const double *, const double *, \
  const double *, const int *, const int *, const double *, const double *, const double *, double, extra int, \
  const double *, double *)
#define NONE
#define X const double *,
#define SHIFT double, const double *,
#define NORMAL const double *, const double *,
#define BOTH double, const double *, const double *,
KIND(Residual, X);
KIND(Jacobian, SHIFT);
KIND(BoundaryResidual, NORMAL);
KIND(BoundaryJacobian, BOTH);
enum { MOST = 4096 };
static uint64_t state = 88172645463325252u;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
static double uniform(void) { return (double)(next() >> 11) * 0x1p-53; }
static double value(int wild) {
  static const double special[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 4.9406564584124654e-324, -1e-310, 1e308, -1e308,
                                   1e-160, 1e160, INFINITY, -INFINITY, NAN};
  if (wild && next() % 8 == 0) return special[next() % (sizeof special / sizeof *special)];
  if (next() % 8 == 0) return ldexp(uniform() - 0.5, (int)(next() % 120) - 60);
  return next() % 2 ? 4 * uniform() - 2 : uniform();
}
static void fill(double *at, int n, int wild) {
  for (int i = 0; i < n; ++i) at[i] = i > 0 && next() % 16 == 0 ? at[i - 1] : value(wild);
}
int main(int argc, char **argv) {
  void *left = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *right = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!left || !right) { puts(dlerror()); return 2; }
  const int points = atoi(argv[3]), dim = atoi(argv[4]), boundary = atoi(argv[5]);
  static const int offsets[64];
  long compared = 0, differing = 0;
  for (int point = 0; point < points; ++point) {
    static double in[9][MOST];
    const int wild = point % 3 == 0;
    for (int i = 0; i < 9; ++i) fill(in[i], 256, wild);
    const double t = value(wild), shift = value(wild);
    for (int f = 6; f + 1 < argc; f += 2) {
      const int size = atoi(argv[f + 1]);
      static double out[2][MOST];
      memset(out, 0x55, sizeof out);
      for (int side = 0; side < 2; ++side) {
        void *function = dlsym(side ? right : left, argv[f]);
        if (!function) { printf("no %s\n", argv[f]); return 2; }
#define HEAD dim, 2, 1, offsets, offsets, in[0], in[1], in[2], offsets, offsets, in[3], in[4], in[5], t
        if (argv[f][0] == 'f' && !boundary) ((Residual)function)(HEAD, in[6], 64, in[7], out[side]);
        if (argv[f][0] == 'g' && !boundary) ((Jacobian)function)(HEAD, shift, in[6], 64, in[7], out[side]);
        if (argv[f][0] == 'f' && boundary) ((BoundaryResidual)function)(HEAD, in[6], in[8], 64, in[7], out[side]);
        if (argv[f][0] == 'g' && boundary) ((BoundaryJacobian)function)(HEAD, shift, in[6], in[8], 64, in[7], out[side]);
      }
      for (int i = 0; i < size; ++i) {
        ++compared;
        if (memcmp(&out[0][i], &out[1][i], sizeof(double)) == 0 || (isnan(out[0][i]) && isnan(out[1][i]))) continue;
        if (differing++ < 5) printf("%s[%d] at point %d: %a and %a\n", argv[f], i, point, out[0][i], out[1][i]);
      }
    }
  }
  printf("%ld compared, %ld differ\n", compared, differing);
  return differing != 0;
}
"""


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.strip()


def compile_to(compiler, flags, source, target):
    status, text = run([compiler, *flags.split(), "-w", "-shared", "-fPIC", "-o", str(target), str(source), "-lm"])
    if status != 0:
        raise RuntimeError(f"{compiler} {flags} {source.name}: {text[:500]}")


def text_of(problem):
    plain = problem / "tree.c"
    return plain.read_bytes() if plain.exists() else gzip.decompress((problem / "tree.c.gz").read_bytes())


def texts_of(problem, jitc, directory):
    """The problem's text and its shared form, as files."""
    given, shared, again = (directory / f"{problem.name}.{kind}.c" for kind in ("given", "shared", "again"))
    given.write_bytes(text_of(problem))
    for source, target in ((given, shared), (shared, again)):
        status, text = run([jitc, "share", "--why", str(source), "-o", str(target)])
        if status != 0 or text:
            raise RuntimeError(f"jitc share {source.name}: {text[:500]}")
    if again.read_bytes() != shared.read_bytes():
        raise RuntimeError("shared twice is not shared once")
    return given, shared


def compare(problem, texts, options, driver, directory):
    """The failures of one problem."""
    description = json.loads((problem / "problem.json").read_text())
    functions = [text for f in description["residual"] + description["jacobian"] for text in (f["name"], str(f["size"]))]
    failures = []
    status, text = run([sys.executable, str(CORPUS / "check_c.py"), str(problem), "--c", str(texts[1])])
    if status != 0:
        failures.append(text)
    for compiler in options.compiler:
        for flags in options.flags or FLAGS:
            libraries = [directory / f"{problem.name}.{side}.so" for side in range(2)]
            for source, library in zip(texts, libraries):
                compile_to(compiler, flags, source, library)
            status, text = run([str(driver), *map(str, libraries), str(options.points), str(description["dim"]),
                                str(int(description["where"] == "boundary")), *functions])
            if status != 0:
                failures.append(f"{compiler} {flags}: {text}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--only")
    parser.add_argument("--least-bytes", type=int, default=0)
    parser.add_argument("--most-bytes", type=int, default=1 << 62)
    parser.add_argument("--compiler", action="append")
    parser.add_argument("--flags", action="append")
    parser.add_argument("--points", type=int, default=5000)
    options = parser.parse_args()
    options.compiler = options.compiler or [c for c in ("gcc", "clang-19") if shutil.which(c)]
    problems = sorted(p.parent for p in CORPUS.glob("*/problem.json"))
    problems = [p for p in problems if options.only in (None, p.name) and
                options.least_bytes <= len(text_of(p)) <= options.most_bytes]
    if not problems:
        print("no problem was selected")
        return 1
    failed = 0
    with tempfile.TemporaryDirectory(prefix="jitc-share-") as name:
        directory = pathlib.Path(name)
        driver = directory / "driver"
        (directory / "driver.c").write_text(DRIVER)
        subprocess.run(["gcc", "-O2", "-fno-builtin-fmax", "-fno-builtin-fmin", "-rdynamic", "-o", str(driver), str(directory / "driver.c"), "-ldl", "-lm"], check=True)
        for problem in problems:
            try:
                failures = compare(problem, texts_of(problem, os.path.join(options.bin, "jitc"), directory), options, driver, directory)
            except RuntimeError as error:
                failures = [str(error)]
            failed += bool(failures)
            print(f"{problem.name}: {'ok' if not failures else ''}", *failures, sep="\n  " if failures else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
