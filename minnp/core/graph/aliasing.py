"""Which nodes share memory, and which writes may therefore happen in place."""

from __future__ import annotations

from typing import Any

from ..rows.dispatch import fact
from ..rows.primitive import Primitive
from .effects import guard, is_loop, pick
from .graph import Graph, Node


def donated(graph: Graph) -> set[Node]:
    """The write_view nodes that may write into the old array itself: nobody reads it, or a view of it, afterwards."""
    at = {n: i for i, n in enumerate(graph.nodes)}
    return {n for n in at if is_write(n) and made_here(n.args[0]) and last_read(n.args[0], at) == at[n]}


def is_write(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, Primitive) and node.target.name == "write_view"


def last_read(node: Node, at: dict[Node, int]) -> int:
    """The place of the last node that reads a node, or what may be a view of it."""
    reads = [at[node]]
    for user in node.users:
        reads.append(at[user])
        if shares(user):
            reads.append(last_read(user, at))
    return max(reads)


def shares(node: Node) -> bool:
    """Whether a node's result may be memory of its arguments."""
    target: Any = node.target
    if node.op != "call_function" or target is guard:
        return False
    if isinstance(target, Primitive):
        return target.view
    return not getattr(target, "makes_new", False)


def made_here(node: Any) -> bool:
    """Whether a node's array is made by the graph, and shows no other array's memory."""
    if not isinstance(node, Node) or node.op != "call_function":
        return False
    if isinstance(node.target, Primitive):
        return not node.target.view
    target: Any = node.target
    if target is pick:
        return getattr(node.args[0].target, "makes_new", False) or is_loop(node.args[0])
    new = fact(getattr(target, "__wrapped__", target), "creates") in ("dense", "new")
    return new and node.kwargs.get("copy", True) is True
