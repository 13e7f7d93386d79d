"""Steps of a program: what there is to do with arrays of known shapes, in which order, and what has to lie in memory.

A step is an elementwise map, a reduction, a view, a product, or a write into part of an array. Maps of one shape that
can run together share a loop nest, and what only they read never reaches memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as onp


@dataclass(eq=False)
class Value:
    """An array of the program; `reads` are other Values or numbers."""

    shape: tuple[int, ...]
    dtype: onp.dtype
    reads: tuple = ()


@dataclass(eq=False)
class Input(Value):
    """An argument of the program; `weak` if it is a Python number, which decides no dtype."""

    weak: bool = False


@dataclass(eq=False)
class Framed(Input):
    """An argument that is read as part of a larger array, of which all else is zero: where it begins on each axis."""

    starts: tuple[int, ...] = ()


def is_weak(v: Any) -> bool:
    return isinstance(v, Input) and v.weak


@dataclass(eq=False)
class Map(Value):
    """emit(code, *Lanes or numbers) -> Lane for every element; the arrays it reads broadcast to its shape."""

    emit: Callable = lambda code, *args: args[0]


@dataclass(eq=False)
class Reduce(Value):
    """`name` (a key of rows.COMBINE) of reads[0] over `axes`, divided by `count` if that is not 1.

    `shape` may have ones for the axes, or lack them."""

    name: str = "sum"
    axes: tuple[int, ...] = ()
    count: int = 1


@dataclass(eq=False)
class View(Value):
    """reads[0] seen another way: where its first element lies after that of reads[0], and its strides, in bytes."""

    offset: int = 0
    strides: tuple[int, ...] = ()


@dataclass(eq=False)
class Write(Value):
    """reads[0] (None: nothing yet) with reads[1:] written into `parts` of it: (offset, strides, shape) of each."""

    parts: tuple[tuple, ...] = ()


@dataclass(eq=False)
class Product(Value):
    """reads[0] @ reads[1] by the gemm at an address, whose integers have so many bits: as Fortran sees it, with the
    operands in turn, their flags, n, m, k and the leading dimensions of b, a and the result."""

    address: int = 0
    bits: int = 64
    flags: str = "NN"
    sizes: tuple[int, ...] = ()


@dataclass(eq=False)
class Solve(Value):
    """The rows x of which reads[0] @ x are the rows of reads[1] (without it, of the identity), by the gesv at an
    address; reads[0] is a matrix as Fortran sees it. A singular one ends the program."""

    address: int = 0
    bits: int = 64


@dataclass(eq=False)
class Loop:
    """A nest of a program: maps of one shape, and the reductions of them."""

    shape: tuple[int, ...]
    maps: list[Map] = field(default_factory=list)
    reductions: list[Reduce] = field(default_factory=list)


# ------------------------------------------------------------------ which nest, and in which order
def schedule(values: Sequence[Value]) -> list[Any]:
    """Loops and all other steps in an order in which they can run; `values` are in such an order themselves."""
    steps: list[Any] = []
    at: dict[Value, int] = {}  # the step that computes a value

    def ready(v: Any, inside: tuple[int, ...] | None) -> int:
        """The first step that may read v; one of shape `inside` may do so in the nest that computes it."""
        if not isinstance(v, Value) or isinstance(v, Input):
            return 0
        return at[v] + (0 if isinstance(v, Map) and v.shape == inside else 1)

    def loop_for(shape: tuple[int, ...], first: int) -> int:
        for i in range(len(steps) - 1, first - 1, -1):
            if isinstance(steps[i], Loop) and steps[i].shape == shape:
                return i
        steps.append(Loop(shape))
        return len(steps) - 1

    for v in values:
        if isinstance(v, Map):
            at[v] = loop_for(v.shape, max((ready(r, v.shape) for r in v.reads), default=0))
            steps[at[v]].maps.append(v)
        elif isinstance(v, Reduce):
            (source,) = v.reads
            at[v] = loop_for(source.shape, ready(source, source.shape))
            steps[at[v]].reductions.append(v)
        elif not isinstance(v, Input):
            at[v] = len(steps)
            steps.append(v)
    return steps


def in_memory(steps: Sequence[Any], results: Sequence[Value]) -> set[Value]:
    """The values that something outside their own nest reads."""
    needed = set(results)
    for step in steps:
        if isinstance(step, Loop):
            own = set(step.maps)
            needed.update(r for m in step.maps for r in m.reads if isinstance(r, Value) and r not in own)
            needed.update(r.reads[0] for r in step.reductions if r.reads[0] not in own)
        else:
            needed.update(r for r in step.reads if isinstance(r, Value))
    return needed


def reads_of(step: Any) -> set[Value]:
    """The values that a step reads from memory."""
    if not isinstance(step, Loop):
        return {r for r in step.reads if isinstance(r, Value)}
    own = set(step.maps)
    found = {r for m in step.maps for r in m.reads if isinstance(r, Value)} | {r.reads[0] for r in step.reductions}
    return found - own


def root_of(v: Any) -> Any:
    """The value whose memory a view shows."""
    while isinstance(v, View):
        v = v.reads[0]
    return v


def last_reads(steps: Sequence[Any], becomes: Mapping[Value, Value] = MappingProxyType({})) -> dict[Value, int]:
    """The last step that reads each value, itself or as a view; of values that `becomes` others, these."""
    last: dict[Value, int] = {}
    for i, step in enumerate(steps):
        for v in map(root_of, reads_of(step)):
            last[becomes.get(v, v)] = i
    return last


def in_place(steps: Sequence[Any], results: Sequence[Value]) -> dict[Value, Value]:
    """Of each value that a Write may overwrite the value that lies there last: nothing reads it after the Write, itself
    or as a view, and what is written is no view of it."""
    last = last_reads(steps)
    becomes: dict[Value, Value] = {}
    for i, step in enumerate(steps):
        old = step.reads[0] if isinstance(step, Write) else None
        alike = isinstance(old, Map | Write | Product) and (old.shape, old.dtype) == (step.shape, step.dtype)
        if alike and old not in results and last[old] == i and all(root_of(new) is not old for new in step.reads[1:]):
            becomes[old] = step
    for old in reversed(becomes):
        becomes[old] = becomes.get(becomes[old], becomes[old])
    return becomes


def dying(steps: Sequence[Any], results: Sequence[Value], becomes: dict[Value, Value]) -> dict[int, list[Value]]:
    """For the number of a step the values that it is the last to read, itself or as a view."""
    found: dict[int, list[Value]] = {}
    for v, i in last_reads(steps, becomes).items():
        if v not in results:
            found.setdefault(i, []).append(v)
    return found
