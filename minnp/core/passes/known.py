"""What is known of a graph's values before it runs: the arrays it holds, and what follows from them alone."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..array import ndarray, read
from ..graph import Graph
from ..node import Node, attribute, map_nodes
from ..primitive import TABLE, Meta, Primitive
from ..value import Host


class Known:
    """The values of nodes that follow from the graph's own arrays; computed when asked for, each once."""

    def __init__(self) -> None:
        self.found: dict[Node, Any] = {}

    def __call__(self, node: Any) -> Any:
        """A node's value as a NumPy array (or number), or None if it depends on an input or has an effect."""
        if not isinstance(node, Node):
            return node if isinstance(node, (int, float, onp.generic)) else None
        if node not in self.found:
            self.found[node] = self._compute(node)
        return self.found[node]

    def _compute(self, node: Node) -> Any:
        if node.op == "get_attr":
            return held(node)
        if node.op != "call_function" or node.meta.get("effect"):
            return None
        target: Any = node.target
        if isinstance(target, Primitive):
            if TABLE.get(target.name) is not target:
                return None
            target = target.numpy
        elif node.all_input_nodes or not callable(getattr(target, "__wrapped__", None)):
            return None  # np.zeros(3) is known, and so is little else that is no row
        else:
            target = target.__wrapped__
        if any(self(n) is None for n in node.all_input_nodes):
            return None
        args, kwargs = map_nodes((node.args, node.kwargs), self)
        value = target(*args, **kwargs)
        return value if isinstance(value, (Host, onp.generic)) else None


def held(node: Node) -> Any:
    """The array a get_attr node reads: its constant, or the attribute of the module that owns the graph."""
    value = node.meta.get("constant")
    if value is None and node.graph.owning_module is not None:
        value = attribute(node.graph.owning_module, node.target)
    if type(value) is ndarray:
        value = read(value)
    return value if isinstance(value, (Host, onp.generic)) else None


def add_constant(graph: Graph, value: onp.ndarray, name: str) -> Node:
    """A get_attr node at the insert point, of an array that cannot change from now on: a frozen copy of the value."""
    frozen = onp.array(value, order="C")
    frozen.setflags(write=False)
    taken = {n.target for n in graph.find_nodes(op="get_attr")}
    unique = next(u for k in range(len(taken) + 1) if (u := f"{name}_{k}" if k else name) not in taken)
    node = graph.get_attr(unique)
    node.meta.update(value=Meta(frozen.shape, frozen.dtype), constant=frozen)
    return node
