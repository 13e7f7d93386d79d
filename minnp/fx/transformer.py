"""Transformer: an interpreter on proxies, whose run is a new graph."""

from __future__ import annotations

from typing import Any

from minnp.core.graph.effects import guard
from minnp.core.graph.graph import Graph
from minnp.core.graph.interpreter import Interpreter
from minnp.core.graph.node import Node
from minnp.core.graph.proxy import Proxy
from minnp.core.graph.symbolic import SymbolicTrace
from minnp.core.rows.state import capture, state

from .graph_module import GraphModule

KEPT = ("where", "effect", "kind", "constant")  # facts of a node that hold for what takes its place


class Transformer(Interpreter):
    """Rewrites a GraphModule: override the method of an opcode, on proxies, and call `transform()`.

    module   the GraphModule; it stays as it is

    >>> class SigmoidAsTanh(fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         if target is npx.sigmoid:
    ...             return 0.5 + 0.5 * np.tanh(0.5 * args[0])
    ...         return super().call_function(target, args, kwargs)
    >>> program = SigmoidAsTanh(fx.symbolic_trace(lambda x: npx.sigmoid(x))).transform()
    >>> [node.name for node in program.graph.nodes]
    ['x', 'mul', 'tanh', 'mul_1', 'add', 'output']
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = SymbolicTrace(self.new_graph)

    def transform(self) -> GraphModule:
        """A GraphModule of the transformed graph; layers and parameters are shared with the old one."""
        state.busy += 1
        token = capture.set(self.tracer)
        try:
            result = self.tracer.create_arg(self.run())
        finally:
            capture.reset(token)
            state.busy -= 1
            self.tracer.finish()
        self.new_graph.output(result)
        root = {} if isinstance(self.module, Graph) else self.module
        return GraphModule(root, self.new_graph, getattr(self.module, "class_name", "GraphModule"))

    def run_node(self, node: Node) -> Any:
        before = len(self.new_graph)
        result = super().run_node(node)
        new = self.new_graph.last
        for _ in range(len(self.new_graph) - before):
            new.meta["where"] = node.meta.get("where", "")
            if isinstance(result, Proxy) and new is result.node and new.target is node.target:
                new.meta.update({k: node.meta[k] for k in KEPT if k in node.meta})
            new = new.prev
        return result

    # -------------------------------------------------------------- the opcodes, recorded
    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.proxy(self.new_graph.placeholder(target, *args))

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.proxy(self.new_graph.get_attr(target))

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        if target is guard:  # what it expects stays as it is; an array would be one from outside
            return self.new_graph.call_function(guard, (self.tracer.create_arg(args[0]), *args[1:]))
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)
