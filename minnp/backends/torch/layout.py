"""The memory order of results: NumPy's own, which keeps that of operands that are not in C order.

torch keeps some orders and not others; a program that looks at strides, or writes through x.reshape(-1), sees which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp
import torch
from numpy.lib.stride_tricks import as_strided

from .dtypes import words

Tensor = torch.Tensor

# besides the ufuncs themselves
LIKE_UFUNCS = words("where clip round nan_to_num isclose fix sinc cumsum cumprod diff")
REDUCTIONS = words("sum prod max min any all mean var std count_nonzero logsumexp linalg.norm")
COPIES = words("roll sort astype zeros_like ones_like empty_like")
FREE = words(
    "nonzero argwhere einsum"
)  # columns of one array, as NumPy's are; as its many ways of multiplying leave it


def order_of(strides: Sequence[Sequence[int | None]]) -> list[int]:
    """The axes, outermost first, as NumPy sorts them: by steps. What has none says nothing, and stays where it is."""
    order: list[int] = []
    for axis in range(len(strides[0])):
        place = len(order)
        for i in range(len(order) - 1, -1, -1):
            other = order[i]
            said = [abs(s[axis]) <= abs(s[other]) for s in strides if s[axis] is not None and s[other] is not None]
            if said and any(said):
                break
            place = i if said else place
        order.insert(place, axis)
    return order


def steps(a: onp.ndarray) -> list[int | None]:
    """The strides, None along axes on which no step is ever taken."""
    return [s if n != 1 else None for s, n in zip(a.strides, a.shape)]


def in_order(y: onp.ndarray, order: Sequence[int]) -> onp.ndarray:
    """y, in memory where these axes follow one another."""
    back = onp.argsort(order)
    return onp.ascontiguousarray(y.transpose(order)).transpose(back)


def elementwise(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    """In the order NumPy's own iterator chooses."""
    flags = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    if y.shape != onp.broadcast_shapes(*[a.shape for a in arrays]):  # along an axis: of another length, or flat
        whole = [[s or None for s in steps(a)] for a in arrays if a.ndim == y.ndim]
        return in_order(y, order_of(whole)) if whole else y
    like = onp.nditer([*arrays, None], ["zerosize_ok"], flags, op_dtypes=[None] * len(arrays) + [y.dtype]).operands[-1]
    if like.strides == y.strides:
        return y
    like[...] = y
    return like


def reduced(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    x, axis = arrays[0], params.get("axis")
    if axis is None or y.ndim < 2:
        return y
    gone = {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    kept = [None if i in gone else s or None for i, s in enumerate(steps(x))]
    return in_order(y, order_of([kept if y.ndim == x.ndim else [s for i, s in enumerate(kept) if i not in gone]]))


def copied(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    """In the order of x.copy(order="K")."""
    x = arrays[0]
    if y.ndim != x.ndim or ("shift" in params and params.get("axis") is None):
        return onp.ascontiguousarray(y)
    return in_order(y, sorted(range(x.ndim), key=lambda i: -abs(x.strides[i])))


def indexed(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    """In the order of the index."""
    return copied(y, arrays[1:], {})


def joined(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    if y.ndim == arrays[0].ndim:
        return in_order(y, order_of(list(map(steps, arrays))))
    axis = params.get("axis", 0) % y.ndim  # stack
    return in_order(y, order_of([[*s[:axis], None, *s[axis:]] for s in map(steps, arrays)]))


def triangle(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    """NumPy selects by a mask in C order."""
    return elementwise(y, [onp.empty(y.shape[-2:], bool), *arrays], params)


def in_c(y: onp.ndarray, arrays: Sequence[onp.ndarray], params: dict) -> onp.ndarray:
    return onp.ascontiguousarray(y)


def layout(name: str) -> Callable | None:
    """f(a result, the arrays it was made of, params) -> the result in NumPy's order; None where torch's is NumPy's."""
    if name in FREE:
        return None
    ufunc = getattr(onp, name, None)
    if name in LIKE_UFUNCS or (isinstance(ufunc, onp.ufunc) and ufunc.signature is None):
        return elementwise
    if name in COPIES or name.startswith("fft."):
        return copied
    if name in REDUCTIONS:
        return reduced
    if name == "take_along_axis":
        return indexed
    return {"concatenate": joined, "stack": joined, "tril": triangle, "triu": triangle}.get(name, in_c)


# ------------------------------------------------------------------ on a device
# the rows whose results torch orders otherwise; of elementwise ones it keeps the order of operands that lie alike
OTHERWISE = {*REDUCTIONS, *words("roll sort argsort cumsum cumprod diff take concatenate stack tril triu empty_like")}
SEVERAL = {"concatenate", "stack", "take"}  # of which other values than tensors are arrays, too


def ordered(name: str, kernel: Callable) -> Callable:
    """A kernel of tensors whose results lie in NumPy's order."""
    rule: Any = layout(name)

    def call(*values: Any, **params: Any) -> Any:
        y = kernel(*values, **params)
        if type(y) is not Tensor or y.ndim < 2:
            return y
        tensors = [x for x in values if type(x) is Tensor]
        if all(x.is_contiguous() for x in tensors):
            return y
        if len(values) > len(tensors) and name not in SEVERAL:  # its first parameter, by place
            params = {"shift" if name == "roll" else "axis": values[len(tensors)], **params}
        return _turned(y, tensors, params, rule)

    call.__dict__.update(kernel.__dict__, ordered=True)
    return call


def _turned(y: Tensor, tensors: Sequence[Tensor], params: dict, rule: Callable) -> Tensor:
    """y in the order that the rule finds for small arrays which lie as the tensors do."""
    small = [as_strided(onp.empty(1), [min(n, 2) for n in x.shape], [8 * s for s in x.stride()]) for x in tensors]
    want = rule(onp.empty([min(n, 2) for n in y.shape]), small, params).strides
    axes = sorted([d for d in range(y.ndim) if y.shape[d] > 1], key=lambda d: -want[d])
    steps = [y.stride(d) for d in axes]
    if steps == sorted(steps, reverse=True):
        return y
    order = axes + [d for d in range(y.ndim) if y.shape[d] <= 1]
    return y.permute(order).contiguous().permute(onp.argsort(order).tolist())
