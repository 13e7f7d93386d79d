"""Calls of ufuncs, expressed in rows: `dtype=`, `where=`, and the methods reduce, accumulate, reduceat, outer, at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from ..core.api.fallback import fallback
from ..core.api.functions import check_call, entry
from ..core.api.public import UFUNC_DEFINITIONS
from ..core.arrays.array import ARRAY_TYPES, ARRAYS, read, root_of, unwrap, wrap
from ..core.arrays.devices import together
from ..core.arrays.writing import indexed, write
from ..core.rows.dispatch import DEFINITIONS, defines
from ..core.rows.primitive import TABLE, Primitive, per_element, primitive
from ..core.rows.value import Buffer, Tracer, concrete, is_scalar
from . import ufuncs
from .arguments import NOT_GIVEN, as_array, number, number_of, on_host, operand, option, plain, spelled
from .facts import NUMPY_2, WEAK, axes_of, axis_of, elementwise, sampled, spread
from .scans import SCANNED, ufunc_accumulate, ufunc_reduce
from .ufuncs import absolute, conjugate, equal, real, where


# ------------------------------------------------------------------ calls
def called(row: Primitive | None, kernel: onp.ufunc, compute: Callable | None = None) -> Callable:
    """The definition of a ufunc: its row, or what computes the same of more, on the arguments as operands."""
    compute = compute or row
    assert compute is not None

    def definition(*args: Any, where: Any = True, dtype: Any = None, order: str = "K", **options: Any) -> Any:
        operands = list(map(operand, args))
        loop = options.get("signature", options.get("sig"))
        if dtype is not None or loop is not None:
            loop = loop_of(kernel, dtype if loop is None else loop)
            operands = cast(kernel, operands, loop, options.get("casting", "same_kind"))
        where = option(where, True)
        if where is not True:
            where = operand(where)
            # what is not computed must not reach the rule: 0 * inf is NaN. Put a number of the domain there
            inside = (0.5,) * kernel.nin if row is None else row.samples()[0][0]
            kinds = list(map(kind_of, operands))
            dtypes = kernel.resolve_dtypes(
                (*kinds, *(None,) * kernel.nout)
            )  # for a number, the loop's: it decides none
            operands = [
                ufuncs.where(where, as_array(a, d), onp.asarray(s).flat[0].astype(d))
                if isinstance(k, type)
                else ufuncs.where(where, a, onp.asarray(s).flat[0].astype(k))
                for a, s, k, d in zip(operands, inside, kinds, dtypes)
            ]
        return laid(compute(*operands), order, operands)

    return definition


def loop_of(kernel: onp.ufunc, types: Any) -> tuple:
    """The loop that `dtype=` or `signature=` asks for: a dtype or None for each argument and result."""
    if isinstance(types, str) and len(types) > 1 and "->" in types:
        types = tuple(types.replace("->", ""))
    elif not isinstance(types, tuple):
        types = (None,) * kernel.nin + (types,) * kernel.nout
    elif len(types) == 1:
        types = (None,) * kernel.nin + types * kernel.nout
    one = lambda t: t() if isinstance(t, type) and issubclass(t, onp.dtype) else None if t is None else onp.dtype(t)
    return tuple(map(one, types))


def laid(out: Any, order: str, operands: list) -> Any:
    """Results in the memory order that `order=` asks for."""
    if order in ("K", "k", None):
        return out
    if isinstance(out, tuple):
        return tuple([laid(o, order, operands) for o in out])
    arrays = [a for a in operands if isinstance(a, ARRAYS) and a.ndim]
    if order in ("A", "a"):
        order = "F" if arrays and all(a.flags.f_contiguous and not a.flags.c_contiguous for a in arrays) else "C"
    out = as_array(out)
    lies = out.flags.f_contiguous if order in ("F", "f") else out.flags.c_contiguous
    return out if lies else TABLE["copy"](out, order=order.upper())


def kind_of(a: Any) -> Any:
    """What of an operand decides which loop computes: its dtype, or the class of a number of Python's."""
    return a.dtype if isinstance(a, ARRAYS) else a.__class__ if a.__class__ in WEAK else onp.asarray(a).dtype


