"""Making arrays from others: `array` of nested lists of traced numbers, `full` of a traced value, `zeros_like`, ..."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.api.methods import in_order, memory_order
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, OURS, array_of, ndarray, read, root_of, steps_of, wrap
from ..core.rows.dispatch import defines, knows
from ..core.rows.on_device import hosted, laid_out
from ..core.rows.primitive import CONSTANT, Meta, Primitive, primitive
from ..core.rows.pytree import CONTAINERS, replaced
from ..core.rows.state import capture
from ..core.rows.value import STAND_INS, Buffer, Tracer, example, is_scalar
from .arguments import as_array, holds_arrays, plain
from .facts import sampled, spread
from .shaping import astype, broadcast_to, copy_, reshape


# ------------------------------------------------------------------ constants of another array's shape
def _like(metas: Sequence[Meta], params: dict) -> Meta:
    dtype, shape = params.get("dtype"), params.get("shape")
    return Meta(metas[0].shape if shape is None else shape, metas[0].dtype if dtype is None else onp.dtype(dtype))


def _constant_like(name: str) -> Primitive:
    row = primitive(
        name,
        getattr(onp, name),
        vjp=CONSTANT,
        saves="",
        shape=_like,
        scalar=False,
        layout="like",
        batch="alike",
        takes=("arrays", 1),
        samples=sampled(((spread(2, 3),), {})),
    )

    def definition(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        a, shape = as_array(a), plain(shape)
        return in_order(row(a, dtype=dtype, shape=(shape,) if isinstance(shape, int) else shape), order, a)

    defines(getattr(onp, name), creates="new", device=True)(definition)
    return row


zeros_like, ones_like, empty_like = map(_constant_like, ("zeros_like", "ones_like", "empty_like"))


@defines(onp.full_like, creates="new", device=True)
def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    a = as_array(a)
    fill_value = _fill(fill_value, a.dtype if dtype is None else dtype)
    if a.device != "cpu":
        fill_value = fill_value.to_device(a.context)
    full = _filled(a.shape if shape is None else shape, fill_value)
    order = memory_order(a, order)
    return in_order(full, "A" if order == "K" and full.ndim == a.ndim else order, a)


@defines(onp.full, creates="dense", device=True)
def _full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    onp.full(0, 0, order=order)  # or NumPy's exception
    full = _filled(shape, _fill(fill_value, dtype))
    if dtype is not None and full.dtype != dtype:  # a number knows no order of bytes
        full = astype(full, dtype=onp.dtype(dtype))
    return in_order(full, order, full)


def _fill(x: Any, dtype: Any) -> Any:
    """What an array is filled with, in its dtype. Of numbers NumPy says itself which of them a dtype takes."""
    if isinstance(x, onp.ndarray) or type(x) in ARRAY_TYPES or (isinstance(x, (list, tuple)) and holds_arrays(x)):
        return as_array(as_array(x), dtype)
    x = plain(x)
    return array_of(onp.full(onp.shape(x), x, dtype))


def _filled(shape: Any, value: Any) -> Any:
    shape = (shape,) if onp.ndim(shape) == 0 else tuple(plain(shape))
    while value.ndim > len(shape) and value.shape[0] == 1:  # as in an assignment
        value = value[0]
    return copy_(broadcast_to(value, shape=shape), order="C")  # for the result is written to, one element at a time


@defines(onp.arange, creates="dense", device=True)
def _arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, like: Any = None
) -> Any:
    """The values move with start and step; how many there are is a constant."""
    values = onp.arange(*map(plain, (start, stop, step)), dtype)
    if not any(type(read(a)) is Tracer for a in (start, step) if type(a) in ARRAY_TYPES):
        return made_here(as_array(values))
    start, step = as_array(0 if stop is None else start), as_array(1 if step is None else step)
    # NumPy adds step once, in its own dtype, and takes the distance of the first two for all
    first, second = astype(start, dtype=values.dtype), astype(start + step, dtype=values.dtype)
    return first + (second - first) * onp.arange(values.size, dtype=values.dtype)


knows(onp.zeros, onp.ones, onp.empty, onp.eye, onp.linspace, creates="dense", device=True)
knows(onp.identity, onp.tri, creates="dense")


# ------------------------------------------------------------------ arrays from array-likes
def made_here(a: ndarray) -> ndarray:
    """a, an array that no argument shows; captured code makes one at every call, which may be written and returned."""
    return a if capture.get() is None or a._host is None else copy_(a)


def _converted(x: Any, dtype: Any, copy: bool | None, ndmin: int = 0) -> Any:
    if type(x) in ARRAY_TYPES or isinstance(x, onp.ndarray):
        a = as_array(as_array(x), dtype)
        if is_scalar(read(a)) or (copy and a.dtype == x.dtype):  # a scalar becomes a new array
            a = copy_(a)
    else:
        a = as_array(x, dtype)
        a = made_here(a) if isinstance(x, (list, tuple, int, float, complex, onp.generic)) else a
    return a if a.ndim >= ndmin else reshape(a, shape=(1,) * (ndmin - a.ndim) + a.shape)


@defines(onp.array, creates="new", view="perhaps")
def _array(
    x: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str = "K",
    ndmin: int = 0,
    *,
    subok: bool = False,
    ndmax: int = 0,
    like: Any = None,
) -> Any:
    a = _converted(x, dtype, copy, ndmin)
    return in_order(a, order, a)


def _all_of(args: tuple, kwargs: dict) -> tuple[str, dict] | None:
    return None if args or kwargs else ("getitem", {"index": ...})


@defines(onp.asarray, onp.asanyarray, creates="converted", device=True, view=_all_of)
def _asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    copy: bool | None = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    a = _converted(a, dtype, copy)
    return in_order(a, order, a)


@defines(onp.ascontiguousarray, creates="converted")
def _ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    a = _converted(a, dtype, False, ndmin=1)
    return a if a.flags.c_contiguous else copy_(a, order="C")


@defines(onp.asfortranarray, creates="converted")
def _asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    a = _converted(a, dtype, False, ndmin=1)
    return a if a.flags.f_contiguous else copy_(a, order="F")


@defines(onp.asarray_chkfinite, creates="converted")
def _asarray_chkfinite(a: Any, dtype: Any = None, order: str | None = None) -> Any:
    onp.asarray_chkfinite(plain(as_array(a)))
    a = _converted(a, dtype, False)
    return in_order(a, order, a)


# ------------------------------------------------------------------ questions about shapes, dtypes and memory
def _asked(question: Callable) -> Callable:
    """A definition that puts the question to NumPy about the arrays under the traces."""
    return lambda *args, **kwargs: question(*map(_underlying, args), **{k: _underlying(v) for k, v in kwargs.items()})


def _underlying(x: Any) -> Any:
    if type(x) in CONTAINERS:
        return replaced(x, _underlying)
    if type(x) not in ARRAY_TYPES:
        return plain(x) if type(x) in STAND_INS else x
    value = example(read(x))
    if type(value) is not onp.ndarray or value.ndim != x.ndim:  # on a device, or one example of a batch
        return onp.zeros(x.shape, x.dtype)[() if is_scalar(read(x)) else ...]
    return value


# what the answer depends on is known without looking at the numbers
for _name in (
    "result_type", "can_cast", "common_type", "iscomplexobj", "isrealobj", "isscalar", "isfortran", "broadcast_shapes",
    "mintypecode", "typename",
):  # fmt: skip
    defines(getattr(onp, _name))(_asked(getattr(onp, _name)))


def _of_memory(question: Callable) -> Callable:
    """A definition that asks NumPy of arrays that lie as those on a device do: views of one root alone share memory."""

    def ask(a: Any, b: Any, max_work: Any = None) -> Any:
        roots = [root_of(x) if type(x) in ARRAY_TYPES else None for x in (a, b)]
        if roots[0] is roots[1] and roots[0] is not None and type(base := example(read(roots[0]))) is Buffer:
            memory = laid_out(base)
            a, b = (functools.reduce(_shown, steps_of(x), memory) for x in (a, b))
        if roots[0] is not roots[1] and (trace := capture.get()) is not None and all(map(_is_argument, roots)):
            trace.ends(f"np.{question.__name__} asks whether two arguments share memory, which no guard compares")
        return question(_underlying(a), _underlying(b), max_work)

    return ask


def _is_argument(root: Any) -> bool:
    """Whether an array is an argument of the function that is captured, beneath whatever else traces it."""
    value = None if root is None else read(root)
    while type(value) is Tracer and value.trace is not capture.get():
        value = value.value
    return type(value) is Tracer and value.node.op == "placeholder"


def _shown(memory: onp.ndarray, step: tuple) -> onp.ndarray:
    row, params = step
    return row.numpy(memory, **hosted(params))


for _question in (onp.may_share_memory, onp.shares_memory):
    defines(_question)(_of_memory(_question))


def _of_elements(question: Callable) -> Callable:
    """A definition that asks NumPy about the numbers themselves."""
    return lambda *args, **kwargs: question(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})


for _name in (
    "array2string", "array_repr", "array_str", "format_float_positional", "format_float_scientific", "min_scalar_type",
):  # fmt: skip
    defines(getattr(onp, _name))(_of_elements(getattr(onp, _name)))

defines(onp.shape)(lambda a: as_array(a).shape)
defines(onp.ndim)(lambda a: as_array(a).ndim)
defines(onp.size)(lambda a, axis=None: onp.size(onp.broadcast_to(0, as_array(a).shape), axis))


# ------------------------------------------------------------------ archives
class NpzFile(onp.lib.npyio.NpzFile):
    __doc__ = onp.lib.npyio.NpzFile.__doc__

    def __getitem__(self, key: str) -> Any:
        made, device = wrap(super().__getitem__(key)), devices.default_device()
        return made if device is None else devices.move_result(made, device)


def _archive(z: onp.lib.npyio.NpzFile) -> NpzFile:
    z.__class__ = NpzFile
    return z


OURS[onp.lib.npyio.NpzFile] = _archive
