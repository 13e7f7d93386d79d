"""A program as data: nodes in order, in the vocabulary of torch.fx, that prints as Python and runs.

Six opcodes: placeholder (an input), get_attr (a constant or parameter), call_function (target(*args, **kwargs)),
call_method, call_module, output. A target of captured NumPy code is a row or a public function. There is no mutation:
an in-place write is a `write_view` node, a new value of the whole array (the other functions graphs call are in
effects.py).
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .node import Node, attribute, map_nodes, target_name

_TAKEN = {"np", "npx", "self", "forward"}  # names the generated code uses


class Graph:
    """Nodes in order of execution. New nodes go where `inserting_before` or `inserting_after` say, else at the end.

    owning_module    the GraphModule whose graph this is, or None

    >>> graph = fx.symbolic_trace(lambda x: np.exp(x)).graph
    >>> len(graph), [node.op for node in graph.nodes]
    (3, ['placeholder', 'call_function', 'output'])
    """

    def __init__(self, owning_module: Any = None) -> None:
        self._root = Node(self, "", "get_attr", "")  # before the first and after the last node
        self._names: dict[str, int] = {}  # taken, and the last number put behind each
        self._before: Node | None = None  # where new nodes go
        self._count = 0
        self.owning_module = owning_module

    # -------------------------------------------------------------- reading
    @property
    def nodes(self) -> list[Node]:
        """The nodes in order (a copy: safe to iterate while changing the graph)."""
        found, n = [], self._root._next
        while n is not self._root:
            found.append(n)
            n = n._next
        return found

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        return f"<graph of {len(self)} nodes: .code and .nodes show it>"

    @property
    def last(self) -> Node:
        """The last node, which is the output of a graph that is complete."""
        return self._root._prev

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes with this opcode (and target, if given)."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node with opcode "output". Raises ValueError if there is none."""
        for n in reversed(self.nodes):
            if n.op == "output":
                return n
        raise ValueError("the graph has no output yet; end it with graph.output(node)")

    # -------------------------------------------------------------- building
    def create_node(
        self, op: str, target: Any, args: Iterable = (), kwargs: dict | None = None, name: str | None = None
    ) -> Node:
        """Add a node at the insert point and return it; its name is made unique."""
        node = Node(self, self._unique(name or suggested(op, target)), op, target, tuple(args), kwargs)
        after = self._root if self._before is None else self._before
        node._link(after._prev, after)
        self._count += 1
        return node

    def placeholder(self, name: str, *default: Any) -> Node:
        """An input; `default`, if given, is its value when the caller gives none."""
        return self.create_node("placeholder", name, default, name=name.lstrip("*"))

    def get_attr(self, name: str) -> Node:
        return self.create_node("get_attr", name, name=name.replace(".", "_"))

    def call_function(self, target: Callable, args: Iterable = (), kwargs: dict | None = None) -> Node:
        return self.create_node("call_function", target, args, kwargs)

    def call_method(self, name: str, args: Iterable = (), kwargs: dict | None = None) -> Node:
        """args[0].name(*args[1:], **kwargs)"""
        return self.create_node("call_method", name, args, kwargs)

    def call_module(self, name: str, args: Iterable = (), kwargs: dict | None = None) -> Node:
        return self.create_node("call_module", name, args, kwargs)

    def output(self, result: Any) -> Node:
        return self.create_node("output", "output", (result,))

    def inserting_before(self, node: Node | None = None) -> _Insertion:
        """`with graph.inserting_before(n): ...`: new nodes go before n (by default: before all)."""
        return _Insertion(self, self._root._next if node is None else self._own(node))

    def inserting_after(self, node: Node | None = None) -> _Insertion:
        """`with graph.inserting_after(n): ...`: new nodes go after n (by default: after all)."""
        return _Insertion(self, self._root if node is None else self._own(node)._next)

    def _own(self, node: Node) -> Node:
        if node.graph is not self:
            raise ValueError(f"{node.name} belongs to another graph")
        return node

    def erase_node(self, node: Node) -> None:
        """Remove a node that nobody reads. Raises RuntimeError, naming its users, otherwise."""
        if node.users:
            raise RuntimeError(f"cannot erase {node.name}: {', '.join(u.name for u in node.users)} still read it")
        node._rewire((), {})
        if self._before is node:
            self._before = node._next
        node._unlink()
        self._count -= 1
        self._names.pop(node.name, None)

    def reorder(self, nodes: Iterable[Node]) -> None:
        """Put the nodes, all of this graph's, in this order."""
        for n in nodes:
            self._root.prepend(n)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Node] = lambda n: n) -> Node:
        """A copy of another graph's node here, its inputs sent through arg_transform."""
        new = self.create_node(
            node.op, node.target, map_nodes(node.args, arg_transform), map_nodes(node.kwargs, arg_transform), node.name
        )
        new.meta = dict(node.meta)
        return new

    def graph_copy(self, other: Graph, val_map: dict[Node, Any]) -> Any:
        """Copy another graph's nodes here (val_map has what is already known); returns its output value, mapped."""
        for n in other.nodes:
            if n in val_map:
                continue
            if n.op == "output":
                return map_nodes(n.args[0], val_map.__getitem__)
            val_map[n] = self.node_copy(n, val_map.__getitem__)
        return None

    def copy(self) -> Graph:
        """A graph of the same nodes, copied."""
        new = Graph(self.owning_module)
        values: dict[Node, Node] = {}
        for n in self.nodes:
            values[n] = new.node_copy(n, values.__getitem__)
        return new

    def __deepcopy__(self, memo: dict) -> Graph:
        return self.copy()

    def __getstate__(self) -> dict:
        # Flat: nodes name each other by place, so that a long graph needs no deep recursion.
        place = {n: i for i, n in enumerate(self.nodes)}
        flat = lambda x: map_nodes(x, lambda n: _Place(place[n]))
        rows = [(n.name, n.op, n.target, flat(n.args), flat(n.kwargs), n.meta) for n in place]
        return {"rows": rows}  # its module, if it has one, is pickled with it and not by it

    def __setstate__(self, saved: dict) -> None:
        self.__init__()
        made: list[Node] = []
        back = lambda p: made[p.i]
        for name, op, target, args, kwargs, meta in saved["rows"]:
            node = self.create_node(op, target, map_nodes(args, back, _Place), map_nodes(kwargs, back, _Place), name)
            node.meta.update(meta)
            made.append(node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] = Node.is_impure) -> bool:
        """Erase what nobody reads, except what is impure; returns whether anything went."""
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not is_impure_node(node):
                self.erase_node(node)
                changed = True
        return changed

    def _unique(self, name: str) -> str:
        if not name.isidentifier():
            name = re.sub(r"\W", "_", name).strip("_")
            name = name if name.isidentifier() else f"_{name}"
        if keyword.iskeyword(name) or hasattr(builtins, name):
            name = f"{name}_"
        base, k = name, self._names.get(name, 0)
        while name in self._names or name in _TAKEN:
            k += 1
            name = f"{base}_{k}"
        if name is not base and base in self._names:
            self._names[base] = k
        self._names[name] = 0
        return name

    # -------------------------------------------------------------- checking
    def lint(self) -> None:
        """Raise ValueError unless this is a legal graph: unique names, inputs first, uses recorded, one output last,
        and attributes that its module has."""
        seen: set[Node] = set()
        names: set[str] = set()
        nodes = self.nodes
        for n in nodes:
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
                raise ValueError(f"input {n.name} comes after {next(m for m in nodes if m.op != 'placeholder').name}")
            if n.op == "call_function" and not callable(n.target):
                raise ValueError(f"{n.name} calls {n.target!r}, which is no function")
            if n.op in ("call_method", "call_module", "get_attr") and not isinstance(n.target, str):
                raise ValueError(f"the target of {n.name} ({n.op}) is a name, not {n.target!r}")
            held = "constant" in n.meta  # by the node itself
            if self.owning_module is not None and n.op in ("call_module", "get_attr") and not held:
                try:
                    attribute(self.owning_module, n.target)
                except AttributeError as missing:
                    raise ValueError(f"{n.name} reads {n.target!r}: {missing}") from None
            seen.add(n)
            names.add(n.name)
        outputs = [n for n in nodes if n.op == "output"]
        if len(outputs) != 1 or nodes[-1] is not outputs[0]:
            raise ValueError(f"a graph has one output, at its end; this one has {len(outputs)}")

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, target_name(n.target), repr(n.args), repr(n.kwargs)) for n in self.nodes]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        for r in rows:
            print("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip())

    @property
    def code(self) -> str:
        """The graph as Python: `def forward(...)`, which runs where `import minnp.numpy as np` has."""
        from .codegen import python_code

        return python_code(self)

    def __str__(self) -> str:
        return "graph:\n    " + "\n    ".join(n.format_node() for n in self.nodes)


class _Insertion:
    def __init__(self, graph: Graph, before: Node) -> None:
        self.graph, self.before = graph, before

    def __enter__(self) -> Graph:
        self.outer, self.graph._before = self.graph._before, self.before
        return self.graph

    def __exit__(self, *exc: Any) -> None:
        self.graph._before = self.outer


class _Place:
    """Where a pickled graph has a node."""

    __slots__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i


def graph_of(module: Any) -> Graph:
    """A graph itself, or that of a module; TypeError for anything else."""
    if isinstance(module, Graph):
        return module
    if not isinstance(getattr(module, "graph", None), Graph):
        raise TypeError(f"got {module!r:.60} for a graph or a GraphModule: minnp.fx.symbolic_trace(f) makes one")
    return module.graph


def suggested(op: str, target: Any) -> str:
    return target_name(target).rpartition(".")[2] if op == "call_function" else target_name(target).replace(".", "_")


def last_reads(graph: Graph) -> dict[Node, list[Node]]:
    """For every node, those that nobody reads after it."""
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        for n in node.all_input_nodes:
            last[n] = node
    out: dict[Node, list[Node]] = {}
    for n, at in last.items():
        out.setdefault(at, []).append(n)
    return out
