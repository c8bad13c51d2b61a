"""Expressions shaped as Underworld3 states them: fields are applied functions whose derivatives are functions of their
own, parameters are symbols that stand for an expression. And what they must evaluate to, by SymPy and numpy alone."""
import itertools

import mpmath
import numpy as np
import sympy
from sympy import Function, Matrix, Max, Min, Piecewise, Symbol, exp, sqrt, tanh
from sympy.vector import CoordSys3D

N = CoordSys3D("N")
GAMMA = CoordSys3D("Gamma_N")


class Expression(Symbol):
    """As UWexpression: a symbol that stands for `sym`, which may be assigned anew. Two of one name stay two."""

    _created = itertools.count()

    def __new__(cls, name, sym):
        number = next(cls._created)
        one = Symbol.__xnew__(cls, name, real=True, extended_real=True)
        one.instance_number = number
        one.sym = sympy.sympify(sym)
        return one

    def _hashable_content(self):
        return (*super()._hashable_content(), getattr(self, "instance_number", None))


class FieldFunction(Function):
    """A component of a mesh variable; its derivative by argument d is another such function, without derivatives."""

    is_real = True

    def fdiff(self, argindex=1):
        if not self._diff:
            raise RuntimeError("second derivatives of a field are not supported")
        return self._diff[argindex - 1](*self.args)


def component(name, dim):
    gradient = [type(f"{name}_{{,{axis}}}", (FieldFunction,), {"_diff": ()}) for axis in "xyz"[:dim]]
    return type(name, (FieldFunction,), {"_diff": tuple(gradient)})


class Layout:
    """Unknown and auxiliary fields in order, and the names in C of all arguments."""

    def __init__(self, dim, unknowns, auxiliary=()):
        self.dim = dim
        self.x = list(N.base_scalars()[:dim])
        self.normal = list(GAMMA.base_scalars()[:dim])
        self.leaves = {one: f"petsc_x[{d}]" for d, one in enumerate(self.x)}
        self.leaves.update((one, f"petsc_n[{d}]") for d, one in enumerate(self.normal))
        self.fields, self.aux_fields = list(unknowns.items()), list(dict(auxiliary).items())
        self.U, self.L = {}, {}
        for array, fields in (("u", self.fields), ("a", self.aux_fields)):
            first = 0
            for name, count in fields:
                parts = [component(f"{name}_{place}", dim)(*self.x) for place in range(count)]
                self.U[name] = Matrix(parts)
                self.L[name] = Matrix(count, dim, lambda i, d, parts=parts: parts[i].diff(self.x[d]))
                for place, part in enumerate(parts):
                    self.leaves[part] = f"petsc_{array}[{first + place}]"
                    self.leaves.update((self.L[name][place, d], f"petsc_{array}_x[{(first + place) * dim + d}]")
                                       for d in range(dim))
                first += count

    def options(self):
        return {"dim": self.dim, "fields": self.fields, "aux_fields": self.aux_fields}

    def random_point(self, chance, values=lambda chance: chance.normal()):
        """{leaf: number} of all arguments."""
        return {leaf: float(values(chance)) for leaf in self.leaves}

    def arrays(self, point):
        """The same as the functions' arguments."""
        arrays = {}
        for leaf, place in self.leaves.items():
            name, index = place.removeprefix("petsc_").rstrip("]").split("[")
            arrays.setdefault(name, {})[int(index)] = point[leaf]
        return {name: np.array([values[i] for i in range(len(values))]) for name, values in arrays.items()}


def unwrapped(expr):
    """Numbers, fields and coordinates only."""
    while True:
        found = {one: one.sym for one in expr.atoms(Expression)}
        if not found:
            return expr
        expr = expr.xreplace(found)


def evaluated(entries, point):
    """By SymPy's lambdify, over the arguments as plain symbols."""
    plain = {leaf: Symbol(f"q{place}", real=True) for place, leaf in enumerate(point)}
    function = sympy.lambdify(list(plain.values()), [unwrapped(one).xreplace(plain) for one in entries], "numpy")
    return np.array([float(value) for value in function(*point.values())])


