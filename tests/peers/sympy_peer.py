#!/usr/bin/python3
"""SymPy's way from expressions to shared C text, beside jitc's, in one run.

    sympy_peer.py [PROBLEM ...] [--repeat 3] [--print]

For each problem of the corpus, from the same residual expressions: SymPy differentiates, shares (sympy.cse, one call
per function) and prints; jitc imports, differentiates, shares and prints. --print also times SymPy without sharing,
which for large problems takes minutes. SymPy's cache is cleared before each of its steps; the fewest CPU seconds of
`repeat` runs count. One line per problem: the seconds, the ratio SymPy / jitc, and the bytes of text; needs jitc on PYTHONPATH.
"""
import argparse
import pathlib
import sys
import time

import sympy
from sympy.core.cache import clear_cache

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import corpus  # noqa: E402

FEW = ["poisson_nl_3d", "vp_stokes_2d", "powerlaw_stokes_3d", "level_sets_4"]


def entries_of(told, residual):
    """{block: [(expression, symbol)]} of the Jacobian that the problem asks for, in PETSc's layout."""
    dim, fields = told["dim"], told["fields"]
    functions = {(one["kind"], one["field"]): residual[one["name"]] for one in told["residual"]}
    blocks = {}
    for block in told["jacobian"]:
        of_flux, by_gradient = block["kind"] in ("g2", "g3"), block["kind"] in ("g1", "g3")
        test, trial = fields[block["test"]], fields[block["trial"]]
        function = functions.get(("f1" if of_flux else "f0", block["test"]))
        wanted = blocks[block["name"]] = []
        for row in range(test["components"]):
            for column in range(trial["components"]):
                for direction in range(dim if of_flux else 1):
                    for by in range(dim if by_gradient else 1):
                        at = trial["first"] + column
                        name = f"petsc_u_x[{at * dim + by}]" if by_gradient else f"petsc_u[{at}]"
                        place = row * dim + direction if of_flux else row
                        expr = sympy.S.Zero if function is None else function[place]
                        wanted.append((expr, sympy.Symbol(name, real=True)))
    return blocks


def seconds(repeat, work, prepare=tuple):
    """The fewest CPU seconds of work(*prepare()), and what was made; what is prepared takes no time."""
    best, made = float("inf"), None
    for _ in range(repeat):
        prepared = prepare()
        clear_cache()
        begin = time.process_time()
        made = work(*prepared)
        best = min(best, time.process_time() - begin)
    return best, made


def by_sympy(told, residual, repeat, unshared):
    wanted = entries_of(told, residual)
    derive, blocks = seconds(repeat, lambda: {name: [expr.diff(symbol) for expr, symbol in pairs]
                                              for name, pairs in wanted.items()})
    functions = {**residual, **blocks}
    share, shared = seconds(repeat, lambda: {name: sympy.cse(entries) for name, entries in functions.items()})

    def print_shared():
        lines = []
        for temporaries, entries in shared.values():
            lines += [f"double {symbol} = {sympy.ccode(expr)};" for symbol, expr in temporaries]
            lines += [f"out[{place}] = {sympy.ccode(entry)};" for place, entry in enumerate(entries)]
        return "\n".join(lines)

    printing, text = seconds(repeat, print_shared)
    tree = None
    if unshared:
        tree, _ = seconds(1, lambda: [sympy.ccode(entry) for entries in functions.values() for entry in entries])
    return derive, share, printing, tree, len(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=FEW)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--print", action="store_true", dest="unshared")
    given = parser.parse_args()
    print("                             SymPy                         jitc            ratio    bytes of text\n"
          "problem                        diff      cse    print      import + emit            SymPy    jitc")
    for name in given.problems or FEW:
        told, residual = corpus.description(name), corpus.expressions(name)
        derive, share, printing, tree, size = by_sympy(told, residual, given.repeat, given.unshared)
        build, _ = seconds(given.repeat, lambda: corpus.problem(name, residual))
        emit, text = seconds(given.repeat, lambda problem: problem.emit(sharing="1"),
                             lambda: (corpus.problem(name, residual),))
        print(f"{name:26s} {derive:8.3f} {share:8.3f} {printing:8.3f}   {build:8.4f} {emit:8.4f}  "
              f"{(derive + share + printing) / (build + emit):8.1f} {size:8d} {len(text):8d}", flush=True)
        if tree is not None:
            print(f"{'  without sharing':26s} {derive:8.3f} {'':8s} {tree:8.3f}   {'':17s}  "
                  f"{(derive + tree) / (build + emit):8.1f}", flush=True)


if __name__ == "__main__":
    main()
