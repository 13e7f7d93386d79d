"""Shapes and dtypes: what every node of a graph gives, for inputs of given shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as onp

from ... import errors
from ..arrays.array import ARRAY_TYPES, Array, array_of, read
from ..graph.effects import assign, guard
from ..graph.graph import Graph, Node
from ..graph.interpreter import Interpreter
from ..graph.node import target_name
from ..rows.dispatch import fact
from ..rows.primitive import TABLE, Meta
from ..rows.value import Host
from .modules import on_modules


@on_modules
def propagate_shapes(graph: Graph, *inputs: Any) -> Graph:
    """Set meta["value"] of every node: a Meta (shape and dtype), a tuple of them, or a Python object such as a shape.

    inputs   arrays, or Metas: Meta((3, 4), np.dtype("f4")). With arrays the graph is run on copies of them; with
             Metas it runs on stand-ins that take no memory, so the numbers mean nothing
    Raises CaptureError where a shape depends on numbers (masks, nonzero) and there are only Metas.

    >>> graph = fx.propagate_shapes(fx.symbolic_trace(lambda x: x[:, 0]).graph, np.ones((2, 3)))
    >>> graph.nodes[1].meta["value"].shape
    (2,)
    """
    with layers_kept(graph.owning_module):
        _Shapes(graph, any(isinstance(x, Meta) for x in inputs)).run(*map(stand_in, inputs))
    return graph


@contextlib.contextmanager
def layers_kept(module: Any) -> Iterator[None]:
    """What the layers of a module hold is the same after the with block: what a batch norm learns in it is gone."""
    held = (
        [d for _, layer in module.walk() for d in (layer.params, layer.aux_params)] if hasattr(module, "walk") else []
    )
    before = [dict(d) for d in held]
    try:
        yield
    finally:
        for values, old in zip(held, before, strict=True):
            values.clear()
            values.update(old)


class _Shapes(Interpreter):
    def __init__(self, graph: Graph, abstract: bool) -> None:
        super().__init__(graph if graph.owning_module is None else graph.owning_module, graph=graph)
        self.abstract = abstract

    def run_node(self, node: Node) -> Any:
        if node.target is guard or node.target is assign:
            return None
        if self.abstract and self._depends_on_data(node):
            raise errors.CaptureError(
                f"the shape of {node.name} ({target_name(node.target)}) depends on data: give arrays, not Metas"
            )
        with onp.errstate(all="ignore"):
            value = super().run_node(node)
        node.meta["value"] = _meta(value)
        return value

    def _depends_on_data(self, node: Node) -> bool:
        name = target_name(node.target)
        if name == "getitem":
            index = node.kwargs.get("index", node.args[-1])
            parts = index if isinstance(index, tuple) else (index,)
            return any(isinstance(p, Node) and _is_mask(p.meta.get("value")) for p in parts)
        if name == "where" and len(node.args) > 1:
            return False
        row = TABLE.get(name)
        dynamic = row.dynamic if row is not None else fact(getattr(onp, name, None), "dynamic")
        return dynamic == "shape" and node.op in ("call_function", "call_method")


def _is_mask(value: Any) -> bool:
    return isinstance(value, Meta) and value.dtype.kind == "b"


def with_shapes(graph: Graph, inputs: tuple) -> None:
    """Propagate shapes from the inputs, if any are given."""
    if inputs:
        propagate_shapes(graph, *inputs)


def shape_of(node: Node) -> Any:
    """A node's meta["value"]. Raises ValueError, with the way out, where no shapes were propagated."""
    if "value" not in node.meta:
        raise ValueError(
            f"the shape of {node.name} is not known: call fx.propagate_shapes(graph, *inputs) first, or give example "
            "inputs here, fx.flops(graph, *inputs), fx.bytes_moved(graph, *inputs), fx.memory(graph, *inputs); a graph "
            "made by fx.capture(f, *inputs) has shapes"
        )
    return node.meta["value"]


def stand_in(x: Any) -> Any:
    if isinstance(x, Meta):
        return array_of(onp.broadcast_to(onp.ones((), x.dtype), x.shape))
    if type(x) in (tuple, list):
        return type(x)(map(stand_in, x))
    return array_of(onp.array(x)) if isinstance(x, (Array, Host)) else x


def _meta(x: Any) -> Any:
    if type(x) in ARRAY_TYPES:
        x = read(x)
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        return Meta(x.shape, x.dtype)
    return tuple(map(_meta, x)) if isinstance(x, tuple) else list(map(_meta, x)) if type(x) is list else x
