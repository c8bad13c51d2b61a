"""What README.md, CONTRIBUTING.md and docs/ point at is there: links, anchors, pictures, files, commands, variables."""

from __future__ import annotations

import pathlib
import re
import sys
import unittest
from collections.abc import Iterator

from source_texts import PRODUCT, ROOT, of_product

import markdown_text

FOLDERS = (*PRODUCT, "docs", "proto", "systemd", "tests")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*")


def pages() -> list[pathlib.Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def words() -> Iterator[tuple[pathlib.Path, int, str]]:
    """The paragraphs of all pages, with their lines."""
    for page in pages():
        for block in markdown_text.blocks(page.read_text(encoding="utf-8")):
            if not block.is_code:
                yield page, block.number, block.text


def spans() -> Iterator[tuple[pathlib.Path, int, str]]:
    """What all pages show as code within their paragraphs."""
    for page, number, text in words():
        for span in markdown_text.CODE.finditer(text):
            yield page, number, re.sub(r"\s+", " ", span["code"])


def expanded(path: str) -> list[str]:
    """`a/{b,c}.h` is two."""
    braces = re.search(r"\{([^}]*)\}", path)
    if not braces:
        return [path]
    return [one for part in braces.group(1).split(",")
            for one in expanded(path[:braces.start()] + part + path[braces.end():])]


def is_there(path: str) -> bool:
    """A file, a folder, a pattern of files, or a file's name without what is behind its dot."""
    return any(True for pattern in (path.rstrip("/"), path.rstrip("/") + ".*") for _ in ROOT.glob(pattern))


def known_variables() -> set[str]:
    """All JITC_ names of sources, settings, builds and tests."""
    found = {f"JITC_{name.upper()}" for name in
             re.findall(r'^\s*\{"(\w+)"', (ROOT / "common" / "settings.cc").read_text(encoding="utf-8"), re.M)}
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix != ".md" and file.stat().st_size < 300_000:
                found.update(re.findall(r"JITC_[A-Z0-9_]+", file.read_text(encoding="utf-8", errors="replace")))
    return found | set(re.findall(r"JITC_[A-Z0-9_]+", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")))


class Links(unittest.TestCase):
    def test_links_and_anchors(self) -> None:
        anchors = {page: markdown_text.anchors(page.read_text(encoding="utf-8")) for page in pages()}
        count = 0
        for page, number, text in words():
            for link in markdown_text.LINK.finditer(text):
                if re.match(r"[a-z]+:", link["target"]):
                    continue
                count += 1
                with self.subTest(page=page.name, line=number, target=link["target"]):
                    path, _, anchor = link["target"].partition("#")
                    target = (page.parent / path).resolve() if path else page
                    self.assertTrue(target.exists(), "there is no such file")
                    if anchor:
                        self.assertIn(anchor, anchors.get(target, set()), "there is no such heading")
        self.assertGreater(count, 100)

    def test_files(self) -> None:
        for page, number, span in spans():
            if PATH.fullmatch(span):
                with self.subTest(page=page.name, line=number, path=span):
                    self.assertTrue(all(is_there(one) for one in expanded(span)), "there is no such file")

    def test_commands(self) -> None:
        files = of_product()
        known = {literal for file, literals in files.items() if file.startswith("client/cli/") for literal in literals}
        printed = [literal for literals in files.values() for literal in literals if "jitc " in literal]
        for page, number, span in spans():
            command = re.match(r"jitc ([a-z]+)", span)
            if command and not any(literal.startswith(command.group()) for literal in printed):
                with self.subTest(page=page.name, line=number, command=span):
                    self.assertTrue(command.group(1) in known, "jitc has no such command")

    def test_variables(self) -> None:
        known = known_variables()
        for page, number, span in spans():
            for name in re.findall(r"\bJITC_[A-Z0-9_]+\b", span):
                with self.subTest(page=page.name, line=number, name=name):
                    self.assertTrue(name in known, "nothing has this name")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
