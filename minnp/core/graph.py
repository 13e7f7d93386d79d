"""A program as data: nodes in order, in the vocabulary of torch.fx, that prints as Python and runs.

Six opcodes: placeholder (an input), get_attr (a constant), call_function (target(*args, **kwargs)), call_method,
call_module, output. A target of captured NumPy code is a row or a public function. There is no mutation: an in-place
write is a `write_view` node, a new value of the whole array.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from .primitive import Primitive

OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


class Node:
    """One step of a graph.

    op, name, target, args, kwargs   what it does; args and kwargs may hold other nodes, in nested containers
    users    the nodes that read it, in order (a dict: node -> None)
    meta     facts found by passes and capture: "value" (shape and dtype), "where" (the user's file:line), ...
    """

    __slots__ = ("_args", "_kwargs", "graph", "meta", "name", "op", "target", "users")

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: tuple, kwargs: dict) -> None:
        if op not in OPCODES:
            raise ValueError(f"unknown opcode {op!r}; known: {', '.join(OPCODES)}")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple = ()
        self._kwargs: dict = {}
        self.args, self.kwargs = args, kwargs

    @property
    def args(self) -> tuple:
        return self._args

    @args.setter
    def args(self, new: tuple) -> None:
        self._rewire(tuple(new), self._kwargs)

    @property
    def kwargs(self) -> dict:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, new: dict) -> None:
        self._rewire(self._args, dict(new))

    def _rewire(self, args: tuple, kwargs: dict) -> None:
        for n in self.all_input_nodes:
            n.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        for n in self.all_input_nodes:
            n.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes this one reads, each once, in order of appearance."""
        found: dict[Node, None] = {}
        map_nodes((self._args, self._kwargs), lambda n: found.setdefault(n))
        return list(found)

    def replace_all_uses_with(self, other: Node) -> list[Node]:
        """Make every user of this node read `other` instead; returns them."""
        users = list(self.users)
        for user in users:
            user.args = map_nodes(user.args, lambda n: other if n is self else n)
            user.kwargs = map_nodes(user.kwargs, lambda n: other if n is self else n)
        return users

    def replace_input_with(self, old: Node, new: Node) -> None:
        """Read `new` wherever this node read `old`."""
        self.args = map_nodes(self.args, lambda n: new if n is old else n)
        self.kwargs = map_nodes(self.kwargs, lambda n: new if n is old else n)

    @property
    def next(self) -> Node:
        order = self.graph._order
        return order[order.index(self) + 1]

    @property
    def prev(self) -> Node:
        order = self.graph._order
        return order[order.index(self) - 1]

    def __repr__(self) -> str:
        return self.name


def map_nodes(x: Any, f: Callable[[Node], Any]) -> Any:
    """x with f(node) in the place of every node, through tuples, lists, dicts and slices."""
    t = type(x)
    if t is Node:
        return f(x)
    if t is tuple or t is list:
        return t([map_nodes(v, f) for v in x])
    if t is dict:
        return {k: map_nodes(v, f) for k, v in x.items()}
    if t is slice:
        return slice(map_nodes(x.start, f), map_nodes(x.stop, f), map_nodes(x.step, f))
    return x


class Graph:
    """Nodes in execution order. `insert_point` is where new nodes go (None: the end)."""

    def __init__(self) -> None:
        self._order: list[Node] = []
        self._names: set[str] = set()
        self._insert: int | None = None

    # -------------------------------------------------------------- reading
    @property
    def nodes(self) -> list[Node]:
        """The nodes in order (a copy: safe to iterate while changing the graph)."""
        return list(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes with this opcode (and target, if given)."""
        return [n for n in self._order if n.op == op and (target is None or n.target == target)]

    @property
    def output_node(self) -> Node:
        return self._order[-1]

    # -------------------------------------------------------------- building
    def create_node(
        self, op: str, target: Any, args: tuple = (), kwargs: dict | None = None, name: str | None = None
    ) -> Node:
        """Add a node at the insert point and return it; its name is made unique."""
        node = Node(self, self._unique(name or _suggested(op, target)), op, target, tuple(args), kwargs or {})
        if self._insert is None:
            self._order.append(node)
        else:
            self._order.insert(self._insert, node)
            self._insert += 1
        return node

    def placeholder(self, name: str) -> Node:
        return self.create_node("placeholder", name, name=name)

    def get_attr(self, name: str) -> Node:
        return self.create_node("get_attr", name, name=name.replace(".", "_"))

    def call_function(self, target: Callable, args: tuple = (), kwargs: dict | None = None) -> Node:
        return self.create_node("call_function", target, args, kwargs)

    def call_method(self, name: str, args: tuple = (), kwargs: dict | None = None) -> Node:
        return self.create_node("call_method", name, args, kwargs)

    def call_module(self, name: str, args: tuple = (), kwargs: dict | None = None) -> Node:
        return self.create_node("call_module", name, args, kwargs)

    def output(self, result: Any) -> Node:
        return self.create_node("output", "output", (result,))

    def inserting_before(self, node: Node) -> _Insertion:
        """`with graph.inserting_before(n): ...`: new nodes go before n."""
        return _Insertion(self, self._order.index(node))

    def inserting_after(self, node: Node) -> _Insertion:
        return _Insertion(self, self._order.index(node) + 1)

    def erase_node(self, node: Node) -> None:
        """Remove a node that nobody reads. Raises RuntimeError, naming its users, otherwise."""
        if node.users:
            raise RuntimeError(f"cannot erase {node.name}: {', '.join(u.name for u in node.users)} still read it")
        node.args, node.kwargs = (), {}
        self._order.remove(node)
        self._names.discard(node.name)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Node] = lambda n: n) -> Node:
        """A copy of another graph's node here, its inputs sent through arg_transform."""
        new = self.create_node(
            node.op, node.target, map_nodes(node.args, arg_transform), map_nodes(node.kwargs, arg_transform), node.name
        )
        new.meta = dict(node.meta)
        return new

    def graph_copy(self, other: Graph, values: dict[Node, Node]) -> Any:
        """Copy another graph's nodes here (`values` maps what is already known); returns its output value, mapped."""
        for n in other._order:
            if n in values:
                continue
            if n.op == "output":
                return map_nodes(n.args[0], values.__getitem__)
            values[n] = self.node_copy(n, values.__getitem__)
        return None

    def copy(self) -> Graph:
        """A graph of the same nodes, copied."""
        new = Graph()
        values: dict[Node, Node] = {}
        for n in self._order:
            values[n] = new.node_copy(n, values.__getitem__)
        return new

    def eliminate_dead_code(self) -> bool:
        """Erase what nobody reads, except inputs and what has effects; returns whether anything went."""
        changed = False
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not node.meta.get("effect"):
                self.erase_node(node)
                changed = True
        return changed

    def _unique(self, name: str) -> str:
        name = re.sub(r"\W", "_", name)
        if not name or name[0].isdigit() or keyword.iskeyword(name) or hasattr(builtins, name):
            name = f"_{name}" if name[:1].isdigit() else f"{name}_"
        base, k = name, 0
        while name in self._names or name == "np":
            k += 1
            name = f"{base}_{k}"
        self._names.add(name)
        return name

    # -------------------------------------------------------------- checking
    def lint(self) -> None:
        """Raise ValueError unless this is a legal graph: unique names, inputs first, uses recorded, one output last."""
        seen: set[Node] = set()
        names: set[str] = set()
        for n in self._order:
            if n.graph is not self:
                raise ValueError(f"{n.name} belongs to another graph")
            if n.name in names:
                raise ValueError(f"two nodes are named {n.name}")
            for i in n.all_input_nodes:
                if i not in seen:
                    raise ValueError(f"{n.name} reads {i.name} before it is computed")
                if n not in i.users:
                    raise ValueError(f"{i.name} does not know its user {n.name}")
            if n.op == "placeholder" and any(m.op != "placeholder" for m in seen):
                raise ValueError(f"input {n.name} comes after {next(m for m in seen if m.op != 'placeholder').name}")
            seen.add(n)
            names.add(n.name)
        outputs = [n for n in self._order if n.op == "output"]
        if len(outputs) != 1 or self._order[-1] is not outputs[0]:
            raise ValueError(f"a graph has one output, at its end; this one has {len(outputs)}")

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, target_name(n.target), repr(n.args), repr(n.kwargs)) for n in self._order]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        for r in rows:
            print("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip())

    @property
    def code(self) -> str:
        """The graph as Python: `def forward(...)`, which runs where `import minnp.numpy as np` has."""
        from .codegen import python_code

        return python_code(self)

    def __str__(self) -> str:
        lines = [f"{n.name} = {n.op}[{target_name(n.target)}]{n.args}{n.kwargs or ''}" for n in self._order]
        return "graph:\n    " + "\n    ".join(lines)


class _Insertion:
    def __init__(self, graph: Graph, at: int) -> None:
        self.graph, self.at = graph, at

    def __enter__(self) -> Graph:
        self.before, self.graph._insert = self.graph._insert, self.at
        return self.graph

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self.before


def target_name(target: Any) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, Primitive):
        return target.name
    return getattr(target, "__name__", type(target).__name__)


def _suggested(op: str, target: Any) -> str:
    return target_name(target).rpartition(".")[2] if op != "call_module" else target_name(target).replace(".", "_")


# ------------------------------------------------------------------ what a graph may call besides rows
def pick(results: Any, i: int) -> Any:
    """One of a row's several results."""
    return results[i]


class Diverged(Exception):
    """A guard did not hold: these arguments take another path."""


def guard(value: Any, kind: str, expected: Any) -> None:
    """Check that a value, or its shape, is what it was when the graph was captured; else raise Diverged."""
    if kind == "shape":
        if onp.shape(value) != expected:
            raise Diverged
    elif isinstance(expected, (onp.ndarray, onp.generic)):
        if not onp.array_equal(value, expected, equal_nan=expected.dtype.kind in "fc"):
            raise Diverged
    elif value != expected:
        raise Diverged
