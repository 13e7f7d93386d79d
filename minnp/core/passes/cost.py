"""Costs: floating point operations and bytes, from the rows' own formulas and the shapes in the graph."""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Node
from ..primitive import Meta, Primitive


def flops(graph: Graph) -> int:
    """Floating point operations of one run: the sum of the rows' counts (0 for rows that move data only)."""
    total = 0
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, Primitive) and node.target.flops is not None:
            total += int(node.target.flops([meta_of(a) for a in node.args], node.kwargs, node.meta["value"]))
    return total


def bytes_moved(graph: Graph) -> int:
    """Bytes that the nodes read and write, each input and each result counted once a node."""
    total = 0
    for node in graph.nodes:
        if node.op == "call_function":
            for n in (*node.all_input_nodes, node):
                m = n.meta.get("value")
                total += m.size * m.dtype.itemsize if isinstance(m, Meta) else 0
    return total


def meta_of(x: Any) -> Any:
    return x.meta.get("value") if isinstance(x, Node) else x
