"""Variable and compile: expressions of named variables, made before any function, as a function of these names.

A = Variable("A"); B = Variable("B")
f = compile(A * B + 1)
f(A=2, B=3)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import Function, errors
from minnp.core.arrays.array import ARRAY_TYPES, read
from minnp.core.graph.effects import guard
from minnp.core.graph.graph import Graph, suggested
from minnp.core.graph.node import Node, map_nodes
from minnp.core.graph.proxy import Cell, Proxy
from minnp.core.graph.symbolic import SymbolicTrace
from minnp.core.rows.pytree import inside
from minnp.core.rows.report import user_line
from minnp.core.rows.state import state
from minnp.core.rows.value import Tracer, lower

from .graph_module import GraphModule

_NUMBERS = (bool, int, float, complex)


class Expressions(SymbolicTrace):
    """Records what is done to variables. There is one, which never ends, so its nodes stand in no graph: they know what
    they read and not who reads them, and go with the expressions that hold them. `compile` copies the part it needs."""

    open = True

    def __init__(self) -> None:
        super().__init__()
        self.count = itertools.count()

    __slots__ = ("count",)

    def __repr__(self) -> str:
        return "expressions of variables"

    def among(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call's arguments are, or hold, expressions of variables."""
        return any(isinstance(x, Proxy) and x.tracer is self for x in (*inside(args), *inside(kwargs)))

    def error(self, fact: str, way_out: str) -> errors.CaptureError:
        return errors.CaptureError(f"an expression of Variables, at {user_line()}: {fact}; {way_out}")

    def create_node(
        self, op: str, target: Any, args: Any, kwargs: dict, name: str | None = None, where: str | None = None
    ) -> Node:
        node = Node(self.graph, name or suggested(op, target), op, target, args, kwargs)
        node.order, node.guards, node.meta["where"] = next(self.count), [], where or user_line()
        for read_by_it in node.all_input_nodes:
            del read_by_it.users[node]
            if target is guard:  # nobody reads it: it is needed where what it looks at is
                read_by_it.guards.append(node)
        return node

    def closed_over(self, array: Any) -> Node:
        if type(array) in ARRAY_TYPES and type(lower(read(array))) is Tracer:
            raise self.error(
                "a variable meets an array that a transformation watches", "compile the expression, and call the result"
            )
        node = self.create_node("get_attr", "constant", (), {})
        node.meta["constant"] = array
        return node

    def _replace(self, cell: Cell, node: Node) -> None:
        if cell.input is not None:
            raise self.error(f"it writes to the variable {cell.input.name}", "copy it first: x = A.copy()")
        super()._replace(cell, node)


class Variable(Proxy):
    """A named input of expressions: operators, NumPy's functions and methods of it give expressions, for `compile`.

    name     the argument of the compiled function that it stands for
    shape    what the argument must have; None in it for axes of any length. `A.shape` is known then
    dtype    what the argument must have. A Python number is taken where it fits
    Raises ValueError for a name that no argument can have.

    >>> compile(Variable("a") * 2 + 1)(a=3.0)
    7.0
    """

    def __init__(self, name: str, shape: Sequence[int | None] | int | None = None, dtype: Any = None) -> None:
        possible = isinstance(name, str) and Graph().placeholder(name).name == name
        if not possible:
            raise ValueError(
                f"Variable({name!r}): an argument cannot have this name: it must be one of Python's, and no "
                "keyword, builtin, `self`, `np` or `npx`, which the code of graphs uses"
            )
        if state.variables is None:
            state.variables = Expressions()
        node = state.variables.create_node("placeholder", name, (), {}, name)
        super().__init__(node, state.variables)
        node.meta["kind"] = "array"
        facts: dict[str, Any] = {}
        if shape is not None:
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            facts["ndim"] = len(shape)
            if None not in shape:
                facts |= {"shape": shape, "size": int(onp.prod(shape, dtype=int))}
        if dtype is not None:
            facts["dtype"] = onp.dtype(dtype)
        vars(self).update(facts)
        node.declared = shape, facts.get("dtype")

    def __repr__(self) -> str:
        return f"Variable({self._node.target!r})"

    def __len__(self) -> int:
        return vars(self)["shape"][0] if vars(self).get("shape") else super().__len__()

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))]) if vars(self).get("shape") else super().__iter__()

    def __setattr__(self, name: str, value: Any) -> None:
        raise self.tracer.error(f"the {name} of the variable {self._node.name} was assigned", "make a new array")


