"""Random streams that compiled code draws from: set back when a guard fails after a draw, for the draw is repeated."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..api.fallback import fill
from ..arrays.devices import default_device
from ..rows.on_device import kept
from ..rows.primitive import TABLE, Primitive
from ..rows.value import Buffer
from .effects import Under, fails, guard, is_loop
from .graph import Graph, Node


class Legacy:
    """The state of a RandomState, which keeps one of two normal draws for later besides its bit generator."""

    __slots__ = ("stream",)

    def __init__(self, stream: onp.random.RandomState) -> None:
        self.stream = stream

    @property
    def state(self) -> Any:
        return self.stream.get_state(legacy=False)

    @state.setter
    def state(self, state: Any) -> None:
        self.stream.set_state(state)


class DeviceStream:
    """The state of a device's own stream (`Backend.generator`)."""

    __slots__ = ("stream",)

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    @property
    def state(self) -> Any:
        return self.stream.get_state()

    @state.setter
    def state(self, state: Any) -> None:
        self.stream.set_state(state)


def streams(graph: Graph) -> list[Any]:
    """What a graph draws from before the last node that may have the function called anew, each with its `state`;
    NumPy's own stream where none is named."""
    nodes = graph.nodes
    last = max((i for i, n in enumerate(nodes) if _begins_anew(n)), default=-1)
    found: dict[int, Any] = {}
    for node in nodes[:last]:
        if not node.meta.get("effect") or node.target in (guard, fails) or is_loop(node):
            continue
        if (device := drawn_at(node)) is not None:
            if (stream := device.generator()) is not None:
                found[id(stream)] = DeviceStream(stream)
            continue
        named = [a for a in node.args if isinstance(a, (onp.random.Generator, onp.random.RandomState))]
        for stream in named or [onp.random.mtrand._rand]:
            found[id(stream)] = Legacy(stream) if isinstance(stream, onp.random.RandomState) else stream.bit_generator
    return list(found.values())


def _begins_anew(node: Node) -> bool:
    """Whether a node may find that this is not the way, or raise what programs catch: errors of linear algebra, those
    of np.errstate, and a loop's."""
    target: Any = node.target
    named = getattr(target, "name", "").startswith("linalg.")
    return target in (guard, fails) or type(target) is Under or named or is_loop(node)


def drawn_at(node: Node) -> Any:
    """The device on which a node draws; None for NumPy's streams, and what does not draw."""
    return node.meta.get("device") if node.meta.get("effect") and "function" in node.meta else None


def drawn_at_device(row: Primitive, values: Any, params: dict) -> Buffer | None:
    """What a function of np.random draws on the device in force, as where nothing is captured; None: NumPy draws."""
    device = default_device()
    if device is None or values or TABLE.get(row.name) is row or not row.name.startswith("random.") or not kept(device):
        return None
    data = device.create(row.name, *fill(params["arguments"], ()))
    return None if data is None else Buffer(data, device)
