#!/usr/bin/python3
"""Every problem of the corpus goes through `jitc lower`, and the printed functions are checked against the oracle.

    lower_test.py --bin BUILD/bin --cc gcc|embedded|none [--cflags F] [--cse 0,1,auto] [--lower=ARG ...]
                  [--only NAMES | --skip NAMES]

`gcc` compiles with the flags given; `embedded` sends the text through `jitc submit` to a daemon of its own; `none` checks
that the text is the same in many processes. Exit status 1 names what failed.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"


def run(command, **environment):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr.strip()


class Test:
    def __init__(self, options, directory):
        self.jitc = os.path.join(options.bin, "jitc")
        self.options = options
        self.directory = directory

    def lower(self, problem, cse, prefix=(), **environment):
        """The C text; raises with what jitc said."""
        command = [*prefix, self.jitc, "lower", f"--cse={cse}", *self.options.lower, problem / "problem.json"]
        code, text, said = run(command, **environment)
        if code != 0:
            raise RuntimeError(f"jitc lower exited with {code}: {said}")
        return text

    def artifact(self, source):
        """What check_c.py loads: the source itself, which it compiles with gcc, or the embedded compiler's artifact."""
        if self.options.cc == "gcc":
            return source
        code, path, said = run([self.jitc, "submit", *self.options.cflags.split(), source])
        if code != 0:
            raise RuntimeError(f"jitc submit exited with {code}: {said}")
        return path.strip()

    def check_values(self, problem):
        checked = set()
        for cse in self.options.cse.split(","):
            text = self.lower(problem, cse)
            if text in checked:  # auto is one of the others
                continue
            checked.add(text)
            source = self.directory / f"{problem.name}_{cse}.c"
            source.write_text(text)
            command = [sys.executable, CORPUS / "check_c.py", problem, "--c", self.artifact(source)]
            if self.options.cc == "gcc":
                command.append(f"--cflags={self.options.cflags}")
            if "--int=64" in self.options.lower:
                command.append("--int64")
            if any(argument.startswith("--guard") for argument in self.options.lower):
                command.append("--guarded")
            code, report, said = run(command)
            if code != 0:
                raise RuntimeError(f"cse={cse}: {report.strip()} {said}")

    def check_determinism(self, problem):
        texts = {self.lower(problem, "1", prefix=["setarch", "-R"])}  # without ASLR; all others with it
        for seed in range(8):
            texts.add(self.lower(problem, "1", PYTHONHASHSEED=str(seed), LC_ALL="de_DE.UTF-8" if seed % 2 else "C"))
        if len(texts) != 1:
            raise RuntimeError(f"{len(texts)} different texts")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cc", choices=["gcc", "embedded", "none"], required=True)
    parser.add_argument("--cflags", default="")
    parser.add_argument("--cse", default="0,1,auto")
    parser.add_argument("--lower", action="append", default=[])
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--skip", type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    problems = sorted(p.parent for p in CORPUS.glob("*/problem.json"))
    problems = [p for p in problems if p.name not in options.skip and p.name in (options.only or [p.name])]
    failures = []
    with tempfile.TemporaryDirectory(prefix="jitc-lower-") as name:
        test = Test(options, pathlib.Path(name))
        os.environ.update(JITC_RUNTIME_DIR=name + "/run", JITC_STORE=name + "/store")
        if options.cc == "embedded":
            subprocess.run([test.jitc, "daemon", "start"], check=True, stdout=subprocess.DEVNULL)
        try:
            for problem in problems:
                try:
                    if options.cc == "none":
                        test.check_determinism(problem)
                    else:
                        test.check_values(problem)
                    print(f"{problem.name}: ok", flush=True)
                except RuntimeError as error:
                    print(f"{problem.name}: {error}", flush=True)
                    failures.append(problem.name)
        finally:
            if options.cc == "embedded":
                subprocess.run([test.jitc, "daemon", "stop"], check=True)
    print(f"{len(problems) - len(failures)} of {len(problems)} problems agree", *failures, sep="\n  ")
    return 0 if problems and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
