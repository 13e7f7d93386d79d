"""What the layers of a model give and cost: a line for each, from one run on an example."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import minnp
import minnp.numpy as np

from . import checks
from .model import WATCHERS, Layer

__all__ = ["Line", "Summary"]


class Line(NamedTuple):
    """One layer. parameters and flops are those of the layers inside it too.

    name, kind   its dotted name, and its class
    output       the shape of what it gave; a tuple of them for several results; None if it was not called
    parameters   how many numbers are trained
    flops        floating point operations of its calls; None where they cannot be counted

    >>> nn.Sequential(nn.Linear(4, 3)).summary(np.ones((2, 4)))[0]
    Line(name='', kind='Sequential', output=(2, 3), parameters=15, flops=54)
    """

    name: str
    kind: str
    output: Any
    parameters: int
    flops: int | None


class Summary(list):
    """A Line for the model and each layer in it; prints as a table.

    iterable   the lines; `summary` of a layer makes them

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    >>> [line.parameters for line in net.summary(np.ones((2, 4)))]
    [15, 15, 0]
    """

    @property
    def parameters(self) -> int:
        """How many numbers the model trains."""
        return self[0].parameters

    @property
    def flops(self) -> int | None:
        """Floating point operations of one run, of all examples together."""
        return self[0].flops

    def __repr__(self) -> str:
        head = ("layer", "output shape", "parameters", "flops")
        rows = [head]
        for line in self:
            name = f"{'  ' * (line.name.count('.') + 1)}{line.name}: {line.kind}" if line.name else line.kind
            output = "not called" if line.output is None else str(line.output)
            rows.append((name, output, f"{line.parameters:,}", "?" if line.flops is None else f"{line.flops:,}"))
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        shown = [
            "  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in rows
        ]
        return "\n".join([shown[0], "-" * len(shown[0]), *shown[1:]])

    __str__ = __repr__


def summarised(model: Layer, inputs: tuple, mode: str) -> Summary:
    """The Summary of a model on these arrays, or zeros of these shapes; the model stays as it is."""
    if not model.initialised:
        model = copy.deepcopy(model).init()
    arrays = [np.zeros(x, np.float32) if is_shape(x) else x for x in inputs]
    calls: dict[int, list] = {}
    with model.holding(model.tree(), model.aux_tree()):
        with watched(calls):
            model(*arrays, **({"mode": mode} if "mode" in checks.takes(model.forward) else {}))
        lines = [line(prefix[:-1], layer, calls.get(id(layer), [])) for prefix, layer in model.walk()]
    return Summary(lines)


def is_shape(x: Any) -> bool:
    return isinstance(x, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in x)


@contextmanager
def watched(calls: dict[int, list]) -> Iterator[None]:
    """Inside the with block, calls[id(layer)] has (inputs, options, output) of each call of a layer in this thread."""
    own = threading.get_ident()

    def watch(layer: Layer, forward: Callable) -> Callable:
        if threading.get_ident() != own:
            return forward

        def run(*inputs: Any, **options: Any) -> Any:
            output = forward(*inputs, **options)
            calls.setdefault(id(layer), []).append((inputs, options, output))
            return output

        return run

    WATCHERS.append(watch)
    try:
        yield
    finally:
        WATCHERS.remove(watch)


def line(name: str, layer: Layer, calls: list) -> Line:
    parameters = sum(int(value.size) for value in layer.tree().values())
    flops = [flops_of(layer, *call[:2]) for call in calls]
    total = None if None in flops else sum(flops)
    return Line(name, type(layer).__name__, shapes(calls[-1][2]) if calls else None, parameters, total)


def flops_of(layer: Layer, inputs: tuple, options: dict) -> int | None:
    """Of one call, by the counts of the rows that it runs; None for what no graph of rows can hold."""
    try:
        graph = minnp.fx.capture(lambda *x: layer.forward(*x, **options), *inputs)
    except minnp.errors.CaptureError:
        return None
    return minnp.fx.flops(graph)


def shapes(output: Any) -> Any:
    if isinstance(output, list | tuple):
        return tuple(shapes(x) for x in output)
    return tuple(output.shape) if hasattr(output, "shape") else type(output).__name__
