"""Proxy: a value of a program that is traced without values. What is done to it becomes nodes of a graph.

A proxy behaves like the array it stands for, writes and views included. Its memory is a Cell: a write replaces the
cell's node by a `write_view` node, and a view whose cell was written since it was read is taken anew, as arrays do
under capture.
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as onp

from ..api import methods
from ..arrays.array import Array
from ..rows.dispatch import fact
from ..rows.primitive import TABLE
from ..rows.report import PACKAGE
from ..rows.value import BINARY, COMPARISON, PYTHON, UNARY, Host
from .effects import guard
from .node import Node

# Attributes that are facts, not arrays; methods that give Python objects; methods that write.
FACTS = {"shape", "ndim", "size", "dtype", "nbytes", "itemsize", "strides", "flags", "device"}
TO_PYTHON = {"item", "tolist", "tobytes"}
WRITING = {*methods.WRITING}


@functools.cache
def reduces(function: Any) -> bool:
    """Whether the result of NumPy's function, asked for without an axis, is a number."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # not a function, or one that shows no signature
        return False
    return "keepdims" in parameters and "axis" in parameters and parameters["axis"].default is None


class Cell:
    """The memory of an array made in the traced program: `node` is its value now.

    input        its placeholder, if the caller passed it in: a write goes back to the caller
    closed_over  an array from outside the traced program, which may not write to it
    dense        known to be C-contiguous, so that reshape gives a view
    copies       indices in arrays by which parts were copied out of this memory, or it was of another: where one of
                 them was a single number after all, that part was a view, which matters once there is a write
    """

    __slots__ = ("closed_over", "copies", "dense", "input", "node")

    def __init__(self, node: Node, dense: bool = False) -> None:
        self.node, self.dense, self.closed_over = node, dense, False
        self.input = node if node.op == "placeholder" else None
        self.copies: list[tuple[Node, ...]] = []


class Step:
    """How a view is taken of what it shows (its argument `at`).

    row     (row, params), which a write to the view has among its `steps`; None if no row does
    sure    False if the result may as well be a copy
    """

    __slots__ = ("args", "at", "kwargs", "op", "row", "sure", "target")

    def __init__(self, call: tuple, at: int, row: Any, sure: bool) -> None:
        self.op, self.target, self.args, self.kwargs = call
        self.at, self.row, self.sure = at, row, sure

    def of(self, tracer: Any, node: Node) -> Node:
        """The same view of another array."""
        args = (*self.args[: self.at], node, *self.args[self.at + 1 :])
        return tracer.create_node(self.op, self.target, args, self.kwargs)


