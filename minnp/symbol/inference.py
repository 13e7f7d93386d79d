"""What shapes and dtypes follow from those of some variables, in both directions along a graph."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.arrays.array import array_of
from ..errors import SymbolError
from .operator import Shape


def _fixed(nodes: Sequence[Any], known: dict[int, list], step: Callable) -> dict[int, list]:
    """`step` over the nodes, forwards and backwards, until nothing new is known."""
    changed = True
    while changed:
        before = {k: list(v) for k, v in known.items()}
        for node in (*nodes, *reversed(nodes)):
            if node.operator is not None:
                ins = [known[id(child)][i] for child, i in node.inputs]
                ins, outs = step(node, ins, known[id(node)])
                known[id(node)] = list(outs)
                for (child, i), value in zip(node.inputs, ins, strict=True):
                    known[id(child)][i] = value
        changed = before != known
    return known


# ------------------------------------------------------------------ shapes
def infer_shapes(nodes: Sequence[Any], given: dict[str, Shape]) -> dict[int, list[Shape | None]]:
    """By id of each node, the shapes of its results; None where unknown, 0 for an axis of unknown size.

    Raises SymbolError, naming the node, where shapes contradict each other.
    """
    known: dict[int, list] = {id(n): [None] * len(n.outputs) for n in nodes}
    given = declared(nodes) | given
    for n in nodes:
        if n.operator is None:
            known[id(n)] = [given.get(n.name)]
    return _fixed(nodes, known, _shapes_of)


def declared(nodes: Sequence[Any]) -> dict[str, Shape]:
    """By name, the shapes that variables were made with."""
    said = {n.name: n.attributes["__shape__"] for n in nodes if n.operator is None and n.attributes.get("__shape__")}
    shapes = {name: tuple(ast.literal_eval(text)) for name, text in said.items()}
    return {name: shape for name, shape in shapes.items() if shape}  # () is unknown


SIZES = (12, 24)  # what an unknown size may be: many operators divide it


def shapes_in_part(run: Callable, given: dict[str, Shape]) -> tuple[list[Shape | None], ...]:
    """run(given), where an axis of unknown size, 0, stops some operators: with what is the same for two sizes of it.

    run   (shapes by name) -> lists of shapes, as of `Symbol.infer_shape_partial`
    """
    found = run(given)
    if not any(0 in s for s in given.values()):
        return found
    try:
        one, two = (run({n: sized(s, k) for n, s in given.items()}) for k in SIZES)
        return tuple([*map(_agreed, *lists)] for lists in zip(found, one, two, strict=True))
    except (SymbolError, ValueError):  # no array of such a size fits
        return found


def sized(shape: Shape, size: int) -> Shape:
    """The shape with a number in the place of unknown ones: more along the axes of an image than along the batch."""
    return tuple(n or (20 * size if i else size) for i, n in enumerate(shape))


def _agreed(found: Shape | None, one: Shape | None, two: Shape | None) -> Shape | None:
    if one is None or two is None or len(one) != len(two):
        return found
    return unified(found, tuple(m if m == n else 0 for m, n in zip(one, two)))


def _shapes_of(node: Any, ins: list, outs: list) -> tuple[list, list]:
    row, p = node.operator, node.parameters
    try:
        if row.same:
            shape = None
            for s in (*ins, *outs):
                shape = unified(shape, s)
            return [shape] * len(ins), [shape] * len(outs)
        if row.bodies is not None:
            found, results = row.bodies(p, node.subgraphs, list(ins))
            ins = [unified(a, b) for a, b in zip(ins, found, strict=True)]
            return ins, [unified(a, b) for a, b in zip(outs, results, strict=True)]
        if row.fill is not None:
            # what is known of a parameter in part is left to the operator, and then compared
            found = row.fill(p, [s if i == 0 or s is None or 0 not in s else None for i, s in enumerate(ins)])
            ins = [unified(a, b) for a, b in zip(ins, found, strict=True)]
        if row.batch and ins[0] and outs[0]:
            (n,) = unified(ins[0][:1], outs[0][:1])
            ins, outs = [(n, *ins[0][1:]), *ins[1:]], [(n, *outs[0][1:]), *outs[1:]]
        wanted = None in outs or any(0 in s for s in outs)
        each = row.batch and ins[0] and ins[0][0] == 0  # then the shapes for a batch of one say the rest
        given = [(1, *ins[0][1:]), *ins[1:]] if each else ins
        if wanted and all(s is not None and 0 not in s for s in given):
            found = _results(node, given)
            found = [(0, *found[0][1:]), *found[1:]] if each else found
            outs = [unified(a, b) for a, b in zip(outs, found, strict=True)]
        return ins, outs
    except (ValueError, TypeError, IndexError, ArithmeticError, MemoryError) as error:
        named = ", ".join(f"{n} {s}" for n, s in zip(node.arguments, ins))
        raise SymbolError(f"{row.name} {node.name!r} cannot take {named}: {error}") from error


def _results(node: Any, ins: list) -> list[Shape]:
    row, p = node.operator, node.parameters
    if row.result is not None:
        return row.result(p, *ins)
    results = run_on_stand_ins(node, ins, [onp.dtype(onp.float32)] * len(ins))
    return [tuple(r.shape) for r in results]


def run_on_stand_ins(node: Any, shapes: Sequence[Shape], dtypes: Sequence[Any]) -> list:
    """The results of a node's definition on arrays of ones that take no memory."""
    row, p = node.operator, node.parameters
    inputs = [array_of(onp.broadcast_to(onp.ones((), t), s)) for s, t in zip(shapes, dtypes, strict=True)]
    options = row.keywords(p) | ({"training": False} if row.training else {})
    with onp.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = row.definition(*inputs, *node.subgraphs, **options)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    return [onp.asarray(r) for r in results[: len(node.outputs)]]


def made_shape(node: Any) -> Shape | None:
    """The shape that a node without inputs says its result has: with a 0, as MXNet has it, for what is unknown."""
    numpys = node.operator.name.startswith("_np")  # of those 0 is 0
    return None if node.inputs or numpys else node.parameters.get("shape")


def unified(a: Shape | None, b: Shape | None) -> Shape | None:
    """What both say about one shape. Raises ValueError where they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(m and n and m != n for m, n in zip(a, b)):
        raise ValueError(f"a shape is {a} and {b}")
    return tuple(m or n for m, n in zip(a, b, strict=True))


# ------------------------------------------------------------------ dtypes
def infer_types(nodes: Sequence[Any], given: dict[str, Any]) -> dict[int, list[Any]]:
    """By id of each node, the dtypes of its results; None where unknown."""
    from .symbol import DTYPES

    known: dict[int, list] = {id(n): [None] * len(n.outputs) for n in nodes}
    for n in nodes:
        if n.operator is None:
            said = n.attributes.get("__dtype__")
            number = int(said) if said is not None and said.lstrip("-").isdigit() else -1
            known[id(n)] = [given.get(n.name) or (onp.dtype(DTYPES[number]) if number >= 0 else None)]
    return _fixed(nodes, known, _types_of)


def _types_of(node: Any, ins: list, outs: list) -> tuple[list, list]:
    row, p = node.operator, node.parameters
    if row.dtypes is not None:
        found, results = row.dtypes(p, list(ins))
        ins = [a or b for a, b in zip(ins, found, strict=True)]
        return ins, [a or b for a, b in zip(outs, results, strict=True)]
    one = next((t for t in (*ins, *outs) if t is not None), None)
    return [a or one for a in ins], [a or one for a in outs]
