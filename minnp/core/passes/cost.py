"""Costs: floating point operations and bytes, from the rows' own formulas and the shapes in the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as onp

from ..arrays.array import ARRAYS, read
from ..graph.capture import capture_call
from ..graph.effects import guard, pick
from ..graph.graph import Graph
from ..graph.interpreter import Interpreter
from ..graph.node import Node
from ..rows.primitive import Primitive
from ..rows.pytree import tree_flatten
from .memory import nbytes, shows
from .modules import on_modules
from .shapes import layers_kept, shape_of, stand_in, with_shapes


class Cost(NamedTuple):
    """What one node costs: floating point operations (None: not known), and bytes read and written."""

    flops: int | None
    bytes: int


def cost(node: Node) -> Cost:
    """The operations, bytes read and bytes written of a node.

    The operations are the row's own count (0 for rows that move data only; of a public function, a method or a layer,
    those of the rows it calls; None for a compiled loop whose number of turns the data decide); the bytes are its
    inputs and its result, once each. Looking at memory another way moves nothing.

    >>> program = fx.capture(lambda x: np.exp(x), np.ones(3))
    >>> fx.cost(program.graph.nodes[1])
    Cost(flops=3, bytes=48)
    """
    if _is_free(node):
        return Cost(0, 0)
    return Cost(operations(node), sum(map(nbytes, (*node.all_input_nodes, node))))


def operations(node: Node) -> int | None:
    """The floating point operations of a node, as in `cost`."""
    target = node.target
    if _is_free(node):
        return 0
    if not isinstance(target, Primitive):
        return 0 if node.meta.get("effect") else _of_rows(node)
    if target.flops is None:
        return 0
    found = target.flops([meta_of(a) for a in node.args], node.kwargs, shape_of(node))
    return None if found is None else int(found)


def total(each: Iterable[int | None]) -> int | None:
    """The sum; None where one is not known."""
    found = list(each)
    return None if None in found else sum(found)


def _is_free(node: Node) -> bool:
    return not node.op.startswith("call_") or node.target is pick or node.target is guard or shows(node) is not None


def _of_rows(node: Node) -> int | None:
    """The operations of the rows that a call binds, on stand-ins for its arguments."""
    owner = node.graph.owning_module
    run = Interpreter(node.graph if owner is None else owner, graph=node.graph)
    inputs = node.all_input_nodes
    leaves, rebuild = tree_flatten([stand_in(shape_of(n)) for n in inputs])

    def call(values: list) -> Any:
        run.env = dict(zip(inputs, values))
        return run.run_node(node)

    leaves = [read(v) if isinstance(v, ARRAYS) else v for v in leaves]
    with onp.errstate(all="ignore"), layers_kept(owner):
        captured, *_ = capture_call(call, leaves, lambda v: ((rebuild(v),), {}), [f"x{i}" for i in range(len(leaves))])
    return total(operations(n) for n in captured.graph.nodes if isinstance(n.target, Primitive))


@on_modules
def flops(graph: Graph, *inputs: Any) -> int | None:
    """Floating point operations of one run, by the rows' own counts; None where they are not known.

    Data decide how often some compiled loops run (`while`, `break`). Of a branch in a loop the longer way counts.

    inputs   arrays, or Metas, to propagate shapes from (see propagate_shapes), where the graph has none yet
    Raises ValueError, naming the node and what to call, where a shape is not known.

    >>> fx.flops(fx.symbolic_trace(lambda a, b: a @ b).graph, np.ones((2, 3)), np.ones((3, 4)))
    48
    """
    with_shapes(graph, inputs)
    return total(map(operations, graph.nodes))


@on_modules
def bytes_moved(graph: Graph, *inputs: Any) -> int:
    """Bytes that the nodes of one run read and write; inputs and errors as in flops.

    >>> fx.bytes_moved(fx.symbolic_trace(lambda x: np.exp(x)).graph, np.ones(3))
    48
    """
    with_shapes(graph, inputs)
    return sum(cost(node).bytes for node in graph.nodes)


def meta_of(x: Any) -> Any:
    return shape_of(x) if isinstance(x, Node) else x