def derivative(entry, leaf):
    """By a real stand-in that everything else is independent of, as Underworld3 takes it."""
    stand_in = Symbol("stand_in", real=True)
    return sympy.diff(entry.xreplace({leaf: stand_in}), stand_in).xreplace({stand_in: leaf})


class Oracle:
    """Derivatives of F by differences with 60 digits, of which more than twenty are right; and F itself."""

    def __init__(self, F, leaves):
        plain = {leaf: Symbol(f"q{place}", real=True) for place, leaf in enumerate(leaves)}
        entries = [sympy.sympify(unwrapped(one)).xreplace(plain) for one in F]
        self._leaves = list(leaves)
        self._function = sympy.lambdify(list(plain.values()), entries, "mpmath")

    def values(self, point):
        with mpmath.workdps(60):
            return self._function(*(mpmath.mpf(point[leaf]) for leaf in self._leaves))

    def block(self, point, components, dim, trial):
        """In PETSc's layout [fc, gc, df, dg], counted out by hand. `trial`: U (Ng x 1) or L (Ng x dim)."""
        step = mpmath.mpf("1e-18")
        with mpmath.workdps(60):
            columns = {}
            for gc, dg in itertools.product(range(trial.shape[0]), range(trial.shape[1])):
                ends = [self.values({**point, trial[gc, dg]: mpmath.mpf(point[trial[gc, dg]]) + sign * step})
                        for sign in (1, -1)]
                columns[gc, dg] = [(after - before) / (2 * step) for after, before in zip(*ends)]
            directions = dim if len(columns[0, 0]) == components * dim else 1
            return np.array([float(columns[gc, dg][fc * directions + df])
                             for fc in range(components) for gc in range(trial.shape[0])
                             for df in range(directions) for dg in range(trial.shape[1])])


def strain_rate(L):
    return (L + L.T) / 2


def second_invariant(E):
    return sqrt(sum(one**2 for one in E) / 2)


class Stokes:
    """Viscoplastic flow: temperature-dependent viscosity, Drucker-Prager yield with softening, a floor, a directed
    weakness that spoils the tangent's major symmetry. In two and three dimensions."""

    def __init__(self, dim):
        self.layout = layout = Layout(dim, {"V": dim, "P": 1}, {"T": 1, "e_p": 1})
        V, L, P, Gp = layout.U["V"], layout.L["V"], layout.U["P"][0], layout.L["P"]
        T, e_p = layout.U["T"][0], layout.U["e_p"][0]
        self.eta0 = Expression("eta", 2.0)
        self.cohesion = Expression("eta", 0.7)  # of one name, on purpose
        self.floor = Expression(r"\eta_{min}", 0.05)
        self.rate = Expression("r", 1.3)
        self.strength = Expression("s", self.rate * 2)  # reads another constant: one slot, of the outer
        self.alpha = Expression("alpha", 0.25)
        E = strain_rate(L)
        e = Expression("e_II", second_invariant(E) + 0.3)
        softened = self.cohesion * (1 - tanh(5 * (e_p - 1)) / 2)
        creep = Expression("eta_T", self.eta0 * exp(-self.strength * T / 3))
        tau_y = Expression("tau_y", softened + Max(P, 0) / 5 + Rational(1, 4))
        self.viscosity = Expression("eta_eff", Max(Min(creep, tau_y / (2 * e)), self.floor))
        weak = Piecewise((sympy.Integer(1), layout.x[0] > 0), (sympy.Rational(1, 2) + L[0, 0]**2, True))
        self.F0 = Matrix([-T * (d + 1) * Rational(1, 3) + V[d] * L[d, 0] for d in range(dim)]).T
        stress = 2 * self.viscosity * E - P * sympy.eye(dim)
        directed = Matrix(dim, dim, lambda i, j: L[i, 0] * weak * V[j] * Rational(1, 5))
        self.F1 = stress + directed
        self.PF0 = Matrix([sum(L[d, d] for d in range(dim)) + Gp[0] * P / 7])
        n = Matrix(layout.normal)
        self.nitsche = Matrix([self.strength * (V.dot(n)) * n[d] + P * n[d] for d in range(dim)])
        self.dirichlet = Matrix([[self.rate * layout.x[1]]])
        self.zero = Matrix([[0]])


Rational = sympy.Rational
