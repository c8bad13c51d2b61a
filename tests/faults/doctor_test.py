#!/usr/bin/python3
"""`jitc doctor` where things are really broken: file systems that are full, read-only, noexec or hang, directories of
others, sockets with too long a path, wrong settings, no compiler, daemons that are dead or stopped.

usage: doctor_test.py BIN_DIRECTORY [LAGGING_FS]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

from harness import Node

FOUND = 10
SOURCE = "double f(double x) { return 2 * x; }\n"


class Doctor(Node):
    def findings(self, *arguments, code=None, before="", further=None):
        """Check -> finding, the last of a name. `before`: commands in a mount namespace of their own."""
        command = [str(self.bin / "jitc"), "doctor", "--json", *map(str, arguments)]
        if before:
            command = ["unshare", "-m", "sh", "-ec", f'{before}\nexec "$@"', "sh", *command]
        done = subprocess.run(command, env={**self.environment, **(further or {})}, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.stdout, done.stderr
        report = json.loads(done.stdout)
        for one in report["checks"]:
            assert one["found"] and (one["verdict"] == "ok") == (one["remedy"] == ""), one
        assert done.returncode == (FOUND if report["verdict"] == "fail" else 0), report
        assert code is None or done.returncode == code, report
        return {one["check"]: one for one in report["checks"]}

    def is_clean(self):
        """Nothing of doctor's is left, neither in the store nor among the temporary files."""
        left = list((self.scratch / "tmp").iterdir())
        if self.store.exists():
            left += [path for path in self.store.rglob("*") if path.is_file() and path.suffix != ".so"]
        assert not left, left


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                                                stderr=subprocess.DEVNULL, timeout=60).returncode == 0


def expect(findings, check, verdict, words):
    one = findings[check]
    assert one["verdict"] == verdict and words in one["found"] + " -> " + one["remedy"], one


def all_is_well(node):
    findings = node.findings(code=0)
    for check in ("settings", "store.directory", "store.links", "store.rename", "store.fsync", "store.publish",
                  "store.lease", "runtime.socket", "service.start", "compiler.clang", "compiler.gcc", "memory_files"):
        assert findings[check]["verdict"] == "ok", findings[check]
    assert any(check.startswith("limit.") for check in findings)
    assert not node.store.exists(), "a store that was not there is not there afterwards"
    node.is_clean()
    node.jitc("submit", node.write("f.c", SOURCE))
    expect(node.findings(), "daemon", "ok", "answers")
    node.is_clean()
    text = node.jitc("doctor").stdout
    assert "\033" not in text, "no terminal, no colours"
    assert text.splitlines()[-1].startswith("jitc works here"), text


def daemons(node):
    pid = node.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    expect(node.findings(code=FOUND, further={"JITC_TIMEOUT": "2s"}), "daemon", "fail", "does not answer")
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    process = pathlib.Path(f"/proc/{pid}")
    while process.exists() and ") Z " not in (process / "stat").read_text():
        pass  # SIGKILL has been sent
    expect(node.findings(), "daemon", "warn", "has left its socket")


def settings(node):
    file = node.scratch / "wrong.toml"
    file.write_text('max_compilers = "many"\n')
    findings = node.findings(code=FOUND, further={"JITC_JOB_FILE": str(file), "JITC_STORR": "/x"})
    expect(findings, "settings", "fail", "many")
    expect(findings, "settings.variables", "warn", "JITC_STORR")
    assert "store.links" not in findings and "ulimit.processes" in findings


def places(node):
    long = node.scratch / ("x" * 120)
    open_to_all = node.scratch / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    findings = node.findings("--runtime-dir", long, "--store", open_to_all / "store", code=FOUND,
                             further={"JITC_STORE_READONLY": str(node.scratch / "nowhere")})
    expect(findings, "runtime.socket", "fail", "107")
    expect(findings, "store.directory", "fail", "chmod go-w")
    expect(findings, "layer", "fail", "nowhere")
    other = node.scratch / "other"
    other.mkdir()
    (other / "file").touch()
    expect(node.findings("--store", other, code=FOUND), "store.directory", "fail", "not a store")
    assert [path.name for path in other.iterdir()] == ["file"]
    if os.geteuid() == 0:
        foreign = node.scratch / "foreign"
        foreign.mkdir()
        os.chown(foreign, 70001, 70001)
        expect(node.findings("--store", foreign, code=FOUND), "store.directory", "fail", "uid 70001")


