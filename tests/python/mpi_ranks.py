"""What the ranks of mpi_test.py do. Rank 0 prints one line of JSON per scenario; an exception ends the job."""
import json
import sys

import jitc
import numpy as np
from mpi4py import MPI
from sympy import Symbol

WORLD = MPI.COMM_WORLD
U = Symbol("petsc_u[0]", real=True)


def failure_of(call, comm=WORLD):
    """The exception that every rank has met, told by all."""
    try:
        call()
        mine = None
    except jitc.Error as error:
        mine = type(error).__name__, str(error), error.ranks
    everybody = comm.allgather(mine)
    assert all(one == everybody[0] for one in everybody), everybody
    assert mine is not None
    return dict(zip(("kind", "text", "ranks"), mine))


def compile_twice():
    problem = jitc.from_sympy([U**3 + Symbol("constants[0]") * U], constants=[("k", 2.0)])
    cold, warm = problem.compile(WORLD), problem.compile(WORLD)
    values = cold.functions["g0_0_0"](u=np.arange(5.0).reshape(5, 1) + WORLD.rank)[:, 0]
    assert np.array_equal(values, 3 * (np.arange(5.0) + WORLD.rank)**2 + 2), values
    assert len(set(WORLD.allgather((cold.key, cold.origin, warm.origin)))) == 1
    return {"origins": [cold.origin, warm.origin], "stats": jitc.default_context(WORLD).stats}


def broken_source():
    return failure_of(lambda: jitc.compile("double f(double x) { return x + ; }", comm=WORLD))


def one_rank_cannot_make_its_source():
    def make():
        if WORLD.rank == WORLD.size - 1:
            raise ValueError("no such viscosity")
        return "double f(double x) { return x; }"

    return failure_of(lambda: jitc.compile(make, comm=WORLD))


def one_rank_gives_no_source():
    return failure_of(lambda: jitc.compile(None if WORLD.rank == WORLD.size - 1 else "double f;", comm=WORLD))


def one_rank_has_wrong_arguments():
    """Of C text, then of a problem."""
    is_last = WORLD.rank == WORLD.size - 1
    text = failure_of(lambda: jitc.compile("double f;", flags=[3] if is_last else [], comm=WORLD))
    problem = jitc.from_sympy([U])
    failure_of(lambda: problem.compile(WORLD, **({"layout": "sideways"} if is_last else {})))
    return text


def one_rank_cannot_make_its_problem():
    return failure_of(lambda: jitc.compile(
        lambda: jitc.from_sympy([U + Symbol("mystery")] if WORLD.rank == WORLD.size - 1 else [U]), comm=WORLD))


def divergent_problems():
    return failure_of(lambda: jitc.from_sympy([U + (2 if WORLD.rank == 1 else 1)]).compile(WORLD))


def halves():
    half = WORLD.Split(WORLD.rank % 2)
    if WORLD.rank % 2 == 0:
        value = jitc.compile("double half(double x) { return 0.5 * x; }", comm=half).functions["half"](3.0)
        assert value == 1.5
    half.Free()
    return {}


def contexts_of_their_own():
    with jitc.Context(WORLD, settings={"timeout": "20s"}) as context:
        value = context.compile("double own(double x) { return x + 1; }").functions["own"](1.0)
    assert value == 2.0
    return {}


def last_rank_stays_away():
    """What the others are told; the context of the last rank, which nobody waits for, is left as it is."""
    context = jitc.Context(WORLD, settings={"timeout": "2s", "arrival_timeout": "1s"})
    text = ""
    if WORLD.rank < WORLD.size - 1:
        try:
            context.compile("double f(double x) { return x; }")
        except jitc.TimedOutError as error:
            assert error.is_broken and context.is_broken
            text = str(error)
        context.close()
    return {"texts": WORLD.allgather(text)[:-1]}


for scenario in sys.argv[1:]:
    told = globals()[scenario]()
    if WORLD.rank == 0:
        print(json.dumps({"scenario": scenario, **told}), flush=True)
