"""The Python package's reference as a Markdown page, from its docstrings and annotations. Imports nothing of it.

    python_reference.py PACKAGE     writes the page to standard output; PACKAGE is the directory of __init__.py

`undocumented` names what is public and has no docstring.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Union

Definition = Union[ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]
WIDTH = 100
SECTIONS = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises",
            "Yields": "Yields"}


def modules(package: pathlib.Path) -> dict[str, ast.Module]:
    """The package's modules by name, "jitc" and "jitc.sub"."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = [package.name, *file.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return found


def exported(tree: ast.Module) -> set[str] | None:
    """The names in __all__, those of a tuple that is unpacked in it too; None: there is none."""
    tuples: dict[str, list[str]] = {}
    for statement in tree.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, (ast.List, ast.Tuple)):
            continue
        names: list[str] = []
        for element in statement.value.elts:
            if isinstance(element, ast.Constant) and isinstance(element.value, str):
                names.append(element.value)
            elif isinstance(element, ast.Starred) and isinstance(element.value, ast.Name):
                names += tuples.get(element.value.id, [])
        for target in statement.targets:
            if isinstance(target, ast.Name):
                tuples[target.id] = names
    return set(tuples["__all__"]) if "__all__" in tuples else None


def public(package: pathlib.Path) -> Iterator[tuple[str, ast.Module, list[Definition]]]:
    """Each public module with what it documents. The package has all that its __all__ names; modules that it takes that
    from have nothing else for others."""
    trees = modules(package)
    root = trees[package.name]
    handed_on = exported(root) or set()
    origins = {alias.name: f"{package.name}.{one.module}" for one in ast.walk(root)
               if isinstance(one, ast.ImportFrom) and one.level == 1 and one.module for alias in one.names}
    for name, tree in trees.items():
        if any(part.startswith("_") for part in name.split(".")) or name in origins.values():
            continue
        if name == package.name:
            defined = [one for other, found in trees.items() for one in definitions(found)
                       if one.name in handed_on and origins.get(one.name, name) == other]
        else:
            own = exported(tree)
            defined = [one for one in definitions(tree) if own is None or one.name in own]
        if name == package.name or defined:
            yield name, tree, sorted(defined, key=lambda one: (isinstance(one, ast.ClassDef), one.name.lower()))


def definitions(tree: ast.Module | ast.ClassDef) -> list[Definition]:
    """The public classes and functions of a module, or members of a class."""
    return [one for one in tree.body
            if isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not one.name.startswith("_")]


def undocumented(package: pathlib.Path) -> list[str]:
    """What is public and has no docstring, as "jitc.Context.compile"."""
    missing = []
    for name, tree, defined in public(package):
        if not ast.get_docstring(tree):
            missing.append(name)
        for one in defined:
            inner = definitions(one) if isinstance(one, ast.ClassDef) else []
            if not ast.get_docstring(one):
                missing.append(f"{name}.{one.name}")
            missing += [f"{name}.{one.name}.{member.name}" for member in inner if not ast.get_docstring(member)]
    return missing


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, is_member: bool) -> str:
    """As it is called; an argument a line where it is long."""
    arguments = function.args
    if is_member and arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(posonlyargs=arguments.posonlyargs, args=arguments.args[1:], vararg=arguments.vararg,
                                  kwonlyargs=arguments.kwonlyargs, kw_defaults=arguments.kw_defaults,
                                  kwarg=arguments.kwarg, defaults=arguments.defaults)
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return call_of(name, split_arguments(ast.unparse(arguments)), result)


def call_of(name: str, arguments: list[str], result: str) -> str:
    text = f"{name}({', '.join(arguments)}){result}"
    if len(text) <= WIDTH:
        return text
    return f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){result}"


def split_arguments(text: str) -> list[str]:
    """At the commas that stand in no bracket and no string. Defaults of annotated arguments get their blanks."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [re.sub(r"^(\w+: [^=]+)=", r"\1 = ", part.strip()) for part in parts if part.strip()]


def is_property(function: Definition) -> bool:
    return any(isinstance(one, ast.Name) and one.id in ("property", "cached_property")
               or isinstance(one, ast.Attribute) and one.attr == "cached_property" for one in function.decorator_list)


def text_of(documented: ast.Module | Definition) -> list[str]:
    """A docstring as Markdown: its sections as lists, what is indented as code."""
    docstring = ast.get_docstring(documented, clean=False) or ""
    indent = 0 if isinstance(documented, ast.Module) else documented.col_offset + 4
    docstring = re.sub(f"(?m)^ {{1,{indent}}}", "", docstring).strip() if indent else docstring.strip()
    lines: list[str] = []
    section = ""
    is_code = False
    for line in [*docstring.splitlines(), ""]:
        heading = re.fullmatch(r"(\w+):", line)
        if heading and heading.group(1) in SECTIONS:
            section = SECTIONS[heading.group(1)]
            lines += ["", f"**{section}**", ""]
            continue
        is_deep = line.startswith("    ")
        if line and not is_deep:
            section = ""
        if section and is_deep:
            item = re.fullmatch(r"    (\*{0,2}[\w., *]+?)(?: \([^)]*\))?: (.*)", line)
            lines.append(f"- `{item.group(1)}`: {item.group(2)}" if item and not line.startswith("     ") else
                         "  " + line.strip())
            continue
        if is_deep and not is_code and (not lines or not lines[-1]):
            lines.append("```python")
            is_code = True
        elif line and not is_deep and is_code:
            while not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            is_code = False
        lines.append(line[4:] if is_code else line)
    if is_code:
        lines.append("```")
    return lines


def entry(name: str, one: Definition, depth: int) -> list[str]:
    """A class with its members, or a function."""
    lines = [f"{'#' * depth} {name}", ""]
    if isinstance(one, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in one.bases)
        init = next((member for member in one.body
                     if isinstance(member, ast.FunctionDef) and member.name == "__init__"), None)
        fields = [ast.unparse(member) for member in one.body if isinstance(member, ast.AnnAssign)]
        call = (signature(init, name, True).removesuffix(" -> None") if init else
                call_of(name, fields, "") if fields else f"{name}({bases})" if bases else name)
        lines += ["```python", f"class {call}", "```", ""]
        lines += [f"A kind of `{bases}`.", ""] if bases and (init or fields) else []
        lines += text_of(one)
        lines += text_of(init) if init else []
        for member in definitions(one):
            lines += entry(f"{name}.{member.name}", member, depth + 1)
        return lines
    if is_property(one):
        result = f": {ast.unparse(one.returns)}" if one.returns else ""
        lines += ["```python", f"{name}{result}", "```", ""]
    else:
        lines += ["```python", signature(one, name, depth > 3), "```", ""]
    return lines + text_of(one) + [""]


def page(package: pathlib.Path) -> str:
    """The page: a section for each module, in it one for each function and class."""
    lines = ["# The Python package", "", "Functions marked collective are called by every rank of the "
             "communicator, in the same order; they return the same, or raise the same exception, on each.", ""]
    for name, tree, defined in public(package):
        lines += [f"## {name}", "", *text_of(tree), ""]
        for one in defined:
            lines += entry(one.name, one, 3)
    return "\n".join(lines) + "\n"


def main() -> None:
    package = pathlib.Path(sys.argv[1])
    missing = undocumented(package)
    if missing:
        sys.exit("\n".join(f"{one} has no docstring" for one in missing))
    sys.stdout.write(page(package))


if __name__ == "__main__":
    main()
