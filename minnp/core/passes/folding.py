"""Folding: a convolution with a fixed weight takes in the batch norm, the sum and the relu that follow it.

conv(x, w) * s + t, with a number s and t for each channel, is conv(x, w * s) + t (Jacob et al. 2018, section 3.2). Here
it is read off the arithmetic, so that batch norm needs no name: any scaling and shifting of channels folds.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..graph.graph import Graph
from ..graph.node import Node
from ..rows.primitive import TABLE, Meta, Primitive
from .constants import Known, add_constant
from .modules import check_rows, on_modules


@on_modules
def fold_convolutions(graph: Graph) -> Graph:
    """The graph with each convolution of a fixed weight, and what only it feeds, as one call of the row npx.conv_act.

    For inference: the folded weights are read-only copies, and later changes of the originals do not show. Values
    differ by rounding. Needs shapes and dtypes; nodes without them are left as they are.
    Raises ValueError for a graph that calls layers, or functions that are no rows: fx.capture says what they do.

    What goes into it: scaling and shifting of its channels, one sum with an array of its shape, one relu.

    >>> net = nn.Sequential(nn.Conv2D(1, 2), nn.BatchNorm(2)).init()
    >>> graph = fx.capture(lambda x: net(x, mode="test"), np.ones((1, 1, 4, 4), np.float32)).graph
    >>> len(graph) > len(fx.fold_convolutions(graph))
    True
    """
    check_rows(graph, "fold_convolutions")
    known = Known(graph)
    for node in graph.nodes:
        if name_of(node) == "npx.conv" and len(node.args) == 2:
            weight = known(node.args[1])
            if (
                isinstance(weight, onp.ndarray)
                and weight.dtype.kind == "f"
                and isinstance(node.meta.get("value"), Meta)
            ):
                fold(graph, node, weight, known)
    graph.eliminate_dead_code()
    return graph


def fold(graph: Graph, conv: Node, weight: onp.ndarray, known: Known) -> None:
    """Put npx.conv_act in the place of the last node that can be taken in."""
    meta = conv.meta["value"]
    scale, shift = onp.ones(weight.shape[0]), onp.zeros(weight.shape[0])
    last = conv
    while (step := affine(last, meta, known)) is not None:
        last, times, plus = step
        scale, shift = scale * times, shift * times + plus
    arrays = [conv.args[0], None, None]
    user = only_user(last)
    if user is not None and name_of(user) == "add" and user.meta.get("value") == meta:
        other = user.args[1] if user.args[0] is last else user.args[0]
        if isinstance(other, Node) and other is not last and other.meta.get("value") == meta:
            arrays.append(other)
            last = user
    activation = ""
    if is_relu(only_user(last)):
        last, activation = only_user(last), "relu"
    with graph.inserting_before(last):
        folded = weight * scale.reshape((-1,) + (1,) * (weight.ndim - 1))
        arrays[1] = add_constant(graph, folded.astype(weight.dtype), f"{conv.name}_weight")
        arrays[2] = add_constant(graph, shift.astype(weight.dtype), f"{conv.name}_bias")
        params = {**conv.kwargs, "activation": activation}
        call = graph.create_node("call_function", TABLE["npx.conv_act"], tuple(arrays), params, name="conv_act")
    call.meta.update(value=last.meta["value"], where=conv.meta.get("where"))
    last.replace_all_uses_with(call)


# ------------------------------------------------------------------ what follows a convolution
def only_user(node: Node) -> Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].op == "call_function" else None


def name_of(node: Node | None) -> str:
    """The name of the row a node calls."""
    return node.target.name if node is not None and isinstance(node.target, Primitive) else ""


def is_relu(node: Node | None) -> bool:
    name = name_of(node)
    return name == "npx.relu" or (name == "maximum" and any(not isinstance(a, Node) and a == 0 for a in node.args))


def affine(x: Node, meta: Meta, known: Known) -> tuple[Node, Any, Any] | None:
    """The node that scales and shifts the channels of x, if that is all that reads x, and its scale and shift."""
    node = only_user(x)
    name = name_of(node)
    if name == "negative":
        return node, -1.0, 0.0
    if name not in ("add", "subtract", "multiply", "divide") or node.meta.get("value") != meta or len(node.args) != 2:
        return None
    first = node.args[0] is x
    vector = per_channel(known(node.args[1 if first else 0]), meta)
    if vector is None or node.args[0] is node.args[1] or (name == "divide" and not first):
        return None
    if name == "multiply":
        return node, vector, 0.0
    if name == "divide":
        return node, 1.0 / vector, 0.0
    if name == "add":
        return node, 1.0, vector
    return (node, 1.0, -vector) if first else (node, -1.0, vector)


def per_channel(value: Any, meta: Meta) -> Any:
    """A value that broadcasts to [N, C, *S] as one number for each channel (in float64), or None if it is no such."""
    if value is None:
        return None
    value = onp.asarray(value)
    shape = (1,) * (meta.ndim - value.ndim) + value.shape
    channels = meta.shape[1]
    if len(shape) != meta.ndim or any(n != 1 for i, n in enumerate(shape) if i != 1) or shape[1] not in (1, channels):
        return None
    return onp.broadcast_to(value.reshape(-1).astype(float), channels)
