"""Algebraic simplification: rules that hold to the bit, and on demand some that hold for real numbers only.

A rule applies where shapes and dtypes are known (captured graphs, or after propagate_shapes) and show that nothing else
changes: `n * 1.0` makes floats of integers, so it stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..graph.graph import Graph, Node
from ..rows.primitive import TABLE, Meta
from .modules import on_modules
from .rows import escapes, moved, row_of


@on_modules
def simplify(graph: Graph, exact: bool = True) -> Graph:
    """The graph with what its algebra allows left out.

    exact   False also allows what rounding, zeros and infinities make differ: x + 0.0 (which turns -0.0 into 0.0),
            exp(log(x)), (x * a) * b as x * (a * b), x / 3 as x * (1 / 3), x ** 2 as x * x

    Left out or replaced are x * 1, x - 0, -(-x), transposes of transposes, casts to the same dtype, copies nobody
    writes to, x / 4 (as x * 0.25), ...

    >>> graph = fx.capture(lambda x: x.T.T + 1, np.ones((2, 3))).graph
    >>> [node.name for node in fx.simplify(graph).nodes]
    ['x', 'add', 'output']
    """
    changed = True
    while changed:
        changed = False
        for node in graph.nodes:
            if not node.users or not isinstance(node.meta.get("value"), Meta):
                continue
            for rule in EXACT if exact else (*EXACT, *REAL):
                found = rule(graph, node)
                if found is None:
                    continue
                if found is not node:  # else it was changed where it is
                    node.replace_all_uses_with(found)
                changed = True
                break
        graph.eliminate_dead_code()
    return graph


# ------------------------------------------------------------------ what rules ask
def call_of(x: Any) -> tuple[str, Sequence]:
    """(row name, arguments) of a node that is an operator on arrays; ("", ()) for anything else."""
    row = row_of(x) if isinstance(x, Node) else None
    return (row.name, x.args) if row is not None and not x.kwargs else ("", ())


def facts(x: Any) -> Meta | None:
    value = x.meta.get("value") if isinstance(x, Node) else None
    return value if isinstance(value, Meta) else None


def same(x: Any, node: Node) -> bool:
    """Whether x may stand for the node: a value of the same shape and dtype, which is an array (and no number)."""
    return isinstance(x, Node) and facts(x) is not None and facts(x) == facts(node) and bool(facts(node).shape)


def number(x: Any) -> Any:
    return x if type(x) in (int, float) else None


def real(node: Node) -> bool:
    return facts(node).dtype.kind in "iuf"


def replaced(graph: Graph, node: Node, row: str, *args: Any) -> Node:
    """A new node in the place of this one."""
    with graph.inserting_before(node):
        new = graph.create_node("call_function", TABLE[row], args)
    new.meta.update(node.meta)
    return new


# ------------------------------------------------------------------ rules: (graph, node) -> what stands for it, or None
def neutral(graph: Graph, node: Node) -> Node | None:
    """x * 1, 1 * x, x / 1, x ** 1, x - 0, integers + 0, floats + -0.0"""
    name, args = call_of(node)
    if len(args) != 2 or escapes(node):  # the caller gets an array of its own
        return None
    for x, k, commuted in ((*args, False), (*args[::-1], True)):
        if not same(x, node) or number(k) is None or not real(node):
            continue
        zero, minus = k == 0, math.copysign(1.0, k) < 0
        floating = facts(node).dtype.kind == "f"
        if name == "multiply" and k == 1:
            return x
        if name == "add" and zero and (not floating or (minus and type(k) is float)):
            return x
        if not commuted and name in ("divide", "power") and k == 1:
            return x
        if not commuted and name == "subtract" and zero and not (floating and minus):
            return x
    return None


def twice(graph: Graph, node: Node) -> Node | None:
    """-(-x), ~~x, and what done twice is done once: abs(abs(x)), floor(floor(x)); abs(-x) is abs(x)"""
    name, args = call_of(node)
    inner, inside = call_of(args[0]) if len(args) == 1 else ("", ())
    if len(inside) != 1:
        return None
    if name == inner and name in ("negative", "invert", "conjugate") and same(inside[0], node) and not escapes(node):
        return inside[0]
    if name == inner and TABLE[name].idempotent and same(args[0], node) and not escapes(node):
        return args[0]
    if name == "absolute" and inner == "negative" and facts(node).dtype.kind in "if" and same(inside[0], args[0]):
        return replaced(graph, node, "absolute", inside[0])
    return None


def of_itself(graph: Graph, node: Node) -> Node | None:
    """maximum(x, x), minimum(x, x), where(c, x, x), x & x, x | x"""
    name, args = call_of(node)
    if name == "where" and len(args) == 3 and args[1] is args[2] and same(args[1], node) and not escapes(node):
        return args[1]
    equal = len(args) == 2 and args[0] is args[1] and same(args[0], node) and not escapes(node)
    return args[0] if equal and name in ("maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or") else None


def still(graph: Graph, node: Node) -> Node | None:
    """What moves nothing: transposes of transposes, reshapes and sums to the same shape, x[...], casts to
    the same dtype, copies"""
    done = moved(node)
    if done is None:
        return None
    name, x, params = done
    before = facts(x)
    if before is None:
        return None
    if name == "transpose":
        again = moved(x)
        if again is not None and again[0] == "transpose" and facts(again[1]) is not None:
            axes = [_axes(again[2], before.ndim)[i] for i in _axes(params, before.ndim)]
            return again[1] if axes == list(range(before.ndim)) else None
        return x if _axes(params, before.ndim) == list(range(before.ndim)) and before.ndim else None
    if name == "swapaxes":
        again = moved(x)
        pair = lambda p: {p["axis1"] % before.ndim, p["axis2"] % before.ndim}
        return again[1] if again is not None and again[0] == name and pair(again[2]) == pair(params) else None
    if name == "reshape" and set(params) == {"shape"}:
        return x if same(x, node) else None
    if name in ("broadcast_to", "sum_to") or (name == "getitem" and params.get("index") is ...):
        return x if same(x, node) and not escapes(node) else None
    if (name == "copy" and not params) or (name == "astype" and set(params) == {"dtype"}):
        return x if same(x, node) and not escapes(node) else None
    return None


def reshaped_twice(graph: Graph, node: Node) -> Node | None:
    """x.reshape(a).reshape(b) is x.reshape(b)"""
    done = moved(node)
    again = moved(done[1]) if done is not None and done[0] == "reshape" and set(done[2]) == {"shape"} else None
    if again is None or again[0] != "reshape" or set(again[2]) != {"shape"} or facts(again[1]) is None:
        return None
    with graph.inserting_before(node):
        new = graph.create_node("call_function", TABLE["reshape"], (again[1],), {"shape": facts(node).shape})
    new.meta.update(node.meta)
    return new


def halved(graph: Graph, node: Node) -> Node | None:
    """x / 2**k is x * 2**-k: one number, rounded once, either way"""
    name, args = call_of(node)
    k = number(args[1]) if name == "divide" else None
    if k is None or facts(args[0]) is None or facts(args[0]).dtype.kind != "f" or k == 0 or math.isinf(k) or k != k:
        return None
    exponent = math.frexp(k)[1] - 1
    reach = onp.finfo(facts(node).dtype)
    if abs(math.frexp(k)[0]) != 0.5 or not all(reach.minexp <= e < reach.maxexp for e in (exponent, -exponent)):
        return None
    return replaced(graph, node, "multiply", args[0], 1.0 / k) if k != 1 else None


def inverse(graph: Graph, node: Node) -> Node | None:
    """exp(log(x)), log(exp(x)), sqrt(x) ** 2"""
    name, args = call_of(node)
    inner, inside = call_of(args[0]) if len(args) == 1 else ("", ())
    pairs = {
        ("exp", "log"),
        ("log", "exp"),
        ("expm1", "log1p"),
        ("log1p", "expm1"),
        ("tanh", "arctanh"),
        ("square", "sqrt"),
    }
    return inside[0] if (name, inner) in pairs and same(inside[0], node) and not escapes(node) else None


def regrouped(graph: Graph, node: Node) -> Node | None:
    """(x + a) + b is x + (a + b), (x * a) * b is x * (a * b), for numbers a and b"""
    name, args = call_of(node)
    if name not in ("add", "multiply") or facts(node).dtype.kind != "f":
        return None
    for x, b in ((args[0], args[1]), (args[1], args[0])):
        inner, inside = call_of(x)
        if inner != name or number(b) is None or not same(x, node):
            continue
        for y, a in ((inside[0], inside[1]), (inside[1], inside[0])):
            if number(a) is not None and same(y, node):
                return replaced(graph, node, name, y, a + b if name == "add" else a * b)
    return None


def approximate(graph: Graph, node: Node) -> Node | None:
    """x + 0.0, x / k as x * (1 / k), x ** 2 as x * x"""
    name, args = call_of(node)
    if len(args) != 2 or facts(node).dtype.kind != "f":
        return None
    x, k = args[0], number(args[1])
    if k is None or not same(x, node):
        return None
    if name == "add" and k == 0 and not escapes(node):
        return x
    if name == "divide" and k != 0 and math.isfinite(1.0 / k):
        return replaced(graph, node, "multiply", x, 1.0 / k)
    return replaced(graph, node, "multiply", x, x) if name == "power" and k == 2 else None


def _axes(params: dict, ndim: int) -> list[int]:
    axes = params.get("axes")
    return list(range(ndim))[::-1] if axes is None else [int(a) % ndim for a in axes]


Rule = Callable[[Graph, Node], Node | None]
EXACT: list[Rule] = [neutral, twice, of_itself, still, reshaped_twice, halved]
REAL: list[Rule] = [inverse, regrouped, approximate]
