#!/usr/bin/python3
"""On a terminal a line tells of what takes longer than a moment, and is taken away again.

usage: progress_test.py BIN_DIRECTORY
"""
import os
import pty
import select
import subprocess
import sys

from cli_world import HeldCompile, Node, SOURCE

SECONDS = 100  # of patience
WIPE = b"\r\x1b[K"


class Terminal:
    """A program's standard error, as somebody sees it."""

    def __init__(self, node, *arguments, **further):
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen([str(node.bin / "jitc"), *map(str, arguments)],
                                        env={**node.environment, **further}, stdin=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        self.shown = b""

    def read(self):
        """False: its end."""
        assert select.select([self._master], [], [], SECONDS)[0], f"nothing more is shown after {self.shown}"
        try:
            got = os.read(self._master, 4096)
        except OSError:  # the last program has closed it
            got = b""
        self.shown += got
        return bool(got)

    def wait_for(self, text):
        while text not in self.shown:
            assert self.read(), self.shown

    def end(self):
        self.process.stdin.close()
        while self.read():
            pass
        self.process.wait(timeout=100)
        os.close(self._master)
        return self.shown


def import_that_waits(node):
    importing = Terminal(node, "cache", "import", "-")
    importing.wait_for(b"0 artifacts looked at")
    shown = importing.end()
    assert WIPE in shown.rpartition(b"looked at")[2], shown


def nobody_wants_it(node):
    quiet = Terminal(node, "cache", "import", "-", JITC_PROGRESS="0")
    assert b"looked at" not in quiet.end()


def submit(node):
    """One that waits for a compile that somebody else began."""
    held = HeldCompile(node)
    waiting = Terminal(node, "submit", "--cc", node.bin / "jitc-fakecc", node.scratch / "held.c")
    waiting.wait_for(b"held.c")
    held.release()
    assert WIPE in waiting.end()


def main():
    with Node(sys.argv[1], JITC_COMPILERS=os.path.join(sys.argv[1], "jitc-fakecc")) as node:
        assert node.jitc("submit", node.write("f.c", SOURCE)).returncode == 0
        import_that_waits(node)
        nobody_wants_it(node)
        submit(node)


main()
