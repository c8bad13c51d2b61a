"""What the documentation's tools and tests need to know of a Markdown page: headings, their anchors, links, code."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import unicodedata
from collections.abc import Iterator

LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"`(?P<code>[^`]+)`")


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a page; of headings `title` and `anchor`, as forges make it, are given."""

    number: int  # from 1
    text: str
    is_code: bool = False  # within a fence, or one of its marks
    depth: int = 0  # of a heading: 1 to 6
    title: str = ""
    anchor: str = ""


def anchor_of(title: str) -> str:
    """A heading's anchor: letters, digits, - and _ in lower case, blanks become -."""
    kept = (c for c in title.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
    return "".join(kept).replace(" ", "-")


def lines(text: str) -> Iterator[Line]:
    """A page's lines. An anchor that was there before gets a number behind it, as forges do it."""
    fence = ""
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark.group(1)
            yield Line(number, line, is_code=True)
            continue
        heading = None if fence else re.match(r"(#{1,6}) (.*?)\s*$", line)
        if not heading:
            yield Line(number, line, is_code=bool(fence))
            continue
        anchor = anchor_of(heading.group(2))
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        yield Line(number, line, depth=len(heading.group(1)), title=heading.group(2),
                   anchor=f"{anchor}-{count}" if count else anchor)


def blocks(text: str) -> Iterator[Line]:
    """The same with lines of one paragraph, list or table as one: links and code may go over the end of a line."""
    together: list[Line] = []

    def joined() -> Iterator[Line]:
        if together:
            yield Line(together[0].number, "\n".join(line.text for line in together))
            together.clear()

    for line in lines(text):
        if line.depth or line.is_code or not line.text.strip():
            yield from joined()
            yield line
        else:
            together.append(line)
    yield from joined()


def anchors(text: str) -> set[str]:
    """All anchors of a page."""
    return {line.anchor for line in lines(text) if line.depth}


def label(page: pathlib.PurePath, anchor: str = "") -> str:
    """Doxygen's label of a page, by its path from the root, or of a heading on it. Generated ones count as in docs/."""
    name = re.sub(r"^(build/docs/pages|docs)/", "", page.with_suffix("").as_posix())
    return re.sub(r"[^\w-]", "_", f"page_{name}" + (f"-{anchor}" if anchor else ""), flags=re.ASCII)
