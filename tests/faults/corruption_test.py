#!/usr/bin/python3
"""An artifact is cut short or a bit of it flips, at 100 places: it is found out, put away and built again."""
import json
import os
import random
import sys

from harness import Node

SOURCE = "#include <math.h>\nvoid f(const double *u, double *out) { out[0] = sqrt(u[0]) + pow(u[1], 1.5); }\n"
PLACES = 100


def damage(path, good, place, generator):
    """Half of the places cut the file, half flip one bit; the first ones are the known traps."""
    cuts = [0, 10, 100, 1000, len(good) // 2, len(good) - 1]
    os.chmod(path, 0o600)
    if place % 2 == 0:
        size = cuts[place // 2] if place // 2 < len(cuts) else generator.randrange(len(good))
        path.write_bytes(good[:size])
        return f"cut to {size} bytes"
    at = generator.randrange(len(good))
    bit = generator.randrange(8)
    path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1:])
    return f"bit {bit} of byte {at} flipped"


def main():
    generator = random.Random(20)
    with Node(sys.argv[1]) as node:
        source = node.write("f.c", SOURCE)
        first = node.jitc("submit", "--json", source)
        assert first.returncode == 0, first.stderr
        path = node.scratch / json.loads(first.stdout)["path"]
        for place in range(PLACES):
            good = path.read_bytes()
            what = damage(path, good, place, generator)
            again = node.jitc("submit", "--json", source)
            assert again.returncode == 0, f"{what}: exit {again.returncode}: {again.stderr}"
            answer = json.loads(again.stdout)
            assert answer["path"] == str(path) and not answer["hit"], f"{what}: {answer}"
            verified = node.jitc("cache", "verify")
            assert verified.returncode == 0, f"{what}: {verified.stdout}{verified.stderr}"
        stats = node.stats()
        assert stats["quarantined"] == PLACES, stats
        assert stats["compiles_started"] == PLACES + 1, stats
    print(f"{PLACES} damaged artifacts, each found out and built again")


if __name__ == "__main__":
    main()
