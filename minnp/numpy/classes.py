"""NumPy's classes that make arrays: r_, c_, mgrid, ndenumerate, poly1d on our functions; what goes over elements in
Python's loops, nditer, nested_iters, broadcast, vectorize and fromiter; bmat."""

from __future__ import annotations

import builtins
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp

from .. import errors
from ..core.api.namespace import wrapped
from ..core.arrays.array import (
    ARRAY_TYPES,
    OURS,
    array_of,
    concretize,
    ends_capture,
    ndarray,
    numpys_own,
    read,
    unwrap,
    wrap,
)
from ..core.arrays.writing import release
from ..core.rows.on_device import laid_out
from ..core.rows.state import capture, watched
from ..core.rows.strides import alike
from ..core.rows.value import Buffer, Host, Tracer, example
from ..core.transforms.trace import Constant
from .arguments import as_array
from .creation import made_here
from .rebound import instead, rebound, rebound_class, substitute
from .shaping import astype, broadcast_to, reshape, stack

poly1d = substitute(onp.poly1d, rebound_class(onp.poly1d))
OURS[onp.poly1d] = lambda p: poly1d(p.coeffs, variable=p.variable)
r_, c_, mgrid, ogrid = (rebound_class(type(x))() for x in (onp.r_, onp.c_, onp.mgrid, onp.ogrid))


class ndenumerate(onp.ndenumerate):
    __doc__ = onp.ndenumerate.__doc__

    def __init__(self, arr: Any) -> None:
        a = as_array(arr)
        self.iter = zip(itertools.product(*map(range, a.shape)), a.reshape(-1))

    def __next__(self) -> tuple:
        return next(self.iter)

    def __iter__(self) -> Iterator[tuple]:  # what a loop asks for, without a call of ours for each element
        return self.iter


WRITING = {"readwrite", "writeonly"}


def traced(x: Any) -> bool:
    """Whether an argument is an array that is not in NumPy's memory, or a list with one in it."""
    if type(x) in ARRAY_TYPES:
        return type(read(x)) is not Host
    return isinstance(x, (list, tuple)) and any(map(traced, x))


class _Nditer(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (onp.nditer, Elements))


