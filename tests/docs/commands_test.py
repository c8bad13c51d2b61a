#!/usr/bin/env python3
"""Runs the commands of the README and of docs/, page by page, over an installed copy of this build.

A fenced block with commands says what it is, or the test fails:
  ```console            lines that begin with "$ " are run in order in one shell per page, in a fresh directory; what
                        follows is what they print. "# exit code N" after a command: that, not 0.
  ```sh                 a script, run in the same shell
  ```sh elsewhere       needs what is not here (a batch system, a site): its syntax and the options of jitc are checked
  ```console sample     the same for a transcript whose output is of another machine or moment
A comment <!-- given: COMMANDS --> is run where it stands; readers do not see it.

Of printed lines each must appear, in order. In them "…" stands for anything, "..." alone for any lines, a number for
any number, runs of spaces for any.
"""

import argparse
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^(```+)\s*(.*)$")
GIVEN = re.compile(r"<!-- given:(.*?)-->", re.DOTALL)
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")
PROGRAMS = ("jitc", "jitcd", "./run", "mpirun", "srun", "sbatch", "salloc", "cmake", "pip", "apt", "apt-get", "systemctl")
COMMAND = re.compile(r"^\s*(\$ )?(?:[A-Z_]+=\S* )*(?:" + "|".join(map(re.escape, PROGRAMS)) + r")( |$)")
LIMIT = 300  # seconds for a page; who needs longer hangs


class Step:
    """A command of a page, or some that belong together: what is run, where it stands and what it prints."""

    def __init__(self, line, text, printed=(), code=0, is_run=True):
        self.line, self.text, self.printed, self.code, self.is_run = line, text, list(printed), code, is_run


def transcript(first, lines, is_run):
    """The steps of a ```console block."""
    steps = []
    for number, line in enumerate(lines, first):
        if line.startswith("$ "):
            code = EXIT_CODE.search(line)
            steps.append(Step(number, line[2:], code=int(code.group(1)) if code else 0, is_run=is_run))
        elif steps and not steps[-1].printed and (steps[-1].text.endswith("\\") or steps[-1].text.count("<<") == 1
                                                  and not heredoc_ended(steps[-1].text)):
            steps[-1].text += "\n" + line
        elif steps:
            steps[-1].printed.append(line)
    return steps


def heredoc_ended(text):
    word = re.search(r"<<\s*'?(\w+)'?", text).group(1)
    return text.splitlines()[-1] == word


def steps_of(page):
    """Of a Markdown text, and what is wrong with its blocks."""
    steps, wrong, fence, block, outside = [], [], None, [], []
    for number, line in enumerate(page.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence is None:
            for given in GIVEN.findall("\n".join(outside)):
                steps.append(Step(number, given.strip()))
            fence, words, first, block, outside = mark.group(1), mark.group(2).split(), number + 1, [], []
        elif mark and mark.group(1) == fence and not mark.group(2):
            kind, marks = (words[0] if words else ""), words[1:]
            if kind == "console":
                steps += transcript(first, block, "sample" not in marks)
            elif kind == "sh":
                steps.append(Step(first, "\n".join(block), is_run="elsewhere" not in marks))
            elif any(COMMAND.match(each) for each in block):
                wrong.append(f"line {first}: commands in a block that is neither `console` nor `sh`")
            fence = None
        elif fence is None:
            outside.append(line)
        else:
            block.append(line)
    if fence is not None:
        wrong.append("a block has no end")
    return steps, wrong


def pattern_of(line):
    """What a documented line of output stands for."""
    parts = re.split(r"(…|\d+(?:\.\d+)?|\s+)", line.strip())
    known = {"…": ".*"}
    return re.compile("".join(known.get(part) or (r"\d+(?:\.\d+)?" if part[:1].isdigit() else r"\s+" if part.isspace()
                                                  else re.escape(part)) for part in parts if part))


def missing_of(printed, output):
    """The first documented line that the output does not have, in order."""
    lines = iter(output.splitlines())
    for expected in printed:
        if not expected.strip() or expected.strip() in ("...", "…"):
            continue
        pattern = pattern_of(expected)
        if not any(pattern.search(line) for line in lines):
            return expected
    return None


class Shell:
    """One bash for a page; what a step leaves (variables, directory) is there for the next one."""

    def __init__(self, directory, environment):
        self.output_path = directory / ".output"
        self.process = subprocess.Popen(["/bin/bash", "--noprofile", "--norc"], cwd=directory / "home", env=environment,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, text):
        """Exit code and output."""
        script = f"{{ {text}\n}} >{shlex.quote(str(self.output_path))} 2>&1 </dev/null; echo \"code $?\"\n"
        self.process.stdin.write(script)
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2 or answer[0] != "code":
            return None, " ".join(answer) + self.process.stdout.read()
        return int(answer[1]), self.output_path.read_text(encoding="utf-8", errors="replace")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Installation:
    """A prefix with this build in it."""

    def __init__(self, build, prefix):
        subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True,
                       stdout=subprocess.DEVNULL)
        self.prefix = prefix
        self.options = {}

    def environment(self, directory, source):
        for name in ("home", "run", "tmp"):
            (directory / name).mkdir()
            (directory / name).chmod(0o700)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("JITC_", "XDG_", "SLURM_", "PBS_"))}
        library = next(self.prefix.glob("lib*/**/libjitc.so")).parent
        python = next(self.prefix.glob("lib*/**/jitc/__init__.py")).parent.parent
        return {**kept, "HOME": str(directory / "home"), "XDG_RUNTIME_DIR": str(directory / "run"),
                "TMPDIR": str(directory / "tmp"), "PATH": f"{self.prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "PREFIX": str(self.prefix), "LD_LIBRARY_PATH": str(library), "PYTHONPATH": str(python),
                "PKG_CONFIG_PATH": str(library / "pkgconfig"), "SOURCE": str(source), "LC_ALL": "C.UTF-8",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def help_of(self, words):
        """What a program says of itself; None where there is no such sub-command."""
        if words not in self.options:
            done = subprocess.run([str(self.prefix / "bin" / words[0]), *words[1:], "--help"], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.options[words] = done.stdout if done.returncode == 0 else None
        return self.options[words]

    def unknown_of(self, text):
        """What of a script that cannot run here no program of ours understands."""
        if subprocess.run(["/bin/bash", "-n", "-c", text], check=False, capture_output=True).returncode != 0:
            return "not a shell's syntax"
        for line in re.sub(r"\\\n", " ", text).splitlines():
            words = shlex.split(line, comments=True) if line.count("'") % 2 == 0 and line.count('"') % 2 == 0 else []
            for place, word in enumerate(words):
                if word in ("jitc", "jitcd") and (place == 0 or words[place - 1] not in ("load", "module", "chgrp", "-o", "-u")):
                    if unknown := self.unknown_option(words[place:]):
                        return unknown
        return None

    def unknown_option(self, words):
        path = (words[0],)
        said = self.help_of(path)
        for place, word in enumerate(words[1:]):
            if word in ("&", "&&", "||", ";", "|") or word.startswith((">", "<", "2>")):
                return None
            if word.startswith("-") and word != "-":
                if not re.search(rf"(^|[\s,]){re.escape(word.split('=')[0])}\b", said):
                    return f"'{' '.join(path)}' has no option {word}"
            elif place + 1 == len(path) and (deeper := self.help_of((*path, word))) and path[-1] != "cc":
                path, said = (*path, word), deeper
        if len(path) == 1 and len(words) > 1 and path[0] == "jitc" and not words[1].startswith("-"):
            return f"jitc has no sub-command {words[1]}"
        return None


def check(page, installation, source):
    """What is wrong with it."""
    steps, wrong = steps_of(page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="jitc-docs-") as name:
        directory = pathlib.Path(name)
        environment = installation.environment(directory, source)
        shell = Shell(directory, environment)
        previous = signal.signal(signal.SIGALRM, lambda *_: os.killpg(shell.process.pid, signal.SIGKILL))
        signal.alarm(LIMIT)
        for step in steps:
            if not step.is_run:
                if unknown := installation.unknown_of(step.text):
                    wrong.append(f"line {step.line}: {unknown}: {step.text}")
                continue
            code, output = shell.run(step.text)
            if code != step.code:
                wrong.append(f"line {step.line}: exit code {code}, not {step.code}: {step.text}\n{output}")
                break  # what follows needs it
            if missing := missing_of(step.printed, output):
                wrong.append(f"line {step.line}: {step.text}\nprints no line '{missing}':\n{output}")
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        shell.close()
        subprocess.run(["jitc", "daemon", "stop"], env=environment, check=False, capture_output=True)
    return len(steps), wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("page", nargs="*", help="of these alone, as docs/store.md")
    options = parser.parse_args()
    options.source, options.build = options.source.resolve(), options.build.resolve()
    pages = [options.source / name for name in options.page] or [
        options.source / "README.md", *sorted((options.source / "docs").rglob("*.md"))]
    failed = False
    with tempfile.TemporaryDirectory(prefix="jitc-docs-prefix-") as name:
        installation = Installation(options.build, pathlib.Path(name) / "prefix")
        for page in pages:
            count, wrong = check(page, installation, options.source)
            print(f"{page.relative_to(options.source)}: {count} steps" + "".join(f"\n  {each}" for each in wrong))
            failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
