"""Elementwise rows on large parts wait, and run together, block by block, once something reads their elements.

NumPy writes a whole array for each operation of `a * b + c`; one that is larger than the cache goes to memory and back
each time. Here the operations run one after the other on a block that stays in the cache, each as NumPy's ufunc, so the
numbers are the same. What often warns (division, logarithms) does not wait: it runs at once, with what waits for it.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as onp

LEAST = 1 << 18  # bytes of a result for which it is worth while
BLOCK = 1 << 17  # bytes of a result that are computed at a time
MOST = 32  # operations that wait for one another

WAITING = (
    *("add", "subtract", "multiply", "negative", "positive", "square", "absolute", "fabs", "conjugate", "sign"),
    *("maximum", "minimum", "fmax", "fmin", "copysign", "signbit", "floor", "ceil", "trunc", "rint"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "invert"),
)

PENDING: weakref.WeakSet = weakref.WeakSet()  # the parts that wait
LENT: dict[int, weakref.ref] = {}  # memory of parts that the program may write to at any time


class Chain:
    """An operation on this rank's parts that waits.

    shape, dtype   of this rank's result
    operands       arrays, numbers, and results that wait too
    errors         NumPy's error state where the operation was written
    part           a weak reference to whose elements these are, if somebody still wants them
    value          the result, once it was computed whole
    """

    __slots__ = ("dtype", "errors", "length", "operands", "part", "shape", "ufunc", "value")

    def __init__(self, ufunc: onp.ufunc, operands: list, shape: tuple, dtype: onp.dtype, errors: dict) -> None:
        self.ufunc, self.operands, self.shape, self.dtype, self.errors = ufunc, operands, shape, dtype, errors
        self.length = 1 + sum(o.length for o in operands if type(o) is Chain)
        self.part: Any = None
        self.value: Any = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def chained(row: Any, xs: Sequence[Any]) -> Chain | None:
    """The operation of a row on parts and numbers, waiting; None where it is not worth while, or must not wait."""
    if not row.loops or row.numpy.nout != 1 or all(getattr(x, "ndim", 0) == 0 or x.held.nbytes < LEAST for x in xs):
        return None
    errors = onp.geterr()
    if not {*errors.values()} <= {"ignore", "warn"}:
        return None
    arrays = [x for x in xs if getattr(x, "ndim", 0)]
    shape = onp.broadcast_shapes(*[x.held.shape for x in arrays])
    if any(x.lent for x in arrays):
        return None
    operands: list = []
    for x in xs:
        if not getattr(x, "ndim", 0):
            operands.append(x.local[()] if hasattr(x, "local") else x)
            continue
        held = x.held
        if type(held) is Chain and (len(held.shape) < len(shape) or held.shape[0] != shape[0] or held.errors != errors):
            held = x.local
        if type(held) is not Chain and not row_by_row(held, shape):
            return None
        operands.append(held)
    if any(onp.result_type(o).kind not in "biufc" for o in operands if type(o) is not Chain):
        return None
    like = [onp.empty(0, o.dtype) if type(o) is Chain or onp.ndim(o) else o for o in operands]
    return Chain(row.numpy, operands, shape, row.numpy(*like).dtype, errors)


def row_by_row(a: onp.ndarray, shape: tuple) -> bool:
    """Whether an operand lies row by row, and in memory that the program cannot write to."""
    wide = a.shape == shape and a.ndim > 1 and shape[-1] > 1
    if wide and abs(a.strides[-1]) > min(map(abs, a.strides)):
        return False
    return not any(onp.may_share_memory(a, b) for r in [*LENT.values()] if (b := r()) is not None)


def wait(part: Any, row: Any) -> Any:
    """`part`, which holds a chain: computed at once, or once something reads it."""
    part.held.part = weakref.ref(part)
    PENDING.add(part)
    if row.name not in WAITING or part.held.length >= MOST:
        part.local  # noqa: B018  (it is computed)
    return part


def flush() -> None:
    """Compute all that waits: before memory changes that it reads."""
    for part in list(PENDING):
        part.local  # noqa: B018


def lend(a: onp.ndarray) -> None:
    """From now on the program may write to an array."""
    flush()
    key = id(a)
    LENT[key] = weakref.ref(a, lambda _: LENT.pop(key, None))


# ------------------------------------------------------------------ computing
def compute(root: Chain) -> onp.ndarray:
    """The result of an operation, and of those that it waited for as far as somebody wants them."""
    order: list[Chain] = []
    listed(root, order)
    owners = {}
    for node in order:
        part = None if node.part is None else node.part()
        if part is not None or node is root:
            owners[node] = part
            node.value = part.room(node.dtype)
    last = {o: k for k, node in enumerate(order) for o in node.operands if type(o) is Chain and o not in owners}
    shape, steps = root.shape, []
    for k, node in enumerate(order):
        read = [o for o in node.operands if type(o) is Chain and last.get(o) == k]  # nobody reads it again
        over = next((o for o in read if (o.dtype, o.shape) == (node.dtype, node.shape)), None)
        operands = [(o, kind_of(o, shape)) for o in node.operands]
        steps.append((node, node.ufunc, operands, over, kind_of(node.value, shape) if node in owners else ""))
    try:
        with onp.errstate(**root.errors):
            for index in blocks(shape, max(node.dtype.itemsize for node in order)):
                found: dict = {}
                for node, ufunc, operands, over, owned in steps:
                    inputs = [
                        found[o] if kind == "waits" else o[index] if kind == "whole" else at(o, index, shape)
                        for o, kind in operands
                    ]
                    out = None if over is None else found[over]
                    if owned:
                        out = node.value[index] if owned == "whole" else at(node.value, index, shape)
                    found[node] = ufunc(*inputs, out=out)
    except BaseException:
        for node in owners:
            node.value = None
        raise
    for node, part in owners.items():
        node.operands = []
        part.held = node.value
        PENDING.discard(part)
    return root.value


def listed(node: Chain, order: list[Chain]) -> None:
    """All that waits for a node to run, each after what it reads; what was computed meanwhile is an array."""
    node.operands = [o.value if type(o) is Chain and o.value is not None else o for o in node.operands]
    for o in node.operands:
        if type(o) is Chain and o not in order:
            listed(o, order)
    if node not in order:
        order.append(node)


def blocks(shape: Sequence[int], itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Indices of the leading axes that divide an array into blocks."""
    axis = next((k for k in range(len(shape)) if math.prod(shape[k + 1 :]) * itemsize <= BLOCK), len(shape) - 1)
    step = max(BLOCK // (math.prod(shape[axis + 1 :]) * itemsize or 1), 1)
    steps = [1] * axis + [step]
    return itertools.product(*[[slice(i, i + s) for i in range(0, n, s)] for n, s in zip(shape, steps)])


def kind_of(x: Any, shape: tuple) -> str:
    return "waits" if type(x) is Chain else "whole" if getattr(x, "shape", ()) == shape else "part"


def at(x: Any, index: tuple[slice, ...], shape: tuple) -> Any:
    """What of an operand is broadcast to a block of the whole result, which has this shape."""
    if not (ndim := getattr(x, "ndim", 0)):
        return x
    more = len(shape) - ndim
    return x[tuple(slice(None) if n == 1 else s for n, s in zip(x.shape, index[more:]))]
