"""Executors: a graph as a callable on NumPy arrays.

The host executor writes straight-line Python: one kernel call a node, values dropped after their last use, guards in
place, and in-place writes where nobody can tell.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays.array import unwrap
from ..arrays.devices import drawn
from ..cpu import products
from ..cpu.kernels import Beside, is_beside
from ..cpu.memory import LEAST as RECYCLED
from ..cpu.sources import keep_source
from ..graph.aliasing import donated, last_read, made_here
from ..graph.closures import Environment, define, hold
from ..graph.effects import Diverged, Under, guard, inside, pick
from ..graph.graph import Graph, Node, map_nodes
from ..graph.streams import drawn_at
from ..llvm.kernels import Large, Small
from ..passes.fusion import Fused
from ..rows.primitive import Meta, Primitive
from ..rows.value import BINARY, COMPARISON, SYMBOLS
from . import memory_plan
from .compilation import lying

_SERIAL = itertools.count()
INFIX = {BINARY[op]: SYMBOLS[op] for op in ("add", "sub", "mul", "truediv")}


LONG = 1e300  # of larger numbers Python may not write the digits, or there are none
PYTHONS = {**BINARY, **COMPARISON}
PYTHONS = {f: SYMBOLS[op] for op, f in PYTHONS.items() if op in SYMBOLS}  # of numbers


def compile_host(
    graph: Graph,
    constants: dict[str, Any],
    exact: bool = False,
    keeps: bool = False,
    environment: Environment | None = None,
) -> Callable:
    """The graph as a function of NumPy arrays (its placeholders, in order), returning the tuple of its outputs.

    exact    with NumPy's own kernels alone
    keeps    the memory of its intermediate results, for the next call (memory_plan.py)
    outside  what must be as it was (closures.py); else the function raises Diverged
    """
    names = {} if environment is None else environment.names
    names |= dict.fromkeys([n.name for n in graph.nodes])  # which nothing else may have
    last_use, writes, order = _last_uses(graph), donated(graph), {n: i for i, n in enumerate(graph.nodes)}
    inputs = [n.name for n in graph.nodes if n.op == "placeholder"]
    lines = [f"def run({', '.join(inputs)}):"]
    block, places = memory_plan.plan(graph, lambda node, i: _takes_out(node, i, exact)) if keeps else (None, {})
    if environment is not None:
        lines += environment.lines(functools.partial(hold, names))
    if block is not None:
        memory, out = hold(names, "block", block), hold(names, "out", block)
        take, give = hold(names, "take", block.take), hold(names, "give", block.give)
        given = [
            n.name for n in graph.find_nodes(op="placeholder") if len(getattr(n.meta.get("value"), "shape", ())) > 1
        ]
        lines.append(f"    {memory} = {take}({', '.join(given)})")
    made: dict[int, Node] = {}  # the nodes that the lines compute
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "get_attr":
            names[node.name] = constants[node.target] if node.target in constants else unwrap(node.meta["constant"], [])
            continue
        if node.op == "output":
            if block is None:
                lines.append(f"    return {_show(node.args[0], names)}")
            else:
                lines += [f"    {out} = {_show(node.args[0], names)}", f"    {give}({memory})", f"    return {out}"]
            break
        lying_at = {i: f"{memory}[{at}]" for i, at in places[node].items()} if node in places else None
        if lying_at is None and keeps and (last := _overwritten(node, order, exact)) is not None:
            lying_at = {0: last.name}
        statement = _statement(node, names, exact, lying_at)
        if node in writes:
            statement = statement[:-1] + ", donate=True)"
        lines.append(f"    {statement}")
        made[len(lines)] = node
        dead = [n.name for n in last_use.get(node, ()) if n.op not in ("get_attr",)]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    # warnings and tracebacks show it: where the user's code begins
    where = next((f" of {node.meta['where']}" for node in graph.nodes if node.meta.get("where")), "")
    source, file = "\n".join(lines) + "\n", f"<minnp jit {next(_SERIAL)}{where}>"
    run = define(lines, file, names, {} if environment is None else environment.cells)
    keep_source(file, source, run)
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


def _overwritten(node: Node, order: dict[Node, int], exact: bool) -> Node | None:
    """The argument that a large elementwise result may take the place of: an array of the graph's own that nobody reads
    any more, as one of two cotangents that are added."""
    meta = node.meta.get("value")
    if type(meta) is not Meta or not isinstance(node.target, Primitive) or len(node.args) != 2:
        return None
    if meta.size * meta.dtype.itemsize < RECYCLED or node.kwargs or "handling" in node.meta:
        return None
    if not isinstance(_kernel(node, exact), onp.ufunc):
        return None
    for x in node.args:  # NumPy's own result would not lie in C order
        steps = [n for n in lying(x).strides if n] if isinstance(x, Node) else []
        if steps != sorted(map(abs, steps), reverse=True):
            return None
    for x in node.args:
        same = isinstance(x, Node) and x.meta.get("value") == meta
        if same and made_here(x) and last_read(x, order) == order[node]:
            return x
    return None


def _takes_out(node: Node, i: int, exact: bool) -> bool:
    """Whether a node's result i can be computed into a given array."""
    target = node.target
    if isinstance(target, (Large, Small, Fused)):
        return "out" not in node.kwargs and target.takes_out(i)
    kernel = _kernel(node, exact) if isinstance(target, Primitive) else None
    if getattr(kernel, "takes_out", False):
        return True
    if kernel is None or node.kwargs or "handling" in node.meta:
        return False
    if kernel is onp.matmul:
        return len(node.meta["value"].shape) > 1
    loops = isinstance(kernel, onp.ufunc) and kernel.nout == 1 and kernel.signature is None
    return loops and all(not isinstance(a, Node) or lying(a).flags.c_contiguous for a in node.args)


