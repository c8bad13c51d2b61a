"""The corpus's problems as SymPy expressions."""
import gzip
import json
import pathlib
import sys

import jitc
import sympy
from sympy.functions.elementary.piecewise import ExprCondPair

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "corpus"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/problem.json"))
sys.setrecursionlimit(100000)  # Python's own parser reads nested texts by recursion


def description(name):
    return json.loads((FOLDER / name / "problem.json").read_text())


def expressions(name):
    """{function: entries} of the residual, as SymPy's srepr wrote them."""
    known = {**vars(sympy), "ExprCondPair": ExprCondPair}
    entries = {one["name"]: [None] * one["size"] for one in description(name)["residual"]}
    with gzip.open(FOLDER / name / "srepr.txt.gz", "rt") as lines:
        for line in lines:
            place, text = line.rstrip("\n").split("\t")
            function, index = place.rstrip("]").split("[")
            if function in entries:
                entries[function][int(index)] = eval(text, known)  # our own data
    return entries


def problem(name, residual=None, **options):
    """The jitc.Problem of it, through from_sympy."""
    told = description(name)
    return jitc.from_sympy(
        expressions(name) if residual is None else residual, dim=told["dim"], name=name,
        fields=[(one["name"], one["components"]) for one in told["fields"]],
        aux_fields=[(one["name"], one["components"]) for one in told["aux_fields"]],
        constants=[(one["name"], one["default"]) for one in told["constants"]],
        blocks=[jitc.Block(one["name"], one["kind"], one["test"], one["trial"]) for one in told["jacobian"]],
        boundary=told["where"] == "boundary", **options)
