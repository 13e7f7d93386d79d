"""What a node computes, however it was written: `x + y`, np.add(x, y) and the row `add` are one operator."""

from __future__ import annotations

import operator
from typing import Any

import numpy as onp

from ..api.functions import ENTRIES, PUBLIC
from ..api.methods import METHODS
from ..graph.effects import in_place, inside, pick
from ..graph.node import Node
from ..graph.proxy import WRITING, row_of_view, view_of
from ..rows.dispatch import fact
from ..rows.primitive import TABLE, Primitive
from ..rows.value import BINARY, COMPARISON, PYTHON, UNARY

_OPERATORS = {PYTHON[op]: name for op, name in {**BINARY, **COMPARISON, **UNARY}.items() if op != "divmod"}


def row_of(node: Node) -> Primitive | None:
    """The row that a node computes on its args; None for anything but a row, a ufunc or an operator of arrays."""
    target = node.target
    if node.op != "call_function":
        return None
    if isinstance(target, Primitive):
        return target if TABLE.get(target.name) is target else None
    if node.kwargs:
        return None
    if target in _OPERATORS:
        return TABLE[_OPERATORS[target]] if node.meta.get("kind") != "object" else None
    ufunc = getattr(target, "__wrapped__", None)
    return TABLE.get(ufunc.__name__) if isinstance(ufunc, onp.ufunc) and len(node.args) == ufunc.nin else None


def moved(node: Node) -> tuple[str, Node, dict] | None:
    """(row name, array, parameters) of a node that moves or copies an array: transpose, reshape, astype, copy, ..."""
    target, args = node.target, node.args
    if not args or not isinstance(args[0], Node) or len(node.all_input_nodes) > 1:  # parameters may be computed, too
        return None
    if isinstance(target, Primitive):
        return (target.name, args[0], node.kwargs) if len(args) == 1 and TABLE.get(target.name) is target else None
    if target is getattr:
        name, rest = args[1], ()
    elif node.op == "call_method" or target in _PUBLIC:
        name, rest = (target if isinstance(target, str) else target.__name__), args[1:]
    else:
        return None
    view = view_of(target, name)
    if view and view != "perhaps":
        said = row_of_view(view, name, rest, node.kwargs)
        return (said[0], args[0], said[1]) if said else None
    if name == "reshape" and rest and not node.kwargs:
        return name, args[0], {"shape": rest[0] if len(rest) == 1 else rest}
    if name == "astype" and len(rest) == 1 and not node.kwargs:
        return name, args[0], {"dtype": onp.dtype(rest[0])}
    return (name, args[0], {}) if name == "copy" and not rest and not node.kwargs else None


class _Public:
    """The public functions of minnp.numpy, those not yet made included."""

    def __contains__(self, target: Any) -> bool:
        host = getattr(target, "__wrapped__", None)
        return host is not None and PUBLIC.get(host) == target


_PUBLIC = _Public()


def is_pure(node: Node) -> bool:
    """Whether running the node twice gives the same values, and nothing else happens."""
    target = node.target
    if node.meta.get("effect"):
        return False
    if node.op == "call_method":
        return target in METHODS and target not in WRITING
    if node.op != "call_function":
        return False
    if isinstance(target, Primitive):
        return TABLE.get(target.name) is target
    if target in _OPERATORS or target in (getattr, operator.getitem, in_place, inside, pick):
        return True
    if target in _PUBLIC:
        return not ENTRIES[target.__wrapped__].name.startswith("random.")
    return (getattr(target, "__module__", "") or "").startswith("minnp.npx") and fact(target, "pure", True)


def same_target(a: Node, b: Node) -> bool:
    """Whether two nodes of one opcode call the same thing."""
    if a.target == b.target:
        return True
    row: Any = row_of(a)
    return row is not None and row is row_of(b)


def gives_new(node: Node) -> bool:
    """Whether the node's array is surely not memory of its arguments."""
    row = row_of(node)
    if row is not None:
        return not row.view
    name = node.target if node.op == "call_method" else node.target.__name__ if node.target in _PUBLIC else ""
    if name == "array":
        return node.kwargs.get("copy", True) is True
    return bool(name) and not view_of(node.target, name)


def escapes(node: Node) -> bool:
    """Whether the caller may get to hold the node's memory, to write to it: it, or what may be a view of it, is
    returned."""
    pending, seen = [node], set()
    while pending:
        for user in pending.pop().users:
            if user.op == "output":
                return True
            if user not in seen and not gives_new(user):
                seen.add(user)
                pending.append(user)
    return False
