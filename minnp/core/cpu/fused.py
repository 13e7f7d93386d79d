"""Chains of elementwise operations, run block by block: the fused executor of jit on the CPU.

A chain of NumPy calls on large arrays spends its time moving intermediate results to memory and back. Here all steps
run on one block of elements before the next block is begun: intermediates live in a few small buffers that stay in the
cache, planned by liveness, and blocks are shared by all cores. The kernels are NumPy's own vectorized loops, so values
are those of the chain run step by step, to the last bit: no compiler, no second set of rounding errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from minnp.core.cpu import memory, reductions, selection, threads
from minnp.core.cpu.elementwise import flat
from minnp.core.cpu.sources import keep_source

Step = tuple[Callable, Sequence[int], int]
CACHE = 1 << 21  # bytes one thread should have in use; larger blocks save calls, and the cache is shared by few
SMALLEST, LARGEST = 1 << 13, 1 << 16  # elements of a block
SERIAL = 1 << 16  # elements up to which the caller works alone
# NumPy 1.26 gives float32 * a float64 array without axes the dtype float64 if its value needs that, else float32
VALUES_DECIDE = int(onp.__version__.split(".")[0]) < 2
_SERIAL_NUMBER = itertools.count()


class Reduction:
    """What ends a chain: `ufunc` (add, maximum, minimum) over everything (axis None) or over the last axis (-1).

    mean   divide the sum by the number of its terms, as np.mean does (float and complex results only)"""

    __slots__ = ("axis", "keepdims", "mean", "ufunc")

    def __init__(self, ufunc: onp.ufunc, axis: int | None = None, keepdims: bool = False, mean: bool = False) -> None:
        if ufunc not in (onp.add, onp.maximum, onp.minimum) or axis not in (None, -1):
            raise ValueError(
                f"a chain may end in add, maximum or minimum over axis None or -1, not {ufunc} over {axis}"
            )
        self.ufunc, self.axis, self.keepdims, self.mean = ufunc, axis, keepdims, mean


def is_constant(x: Any) -> bool:
    """Whether an input of a chain is a number, part of the chain itself."""
    return isinstance(x, (int, float, complex, onp.generic))


def fuse(
    steps: Sequence[Step], inputs: Sequence[Any], outputs: Sequence[int], reduction: Reduction | None = None
) -> Callable | None:
    """A function (*arrays) -> list of arrays that runs a chain of elementwise steps, or None if it is not of this form.

    steps      (ufunc, slots read, slot written) in order. Slots are numbered: the inputs are 0, 1, ...; a step writes a
               new slot. A kernel other than a ufunc must take its arrays and `out` by position and act element by
               element (`select` and `cast` below are such kernels)
    inputs     for every input a Meta (or any array: only shape and dtype are read), or a number: a constant,
               which is not passed to the function. Shapes broadcast; at least one input has the full shape
    outputs    the slots wanted, written by steps; with a `reduction`, the one slot that is reduced
    reduction  ends the chain: then the result is a list of the one reduced array (or scalar, over everything)

    The results have the dtypes, the shapes and the bits of the steps run one by one, and are in C order. The arrays
    passed must have the shapes and dtypes of `inputs`; `out` may hold an array in C order for a result, or None
    (without a reduction). Floating point errors are reported once, for the chain.
    """
    shape = full_shape(inputs)
    if shape is None or not steps or (reduction is not None and len(outputs) != 1):
        return None
    kinds = result_types(steps, inputs)
    if kinds is None or any(slot < len(inputs) for slot in outputs) or len(set(outputs)) < len(outputs):
        return None
    if reduction is not None and len(shape) == 1:
        reduction = Reduction(reduction.ufunc, None, reduction.keepdims, reduction.mean)
    return Chain(steps, inputs, outputs, reduction, shape, kinds).run


def full_shape(inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The broadcast shape of the arrays among the inputs, if one of them has it."""
    shapes = [tuple(x.shape) for x in inputs if not is_constant(x)]
    try:
        shape = onp.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return shape if shape in shapes and shape and 0 not in shape else None