def no_compiler(node):
    findings = node.findings(further={"PATH": str(node.scratch)}, code=0)
    expect(findings, "compiler.gcc", "warn", "no gcc")
    assert findings["compiler.clang"]["verdict"] == "ok" and findings["mpi.run"]["verdict"] == "warn"


def broken_compiler(node):
    """A gcc that says what it is, and has no assembler."""
    gcc = node.scratch / "bin" / "gcc"
    gcc.parent.mkdir()
    gcc.write_text('#!/bin/sh\ncase "$*" in *-c*|*-shared*) echo "cannot execute as" >&2; exit 1;; esac\n'
                   'exec /usr/bin/gcc "$@"\n')
    gcc.chmod(0o755)
    findings = node.findings(further={"PATH": f"{gcc.parent}:{os.environ['PATH']}"}, code=FOUND)
    expect(findings, "compiler.gcc", "fail", "does not compile")


def mounts(node):
    place = node.scratch / "mount"
    place.mkdir()
    mount = f"mount -t tmpfs -o mode=0755,size=%s tmpfs {place}"
    noexec = node.findings("--store", place / "store", before=mount % "64m,noexec", code=0)
    expect(noexec, "store.mapping", "warn", "noexec")
    fill = f"{mount % '20m'}; head -c 30M /dev/zero > {place}/fill 2>/dev/null || true"
    full = node.findings("--store", place / "store", before=fill, code=FOUND)
    expect(full, "store.space", "fail", "0 KiB free")
    expect(full, "store.publish", "fail", "No space left")
    few = node.findings("--store", place / "store", before=mount % "64m,nr_inodes=3", code=FOUND)
    expect(few, "store.inodes", "fail", "free")
    read_only = f"{mount % '64m'}; mkdir -m 700 {place}/store; mount -o remount,ro {place}"
    closed = node.findings("--store", place / "store", before=read_only, code=FOUND)
    expect(closed, "store.directory", "fail", "read-only")
    assert "store.links" not in closed, "nothing is tried there"


def hanging(node, lagging_fs):
    """A server that does not answer any more: the check that hangs is named, and the others are done."""
    backing, place = node.scratch / "backing", node.scratch / "server"
    backing.mkdir()
    place.mkdir()
    server = subprocess.Popen([lagging_fs, str(backing), str(place)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline(), "not mounted"
        without = node.findings("--store", place / "store", code=0)
        assert without["store.publish"]["verdict"] == "ok"
        os.kill(server.pid, signal.SIGSTOP)
        os.waitpid(server.pid, os.WUNTRACED)  # all of its threads: none takes a request along
        findings = node.findings("--store", place / "store", code=FOUND, further={"JITC_TIMEOUT": "2s"})
        expect(findings, "store.directory", "fail", "no answer within 2 s")
        assert "runtime.directory" in findings and "petsc" in findings
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.terminate()
        server.wait(timeout=60)


def interrupted(node):
    """What it has made goes, whenever it is ended."""
    process = subprocess.Popen([str(node.bin / "jitc"), "doctor"], env=node.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(node.scratch.glob("tmp/jitc-doctor-*/jitcd.sock")):
        pass  # its own daemon comes up, or was not seen in the moment that it was there
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert process.returncode in (9, 0), (process.returncode, errors)  # it may have been done
    node.is_clean()
    mine = f"TMPDIR={node.scratch}/tmp".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mine in (entry / "environ").read_bytes().split(b"\0"):
                raise AssertionError(f"left behind: {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            continue  # it has ended


def main():
    with Doctor(sys.argv[1]) as node:
        all_is_well(node)
        daemons(node)
    with Doctor(sys.argv[1]) as node:
        settings(node)
        places(node)
        no_compiler(node)
        broken_compiler(node)
        interrupted(node)
        if can_mount():
            mounts(node)
            if len(sys.argv) > 2 and os.path.exists("/dev/fuse"):
                hanging(node, sys.argv[2])
        else:
            print("no file system can be mounted here: that part is left out")


main()
