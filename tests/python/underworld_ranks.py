"""What the ranks of underworld_mpi_test.py do. Rank 0 prints a line of JSON per scenario; an exception ends the job."""
import ctypes
import gc
import json
import os
import resource
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
LAST = WORLD.size - 1
if WORLD.rank == LAST and "old_cpu" in sys.argv:
    os.environ["JITC_TEST_ISA_MASK"] = "1"

import jitc  # noqa: E402
from jitc import underworld  # noqa: E402

ENTRY = {"residual": ["eqn_0"]}


def text(name, body="return 1.5;"):
    return [(f"{name}.c", f"double eqn_0(void) {{ {body} }}\ndouble {name};")]


def value_of(artifact):
    return ctypes.CFUNCTYPE(ctypes.c_double)(underworld.load(artifact).addresses("residual")[0])()


def compile_text(sources, comm=WORLD, **options):
    return underworld.compile_collective(comm, sources, ENTRY, **options)


def failure_of(call, comm=WORLD):
    """The exception that every rank has met, told by all."""
    try:
        call()
        mine = None
    except (jitc.Error, underworld.CompileError) as error:
        mine = type(error).__name__, str(error), getattr(error, "ranks", ())
    everybody = comm.allgather(mine)
    assert mine is not None and all(one == everybody[0] for one in everybody), everybody
    return dict(zip(("kind", "text", "ranks"), mine))


def same_everywhere(value):
    assert len(set(WORLD.allgather(value))) == 1, WORLD.allgather(value)
    return value


def once():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    artifact = compile_text(text("once"))
    assert value_of(artifact) == 1.5
    assert resource.getrusage(resource.RUSAGE_CHILDREN) == children, "a rank has started a program"
    again = compile_text(text("once"))
    return {"first": same_everywhere((artifact.key, artifact.sha256, artifact.origin)),
            "again": same_everywhere((again.key, again.sha256, again.origin))}


def stokes():
    """The same module on all ranks, of which five ramped solves compile nothing more."""
    import numpy as np
    import underworld_models as models  # SymPy takes as long as all else: only where it is wanted

    s = models.Stokes(2)
    graph = underworld.Graph.from_sympy({"residual": [s.F0, s.F1, s.PF0]}, s.layout.leaves, **s.layout.options())
    graph.jacobian(s.F1, s.layout.L["V"], components=2)
    library = graph.compile(WORLD)
    point = s.layout.random_point(np.random.default_rng(3))
    arrays = {name: values for name, values in s.layout.arrays(point).items() if name != "n"}
    exact = models.Oracle(list(s.F1), s.layout.leaves).block(point, 2, 2, s.layout.L["V"])
    for step in range(5):
        s.alpha.sym = s.alpha.sym / 2 + step
        ramped = graph.compile(WORLD)
        np.testing.assert_allclose(ramped.functions("jacobian")[0](**arrays), exact, rtol=1e-12, atol=1e-12)
    return {"key": same_everywhere(library.artifact.key), "origin": same_everywhere(ramped.artifact.origin)}


def broken_source():
    return failure_of(lambda: compile_text(text("broken", "return 1 + ;")))


def one_rank_fails_to_lower():
    def make():
        if WORLD.rank == LAST:
            raise ValueError("no such rheology")
        return text("lowered")

    return failure_of(lambda: compile_text(make))


def one_rank_fails_to_build_its_graph():
    from sympy import Symbol, besselj

    u = Symbol("T")
    return failure_of(lambda: underworld.compile_graph(
        WORLD, lambda: underworld.Graph.from_sympy(
            {"residual": [[besselj(0, u) if WORLD.rank == LAST else u]]}, {u: "petsc_u[0]"})))


def one_rank_has_a_wrong_variable():
    if WORLD.rank == LAST:
        os.environ["UW_JIT_CACHE"] = "perhaps"
    failure = failure_of(lambda: compile_text(text("variable")))
    os.environ.pop("UW_JIT_CACHE", None)
    return failure


def one_rank_has_other_flags():
    if WORLD.rank == LAST:
        os.environ["UW3_JIT_CFLAGS"] = "-O1"
    failure = failure_of(lambda: compile_text(text("flags")))
    os.environ.pop("UW3_JIT_CFLAGS", None)
    return failure