def result_types(steps: Sequence[Step], inputs: Sequence[Any]) -> dict[int, onp.dtype] | None:
    """The dtype of every slot a step writes, as NumPy finds it; None where an array without axes could change it."""
    slots: dict[int, Any] = {}
    numbers = []
    for i, x in enumerate(inputs):
        if is_constant(x):
            slots[i] = x
        else:
            slots[i] = onp.zeros((0,) if x.shape else (), x.dtype)
            if not x.shape:
                numbers.append(x.dtype)
    kinds = {}
    for kernel, read, written in steps:
        operands = [slots[i] for i in read]
        result = kernel(*operands)
        if type(result) is not onp.ndarray or not result.ndim or result.dtype.kind not in "biufc":
            return None
        if VALUES_DECIDE and numbers and not all(onp.can_cast(d, result.dtype) for d in numbers):
            return None
        slots[written], kinds[written] = result, result.dtype
    return kinds


class Chain:
    """A planned chain: its generated block function, its buffers, and where its results go."""

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Any],
        outputs: Sequence[int],
        reduction: Reduction | None,
        shape: tuple[int, ...],
        kinds: dict[int, onp.dtype],
    ) -> None:
        self.shape, self.reduction = shape, reduction
        self.size = 1
        for d in shape:
            self.size *= d
        self.passed = [i for i, x in enumerate(inputs) if not is_constant(x)]
        self.full = {i for i in self.passed if tuple(inputs[i].shape) == shape}
        self.lead = next(k for k, i in enumerate(self.passed) if i in self.full)
        self.whole = {i for i in self.passed if inputs[i].shape == ()}
        self.kinds = [kinds[slot] for slot in outputs]
        self.buffers, places = plan(steps, set(range(len(inputs))), outputs, kinds)
        widths = sum(k.itemsize for k in self.buffers) + sum(k.itemsize for k in self.kinds)
        widths += sum(inputs[i].dtype.itemsize for i in self.full)
        # whole blocks of the vector loops' size: as many as the cache holds, and two for every thread
        block = min(CACHE // max(widths, 1), -(-self.size // (2 * threads.team.size)))
        self.block_size = min(-(-block // SMALLEST) * SMALLEST, LARGEST)
        if reduction is not None and reduction.axis == -1 and shape[-1] <= 4 * LARGEST:
            self.block_size = max(self.block_size, shape[-1])  # a block holds whole rows
        constants = {i: x for i, x in enumerate(inputs) if is_constant(x)}
        self.source, self.block = block_function(steps, self.passed, constants, outputs, places)
        self.scratch: list[list[onp.ndarray]] = []  # sets of buffers that no thread is using

    # -------------------------------------------------------------- one call
    def run(self, *arrays: onp.ndarray, out: Sequence[onp.ndarray | None] = ()) -> list[Any]:
        if self.reduction is None:
            return self.elements(arrays, out)
        total = self.reduce(arrays)
        if self.reduction.mean:
            total = reductions.divide(total, onp.intp(self.size if self.reduction.axis is None else self.shape[-1]))
        return [total]

    def elements(self, arrays: Sequence[onp.ndarray], out: Sequence[onp.ndarray | None] = ()) -> list[onp.ndarray]:
        operands, order = self.lay_out(arrays)
        given = out if out and order != "F" else [None] * len(self.kinds)
        results = [memory.empty(self.shape, k, order or "C") if o is None else o for k, o in zip(self.kinds, given)]
        if order is None:
            targets = results
            cuts = self.windows(len(self.shape))
        else:
            targets = [flat(r, order) for r in results]
            cuts = self.slices(self.size)

        def work(i: int) -> None:
            self.compute(cuts[i], operands, [t[cuts[i]] for t in targets])

        self.share(work, len(cuts))
        return results

    def lay_out(self, arrays: Sequence[onp.ndarray]) -> tuple[list[onp.ndarray], str | None]:
        """The operands as they are cut: flat where all have the full shape and lie in one order ("C" or "F")."""
        full = [a for i, a in zip(self.passed, arrays) if i in self.full]
        if len(self.full) + len(self.whole) == len(arrays):
            for order in ("C", "F"):
                if all(a.flags.c_contiguous if order == "C" else a.flags.f_contiguous for a in full):
                    return [flat(a, order) if a.ndim else a for a in arrays], order
        return [a if not a.ndim else onp.broadcast_to(a, self.shape) for a in arrays], None

    def compute(self, cut: Any, operands: Sequence[onp.ndarray], targets: Sequence[onp.ndarray]) -> None:
        """Run the steps on one block, into `targets`."""
        try:
            scratch = self.scratch.pop()
        except IndexError:
            scratch = [onp.empty(self.block_size, kind) for kind in self.buffers]
        shape, size = targets[0].shape, targets[0].size
        buffers = scratch
        if size != self.block_size or len(shape) != 1:
            buffers = [b[:size].reshape(shape) for b in scratch]
        self.block(*[a[cut] if a.ndim else a for a in operands], *buffers, *targets)
        self.scratch.append(scratch)

    def slices(self, n: int, start: int = 0) -> list[slice]:
        step = self.block_size
        return [slice(i, min(i + step, start + n)) for i in range(start, start + n, step)]

    def windows(self, axes: int) -> list[tuple]:
        """Indices of blocks in the full shape: some leading axes one by one, then slices of the next of `axes` axes."""
        rest, axis = self.size, 0
        while axis < axes - 1 and rest // self.shape[axis] >= self.block_size:
            rest //= self.shape[axis]
            axis += 1
        length = self.shape[axis]
        rows = max(self.block_size * length // rest, 1)
        cuts = [slice(i, min(i + rows, length)) for i in range(0, length, rows)]
        return [(*lead, cut) for lead in itertools.product(*map(range, self.shape[:axis])) for cut in cuts]

    def share(self, work: Callable[[int], Any], n: int) -> None:
        if self.size <= SERIAL:
            for i in range(n):
                work(i)
        else:
            # several blocks at a time, but enough of them for every thread
            step = max(n // (8 * threads.team.size), 1)
            groups = [range(i, min(i + step, n)) for i in range(0, n, step)]
            threads.run(lambda g: [work(i) for i in groups[g]], len(groups), "a fused chain")

    # -------------------------------------------------------------- ending in a reduction
    def reduce(self, arrays: Sequence[onp.ndarray]) -> Any:
        reduction = self.reduction
        if reduction.axis is None:
            operands, order = self.lay_out(arrays)
            total = NotImplemented if order is None else self.reduce_all(operands)
            if total is NotImplemented:
                return reduction.ufunc.reduce(self.elements(arrays)[0], axis=None, keepdims=reduction.keepdims)
            return onp.full((1,) * len(self.shape), total) if reduction.keepdims else total
        if self.shape[-1] > self.block_size:
            return reduction.ufunc.reduce(self.elements(arrays)[0], axis=-1, keepdims=reduction.keepdims)
        return self.reduce_rows([a if not a.ndim else onp.broadcast_to(a, self.shape) for a in arrays])

    def reduce_all(self, operands: Sequence[onp.ndarray]) -> Any:
        uf, kind = self.reduction.ufunc, self.kinds[0]
        values = Values(self, operands)
        if uf is onp.add and kind.kind in "fc":
            return reductions.total_sum(values) if kind.char in "fdFD" else NotImplemented
        cuts = self.slices(self.size)
        parts: list[Any] = [None] * len(cuts)

        def work(i: int) -> None:
            parts[i] = uf.reduce(values[cuts[i]])

        self.share(work, len(cuts))
        total = uf.reduce(parts)
        # 0.0 and -0.0 compare equal: which one NumPy returns depends on where it meets them
        return NotImplemented if kind.kind in "fc" and total == 0 else total

    def reduce_rows(self, operands: Sequence[onp.ndarray]) -> onp.ndarray:
        uf, keepdims = self.reduction.ufunc, self.reduction.keepdims
        kind = uf.reduce(onp.ones(1, self.kinds[0])).dtype
        out = memory.empty((*self.shape[:-1], *((1,) if keepdims else ())), kind)
        cuts = self.windows(len(self.shape) - 1)

        def work(i: int) -> None:
            window = onp.empty(operands[self.lead][cuts[i]].shape, self.kinds[0])
            self.compute(cuts[i], operands, [window])
            uf.reduce(window, axis=-1, keepdims=keepdims, out=out[cuts[i]])

        self.share(work, len(cuts))
        return out


class Values:
    """The elements of a chain as an array without memory: a slice computes them."""

    def __init__(self, chain: Chain, operands: Sequence[onp.ndarray]) -> None:
        self.chain, self.operands = chain, operands
        self.size, self.dtype = chain.size, chain.kinds[0]

    def __getitem__(self, part: slice) -> onp.ndarray:
        out = onp.empty(min(part.stop, self.size) - part.start, self.dtype)
        for cut in self.chain.slices(out.size, part.start):
            self.chain.compute(cut, self.operands, [out[cut.start - part.start : cut.stop - part.start]])
        return out


# ------------------------------------------------------------------ planning
def plan(
    steps: Sequence[Step], inputs: set[int], outputs: Sequence[int], kinds: dict[int, onp.dtype]
) -> tuple[list[onp.dtype], dict[int, str]]:
    """The buffers of a block, and every slot's place by name: x (input), r (buffer), y (output).

    A buffer is free again after the last step that reads it, and that step may write into it."""
    last = {slot: i for i, (_, read, _) in enumerate(steps) for slot in read}
    places = {slot: f"x{slot}" for slot in inputs} | {slot: f"y{j}" for j, slot in enumerate(outputs)}
    buffers: list[onp.dtype] = []
    free: list[int] = []
    held: dict[int, int] = {}
    for i, (_, read, written) in enumerate(steps):
        free += [held.pop(slot) for slot in dict.fromkeys(read) if slot in held and last[slot] == i]
        if written in places:
            continue
        kind = kinds[written]
        found = next((b for b in reversed(free) if buffers[b] == kind), None)
        if found is None:
            found = len(buffers)
            buffers.append(kind)
        else:
            free.remove(found)
        held[written] = found
        places[written] = f"r{found}"
        if written not in last:  # computed for nothing: its place is free at once
            free.append(held.pop(written))
    return buffers, places


def block_function(
    steps: Sequence[Step],
    passed: Sequence[int],
    constants: dict[int, Any],
    outputs: Sequence[int],
    places: dict[int, str],
) -> tuple[str, Callable]:
    """Source and function of one block: (*inputs, *buffers, *outputs), one kernel call a line."""
    names: dict[str, Any] = {f"x{i}": value for i, value in constants.items()}
    buffers = sorted({p for p in places.values() if p[0] == "r"}, key=lambda p: int(p[1:]))
    parameters = [*(f"x{i}" for i in passed), *buffers, *(f"y{j}" for j in range(len(outputs)))]
    lines = [f"def block({', '.join(parameters)}):"]
    for i, (kernel, read, written) in enumerate(steps):
        names[f"k{i}"] = kernel
        # by name: NumPy 2.4 warns of a third positional argument of maximum and minimum
        lines.append(f"    k{i}({', '.join([*(places[slot] for slot in read), f'out={places[written]}'])})")
    source = "\n".join(lines) + "\n"
    filename = f"<minnp fused {next(_SERIAL_NUMBER)}>"
    exec(compile(source, filename, "exec"), names)
    keep_source(filename, source, names["block"])
    return source, names["block"]


# ------------------------------------------------------------------ kernels that are not ufuncs
def select(condition: Any, x: Any, y: Any, out: onp.ndarray | None = None) -> onp.ndarray:
    """onp.where as a kernel of a chain."""
    if out is None:
        return onp.where(condition, x, y)
    if (
        condition.ndim == 1
        and condition.size >= SMALLEST
        and condition.dtype == bool
        and selection.irregular(condition)
    ):
        x, y = (a if isinstance(a, onp.ndarray) else onp.asarray(a).astype(out.dtype) for a in (x, y))
        if out.dtype.kind in "biuf" and out.itemsize in selection.BITS:
            selection.choose(condition, x, y, out)
            return out
    out[...] = onp.where(condition, x, y)
    return out


def cast(dtype: Any) -> Callable:
    """The kernel x -> x.astype(dtype)."""
    dtype = onp.dtype(dtype)

    def kernel(x: onp.ndarray, out: onp.ndarray | None = None) -> onp.ndarray:
        if out is None:
            return onp.asarray(x).astype(dtype)
        onp.copyto(out, x, casting="unsafe")
        return out

    return kernel