class Proxy:
    """Stands for the value of `node`; `tracer` records what is done to it (by default, at the graph's insert point).

    `kind` is "array", "scalar" (a NumPy number) or "object" (a Python object: a shape, a string, ...): it decides what
    `x += y` means. `known` is the value, where it follows from literals alone: such proxies may be branched on.

    >>> kinds = []
    >>> program = fx.symbolic_trace(lambda x: kinds.append(type(x)) or x + 1)
    >>> kinds[0] is fx.Proxy
    True
    """

    _cell: Any
    if TYPE_CHECKING:  # made from tables, below

        def _operate(self, other: Any, /) -> Any: ...
        def __neg__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __eq__(self, other: Any, /) -> Any: ...
        def __ne__(self, other: Any, /) -> Any: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _operate
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _operate
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __lt__ = __le__ = __gt__ = __ge__ = _operate

    def __init__(self, node: Node, tracer: Any = None, kind: str = "array") -> None:
        if tracer is None:
            from .symbolic import GraphAppendingTracer

            tracer = GraphAppendingTracer(node.graph)
        vars(self).update(tracer=tracer, kind=kind, _cell=Cell(node), _steps=(), _node=node, _at=node)
        vars(self).update(_value=None, _value_at=None, _left=None)

    # -------------------------------------------------------------- its value now
    @property
    def node(self) -> Node:
        """The node of the value now."""
        cell = self._cell
        if self._left is not None:  # `y = x; y += 1`: x shows it, if it is an array
            self.tracer.create_node("call_function", guard, (self._left, "array", True), {})
            vars(self)["_left"] = None
        if not self._steps:
            return cell.node
        if self._at is not cell.node:
            node = cell.node
            for step in self._steps:
                if not step.sure:
                    raise self.tracer.error(
                        f"{self._node.name} may or may not be a view of an array that was written after it was made",
                        "copy it, or use minnp.jit, which knows the memory",
                    )
                node = step.of(self.tracer, node)
            vars(self).update(_node=node, _at=cell.node)
        return self._node

    @property
    def known(self) -> Any:
        return self._value if self._value_at is self._cell.node else None

    def __repr__(self) -> str:
        return f"Proxy({self._node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # protocols that are not ours
        if self.known is not None and name in FACTS:
            return getattr(self.known, name)
        return Attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "shape" and not self._steps:
            self._cell.node = self.reshape(value).node
        elif name in ("real", "imag", "flat"):
            self.tracer.write(self, _set_part, (name, value))
        else:
            raise self.tracer.error(f"the {name} of a traced value was assigned", "make a new array")

    # -------------------------------------------------------------- what Python asks
    def __bool__(self) -> bool:
        return self.tracer.to_bool(self) if self.known is None else bool(self.known)

    def __int__(self) -> int:
        return int(self._ask("int()", "a Python number made of it"))

    def __index__(self) -> int:
        return operator.index(self._ask("an index or range()", "a Python number made of it"))

    def __float__(self) -> float:
        return float(self._ask("float()", "a Python number made of it"))

    def __complex__(self) -> complex:
        return complex(self._ask("complex()", "a Python number made of it"))

    def __len__(self) -> int:
        return len(self._ask("len()", "its length"))

    def __contains__(self, x: Any) -> bool:
        return x in self._ask("`in`", "a search in it")

    def __format__(self, spec: str) -> str:
        return format(self._ask("a formatted string", "its text"), spec) if spec else str(self)

    def _ask(self, what: str, why: str) -> Any:
        known = self.known
        return self.tracer.asked(self, what, why) if known is None else known

    def __iter__(self) -> Iterator:
        known = self.known
        return self.tracer.iter(self) if known is None else iter([self[i] for i in range(len(known))])

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        known = self.known
        return onp.asarray(self.tracer.asked(self, "numpy.asarray()", "its data") if known is None else known)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return self.tracer.numpy(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return self.tracer.numpy(function, args, kwargs)

    # -------------------------------------------------------------- indexing
    def __getitem__(self, index: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tracer.write_at(self, index, value)

    __hash__ = object.__hash__


class Attribute(Proxy):
    """`x.name`, of which it is not yet known whether it is called."""

    def __init__(self, owner: Proxy, name: str) -> None:
        vars(self).update(tracer=owner.tracer, _owner=owner, _name=name, _made=None)

    def __getattr__(self, name: str) -> Any:
        if name in ("_cell", "_steps", "_node", "_at", "_value", "_value_at", "_left", "kind") and self._made is None:
            made = self.tracer.create_proxy("call_function", getattr, (self._owner, self._name), {})
            vars(self).update({**vars(made), "_made": made})
            return vars(self)[name]
        return super().__getattr__(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        swaps = self._name == "byteswap"  # which writes with inplace=True alone, and gives the array
        if self._name in WRITING and self._owner.kind == "array" and (not swaps or any(args) or any(kwargs.values())):
            self.tracer.write(self._owner, self._name, args, kwargs)
            return self._owner if swaps else None
        return self.tracer.create_proxy("call_method", self._name, (self._owner, *args), kwargs)


def _set_part(array: Any, name: str, value: Any) -> None:
    setattr(array, name, value)


def _operator(function: Callable, reflected: bool = False) -> Callable:
    if reflected:
        return lambda self, other: self.tracer.create_proxy("call_function", function, (other, self), {})
    return lambda self, *others: self.tracer.create_proxy("call_function", function, (self, *others), {})


def _in_place(function: Callable, plain: Callable) -> Callable:
    def method(self: Proxy, other: Any) -> Proxy:
        if self.kind != "array":  # a number: another one takes its name
            return self.tracer.create_proxy("call_function", plain, (self, other), {})
        return self.tracer.added_to(self, function, other)

    return method


for _op in (*BINARY, *COMPARISON, *UNARY):
    _function = PYTHON[_op]
    setattr(Proxy, f"__{_op}__", _operator(_function))
    if _op in BINARY:
        setattr(Proxy, f"__r{_op}__", _operator(_function, reflected=True))
        if hasattr(operator, f"i{_op}"):
            setattr(Proxy, f"__i{_op}__", _in_place(getattr(operator, f"i{_op}"), _function))
Proxy.__pow__ = lambda self, other, modulo=None: self.tracer.create_proxy(
    "call_function", operator.pow, (self, other), {}
)


def holds_proxies(x: Any) -> bool:
    """Whether an object that is no tuple, list or dict has proxies among its attributes or items."""
    if isinstance(x, (Node, Host, type)) or callable(x):
        return False
    held = x.values() if isinstance(x, dict) else x if isinstance(x, (list, set, frozenset)) else ()
    return any(isinstance(v, Proxy) for v in (*held, *getattr(x, "__dict__", {}).values()))


def unpack_count() -> int | None:
    """How many values the code that iterates unpacks them into (`a, b = x`); None if it does not.

    That is the user's, or a layer of ours that is traced through."""
    frame = sys._getframe(1)
    while frame is not None:
        for instruction in dis.get_instructions(frame.f_code):
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return instruction.argval
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame = frame.f_back
    return None


# ------------------------------------------------------------------ which calls give views
def _is_basic(index: Any) -> bool:
    """Whether an index (with nodes in it) is of numbers and slices, so that it gives a view."""
    for p in index if type(index) is tuple else (index,):
        if isinstance(p, Node):
            if p.meta.get("kind") not in ("object", "scalar"):
                return False
        elif p is not None and p is not ... and (isinstance(p, bool) or not isinstance(p, (slice, int, onp.integer))):
            return False
    return True


def view_of(target: Any, name: str) -> Any:
    """Whether a function, or a method or attribute of this name, gives a view of its array: the fact `view` of its
    definition, or that of its row (True)."""
    method, public = getattr(Host, name, getattr(Array, name, None)), vars(onp).get(name)
    hosts = (getattr(target, "__wrapped__", None), method, public if callable(public) else None)
    facts = (fact(host, "view", fact(host, "creates") == "converted" and "perhaps") for host in hosts)
    return next(filter(None, facts), name in TABLE and TABLE[name].view)


def row_of_view(view: Any, name: str, args: tuple, kwargs: dict) -> tuple[str, dict] | None:
    """(row, params) of a view that a call gives, by view_of and the arguments after the array; None: no row has it."""
    if view is not True:
        return view(args, kwargs) if callable(view) else view if type(view) is tuple else None
    form, *words = TABLE[name].takes or ("",)
    return (name, dict(zip(words, args, strict=False)) | kwargs) if form == "view" else None


def is_dense(op: str, target: Any, args: tuple, kwargs: dict) -> bool:
    """Whether the result of a call is a new array in C order."""
    if "order" in kwargs or not {"F", "A", "K"}.isdisjoint(a for a in args if isinstance(a, str)):
        return False
    if op == "call_method":
        return target == "copy"
    host = getattr(target, "__wrapped__", target)
    made_of_list = host is onp.array and type(args[0]) in (list, tuple)
    return host is onp.ascontiguousarray or made_of_list or fact(host, "creates") == "dense"


def view_step(name: str, call: tuple, at: int, base: Proxy) -> Step | None:
    """The step from the array that is argument `at` to the result of a call (op, target, args, kwargs in nodes), if the
    result may show the array's memory."""
    _, target, args, kwargs = call
    rest = () if target is getattr else args[1:]
    if base.kind != "array":
        return None
    if target is operator.getitem:
        flat = base._steps and base._steps[-1].args[1:] == ("flat",)  # an iterator, of which parts are copies
        return Step(call, 0, (TABLE["getitem"], {"index": rest[0]}), True) if _is_basic(rest[0]) and not flat else None
    view = view_of(target, name)
    if at == 0 and view and view != "perhaps":
        said = row_of_view(view, name, rest, kwargs)
        sure = said is not None or not callable(view)  # not so of a class
        return Step(call, 0, (TABLE[said[0]], said[1]) if said else None, sure)
    if view != "perhaps" or (name in ("array", "astype") and kwargs.get("copy", True) is True):
        return None
    if isinstance(getattr(target, "__wrapped__", None), onp.ufunc):  # the function; the method may give x itself
        return None
    dense = base._cell.dense and not base._steps and not kwargs
    if dense and (name == "reshape" or (name == "ravel" and not rest)):
        shape = (-1,) if name == "ravel" else rest[0] if len(rest) == 1 else rest
        return Step(call, at, (TABLE["reshape"], {"shape": shape}), True)
    return Step(call, at, None, False)
