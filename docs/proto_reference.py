"""The protocol's reference as a Markdown page, from the comments of proto/.

    proto_reference.py FILE.proto...        writes the page to standard output

A comment above a declaration, or behind it on its line, says what it is. `undocumented` names what has none.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

TOKEN = re.compile(r'(?P<comment>//[^\n]*)|(?P<word>[\w.]+)|(?P<text>"[^"]*")|(?P<mark>[{}()<>=;,])')
BLOCKS = ("message", "enum", "service", "oneof")


@dataclasses.dataclass
class Element:
    """A message, enum, service or oneof with its `members`; or a field, value or rpc."""

    kind: str
    name: str
    line: int = 0
    comment: str = ""
    type: str = ""  # of a field; of an rpc: what it takes and gives
    number: str = ""
    members: list[Element] = dataclasses.field(default_factory=list)


class Parser:
    """Reads what this project's files have of the language; anything else is an error with its line."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._tokens: list[tuple[str, int]] = []
        for number, line in enumerate(self._lines, 1):
            code = line.split("//")[0]
            if TOKEN.sub("", code).strip():
                raise ValueError(f"line {number}: not understood: {line.strip()}")
            self._tokens += [(token.group(), number) for token in TOKEN.finditer(code)]
        self._at = 0

    def parse(self) -> list[Element]:
        """What the file declares."""
        declared = []
        while self._at < len(self._tokens):
            if self._peek() in ("syntax", "package", "import"):
                self._until(";")
            else:
                declared.append(self._element("file"))
        return declared

    def head(self) -> str:
        """The comment before everything else."""
        return self._comment(1 + next(n for n, line in enumerate(self._lines) if not line.startswith("//")))

    def _peek(self) -> str:
        return self._tokens[self._at][0]

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][0]

    def _until(self, mark: str) -> list[str]:
        taken = []
        while (token := self._next()) != mark:
            taken.append(token)
        return taken

    def _element(self, around: str) -> Element:
        line = self._tokens[self._at][1]
        element = self._block() if self._peek() in BLOCKS else self._statement(around)
        element.line, element.comment = line, self._comment(line)
        return element

    def _block(self) -> Element:
        element = Element(self._next(), self._next())
        self._until("{")
        while self._peek() != "}":
            element.members.append(self._element(element.kind))
        self._next()
        return element

    def _statement(self, around: str) -> Element:
        words = self._until(";")
        if words[0] == "rpc":
            return Element("rpc", words[1], type="".join(words[2:]).replace("stream", "stream ").replace(
                ")returns(", ") returns ("))
        if words[-2] != "=":
            raise ValueError(f"line {self._tokens[self._at - 1][1]}: not understood: {' '.join(words)}")
        kind = "value" if around == "enum" else "field"
        text = "".join(word + (" " if word in ("repeated", "optional", ",") else "") for word in words[:-3])
        return Element(kind, words[-3], type=text, number=words[-1])

    def _comment(self, line: int) -> str:
        """Of what begins in `line`: the lines of comment above it, then the one behind it."""
        words: list[str] = []
        before = line - 2
        while before >= 0 and (above := re.match(r"\s*// ?(.*)", self._lines[before])):
            words.insert(0, above.group(1))
            before -= 1
        if "//" in self._lines[line - 1]:
            words.append(self._lines[line - 1].split("//", 1)[1])
        return " ".join(word.strip() for word in words).strip()


def walk(elements: list[Element], around: str = "") -> Iterator[tuple[str, Element]]:
    """All elements with their full names."""
    for element in elements:
        name = f"{around}.{element.name}" if around else element.name
        yield name, element
        yield from walk(element.members, name)


def undocumented(text: str) -> list[str]:
    """What has no comment, as "line 3: message A.B". An enum's value 0, which says nothing, and a oneof need none."""
    return [f"line {element.line}: {element.kind} {name}" for name, element in walk(Parser(text).parse())
            if not element.comment and element.kind != "oneof" and not element.name.endswith("UNSPECIFIED")]


def page(files: list[pathlib.Path]) -> str:
    """The page, a section for each file and in it one for each service, message and enum."""
    parts = ["# The protocol", "", "What the processes say to each other. Fields are only ever added, and numbers "
             "never reused; what is absent has proto3's default: 0, false, empty.", ""]
    for file in files:
        parser = Parser(file.read_text(encoding="utf-8"))
        declared = parser.parse()
        parts += [f"## {file.name}", "", parser.head(), ""]
        for name, element in walk(declared):
            if element.kind in ("service", "message", "enum"):
                parts += section(name, element)
    return "\n".join(parts) + "\n"


def section(name: str, element: Element) -> list[str]:
    """A heading, the comment, and a table of what is in it."""
    titles = {"service": "| call | takes and gives | |", "enum": "| value | number | |"}.get(
        element.kind, "| field | type | number | |")
    rows = [titles, re.sub(r"[^|]+", "---", titles)]
    for member in flat(element):
        cells = [f"`{member.name}`", f"`{member.type}`" if member.type else "", member.number]
        rows.append(f"| {' | '.join(one for one in cells if one)} | {member.comment.replace('|', chr(92) + '|')} |")
    return [f"### {element.kind} {name}", "", element.comment, "", *(rows if rows[2:] else []), ""]


def flat(element: Element) -> Iterator[Element]:
    """What stands in a table: members that have no members; those of a oneof say so."""
    for member in element.members:
        if member.kind == "oneof":
            for one in member.members:
                yield dataclasses.replace(one, comment=f"One of `{member.name}`. {one.comment}")
        elif member.kind in ("field", "value", "rpc"):
            yield member


def main() -> None:
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    missing = [f"{file}: {one} has no comment" for file in files
               for one in undocumented(file.read_text(encoding="utf-8"))]
    if missing:
        sys.exit("\n".join(missing))
    sys.stdout.write(page(files))


if __name__ == "__main__":
    main()
