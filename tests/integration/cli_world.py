"""A daemon of one's own (tests/faults/harness.py), for tests of what the command says of itself."""
import os
import pathlib
import select
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = "double f(double x) { return 2 * x; }\n"


class HeldCompile:
    """A compile that runs until it is told to go on; jitc-fakecc must be among the node's JITC_COMPILERS."""

    def __init__(self, node):
        note, self._go = node.scratch / "note", node.scratch / "go"
        os.mkfifo(note)
        held = node.write("held.c", f"// fakecc: note {note}\n// fakecc: hold {self._go}\n{SOURCE}")
        self._process = node.start_jitc("submit", "--cc", node.bin / "jitc-fakecc", held)
        begun, ended = os.open(note, os.O_RDONLY | os.O_NONBLOCK), os.pidfd_open(self._process.pid)
        try:
            ready, _, _ = select.select([begun, ended], [], [], 100)
            assert begun in ready, self._process.communicate(timeout=100)
        finally:
            os.close(begun)
            os.close(ended)

    def release(self):
        self._go.touch()
        return self._process.communicate(timeout=100)


def help_of(node, path):
    done = node.jitc(*path, "--help")
    assert done.returncode == 0, (path, done.stderr)
    return done.stdout


def commands(node, path=()):
    """Every command, as the words that name it, with its help."""
    text = help_of(node, path)
    yield path, text
    below = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    for line in below.splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            yield from commands(node, (*path, line.split()[0]))


def examples(text):
    return [line.strip() for line in text.partition("\nExamples:\n")[2].splitlines() if line.strip()]


__all__ = ["HeldCompile", "Node", "ROOT", "SOURCE", "commands", "examples", "help_of"]
