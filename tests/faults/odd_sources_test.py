#!/usr/bin/python3
"""Sources that nobody means well: each is compiled, or refused with a reason, by every compiler; the daemon, its worker
and the next request are none the worse."""
import os
import sys

from harness import Node, children

DONE, INVALID, REFUSED = 0, 1, 4
FUNCTION = b"double f(double x) { return x; }\n"
SOURCES = {
    "empty": (b"", {REFUSED}),
    "blank": (b"\n \t\n", {REFUSED}),
    "no newline at the end": (FUNCTION.rstrip(), {DONE}),
    "returns only": (FUNCTION.replace(b"\n", b"\r"), {DONE, INVALID}),
    "a comment of a megabyte in one line": (b"/*" + b"x" * (1 << 20) + b"*/ " + FUNCTION, {DONE}),
    "a string of a megabyte": (b'const char s[] = "' + b"x" * (1 << 20) + b'";\n' + FUNCTION, {DONE}),
    "a name of 100,000 characters": (b"double " + b"f" * 100_000 + b"(void) { return 1; }\n", {DONE}),
    "zero bytes": (b"double f(void) { return \0 1; }\n", {DONE, INVALID, REFUSED}),
    "only zero bytes": (b"\0" * 4096, {DONE, INVALID, REFUSED}),
    "no UTF-8": (b"double f(void) { return \xff\xfe; }\n", {INVALID}),
    "no UTF-8 in a comment": (b"/* \xff\xfe\x80 */ " + FUNCTION, {DONE, INVALID}),
    # Sharing prints none of them.
    "100,000 parentheses": (b"double f(void) { return " + b"(" * 100_000 + b"1" + b")" * 100_000 + b"; }\n",
                            {DONE, INVALID}),
    "100,000 braces": (b"void f(void) " + b"{" * 100_000 + b"}" * 100_000 + b"\n", {INVALID}),
    "a file of the system": (b'#include "/etc/shadow"\n' + FUNCTION, {REFUSED}),
    "the same as a trigraph": (b'??=include "/etc/shadow"\n' + FUNCTION, {INVALID, REFUSED}),
    "the same over two lines": (b'#inc\\\nlude "/etc/shadow"\n' + FUNCTION, {REFUSED}),
    "the same from a macro": (b'#define F "/etc/shadow"\n#include F\n' + FUNCTION, {REFUSED}),
    "a file as data": (b'const char s[] = {\n#embed "/etc/shadow"\n};\n', {INVALID, REFUSED}),
    "assembler": (b'void f(void) { __asm__("ud2"); }\n', {REFUSED}),
    "assembler beside functions": (b'__asm__(".incbin \\"/etc/shadow\\"");\n' + FUNCTION, {REFUSED}),
    "a constructor": (b"__attribute__((constructor)) void f(void) {}\n", {REFUSED}),
    "unfinished comment": (b"/* " + FUNCTION, {INVALID}),
    "unfinished condition": (b"#if 1\n" + FUNCTION, {INVALID}),
    "includes itself": (b'#include __FILE__\n', {INVALID, REFUSED}),
}


def main():
    with Node(sys.argv[1]) as node:
        assert node.jitc("daemon", "start").returncode == 0
        daemon = node.daemon_pid()
        worker = children(daemon)
        for compiler in ("clang", "gcc"):
            for name, (text, expected) in SOURCES.items():
                path = node.scratch / "odd.c"
                path.write_bytes(text)
                done = node.jitc("submit", f"--cc={compiler}", path)
                assert done.returncode in expected, f"{compiler}, {name}: exit {done.returncode}: {done.stderr[:2000]}"
                assert done.returncode == DONE or done.stderr, f"{compiler}, {name}: no reason"
                assert "root:" not in done.stderr, f"{compiler}, {name}: {done.stderr[:2000]}"
            good = node.jitc("submit", f"--cc={compiler}", node.write("good.c", FUNCTION.decode()))
            assert good.returncode == 0, good.stderr
        assert node.daemon_pid() == daemon and children(daemon) == worker
        os.kill(daemon, 0)
        stats = node.stats()
        assert stats["running"] == 0 and stats["worker_restarts"] == 0, stats


if __name__ == "__main__":
    main()
