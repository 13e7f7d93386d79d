"""Which device a graph runs on: one, or several if the program moves arrays between devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.array import array_of
from ..arrays.devices import Context, cpu, drawn
from ..rows.dispatch import bind
from ..rows.on_device import move_value
from ..rows.primitive import TABLE, Meta, Primitive
from ..rows.value import Buffer, Host
from .closures import unwrapped
from .effects import Diverged, guard, pick
from .graph import Graph
from .interpreter import located
from .node import Node, map_leaves, map_nodes
from .streams import drawn_at

SEVERAL = "several"


def device_of(graph: Graph, constants: dict, device: Any) -> Any:
    """Where a captured graph runs: a device, None for NumPy's memory, or SEVERAL where its arrays are in several.

    device  where its arguments are, or the backend whose kernels are wanted
    Arrays that depend on no argument, constants and draws, have no say: they are moved.
    """
    devices = [n.meta["device"] for n in graph.nodes if "device" in n.meta]
    devices += [c.backend for c in constants.values() if type(c) is Buffer]
    if not devices and (device is None or device.shares_host):
        return device
    varies: set[Node] = set()
    where = {device} if device is not None and not device.shares_host else set()
    for node in graph.nodes:
        if node.op == "placeholder" or not varies.isdisjoint(node.all_input_nodes):
            varies.add(node)
            meta = node.meta.get("value")
            if node.op == "call_function" and type(meta) is Meta and (meta.shape or "device" in node.meta):
                where.add(node.meta.get("device"))
    return where.pop() if len(where) == 1 else SEVERAL if where else device


def stay(graph: Graph) -> Graph:
    """The graph, all of which runs on one device: what moves arrays there has nothing to do."""
    for node in graph.find_nodes(op="call_function", target=TABLE["to_device"]):
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)
    return graph


def walk(graph: Graph, data: Sequence[Any], run: Callable[[Node, Any, Any], Any]) -> tuple:
    """The outputs of a graph, its nodes computed by run(node, args, kwargs).

    data    what the placeholders stand for, then what is read by get_attr
    """
    inputs = [n for op in ("placeholder", "get_attr") for n in graph.find_nodes(op=op)]
    known = dict(zip(inputs, data, strict=True))
    for node in graph.nodes:
        if node.op == "output":
            return map_nodes(node.args[0], known.__getitem__)
        if node.op != "call_function":
            continue
        args, kwargs = map_nodes((node.args, node.kwargs), known.__getitem__)
        try:
            known[node] = run(node, args, kwargs)
        except Exception as error:
            if not isinstance(error, Diverged):
                located(error, node)
            raise
    return ()


def by_rows(graph: Graph, constants: dict[str, Any]) -> Callable:
    """The graph as a function of values, returning the tuple of its outputs: every row runs where its operands are."""

    read = graph.find_nodes(op="get_attr")

    def run(*values: Any) -> tuple:
        arrays = [unwrapped(constants.get(n.target, n.meta.get("constant"))) for n in read]
        return walk(graph, [*values, *arrays], row_of)

    run.constants, run.nodes = constants, {}
    return run


def row_of(node: Node, args: tuple, kwargs: dict) -> Any:
    """What a node gives for values, as the program itself would compute it."""
    target = node.target
    if (device := drawn_at(node)) is not None:
        return drawn(device, node.meta["function"], target, *args, **kwargs)
    if target is guard:
        return holds(*args)
    if target is pick:
        return args[0][args[1]]
    if isinstance(target, Primitive):
        return bind(target, args, kwargs)
    return made_at(node.meta.get("device"), target, args, kwargs)


def holds(value: Any, kind: str, expected: Any) -> None:
    """Check a guard; the number it needs is one the program would have waited for too."""
    guard(value.host() if kind == "value" and type(value) is Buffer else value, kind, expected)


def made_at(device: Any, function: Callable, args: tuple, kwargs: dict) -> Any:
    """The value of function(*args, **kwargs), whose new arrays live on a device (None: in NumPy's memory)."""
    with cpu() if device is None else Context.of(device):
        out = function(*map_leaves(args, _shown), **map_leaves(kwargs, _shown))
    out = map_leaves(out, unwrapped)
    return out if device is None else map_leaves(out, lambda v: move_value(v, device) if type(v) is Host else v)


def _shown(v: Any) -> Any:
    return array_of(v) if type(v) in (Host, Buffer) else v
