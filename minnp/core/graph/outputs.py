"""What a captured function gives back besides new arrays: its arguments themselves, views of those it wrote to, one
object twice; and what it changed in the lists, dicts and dataclasses it was given."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as onp

from ..arrays.array import ARRAY_TYPES, ARRAYS, array_of, read
from ..rows.pytree import attributes, besides, children, rebuilt
from ..rows.value import Buffer, Host, Tracer, concrete
from .closures import NUMBERS
from .graph import Graph, Node
from .scalars import Live


class Shown(NamedTuple):
    """A part of the result that is input `number`, or the view of it that `steps`, pairs (row, params), give."""

    number: int
    steps: tuple

    def of(self, given: Sequence[Any]) -> Any:
        found = given[self.number]
        if self.steps and isinstance(found, Host):
            found = array_of(found)
        return _view(found, self.steps)


class View(NamedTuple):
    """A part of the result that is the view of part `number` which `steps` give: on a device, where the buffers that a
    graph computes are arrays of their own."""

    number: int
    steps: tuple

    def of(self, parts: Sequence[Any]) -> Any:
        return _view(parts[self.number], self.steps)


def _view(of: Any, steps: tuple) -> Any:
    for row, params in steps:
        of = row(of, **params)
    return of


def on_device(h: Any) -> bool:
    return type(concrete(read(h))) is Buffer


def shared_roots(parts: Sequence[Any], inputs: Sequence[Any], outside: Sequence[Any]) -> list:
    """The arrays on a device of which parts are views, and which are neither parts nor inputs themselves: where there
    are several such parts, or, as Outside, where a binding of `outside` holds the array."""
    known, bound = {id(h) for h in (*parts, *inputs)}, {id(b.value): b for b in outside}
    views = [p._root for p in parts if type(p) in ARRAY_TYPES and p._host is None and p._root is not None]
    of = {id(r): r for r in views if id(r) not in known and on_device(r)}
    several = lambda r: sum(r is v for v in views) > 1
    return [Outside(bound[k]) if k in bound else r for k, r in of.items() if k in bound or several(r)]


class Own:
    """A part of the result that is the container or object among the arguments to which the keys of `where` lead."""

    __slots__ = ("where",)

    def __init__(self, where: tuple) -> None:
        self.where = where

    def __repr__(self) -> str:
        return f"Own{self.where}"

    def of(self, arguments: Any) -> Any:
        return inside(arguments, self.where)


class Outside:
    """A part of the result that is what a variable, an attribute or an item outside holds, which `binding` follows."""

    __slots__ = ("binding",)

    def __init__(self, binding: Any) -> None:
        self.binding = binding

    def __repr__(self) -> str:
        return f"Outside({id(self.binding.holder)}, {self.binding.key!r})"


def inside(tree: Any, where: tuple) -> Any:
    """What the keys lead to in nested containers."""
    for key in where:
        if key is ATTRIBUTES:
            tree = vars(tree)
        else:
            tree = getattr(tree, key) if dataclasses.is_dataclass(tree) and not isinstance(tree, dict) else tree[key]
    return tree


def with_own(out: Any, before: Sequence[tuple], outside: Sequence[Any] = ()) -> Any:
    """The result, with Own in the place of the arguments' containers and objects, and Outside in that of arrays,
    containers and objects that the bindings `outside` hold."""
    own: dict[int, Any] = {id(b.value): Outside(b) for b in outside}
    own |= {id(x): Own(where) for where, x, *_ in before if where}

    def walk(tree: Any) -> Any:
        if id(tree) in own:
            return own[id(tree)]
        parts = children(tree)
        new = [walk(child) for child in parts or ()]
        return rebuilt(tree, new) if any(a is not b for a, b in zip(new, parts or ())) else tree

    return walk(out)


def shown(parts: Sequence[Any], inputs: Sequence[Any], written: Sequence[int], plain: Any) -> dict[int, Any]:
    """What each part of a result is that the graph need not compute: Shown, or the number of the part it is once more.

    inputs    the arrays that the function was given
    plain     plain(x): whether the parameters x of a view hold no values of the capture
    """
    found: dict[int, Any] = {}
    number = {id(h): i for i, h in enumerate(inputs) if h is not None}
    first: dict[int, int] = {}
    at = {id(p.binding.value if type(p) is Outside else p): k for k, p in enumerate(parts)}
    for k, part in enumerate(parts):
        if type(part) in (Own, Outside):
            found[k] = part
        if type(part) not in ARRAY_TYPES:
            continue
        if id(part) in number:
            found[k] = Shown(number[id(part)], ())
        elif id(part) in first:
            found[k] = first[id(part)]
        elif part._host is None and (root := part._root) is not None and plain(part._steps):
            if (i := number.get(id(root))) is not None:
                if i in written or on_device(root):
                    found[k] = Shown(i, part._steps)
            elif id(root) in at and on_device(root):
                found[k] = View(at[id(root)], part._steps)
        first.setdefault(id(part), k)
    return found


# What nobody can change, besides numbers and texts.
SETTLED = (*NUMBERS, type, slice, range, ModuleType, BuiltinFunctionType, onp.ufunc, re.Pattern, PurePath)
SETTLED += (Decimal, Fraction, date, timedelta, time, type(...), type(NotImplemented))


def lasting(x: Any) -> bool:
    """Whether a part of a result, neither an array nor a number of a graph, may be the same object in every call."""
    if isinstance(x, (tuple, frozenset)):
        return all(map(lasting, x))
    if type(x) is FunctionType:
        cells = [c.cell_contents for c in x.__closure__ or ()] if not x.__dict__ else [x.__dict__]
        return all(map(lasting, (*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())))
    return isinstance(x, (*SETTLED, *ARRAYS, Host, Buffer, Tracer, Live, Own, Outside))


# ------------------------------------------------------------------ containers
ATTRIBUTES = object()  # the key that leads to the attributes of a dict of the user's class


class Change(NamedTuple):
    """What became of the container that the keys of `where` lead to.

    removed   keys that went
    keys   those whose values are new; of a list, the place from which on all are
    """

    where: tuple
    removed: tuple
    keys: tuple

    def make(self, arguments: Any, values: Sequence[Any]) -> None:
        at = inside(arguments, self.where)
        if isinstance(at, list):
            at[self.keys[0] :] = values
        elif isinstance(at, dict):
            for key in self.removed:
                del at[key]
            at.update(zip(self.keys, values))
        else:
            for key in self.removed:
                object.__delattr__(at, key)
            for key, value in zip(self.keys, values):
                object.__setattr__(at, key, value)  # what its class does then it did in the function already


def containers(tree: Any, where: tuple = ()) -> list[tuple[tuple, Any, Any]]:
    """(where, container, what it holds now) of every container in a tree that a function may change."""
    inside = children(tree)
    if inside is None or tree is None:
        return []
    found = [] if isinstance(tree, tuple) else [(where, tree, _contents(tree))]
    if isinstance(tree, dict) and type(held := attributes(tree)) is dict:
        found.append(((*where, ATTRIBUTES), held, dict(held)))
    keys = range(len(inside)) if isinstance(tree, (list, tuple)) else _contents(tree)
    for key, child in zip(keys, inside):
        found += containers(child, (*where, key))
    return found


def objects(tree: Any, other: Any, where: tuple = ()) -> list[tuple[tuple, Any]]:
    """(where, leaf) of every leaf of a tree whose type is none of `other`."""
    inside = children(tree)
    if inside is None:
        return [] if isinstance(tree, other) else [(where, tree)]
    keys = range(len(inside)) if isinstance(tree, (list, tuple)) else _contents(tree) if inside else ()
    return [found for key, child in zip(keys, inside) for found in objects(child, other, (*where, key))]


def changes(before: list[tuple[tuple, Any, Any]]) -> tuple[list[Change], list[list]]:
    """(what changed in containers since they were looked at, the new values of each change)."""
    found, values = [], []
    for where, container, old in before:
        now = _contents(container)
        if isinstance(container, list):
            start = next((i for i, (a, b) in enumerate(zip(old, now)) if a is not b), min(len(old), len(now)))
            if start < max(len(old), len(now)):
                found.append(Change(where, (), (start,)))
                values.append(now[start:])
            continue
        keys = tuple(k for k in now if k not in old or old[k] is not now[k])
        removed = tuple(k for k in old if k not in now)
        in_order = [*(k for k in old if k in now), *(k for k in now if k not in old)]
        if in_order != list(now):
            keys, removed = tuple(now), tuple(old)
        if keys or removed:
            found.append(Change(where, removed, keys))
            values.append([now[k] for k in keys])
    return found, values


def _contents(container: Any) -> Any:
    if isinstance(container, (list, dict)):
        return list(container) if isinstance(container, list) else dict(container)
    fields = {field.name: getattr(container, field.name) for field in dataclasses.fields(container)}
    return fields | besides(container)


def as_returned(graph: Graph, captured: Any) -> Graph:
    """The graph, with results in the containers that the function returned; as it was where that changed arguments, or
    a container is none that code can say."""
    output = graph.output_node()
    (results,) = output.args
    if not captured.written and not captured.changes:
        output.args = (captured.rebuild(list(results)),)
        if set(output.all_input_nodes) != {n for n in results if isinstance(n, Node)}:
            output.args = (results,)
    return graph
