#!/usr/bin/python3
"""The manual pages: without warnings of man's formatter and of mandoc, as far as these are installed, and whole.

usage: manual_test.py BIN_DIRECTORY
"""
import json
import re
import shutil
import subprocess
import sys

from cli_world import Node, ROOT, commands


def pages(node):
    headers = [ROOT / "client/include/jitc/jitc.h", ROOT / "client/include/jitc/problem.h"]
    made = {"jitc.1": [node.bin / "jitc", "man", "jitc"], "jitc.toml.5": [node.bin / "jitc", "man", "jitc.toml"],
            "jitcd.8": [node.bin / "jitcd", "--man"],
            "libjitc.3": [sys.executable, ROOT / "client/api/manual.py", "0", *headers]}
    for name, command in made.items():
        done = subprocess.run(list(map(str, command)), env={**node.environment, "SOURCE_DATE_EPOCH": "1700000000"},
                              text=True, timeout=60, check=True, stdout=subprocess.PIPE)
        assert "2023-11-14" in done.stdout, f"{name}: the day is not that of SOURCE_DATE_EPOCH"
        yield name, node.write(name, done.stdout)


def lint(path):
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", str(path)], text=True, timeout=60,
                              stderr=subprocess.PIPE)
        assert done.returncode == 0 and not done.stderr, done.stderr
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", str(path)], text=True, timeout=60, stdout=subprocess.PIPE)
        assert done.returncode == 0 and not done.stdout, done.stdout


def plain(text):
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-")


def main():
    with Node(sys.argv[1]) as node:
        texts = {}
        for name, path in pages(node):
            lint(path)
            texts[name] = plain(path.read_text())
        for words, _ in commands(node):
            assert " ".join(("jitc", *words)) in texts["jitc.1"], words
        for name, setting in json.loads(node.jitc("config", "--json").stdout).items():
            assert f"{name} = " in texts["jitc.toml.5"] and setting["environment"] in texts["jitc.toml.5"], name
        assert "--foreground" in texts["jitcd.8"]
        header = (ROOT / "client/include/jitc/jitc.h").read_text()
        for function in re.findall(r"^JITC_API [^(;]*?\b(jitc_\w+)\(", header, re.M):
            assert f"{function}(" in texts["libjitc.3"], function


main()
