"""capture: what a function does on real values, as a GraphModule of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as onp

from minnp.core.arrays.array import ARRAY_TYPES, array_of, read
from minnp.core.graph.capture import Captured, capture_call, copied
from minnp.core.graph.effects import assign
from minnp.core.graph.node import map_nodes
from minnp.core.graph.proxy import Proxy
from minnp.core.jit.jit import leaf_names
from minnp.core.loops import staged
from minnp.core.rows.pytree import tree_flatten
from minnp.core.rows.value import Buffer, Host, Tracer, concrete
from minnp.nn.model import Layer

from .graph_module import GraphModule
from .tracer import refuse_torch


def capture(f: Callable, *args: Any, **kwargs: Any) -> GraphModule:
    """What f does on these arguments, as a graph of rows with known shapes: gradients, loops and branches included.

    A loop that `jit` compiles is one node, whose code is a Python function with a `for` or `while`; so is its gradient.
    Any other loop is unrolled.

    The arrays among the arguments are its inputs (nested ones one by one); all else is part of the graph. What Python
    asked of the data is a guard: called with arguments that take another way, the module raises. Where it is first
    called with arrays of other sizes, f is captured again for these: if that gives another graph (`len(x)` is a number
    in it, say), the module raises ValueError; one that was pickled cannot tell, for it does not have f. f's own
    arguments are not written. Raises TypeError for a module of torch.

    >>> program = fx.capture(lambda x: np.exp(x) + 1, np.ones(3))
    >>> program(np.zeros(2))
    array([2., 2.])
    """
    refuse_torch(f)
    module, module.sizes = _captured(f, args, kwargs)
    return module


def captured_for(f: Callable, *values: Any) -> GraphModule:
    """`capture` for arrays of the sizes of these alone, which the caller sees to: it does not keep f."""
    return _captured(f, values, {})[0]


def _captured(f: Callable, args: tuple, kwargs: dict) -> tuple[GraphModule, Sizes]:
    leaves, rebuild = tree_flatten((args, kwargs))
    values = [copied(x) for x in leaves]
    captured, *_ = capture_call(staged(f), values, rebuild, leaf_names(f, args, kwargs), loops=True)
    owner = getattr(f, "__self__", f)
    names = _parameters_of(owner)
    graph, said = captured.graph, _said(captured, names)
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
    for node in graph.find_nodes(op="get_attr"):
        if id(node.meta["constant"]) in names:
            node.target = names[id(node.meta.pop("constant"))]
        elif type(node.meta["constant"]) is Buffer:  # its array, if it has one, has the present buffer
            constant = captured.constants[node.target]
            node.meta["constant"] = array_of(constant) if type(constant) is Buffer else constant
    graph.eliminate_dead_code()
    return GraphModule(owner, graph), Sizes(f, values, rebuild, said)


class Sizes:
    """For which sizes of its inputs a function has the same graph: it is captured again for those that are new.

    values   leaves of the arguments that it was captured for; the arrays among them are the inputs
    said     what `_said` gave of it
    """

    def __init__(self, f: Callable, values: list, rebuild: Callable, said: tuple) -> None:
        self.function, self.rebuild, self.said = f, rebuild, said
        self.places = [i for i, v in enumerate(values) if is_input(v)]
        self.leaves = [None if is_input(v) else v for v in values]
        self.first = tuple([values[i].shape for i in self.places])
        self.known = {self.first}

    def check(self, inputs: list) -> None:
        """Raises ValueError where the graph is another one for inputs of such sizes."""
        if len(inputs) != len(self.places) or any(isinstance(x, Proxy) for x in inputs):
            return
        shapes = tuple(map(onp.shape, inputs))
        if shapes in self.known:
            return
        leaves = list(self.leaves)
        for i, x in zip(self.places, inputs):
            value = read(x) if type(x) in ARRAY_TYPES else onp.asarray(x)
            base = concrete(value)
            base = base.host() if type(base) is Buffer else base
            leaves[i] = onp.array(base) if base.shape == value.shape else onp.ones(value.shape, value.dtype)  # a batch
        names = leaf_names(self.function, *self.rebuild(leaves))
        with _own_parameters(self.function):
            captured, *_ = capture_call(staged(self.function), leaves, self.rebuild, names, loops=True)
            said = _said(captured, _parameters_of(getattr(self.function, "__self__", self.function)))
        if said != self.said:
            raise ValueError(
                f"the graph is that of arrays of shapes {', '.join(map(str, self.first))}; for those of "
                f"{', '.join(map(str, shapes))} it has other numbers, or takes another way: capture the function again"
            )
        self.known.add(shapes)


def _own_parameters(f: Callable) -> AbstractContextManager:
    """f, if it is a layer's, on its parameters as they are where a transformation has traced ones in their place."""
    layer = getattr(f, "__self__", f)
    if not isinstance(layer, Layer) or not any(type(read(h)) is Tracer for h in _arrays_of(layer).values()):
        return nullcontext()
    own = lambda tree: {k: array_of(copied(x)) if type(x) in ARRAY_TYPES else x for k, x in tree.items()}
    return layer.holding(own(layer.tree()), own(layer.aux_tree()))


def is_input(x: Any) -> bool:
    return isinstance(x, (Host, Buffer))


def _parameters_of(owner: Any) -> dict[int, str]:
    """The names of a layer's arrays, by id."""
    return {id(read(h)): name for name, h in _arrays_of(owner).items() if type(h) in ARRAY_TYPES}


def _said(captured: Captured, names: Collection[int]) -> tuple:
    """A graph, its rows and what it reads outside, as far as these are no parameters (by id)."""
    arrays = [(k, c) for k, c in captured.constants.items() if id(c) not in names]
    return captured.says(), [(k, c.shape, c.dtype, c.tobytes()) if type(c) is Host else (k, id(c)) for k, c in arrays]


def _arrays_of(owner: Any) -> dict[str, Any]:
    return {**owner.tree(), **owner.aux_tree()} if isinstance(owner, Layer) else {}