def cast(kernel: onp.ufunc, operands: list, loop: tuple, casting: str) -> list:
    """The operands in the dtypes that a ufunc's loop takes."""
    dtypes = kernel.resolve_dtypes((*map(kind_of, operands), *(None,) * kernel.nout), signature=loop, casting=casting)
    return [as_array(a, d) for a, d in zip(operands, dtypes)]


for _name, _kernel in vars(onp).items():
    if isinstance(_kernel, onp.ufunc) and _kernel.signature is None and _name == _kernel.__name__:
        defines(_kernel)(called(TABLE[_name], _kernel))


if NUMPY_2:

    def _turned(t: Any, y: Any, x: Any) -> Any:
        """What x / |x| moves by: the part of t across x, over |x|."""
        return (t - y * real(conjugate(y) * t)) / where(equal(x, 0), 1, absolute(x))

    sign_of_complex = primitive(
        "sign_of_complex",
        numpy=onp.sign,
        vjp=[lambda g, y, x: _turned(g, conjugate(y), x)],
        jvp=[_turned],
        shape=elementwise(onp.sign),
        flops=per_element(2),
        samples=sampled(((spread(2, 3, dtype=complex),), {})),
    )

    def _sign(x: Any) -> Any:
        """NumPy 2's sign of a complex number is x / |x|, which is not constant."""
        x = as_array(x)
        return sign_of_complex(x) if x.dtype.kind == "c" else ufuncs.sign(x)

    # not the row with NumPy's arguments alone: of complex numbers it would be constant
    defines(onp.sign, takes=("whole",))(called(ufuncs.sign, onp.sign, _sign))


def along(kernel: onp.ufunc, compute: Callable) -> Callable:
    """The definition of a ufunc that works along axes, the last ones unless `axes=` or `axis=` names others."""

    def definition(
        *args: Any,
        axes: Any = None,
        axis: Any = None,
        keepdims: bool = False,
        dtype: Any = None,
        order: str = "K",
        **options: Any,
    ) -> Any:
        operands = list(map(as_array, args))
        loop = options.get("signature", options.get("sig"))
        if dtype is not None or loop is not None:
            loop = loop_of(kernel, dtype if loop is None else loop)
            operands = cast(kernel, operands, loop, options.get("casting", "same_kind"))
        if axis is not None:
            axes = [axis] * len(operands)
        entries = [(e,) if isinstance(e, (int, onp.integer)) else tuple(e) for e in axes or ()]
        moved = [_moved(a, e, range(-len(e), 0)) for a, e in zip(operands, entries)] or operands
        out = compute(*moved)
        if keepdims:
            out = TABLE["expand_dims"](out, axis=-1)
            entries = [*entries[: len(operands)], *(entries[len(operands) :] or entries[:1])]
        if len(entries) > len(operands) and entries[-1]:
            out = _moved(out, range(-len(entries[-1]), 0), entries[-1])
        return laid(out, order, operands)

    return definition


def _moved(a: Any, source: Any, target: Any) -> Any:
    return DEFINITIONS[onp.moveaxis](a, tuple(source), tuple(target))


# ------------------------------------------------------------------ methods
REDUCTIONS = {"add": onp.sum, "multiply": onp.prod, "maximum": onp.max, "minimum": onp.min}
REDUCTIONS |= {"logical_and": onp.all, "logical_or": onp.any}
SCANS = {"add": onp.cumsum, "multiply": onp.cumprod}