class nditer(metaclass=_Nditer):
    __doc__ = onp.nditer.__doc__

    def __new__(
        cls, op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """NumPy's iterator, which reads and writes memory; where a trace looks on, one over elements, and over those on
        a device that it writes to."""
        make = lambda op, dtypes: onp.nditer(op, flags, op_flags, dtypes, *args, **kwargs)
        return _iterators(make, op, op_flags, op_dtypes)


def nested_iters(
    op: Any, axes: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, *args: Any, **kwargs: Any
) -> tuple:
    make = lambda op, dtypes: onp.nested_iters(op, axes, flags, op_flags, dtypes, *args, **kwargs)
    return _iterators(make, op, op_flags, op_dtypes)


nested_iters.__doc__ = onp.nested_iters.__doc__


def _iterators(make: Callable, op: Any, op_flags: Any, op_dtypes: Any) -> Any:
    """What make(operands, dtypes) gives of NumPy's, or the same over arrays that are not in NumPy's memory."""
    op = numpys_own(op)
    listed = op if isinstance(op, (tuple, list)) else (op,)
    written = [any(f in WRITING for f in fs) for fs in _flags_of(op_flags, len(listed))]
    values = [read(a) if type(a) in ARRAY_TYPES else None for a in listed]
    if any(type(v) is Tracer or (type(v) is Buffer and any(written)) for v in values):
        return _over_elements(make, listed, [w or a is None for a, w in zip(listed, written)], op_dtypes)
    for v in values:
        if type(v) is Host:
            release(v)
    return make(op, op_dtypes)


def _flags_of(op_flags: Any, count: int) -> list:
    several = op_flags and not isinstance(op_flags[0], str)
    return list(op_flags) if several else [op_flags or ["readonly"]] * count


def _over_elements(make: Callable, listed: Any, writes: list[bool], op_dtypes: Any) -> Any:
    given = [None if a is None else as_array(a) for a in listed]
    for a in given:
        _ = None if a is None else a.strides  # the order is that in memory: a graph holds for arrays that lie so
    seen = [None if a is None else example(read(a)) for a in given]
    seen = [laid_out(a) if type(a) is Buffer else a for a in seen]
    with onp.errstate(all="ignore"):  # numbers that mean nothing may be cast
        theirs = make([None if a is None else alike(a, onp.asarray(a).dtype) for a in seen], op_dtypes)
    one = theirs[0] if type(theirs) is tuple else theirs
    operands = []
    for a, there, dtype, writing in zip(given, one.operands, one.dtypes, writes):
        if a is None:
            order = "C" if there.flags.c_contiguous else "F"
            a = wrapped("", "zeros", onp.zeros)(there.shape, there.dtype, order=order)
        elif a.dtype != dtype:
            if writing:
                raise errors.TracedValueError(
                    f"np.nditer(..., op_dtypes=) writes to a buffer of {dtype} for a traced {a.dtype} array; write to "
                    "a copy (x.astype) and assign that"
                )
            a = astype(a, dtype=dtype)
        operands.append(a)
    places = [alike(there if a is None else a, onp.intp) for a, there in zip(seen, one.operands)]
    for place in places:
        place[...] = onp.arange(place.size).reshape(place.shape)
    found = make(places, None)
    over = lambda at: Elements(at, tuple(operands), writes)
    return tuple(map(over, found)) if type(found) is tuple else over(found)


class Elements:
    """np.nditer over arrays of which some are traced: NumPy's own goes over the places of their elements; what may be
    written is a view."""

    def __init__(self, at: onp.nditer, operands: tuple, writes: list[bool]) -> None:
        self.at, self.operands, self.writes = at, operands, writes

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple([self[k] for k in range(*i.indices(len(self.operands)))])
        a, place = self.operands[i], self.at[i]
        if place.ndim:
            return _written(a, place) if self.writes[i] else a.reshape(-1)[place.copy()]
        element = a[(*map(int, onp.unravel_index(int(place), a.shape)), ...)]  # an array without axes, no number
        return element if self.writes[i] else broadcast_to(element, shape=())  # which is read-only

    def __setitem__(self, i: Any, value: Any) -> None:
        self[i][...] = value

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        next(self.at)
        return self.value

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def value(self) -> Any:
        return self[0] if len(self.operands) == 1 else self[:]

    def copy(self) -> Elements:
        return Elements(self.at.copy(), self.operands, self.writes)

    def __getattr__(self, name: str) -> Any:
        """finished, iternext, index, multi_index, reset, close, shape, ... of NumPy's own."""
        return getattr(self.at, name)


def _written(a: ndarray, places: onp.ndarray) -> ndarray:
    """A view of the elements of an array at places (in C order) that follow each other in its memory."""
    order = "C" if a.flags.c_contiguous else "F"
    flat = (a if order == "C" else a.T).reshape(-1)
    if order == "F":
        places = onp.ravel_multi_index(onp.unravel_index(places, a.shape), a.shape, order="F")
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if not (a.flags.forc and step and (places[1:] - places[:-1] == step).all()):
        raise errors.TracedValueError(
            f"np.nditer with 'external_loop' or 'buffered' hands out elements of a traced {a.dtype}{list(a.shape)} "
            "array that do not follow each other in memory, to be written; loop over them without these flags"
        )
    stop = int(places[-1]) + (1 if step > 0 else -1)
    return flat[int(places[0]) : stop if stop >= 0 else None : step]


class _Broadcast(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (onp.broadcast, Together))


class broadcast(metaclass=_Broadcast):
    __doc__ = onp.broadcast.__doc__
    __signature__ = inspect.Signature([inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)])

    def __new__(cls, *arrays: Any, **unknown: Any) -> Any:
        """NumPy's; of traced arrays, one over their elements. Raises ValueError for keyword arguments."""
        if unknown:
            raise ValueError("keyword arguments not accepted.")
        return Together(arrays) if any(map(traced, arrays)) else onp.broadcast(*unwrap(arrays, []))


