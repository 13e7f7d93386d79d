"""Compiled programs as callables on NumPy arrays: (*arrays) -> tuple of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from types import CodeType
from typing import Any

import numpy as onp

from ..cpu import memory, threads
from ..cpu.sources import keep_source
from ..graph.effects import Diverged
from ..graph.interpreter import located
from ..graph.node import Node
from . import engine
from .program import Writer
from .rows import start_of
from .steps import Input, Reduce, Value, View, is_weak

RANGE = 1 << 14  # elements of one range of a large kernel; what a range computes does not depend on the threads
ALONE = 1 << 17  # vector instructions up to which the caller works alone: some 50 us
LAYOUTS = 8  # memory layouts a large kernel is compiled for; arguments in others are copied
_SERIAL = itertools.count()


class Kernel:
    """A program to be compiled; `names` are the nodes it stands for."""

    makes_new = True  # its results are no memory of its arguments
    run: Callable

    def __init__(
        self, values: Sequence[Value], inputs: Sequence[Value], results: Sequence[Value], names: Sequence[str]
    ) -> None:
        self.values, self.inputs, self.results, self.names = values, inputs, results, names
        self.text: engine.Text | None = None

    def __repr__(self) -> str:
        return f"<compiled {', '.join(self.names)}>"

    def __call__(self, *arrays: Any, **out: Any) -> Sequence[Any]:
        return self.run(*arrays, **out)

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
    """One call that computes everything, on the caller's thread.

    solved   the nodes that a singular matrix ends the call in
    """

    solved: Sequence[Node] = ()

    def singular(self, i: int) -> Exception:
        """NumPy's error of the i-th of these nodes."""
        error = onp.linalg.LinAlgError("Singular matrix")
        located(error, self.solved[i])
        return error

    def takes_out(self, i: int) -> bool:
        """Whether `out` may hold an array for result i."""
        return True

    def planned(self) -> bool:
        self.text = Writer(self.values, self.results, small=True).small_text()
        return self.text is not None

    def ready(self, function: Callable) -> None:
        names: dict[str, Any] = {
            "k": function,
            "empty": onp.empty,
            "array": onp.asarray,
            "expected": expected,
            "singular": self.singular,
        }
        inputs = [f"a{i}" for i in range(len(self.inputs))]
        outputs = [f"y{i}" for i in range(len(self.results))]
        lines = [f"def run({', '.join([*inputs, 'out=()'])}):"]
        # a reduction of an array gives a NumPy scalar, which has no memory of its own
        lines += [f"    {a} = array({a}{', float' * is_weak(v)})" for a, v in zip(inputs, self.inputs) if not v.shape]
        for i, (y, v) in enumerate(zip(outputs, self.results)):
            names[f"d{i}"] = v.dtype
            lines.append(f"    {y} = out[{i}] if out and out[{i}] is not None else empty({v.shape!r}, d{i})")
        lines.append(f"    status = k({', '.join([*inputs, *outputs])})")
        for i, v in enumerate(self.inputs):
            names[f"v{i}"] = v
        ordered = [f"expected({a}, v{i})" for i, a in enumerate(inputs)]
        lines.append(f"    if status is NotImplemented:\n        status = k({', '.join([*ordered, *outputs])})")
        lines.append("    if status is not None:\n        raise singular(status)")
        lines.append(f"    return {', '.join(outputs)},")
        self.run = python("run", lines, names)


def expected(array: onp.ndarray, v: Value) -> onp.ndarray:
    """An array as machine code wants it. Raises Diverged for another shape or dtype than when it was captured."""
    if array.shape != tuple(v.shape) or array.dtype != v.dtype:
        raise Diverged
    return onp.require(array, v.dtype, ["C", "A"])


def python(name: str, lines: list[str], names: dict[str, Any]) -> Callable:
    """The function `name` that the lines of source define."""
    exec(_compiled("\n".join(lines) + "\n"), names)
    return names[name]


@lru_cache(256)
def _compiled(source: str) -> CodeType:
    """The code of a source, which the layers of a network share."""
    filename = f"<minnp compiled {next(_SERIAL)}>"
    code = compile(source, filename, "exec")
    keep_source(filename, source, code)
    return code