def _reduce(call: Callable, a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """ufunc.reduce: a reduction row where there is one, else the ufunc between one slice and the next."""
    a, reduce = as_array(a), getattr(onp, call.__name__).reduce
    same = REDUCTIONS.get(call.__name__)
    if same is not None:
        if dtype is not None and same not in (onp.sum, onp.prod):
            reduce(onp.ones((1,) * a.ndim, a.dtype), None, dtype)  # or NumPy's exception
            a, dtype = TABLE["astype"](a, dtype=onp.dtype(dtype)), None
        if same in (onp.all, onp.any) and (start := option(options.pop("initial", None), None)) is not None:
            return call(DEFINITIONS[same](a, axis=axis, keepdims=keepdims, **options), bool(number(start)))
        options |= {"dtype": dtype} if dtype is not None else {}
        return DEFINITIONS[same](a, axis=axis, keepdims=keepdims, **options)
    if on_host(a):
        return wrap(reduce(read(a), axis, dtype, keepdims=keepdims, **{k: plain(v) for k, v in options.items()}))
    kind = reduce(onp.ones((1,) * a.ndim, a.dtype), axis, dtype).dtype  # or NumPy's exception
    if option(options.get("where", True), True) is not True or not a.size or not a.ndim:
        options = {k: read(v) if type(v) in ARRAY_TYPES else v for k, v in options.items()}
        call = entry(f"{call.__name__}.reduce", reduce)
        return wrap(fallback(call, [read(a), axis, dtype], {"keepdims": keepdims, **options}))
    a = a if a.dtype == kind else TABLE["astype"](a, dtype=kind)
    start = option(options.get("initial"), None)
    if start is None and call.__name__ == "hypot":
        start = 0  # its identity, which is seen where there is one element: the result is that one's size
    start = None if start is None else as_array(start, kind)
    for d in sorted(axes_of(axis, a.ndim), reverse=True):
        if start is None and _at_once(call, a, ("fmax", "fmin", "logaddexp", "logaddexp2")):
            if call.__name__ in ("fmax", "fmin"):
                total = ufunc_accumulate(a, ufunc=call.__name__, axis=d)[(slice(None),) * d + (-1,)]
            else:
                total = ufunc_reduce(a, ufunc=call.__name__, axis=d)
            a = TABLE["expand_dims"](total, axis=d) if keepdims else total
            continue
        slices = [a[(slice(None),) * d + (i,)] for i in range(a.shape[d])]
        total = slices.pop(0) if start is None else start
        for s in slices:
            total = call(total, s)
        total = total if slices or not total.ndim else TABLE["copy"](total)  # of one slice, which is a view
        a, start = (TABLE["expand_dims"](total, axis=d) if keepdims else total), None
    return a


def _at_once(call: Callable, a: Any, names: Sequence[str]) -> bool:
    """Whether a method of a ufunc of real numbers runs as one row, which devices have no kernel for."""
    return call.__name__ in names and a.dtype.kind in "fiub" and type(concrete(read(a))) is not Buffer


def _accumulate(call: Callable, a: Any, axis: int = 0, dtype: Any = None) -> Any:
    a = as_array(a)
    if not a.ndim:
        raise TypeError("cannot accumulate on a scalar")
    getattr(onp, call.__name__).accumulate(onp.ones((1,) * a.ndim, a.dtype), axis, dtype)  # or NumPy's exception
    (axis,) = axis if isinstance(axis, tuple) else (axis,)
    same = SCANS.get(call.__name__)
    if same is not None:
        return DEFINITIONS[same](a, axis=axis, dtype=dtype)
    if on_host(a) or not a.size:
        return wrap(getattr(onp, call.__name__).accumulate(plain(a), axis, dtype))
    axis = axis_of(axis, a.ndim)
    kind = getattr(onp, call.__name__).accumulate(onp.ones((1,) * a.ndim, a.dtype), axis, dtype).dtype
    a = a if a.dtype == kind else TABLE["astype"](a, dtype=kind)
    if _at_once(call, a, SCANNED):
        return ufunc_accumulate(a, ufunc=call.__name__, axis=axis)
    total, parts = None, []
    for i in range(a.shape[axis]):
        part = a[(slice(None),) * axis + (i,)]
        total = part if total is None else call(total, part)
        parts.append(total)
    return TABLE["stack"](*parts, axis=axis)


def _reduceat(call: Callable, a: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    a, indices = as_array(a), plain(indices)
    if on_host(a):
        return wrap(getattr(onp, call.__name__).reduceat(read(a), indices, axis, dtype))
    (axis,) = axis if isinstance(axis, tuple) and len(axis) == 1 else (axis,)
    axis = 0 if axis is None and a.ndim == 1 else axis
    like = [a.shape[i] if axis is None or i == axis % a.ndim else 1 for i in range(a.ndim)]
    ones = getattr(onp, call.__name__).reduceat(onp.ones(like, a.dtype), indices, axis, dtype)  # NumPy's exceptions
    axis, parts = axis % a.ndim, []
    if not len(indices):
        return TABLE["zeros_like"](a, dtype=ones.dtype, shape=(*a.shape[:axis], 0, *a.shape[axis + 1 :]))
    stops = [*indices[1:], a.shape[axis]]
    for start, stop in zip(indices, stops):
        stop = stop if stop > start else start + 1
        parts.append(_reduce(call, a[(slice(None),) * axis + (slice(start, stop),)], axis=axis, dtype=dtype))
    return TABLE["stack"](*parts, axis=axis)


def _outer(call: Callable, a: Any, b: Any, **options: Any) -> Any:
    a, b = as_array(a), as_array(b)
    return call(a.reshape(a.shape + (1,) * b.ndim), b, **options)


def _alike(index: Any) -> Any:
    """An index that picks as many elements, with zeros for the whole numbers that a capture follows; NotImplemented if
    it holds anything else that moves."""
    if type(index) is tuple:
        parts = tuple([_alike(i) for i in index])
        return NotImplemented if any(p is NotImplemented for p in parts) else parts
    if type(index) is Tracer and not (index.trace.batched or index.trace.differentiable) and index.dtype.kind in "iu":
        return onp.zeros(index.shape, index.dtype)
    known = type(index) in (int, type(None), type(...), onp.ndarray)
    return index if known or (type(index) is slice and {*map(type, index.indices(0))} == {int}) else NotImplemented


def _at(call: Callable, a: Any, indices: Any, b: Any = None) -> None:
    """ufunc.at: a[indices] = ufunc(a[indices], b), an element named several times being changed several times."""
    if type(a) in ARRAY_TYPES and type(b) in ARRAY_TYPES and root_of(b) is root_of(a):
        b = TABLE["copy"](b)  # as it was before the first change
    index = indexed(unwrap(indices, []))
    alike, adds = _alike(index), call.__name__ in ("add", "subtract") and a.dtype.kind not in "mM"
    if alike is NotImplemented or not adds:
        index = indices = alike = plain(indices)
    if adds:
        target, kernel = onp.empty(a.shape, bool)[alike].shape, getattr(onp, call.__name__)
        b = as_array(b) if isinstance(b, (list, tuple, onp.ndarray)) else b
        kernel.at(onp.zeros(1, a.dtype), [], b if not isinstance(b, ARRAYS) else onp.zeros(0, b.dtype))  # or NumPy's
        b = TABLE["broadcast_to"](as_array(b), shape=target)  # exception
        common = onp.result_type(a.dtype, b.dtype)
        if a.dtype.kind in "fc" or common.kind not in "fc":  # else each sum becomes an integer again
            b = b if b.dtype == a.dtype else TABLE["astype"](b, dtype=common)
            b, index = together(b, index)
            change = TABLE["index_add"](b if call.__name__ == "add" else -b, shape=a.shape, index=index)
            write(a, ..., a + change)
            return
    positions = onp.arange(a.size).reshape(a.shape)[indices]
    values = None if b is None else TABLE["broadcast_to"](as_array(b), shape=positions.shape).reshape(-1)
    remaining, of_value = positions.reshape(-1), onp.arange(positions.size)
    while remaining.size:  # in each round every element is changed once
        _, first = onp.unique(remaining, return_index=True)
        where_ = onp.unravel_index(remaining[first], a.shape)
        write(a, where_, call(a[where_]) if values is None else call(a[where_], values[of_value[first]]))
        keep = onp.ones(remaining.size, bool)
        keep[first] = False
        remaining, of_value = remaining[keep], of_value[keep]


for _method, _definition in {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}.items():
    UFUNC_DEFINITIONS["*", _method] = _definition


# ------------------------------------------------------------------ functions that act like ufuncs


def _part(name: str) -> Callable:
    """The definition of np.real or np.imag: the attribute, which Python's numbers have as well."""
    return lambda val: getattr(val if hasattr(type(val), name) else as_array(val), name)


defines(onp.real)(_part("real"))
defines(onp.imag)(_part("imag"))
defines(onp.sinc)(spelled(ufuncs.sinc, "x |"))
defines(onp.fix)(spelled(ufuncs.fix, "x |"))
defines(
    *(onp.round, onp.around),
    takes=("one", "round"),
    view=None if NUMPY_2 else "perhaps",  # of integers
)(spelled(ufuncs.round_, "a | decimals"))


@defines(onp.where)
def _where(condition: Any, x: Any = NOT_GIVEN, y: Any = NOT_GIVEN) -> Any:
    if x is NOT_GIVEN and y is NOT_GIVEN:
        return TABLE["nonzero"](as_array(condition))
    if x is NOT_GIVEN or y is NOT_GIVEN:
        raise ValueError("either both or neither of x and y should be given")
    return where(operand(condition), operand(x), operand(y))


@defines(onp.clip)
def _clip(
    a: Any, a_min: Any = NOT_GIVEN, a_max: Any = NOT_GIVEN, min: Any = NOT_GIVEN, max: Any = NOT_GIVEN, **options: Any
) -> Any:
    given = {"a_min": a_min, "a_max": a_max, "min": min, "max": max}
    given = {k: v for k, v in given.items() if v is not NOT_GIVEN}
    if len(given) != 2 or set(given) & {"min", "max"}:
        onp.clip(onp.zeros(0), **{k: None if v is None else 0 for k, v in given.items()})  # or NumPy's exception
    return _clipped(a, option(min, option(a_min, None)), option(max, option(a_max, None)), **options)


@defines(onp.ndarray.clip)
def _clipped(a: Any, min: Any = None, max: Any = None, **options: Any) -> Any:
    low, high, a = min, max, as_array(a)
    if options:
        which = onp.minimum if low is None else onp.maximum if high is None else CLIP
        bounds = [b for b in (low, high) if b is not None]
        check_call(which, [a, *bounds], None, options)
        if bounds:
            definition = called(ufuncs.clip, CLIP) if which is CLIP else DEFINITIONS[which]
            return definition(a, *bounds, **options)
    if low is None and high is None:
        if NUMPY_2:
            return ufuncs.positive(a)
        raise ValueError("One of max or min must be given")
    if (
        NUMPY_2 and a.dtype.kind in "iu" and {low.__class__, high.__class__} <= {int, type(None)}
    ):  # a number of Python's beyond all integers of the dtype bounds nothing
        low = None if low is not None and low < onp.iinfo(a.dtype).min else low
        high = None if high is not None and high > onp.iinfo(a.dtype).max else high
        if low is None and high is None:
            return ufuncs.positive(a)
    if a.dtype.kind != "f" and (low is None or high is None):
        return ufuncs.minimum(a, operand(high)) if low is None else ufuncs.maximum(a, operand(low))
    # an absent bound is an infinite one, in the dtype of the floats
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return ufuncs.clip(a, operand(low), operand(high))


# the ufunc of three arguments that NumPy's function calls
CLIP = (onp._core if NUMPY_2 else onp.core).umath.clip


@defines(onp.nan_to_num, view="perhaps")
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = as_array(x)
    out = ufuncs.nan_to_num(x, nan=number(nan), posinf=number(posinf), neginf=number(neginf))
    if copy:
        return out
    if is_scalar(read(x)):
        onp.nan_to_num(onp.float64(0), copy=False)  # NumPy 2 refuses that
        return out
    write(x, ..., out)
    return number_of(x)
