"""Functions of scipy.special that SciPy writes in Python, expressed in rows."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as onp
from scipy import special

from ..core.arrays.array import array_of
from ..core.rows.dispatch import defines
from ..core.transforms.grad import stop_gradient
from ..npx import activations
from ..numpy import reductions, ufuncs
from ..numpy.arguments import as_array, number, plain, spelled
from ..numpy.facts import reduced_shape
from ..numpy.shaping import expand_dims, reshape
from .rows import binom, gamma, gammaln, poch

if hasattr(special, "softplus"):  # SciPy 1.17
    defines(special.softplus)(spelled(activations.softplus, "x |"))


@defines(special.softmax)
def _softmax(x: Any, axis: Any = None) -> Any:
    return activations.softmax(as_array(x), axis=axis)


@defines(special.log_softmax)
def _log_softmax(x: Any, axis: Any = None) -> Any:
    return activations.log_softmax(as_array(x), axis=axis)


@defines(special.logsumexp)
def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    a = as_array(a)
    if b is None and not return_sign and a.dtype.kind != "c":
        return reductions.logsumexp(a, axis=axis, keepdims=keepdims)
    a = a if a.dtype.kind in "fc" else a.astype(float)
    # shifted by the largest finite element, a constant: the result does not depend on it
    top = onp.max(plain(stop_gradient(ufuncs.real(a))), axis=axis, keepdims=True)
    top = onp.where(onp.isfinite(top), top, onp.zeros_like(top))
    terms = ufuncs.exp(a - top)
    total = reductions.sum_(terms if b is None else terms * as_array(b), axis=axis, keepdims=True)
    size = ufuncs.absolute(total)
    out = ufuncs.log(size if return_sign or total.dtype.kind != "c" else total) + top
    shape = out.shape if keepdims else reduced_shape(a.shape, axis)
    if not return_sign:
        if b is not None and total.dtype.kind != "c":  # the logarithm of a negative number
            out = ufuncs.where(total < 0, onp.nan, out)
        return reshape(out, shape=shape)
    return reshape(out, shape=shape), reshape(total / ufuncs.where(size == 0, 1, size), shape=shape)


@defines(special.multigammaln)
def multigammaln(a: Any, d: int) -> Any:
    half = 0.5 * onp.arange(d)
    terms = gammaln(expand_dims(as_array(a), axis=-1) - half)
    return reductions.sum_(terms, axis=-1) + d * (d - 1) / 4 * log(pi)


def _zero_outside(inside: Any, of: Any) -> Any:
    return ufuncs.where(plain(as_array(inside)), of, 0.0)


@defines(special.factorial)
def _factorial(n: Any, exact: bool = False, **extend: Any) -> Any:
    n = as_array(n)
    if exact or extend.get("extend", "zero") != "zero":
        return array_of(special.factorial(number(n), exact, **extend))
    return _zero_outside(n >= 0, gamma(n + 1.0))


@defines(special.comb)
def _comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    if exact:
        return special.comb(number(N), number(k), exact=True, repetition=repetition)
    n, k = as_array(N), as_array(k)
    if repetition:
        n = n + k - 1
    return _zero_outside((k <= n) & (n >= 0) & (k >= 0), binom(n * 1.0, k * 1.0))


@defines(special.perm)
def _perm(N: Any, k: Any, exact: bool = False) -> Any:
    if exact:
        return special.perm(number(N), number(k), exact=True)
    n, k = as_array(N), as_array(k)
    return _zero_outside((k <= n) & (n >= 0) & (k >= 0), poch(n - k + 1.0, k * 1.0))
