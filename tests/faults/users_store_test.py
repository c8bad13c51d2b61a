#!/usr/bin/python3
"""Stores between users, with real uids and a daemon of each: a group's store, a read-only layer of somebody else's, and
a private one into which another user's artifact got.

usage: users_store_test.py BIN_DIRECTORY
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import Node

BIN = sys.argv[1]
GROUP = 70000
ALICE, BOB = 70001, 70002


def source(name):
    return f"double {name}(double x) {{ return 2 * x; }}\n"


class Member(Node):
    """A user of the group with a daemon of their own, started under a umask that would hide everything."""

    def __init__(self, uid, **settings):
        super().__init__(BIN, **settings)
        self.uid = uid
        self.log = self.scratch / "log"
        self.environment["JITC_LOG"] = f"info:{self.log}"
        for path in (self.scratch, self.scratch / "tmp"):
            os.chown(path, uid, GROUP)
        self.scratch.chmod(0o755)

    def jitc(self, *arguments, **kwargs):
        as_user = ["setpriv", f"--reuid={self.uid}", f"--regid={GROUP}", "--clear-groups", str(self.bin / "jitc")]
        return subprocess.run([*as_user, *map(str, arguments)], env=self.environment, text=True, timeout=120, umask=0o077,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def submit(self, name, *arguments):
        path = self.write(f"{name}.c", source(name))
        return self.jitc("submit", path, *arguments)

    def path_of(self, name):
        done = self.submit(name)
        assert done.returncode == 0, done.stderr
        return pathlib.Path(done.stdout.strip())

    def logged(self, text):
        return self.log.read_text().count(text)


def group_store(directory):
    store = directory / "store"
    settings = {"JITC_STORE": str(store), "JITC_STORE_MODE": "0660", "JITC_STORE_ALLOW_SHARED": "1"}
    with Member(ALICE, **settings) as alice, Member(BOB, **settings) as bob:
        path = alice.path_of("one")
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (ALICE, GROUP, 0o660), status
        assert path.parent.stat().st_mode & 0o7777 == 0o2770, oct(path.parent.stat().st_mode)
        assert bob.path_of("one") == path
        assert bob.path_of("two").stat().st_uid == BOB, "a member publishes too"
        assert alice.path_of("two").stat().st_uid == BOB
        stats = bob.stats()
        assert stats["compiles_started"] == 1 and stats["untrusted"] == 0, stats
        assert alice.stats()["compiles_started"] == 1

        # What a member may not read is compiled, answered with its bytes, and said once.
        path.chmod(0o600)
        hidden = alice.path_of("three")
        hidden.chmod(0o600)
        for name in ("one", "three"):
            copy = bob.scratch / f"{name}.so"
            done = bob.submit(name, "-o", copy)
            assert done.returncode == 0 and copy.read_bytes()[:4] == b"\x7fELF", done.stderr
            assert "not kept in the store" in done.stderr, done.stderr
        assert bob.stats()["compiles_started"] == 3
        assert bob.logged("artifacts are not kept") == 1, bob.log.read_text()
        assert path.stat().st_uid == ALICE and hidden.exists(), "it may be whole: it stays"
        path.chmod(0o660)
        assert bob.path_of("one") == path
        cleaned = bob.jitc("cache", "rm", "--all", "--yes")
        assert cleaned.returncode == 0 and not path.exists(), cleaned.stderr

        # Who does not declare it as the group's is told so.
        with Member(BOB, JITC_STORE=str(store)) as undeclared:
            done = undeclared.submit("one")
            assert done.returncode != 0 and "JITC_STORE_ALLOW_SHARED" in done.stderr + undeclared.log.read_text(), done.stderr


def first_member_without_a_mode(directory):
    """The settings' default hides artifacts from the group; the directories are the group's all the same."""
    store = directory / "open"
    store.mkdir()
    os.chown(store, 0, GROUP)
    store.chmod(0o2770)
    settings = {"JITC_STORE": str(store), "JITC_STORE_ALLOW_SHARED": "1"}
    with Member(ALICE, **settings) as alice, Member(BOB, JITC_STORE_MODE="0660", **settings) as bob:
        assert alice.path_of("one").stat().st_mode & 0o7777 == 0o600
        assert alice.logged("others of the store cannot read") == 1, alice.log.read_text()
        path = bob.path_of("two")
        assert path.stat().st_uid == BOB and path.stat().st_gid == GROUP, path.stat()
        for one in (store / "v1", store / "v1/tmp", path.parent):
            assert one.stat().st_mode & 0o7777 == 0o2770, one
        assert bob.logged("others of the store cannot read") == 0, bob.log.read_text()
        done = bob.submit("one", "-o", bob.scratch / "one.so")
        assert done.returncode == 0 and "cannot be opened: Permission denied" in done.stderr, done.stderr


def another_users_layer(directory):
    store = directory / "alices"  # nobody but root could have made it there
    store.mkdir()
    os.chown(store, ALICE, GROUP)
    store.chmod(0o755)
    with Member(ALICE, JITC_STORE=str(store), JITC_STORE_MODE="0644") as alice:
        path = alice.path_of("one")
        with Member(BOB, JITC_STORE_READONLY=str(store)) as bob:
            assert bob.path_of("one") == path
            assert bob.stats()["compiles_started"] == 0
            # Another user's copy comes where it was: for the daemon, and for who reads what it left on file.
            kept = store.rename(directory / "kept")
            shutil.copytree(kept, store)
            for one in (store, *store.rglob("*")):
                os.chown(one, BOB + 1, GROUP)
            assert bob.path_of("one").is_relative_to(bob.store)
            assert bob.stats()["compiles_started"] == 1
            shutil.rmtree(bob.store / "v1")
            assert bob.jitc("daemon", "stop").returncode == 0
            bob.environment["JITC_AUTOSTART"] = "0"
            assert bob.submit("one").returncode != 0, "no direct hit either"
            shutil.rmtree(store)
            kept.rename(store)
            assert bob.submit("one").stdout.strip() == str(path)
        os.chown(path, BOB + 1, GROUP)  # a third user's in Alice's store
        with Member(BOB, JITC_STORE_READONLY=str(store)) as bob:
            assert bob.path_of("one").is_relative_to(bob.store)
            stats = bob.stats()
            assert stats["compiles_started"] == 1 and stats["untrusted"] >= 1, stats
        store.chmod(0o775)
        with Member(BOB, JITC_STORE_READONLY=str(store)) as bob:
            assert bob.path_of("two").is_relative_to(bob.store)
            assert bob.logged("read-only store left out") == 1, bob.log.read_text()
        store.chmod(0o755)
        directory.chmod(0o1777)
        with Member(BOB, JITC_STORE_READONLY=str(store)) as bob:  # anybody could have made one there
            assert bob.path_of("two").is_relative_to(bob.store)
            assert bob.logged("read-only store left out") == 1, bob.log.read_text()


def private_store():
    with Member(ALICE) as alice, Member(BOB) as bob:
        bob.path_of("two")
        theirs = alice.path_of("one")
        put = bob.store / theirs.relative_to(alice.store)
        if not put.parent.exists():
            put.parent.mkdir()
            os.chown(put.parent, BOB, GROUP)
            put.parent.chmod(0o700)
        shutil.copy(theirs, put)
        put.chmod(0o644)
        os.chown(put, ALICE, GROUP)
        assert bob.path_of("one") == put
        stats = bob.stats()
        assert stats["compiles_started"] == 2 and stats["untrusted"] >= 1 and stats["quarantined"] == 1, stats
        assert put.stat().st_uid == BOB and put.stat().st_mode & 0o7777 == 0o600
        assert bob.logged("artifact is not trusted") >= 1, bob.log.read_text()
        assert bob.path_of("one") == put and bob.stats()["compiles_started"] == 2


def why_not_here():
    if os.geteuid() != 0:
        return "only root can become other users"
    if not shutil.which("setpriv"):
        return "no setpriv"
    reaches = ["setpriv", f"--reuid={BOB}", f"--regid={GROUP}", "--clear-groups", f"{BIN}/jitc", "version"]
    if subprocess.run(reaches, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        return f"another user cannot run {BIN}/jitc"
    return None


if reason := why_not_here():
    print(reason)
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="jitc-group-") as scratch:
    os.chown(scratch, 0, GROUP)
    os.chmod(scratch, 0o2770)
    group_store(pathlib.Path(scratch))
    first_member_without_a_mode(pathlib.Path(scratch))
with tempfile.TemporaryDirectory(prefix="jitc-layer-") as scratch:
    os.chmod(scratch, 0o755)
    another_users_layer(pathlib.Path(scratch))
private_store()
print("stores between users are as they should be")
