"""What is known of a graph before it runs, and constant folding: what follows from literals is computed once."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..arrays.array import ARRAY_TYPES, array_of, read, unwrap
from ..graph.effects import guard
from ..graph.graph import Graph
from ..graph.interpreter import Interpreter
from ..graph.node import Node, attribute, map_nodes
from ..rows.primitive import Meta
from ..rows.value import Buffer, Host
from .modules import on_modules
from .rows import escapes, is_pure

LARGEST = 1 << 20  # elements of a constant that is worth keeping
NUMBERS = (int, float, complex, bool, onp.generic)


class Known:
    """The values of nodes that follow from literals (and from the graph's own arrays), each computed once, when asked.

    attributes   whether the arrays that get_attr nodes read are known
    largest      values with more elements are not
    """

    def __init__(self, graph: Graph, attributes: bool = True, largest: int | None = None) -> None:
        self.run = Interpreter(graph if graph.owning_module is None else graph.owning_module, graph=graph)
        self.attributes, self.largest = attributes, largest
        self.found: dict[Node, Any] = {}

    def __call__(self, node: Any) -> Any:
        """A node's value, arrays as NumPy's, or None if it depends on an input or has an effect."""
        if not isinstance(node, Node):
            return node if isinstance(node, NUMBERS) else None
        if node not in self.found:
            self.found[node] = self._compute(node)
        return self.found[node]

    def _compute(self, node: Node) -> Any:
        if node.op == "get_attr":
            return constant_of(node) if self.attributes or node.meta.get("sealed") else None
        if not is_pure(node) or any(self(n) is None for n in node.all_input_nodes):
            return None
        self.run.env = {n: self.found[n] for n in node.all_input_nodes}
        value = unwrap(self.run.run_node(node), [])
        return None if self.largest is not None and getattr(value, "size", 1) > self.largest else value


def constant_of(node: Node) -> Any:
    """The array a get_attr node reads: its constant, or the attribute of the module that owns the graph."""
    value = node.meta.get("constant")
    if value is None and node.graph.owning_module is not None:
        value = attribute(node.graph.owning_module, node.target)
    if type(value) in ARRAY_TYPES:
        value = read(value)
    value = value.host() if type(value) is Buffer else value
    return value if isinstance(value, (Host, onp.generic)) else None


def add_constant(graph: Graph, value: onp.ndarray, name: str) -> Node:
    """A get_attr node at the insert point, of an array that cannot change from now on: a frozen copy of the value,
    where the graph's other arrays live."""
    frozen = onp.array(value, order="C")
    frozen.setflags(write=False)
    constants = (n.meta["constant"] for n in graph.find_nodes(op="get_attr") if "constant" in n.meta)
    values = (read(c) if type(c) in ARRAY_TYPES else c for c in constants)
    device = next((v.backend for v in values if type(v) is Buffer), None)
    node = graph.get_attr(unused(graph, name))
    constant = frozen if device is None else array_of(Buffer(device.from_host(frozen), device))
    node.meta.update(value=Meta(frozen.shape, frozen.dtype), constant=constant)
    return node


def unused(graph: Graph, name: str) -> str:
    """`name`, or name_1, name_2, ...: a target that no get_attr node of the graph has."""
    taken = {n.target for n in graph.find_nodes(op="get_attr")}
    return next(u for k in range(len(taken) + 1) if (u := f"{name}_{k}" if k else name) not in taken)


# ------------------------------------------------------------------ constant folding
@on_modules
def fold_constants(graph: Graph, attributes: bool = False, largest: int = LARGEST) -> Graph:
    """The graph with every pure call that reads no input replaced by its value.

    attributes   fold what reads constants and parameters too: the graph no longer sees them change (those that nobody
                 could change, which the captured function made, are folded in any case)
    largest      results with more elements are computed at every run
    A constant that the caller would hold, and could write to, is computed at every run. So is a mere np.zeros(3).

    >>> graph = fx.symbolic_trace(lambda x: x + np.sqrt(4.0)).graph
    >>> [node.name for node in fx.fold_constants(graph).nodes]
    ['x', 'add', 'output']
    """
    known = Known(graph, attributes, largest)
    for node in graph.nodes:
        known(node)
    for node in graph.find_nodes(op="call_function", target=guard):
        if known(node.args[0]) is not None:  # it holds, as it did when it was captured
            graph.erase_node(node)
    for node, value in known.found.items():
        if value is None or node.op == "get_attr" or not any(known.found.get(u) is None for u in node.users):
            continue
        if not node.all_input_nodes and not isinstance(value, NUMBERS):
            continue
        if not (escapes(node) and isinstance(value, Host)):
            _replace(graph, node, value)
    graph.eliminate_dead_code()
    return graph


def _replace(graph: Graph, node: Node, value: Any) -> None:
    if isinstance(value, NUMBERS):
        swap = lambda n: value if n is node else n
        for user in list(node.users):
            user.args, user.kwargs = map_nodes(user.args, swap), map_nodes(user.kwargs, swap)
    elif isinstance(value, Host):
        with graph.inserting_before(node):
            constant = graph.get_attr(unused(graph, "folded"))
        facts = {"where": node.meta.get("where", ""), "constant": array_of(onp.array(value)), "kind": "array"}
        constant.meta.update(facts, value=Meta(value.shape, value.dtype), sealed=True)
        node.replace_all_uses_with(constant)
