#!/usr/bin/python3
"""The shim does to a process what its rules say, tells of it, and does nothing else.

usage: fault_shim_test.py SHIM
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from fault_bench import Hold, Shim

SHIM = sys.argv[1]

# Runs under the shim; prints what each call gives, an errno's name where it fails.
PROBE = r"""
import errno, os, sys
def report(name, work):
    try: print(name, work())
    except OSError as error: print(name, errno.errorcode[error.errno])
d = sys.argv[1]
def read():
    fd = os.open(d + "/file", os.O_RDONLY)
    try: return len(os.read(fd, 100)), len(os.pread(fd, 100, 0))
    finally: os.close(fd)
def write():
    fd = os.open(d + "/new", os.O_WRONLY | os.O_CREAT)
    try: return os.write(fd, b"0123456789"), os.fsync(fd)
    finally: os.close(fd)
report("stat", lambda: os.stat(d + "/file").st_size)
report("read", read)
report("write", write)
report("link", lambda: os.link(d + "/file", d + "/linked"))
report("rename", lambda: os.rename(d + "/new", d + "/renamed"))
report("list", lambda: sorted(os.listdir(d)))
report("mkdir", lambda: os.mkdir(d + "/sub"))
report("touch", lambda: os.utime(d + "/file"))
report("unlink", lambda: os.unlink(d + "/renamed"))
"""


def probe(shim, place, **environment):
    done = subprocess.run([sys.executable, "-c", PROBE, str(place)], text=True, timeout=60, capture_output=True,
                          env={**os.environ, **shim.environment(), **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def place_in(scratch, name):
    place = pathlib.Path(scratch) / name
    place.mkdir()
    (place / "file").write_text("0123456789")
    return place


def all_is_well(scratch):
    shim = Shim(SHIM, scratch, "none")
    shim.set("fail all /nowhere/* EIO", f"fail all {scratch}/well/* EIO rank 3", f"fail all {scratch}/* EIO program sh")
    told = probe(shim, place_in(scratch, "well"), FAULT_RANK="2")
    assert told == {"stat": "10", "read": "(10, 10)", "write": "(10, None)", "link": "None", "rename": "None",
                    "list": "['file', 'linked', 'renamed']", "mkdir": "None", "touch": "None", "unlink": "None"}, told
    assert not shim.told()


def every_operation_fails(scratch):
    for name in ("ENOENT", "ESTALE", "EBUSY", "ENOSPC", "EIO"):
        place = place_in(scratch, name)
        shim = Shim(SHIM, scratch, f"all-{name}")
        shim.set(f"fail stat,link,list,mkdir,touch,read,write {place}* {name} rank 1")
        told = probe(shim, place, FAULT_RANK="1")
        failing = {operation for operation, answer in told.items() if answer == name}
        assert failing == {"stat", "read", "write", "link", "list", "mkdir", "touch"}, told
        assert {line["operation"] for line in shim.faults()} == failing


def by_count(scratch):
    place = place_in(scratch, "count")
    shim = Shim(SHIM, scratch, "count")
    shim.set(f"fail open {place}/* EIO call 2", f"fail unlink,rename {place}/* ENOENT from 1 after",
             f"watch open {place}/* from 2")
    told = probe(shim, place)
    assert told["read"] == "(10, 10)" and told["write"] == "EIO", told
    assert told["rename"] == "ENOENT" and told["unlink"] == "ENOENT", told
    assert [line["effect"] for line in shim.told()] == ["EIO", "ENOENT", "ENOENT"]


def done_though_reported_as_failed(scratch):
    place = place_in(scratch, "after")
    shim = Shim(SHIM, scratch, "after")
    shim.set(f"fail link {place}/* EIO after")
    told = probe(shim, place)
    assert told["link"] == "EIO" and (place / "linked").exists(), told


def short(scratch):
    place = place_in(scratch, "short")
    shim = Shim(SHIM, scratch, "short")
    shim.set(f"short read {place}/* 3 call 1", f"short read {place}/* 0", f"short write {place}/* 4")
    told = probe(shim, place)
    assert told["read"] == "(3, 0)" and told["write"] == "(4, None)", told


def held_until_released(scratch):
    place = place_in(scratch, "held")
    shim, hold = Shim(SHIM, scratch, "held"), Hold(scratch)
    shim.set(f"hold open {place}/file {hold.path}")
    running = subprocess.Popen([sys.executable, "-c", PROBE, str(place)], env={**os.environ, **shim.environment()},
                               text=True, stdout=subprocess.PIPE)
    assert [line["effect"] for line in shim.wait_for_a_line()] == ["hold"]
    assert running.poll() is None
    hold.release()
    assert "read (10, 10)" in running.communicate(timeout=60)[0]


def wrong_rules_end_the_process(scratch):
    shim = Shim(SHIM, scratch, "wrong")
    for rule in ("fail open", "fail fly /x EIO", "fail open /x EWHAT", "short read /x some", "fail open /x EIO often"):
        shim.set(rule)
        done = subprocess.run(["cat", "/dev/null"], env={**os.environ, **shim.environment()}, timeout=60,
                              capture_output=True, check=False)
        assert done.returncode == 99 and rule.encode() in done.stderr, (rule, done)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="jitc-shim-") as directory:
        for scenario in (all_is_well, every_operation_fails, by_count, done_though_reported_as_failed, short,
                         held_until_released, wrong_rules_end_the_process):
            begin = time.monotonic()
            scenario(directory)
            print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
