"""Tracing without values: every public call, operator and method on a Proxy becomes a node.

Calls of minnp.numpy's functions made during the trace, with proxies or without, are recorded as the user wrote them:
the target is the public function. Those that depend on literals alone are computed too, so that Python may branch on
them.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from ... import errors
from ..api.functions import PUBLIC
from ..arrays.array import Array
from ..rows.primitive import TABLE, Primitive
from ..rows.report import user_line
from ..rows.state import capture
from ..rows.value import STREAMS, Host
from ..transforms.trace import Trace
from .effects import guard, in_place, into
from .graph import Graph
from .node import Node, map_leaves, target_name
from .proxy import FACTS, TO_PYTHON, Cell, Proxy, holds_proxies, is_dense, reduces, unpack_count, view_step

_REDUCING_CALL = {"axis", "keepdims", "out"}


class SymbolicTrace(Trace):
    """What records a program into `graph`; minnp.fx.Tracer adds models. Its methods may be overridden."""

    differentiable = False
    symbolic = True
    open = False  # whether it records expressions of Variables, outside any function
    __slots__ = ("_attributes", "graph", "names", "patched", "reaching")

    def __init__(self, graph: Graph | None = None) -> None:
        super().__init__()
        self.graph = Graph() if graph is None else graph
        self.names: dict[int, tuple[Any, str]] = {}  # by id: arrays that the traced model holds, and their names
        self._attributes: dict[int, tuple[Any, Node]] = {}
        # of each function inside a transformation: the memory outside it that it wrote to -> the value before
        self.reaching: list[dict[Cell, Node] | None] = []

    def __repr__(self) -> str:
        return "symbolic trace"

    # -------------------------------------------------------------- nodes
    def create_node(
        self, op: str, target: Any, args: Any, kwargs: dict, name: str | None = None, where: str | None = None
    ) -> Node:
        """A node of the graph, with the user's line in its meta."""
        node = self.graph.create_node(op, target, args, kwargs, name)
        node.meta["where"] = user_line() if where is None else where
        return node

    def create_arg(self, x: Any) -> Any:
        """What a node holds for an argument: nodes for proxies and arrays, containers walked."""
        if isinstance(x, Proxy):
            if x.tracer.open is not self.open:
                raise self.error(
                    "an expression of Variables meets a function that is traced",
                    "compile the expression first (minnp.compile), and call the result there",
                )
            return x.node
        if isinstance(x, (Array, Host)) and not isinstance(x, onp.generic):
            return self.closed_over(x)
        if isinstance(x, STREAMS) and id(x) in self._attributes:
            return self._attributes[id(x)][1]
        t = type(x)
        if t is tuple or t is list:
            return t([self.create_arg(v) for v in x])
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return t(*[self.create_arg(v) for v in x])
        if t is dict:
            return {k: self.create_arg(v) for k, v in x.items()}
        if t is slice:
            return slice(self.create_arg(x.start), self.create_arg(x.stop), self.create_arg(x.step))
        return self._object(x) if holds_proxies(x) else x

    def _object(self, x: Any) -> Node:
        """The node that makes an object which holds proxies."""
        t = type(x)
        if dataclasses.is_dataclass(x):
            fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init}
            return self.create_node("call_function", t, (), self.create_arg(fields))
        if isinstance(x, collections.OrderedDict):
            return self.create_node("call_function", t, (self.create_arg(list(x.items())),), {})
        raise self.error(
            f"a {t.__name__} that holds traced values is an argument or the result of the graph",
            "use a tuple, list, dict, named tuple or dataclass",
        )

    def closed_over(self, array: Any) -> Node:
        """The get_attr node of an array made outside the trace: read anew whenever the graph runs."""
        found = self._attributes.get(id(array))
        if found is None:
            _, name = self.names.get(id(array), (None, ""))
            node = self.create_node("get_attr", name or f"constant_{len(self._attributes)}", (), {})
            if not name:
                node.meta["constant"] = array
            found = self._attributes[id(array)] = (array, node)
        return found[1]

    def made(self, stream: Any, function: Callable, args: tuple, kwargs: dict) -> None:
        """function(*args, **kwargs) made a random stream: every run of the graph makes its own."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node("call_function", function, args, kwargs, function.__name__)
        node.meta.update(kind="object", effect=True)
        self._attributes[id(stream)] = stream, node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a new node."""
        return Proxy(node, self)

    def create_proxy(
        self, op: str, target: Any, args: tuple, kwargs: dict, name: str | None = None, effect: bool = False
    ) -> Any:
        """Record a call and return the proxy of its result, which knows what it is a view of.

        effect   it draws random numbers, or does more than its result says: it is run each time, and never now
        """
        kind = kind_of(op, target, args, kwargs)
        known = None if effect else self._known(op, target, args, kwargs)
        at, base = next(((i, a) for i, a in enumerate(args) if isinstance(a, (Proxy, Array, Host))), (0, None))
        if base is not None and not isinstance(base, Proxy):
            base = self.proxy(self.closed_over(base))
            base._cell.closed_over = True
        call = (op, target, tuple(map(self.create_arg, args)), {k: self.create_arg(v) for k, v in kwargs.items()})
        node = self.create_node(*call, name or (args[1] if target is getattr else None))
        node.meta.update(kind=kind, effect=True) if effect else node.meta.update(kind=kind)
        made = self.proxy(node)
        vars(made)["kind"] = kind
        called = target_name(target) if target is not getattr else args[1]
        step = view_step(called, call, at, base) if base is not None and op != "call_module" else None
        if step is not None:
            vars(made).update(_cell=base._cell, _steps=(*base._steps, step), _at=base._cell.node)
        elif target is operator.getitem and base is not None and base.kind == "array":
            index = call[2][1]
            unknown = tuple(i for i in (index if type(index) is tuple else (index,)) if type(i) is Node)
            if unknown and not any(isinstance(i, (Host, list)) for i in (index if type(index) is tuple else (index,))):
                for cell in (base._cell, made._cell):
                    cell.copies.append(unknown)
        made._cell.dense |= step is None and is_dense(op, target, args, kwargs)
        if known is not None:
            vars(made).update(_value=known, _value_at=made._cell.node)
        return made

    def _known(self, op: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """The value of a call that depends on literals and arrays made outside alone, or None."""
        if op not in ("call_function", "call_method") or not isinstance(target, (str, *_CALLABLE)):
            return None
        if not _all_known((args, kwargs)):
            return None
        with suspended():
            args, kwargs = _values(args), _values(kwargs)
            out = getattr(args[0], target)(*args[1:], **kwargs) if op == "call_method" else target(*args, **kwargs)
        return out

    # -------------------------------------------------------------- what core asks of a capture
    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        """A row called by itself."""
        if not any(isinstance(v, Proxy) for v in values):
            with suspended():
                return row(*values, **params)
        return self.create_proxy("call_function", row, tuple(values), params)

    def public(self, e: Any, args: tuple, kwargs: dict) -> Any:
        """A public function, or a method or operator of a real array, called during the trace."""
        host, name = e.host, e.name
        if len(args) > 1 and name.startswith("atleast_"):  # a view of each
            return type(host(0, 0))([self.public(e, (a,), kwargs) for a in args])
        target = PUBLIC.get(host)
        if target is None and name.startswith("ndarray."):
            return self.create_proxy("call_method", name.removeprefix("ndarray."), args, kwargs)
        if target is None and hasattr(host, "reflects"):
            target, args = host.reflects, args[::-1]
        if target is None:
            target = host
        out = kwargs.get("out")
        if out is None and e.nin is not None and len(args) > e.nin:
            args, out = args[: e.nin], args[e.nin :]
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        if out is not None:
            kwargs = {k: v for k, v in kwargs.items() if k != "out"}
            if not isinstance(out, Proxy):
                raise self.error("out= is an array made outside the traced function", "make it inside, or pass it in")
            self.write(out, into, (target, *args), kwargs)
            return out
        writes = e.writes or ((0,) if name.endswith(".at") else ())
        if writes == (0,):
            if not isinstance(args[0], Proxy):
                raise self.error("it writes to an array made outside the traced function", "pass it in and return it")
            self.write(args[0], target, args[1:], kwargs, name.startswith("random."))
            return None
        if writes:
            raise self.error(f"{name} writes to its argument number {writes[0]}", "use what gives a new array")
        return self.create_proxy("call_function", target, args, kwargs, effect=name.startswith("random."))

    def numpy(self, host: Callable, args: tuple, kwargs: dict) -> Any:
        """NumPy's own function called on a proxy: recorded as ours."""
        return self.create_proxy("call_function", PUBLIC.get(host, host), args, kwargs)

    # -------------------------------------------------------------- writes
    def write(
        self, target: Proxy, function: Any, args: tuple, kwargs: dict | None = None, effect: bool = False
    ) -> None:
        """Record function(target, *args, **kwargs), which writes to its first argument."""
        made = self.create_proxy("call_function", in_place, (function, target, *args), kwargs or {}, effect=effect)
        if target._steps:
            self.write_at(target, ..., made)
        else:
            self._replace(target._cell, made.node)

    def write_at(self, target: Proxy, index: Any, value: Any) -> None:
        """Record target[index] = value, as a `write_view` of the whole array that the target is part of."""
        if target.kind != "array":
            raise self.error(f"{target.node.name}[...] = ... writes to a {target.kind}", "build a new one")
        if not isinstance(value, (Proxy, Array, Host)) and isinstance(value, (list, tuple)):
            value = self.create_proxy("call_function", PUBLIC[onp.array], (value,), {})
        new, index, cell = self.create_arg(value), self.create_arg(index), target._cell
        if isinstance(value, Proxy) and self._written_already(target, index, value):
            return
        shown = target.node
        steps = []
        for step in target._steps:
            if step.row is None or not step.sure:
                raise self.error(
                    f"a write to {shown.name}, which {'is a view that' if step.sure else 'may or may not be a view:'} "
                    f"{target_name(step.target)} {'gives' if step.sure else 'depends on the memory of its argument'}",
                    "index the array itself, copy first, or use minnp.jit, which knows the memory",
                )
            steps.append(step.row)
        if index is ... and steps and steps[-1][0] is TABLE["getitem"] and _has_slice(steps[-1][1]["index"]):
            index = steps.pop()[1]["index"]  # x[1:][...] is x[1:]; not so x[1][...], if that is a number
        params = {"steps": tuple(steps), "index": index}
        self._replace(cell, self.create_node("call_function", TABLE["write_view"], (cell.node, new), params))

    def transformed(
        self, name: str, f: Callable, options: dict, args: tuple, kwargs: dict, direct: bool = False
    ) -> Any:
        """minnp.NAME(f, **options)(*args, **kwargs), called during the trace."""
        raise self.error(f"{name} is called here", "call minnp.fx.symbolic_trace, which records it")

    def _replace(self, cell: Cell, node: Node) -> None:
        """The memory is written: its value is `node` from now on."""
        if cell.node.graph is not node.graph:
            reached = self.reaching[-1] if self.reaching else None
            if reached is None:
                raise self.error(
                    "a function given to vmap, jvp, ... writes to an array made outside it", "return it instead"
                )
            reached.setdefault(cell, cell.node)
        if cell.closed_over:
            raise self.error("it writes to an array made outside the traced function", "pass it in and return it")
        for unknown in cell.copies:
            check = self.create_node("call_function", guard, (unknown, "axes", True), {}, "guard")
            check.meta["effect"] = True
        cell.copies.clear()
        cell.node = node

    def _written_already(self, target: Proxy, index: Any, value: Proxy) -> bool:
        """Whether this is the end of `x[i] += v`: x[i] was read, and added to where it lies, just now."""
        steps, cell = value._steps, value._cell
        if cell is not target._cell or len(steps) != len(target._steps) + 1 or steps[:-1] != target._steps:
            return False
        last, node = steps[-1], cell.node
        if (
            last.target is not operator.getitem
            or not _same(last.args[1], index)
            or node.target is not TABLE["write_view"]
        ):
            return False
        if node.kwargs["steps"] == tuple(step.row for step in steps):  # of a number too, of which there is no view
            node.kwargs = {"steps": node.kwargs["steps"][:-1], "index": index}
        return True

    def added_to(self, target: Proxy, function: Callable, value: Any) -> Proxy:
        """Record an in-place operator; returns what its name holds afterwards: the same memory."""
        before = target.node
        self.write(target, function, (value,))
        made = self.proxy(target._cell.node)
        vars(made).update({k: v for k, v in vars(target).items() if k not in ("_value", "_left")})
        if not target._steps:  # of a number it would have been another one: whoever reads the old name must know
            vars(target)["_left"] = before if before.op != "placeholder" else None
        return made

    # -------------------------------------------------------------- what has no graph
    def ends(self, why: str) -> None:
        raise errors.CaptureError(f"{why}; pass the array in and return it, or make it inside the function")

    def error(self, fact: str, way_out: str) -> errors.CaptureError:
        return errors.CaptureError(f"symbolic_trace, at {user_line()}: {fact}; {way_out}")

    def asked(self, proxy: Proxy, what: str, why: str) -> Any:
        """Python asks for a value that a trace without values has not got. An override may return one."""
        node = proxy.node
        raise self.error(
            f"{what} of {node.name} ({node.op} {target_name(node.target)}): {why} needs its value, and there is none",
            "use minnp.jit or minnp.fx.capture, which capture real values, with guards and loops; or np.where; or keep "
            "this function whole with minnp.fx.wrap; or fix an argument that is an option: symbolic_trace(f, "
            "concrete_args={...})",
        )

    def to_bool(self, proxy: Proxy) -> bool:
        """What a branch on a proxy takes: raises, unless an override decides."""
        return bool(self.asked(proxy, "bool()", "a branch on it"))

    def iter(self, proxy: Proxy) -> Iterator:
        """The values of an iteration over a proxy, whose number is known where they are unpacked (`a, b = x`)."""
        return iter([proxy[i] for i in range(self.unpacked(proxy))])

    def unpacked(self, proxy: Proxy) -> int:
        """How many values a proxy is unpacked into; raises where it is iterated otherwise."""
        count = unpack_count()
        return len(self.asked(proxy, "iteration", "how often the loop runs")) if count is None else count


class GraphAppendingTracer(SymbolicTrace):
    """Records at a graph's insert point what is done to `Proxy(node)`, outside any trace.

    >>> graph = fx.Graph()
    >>> x = fx.Proxy(graph.placeholder("x"), fx.GraphAppendingTracer(graph))
    >>> out = graph.output((np.exp(x) + 1).node)
    >>> [node.name for node in graph.nodes]
    ['x', 'exp', 'add', 'output']
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)


_CALLABLE = (type(len), type(operator.add), type(onp.add), type(lambda: 0), type(Graph().copy))


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Nothing is recorded in the block."""
    token = capture.set(None)
    try:
        yield
    finally:
        capture.reset(token)


def _has_slice(index: Any) -> bool:
    return any(type(i) is slice or i is ... for i in (index if type(index) is tuple else (index,)))


def _same(a: Any, b: Any) -> bool:
    """Whether two indices, of nodes, are one."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is slice and type(b) is slice:
        return _same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return a is b or (not isinstance(a, (Node, Host)) and not isinstance(b, (Node, Host)) and a == b)


def _all_known(x: Any) -> bool:
    if isinstance(x, Proxy):
        return x.known is not None
    if isinstance(x, (tuple, list)):
        return all(map(_all_known, x))
    if isinstance(x, dict):
        return all(map(_all_known, x.values()))
    if isinstance(x, slice):
        return _all_known((x.start, x.stop, x.step))
    return True


def _values(x: Any) -> Any:
    """Known values in the place of proxies; copies, for what is computed now must not change what is known."""
    copied = lambda v: v.copy() if hasattr(v, "copy") else v
    return map_leaves(x, lambda v: copied(v.known) if isinstance(v, Proxy) else v)


def kind_of(op: str, target: Any, args: tuple, kwargs: dict) -> str:
    """What a call gives: an array, a NumPy scalar, or another object."""
    kinds = {a.kind for a in args if isinstance(a, Proxy)}
    name = target_name(target)
    if target is getattr:
        return "object" if args[1] in FACTS or kinds == {"object"} else "array"
    if op == "call_method":
        if name in TO_PYTHON or kinds == {"object"}:
            return "object"
        whole = len(args) == 1 and not _REDUCING_CALL & set(kwargs)
        return "scalar" if whole and reduces(getattr(onp, name, None)) else "array"
    if op == "call_function" and kinds:
        elementwise = isinstance(getattr(target, "__wrapped__", None), onp.ufunc)
        if elementwise or getattr(target, "__module__", "") in ("_operator", "builtins", "math"):
            of_objects = kinds == {"object"} and not elementwise
            return "object" if of_objects else "scalar" if kinds <= {"scalar", "object"} else "array"
        if len(args) == 1 and not _REDUCING_CALL & set(kwargs) and reduces(getattr(target, "__wrapped__", None)):
            return "scalar"
    return "array"
