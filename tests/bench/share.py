#!/usr/bin/python3
"""Prints a problem of the corpus as C with every repeated node as a temporary: the shared form that benchmarks compile.

    share.py PROBLEM_DIR > shared.c
"""
import json
import pathlib
import sys

SIGNATURE = ("int dim, int Nf, int NfAux, const int uOff[], const int uOff_x[], const double petsc_u[], "
             "const double petsc_u_t[], const double petsc_u_x[], const int aOff[], const int aOff_x[], "
             "const double petsc_a[], const double petsc_a_t[], const double petsc_a_x[], double petsc_t, ")
FUNCTIONS = {"abs": "fabs", "max": "fmax", "min": "fmin"}
RELATIONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def number(text):
    if "0x" in text:
        return repr(float.fromhex(text))
    return f"({text.split('/')[0]}.0/{text.split('/')[1]}.0)" if "/" in text else f"{text}.0"


class Printer:
    def __init__(self, nodes, dim):
        self.nodes, self.dim = nodes, dim

    def leaf(self, node):
        index = node["index"]
        flat = index[0] * self.dim + index[1] if len(index) == 2 else index[0] if index else None
        name = "constants" if node["leaf"] == "constants" else "petsc_" + node["leaf"]
        return name if flat is None else f"{name}[{flat}]"

    def text(self, node, arguments):
        op = node["op"]
        if op == "number":
            return number(node["value"])
        if op == "leaf":
            return self.leaf(node)
        if op in ("add", "mul"):
            return "(" + (" + " if op == "add" else "*").join(arguments) + ")"
        if op == "pow" and self.nodes[node["args"][1]].get("value") == "-1":
            return f"(1.0/{arguments[0]})"
        if op in RELATIONS:
            return f"({arguments[0]} {RELATIONS[op]} {arguments[1]})"
        if op in ("max", "min") and len(arguments) > 2:
            return f"{FUNCTIONS[op]}({arguments[0]}, {self.text(node, arguments[1:])})"
        if op == "heaviside":
            return f"({arguments[0]} < 0 ? 0.0 : {arguments[0]} > 0 ? 1.0 : {arguments[1]})"
        if op in ("piecewise", "and", "or", "not", "true", "false", "sign", "pi", "e"):
            raise SystemExit(f"share.py prints no {op}")
        return f"{FUNCTIONS.get(op, op)}({', '.join(arguments)})"

    def function(self, name, entries, jacobian):
        order, seen, stack = [], set(), [(e, False) for e in reversed(entries)]
        while stack:
            i, done = stack.pop()
            if done:
                order.append(i)
            elif i not in seen:
                seen.add(i)
                stack.append((i, True))
                stack.extend((a, False) for a in self.nodes[i].get("args", []))
        uses = dict.fromkeys(order, 0)
        for i in [*entries, *(a for i in order for a in self.nodes[i].get("args", []))]:
            uses[i] += 1
        shown, lines = {}, []
        for i in order:
            node = self.nodes[i]
            text = self.text(node, [shown[a] for a in node.get("args", [])])
            if uses[i] > 1 and node.get("args"):
                lines.append(f"  const double t{i} = {text};")
                text = f"t{i}"
            shown[i] = text
        shift = "double petsc_u_tShift, " if jacobian else ""
        head = f"void {name}({SIGNATURE}{shift}const double petsc_x[], int numConstants, const double constants[], double out[])"
        return "\n".join([head, "{", *lines, *(f"  out[{k}] = {shown[e]};" for k, e in enumerate(entries)), "}", ""])


def main():
    directory = pathlib.Path(sys.argv[1])
    problem = json.loads((directory / "problem.json").read_text())
    jacobian = json.loads((directory / "jacobian.json").read_text())
    print("#include <math.h>")
    for table, key in ((problem, "residual"), (jacobian, "jacobian")):
        printer = Printer(table["nodes"], problem["dim"])
        for f in table[key]:
            print(printer.function(f["name"], f["entries"], key == "jacobian"))


if __name__ == "__main__":
    main()
