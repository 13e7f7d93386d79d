"""How NumPy's array would lie in memory where ours is in parts: whether x.reshape(-1) is a view or a copy says that.

`Part.steps` are its strides, counted in elements, and None for C order. Rows whose results keep the order of their
arguments are run by NumPy on small arrays that lie as those do; everything else makes arrays in C order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp
from numpy.lib.stride_tricks import as_strided

from ...core.cpu.contraction import explicit
from ...core.rows.primitive import Primitive
from ...errors import BackendUnsupportedError
from ...numpy.shaping import full_shape
from .parts import Part

# besides elementwise rows
KEEPING = {
    *(
        "copy",
        "astype",
        "zeros_like",
        "ones_like",
        "empty_like",
        "sort",
        "argsort",
        "partition",
        "argpartition",
        "roll",
    ),
    *("cumsum", "cumprod", "diff", "concatenate", "stack", "tril", "triu", "take_along_axis", "stop_gradient"),
    *("sum", "prod", "max", "min", "any", "all", "mean", "var", "std", "count_nonzero", "logsumexp"),
    *("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.fftshift", "fft.ifftshift"),
}
VIEWING = ("transpose", "swapaxes", "flip", "diagonal", "broadcast_to")  # even of an array in C order
FREELY = {"kth": 0, "ddof": 0}  # what does not matter to the order, but to arrays as small as those
BASIC = (int, onp.integer, slice, type(None), type(Ellipsis))
STRAIGHT = ("reshape", "expand_dims", "squeeze")  # of an array in C order, another


def straight(x: Any) -> bool:
    """Whether the axes of an operand lie one in another, as in C order."""
    if getattr(x, "steps", None) is None:
        return True
    steps = [abs(s) for n, s in zip(x.shape, x.steps) if n > 1]
    return steps == sorted(steps, reverse=True) and 0 not in steps


def laid(x: Part) -> onp.ndarray:
    """An array that lies as NumPy's would, of memory that is not there: only views of it may be made."""
    if x.steps is None:
        return as_strided(onp.empty(1, "?"), x.shape, dense(x.shape, range(x.ndim)))
    return as_strided(onp.empty(1, "?"), x.shape, x.steps)


def small(x: Any) -> Any:
    """Zeros that lie as an operand does, at most three along each axis."""
    if not getattr(x, "ndim", 0):
        return x.local[()] if type(x) is Part else x
    steps = getattr(x, "steps", None) or dense(x.shape, range(x.ndim))
    order = sorted(range(x.ndim), key=lambda i: -abs(steps[i]))
    ends = [min(n, 3) for n in x.shape]
    memory = onp.zeros([ends[i] if steps[i] else 1 for i in order], x.dtype)
    return onp.broadcast_to(memory.transpose(onp.argsort(order)), ends)


def dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose memory has its axes in this order, outermost first."""
    steps, reach = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis] = reach
        reach *= max(shape[axis], 1)
    return tuple(steps)


def fortran(shape: Sequence[int]) -> tuple[int, ...]:
    return dense(shape, range(len(shape))[::-1])


def of_array(a: onp.ndarray, shape: Sequence[int] | None = None) -> tuple[int, ...] | None:
    """Strides for a copy of an array in its order; shape: of what it stands for."""
    if a.ndim < 2 or a.flags.c_contiguous:
        return None
    return dense(a.shape if shape is None else shape, sorted(range(a.ndim), key=lambda i: -abs(a.strides[i])))


def reshaped_view(a: onp.ndarray, shape: Any) -> onp.ndarray | None:
    """a in another shape where that is a view; None where it would be a copy."""
    if onp.lib.NumpyVersion(onp.__version__) >= "2.1.0":
        try:
            return a.reshape(shape, copy=False)
        except ValueError:
            return None
    view = a.view()
    try:
        view.shape = shape
    except AttributeError:
        return None
    return view


def in_order(a: onp.ndarray, order: Sequence[int]) -> onp.ndarray:
    """a, in memory where these axes follow one another."""
    return onp.ascontiguousarray(a.transpose(order)).transpose(onp.argsort(order))


def counted(x: Part, order: str | None) -> str:
    """The order in which reshape counts the elements of x."""
    if order == "A":
        flags = laid(x).flags
        return "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order not in ("C", "F", None):
        raise BackendUnsupportedError(f"reshape in order {order!r} is not done in parts")
    return order or "C"


def reshaped_as(x: Part, shape: Any, order: str | None = "C") -> onp.ndarray | None:
    """How x.reshape(shape, order=order) lies, if it is a view."""
    shape = full_shape(shape, x.size)
    if counted(x, order) == "C":
        return reshaped_view(laid(x), shape)
    turned = reshaped_view(laid(x).T, shape[::-1])
    return None if turned is None else turned.T


def is_view(row: Primitive, source: Part, result: Part, params: dict) -> bool | None:
    """Whether NumPy's result of a view row would show its argument's memory; None where NumPy has to be asked."""
    if row.name == "reshape":
        return reshaped_as(source, **params) is not None
    if row.name == "getitem":
        index = params["index"]
        parts = index if type(index) is tuple else (index,)
        dots = any(p is Ellipsis for p in parts)
        basic = all(isinstance(p, BASIC) and not isinstance(p, bool) for p in parts)
        return bool(result.ndim or dots) if basic else None
    if row.name == "einsum":
        before, after = explicit(params["subscripts"], (source.ndim,))
        return len(before) == 1 and {*before[0]} == {*after}
    return True if row.name in VIEWING or row.name in ("expand_dims", "squeeze") else None


def place_in_memory(row: Primitive, elementwise: bool, data: Sequence[Any], params: dict, out: Any) -> None:
    """Say of a row's result how NumPy's would lie."""
    name, x = row.name, data[0] if data else None
    if name == "getitem" or any(out is d for d in data):
        return
    if type(out) in (tuple, list):
        for k, y in enumerate(out):
            if type(y) is Part and y.ndim > 1 and elementwise:
                y.steps = like(row, data, params, y.shape, k)
    elif type(out) is not Part or out.ndim < 2:
        return
    elif name == "write_view":
        out.steps = x.steps
    elif name == "argwhere":  # columns of one array
        out.steps = fortran(out.shape)
    elif name in ("real", "imag") and x.dtype.kind == "c":
        out.steps = tuple([2 * s for s in x.steps or dense(x.shape, range(x.ndim))])
    elif name == "copy" and params.get("order", "K") in ("F", "A"):
        out.steps = fortran(out.shape) if "F" in (params["order"], counted(x, "A")) else None
    elif name == "einsum" and is_view(row, x, out, params):
        out.steps = row.numpy(laid(x), **params).strides
    elif name in VIEWING or (name in STRAIGHT and (x.steps is not None or params.get("order", "C") != "C")):
        if name == "reshape":
            y = reshaped_as(x, **params)
            if y is None and counted(x, params.get("order")) == "F":
                y = as_strided(onp.empty(1, "?"), out.shape, fortran(out.shape))
        else:
            y = row.numpy(laid(x), **params)
        out.steps = None if y is None or y.flags.c_contiguous else y.strides
    else:
        out.steps = like(row, data, params, out.shape) if elementwise or name in KEEPING else None


def like(row: Primitive, data: Sequence[Any], params: dict, shape: Sequence[int], k: int | None = None) -> Any:
    """The strides of a result whose order follows that of the arguments."""
    if all(straight(x) for x in data):
        return None
    said = {key: FREELY.get(key, v) for key, v in params.items()} | ({"n": 1} if row.name == "diff" else {})
    with onp.errstate(all="ignore"):
        y = row.numpy(*map(small, data), **said)
    return of_array(y if k is None else y[k], shape) if math.prod(shape) else None


def of_view(x: Part, taken: Sequence[Any]) -> tuple[int, ...]:
    """The strides of a view by numbers, new axes (None), and for a slice the elements it takes (`step`)."""
    steps = iter(x.steps or dense(x.shape, range(x.ndim)))
    out = [(0, None) if p is None else (next(steps), p) for p in taken]
    return tuple([s if p is None else s * p.step for s, p in out if type(p) is not int])


def of_choice(x: Part, index: Any, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of the copy (of this shape) that is x at an index with masks or arrays of integers."""
    parts = index if type(index) is tuple else (index,)
    if len(parts) == 1 and straight(x) and straight(parts[0]):
        return None
    given: list = []
    for p in parts:
        if getattr(p, "ndim", 0) and p.dtype == bool:
            given += [onp.zeros(2, int)] * p.ndim
        elif getattr(p, "ndim", 0):
            given.append(small(p))
        else:
            given.append(slice(None) if isinstance(p, slice) else p if p is None or p is Ellipsis else 0)
    y = small(x)[tuple(given)]
    return of_array(y, shape) if math.prod(shape) else None
