"""docs/troubleshooting.md says what the product prints: its texts are in the sources, no kind of error is left out."""

from __future__ import annotations

import dataclasses
import re
import sys
import unittest

from source_texts import ROOT, of_cxx, of_product

import markdown_text

PAGE = ROOT / "docs" / "troubleshooting.md"
NOT_OURS = "Texts of other programs"
MOST_PARTS = 3  # of which the sources may make one text


@dataclasses.dataclass
class Entry:
    """A heading of the third level with what stands below it."""

    section: str
    title: str
    line: int
    body: str = ""

    def texts(self) -> list[str]:
        """What is printed: the heading, and what `Also:` names."""
        also = re.search(r"^Also: (.*?)(?:\n\n|\Z)", self.body, re.M | re.S)
        spans = re.findall(r"`([^`]+)`", also.group(1)) if also else []
        return [self.title.strip("`"), *(re.sub(r"\s*\n\s*", " ", span) for span in spans)]


def entries() -> list[Entry]:
    found: list[Entry] = []
    section = ""
    for line in markdown_text.lines(PAGE.read_text(encoding="utf-8")):
        if line.depth == 2:
            section = line.title
        elif line.depth == 3:
            found.append(Entry(section, line.title, line.number))
        elif found and found[-1].section == section:
            found[-1].body += line.text + "\n"
    return found


def is_printed(text: str, literals: list[str]) -> bool:
    """Whether the literals of one file can make the text, whose … is anything: what the system says stands behind a
    colon that the sources do not write."""
    parts = (part.strip().removesuffix(":") for part in text.split("…") if re.search(r"\w", part))
    return all(covered(part, literals) for part in parts)


def covered(words: str, literals: list[str], parts: int = MOST_PARTS) -> bool:
    """Whether `words` are at most so many pieces of literals, beginning and ending between words."""
    if not words:
        return True
    ends = [match.end() for match in re.finditer(r"\S+", words)]
    for end in reversed(ends):
        if any(words[:end] in literal for literal in literals):
            return parts > 0 and covered(words[end:].strip(), literals, parts - 1)
    return False


def kinds() -> dict[str, int]:
    """The names of all kinds of errors, and their exit codes."""
    text = (ROOT / "common" / "error.cc").read_text(encoding="utf-8")
    return {name: int(code) for name, code in re.findall(r'KindInfo\{ErrorKind::\w+, "(\w+)", (\d+)\}', text)}


class Troubleshooting(unittest.TestCase):
    def test_each_text_is_in_the_sources(self) -> None:
        files = of_product()
        self.assertGreater(len(entries()), 50)
        for entry in entries():
            if entry.section == NOT_OURS:
                continue
            for text in entry.texts():
                with self.subTest(line=entry.line, text=text):
                    self.assertTrue(any(is_printed(text, literals) for literals in files.values()),
                                    "no file of client/, common/ or daemon/ prints this")

    def test_each_entry_says_where_to_look_what_to_do_and_where_to_read_on(self) -> None:
        for entry in entries():
            with self.subTest(line=entry.line, title=entry.title):
                self.assertRegex(entry.title, r"^`.+`$")
                for part in ("Look", "Do", "More"):
                    self.assertIn(f"**{part}:**", entry.body)
                self.assertRegex(entry.body.split("**More:**")[-1], markdown_text.LINK)

    def test_each_kind_has_its_section_and_row(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        python = (ROOT / "client/python/jitc/errors.py").read_text(encoding="utf-8")
        header = (ROOT / "client/include/jitc/jitc.h").read_text(encoding="utf-8")
        classes = {kind: name for name, kind in
                   re.findall(r'^class (\w+)\(Error\):.*?kind = "(\w+)"', python, re.M | re.S)}
        enumerators = re.findall(r"^  (JITC_\w+) = \d+", header, re.M)
        sections = [line.title for line in markdown_text.lines(page) if line.depth == 2]
        declared = re.findall(r"^  k\w+", (ROOT / "common/error.h").read_text(encoding="utf-8").split("};")[0], re.M)
        self.assertEqual(len(kinds()), len(declared))
        for kind, code in kinds().items():
            with self.subTest(kind=kind):
                self.assertIn(kind, sections)
                self.assertIn(f"JITC_{kind}", enumerators)
                self.assertIn(f"| [{kind}](#{kind.lower()}) | `JITC_{kind}` | `{classes[kind]}` | {code} |", page)

    def test_each_warning_of_the_log_has_an_entry(self) -> None:
        texts = [text for entry in entries() for text in entry.texts()]
        warnings = {words for file in sorted((ROOT / "daemon").rglob("*.cc"))
                    for call in re.findall(r"log_(?:warning|error)\(((?:\s*\"(?:\\.|[^\"\\])*\")+)",
                                           file.read_text(encoding="utf-8")) for words in of_cxx(call)}
        self.assertGreater(len(warnings), 10)
        for words in sorted(warnings):
            with self.subTest(words=words):
                self.assertTrue(words in texts, "there is no entry for this")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
