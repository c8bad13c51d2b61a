"""What Doxygen reads of a file: plain comments of the public headers as its own, Markdown's links as its references.

    doxygen_filter.py FILE      writes the text to standard output (INPUT_FILTER of docs/Doxyfile.in)

Headers and pages stay free of Doxygen's commands by this: they read well in an editor and on a forge.
"""

from __future__ import annotations

import pathlib
import re
import sys

import markdown_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Pages that are generated from other sources, by what a text may call these.
GENERATED = (("proto/", "page_protocol_reference"), ("client/python/", "page_python_reference"))
SECTION = re.compile(r"^\s*/\* -{4,} .* -{4,} \*/$")


def escaped(comment: str) -> str:
    """A comment's words without what Doxygen takes for commands, tags and links, but in code between backticks."""
    parts = re.split(r"(`[^`]*`)", comment)
    return "".join(part if part.startswith("`") else re.sub(r"([\\@<>#%])", r"\\\1", part) for part in parts)


def with_examples(comment: str) -> str:
    """A comment's words, with the lines that are indented, and continue no list, as code."""
    parts: list[str] = []
    is_list = is_code = False
    for line in comment.strip().split("\n"):
        is_indented = line.startswith("  ")
        if line.strip() and not is_indented:
            is_list = line.startswith("- ")
        if is_indented and not is_list and not is_code:
            parts.append("~~~{.c}")
        elif is_code and line.strip() and not is_indented:
            parts.append("~~~")
        is_code = is_indented and not is_list or is_code and not line.strip()
        parts.append(line if is_code else escaped(line))
    return "\n".join([*parts, "~~~"] if is_code else parts)


def is_own(comment: str) -> bool:
    """Whether it is one of Doxygen's already: `///`, `/**`."""
    return re.match(r"///|/\*\*(?!/)", comment) is not None


def comments(text: str) -> list[tuple[int, int]]:
    """Where the comments of a C or C++ text are. Lines of `//` below each other are one; one behind code goes on in a
    line below only where that one's comment stands under it."""
    found: list[tuple[int, int]] = []
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', text, re.S):
        if token.group().startswith('"'):
            continue
        begin, end = token.span()
        if found and not is_own(token.group()):
            first, last = found[-1]
            same_kind = text.startswith("//", first) and text.startswith("//", begin)
            if same_kind and re.fullmatch(r"\n[ \t]*", text[last:begin]) and column(text, first) == column(text, begin):
                found[-1] = (first, end)
                continue
        found.append((begin, end))
    return found


def column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)


def header(text: str) -> str:
    """Comments above a declaration or behind it on its line document it; the first one documents the file."""
    parts: list[str] = []
    end = 0
    for number, (begin, behind) in enumerate(comments(text)):
        comment = text[begin:behind]
        code = text[begin - column(text, begin):begin].strip()
        parts.append(text[end:begin])
        end = behind
        if is_own(comment) or SECTION.match(comment) or "clang-format" in comment or code.startswith(("}", "#")):
            parts.append(comment)
            continue
        if comment.startswith("/*"):
            words = re.sub(r"(?m)^[ \t]*\* ?", "", comment[2:-2])
        else:
            words = re.sub(r"(?m)^[ \t]*// ?", "", comment)
        if code:
            parts.append(f"/**< {escaped(words)} */")
        else:
            file = "" if number else "@file\n"
            parts.append(f"/**\n{file}{with_examples(words)}\n*/")
    return "".join(parts) + text[end:]


def target_of(name: str, page: pathlib.Path) -> str | None:
    """The label of what a text names by a path from the root, or from its own page; None: it is on no page."""
    path, _, anchor = name.partition("#")
    for generated, label in GENERATED:
        if path.startswith(generated):
            return label
    for base in (ROOT, page.parent):
        file = (base / path).resolve() if path else page
        if file.is_file() and file.suffix == ".md" and file.is_relative_to(ROOT):
            return markdown_text.label(file.relative_to(ROOT), anchor)
        if file.is_file() and file.suffix in (".h", ".hpp"):
            return file.name if "include/jitc" in str(file) else None
    return None


def markdown(text: str, page: pathlib.Path) -> str:
    """Headings get labels, links to pages and names of pages in backticks become references."""

    def link(match: re.Match[str]) -> str:
        if match["picture"] or re.match(r"[a-z]+:", match["target"]):
            return match.group()
        label = target_of(match["target"], page)
        return f"[{match['words']}](@ref {label})" if label else match["words"]

    def code(match: re.Match[str]) -> str:
        """A page's name becomes a link. An apostrophe would end the code but between two backticks."""
        text = match["code"]
        label = target_of(text, page) if "/" in text and " " not in text else None
        return f"[{text}](@ref {label})" if label else f"``{text}``" if "'" in text else match.group()

    def words(block: str) -> str:
        """Outside of code nothing is one of Doxygen's commands or tags."""
        parts = re.split(r"(`[^`]*`)", markdown_text.LINK.sub(link, block))
        return "".join(markdown_text.CODE.sub(code, part) if part.startswith("`") else
                       re.sub(r"\\|@(?!ref )|<(?!!--)|#(?=\w)", r"\\\g<0>", part) for part in parts)

    def fence(match: re.Match[str]) -> str:
        """Of what stands behind it only a language that Doxygen can colour."""
        language = {"python": "{.py}", "cpp": "{.cpp}", "c": "{.c}", "fortran": "{.f90}"}.get(match[2], "")
        return match[1] + language

    relative = page.relative_to(ROOT)
    changed = []
    for line in markdown_text.blocks(text):
        if line.is_code:
            changed.append(re.sub(r"^(\s*```)\s*(\w*).*", fence, line.text))
        elif line.depth:
            label = markdown_text.label(relative, "" if line.depth == 1 else line.anchor)
            changed.append(f"{'#' * line.depth} {line.title.replace('`', '')} {{#{label}}}")
        else:
            changed.append(words(line.text))
    return "\n".join(changed) + "\n"


def main() -> None:
    path = pathlib.Path(sys.argv[1]).resolve()
    text = path.read_text(encoding="utf-8")
    sys.stdout.write(markdown(text, path) if path.suffix == ".md" else header(text))


if __name__ == "__main__":
    main()
