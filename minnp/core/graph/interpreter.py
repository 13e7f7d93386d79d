"""Interpreter: a graph run node by node; a pass over its values is a subclass with one method overridden."""

from __future__ import annotations

import linecache
from typing import Any

from ... import errors
from ..arrays.array import array_of, unwrap
from ..rows.primitive import Primitive
from ..rows.value import Host
from .effects import Diverged, guard
from .graph import Graph, graph_of, last_reads
from .node import Node, attribute, map_nodes, target_name


class Interpreter:
    """Runs a GraphModule (or a graph without attributes) on arguments, one node after the other.

    Override `run_node` to see every value, or the method of one opcode to change what it does. `env` holds the values
    of the nodes that have run and will still be read.

    module                      whose attributes get_attr and call_module read
    graph                       what is run; by default the module's
    garbage_collect_values      forget a value after its last use

    >>> program = fx.symbolic_trace(lambda x: np.exp(x))
    >>> fx.Interpreter(program).run(np.zeros(2))
    array([1., 1.])
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = graph if graph is not None else graph_of(module)
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.rest: list = []

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, **kwargs: Any) -> Any:
        """The graph's output for these arguments; nodes in initial_env are taken from there and not run."""
        self.env = dict(initial_env or {})
        self.rest, self.named = list(args), dict(kwargs)
        last = last_reads(self.graph) if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node not in self.env:
                try:
                    self.env[node] = self.run_node(node)
                except Exception as error:
                    located(error, node)
                    raise
            if node.op == "output":
                if self.rest or self.named:
                    names = [n.name for n in self.graph.find_nodes(op="placeholder")]
                    raise TypeError(f"the graph takes {len(names)} arguments ({', '.join(names)}); too many were given")
                return self.env[node]
            for dead in last.get(node, ()):
                self.env.pop(dead, None)
        raise ValueError("the graph has no output")

    def run_node(self, node: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        return getattr(self, node.op)(node.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, node: Node) -> tuple[tuple, dict]:
        """A node's arguments, with values in the place of nodes."""
        return self.map_nodes_to_values(node.args), self.map_nodes_to_values(node.kwargs)

    @property
    def submodules(self) -> dict[str, Any]:
        """The module's layers by dotted name."""
        return dict(self.module.named_modules())

    def map_nodes_to_values(self, x: Any) -> Any:
        return map_nodes(x, self.env.__getitem__)

    # -------------------------------------------------------------- the six opcodes
    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Any:
        name = target.lstrip("*")
        if target.startswith("**"):
            value, self.named = self.named, {}
        elif target.startswith("*"):
            value, self.rest = tuple(self.rest), []
        elif self.rest:
            value = self.rest.pop(0)
        elif name in self.named:
            value = self.named.pop(name)
        elif args:
            value = args[0]
        else:
            raise TypeError(f"the graph's input {target!r} was not given")
        return value

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.fetch_attr(target)

    def fetch_attr(self, target: str) -> Any:
        """The array, layer or other attribute of a dotted name."""
        if not isinstance(self.module, Graph) and hasattr(self.module, target.partition(".")[0]):
            return attribute(self.module, target)
        for node in self.graph.find_nodes(op="get_attr", target=target):
            if "constant" in node.meta:
                value = node.meta["constant"]
                return array_of(value) if isinstance(value, Host) else value
        if isinstance(self.module, Graph):
            raise AttributeError(f"a graph alone has no attribute {target!r}; run its GraphModule")
        return attribute(self.module, target)

    def call_function(self, target: Any, args: tuple, kwargs: dict) -> Any:
        if target is guard:
            return checked(*args)
        if isinstance(target, Primitive):  # parameters of rows are values: an index, never an array
            kwargs = {k: unwrap(v, []) for k, v in kwargs.items()}
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        return attribute(self.module, target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict) -> Any:
        return args[0]


def checked(value: Any, kind: str, expected: Any) -> None:
    """A guard of a graph that is run by itself: where there is no other path, it raises CaptureError."""
    try:
        guard(value, kind, expected)
    except Diverged:
        raise errors.CaptureError(
            f"these arguments take another path than the one captured: {kind} was {expected!r}, is {value!r}; "
            "minnp.jit keeps a graph for every path"
        ) from None


def located(error: BaseException, node: Node) -> None:
    """Add a note to the error: which node failed, and the line of the user's own file that it comes from."""
    where = node.meta.get("where", "")
    if getattr(error, "_minnp_node", None) is None:  # the innermost graph says it
        error._minnp_node = node.name
        file, _, line = where.rpartition(":")
        text = linecache.getline(file, int(line)).strip() if line.isdigit() else ""
        said = f"while running the graph's node {node.name} ({node.op} {target_name(node.target)})"
        shown = [a for a in map(_shown, node.args) if a]
        error.add_note(
            said
            + (f" of {', '.join(shown)}" if shown else "")
            + (f", written at {where}" if where else "")
            + (f":\n    {text}" if text else "")
        )


def blame(error: BaseException, run: Any, lines: dict[int, Node]) -> None:
    """Say in the error which node's line of generated code it passed through; `lines` are the nodes of run's lines."""
    at: Any = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code is run.__code__ and at.tb_lineno in lines:
            located(error, lines[at.tb_lineno])
        at = at.tb_next


def _shown(x: Any) -> str:
    value = x.meta.get("value") if isinstance(x, Node) else None
    return (f"{x.name}: {value!r}" if value is not None else x.name) if isinstance(x, Node) else ""