def _kernel(node: Node, exact: bool) -> Any:
    """What runs a row: one that a backend may be better at chooses at every call, as it does eagerly."""
    target = node.target
    if "handling" in node.meta:  # the program said which floating point errors are reported
        return Under(target, node.meta["handling"])
    if target.worth is not None or node.meta.get("dispatched", False):
        return target
    if exact:
        return target.numpy
    given = [a.meta.get("value") if isinstance(a, Node) else a for a in node.args]
    if target.fast is products.matmul and products.is_numpys(*given):
        return target.numpy
    return Beside(target.fast) if len(given) == 2 and is_beside(target.fast, *given) else target.fast


def _statement(node: Node, names: dict, exact: bool, places: dict[int, str] | None) -> str:
    """The line that computes a node; places: the arrays that take its results."""
    target = node.target
    if target is guard:
        value, kind, expected = node.args
        plain = type(expected) in (bool, int, str) or (type(expected) is float and expected)  # 0.0 is not -0.0
        if kind == "value" and isinstance(value, Node) and plain:
            return f"if {value.name} != {_show(expected, names)}: raise {hold(names, 'Diverged', Diverged)}"
        if kind == "shape" and len(getattr(value.meta.get("value"), "shape", ())):  # an array
            return f"if {value.name}.shape != {_show(expected, names)}: raise {hold(names, 'Diverged', Diverged)}"
        return f"{hold(names, 'guard', guard)}({', '.join(_show(a, names) for a in node.args)})"
    if target is pick:
        return f"{node.name} = {_show(node.args[0], names)}[{node.args[1]!r}]"
    if isinstance(target, Primitive):
        plain = not (places or node.kwargs or node.meta.keys() & {"dispatched", "handling"})
        kernel: Any = _kernel(node, exact)
        arrays = any(isinstance(a, Node) and not a.meta.get("weak") for a in node.args)  # `+` of ints would be Python's
        if target.name in INFIX and len(node.args) == 2 and arrays and plain and not isinstance(kernel, Beside):
            a, b = (_show(x, names) for x in node.args)
            return f"{node.name} = {a} {INFIX[target.name]} {b}"
        if target.name == "getitem" and len(node.args) == 1 and not isinstance(node.kwargs["index"], Node):
            return f"{node.name} = {_show(node.args[0], names)}[{_show(node.kwargs['index'], names)}]"
    elif target is inside:
        x, least, most = (_show(a, names) for a in node.args)
        return f"{node.name} = {least} <= {x} <= {most}"
    elif target in PYTHONS and node.meta.get("kind") == "object" and len(node.args) == 2:
        a, b = (_show(x, names) for x in node.args)
        return f"{node.name} = {a} {PYTHONS[target]} {b}"
    elif (place := drawn_at(node)) is not None:
        kernel = functools.partial(drawn, place, node.meta["function"], target)
    else:
        kernel = getattr(target, "__wrapped__", target)
    k = hold(names, f"k_{node.name}", kernel)
    args = [_show(a, names) for a in node.args] + [f"{key}={_show(v, names)}" for key, v in node.kwargs.items()]
    if places and isinstance(node.meta["value"], tuple):
        outs = [places.get(i, "None") for i in range(len(node.meta["value"]))]
        args.append(f"out=({', '.join(outs)},)")
    elif places:
        args.append(f"out={places[0]}")
    return f"{node.name} = {k}({', '.join(args)})"


def _show(x: Any, names: dict) -> str:
    """An argument in the generated code: nodes by name, plain literals as they are, anything else as a named object."""
    if isinstance(x, Node):
        return x.name
    if type(x) in (bool, str, type(None)) or (type(x) in (int, float) and abs(x) < LONG):
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
    return hold(names, f"c_{len(names)}", x)
