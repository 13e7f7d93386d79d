"""NumPy's classes that make arrays: r_, c_, mgrid, ndenumerate, poly1d on our functions; nditer, vectorize; bmat."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as onp

from .. import errors
from ..core.array import OURS, ndarray, read, wrap
from ..core.placed import laid_out
from ..core.public import PUBLIC
from ..core.value import Buffer, Host, Tracer, example
from ..core.writing import release
from .arguments import as_array
from .rebound import rebound_class, substitute
from .shaping import broadcast_to, reshape, stack

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


class _Nditer(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, (onp.nditer, Elements))


class nditer(metaclass=_Nditer):
    __doc__ = onp.nditer.__doc__

    def __new__(cls, op: Any, flags: Any = None, op_flags: Any = None, *args: Any, **kwargs: Any) -> Any:
        """NumPy's iterator, which reads and writes memory; where a trace looks on, one over elements, and over those on
        a device that it writes to."""
        args = (flags, op_flags, *args)
        written = any(f in WRITING for fs in op_flags or () for f in (fs if isinstance(fs, (tuple, list)) else (fs,)))
        for a in op if isinstance(op, (tuple, list)) else (op,):
            value = read(a) if type(a) is ndarray else None
            if type(value) is Tracer or (type(value) is Buffer and written):
                return Elements(op, *args, **kwargs)
            if type(value) is Host:
                release(value)
        return onp.nditer(op, *args, **kwargs)


class Elements:
    """np.nditer over arrays of which some are traced: NumPy's own says where it is, and what may be written is a view.

    Raises TracedValueError for the flags `external_loop` and `buffered`, which hand out memory.
    """

    def __init__(
        self, op: Any, flags: Any = None, op_flags: Any = None, *args: Any, op_axes: Any = None, **kwargs: Any
    ) -> None:
        asked = {*(flags or ())}
        if asked & {"external_loop", "buffered"}:
            raise errors.TracedValueError(
                "np.nditer with 'external_loop' or 'buffered' hands out memory: of a traced array, where the gradient "
                "would be lost, or of a copy of a device's, where a write would be; loop over its elements without "
                "these flags, or compute with the whole array"
            )
        given = [None if a is None else as_array(a) for a in (op if isinstance(op, (tuple, list)) else (op,))]
        held = [None if a is None else example(read(a)) for a in given]
        held = [laid_out(a) if type(a) is Buffer else a for a in held]
        self.at = onp.nditer(held, [*asked | {"multi_index"}], op_flags, *args, op_axes=op_axes, **kwargs)
        self.told, several = "multi_index" in asked, op_flags and not isinstance(op_flags[0], str)
        flags = op_flags if several else [op_flags or ["readonly"]] * len(given)
        self.writes = [a is None or "readonly" not in f for a, f in zip(given, flags)]
        made = lambda a: PUBLIC[onp.zeros](a.shape, a.dtype, order="C" if a.flags.c_contiguous else "F")
        self.operands = tuple([made(there) if a is None else a for a, there in zip(given, self.at.operands)])
        n = self.at.ndim
        self.axes = op_axes or [[*[-1] * (n - a.ndim), *range(a.ndim)] for a in self.operands]

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple([self[k] for k in range(*i.indices(len(self.operands)))])
        a, where = self.operands[i], dict(zip(self.axes[i] or range(self.at.ndim), self.at.multi_index))
        index = tuple([where.get(axis, 0) if a.shape[axis] != 1 else 0 for axis in range(a.ndim)])
        return a[(*index, ...)] if self.writes[i] else a[index]

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

    @property
    def multi_index(self) -> tuple[int, ...]:
        if not self.told:
            raise ValueError("Iterator is not tracking a multi-index")
        return self.at.multi_index

    def __getattr__(self, name: str) -> Any:
        """finished, iternext, index, reset, close, shape, ... of NumPy's own."""
        return getattr(self.at, name)


def bmat(obj: Any, ldict: dict | None = None, gdict: dict | None = None) -> onp.matrix:
    if isinstance(obj, str) and gdict is None:  # names of its caller's
        frame = sys._getframe(1)
        ldict, gdict = frame.f_locals, frame.f_globals
    return onp.bmat(_blocks(obj), ldict, gdict)


def _blocks(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return [_blocks(e) for e in x]
    return onp.asarray(x) if type(x) is ndarray else x


bmat.__doc__ = onp.bmat.__doc__


class vectorize(onp.vectorize):
    __doc__ = onp.vectorize.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """NumPy's loop over host values; over traced ones a loop that stacks what the function returns."""
        traced = any(type(a) is ndarray and type(read(a)) is not Host for a in (*args, *kwargs.values()))
        if not traced or self.signature is not None or self.excluded or kwargs or not all(map(onp.size, args)):
            return wrap(super().__call__(*args, **kwargs))
        arrays = list(map(as_array, args))
        shape = onp.broadcast_shapes(*(a.shape for a in arrays))
        arrays = [reshape(broadcast_to(a, shape=shape), shape=(-1,)) for a in arrays]
        results = [self.pyfunc(*(a[i] for a in arrays)) for i in range(arrays[0].size)]
        several = isinstance(results[0], tuple)
        columns = zip(*results) if several else [results]
        out = tuple(reshape(stack(*map(as_array, c)), shape=shape) for c in columns)
        return out if several else out[0]


ndenumerate.__module__ = nditer.__module__ = vectorize.__module__ = "minnp.numpy"
