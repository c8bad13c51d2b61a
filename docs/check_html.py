"""Fails when a built page points at a file, picture or anchor that is not there.

    check_html.py DIRECTORY

Doxygen says nothing of a picture that it did not find.
"""

from __future__ import annotations

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page points at, and where it can be pointed at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") or (tag, name) == ("object", "data"):
                self.targets.append(value or "")
            elif name in ("id", "name"):
                self.anchors.add(value or "")


def broken(directory: pathlib.Path) -> list[str]:
    """Each target that is not there, with its page. Doxygen names a list of nested classes where all are private."""
    pages = {file.name: Page(file.read_text(encoding="utf-8")) for file in sorted(directory.glob("*.html"))}
    found = []
    for name, page in pages.items():
        for target in page.targets:
            parts = urllib.parse.urlparse(target)
            if parts.scheme or target in ("", "#", "#nested-classes"):
                continue
            path, anchor = urllib.parse.unquote(parts.path) or name, urllib.parse.unquote(parts.fragment)
            if not (directory / path).exists():
                found.append(f"{name}: {target}: there is no such file")
            elif anchor and path in pages and anchor not in pages[path].anchors:
                found.append(f"{name}: {target}: there is no such place")
    return found


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    if not (directory / "index.html").exists():
        sys.exit(f"{directory} has no index.html")
    sys.exit("\n".join(broken(directory)) or None)


if __name__ == "__main__":
    main()
