"""Node: one step of a graph, and the walks over what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..rows.primitive import Primitive

if TYPE_CHECKING:
    from .graph import Graph

OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


class Node:
    """One step of a graph.

    op, name, target, args, kwargs   what it does; args and kwargs may hold other nodes, in nested containers
    users        the nodes that read it, in order (a dict: node -> None)
    meta         facts found by passes and capture: "value" (shape and dtype), "where" (the user's file and line),
                 "effect" (kept though nobody reads it), ...
    prev, next   its neighbours in the order of execution

    Raises ValueError for another opcode than torch.fx's six.

    >>> program = fx.symbolic_trace(lambda x: np.exp(x))
    >>> node = program.graph.nodes[1]
    >>> node.op, node.name, node.args
    ('call_function', 'exp', (x,))
    """

    # A dict too: passes written for torch.fx put facts (`node.shape = ...`) on the node itself.
    __slots__ = (
        *("__dict__", "_args", "_inputs", "_kwargs", "_next", "_prev", "graph", "meta", "name", "op", "target"),
        "users",
    )

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: tuple = (), kwargs: dict | None = None):
        if op not in OPCODES:
            raise ValueError(f"unknown opcode {op!r}; known: {', '.join(OPCODES)}")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._inputs: tuple[Node, ...] = ()
        self._rewire(tuple(args), dict(kwargs or {}))

    # -------------------------------------------------------------- what it reads
    @property
    def args(self) -> tuple:
        return self._args

    @args.setter
    def args(self, new: Iterable) -> None:
        self._rewire(tuple(new), self._kwargs)

    @property
    def kwargs(self) -> dict:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, new: dict) -> None:
        self._rewire(self._args, dict(new))

    def _rewire(self, args: tuple, kwargs: dict) -> None:
        for n in self._inputs:
            n.users.pop(self, None)
        found: dict[Node, None] = {}
        _collect(args, found)
        if kwargs:
            _collect(kwargs, found)
        self._args, self._kwargs, self._inputs = args, kwargs, tuple(found)
        for n in found:
            n.users[self] = None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes this one reads, each once, in order of appearance."""
        return list(self._inputs)

    def update_arg(self, i: int, value: Any) -> None:
        """Set positional argument i."""
        self.args = (*self._args[:i], value, *self._args[i + 1 :])

    def update_kwarg(self, name: str, value: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self._kwargs, name: value}

    def insert_arg(self, i: int, value: Any) -> None:
        """Put a positional argument before the i-th."""
        self.args = (*self._args[:i], value, *self._args[i:])

    def replace_all_uses_with(
        self, other: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True
    ) -> list[Node]:
        """Make every user of this node (for which delete_user_cb holds) read `other` instead; returns those users."""
        users = [u for u in self.users if u is not other and delete_user_cb(u)]
        for user in users:
            user.replace_input_with(self, other)
        return users

    def replace_input_with(self, old: Node, new: Node) -> None:
        """Read `new` wherever this node read `old`."""
        swap = lambda n: new if n is old else n
        self._rewire(map_nodes(self._args, swap), map_nodes(self._kwargs, swap))

    @property
    def stack_trace(self) -> str:
        """The user's file and line that the node comes from; empty if it is not known."""
        return self.meta.get("where", "")

    # -------------------------------------------------------------- where it stands
    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, other: Node) -> None:
        """Move another node of the graph to just before this one."""
        if other is not self:
            other._unlink()
            other._link(self._prev, self)

    def append(self, other: Node) -> None:
        """Move another node of the graph to just after this one."""
        if other is not self:
            other._unlink()
            other._link(self, self._next)

    def _link(self, before: Node, after: Node) -> None:
        self._prev, self._next = before, after
        before._next = after._prev = self

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # -------------------------------------------------------------- what it is
    def is_impure(self) -> bool:
        """Whether it stays though nobody reads it: inputs, the output, guards, random draws, writes to inputs."""
        return self.op in ("placeholder", "output") or bool(self.meta.get("effect"))

    def format_node(self) -> str:
        """The node in one line."""
        return f"{self.name} = {self.op}[{target_name(self.target)}]{self.args}{self.kwargs or ''}"

    def __repr__(self) -> str:
        return self.name


def _collect(x: Any, found: dict[Node, None]) -> None:
    """Put the nodes in x, where map_nodes finds them, into `found`."""
    t = type(x)
    if t is Node:
        found[x] = None
    elif t is tuple or t is list or isinstance(x, tuple):
        for v in x:
            _collect(v, found)
    elif t is dict:
        for v in x.values():
            _collect(v, found)
    elif t is slice:
        _collect((x.start, x.stop, x.step), found)


def map_leaves(x: Any, f: Callable[[Any], Any]) -> Any:
    """x with f(v) for everything in it that is no tuple, list, dict or slice."""
    if type(x) in (tuple, list):
        return type(x)([map_leaves(v, f) for v in x])
    if type(x) is dict:
        return {k: map_leaves(v, f) for k, v in x.items()}
    return slice(*[map_leaves(v, f) for v in (x.start, x.stop, x.step)]) if type(x) is slice else f(x)


def map_nodes(x: Any, f: Callable[[Any], Any], leaf: type = Node) -> Any:
    """x with f(node) in the place of every node, through tuples, lists, dicts and slices.

    leaf   the class of what f is called with

    >>> program = fx.symbolic_trace(lambda x: np.exp(x))
    >>> fx.map_arg(program.graph.nodes[1].args, lambda node: node.name)
    ('x',)
    """
    t = type(x)
    if t is leaf:
        return f(x)
    if t is tuple or t is list:
        return t([map_nodes(v, f, leaf) for v in x])
    if t is dict:
        return {k: map_nodes(v, f, leaf) for k, v in x.items()}
    if t is slice:
        return slice(map_nodes(x.start, f, leaf), map_nodes(x.stop, f, leaf), map_nodes(x.step, f, leaf))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return t(*[map_nodes(v, f, leaf) for v in x])
    return x


def target_name(target: Any) -> str:
    """A target as a table shows it."""
    if isinstance(target, str):
        return target
    if isinstance(target, Primitive):
        return target.name
    return getattr(target, "__name__", type(target).__name__)


def attribute(owner: Any, name: str) -> Any:
    """What a dotted name says: attributes and, below layers, parameters and members of lists ("encoder.layers.0.w")."""
    value = owner
    for part in name.split("."):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        for held in ("params", "aux_params"):
            values = getattr(value, held, None)
            if isinstance(values, dict) and part in values:
                value = values[part]
                break
        else:
            members = dict(value.children()) if hasattr(value, "children") else value
            try:
                value = members[int(part) if isinstance(members, (list, tuple)) else part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise AttributeError(f"{type(owner).__name__} has no {name!r}") from None
    return value
