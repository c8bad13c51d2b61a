"""Compiles a C text once for all ranks, calls it on each, and tells the value and the compilers that were started."""
import jitc
from mpi4py import MPI

world = MPI.COMM_WORLD
context = jitc.Context(world)
module = context.compile("double twice(double x) { return 2.0 * x; }\n", name="twice.c")
total = world.reduce(module.functions["twice"](21.0))
if world.rank == 0:
    print(f"ranks {world.size}, mean {total / world.size:g}, compilers started {context.stats['compilers_started']}")
