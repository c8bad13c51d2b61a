#!/usr/bin/python3
"""A daemon serves before it goes through its store, and while it does; and while a disk takes long to keep what was
published.

usage: store_care_test.py BIN_DIRECTORY SHIM
"""
import contextlib
import sys

from fault_bench import Hold, Shim
from harness import Node

BIN, SHIM = sys.argv[1:]


def submit(node, path):
    done = node.jitc("submit", "-o", node.scratch / "f.so", path)
    assert done.returncode == 0, done.stderr


def start(node, **further):
    started = node.jitc("daemon", "start", further=further)
    assert started.returncode == 0, started.stderr


def goes_through_it_beside(node, path, shim, hold):
    """A large store on a slow file system: its shards hang when they are listed, until the test lets them go on."""
    shim.set(f"hold list {node.store}/v1/?? {hold.path} program jitcd")
    start(node, **shim.environment())
    held = shim.wait_for_a_line()
    assert held[0]["operation"] == "list" and held[0]["effect"] == "hold", held
    submit(node, path)
    new = node.write("g.c", "double g(double x) { return 3 * x; }\n")
    submit(node, new)  # looked up, compiled and published by the daemon
    submit(node, new)
    stats = node.stats()
    assert stats["hits"] == 2 and stats["compiles_started"] == stats["published"] == 1, stats
    # It is gone through in the end.
    shim.set(f"watch list {node.store}/v1/quarantine")
    hold.release()
    assert shim.wait_for_a_line()[0]["operation"] == "list"


def syncs_beside(node, shim, hold):
    """As many publishes as there are I/O threads and more, none of which the disk ever takes."""
    shim.set(f"hold fsync {node.store}/* {hold.path} program jitcd")
    for number in range(5):
        submit(node, node.write(f"h{number}.c", f"double h(double x) {{ return x + {number}; }}\n"))
    assert shim.wait_for_a_line()[0]["operation"] == "fsync"
    stats = node.stats()
    assert stats["published"] == 6, stats
    shim.set(f"watch fsync {node.store}/v1")
    hold.release()
    told = []
    while len(told) < 5:  # each was made durable, in turn
        told += shim.wait_for_a_line()


def main():
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(Node(BIN, JITC_IDLE_EXIT="0"))
        path = node.write("f.c", "double f(double x) { return 2 * x; }\n")
        start(node)
        submit(node, path)
        assert node.jitc("daemon", "stop").returncode == 0
        shim, hold = Shim(SHIM, node.scratch, "daemon"), Hold(node.scratch)
        goes_through_it_beside(node, path, shim, hold)
        syncs_beside(node, shim, hold)
        print("served while the store was gone through, and while the disk hung")


if __name__ == "__main__":
    main()