for _name, _member in vars(onp.broadcast).items():
    if not _name.startswith("__"):
        setattr(broadcast, _name, _member)


class Together:
    """np.broadcast of arrays of which some are traced."""

    def __init__(self, args: tuple) -> None:
        arrays = [as_array(a) for a in args]
        self.at = onp.broadcast(*[onp.broadcast_to(0, a.shape) for a in arrays])
        self.flat = [reshape(broadcast_to(a, shape=self.at.shape), shape=(-1,)) for a in arrays]

    @property
    def iters(self) -> tuple:
        return tuple(map(iter, self.flat))

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> tuple:
        at = self.at.index
        next(self.at)
        return tuple([a[at] for a in self.flat])

    def __getattr__(self, name: str) -> Any:
        """shape, size, nd, index, reset, ... of NumPy's own."""
        return getattr(self.at, name)


def bmat(obj: Any, ldict: dict | None = None, gdict: dict | None = None) -> onp.matrix:
    if isinstance(obj, str) and gdict is None:  # names of its caller's
        frame = sys._getframe(1)
        ldict, gdict = frame.f_locals, frame.f_globals
    return onp.bmat(_blocks(obj), ldict, gdict)


def _blocks(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_blocks(e) for e in x]
    return onp.asarray(x) if type(x) in ARRAY_TYPES else x


bmat.__doc__ = onp.bmat.__doc__


class Traced(Exception):
    """A function that NumPy calls for host values returned a traced one: it closes over an array."""


_with_signature = rebound(onp.vectorize._vectorize_call_with_signature)
_sizes = inspect.unwrap(onp.vectorize._vectorize_call_with_signature).__globals__["_parse_input_dimensions"]
instead(_sizes, lambda args, dims: _sizes([onp.broadcast_to(0, a.shape) for a in args], dims))  # it asks shapes alone


class vectorize(onp.vectorize):
    __doc__ = onp.vectorize.__doc__

    def _vectorize_call(self, func: Callable, args: Any) -> Any:
        """NumPy's loop over host values; over traced ones, or where the function returns some, NumPy's loop on our
        functions with a signature, else one that stacks what the function returns."""
        if self.signature is None:
            args = [_asked(a) if traced(a) else a for a in args]
        if not any(map(traced, args)):

            def untraced(*elements: Any) -> Any:
                result = func(*elements)
                if traced(result):
                    raise Traced
                return result

            try:
                return wrap(super()._vectorize_call(untraced, unwrap(args, [])))
            except Traced:
                pass
        if self.signature is not None:
            return _with_signature(self, func, args)
        if not args:
            return func()
        arrays = list(map(as_array, args))
        shape = onp.broadcast_shapes(*(a.shape for a in arrays))
        if 0 in shape:
            return wrap(super()._vectorize_call(func, [onp.zeros(a.shape, a.dtype) for a in arrays]))
        arrays = [reshape(broadcast_to(a, shape=shape), shape=(-1,)) for a in arrays]
        otypes = self.otypes
        if otypes is None:  # those of a first call, as NumPy has it
            first = func(*[a[0] for a in arrays])
            # texts are as long as the longest
            otypes = [as_array(o).dtype.char for o in (first if type(first) is tuple else (first,))]
            several = type(first) is tuple
        else:
            several = len(otypes) > 1
        results = [func(*elements) for elements in zip(*map(_python, arrays))]
        columns = zip(*results) if several else [results]
        out = tuple([_assembled(list(c), onp.dtype(t), shape) for c, t in zip(columns, otypes)])
        return out if several else out[0]


def _asked(x: Any) -> ndarray:
    """An argument whose elements become Python's numbers, which no tracer is: its values, read as by Python, but where
    a derivative is taken with respect to them, or a graph of floats was asked for."""
    a, watching = as_array(x), capture.get()
    at = read(a)
    while type(at) is Tracer:
        if at.trace.differentiable and not at.trace.batched:
            return a
        at = at.value
    if type(at) is Buffer:
        return a
    if watching is not None and not watching.may_leave and a.dtype.kind not in "biu":
        return a
    ends_capture("np.vectorize gives its function Python's numbers")
    return array_of(onp.asarray(concretize(read(a), Constant)))


