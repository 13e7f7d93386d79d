"""Rows that look at an array's memory through other shapes and strides: what windows and views come to."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, ndarray, read, root_of, same_numbers, steps_of
from ..core.arrays.flags import set_writeable
from ..core.arrays.writing import shown, write
from ..core.rows.dispatch import defines, knows
from ..core.rows.on_device import laid_out
from ..core.rows.primitive import Meta, per_input, primitive
from ..core.rows.state import capture
from ..core.rows.strides import within
from ..core.rows.value import Buffer, Host, Tracer, example, owner
from ..errors import TracedValueError
from .arguments import as_array
from .facts import axes_of, sampled, spread
from .shaping import astype, broadcast_to, copy_
from .ufuncs import conjugate


def _strided(x: onp.ndarray, offset: int, shape: Sequence[int], strides: Sequence[int]) -> onp.ndarray:
    """x's elements in C order, counted in steps: a view of x where its memory allows, else of a copy."""
    steps, start = _in_memory(x, offset, shape, strides)
    owner = x if steps is None or x.flags.c_contiguous or not isinstance(x.base, onp.ndarray) else x.base
    flat = owner if owner.flags.c_contiguous else owner.T  # in C order, if it is in one piece
    if steps is None or not flat.flags.c_contiguous or flat.flags.writeable < x.flags.writeable:
        flat, start, steps = onp.ascontiguousarray(x), offset * x.itemsize, [s * x.itemsize for s in strides]
    else:
        start += _address(x) - _address(flat)
    # not as_strided: its result does not show whose memory it is
    return onp.ndarray(shape, x.dtype, flat, start, steps)


