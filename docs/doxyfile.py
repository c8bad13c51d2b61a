"""Doxygen's settings for this tree.

    doxyfile.py OUT     writes docs/Doxyfile.in with its paths filled in; OUT is where pages and HTML go

Pages come in the order in which the end of README.md names them, then the others.
"""

from __future__ import annotations

import pathlib
import sys

import markdown_text

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pages() -> list[pathlib.Path]:
    """README.md, then all pages that it says to read on in, then those that it does not."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8").rpartition("## Read on")[2]
    named = [ROOT / match["target"].partition("#")[0] for match in markdown_text.LINK.finditer(text)]
    named += [ROOT / match["code"] for match in markdown_text.CODE.finditer(text) if match["code"].endswith(".md")]
    every = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"]
    return list(dict.fromkeys([readme, *(page for page in named if page in every), *every]))


def main() -> None:
    out = pathlib.Path(sys.argv[1]).resolve()
    inputs = [*pages(), *sorted((out / "pages").glob("*.md"))]
    text = (ROOT / "docs" / "Doxyfile.in").read_text(encoding="utf-8")
    for name, value in {"ROOT": str(ROOT), "OUT": str(out), "PAGES": " ".join(f'"{page}"' for page in inputs)}.items():
        text = text.replace(f"@{name}@", value)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
