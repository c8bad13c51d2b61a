#!/usr/bin/python3
"""docs/json.md against what --json prints: every field that is printed is documented with its type, every documented
field is printed, and every command that has --json is there.

usage: json_fields_test.py BIN_DIRECTORY
"""
import json
import os
import re
import sys

from cli_world import HeldCompile, Node, ROOT, SOURCE, commands

# Their objects have the names of counters and settings, or are described elsewhere.
OPEN = {"jitc stats", "jitc config", "jitc cache show"}
# Printed by these as by another.
AS = {"jitc warm": "jitc submit", "jitc daemon start": "jitc drain", "jitc daemon stop": "jitc drain",
      "jitc daemon status": "jitc drain"}
SIMPLE = {"text": str, "number": (int, float), "truth": bool, "any": object}


def documented():
    """Section -> field -> (type, is it optional)."""
    sections, section = {}, None
    for line in (ROOT / "docs/json.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
            sections[section] = {}
        elif row := re.match(r"\| `(\w+)(\??)` \| (.*?) \|", line):
            sections[section][row[1]] = (row[3], bool(row[2]))
    return sections


class Page:
    def __init__(self):
        self.sections = documented()
        self.seen = set()
        self.wrong = []

    def check(self, section, value, where):
        if not isinstance(value, dict):
            self.wrong.append(f"{where}: not an object")
            return
        fields = self.sections[section]
        for name, (kind, optional) in fields.items():
            if name not in value and not optional:
                self.wrong.append(f"{where}: '{name}' is documented and not printed")
        for name, one in value.items():
            if name not in fields:
                self.wrong.append(f"{where}: '{name}' is printed and not documented")
                continue
            self.seen.add((section, name))
            self.check_type(fields[name][0], one, f"{where}.{name}")

    def check_type(self, kind, value, where):
        if kind.endswith(" or null"):
            return None if value is None else self.check_type(kind.removesuffix(" or null"), value, where)
        if kind.startswith("list of "):
            if not isinstance(value, list):
                self.wrong.append(f"{where}: not a list")
                return None
            for one in value:
                self.check_type(kind.removeprefix("list of "), one, where + "[]")
        elif kind == "names to number":
            if not all(isinstance(one, (int, float)) for one in value.values()):
                self.wrong.append(f"{where}: not numbers")
        elif kind in SIMPLE:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (is_number if kind == "number" else isinstance(value, SIMPLE[kind])):
                self.wrong.append(f"{where}: {value!r} is no {kind}")
        else:
            self.check(kind, value, where)
        return None


def printed(node, *arguments, codes=(0,)):
    done = node.jitc(*arguments)
    assert done.returncode in codes, (arguments, done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def look_at_a_running_job(node, page):
    held = HeldCompile(node)
    for command in ("jobs", "status"):
        for one in printed(node, command, "--json"):
            assert one["jobs"], command
            page.check(f"jitc {command}", one, command)
    job = printed(node, "jobs", "--json")[0]["jobs"][0]
    for one in printed(node, "cancel", "--json", job["flight"], "9999", codes=(2,)):
        page.check("jitc cancel", one, "cancel")
    held.release()


def look_at_all(node, page):
    kernel, other = node.write("kernel.c", SOURCE), node.write("other.c", SOURCE.replace("2", "3"))
    bad = node.write("bad.c", "int f(void) { return g; }\n")
    plan = node.scratch / "plan.jsonl"

    def look(section, *arguments, codes=(0,)):
        objects = printed(node, *arguments, codes=codes)
        assert objects, arguments
        for one in objects:
            page.check(section, one, " ".join(map(str, arguments[:3])))
        return objects

    node.environment["JITC_RECORD"] = str(plan)
    entries = look("jitc submit", "submit", "--json", kernel, bad, codes=(1,))
    del node.environment["JITC_RECORD"]
    key = entries[0]["key"]
    *requests, tally = printed(node, "warm", "--json", plan, codes=(0, 1))
    page.check("tally", tally, "warm")
    for one in requests:
        page.check("jitc submit", one, "warm")
    look("jitc status", "status", "--json")
    look("jitc top", "top", "--json", "--count", 1)
    look("comparison", "explain", "--json", kernel, other)
    look("jitc explain", "explain", "--json", kernel)
    look("jitc explain", "explain", "--json", other)
    look("jitc explain", "explain", "--json", key)
    look("jitc replay", "replay", "--json", entries[1]["error"]["capsule"], codes=(1,))
    look("jitc cache ls", "cache", "ls", "--json")
    printed(node, "cache", "show", "--json", key)
    look("jitc cache gc", "cache", "gc", "--json")
    archive = node.scratch / "all.tar"
    look("jitc cache export", "cache", "export", "--all", "--json", "-o", archive)
    look("jitc cache import", "cache", "import", "--json", archive)
    damaged = archive.read_bytes().replace(b"JITCART1", b"JITCART0")
    archive.write_bytes(damaged)
    look("jitc cache import", "cache", "import", "--json", archive, codes=(7,))
    page.check("jitc cache rm", printed(node, "cache", "rm", "--json", key)[0], "cache rm")
    path = node.store / "v1" / key[:2] / f"{key}.so"
    path.write_bytes(b"no artifact")
    look("jitc cache verify", "cache", "verify", "--json", codes=(7,))
    look("jitc version", "version", "--json")
    look("jitc doctor", "doctor", "--json", codes=(0, 10))
    for one in printed(node, "config", "--json")[0].values():
        page.check("jitc config", one, "config")
    assert all(isinstance(one, (int, float)) for one in printed(node, "stats", "--json")[0].values())
    look_at_a_running_job(node, page)
    for command in ("start", "status", "stop", "start"):
        look("jitc drain", "daemon", command, "--json")
    look("jitc drain", "drain", "--json")
    look("jitc drain", "drain", "--json")


# Only with compilers that ran out of memory, other artifacts, or a machine that cannot tell.
NOT_MADE_HERE = {("jitc submit", "rungs"), ("jitc submit", "degraded"), ("subject", "path"), ("subject", "notes"),
                 ("subject", "unused_seconds"), ("difference", "follows"), ("jitc explain", "unused_seconds"),
                 ("change", "what"), ("change", "recorded"), ("change", "here"), ("daemon", "uptime_seconds")}


def main():
    page = Page()
    fakecc = os.path.join(sys.argv[1], "jitc-fakecc")
    with Node(sys.argv[1], JITC_COMPILERS=fakecc, JITC_IDLE_EXIT="10min") as node:
        for path, text in list(commands(node)):
            name = " ".join(("jitc", *path))
            if "--json" in text and AS.get(name, name) not in page.sections:
                page.wrong.append(f"'{name} --json' is not documented")
        look_at_all(node, page)
    for section, fields in page.sections.items():
        for name in fields:
            if section not in OPEN - {"jitc config"} and (section, name) not in page.seen | NOT_MADE_HERE:
                page.wrong.append(f"{section}: '{name}' is documented and was never printed")
    assert not page.wrong, "\n".join(page.wrong)


main()
