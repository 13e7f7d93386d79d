"""lower: one part of a traced model runs on another engine, the rest as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minnp.numpy as np
from minnp import jit
from minnp.core.graph.node import Node
from minnp.core.jit.jit import COMPILERS
from minnp.nn.model import Layer

from .graph_module import GraphModule
from .splitting import split_module
from .tracer import Tracer


class Lowered(Layer):
    """A layer (or part of a graph) as an engine compiled it; its parameters are the layer's, under the same names."""

    def __init__(self, inner: Layer, engine: str | Callable) -> None:
        super().__init__()
        self.inner, self.engine = inner, engine
        self.params, self.aux_params = inner.params, inner.aux_params
        self.param_configs, self.aux_param_configs = inner.param_configs, inner.aux_param_configs
        self._compile()

    def _compile(self) -> None:
        inner, engine = self.inner, self.engine
        self.compiled = engine(inner) if callable(engine) else jit(inner.forward, compiler=engine)
        if not callable(self.compiled):
            raise TypeError(f"an engine gives a callable for a layer, this one gave {self.compiled!r:.60}")

    def children(self) -> Any:
        return self.inner.children()

    @property
    def takes_mode(self) -> bool:
        return self.inner.takes_mode

    def forward(self, *inputs: Any, **options: Any) -> Any:
        out = self.compiled(*inputs, **options)
        return tuple(map(np.asarray, out)) if isinstance(out, tuple | list) else np.asarray(out)

    def __repr__(self) -> str:
        return f"Lowered({self.engine if isinstance(self.engine, str) else getattr(self.engine, '__name__', 'engine')})"

    def __getstate__(self) -> dict:
        return {k: v for k, v in vars(self).items() if k != "compiled"}

    def __setstate__(self, saved: dict) -> None:
        vars(self).update(saved)
        self._compile()


def lower(module: Any, target: str | Callable[[Node], bool], engine: str | Callable = "auto") -> GraphModule:
    """A GraphModule of which one part runs on another engine; it shares `module`'s parameters, under their names.

    module   a model, which is traced with the part kept whole; or a GraphModule
    target   the dotted name of a layer; or node -> bool: the nodes to lower (each run of them is one part)
    engine   "llvm", "numpy", "torch" or "mxnet", of which minnp.jit compiles it; or a function: given the layer, it
             returns what is called in its place with the same arrays, such as a session of another runtime

    What minnp.jit compiles is differentiated as the layer is. What a function returned is called with the arrays
    themselves: a gradient flows if it computes with minnp, and raises where it asks them for their numbers.
    Raises ValueError for an unknown layer or engine, or a layer that the graph was traced through.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).init()
    >>> fx.lower(net, "0", engine="numpy")(np.ones((2, 4), "f4")).shape
    (2, 3)
    """
    if not callable(engine) and engine not in COMPILERS:
        raise ValueError(f"engine={engine!r}: choose from {', '.join(COMPILERS)}, or give a function layer -> callable")
    if callable(target):
        gm = module if isinstance(module, GraphModule) else whole(module, "")
        gm = split_module(gm, lambda n: bool(target(n)))
        calls = [n.target for n in gm.graph.find_nodes(op="call_module") if int(n.target.rpartition("_")[2] or 0) % 2]
        if not calls:
            raise ValueError("there is no node for which the target holds")
    else:
        gm = replaced(module) if isinstance(module, GraphModule) else whole(module, target)
        calls = [target]
        if not gm.graph.find_nodes(op="call_module", target=target):
            inside = [n for n in gm.graph.find_nodes(op="call_module") if n.target.startswith(f"{target}.")]
            known = ", ".join(dict.fromkeys(n.target for n in gm.graph.find_nodes(op="call_module")))
            way_out = (
                "the graph was traced through it: give lower the model itself, or a function of nodes"
                if inside
                else f"it calls {known or 'no layer'}"
            )
            raise ValueError(f"no call of the layer {target!r}: {way_out}")
    for name in calls:
        gm.add_submodule(name, Lowered(gm.get_submodule(name), engine))
    return gm


def replaced(gm: GraphModule) -> GraphModule:
    """A module of its own with the same graph and layers."""
    return GraphModule(gm, gm.graph.copy(), gm.class_name)


def whole(model: Any, name: str) -> GraphModule:
    """The model traced, with the layer of that name kept whole."""

    class Whole(Tracer):
        def is_leaf_module(self, module: Any, at: str) -> bool:
            return (at == name and name != "") or super().is_leaf_module(module, at)

    return GraphModule(model, Whole().trace(model), type(model).__name__)
