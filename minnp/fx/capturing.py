"""capture: what a function does on real values, as a GraphModule of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minnp.core.arrays.array import ARRAY_TYPES, array_of, read
from minnp.core.graph.capture import capture_call, copied
from minnp.core.graph.effects import assign
from minnp.core.graph.node import map_nodes
from minnp.core.jit.jit import leaf_names
from minnp.core.loops import staged
from minnp.core.rows.pytree import tree_flatten
from minnp.core.rows.value import Buffer
from minnp.nn.model import Layer

from .graph_module import GraphModule


def capture(f: Callable, *args: Any, **kwargs: Any) -> GraphModule:
    """What f does on these arguments, as a graph of rows with known shapes: gradients, loops and branches included.

    A loop that `jit` compiles is one node, whose code is a Python function with a `for` or `while`; so is its gradient.
    Any other loop is unrolled.

    The arrays among the arguments are its inputs (nested ones one by one); all else is part of the graph. What Python
    asked of the data is a guard: called with arguments that take another way, the module raises. What it asked of
    shapes, as by `len(x)`, is a number of the graph without a guard: for other shapes capture f again. f's own
    arguments are not written.

    >>> program = fx.capture(lambda x: np.exp(x) + 1, np.ones(3))
    >>> program(np.zeros(2))
    array([2., 2.])
    """
    leaves, rebuild = tree_flatten((args, kwargs))
    values = [copied(x) for x in leaves]
    captured, *_ = capture_call(staged(f), values, rebuild, leaf_names(f, args, kwargs), loops=True)
    graph = captured.graph
    output = graph.output_node()
    nodes = list(output.args[0])
    results = nodes[: len(nodes) - len(captured.written)]
    inputs = graph.find_nodes(op="placeholder")
    with graph.inserting_before(output):
        for i, final in zip(captured.written, nodes[len(results) :], strict=True):
            graph.call_function(assign, (inputs[i], final)).meta["effect"] = True
    result = captured.rebuild(results)
    if captured.changes:
        result, _ = result
    back = {n: inputs[i] for i, n in zip(captured.written, nodes[len(results) :], strict=True)}
    output.args = (map_nodes(result, lambda n: back.get(n, n)),)
    owner = getattr(f, "__self__", f)
    names = {id(read(h)): name for name, h in _arrays_of(owner).items() if type(h) in ARRAY_TYPES}
    for node in graph.find_nodes(op="get_attr"):
        if id(node.meta["constant"]) in names:
            node.target = names[id(node.meta.pop("constant"))]
        elif type(node.meta["constant"]) is Buffer:  # its array, if it has one, has the present buffer
            constant = captured.constants[node.target]
            node.meta["constant"] = array_of(constant) if type(constant) is Buffer else constant
    graph.eliminate_dead_code()
    return GraphModule(owner, graph)


def _arrays_of(owner: Any) -> dict[str, Any]:
    return {**owner.tree(), **owner.aux_tree()} if isinstance(owner, Layer) else {}