class Compiled(GraphModule):
    """What `compile` returns: a GraphModule that takes its arguments by the variables' names, or in their order."""

    declared: tuple = ()  # (name, shape or None, dtype or None) of each argument

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The value of the expression. Raises TypeError for names and dtypes, ValueError for shapes that are not those
        of the variables."""
        names = [name for name, *_ in self.declared]
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(given) != len(args) + len(kwargs) or given.keys() != set(names):
            raise TypeError(f"{self._wrong(names, args, kwargs)}; it wants {', '.join(names) or 'no arguments'}")
        return super().forward(**{said[0]: _expected(given[said[0]], *said) for said in self.declared})

    def _wrong(self, names: list[str], args: tuple, kwargs: dict) -> str:
        unknown = [name for name in kwargs if name not in names]
        missing = [name for name in names[len(args) :] if name not in kwargs]
        twice = [name for name in names[: len(args)] if name in kwargs]
        said = [f"has no argument {', '.join(map(repr, unknown))}"] if unknown else []
        said += [f"lacks {', '.join(map(repr, missing))}"] if missing else []
        said += [f"got {', '.join(map(repr, twice))} by position and by name"] if twice else []
        said += [f"got {len(args)} arguments by position"] if len(args) > len(names) else []
        return f"the compiled function {' and '.join(said)}"


def _expected(value: Any, name: str, shape: tuple | None, dtype: Any) -> Any:
    """An argument as the array or number that a variable stands for, once it is one of the declared kind."""
    if not isinstance(value, _NUMBERS) and not hasattr(value, "dtype"):
        value = np.asarray(value)
    if shape is not None:
        found = np.shape(value)
        if len(found) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found, strict=True)):
            raise ValueError(f"{name} has shape {found}; its Variable has {shape}")
    if dtype is not None:
        found = onp.result_type(value, dtype) if isinstance(value, _NUMBERS) else value.dtype
        if found != dtype:
            kind = f"{value!r}" if isinstance(value, _NUMBERS) else f"{found}"
            raise TypeError(f"{name} is {kind}; its Variable has dtype {dtype}: cast it with astype")
    return value


def compile(expr: Any, inputs: Sequence[Variable] | None = None) -> Compiled | Function:
    """The function of its variables that an expression is: a GraphModule, called as f(A=..., B=...).

    expr      an expression of Variables, or a tuple, list, dict, named tuple or dataclass of them, nested as you like:
              the function returns the same with values in it. Of a symbol of minnp.symbol it is the minnp.Function
    inputs    the variables in the order of the function's arguments; by default those that the expression needs, in
              the order in which they were made
    Raises ValueError if two variables have one name, or the expression needs one that is not among the inputs.

    Raises TypeError for inputs that are no Variables.

    >>> x = Variable("x")
    >>> compile([x, x * x])(x=3.0)
    [3.0, 9.0]
    """
    if hasattr(type(expr), "__minnp_program__"):
        return Function(expr)
    if isinstance(expr, FunctionType):
        raise TypeError(f"compile takes an expression of Variables, got {expr!r:.60}; minnp.jit compiles a function")
    tracer = state.variables or Expressions()
    result = tracer.create_arg(expr)
    needed: set[Node] = set()
    waiting: list[Node] = []
    map_nodes(result, waiting.append)
    if not waiting:
        raise TypeError(
            f"compile takes an expression of Variables, and {expr!r:.60} ({type(expr).__name__}) has none; minnp.jit "
            "compiles functions and models"
        )
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += [*node.all_input_nodes, *node.guards]
    steps = sorted(needed, key=lambda n: n.order)
    arguments = [n for n in steps if n.op == "placeholder"]
    if inputs is not None:
        if wrong := [x for x in inputs if not isinstance(x, Variable)]:
            raise TypeError(f"inputs= are Variables, not {wrong[0]!r}")
        listed = [x._cell.input for x in inputs]
        if lacking := [n.target for n in arguments if n not in listed]:
            raise ValueError(f"the expression needs {', '.join(lacking)}, which inputs= lacks")
        arguments = listed
    names = [n.target for n in arguments]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two variables are named {', '.join(twice)}: give each its own name")
    graph = Graph()
    made: dict[Node, Node] = {}
    held: dict[int, Node] = {}  # arrays made outside, each once
    for node in [*arguments, *(n for n in steps if n.op != "placeholder")]:
        array = node.meta.get("constant")
        if node.op == "get_attr" and id(array) in held:
            made[node] = held[id(array)]
            continue
        made[node] = new = graph.node_copy(node, made.__getitem__)
        if node.op == "get_attr":
            new.target = f"constant_{len(held)}"
            held[id(array)] = new
    graph.output(map_nodes(result, made.__getitem__))
    compiled = Compiled({}, graph, "Compiled")
    vars(compiled)["declared"] = tuple((n.target, *n.declared) for n in arguments)
    return compiled
