"""Gradient rules of elementwise operators as formulas, which the compiled walk backwards computes without Python.

A rule is asked once what it makes of arrays of one shape and dtype, or of NumPy's numbers, and of Python's numbers: the
rows it calls are its formula. A rule that calls anything else, or looks at elements, has none, and is called for every
node, as all rules are where there is no C part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.value import BINARY, COMPARISON, Tracer
from .trace import Trace

MOST = 12  # operations: what is longer takes NumPy's time, not Python's


class NoFormula(Exception):
    """A rule does what a formula cannot say."""


class Number:
    """Any number of Python's among a rule's arguments: it may stand in operations with arrays and nowhere else."""

    def _refuse(self, *_: Any) -> Any:
        raise NoFormula

    def _beside(self, other: Any) -> Any:
        if type(other) is Tracer:
            return NotImplemented  # its reflected method does it
        raise NoFormula

    __bool__ = __float__ = __int__ = __index__ = __array__ = __neg__ = __abs__ = _refuse
    __hash__ = object.__hash__


for _op in (*BINARY, *COMPARISON):
    setattr(Number, f"__{_op}__", Number._beside)
for _op in BINARY:
    setattr(Number, f"__r{_op}__", Number._refuse)  # what an array does not do itself


class Formula(Trace):
    """The operations of one rule.

    given      g, y and the arrays: tracers, and numbers
    constants  numbers that the rule itself names
    steps      (kernel, *positions): (whether it is a result of an earlier step, where)"""

    __slots__ = ("constants", "given", "shape", "steps")

    def __init__(self, shape: tuple, given: list) -> None:
        super().__init__()
        self.shape, self.given, self.constants, self.steps = shape, given, [], []

    def position(self, v: Any) -> tuple[bool, int]:
        """(whether it is a result, where)"""
        if type(v) is Tracer and v.trace is self:
            return v.node
        for k, x in enumerate(self.given):
            if x is v:
                return False, k
        if type(v) not in (int, float):
            raise NoFormula
        self.constants.append(v)
        return False, len(self.given) + len(self.constants) - 1

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        plain = row.elementwise or (row.loops and row.numpy.nout == 1) or row.layout == "elementwise"
        # in NumPy x ** n is not always what its power is; what a rule does quietly, a formula would do aloud
        if (
            params
            or not plain
            or row.shape is None
            or row.name == "power"
            or len(self.steps) == MOST
            or onp.geterr() != LOUD
        ):
            raise NoFormula
        metas = [v.value if type(v) is Tracer else Meta((), float if type(v) is Number else type(v)) for v in values]
        out = row.shape(metas, params)
        self.steps.append((row.fast, *map(self.position, values)))
        return Tracer(self, Meta(self.shape, out.dtype), (True, len(self.steps) - 1))

    def concretize(self, value: Tracer, kind: Any) -> Any:
        raise NoFormula


LOUD = dict.fromkeys(("divide", "over", "under", "invalid"), "raise")


def formula(row: Primitive, rule: Callable, key: int) -> None:
    """Add a rule's formula to those its row has, or None.

    key      1 for float32, else 0; 2 for single numbers of NumPy's, else 0; and 4, 8, 16 ... for each argument, in
             turn, that is a number of Python's
    formula  (constants, steps of (kernel, *positions), position of the result), a position in the list of g, y, the
             arrays, the constants and the results
    """
    known = row.formulas.setdefault(rule, {})
    known[key] = None
    if getattr(rule, "__module__", "").partition(".")[0] != "minnp":
        return  # a rule of the user's may be another one the next time
    given: list = []
    dtype = onp.dtype("f4" if key & 1 else "f8")
    shape = () if key & 2 else (2, 3)
    trace = Formula(shape, given)
    numbers = [False, False, *[bool(key >> k & 4) for k in range(len(row.vjp))]]
    given += [Number() if n else Tracer(trace, Meta(shape, dtype), (False, k)) for k, n in enumerate(numbers)]
    try:
        with onp.errstate(**LOUD):
            out = rule(*given)
        if type(out) is Tracer and out.dtype == dtype:
            offset = len(given) + len(trace.constants)
            place = lambda p: p[1] + offset * p[0]
            steps = tuple([(kernel, *map(place, operands)) for kernel, *operands in trace.steps])
            known[key] = tuple(trace.constants), steps, place(out.node)
    except NoFormula:
        pass
    finally:
        trace.alive = False


def strong() -> tuple[Callable, ...]:
    """The kernels of products and quotients in which a cotangent of 0 gives 0, in the order of backward.hpp."""
    return tuple([TABLE[f"npx.strong_{name}"].numpy for name in ("multiply", "divide", "product")])
