#!/usr/bin/python3
"""Every command's --help ends with examples, and each of them works as it is written.

usage: examples_test.py BIN_DIRECTORY
"""
import os
import shutil
import subprocess
import sys

from cli_world import Node, ROOT, SOURCE, commands, examples

# Passed on to another program, which has a help of its own.
OTHERS = {("cc",)}
# There is no such compile, and none runs long enough to be ended: what it says is known (exit code 2).
ELSEWISE = {"jitc cancel 7": 2, "jitc cancel --json 8f02": 2}


def prepare(node):
    """The files that examples name, where they are run; the key of an artifact."""
    for name in ("kernel.c", "other.c"):
        node.write(name, SOURCE.replace("f(", name[0] + "("))
    shutil.copy(ROOT / "tests/data/corpus/powerlaw_stokes_2d/problem.json", node.scratch / "problem.json")
    bad = node.write("bad.c", "int f(void) { return g; }\n")
    record = {"JITC_RECORD": str(node.scratch / "plan.jsonl")}
    done = node.jitc("submit", node.scratch / "kernel.c", further=record)
    assert done.returncode == 0, done.stderr
    key = done.stdout.strip().rpartition("/")[2].removesuffix(".so")
    failed = node.jitc("submit", bad)
    capsule = failed.stderr.partition("jitc replay ")[2].split()[0]
    shutil.copy(capsule, node.scratch / "capsule.json")
    done = node.jitc("cache", "export", "--all", "-o", node.scratch / "artifacts.tar")
    assert done.returncode == 0, done.stderr
    return key


def run(node, line):
    return subprocess.run(["bash", "-c", line], cwd=node.scratch, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**node.environment, "PATH": f"{node.bin}:{os.environ['PATH']}"})


def main():
    wrong, count = [], 0
    with Node(sys.argv[1]) as node:
        key = prepare(node)
        for path, text in list(commands(node)):
            lines = examples(text)
            has_commands = "\nSubcommands:\n" in text and path
            if not lines and path not in OTHERS and not has_commands:
                wrong.append(f"{path}: no examples")
            for line in lines:
                assert line.split()[0] in ("jitc", "jitcd", "source"), line
                node.jitc("daemon", "start")
                again = node.jitc("submit", node.scratch / "kernel.c")  # the last may have removed it
                assert again.returncode == 0, (line, again.stderr)
                done = run(node, line if line in ELSEWISE else line.replace("8f02", key[:8]))
                expected = ELSEWISE.get(line, 1 if "replay" in line else 0)
                count += 1
                if done.returncode != expected:
                    wrong.append(f"{line}: exit code {done.returncode}, not {expected}: {done.stderr}")
    print(f"{count} examples")
    assert count > 30, "the examples were not found"
    assert not wrong, "\n".join(wrong)


main()
