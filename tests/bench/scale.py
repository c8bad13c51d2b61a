#!/usr/bin/python3
"""The hand-off at 10^2 to 10^5 ranks, simulated: jitc beside barrier-and-reload and beside a compile on every rank.

    scale.py                    prints the tables of docs/scale.md
    scale.py --write DOCS       puts them and the plots into that directory         ./run bench scale
    scale.py --ranks 4096 ...   for these numbers of ranks; every parameter is a flag, see --help

Pure and deterministic: times follow from the parameters below and a seed. docs/scale.md says what the formulas mean.
"""
import argparse
import dataclasses
import math
import pathlib

import numpy

import loglog

US, MS = 1e-6, 1e-3
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
RANKS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


def parameter(default, unit, scale, text):
    """`unit` is what flags and tables use, `scale` how much of the model's own unit it is."""
    return dataclasses.field(default=default * scale, metadata={"unit": unit, "scale": scale, "text": text})


@dataclasses.dataclass(frozen=True)
class Parameters:
    """All that the model assumes: seconds, bytes and bytes a second inside."""
    ranks_per_node: int = parameter(128, "", 1, "cores of a node; 32 to 256")
    latency: float = parameter(2, "us", US,
                               "one MPI message between nodes, 1 to 3: InfiniBand HDR about 1, Slingshot about 2 "
                               "(De Sensi et al., SC20, arXiv:2008.08886)")
    bandwidth: float = parameter(12.5, "GB/s", 1e9,
                                 "of a node's network port, shared by its ranks: 100 Gb/s; 200 Gb/s ports have 25")
    local_latency: float = parameter(0.5, "us", US, "one MPI message within a node, 0.2 to 1")
    local_bandwidth: float = parameter(5, "GB/s", 1e9, "of a copy through shared memory, 2 to 10")
    node_memory: float = parameter(256, "GiB", GIB, "of a node")
    storage_rate: float = parameter(20_000, "1/s", 1,
                                    "metadata operations that the shared file system serves, one after the other: "
                                    "NFS 5,000 to 20,000, one Lustre MDT 15,000 (create) to 400,000 (stat) by "
                                    "mdtest in vendors' reports")
    storage_latency: float = parameter(0.5, "ms", MS, "of one such operation when nothing else is served, 0.2 to 2")
    storage_bandwidth: float = parameter(5, "GB/s", 1e9,
                                         "at which it hands out one file: 1 (NFS) to 10 (one Lustre OST)")
    lag: float = parameter(30, "s", 1,
                           "for which a node goes on to see that a file is missing: nfs(5) acdirmin 30, acdirmax "
                           "60; 0 on a coherent file system")
    artifact: float = parameter(64, "KiB", KIB,
                                "one compiled module: 16 for a 3-D Stokes problem, 54 for a text of 1.4 MB")
    compile_seconds: float = parameter(2, "s", 1, "one compile: 0.04 (shared Stokes, docs/performance.md) to 60")
    compile_memory: float = parameter(0.4, "GiB", GIB, "one compiler: 0.06 to 1.3")
    load_seconds: float = parameter(0.1, "ms", MS, "verify and load from memory (docs/performance.md, direct hit)")
    # What jitc does; the tests hold these against the source and against strace.
    certificate_words: int = parameter(13, "", 1,
                                       "64-bit words of the first certificate; the second has one bit a rank")
    beat_bytes: int = parameter(104, "B", 1, "one beat")
    yielding: float = parameter(1, "ms", MS, "for which a waiting rank yields before it sleeps")
    longest_sleep: float = parameter(5, "ms", MS, "between two looks of a rank that has waited for long")
    cold_operations: int = parameter(41, "", 1,
                                     "calls on the store in a job that compiles: four by the root, the others by the "
                                     "daemon that publishes")
    warm_operations: int = parameter(11, "", 1,
                                     "calls on the store in a job that finds the artifact: by the root, and one by "
                                     "its daemon")
    # What the peer does, as public solvers do it: a library and its manifest, looked for and then loaded.
    look_per_node: int = parameter(2, "", 1,
                                   "look-ups that a node makes; its ranks share the answer, also that there is none")
    open_per_rank: int = parameter(2, "", 1, "opens that every rank makes; they go to the server, whatever is cached")
    publish_operations: int = parameter(6, "", 1, "to write both files under temporary names and rename them")
    toolchain_opens: int = parameter(130, "", 1,
                                     "files that one `gcc -O3 -shared` of a few lines opens (counted by strace), "
                                     "where compiler and headers are on the shared file system")
    seed: int = parameter(1, "", 1, "of the phases in which sleeping ranks look")