def one_rank_has_another_text():
    return failure_of(lambda: compile_text(text("another", f"return {2 if WORLD.rank == LAST else 1};")))


def one_rank_has_another_manifest():
    """Also where other ranks' sources may be adopted: values would go into another rank's slots."""
    from sympy import Symbol

    os.environ["JITC_DIVERGENT"] = "adopt"
    order = (Symbol("a"), Symbol("b")) if WORLD.rank == LAST else (Symbol("b"), Symbol("a"))
    digest = underworld.Constants(order).digest()
    failure = failure_of(lambda: compile_text(text("manifest"), manifest_digest=digest))
    del os.environ["JITC_DIVERGENT"]
    return failure


def one_rank_has_another_order_of_constants():
    import underworld_models as models
    from sympy import Symbol

    u = Symbol("T")
    names = ("b", "a") if WORLD.rank == LAST else ("a", "b")
    first, second = (models.Expression(name, 1.0) for name in names)
    graph = underworld.Graph.from_sympy({"residual": [[first * u + second * u**2]]}, {u: "petsc_u[0]"},
                                        constants=[first, second])
    return failure_of(lambda: graph.compile(WORLD))


def one_rank_has_forgotten():
    """Its module is gone; the others hold theirs."""
    held = [compile_text(text("forgotten"))]
    if WORLD.rank == LAST:
        held.clear()
        gc.collect()
    again = compile_text(text("forgotten"))
    assert value_of(again) == 1.5
    return {"origin": same_everywhere(again.origin), "started": same_everywhere(again.compilers_started)}


def each_rank_has_its_own_directory():
    """Only the first rank's counts; those of the others are not there, or cannot be read."""
    if WORLD.rank != 0:
        os.environ["UW_JIT_CACHE_DIR"] = f"/proc/no such directory/{WORLD.rank}"
    artifact = compile_text(text("directory"))
    os.environ.pop("UW_JIT_CACHE_DIR", None)
    return {"value": value_of(artifact), "key": same_everywhere(artifact.key)}


def ranks_differ_in_what_is_no_part_of_the_call():
    told = []
    artifact = compile_text(text("own_options"), timeout_s=50.0 + WORLD.rank,
                            on_progress=told.append if WORLD.rank == 0 else None)
    return {"value": value_of(artifact)}


def halves():
    """Two groups compile different things at the same time, and the first rank is in one only."""
    half = WORLD.Split(WORLD.rank % 2)
    artifact = compile_text(text(f"half_{WORLD.rank % 2}", f"return {WORLD.rank % 2};"), half)
    assert value_of(artifact) == WORLD.rank % 2
    half.Free()
    if WORLD.rank == LAST:  # a rank alone, the others elsewhere
        assert value_of(compile_text(text("alone"), MPI.COMM_SELF)) == 1.5
    WORLD.Barrier()
    return {}


def communicators_by_other_names():
    """A Fortran handle and an address are the same communicator."""
    by_handle = compile_text(text("handles"), WORLD.py2f())
    by_address = compile_text(text("handles"), ctypes.c_void_p(MPI._addressof(WORLD)))
    assert by_handle.key == by_address.key
    try:
        compile_text(text("handles"), "world")
    except jitc.UsageError as error:
        assert "communicator" in str(error)
    return {"origin": same_everywhere(by_address.origin)}


def old_cpu():
    """The last rank's CPU knows less than the others': the code is for what all have, whatever -march=native says."""
    os.environ["UW3_JIT_CFLAGS"] = "-O2 -march=native"
    artifact = compile_text(text("old_cpu"))
    del os.environ["UW3_JIT_CFLAGS"]
    return {"flags": same_everywhere(artifact.flags), "value": same_everywhere(value_of(artifact))}


def last_rank_stays_away():
    own = WORLD.Dup()
    compile_text(text("before"), own)
    told = ""
    if WORLD.rank < LAST:
        try:
            compile_text(text("away"), own, timeout_s=3)
        except jitc.TimedOutError as error:
            told = str(error)
        try:
            compile_text(text("away"), own)
            told = "the communicator still serves"
        except jitc.BrokenError:
            pass
    everybody = WORLD.allgather(told)
    return {"texts": everybody[:-1]}


for scenario in sys.argv[1:]:
    told = globals()[scenario]()
    if WORLD.rank == 0:
        print(json.dumps({"scenario": scenario, **told}), flush=True)
