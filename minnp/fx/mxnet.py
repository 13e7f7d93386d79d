"""Graphs from MXNet's symbols, and symbols from graphs; mxnet is imported only where it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from minnp.core.graph.graph import Graph


def from_mxnet(symbol: Any, training: bool = False) -> Graph:
    """An `mx.sym`, or its JSON (which needs no mxnet), as a graph.

    symbol     the symbol, or the text of its -symbol.json
    training   whether batch norm and dropout are those of training

        graph = fx.from_mxnet(mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3))
    """
    return importlib.import_module("minnp.backends.mxnet.importing").to_graph(symbol, training)


def to_mxnet(graph: Any) -> Any:
    """A captured graph as an `mx.sym`, and the arrays of its constants.

    graph   a graph, or what has one: a module, `jit(f).lower(...)`

        net = fx.to_mxnet(graph)
    """
    return importlib.import_module("minnp.backends.mxnet.symbols").to_symbol(getattr(graph, "graph", graph))