def _python(a: ndarray) -> Any:
    """The elements of an array as Python has them, which is how NumPy hands them to a Python function: in double
    precision."""
    if not traced(a):
        return onp.asarray(a).astype(object)
    kind = onp.asarray(onp.zeros(1, a.dtype).astype(object)[0]).dtype
    return a if kind == a.dtype else astype(a, dtype=kind)


def _assembled(results: list, dtype: onp.dtype, shape: tuple[int, ...]) -> ndarray:
    """An array of what a function returned for each element."""
    if not any(map(traced, results)):
        column = onp.empty(len(results), object)
        column[:] = results
        return made_here(array_of(onp.asanyarray(column.reshape(shape), dtype=dtype)))
    parts = [as_array(r) for r in results]
    if any(p.ndim for p in parts):
        raise ValueError("setting an array element with a sequence.")
    if dtype.kind not in "biufc":
        raise errors.TracedValueError(
            f"np.vectorize would put traced numbers into an array of {dtype}, which has no gradient and no place in a "
            "graph; return numbers, or stop the gradient with np.stop_gradient"
        )
    if dtype.kind != "c" and any(p.dtype.kind == "c" for p in parts):
        onp.array([0j], object).astype(dtype)  # NumPy's exception
    return reshape(stack(*[p if p.dtype == dtype else astype(p, dtype=dtype) for p in parts]), shape=shape)


_of_host = wrapped("", "fromiter", onp.fromiter)


def fromiter(iter: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    items, dtype, rest = builtins.iter(iter), onp.dtype(dtype), []
    kept = dtype.base.kind == "O"  # the arrays themselves

    def untraced() -> Iterator:
        for item in items if count < 0 else itertools.islice(items, count):
            if traced(item):
                rest.append(item)
                return
            yield item if kept or type(item) not in ARRAY_TYPES else read(item)

    if watched() or isinstance(read(iter) if type(iter) in ARRAY_TYPES else None, (Tracer, Buffer)):
        begun: Any = list(untraced())  # an iterator could be read by the first call alone
        if not rest:
            return _of_host(begun, dtype, count, **options)
    else:
        begun = _of_host(untraced(), dtype, **options)
        if not rest and 0 <= count != len(begun):
            return onp.fromiter([], dtype, count) if not count else _short(count, len(begun))
        if not rest:
            return begun
    rest += items if count < 0 else itertools.islice(items, count - len(begun) - 1)
    if 0 <= count != len(begun) + len(rest):
        _short(count, len(begun) + len(rest))
    if dtype.names:
        return as_array([*begun, *rest], dtype)
    base, shape = dtype.base, dtype.shape
    if base.kind not in "biufc":
        raise errors.TracedValueError(
            f"np.fromiter(..., {dtype}) of traced numbers: no gradient and no graph has arrays of {dtype}; make one of "
            "numbers, or stop the gradient with np.stop_gradient"
        )
    parts = [as_array(x) for x in (*begun, *rest)]
    if any(p.shape != shape for p in parts):
        if not shape or any(p.ndim > len(shape) for p in parts):
            raise ValueError("setting an array element with a sequence.")
        parts = [broadcast_to(p, shape=shape) for p in parts]
    if base.kind != "c" and any(x.__class__ is complex for x in (*begun, *rest)):  # of NumPy's it takes the real part
        onp.array([0j], object).astype(base)  # NumPy's exception
    return stack(*[p if p.dtype == base else astype(p, dtype=base) for p in parts])


def _short(count: int, length: int) -> Any:
    raise ValueError(f"iterator too short: Expected {count} but iterator had only {length} items.")


fromiter.__doc__ = onp.fromiter.__doc__
for _x in (ndenumerate, nditer, nested_iters, broadcast, vectorize, fromiter):
    _x.__module__ = "minnp.numpy"
