"""Compiled programs as callables on NumPy arrays: (*arrays) -> tuple of arrays."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as onp

from ..host import memory, threads
from . import engine
from .program import Input, Reduce, Value, Writer
from .rows import start_of

RANGE = 1 << 14  # elements of one range of a large kernel; what a range computes does not depend on the threads
ALONE = 1 << 15  # elements up to which the caller works alone
LAYOUTS = 8  # memory layouts a large kernel is compiled for; arguments in others are copied
_SERIAL = itertools.count()


class Kernel:
    """A program to be compiled; `names` are the nodes it stands for."""

    run: Callable

    def __init__(
        self, values: Sequence[Value], inputs: Sequence[Value], results: Sequence[Value], names: Sequence[str]
    ) -> None:
        self.values, self.inputs, self.results, self.names = values, inputs, results, names
        self.text: engine.Text | None = None

    def __repr__(self) -> str:
        return f"<compiled {', '.join(self.names)}>"

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        return self.run(*arrays)

    def planned(self) -> bool:
        """Whether its code could be written."""
        raise NotImplementedError

    def ready(self, function: Callable) -> None:
        """Take the machine code of `text`."""
        raise NotImplementedError


def assemble(kernels: Sequence[Kernel]) -> None:
    """Compile several kernels at once."""
    texts = [k.text for k in kernels if k.text is not None]
    for kernel, function in zip(kernels, engine.build(texts), strict=True):
        kernel.ready(function)


class Small(Kernel):
    """One call that computes everything, on the caller's thread."""

    def planned(self) -> bool:
        self.text = Writer(self.values, self.results, small=True).small_text()
        return self.text is not None

    def ready(self, function: Callable) -> None:
        names: dict[str, Any] = {
            "k": function,
            "empty": onp.empty,
            "array": onp.asarray,
            "order": onp.ascontiguousarray,
        }
        inputs = [f"a{i}" for i in range(len(self.inputs))]
        outputs = [f"y{i}" for i in range(len(self.results))]
        lines = [f"def run({', '.join(inputs)}):"]
        # a reduction of an array gives a NumPy scalar, which has no memory of its own
        lines += [f"    {a} = array({a})" for a, v in zip(inputs, self.inputs) if not v.shape]
        for i, (y, v) in enumerate(zip(outputs, self.results)):
            names[f"d{i}"] = v.dtype
            lines.append(f"    {y} = empty({v.shape!r}, d{i})")
        lines.append(f"    if k({', '.join([*inputs, *outputs])}) is not None:")
        ordered = [f"order({a})" if v.shape else a for a, v in zip(inputs, self.inputs)]
        lines.append(f"        k({', '.join([*ordered, *outputs])})")
        lines.append(f"    return {', '.join(outputs)},")
        source = "\n".join(lines) + "\n"
        filename = f"<minnp compiled {next(_SERIAL)}>"
        exec(compile(source, filename, "exec"), names)
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        self.run = names["run"]


class Layout:
    """A large kernel for arguments in one memory layout."""

    def __init__(self, kernel: Large, strides: Sequence[tuple[int, ...]]) -> None:
        self.writer = Writer(kernel.values, kernel.results, small=False, strides=dict(zip(kernel.inputs, strides)))
        self.text = self.writer.large_text()
        self.function: Callable | None = None
        if self.text is not None:
            length = self.writer.first_dim
            step = max(RANGE // max(prod(kernel.space) // length, 1), 1)
            if step > 64:
                step = step // 64 * 64  # whole vectors
            self.cuts = [(i, min(i + step, length)) for i in range(0, length, step)]
            self.accumulators = self.writer.accumulators


class Large(Kernel):
    """One loop nest over large arrays, cut into ranges of its first axis that all cores share."""

    def planned(self) -> bool:
        reads = [v for v in self.values if not isinstance(v, Input)]
        self.space = next(v.reads[0].shape if isinstance(v, Reduce) else v.shape for v in reads)
        self.layouts: dict[tuple, Layout] = {}
        self.usual = tuple(onp.empty(v.shape, v.dtype).strides for v in self.inputs)
        self.first = Layout(self, self.usual)
        self.text = self.first.text
        return self.text is not None

    def ready(self, function: Callable) -> None:
        self.first.function = function
        self.layouts[self.usual] = self.first
        self.zero = [i for i, v in enumerate(self.inputs) if not v.shape]

    def run(self, *arrays: Any) -> list:
        if self.zero:
            arrays = tuple(onp.asarray(a) for a in arrays)
        layout = self.layouts.get(tuple([a.strides for a in arrays]))
        if layout is None:
            arrays, layout = self.another(arrays)
        kept = []
        for r, kind, parts in layout.accumulators:
            shape = tuple(n for i, n in enumerate(self.space) if i not in r.axes)
            kept.append(onp.full((len(layout.cuts), *shape) if parts else shape, start_of(r.name, kind), kind))
        stored = [None if isinstance(v, Reduce) else memory.empty(v.shape, v.dtype) for v in self.results]
        given = [*arrays, *(a for a in stored if a is not None), *kept]
        function, cuts = layout.function, layout.cuts
        assert function is not None
        if prod(self.space) <= ALONE or len(cuts) == 1:
            for i, (begin, end) in enumerate(cuts):
                function(*given, begin, end, i)
        else:
            threads.collect(lambda i: function(*given, *cuts[i], i), len(cuts))
        done = iter(zip(layout.accumulators, kept))
        finished = {id(r): finish(r, parts, k) for (r, _, parts), k in done}
        return [finished[id(v)] if isinstance(v, Reduce) else a for v, a in zip(self.results, stored)]

    def another(self, arrays: Sequence[Any]) -> tuple[Sequence[Any], Layout]:
        """Arguments in a layout met for the first time: the kernel compiled for it, or copies in the usual one."""
        strides = tuple(a.strides for a in arrays)
        aligned = all(a.flags.aligned for a in arrays)
        if aligned and len(self.layouts) < LAYOUTS:
            layout = Layout(self, strides)
            if layout.text is not None:
                (layout.function,) = engine.build([layout.text])
                self.layouts[strides] = layout
                return arrays, layout
        return [onp.require(a, requirements=["C", "A"]) for a in arrays], self.first


def finish(r: Reduce, parts: bool, kept: onp.ndarray) -> Any:
    """The value of a reduction from what its ranges accumulated."""
    if parts:
        how = {"sum": onp.add, "prod": onp.multiply, "max": onp.maximum, "min": onp.minimum}.get(r.name)
        kept = how.reduce(kept, axis=0) if how else getattr(onp, r.name)(kept, axis=0)
    if r.count != 1:
        kept = kept / r.count
    return onp.asarray(kept).astype(r.dtype, copy=False).reshape(r.shape)