@dataclasses.dataclass
class Outcome:
    """Of one job: until the last rank can call the module."""
    seconds: float
    operations: int  # on the shared file system
    storage_bytes: float  # that it hands out or takes
    network_bytes: float  # between ranks
    compilers: int


class Ranks:
    """Collectives over ranks that sit block by block on nodes. Times are arrays over the ranks, in seconds."""

    def __init__(self, count, parameters):
        self.count = count
        self.p = parameters
        self.random = numpy.random.Generator(numpy.random.PCG64(parameters.seed))
        self.sent = 0.0

    @property
    def nodes(self):
        return -(-self.count // self.p.ranks_per_node)

    @property
    def rounds(self):
        return (self.count - 1).bit_length()

    def message(self, parents, children, size, senders):
        """How long a message between these takes. `senders` ranks of a node send at once if it goes to another one."""
        per_node = self.p.ranks_per_node
        between = self.p.latency + size * senders / self.p.bandwidth
        within = self.p.local_latency + size / self.p.local_bandwidth
        self.sent += size * len(parents)
        return numpy.where(parents // per_node == children // per_node, within, between)

    def looks(self, came, since):
        """When ranks that wait `since` then see what `came`: at once while they yield, else when their sleep ends. A
        sleep is about as long as the sleeps before it together."""
        slept = came - since - self.p.yielding
        sleep = numpy.where(slept < 0, 0.0, numpy.minimum(slept, self.p.longest_sleep))
        return came + sleep * self.random.random(len(came))

    def broadcast(self, start, size, sleeps=True, since=None):
        """From rank 0 down a binomial tree: when each rank has it. In round k rank r < 2^k sends to r + 2^k, all ranks
        of a node at once. `since` is when each rank began to wait."""
        since = start if since is None else since
        has = start.copy()
        free = start.copy()  # to send to the next child
        for distance in (1 << bit for bit in range(self.rounds)):
            parents = numpy.arange(min(distance, self.count - distance))
            children = parents + distance
            came = free[parents] + self.message(parents, children, size, min(distance, self.p.ranks_per_node))
            free[parents] = came
            came = numpy.maximum(came, start[children])
            free[children] = has[children] = self.looks(came, since[children]) if sleeps else came
        return has

    def allreduce(self, start, size, sleeps=True):
        """Up a binomial tree, in whose round k each rank that is a multiple of 2^(k+1) hears of the one 2^k further,
        and down again: what Open MPI does below 64 KiB."""
        has = start.copy()
        for distance in (1 << bit for bit in range(self.rounds)):
            parents = numpy.arange(0, self.count - distance, 2 * distance)
            children = parents + distance
            came = has[children] + self.message(parents, children, size, max(1, self.p.ranks_per_node // distance))
            seen = self.looks(came, start[parents]) if sleeps else came
            has[parents] = numpy.where(came > has[parents], seen, has[parents])
        return self.broadcast(has, size, sleeps, since=start)


def storage_seconds(p, operations, size):
    """Ranks come together: the last one is served after all others."""
    return p.storage_latency + operations / p.storage_rate + size / p.storage_bandwidth


def alone_seconds(p, operations, size):
    """One process does one operation after the other."""
    return operations * (p.storage_latency + 1 / p.storage_rate) + size / p.storage_bandwidth


def jitc(count, p, is_in_store):
    ranks = Ranks(count, p)
    operations = p.warm_operations if is_in_store else p.cold_operations
    agreed = ranks.allreduce(numpy.zeros(count), 8 * p.certificate_words)
    work = alone_seconds(p, operations, p.artifact) + (0 if is_in_store else p.compile_seconds)
    ready = agreed.copy()
    ready[0] += work
    beats = int(work)  # one a second, while the others wait; their time is not the job's
    ranks.sent += beats * p.beat_bytes * (count - 1)
    told = ranks.broadcast(ready, p.beat_bytes)
    loaded = ranks.broadcast(told, p.artifact) + p.load_seconds
    ended = ranks.allreduce(loaded, 8 * math.ceil(count / 64))
    return Outcome(float(ended.max()), operations, p.artifact, ranks.sent, 0 if is_in_store else 1)


def jitc_again(count, p):
    """A call for a module that all ranks hold: the first certificate alone."""
    ranks = Ranks(count, p)
    ended = ranks.allreduce(numpy.zeros(count), 8 * p.certificate_words)
    return Outcome(float(ended.max()), 0, 0, ranks.sent, 0)


def waves(count, p):
    """How many compiles a core of the fullest node runs, one after the other, when each of its ranks compiles."""
    ranks = min(count, p.ranks_per_node)
    return math.ceil(ranks / max(1, min(p.ranks_per_node, int(p.node_memory // p.compile_memory))))


def barrier_and_reload(count, p, is_in_store, lag):
    """All look; if one misses, rank 0 compiles and publishes, a barrier, and all load the file."""
    ranks = Ranks(count, p)
    agree = float(ranks.allreduce(numpy.zeros(count), 8, sleeps=False).max())  # blocking calls spin: nobody sleeps
    look = p.look_per_node * ranks.nodes
    load = p.open_per_rank * count + p.look_per_node * ranks.nodes
    size = p.artifact * ranks.nodes  # a node reads it once, its ranks share the pages
    seconds = storage_seconds(p, look, 0) + agree
    if is_in_store:
        return Outcome(seconds + storage_seconds(p, load - look, size) + p.load_seconds, load, size, ranks.sent, 0)
    seconds += p.compile_seconds + alone_seconds(p, p.publish_operations, p.artifact) + agree
    compilers = 1
    if lag > p.compile_seconds and ranks.nodes > 1:
        others = count - p.ranks_per_node  # of the other nodes: their kernels still answer that there is no file
        load = p.open_per_rank * p.ranks_per_node + p.look_per_node
        size = p.artifact
        compilers += others
        seconds += waves(count, p) * p.compile_seconds
    else:
        seconds += storage_seconds(p, load, size)
    operations = look + p.publish_operations + load
    return Outcome(seconds + p.load_seconds, operations, size + p.artifact, ranks.sent, compilers)


def every_rank_compiles(count, p, toolchain_opens):
    calls = toolchain_opens * count
    reading = storage_seconds(p, calls, 0) if calls else 0
    return Outcome(reading + waves(count, p) * p.compile_seconds + p.load_seconds, calls, 0, 0, count)


# ---- tables and plots ------------------------------------------------------------------------------------------------

COLD = (
    ("jitc", lambda count, p: jitc(count, p, False)),
    ("barrier and reload", lambda count, p: barrier_and_reload(count, p, False, 0)),
    ("the same, file seen late", lambda count, p: barrier_and_reload(count, p, False, p.lag)),
    ("every rank compiles", lambda count, p: every_rank_compiles(count, p, 0)),
    ("every rank, shared compiler", lambda count, p: every_rank_compiles(count, p, p.toolchain_opens)),
)
WARM = (
    ("jitc", lambda count, p: jitc(count, p, True)),
    ("every rank loads the file", lambda count, p: barrier_and_reload(count, p, True, 0)),
)


def seconds_text(seconds):
    for unit, scale in (("s", 1), ("ms", MS), ("us", US)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def bytes_text(size):
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def table(rows):
    lines = [" | ".join(row) for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
    return "\n".join(f"| {line} |" for line in lines)


def outcome_table(title, ways, counts, p):
    rows = [[title, "ranks", "until the last rank can call", "calls on the shared files", "bytes from and to them",
             "between ranks", "compilers"]]
    for name, way in ways:
        for count in counts:
            o = way(count, p)
            rows.append([name, f"{count:,}", seconds_text(o.seconds), f"{o.operations:,}", bytes_text(o.storage_bytes),
                         bytes_text(o.network_bytes), f"{o.compilers:,}"])
    return table(rows)


def again_table(counts, p):
    return table([["a call for a module that all hold", *(f"{count:,} ranks" for count in counts)],
                  ["one certificate", *(seconds_text(jitc_again(count, p).seconds) for count in counts)]])


def parameter_table(p):
    rows = [["parameter", "value", "what; usual values"]]
    for field in dataclasses.fields(p):
        rows.append([f"`{flag_of(field)}`", f"{getattr(p, field.name) / field.metadata['scale']:,g} "
                     f"{field.metadata['unit']}".strip(), field.metadata["text"]])
    return table(rows)


def tables(counts, p):
    """By the names that docs/scale.md marks their places with."""
    return {"parameters": parameter_table(p), "cold": outcome_table("cold", COLD, counts, p),
            "warm": outcome_table("in the store", WARM, counts, p), "again": again_table(counts, p)}


def plots(p):
    """SVG by file name. A way has the same colour in each."""
    def lines(ways, value):
        return [(name, colour, [(count, value(way(count, p))) for count in RANKS]) for name, colour, way in ways]

    cold = [(name, colour, way) for colour, (name, way) in enumerate(COLD)]
    calls = [("jitc, cold", 0, COLD[0][1]), ("jitc, in the store", 3, WARM[0][1]), cold[1],
             ("every rank, shared compiler", 4, COLD[4][1])]
    seconds = "seconds until the last rank can call"
    return {
        "scale_calls.svg": loglog.plot("Calls on the shared file system in one job", "ranks", "calls",
                                       lines(calls, lambda outcome: outcome.operations)),
        "scale_cold.svg": loglog.plot(f"Cold: a compile of {p.compile_seconds:g} s and its hand-off", "ranks", seconds,
                                      lines(cold, lambda outcome: outcome.seconds)),
        "scale_warm.svg": loglog.plot("In a new job, when the artifact is in the store", "ranks", seconds,
                                      lines([(name, colour, way) for colour, (name, way) in enumerate(WARM)],
                                            lambda outcome: outcome.seconds)),
    }


def filled(text, parts):
    """`text` with each part between its marks: <!-- NAME --> and <!-- end -->."""
    for name, part in parts.items():
        begin = text.index(mark := f"<!-- {name} -->\n") + len(mark)
        text = text[:begin] + part + "\n" + text[text.index("<!-- end -->", begin):]
    return text


def flag_of(field):
    return "--" + field.name.replace("_", "-")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="DOCS", type=pathlib.Path, help="the directory of scale.md and its plots")
    parser.add_argument("--ranks", type=int, nargs="+", default=[128, 1024, 16384, 131072])
    for field in dataclasses.fields(Parameters):
        unit = field.metadata["unit"]
        parser.add_argument(flag_of(field), type=field.type, metavar=unit or "N",
                            default=field.type(field.default / field.metadata["scale"]), help=field.metadata["text"])
    given = vars(parser.parse_args())
    p = Parameters(**{field.name: field.type(given[field.name] * field.metadata["scale"])
                      for field in dataclasses.fields(Parameters)})
    parts = tables(given["ranks"], p)
    if not given["write"]:
        print("\n\n".join(parts.values()))
        return
    document = given["write"] / "scale.md"
    document.write_text(filled(document.read_text(), parts))
    for name, text in plots(p).items():
        (given["write"] / name).write_text(text)


if __name__ == "__main__":
    main()
