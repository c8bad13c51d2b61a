"""A daemon of one's own (tests/faults/harness.py), for tests of what the command says of itself."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = "double f(double x) { return 2 * x; }\n"


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


__all__ = ["Node", "ROOT", "SOURCE", "commands", "examples", "help_of"]
