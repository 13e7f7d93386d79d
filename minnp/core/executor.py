"""Executors: a graph as a callable on NumPy arrays.

The host executor writes straight-line Python: one kernel call a node, values dropped after their last use, guards in
place, and in-place writes where nobody can tell.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as onp

from .aliasing import donated
from .array import unwrap
from .effects import guard, pick
from .graph import Graph, Node, map_nodes
from .primitive import Primitive
from .value import BINARY

_SERIAL = itertools.count()
_OPERATORS = dict(
    zip(BINARY.values(), ["+", "-", "*", "/", "//", "%", "divmod", "**", "@", "&", "|", "^", "<<", ">>"], strict=True),
)
INFIX = {k: v for k, v in _OPERATORS.items() if k in ("add", "subtract", "multiply", "divide")}


def compile_host(graph: Graph, constants: dict[str, Any], exact: bool = False) -> Callable:
    """The graph as a function of NumPy arrays (its placeholders, in order), returning the tuple of its outputs.

    exact    with NumPy's own kernels alone
    """
    names: dict[str, Any] = {"onp": onp, "guard": guard}
    last_use, writes = _last_uses(graph), donated(graph)
    inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
    lines = [f"def run({', '.join(inputs)}):"]
    made: dict[int, Node] = {}  # the nodes that the lines compute
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "get_attr":
            names[node.name] = constants[node.target] if node.target in constants else unwrap(node.meta["constant"], [])
            continue
        if node.op == "output":
            lines.append(f"    return {_show(node.args[0], names)}")
            break
        statement = _statement(node, names, exact)
        if node in writes:
            statement = statement[:-1] + ", donate=True)"
        lines.append(f"    {statement}")
        made[len(lines)] = node
        dead = [n.name for n in last_use.get(node, ()) if n.op not in ("get_attr",)]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    source = "\n".join(lines) + "\n"
    filename = f"<minnp jit {next(_SERIAL)}>"
    exec(compile(source, filename, "exec"), names)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    run = names["run"]
    run.source, run.nodes = source, made
    return run


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For every node, the values nobody reads after it."""
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        for n in node.all_input_nodes:
            last[n] = node
        if not node.users and node.op == "call_function":
            last.setdefault(node, node)
    out: dict[Node, list[Node]] = {}
    for n, at in last.items():
        if at.op != "output" and not (at is n and n.target is guard):
            out.setdefault(at, []).append(n)
    return out


def _statement(node: Node, names: dict, exact: bool) -> str:
    target = node.target
    if target is guard:
        return f"guard({', '.join(_show(a, names) for a in node.args)})"
    if target is pick:
        return f"{node.name} = {_show(node.args[0], names)}[{node.args[1]!r}]"
    if isinstance(target, Primitive):
        dispatched = node.meta.get("dispatched", False)  # whether the policy chooses its kernel, as it does eagerly
        if target.name in INFIX and len(node.args) == 2 and not node.kwargs and not dispatched:
            a, b = (_show(x, names) for x in node.args)
            return f"{node.name} = {a} {INFIX[target.name]} {b}"
        if target.name == "getitem" and len(node.args) == 1:
            return f"{node.name} = {_show(node.args[0], names)}[{_show(node.kwargs['index'], names)}]"
        # a row that a backend may be better at chooses at every call, as it does eagerly
        kernel: Any = target if target.worth is not None or dispatched else target.numpy if exact else target.fast
    else:
        kernel = getattr(target, "__wrapped__", target)
    k = f"k_{node.name}"
    names[k] = kernel
    args = [_show(a, names) for a in node.args] + [f"{key}={_show(v, names)}" for key, v in node.kwargs.items()]
    return f"{node.name} = {k}({', '.join(args)})"


def _show(x: Any, names: dict) -> str:
    """An argument in the generated code: nodes by name, plain literals as they are, anything else as a named object."""
    if isinstance(x, Node):
        return x.name
    if type(x) in (bool, int, str, type(None)) or (type(x) is float and x == x and abs(x) != float("inf")):
        return f"({x!r})" if type(x) in (int, float) and x < 0 else repr(x)
    if x is Ellipsis:
        return "..."
    holds: list = []
    map_nodes(x, holds.append)
    if holds:
        if type(x) is slice:
            return f"slice({_show(x.start, names)}, {_show(x.stop, names)}, {_show(x.step, names)})"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {_show(v, names)}" for k, v in x.items()) + "}"
        inner = ", ".join(_show(v, names) for v in x)
        return f"[{inner}]" if isinstance(x, list) else f"({inner},)"
    if isinstance(x, (tuple, list)) and not x:
        return repr(x)
    name = f"c_{len(names)}"
    names[name] = x
    return name
