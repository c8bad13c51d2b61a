#!/usr/bin/python3
"""What bash completes, and whether zsh understands its file.

usage: completion_test.py BIN_DIRECTORY
"""
import os
import shutil
import signal
import subprocess
import sys

from cli_world import HeldCompile, Node, SOURCE

DRIVER = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
_jitc
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Shell:
    def __init__(self, node):
        self.node = node
        self.script = node.write("completion.bash", node.jitc("completion", "bash").stdout)

    def complete(self, *words):
        done = subprocess.run(["bash", "--norc", "-c", DRIVER, "driver", str(self.script), "jitc", *words],
                              env={**self.node.environment, "PATH": f"{self.node.bin}:{os.environ['PATH']}"},
                              cwd=self.node.scratch, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert not done.stderr, done.stderr
        return done.stdout.split()


def words_and_values(shell):
    complete = shell.complete
    assert {"submit", "doctor", "cache", "completion"} <= set(complete(""))
    assert complete("can") == ["cancel"]
    assert complete("cache", "") == ["ls", "show", "verify", "gc", "rm", "export", "import"]
    assert complete("cache", "ls", "--so") == ["--sort"]
    by = ["used", "size", "name", "age", "compile-seconds"]
    assert complete("cache", "ls", "--sort", "") == by
    assert complete("cache", "ls", "--sort", "=") == by
    assert complete("cache", "ls", "--sort", "=", "u") == ["used"]
    assert complete("submit", "--share", "a") == ["auto"]
    assert complete("lower", "--int", "") == ["32", "64"]
    assert complete("completion", "") == ["bash", "zsh"]
    assert complete("submit", "-j") == []
    assert complete("submit", "--timeout", "") == [], "any number"


def files(shell):
    shell.node.write("kernel.c", SOURCE)
    (shell.node.scratch / "kerndir").mkdir()
    assert set(shell.complete("submit", "kern")) == {"kernel.c", "kerndir"}
    assert shell.complete("cache", "ls", "--store", "kern") == ["kerndir"], "a directory"


def jobs(shell):
    """Of a daemon that runs; none, or one that is stopped, holds no shell."""
    assert shell.complete("cancel", "") == []
    node = shell.node
    held = HeldCompile(node)
    assert shell.complete("cancel", "") == ["1"]
    os.kill(node.daemon_pid(), signal.SIGSTOP)
    assert shell.complete("cancel", "") == []
    os.kill(node.daemon_pid(), signal.SIGCONT)
    held.release()


def zsh(node):
    if shutil.which("zsh") is None:
        print("zsh is not installed: its file is not looked at")
        return
    path = node.write("_jitc", node.jitc("completion", "zsh").stdout)
    subprocess.run(["zsh", "-n", str(path)], check=True, timeout=60)


def main():
    fakecc = os.path.join(sys.argv[1], "jitc-fakecc")
    with Node(sys.argv[1], JITC_COMPILERS=fakecc) as node:
        shell = Shell(node)
        words_and_values(shell)
        files(shell)
        jobs(shell)
        zsh(node)


main()