def _in_memory(
    x: onp.ndarray, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> tuple[list[int] | None, int]:
    """(the strides of a window over x in its memory, the bytes before its first element); None where it has none."""
    if x.flags.c_contiguous or not x.size or 0 in shape:
        return [s * x.itemsize for s in strides], offset * x.itemsize
    return within(x.shape, x.strides, offset, shape, strides)


def _address(x: onp.ndarray) -> int:
    return x.__array_interface__["data"][0]


def _overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two positions of a strided view may show the same element (never False when they do)."""
    reach = 0
    for step, n in sorted((abs(s), n) for s, n in zip(strides, shape) if n > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _strided_add(g: Any, size: Sequence[int], offset: int, shape: Sequence[int], strides: Sequence[int]) -> onp.ndarray:
    """Zeros of shape `size` with g added through a strided view."""
    out = onp.zeros(size, g.dtype)
    _strided_accumulate(out, g, None, offset, shape, strides)
    return out


def _strided_accumulate(
    buffer: onp.ndarray, g: Any, x: Any, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> None:
    """Add g to what a strided view shows of a buffer; an element seen twice receives both."""
    if not buffer.flags.c_contiguous:
        buffer += _strided_add(g, buffer.shape, offset, shape, strides)
        return
    if not _overlaps(shape, strides):
        _strided(buffer, offset, shape, strides)[...] += g
        return
    positions = onp.full(shape, offset)
    for d, (n, step) in enumerate(zip(shape, strides)):
        positions += (onp.arange(n) * step).reshape((-1,) + (1,) * (len(shape) - d - 1))
    onp.add.at(buffer.reshape(-1), positions, g)


strided_view = primitive(
    "strided_view",
    numpy=_strided,
    vjp=[
        lambda g, y, x, offset, shape, strides: strided_add(
            g, size=x.shape, offset=offset, shape=shape, strides=strides
        )
    ],
    jvp="linear",
    accumulate=_strided_accumulate,
    saves="",
    view=True,
    shape=lambda metas, params: Meta(params["shape"], metas[0].dtype),
    samples=sampled(
        ((spread(4, 3),), {"offset": 1, "shape": (2, 2), "strides": (6, -1)}),
        ((spread(6),), {"offset": 0, "shape": (4, 3), "strides": (1, 1)}),
    ),
)
strided_add = primitive(
    "strided_add",
    numpy=_strided_add,
    vjp=[lambda g, y, x, size, offset, shape, strides: strided_view(g, offset=offset, shape=shape, strides=strides)],
    jvp="linear",
    saves="",
    shape=lambda metas, params: Meta(params["size"], metas[0].dtype),
    flops=per_input(1),
    samples=sampled(((spread(4, 3),), {"size": (6,), "offset": 0, "shape": (4, 3), "strides": (1, 1)})),
)


def _bytes_back(g: Any, y: Any, x: Any, dtype: Any) -> Any:
    """Complex cotangents are those of the parts as a - ib (see ufuncs.py)."""
    if y.dtype.kind == "c":
        g = conjugate(g)
    g = view(copy_(g, order="C"), dtype=x.dtype)
    return conjugate(g) if x.dtype.kind == "c" else g


# The bytes of an array as those of another dtype. Only between the real and the complex numbers of one precision is
# there a derivative.
view = primitive(
    "view",
    numpy=lambda x, dtype: x.view(dtype),
    vjp=[_bytes_back],
    jvp="linear",
    saves="",
    view=True,
    samples=sampled(((spread(2, 4),), {"dtype": onp.dtype("c16")})),
)


# ------------------------------------------------------------------ definitions
def _refuse_gradients(a: ndarray, what: str) -> None:
    """Raise where the bits of floating point numbers with a gradient would be other numbers."""
    value = read(a)
    while a.dtype.kind in "fc" and type(value) is Tracer:
        if value.trace.differentiable and not value.trace.batched:
            raise TracedValueError(
                f"{what} reinterprets the bytes of a {a.dtype} array with a gradient; "
                "use x.astype, or np.stop_gradient(x)"
            )
        value = value.value


def _viewed(args: tuple, kwargs: dict) -> tuple[str, dict] | None:
    dtype, cls = [*args, None, None][:2]
    dtype = kwargs.get("dtype", dtype)
    if kwargs.get("type", cls) is not None or (dtype is not None and onp.dtype(dtype) == object):  # a class
        return None
    return ("getitem", {"index": ...}) if dtype is None else ("view", {"dtype": onp.dtype(dtype)})


@defines(onp.ndarray.view, creates="converted", view=_viewed)
def _view(a: Any, dtype: Any = None, type: Any = None) -> Any:
    if isinstance(dtype, builtins.type) and issubclass(dtype, ndarray):
        dtype, type = None, dtype
    if type not in (None, ndarray):
        if (watching := capture.get()) is not None:
            watching.ends(f"x.view({type.__name__}) makes an array whose operators are its own")
            return a.view(type=type) if dtype is None else a.view(dtype, type)
        raise TracedValueError(f"x.view({type.__name__}): a traced array has no class of another kind")
    if dtype is None or (dtype := onp.dtype(dtype)) == a.dtype:
        return a[...]
    if not same_numbers(a.dtype, dtype):
        _refuse_gradients(a, f"x.view({dtype.str!r})")
    return view(a, dtype=dtype)


_methods = ("conj", "conjugate", "newbyteorder")  # the last one NumPy 1's
knows(*(getattr(Host, name) for name in _methods if hasattr(Host, name)), view="perhaps")


@defines(onp.ndarray.getfield, view="perhaps")
def _getfield(a: Any, dtype: Any, offset: int = 0) -> Any:
    size = onp.empty((), a.dtype).getfield(dtype, offset).itemsize  # or NumPy's exception
    _refuse_gradients(a, "x.getfield()")
    return _view(_view(a[..., None], "u1")[..., offset : offset + size], dtype)[..., 0]


@defines(onp.ndarray.setfield)
def _setfield(a: Any, val: Any, dtype: Any, offset: int = 0) -> None:
    for x in (a, as_array(val)):
        _refuse_gradients(x, "x.setfield()")
    write(_getfield(a, dtype, offset), ..., val)


@defines(onp.frombuffer)
def _frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None) -> Any:
    if type(buffer) not in ARRAY_TYPES:  # bytes, say, where new arrays live on a device
        return NotImplemented
    held = example(read(buffer))
    _refuse_gradients(buffer, "np.frombuffer()")
    shown = onp.frombuffer(laid_out(held) if type(held) is Buffer else held, dtype, count, offset)  # or its exception
    return _view(_view(buffer.reshape(-1), "u1")[offset : offset + shown.nbytes], dtype)


def _c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of an array of this shape in C order."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))


@defines(onp.ndarray.byteswap)
def _byteswap(a: Any, inplace: bool = False) -> Any:
    _refuse_gradients(a, "x.byteswap()")
    if not a.ndim and not inplace:  # a number is in the machine's order
        return _byteswap(a.reshape(1))[0]
    swapped = _view(astype(a, dtype=a.dtype.newbyteorder()), a.dtype)
    if not inplace:
        return swapped
    a[...] = swapped
    return a


@defines(onp.lib.stride_tricks.as_strided, view="perhaps")
def _as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    x = as_array(x)
    shape = x.shape if shape is None else tuple(shape)
    if strides is None:
        return _window(x, shape, _c_strides(x.shape), writeable)
    whole, first = _memory_of(x)
    steps = tuple(s // x.dtype.itemsize for s in strides)
    reach = [s * (n - 1) for s, n in zip(steps, shape)]
    outside = first + sum(min(r, 0) for r in reach) < 0 or first + sum(max(r, 0) for r in reach) >= whole.size
    if any(s % x.dtype.itemsize for s in strides) or (outside and 0 not in shape):
        raise TracedValueError(
            f"as_strided(x, {shape}, {tuple(strides)}) of a traced {x.dtype}{list(x.shape)} shows what is not an "
            f"element of the {whole.dtype}{list(whole.shape)} in whose memory x lies"
        )
    return _window(whole, shape, steps, writeable, first)


def _memory_of(x: ndarray) -> tuple[ndarray, int]:
    """(an array in C order in whose memory x lies: the one it is a view of, if it can be; where there x begins)."""
    root = root_of(x)
    part, whole = example(read(x)), example(read(root))
    if type(whole) is Buffer:
        whole = laid_out(whole)
        part = shown(whole, steps_of(x))
    if type(part) is type(whole) is Host and owner(part) is owner(whole) and root.flags.c_contiguous:
        at, rest = divmod(_address(part) - _address(whole), x.dtype.itemsize)
        if x.dtype == root.dtype and type(read(x)) is type(read(root)) and not rest:
            return root, at
    if not x.flags.c_contiguous:
        raise TracedValueError(
            f"as_strided counts bytes in the memory of a traced {x.dtype}{list(x.shape)} that is not in C order; "
            "pass np.ascontiguousarray(x), or use sliding_window_view"
        )
    return x, 0


def _window(x: Any, shape: Sequence[int], steps: Sequence[int], writeable: bool, first: int = 0) -> Any:
    seen = strided_view(x, offset=first, shape=shape, strides=steps)
    if not writeable and type(read(seen)) is Buffer:
        set_writeable(seen, False)
    elif not writeable:
        return broadcast_to(seen, shape=seen.shape)  # as set_writeable does
    return seen


@defines(onp.lib.stride_tricks.sliding_window_view, view="perhaps")
def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    x = as_array(x)
    windows = tuple(window_shape) if onp.iterable(window_shape) else (window_shape,)
    axes = axes_of(axis, x.ndim) if axis is None else tuple(onp.atleast_1d(axis) % x.ndim)
    if any(w < 0 for w in windows):
        raise ValueError("`window_shape` cannot contain negative values")
    if len(windows) != len(axes):
        raise ValueError(f"Must provide matching length window_shape and axis; got {len(windows)} and {len(axes)}")
    shape, steps = list(x.shape), _c_strides(x.shape)
    for a, w in zip(axes, windows):
        if shape[a] < w:
            raise ValueError("window shape cannot be larger than input array shape")
        shape[a] -= w - 1
    return _window(x, (*shape, *windows), (*steps, *(steps[a] for a in axes)), writeable)
