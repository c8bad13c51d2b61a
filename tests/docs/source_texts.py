"""The texts that the sources print: their string literals, file by file."""

from __future__ import annotations

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "docs"))  # markdown_text and the generators of the reference

PRODUCT = ("client", "common", "daemon")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"(?:\s*"((?:\\.|[^"\\\n])*)")*')
PIECE = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def of_cxx(text: str) -> list[str]:
    """Literals beside each other are one."""
    return ["".join(PIECE.findall(match.group())).replace('\\"', '"').replace("\\n", "\n")
            for match in LITERAL.finditer(text)]


def of_python(text: str) -> list[str]:
    """The parts of formatted strings one by one."""
    return [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)
            and isinstance(node.value, str)]


def of_product() -> dict[str, list[str]]:
    """By file."""
    found = {}
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".cc", ".h", ".hpp", ".py") and "examples" not in file.parts:
                text = file.read_text(encoding="utf-8")
                found[str(file.relative_to(ROOT))] = (of_python if file.suffix == ".py" else of_cxx)(text)
    return found