class Layout:
    """A large kernel for arguments in one memory layout: `run(*arrays, out=())` is its function."""

    def __init__(self, kernel: Large, strides: Sequence[tuple[int, ...]]) -> None:
        self.kernel, self.strides = kernel, tuple(strides)
        lies = dict(zip(kernel.inputs, strides))
        for i, frame in kernel.frames.items():
            lies[kernel.results[i]] = onp.empty(frame.shape, kernel.results[i].dtype).strides
        self.writer = Writer(kernel.values, kernel.results, small=False, strides=lies)
        self.text = self.writer.large_text()
        if self.text is not None:
            self.length = self.writer.first_dim
            step = max(RANGE // max(prod(kernel.space) // self.length, 1), 1)
            if step > 64:
                step = step // 64 * 64  # whole vectors
            self.step, self.count = step, -(-self.length // step)  # of the ranges; how many

    def ready(self, function: Any) -> None:
        """Write the Python that calls the machine code: memory for the results, ranges, sums of what ranges summed."""
        kernel, self.function = self.kernel, function
        names: dict[str, Any] = {"k": function.run, "empty": memory.empty, "size": threads.num_threads}
        names |= {"full": onp.full, "array": onp.asarray, "other": kernel.other}
        names["lying"] = sum([(s, tuple(v.shape), v.dtype) for s, v in zip(self.strides, kernel.inputs)], ())
        inputs = [f"a{i}" for i in range(len(kernel.inputs))]
        olds = [f"b{i}" for i, frame in kernel.frames.items() if frame.fill is None]
        lines = [f"def run({', '.join([*inputs, *olds])}, out=()):"]
        # a reduction of an array gives a NumPy scalar, which has no memory of its own
        lines += [f"    {a} = array({a}{', float' * is_weak(v)})" for a, v in zip(inputs, kernel.inputs) if not v.shape]
        lies = "".join(f"{a}.strides, {a}.shape, {a}.dtype, " for a in inputs)
        lines.append(f"    if ({lies}) != lying:")
        lines.append(f"        return other(({', '.join(inputs)},), out, {', '.join(olds)})")
        given, results, finish = list(inputs), [], []
        for i, v in enumerate(kernel.results):
            results.append(f"y{i}")
            if not isinstance(v, Reduce):
                names[f"d{i}"] = v.dtype
                frame = kernel.frames.get(i)
                if frame is None:
                    lines.append(f"    y{i} = out[{i}] if out and out[{i}] is not None else empty({v.shape!r}, d{i})")
                    given.append(f"y{i}")
                else:
                    names[f"e{i}"], names[f"o{i}"] = frame.index, frame.outside
                    lines.append(f"    y{i} = empty({frame.shape!r}, d{i})")
                    around = f"b{i}[e]" if frame.fill is None else repr(frame.fill)
                    lines.append(f"    for e in o{i}:\n        y{i}[e] = {around}")
                    given.append(f"y{i}[e{i}]")
        number = {id(v): i for i, v in enumerate(kernel.results)}
        for j, (r, kind, parts) in enumerate(self.writer.accumulators):
            shape = tuple(n for i, n in enumerate(kernel.space) if i not in r.axes)
            names[f"t{j}"], names[f"s{j}"] = kind, start_of(r.name, kind)
            lines.append(f"    r{j} = full({((self.count, *shape) if parts else shape)!r}, s{j}, t{j})")
            given.append(f"r{j}")
            names[f"f{j}"] = finishing(r, parts, kind, shape)
            finish.append(f"    y{number[id(r)]} = f{j}(r{j})")
        passed = ", ".join(given)
        if self.alone():  # one range of everything, unless each sums for itself
            step = self.step if any(parts for _, _, parts in self.writer.accumulators) else self.length
            lines.append(f"    k({step}, {self.length}, 1, {passed})")
        else:
            lines.append(f"    k({self.step}, {self.length}, size(), {passed})")
        lines += [*finish, f"    return {', '.join(results)},"]
        self.run = python("run", lines, names)

    def alone(self) -> bool:
        """Whether the work is so little that waking others takes longer."""
        return self.writer.effort * prod(self.kernel.space) <= ALONE or self.count == 1


class Frame:
    """A larger array that a result is written into, at `index` (slices); around it, it is `fill`, or, where that is
    None, as an array that the kernel takes after its inputs."""

    def __init__(self, shape: tuple[int, ...], index: tuple[slice, ...], fill: Any) -> None:
        self.shape, self.index, self.fill = shape, index, fill
        self.outside = []  # what is above and below, then left and right of that, ...
        for axis, (n, part) in enumerate(zip(shape, index)):
            for side in (slice(0, part.start), slice(part.stop, n)):
                if side.stop > side.start:
                    self.outside.append((*index[:axis], side))


class Large(Kernel):
    """One loop nest over large arrays, cut into ranges of its first axis that all cores share.

    usual    the strides in which its arguments are expected, for each of `inputs`; set before it is planned
    frames   for the number of a result, where it lies
    """

    usual: tuple[tuple[int, ...], ...]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.frames: dict[int, Frame] = {}

    def planned(self) -> bool:
        reads = [v for v in self.values if not isinstance(v, Input)]
        self.space = next(v.reads[0].shape if isinstance(v, Reduce) else v.shape for v in reads)
        self.layouts: dict[tuple, Layout] = {}
        self.first = Layout(self, self.usual)
        self.text = self.first.text
        return self.text is not None

    def ready(self, function: Callable) -> None:
        self.first.ready(function)
        self.layouts[self.usual] = self.first
        self.run = self.first.run

    def other(self, arrays: Sequence[Any], out: Sequence[Any], *olds: Any) -> Any:
        """The results for arguments in another layout than the usual one: compiled for it, or copies in the usual."""
        for a, v in zip(arrays, self.inputs):
            if a.shape != tuple(v.shape) or a.dtype != v.dtype:
                raise Diverged
        strides = tuple([a.strides for a in arrays])
        layout = self.layouts.get(strides)
        if layout is None and all(a.flags.aligned for a in arrays) and len(self.layouts) < LAYOUTS:
            layout = Layout(self, strides)
            if layout.text is not None:
                try:
                    layout.ready(engine.build([layout.text])[0])
                    self.layouts[strides] = layout
                except (engine.NoRoom, engine.Refused):
                    layout = None
        if layout is None or layout.text is None:
            return self.first.run(*[onp.require(a, requirements=["C", "A"]) for a in arrays], *olds, out=out)
        return layout.run(*arrays, *olds, out=out)

    def takes_out(self, i: int) -> bool:
        """Whether `out` may hold an array for result i."""
        return i not in self.frames and not isinstance(self.results[i], Reduce)

    def may_write(self, source: int, result: int) -> bool:
        """Whether a result may lie where an argument does: no element is read after it is written."""
        if result in self.frames:
            return False
        v, wanted = self.inputs[source], self.results[result]
        if self.usual[source] != onp.empty(v.shape, v.dtype).strides:
            return False
        if isinstance(wanted, Reduce) or v.shape != self.space or wanted.shape != self.space or v.dtype != wanted.dtype:
            return False
        return not any(isinstance(u, View) and v in u.reads for u in self.values)


def finishing(r: Reduce, parts: bool, kind: onp.dtype, shape: tuple[int, ...]) -> Callable:
    """What makes the value of a reduction from the array that its ranges accumulated in."""
    how = {"sum": onp.add, "prod": onp.multiply, "max": onp.maximum, "min": onp.minimum}.get(r.name)
    merge: Any = how.reduce if how else getattr(onp, r.name)
    count, dtype, same = r.count, r.dtype, kind == r.dtype and shape == r.shape

    def finish(kept: Any) -> Any:
        if parts:
            kept = merge(kept, axis=0)
        if count != 1:
            kept = kept / count
        kept = onp.asarray(kept)
        return kept if same and count == 1 else kept.astype(dtype, copy=False).reshape(r.shape)

    return finish
