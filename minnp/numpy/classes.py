"""NumPy's classes that make arrays: r_, c_, mgrid, ndenumerate, poly1d on our functions; nditer, vectorize; bmat."""

from __future__ import annotations

import sys
from typing import Any

import numpy as onp

from .. import errors
from ..core.array import OURS, ndarray, read, wrap
from ..core.value import Host, Tracer
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
        self.iter = zip(onp.ndindex(a.shape), a.reshape(-1))

    def __next__(self) -> tuple:
        return next(self.iter)


class _Nditer(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, onp.nditer)


class nditer(metaclass=_Nditer):
    __doc__ = onp.nditer.__doc__

    def __new__(cls, op: Any, *args: Any, **kwargs: Any) -> Any:
        """NumPy's iterator, which reads and writes memory: of that a tape knows nothing."""
        for a in op if isinstance(op, (tuple, list)) else (op,):
            value = read(a) if type(a) is ndarray else None
            if type(value) is Tracer:
                raise errors.TracedValueError(
                    "np.nditer hands out the memory of a traced array, where the gradient would be lost; loop over "
                    "x.flat or np.ndindex(x.shape), or use np.stop_gradient(x)"
                )
            if type(value) is Host:
                release(value)
        return onp.nditer(op, *args, **kwargs)


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
        if not traced or self.signature is not None or self.excluded or kwargs:
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
