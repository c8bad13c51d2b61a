#!/usr/bin/python3
"""`jitc submit --share`: one compile of the shared text, hits by the text as given, and the text as given where the
shared one does not compile.

    submit_share_test.py --bin BUILD/bin
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HEAD = "#include <math.h>\n"
BODY = "void f(const double u[], double out[]) {\n  out[0] = exp(u[0])*exp(u[0]) + exp(u[0]);\n  out[1] = exp(u[0]);\n}\n"
failures = []


def expect(what, got, wanted):
    if got != wanted:
        failures.append(f"{what}: {got!r} instead of {wanted!r}")


def manifest(artifact):
    """The JSON text before the footer of 104 bytes, whose last but 40 are its size."""
    data = pathlib.Path(artifact).read_bytes()
    size = int.from_bytes(data[-40:-32], "little")
    return json.loads(data[-104 - size:-104])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    jitc = os.path.join(parser.parse_args().bin, "jitc")

    def run(*arguments):
        return subprocess.run([jitc, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def counters():
        return json.loads(run("stats", "--json").stdout)

    with tempfile.TemporaryDirectory(prefix="jitc-share-") as name:
        directory = pathlib.Path(name)
        for variable in [v for v in os.environ if v.startswith("JITC_")]:
            del os.environ[variable]
        os.environ.update(JITC_RUNTIME_DIR=str(directory / "run"), JITC_STORE=str(directory / "store"))
        small, large, wrong, hidden = (directory / f"{kind}.c" for kind in ("small", "large", "wrong", "hidden"))
        small.write_text(HEAD + BODY)
        large.write_text(HEAD + "/*" + "." * (64 << 10) + "*/\n" + BODY)
        wrong.write_text(HEAD + BODY + "int g(void) { return undeclared; }\n")
        # Sharing drops what no result needs, and with it the only use of a parameter: -Werror=unused-parameter.
        hidden.write_text(HEAD + "void f(const double u[], double s, double out[]) {\n  double a = s;\n  a = 0;\n"
                          "  out[0] = exp(u[0])*exp(u[0]) + a; out[1] = exp(u[0]);\n}\n")
        run("daemon", "start")
        try:
            given = run("submit", "--share=0", str(small)).stdout.strip()
            shared = run("submit", "--share=1", str(small)).stdout.strip()
            expect("share=0 and share=1 have one key", given == shared, False)
            expect("manifest of share=0", manifest(given)["code_bytes"], 0)
            expect("manifest of share=1", (manifest(shared)["share"], manifest(shared)["origin_bytes"]), ("1", len(HEAD + BODY)))
            expect("a text was shared", manifest(shared)["code_bytes"] > 0, True)
            expect("compiles", counters()["compiles_started"], 2)
            expect("the second submit", run("submit", "--share=1", str(small)).stdout.strip(), shared)
            expect("compiles after a hit", counters()["compiles_started"], 2)
            values = []
            for artifact in (given, shared):
                u, out = (ctypes.c_double * 1)(0.7), (ctypes.c_double * 2)()
                ctypes.CDLL(artifact).f(u, out)
                values.append(list(out))
            expect("values", values[1], values[0])

            expect("auto leaves small texts", manifest(run("submit", str(small)).stdout.strip())["code_bytes"], 0)
            code_bytes = manifest(run("submit", str(large)).stdout.strip())["code_bytes"]
            expect("auto shares large texts", code_bytes > 0, True)
            loose = run("submit", "--flag=-ffast-math", str(large)).stdout.strip()
            expect("auto and fast mathematics", manifest(loose)["code_bytes"], 0)
            old = run("submit", "--flag=-std=c89", str(large)).stdout.strip()
            expect("auto and a C in which // begins no comment", manifest(old)["code_bytes"], 0)

            before = counters()["compiles_started"]
            refused = run("submit", "--share=1", str(wrong))
            expect("a wrong text", refused.returncode, 1)
            expect("its diagnostics are those of the text as given", f"{wrong}:6:" in refused.stderr, True)
            done = run("submit", "--share=1", "--flag=-Werror=unused-parameter", str(hidden))
            expect("the text as given compiles where the shared one does not", done.returncode, 0)
            expect("and is what was compiled", done.stdout.strip() and manifest(done.stdout.strip())["code_bytes"], 0)
            expect("compiles of both", counters()["compiles_started"] - before, 4)
            # The helper stands in place of its calls; what is left of it would be an unused function.
            strict = directory / "strict.c"
            strict.write_text(HEAD + "static double square(double x) { return x * x; }\n" + BODY.replace("u[0]", "square(u[0])"))
            for compiler in ("clang", "gcc"):
                done = run("submit", "--share=1", f"--cc={compiler}", "--flag=-Wall", "--flag=-Wextra", "--flag=-Werror",
                           str(strict))
                expect(f"a shared text without warnings by {compiler}", done.returncode, 0)
                code_bytes = manifest(done.stdout.strip())["code_bytes"] if done.returncode == 0 else 0
                expect(f"it is the shared text that {compiler} took", code_bytes > 0, True)
        finally:
            run("daemon", "stop")
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
