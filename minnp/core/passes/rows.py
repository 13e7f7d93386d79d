"""What a node computes, whichever way it was said: `x + y`, np.add(x, y) and the row `add` are one operator."""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

from ..node import Node
from ..primitive import TABLE, Primitive
from ..value import BINARY, COMPARISON, UNARY

_ROWS = {
    getattr(operator, f"{op}_" if op in ("and", "or") else op): name
    for op, name in {**BINARY, **COMPARISON, **UNARY}.items()
    if op != "divmod"
} | {abs: "absolute"}


def row_of(node: Node) -> Primitive | None:
    """The row that a node computes on its args; None for anything but a row, a ufunc or an operator of arrays."""
    target = node.target
    if node.op != "call_function":
        return None
    if isinstance(target, Primitive):
        return target if TABLE.get(target.name) is target else None
    if node.kwargs:
        return None
    if target in _ROWS:
        return TABLE[_ROWS[target]] if node.meta.get("kind") != "object" else None
    ufunc = getattr(target, "__wrapped__", None)
    return TABLE.get(ufunc.__name__) if isinstance(ufunc, onp.ufunc) and len(node.args) == ufunc.nin else None


def same_target(a: Node, b: Node) -> bool:
    """Whether two nodes of one opcode call the same thing."""
    if a.target == b.target:
        return True
    row: Any = row_of(a)
    return row is not None and row is row_of(b)
