#!/usr/bin/python3
"""The simulator of the hand-off (tests/bench/scale.py): small cases by hand, what must not grow, what the page says.

    scale_test.py ROOT
"""
import dataclasses
import pathlib
import re
import sys

import numpy

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tests" / "bench"))
import scale  # noqa: E402

# One rank on each node, messages of a second and of a byte a second: times can be counted on fingers.
FINGERS = scale.Parameters(ranks_per_node=1, latency=1.0, bandwidth=1.0, yielding=1e9)


def starts(count):
    return numpy.zeros(count)


def same(a, b):
    assert numpy.allclose(a, b, rtol=1e-12, atol=0), f"{a} is not {b}"


def broadcast_by_hand():
    """Messages of 2 bytes take 3 s: rank 1 after 3, ranks 2 and 3 after 6, 4 to 7 after 9."""
    ranks = scale.Ranks(8, FINGERS)
    same(ranks.broadcast(starts(8), 2), [0, 3, 6, 6, 9, 9, 9, 9])
    assert ranks.sent == 7 * 2
    same(scale.Ranks(5, FINGERS).broadcast(starts(5), 2), [0, 3, 6, 6, 9])
    late = numpy.array([0, 10.0, 0, 0])
    same(scale.Ranks(4, FINGERS).broadcast(late, 2), [0, 10, 6, 13])


def allreduce_by_hand():
    """Up in as many rounds as down; the last leaf hears after both."""
    ranks = scale.Ranks(8, FINGERS)
    ends = ranks.allreduce(starts(8), 2)
    assert ends.max() == 2 * 3 * 3 and ends[0] == 3 * 3 and ranks.sent == 2 * 7 * 2
    # A rank that comes late holds up all others.
    late = starts(8)
    late[5] = 100.0
    assert scale.Ranks(8, FINGERS).allreduce(late, 2).min() >= 100 + 3


def formula():
    """2 ceil(log2 P) (latency + bytes / bandwidth), for powers of two exactly, else at most."""
    p = scale.Parameters(ranks_per_node=1)
    one = p.latency + 8 * p.certificate_words / p.bandwidth
    for count in (2, 64, 65536):
        same(scale.jitc_again(count, p).seconds, 2 * (count - 1).bit_length() * one)
    assert scale.jitc_again(100_000, p).seconds <= 2 * 17 * one


def nodes_share_their_port():
    """Two nodes of two ranks: within a node the copy; between them both ranks at once, each at half the speed."""
    p = dataclasses.replace(FINGERS, ranks_per_node=2, local_latency=0.5, local_bandwidth=2.0)
    same(scale.Ranks(4, p).broadcast(starts(4), 2), [0, 1.5, 6.5, 6.5])


def sleeping_ranks_look_late():
    """A rank that has waited for longer than it yields sees what came up to one sleep later, and never earlier."""
    p = scale.Parameters()
    ranks = scale.Ranks(1000, p)
    came = numpy.full(1000, 2.0)
    seen = ranks.looks(came, starts(1000))
    assert (seen >= came).all() and (seen <= came + p.longest_sleep).all()
    assert seen.max() > came[0] + 0.9 * p.longest_sleep
    short = numpy.full(1000, p.yielding / 2)
    same(ranks.looks(short, starts(1000)), short)


def what_grows():
    """jitc's calls on the store, its compilers and its bytes from there do not grow with the ranks; the peers' do."""
    p = scale.Parameters()
    few, many = 128, 131072
    for is_in_store, compilers in ((False, 1), (True, 0)):
        outcomes = [scale.jitc(count, p, is_in_store) for count in (few, many)]
        assert len({(o.operations, o.storage_bytes, o.compilers) for o in outcomes}) == 1, outcomes
        assert outcomes[0].compilers == compilers
    for lag in (0, p.lag):
        assert scale.barrier_and_reload(many, p, False, lag).operations > \
            scale.barrier_and_reload(few, p, False, lag).operations
    reload = scale.barrier_and_reload(many, p, False, 0)
    assert reload.compilers == 1 and reload.operations == 2 * 1024 + 6 + 2 * many + 2 * 1024
    assert scale.barrier_and_reload(many, p, False, p.lag).compilers == 1 + many - 128
    assert scale.barrier_and_reload(many, dataclasses.replace(p, compile_seconds=60), False, p.lag).compilers == 1
    assert scale.every_rank_compiles(many, p, 0).compilers == many
    crowded = dataclasses.replace(p, compile_memory=p.node_memory / 32)
    assert scale.every_rank_compiles(128, crowded, 0).seconds > 4 * p.compile_seconds


def same_twice():
    p = scale.Parameters()
    assert scale.jitc(5000, p, False) == scale.jitc(5000, p, False)


def constants_of_the_source():
    """The sizes that travel are those of the source."""
    p = scale.Parameters()
    certificate = (ROOT / "client/gate/certificate.h").read_text()
    assert f"std::array<std::uint64_t, {p.certificate_words}>" in certificate
    pacing = (ROOT / "client/gate/collectives.h").read_text()
    assert f"yielding = std::chrono::milliseconds({round(p.yielding / scale.MS)})" in pacing
    assert f"longest_sleep = std::chrono::milliseconds({round(p.longest_sleep / scale.MS)})" in pacing


def page_is_what_the_script_prints():
    p = scale.Parameters()
    page = (ROOT / "docs/scale.md").read_text()
    counts = [int(number.replace(",", "")) for number in dict.fromkeys(re.findall(r"\| jitc \| ([\d,]+)", page))]
    assert scale.filled(page, scale.tables(counts, p)) == page, "docs/scale.md is old: ./run bench scale"
    for name, text in scale.plots(p).items():
        assert (ROOT / "docs" / name).read_text() == text, f"docs/{name} is old: ./run bench scale"


for test in (broadcast_by_hand, allreduce_by_hand, formula, nodes_share_their_port, sleeping_ranks_look_late,
             what_grows, same_twice, constants_of_the_source, page_is_what_the_script_prints):
    test()
    print(f"{test.__name__}: fine")
