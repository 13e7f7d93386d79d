"""Keywords do under every transformation, and on torch, what they do in NumPy: none is ignored, and one that a function
does not have raises."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, jvp, vmap

NUMPY_2 = int(onp.__version__.split(".")[0]) >= 2
X = onp.arange(1.0, 7).reshape(2, 3)
MASK = X % 2 == 0


# ------------------------------------------------------------------ the ways a program is run
def under_grad(f: Callable, x: Any) -> Any:
    seen = []

    def loss(y):
        seen.append(onp.array(f(y).asnumpy()))
        return y.sum()

    grad(loss)(x)
    return seen[0]


def on_torch(f: Callable, x: Any) -> Any:
    with minnp.policy("prefer_torch"):
        return f(x)


WAYS: dict[str, Callable] = {
    "eager": lambda f, x: f(x),
    "grad": under_grad,
    "jit": lambda f, x: jit(f)(x),
    "jit, twice": lambda f, x: [g := jit(f), g(x), g(x)][-1],
    "vmap": lambda f, x: vmap(f)(x[None])[0],
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
}
if importlib.util.find_spec("torch"):
    WAYS["torch"] = on_torch


# ------------------------------------------------------------------ calls that raise
def sliding(np: Any, x: Any, **options: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, 2, axis=1, **options)


WRONG: dict[str, Callable] = {  # name: (np, x) -> raises what NumPy raises
    "add, wher": lambda np, x: np.add(x, x, wher=False),
    "exp, dtyp": lambda np, x: np.exp(x, dtyp="f4"),
    "sum, axs": lambda np, x: np.sum(x, axs=0),
    "x.sum, axs": lambda np, x: x.sum(axs=0),
    "zeros_like, dtyp": lambda np, x: np.zeros_like(x, dtyp="f4"),
    "array, dtyp": lambda np, x: np.array(x, dtyp="f4"),
    "concatenate, axs": lambda np, x: np.concatenate([x, x], axs=0),
    "add.reduce, axs": lambda np, x: np.add.reduce(x, axs=0),
    "add.accumulate, keepdims": lambda np, x: np.add.accumulate(x, keepdims=True),
    "clip, maxi": lambda np, x: np.clip(x, 0, 1, maxi=2),
    "x.clip, maxi": lambda np, x: x.clip(0, 1, maxi=2),
    "matmul, where": lambda np, x: np.matmul(x, x.T, where=True),
    "exp, axis": lambda np, x: np.exp(x, axis=0),
    "exp, keepdims": lambda np, x: np.exp(x, keepdims=True),
    "sum, axis": lambda np, x: np.sum(x, axis=2),
    "max, axis": lambda np, x: x.max(axis=-3),
    "argmax, axis": lambda np, x: np.argmax(x, axis=5),
    "any, axes": lambda np, x: np.any(x, axis=(0, 2)),
    "exp, casting": lambda np, x: np.exp(x, casting="foo"),
    "add, casting no": lambda np, x: np.add(x, x.astype("f4"), casting="no"),
    "add, dtype of integers": lambda np, x: np.add(x, x, dtype="i8"),
    "exp, signature": lambda np, x: np.exp(x, signature="dd->d"),
    "exp, order": lambda np, x: np.exp(x, order="Q"),
    "where of integers": lambda np, x: np.add(x, x, out=x * 1, where=np.ones((2, 3), "i8")),
    "concatenate, casting no": lambda np, x: np.concatenate([x, x.astype("f4")], casting="no"),
    "array, order": lambda np, x: np.array(x, order="Q"),
    "astype, order": lambda np, x: x.astype("f4", order="Q"),
    "astype, casting": lambda np, x: x.astype("i4", casting="safe"),
    "sort, kind": lambda np, x: np.sort(x, kind="foo"),
    "sort, order": lambda np, x: np.sort(x, order="f"),
    "x.sort, axis": lambda np, x: (x * 1).sort(axis=None),
    "argpartition, kind": lambda np, x: np.argpartition(x, 1, kind="quicksort"),
    "correlate, mode": lambda np, x: np.correlate(x[0], x[1], mode="foo"),
    "argmax, out": lambda np, x: np.argmax(x, out=np.zeros((), "f4")),
    "sum, a tuple out": lambda np, x: np.sum(x, axis=0, out=(np.zeros(3),)),
    "cumsum, out of None": lambda np, x: np.cumsum(x, out=(None,)),
    "exp, a list out": lambda np, x: np.exp(x, out=[x * 1]),
    "std, out of objects": lambda np, x: np.std(x, axis=0, out=np.zeros(3, object)),
    "std, out of integers": lambda np, x: np.std(x, axis=0, out=np.zeros(3, int)),
    "nanmean, out of objects": lambda np, x: np.nanmean(x, axis=0, out=np.zeros(3, object)),
    "median, out of another shape": lambda np, x: np.median(x, axis=0, out=np.zeros((2, 3), int)),
    "dot, out with gaps": lambda np, x: np.dot(x, x.T, out=np.zeros((2, 4))[:, ::2]),
    "sum, where of integers": lambda np, x: np.sum(x, where=np.ones((2, 3), int)),
    "full, order": lambda np, x: np.full(2, x[0, 0], order="K"),
    "asanyarray, copy": lambda np, x: np.asanyarray(*(x, "f4"), **{"copy": False} if NUMPY_2 else {"order": "Q"}),
    "diff, axis": lambda np, x: np.diff(x, axis="0"),
    "logical_and.reduce, dtype": lambda np, x: np.logical_and.reduce(x, dtype="f4"),
    "add.accumulate, axis": lambda np, x: np.add.accumulate(x, axis=None),
    "sin, three arrays": lambda np, x: np.sin(x, x * 1, x),
    "add, four arrays": lambda np, x: np.add(x, x, None, x),
    "+=, a class": lambda np, x: (x * 1).__iadd__(np.float32),
    "max, keepdims": lambda np, x: np.max(x, keepdims=(1, 2)),
    "var, keepdims": lambda np, x: np.var(x, keepdims=np.float32),
    "asarray, an array as dtype": lambda np, x: np.asarray(x, x),
    "ascontiguousarray, an array as dtype": lambda np, x: np.ascontiguousarray(x, x),
    "sum, an array as dtype": lambda np, x: np.sum(x, dtype=x),
    "zeros_like, an array as dtype": lambda np, x: np.zeros_like(x, dtype=x),
    "windows are read-only": lambda np, x: sliding(np, x * 1).__setitem__(0, 9),
    "broadcast is read-only": lambda np, x: np.broadcast_to(x * 1, (2, 2, 3)).__setitem__(0, 9),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_is_refused(name, way):
    f = WRONG[name]
    with pytest.raises(Exception) as theirs:  # whatever NumPy raises
        f(onp, X.copy())
    with pytest.raises(Exception) as ours:
        WAYS[way](lambda x: f(np, x), np.array(X))
    assert isinstance(ours.value, theirs.type) or issubclass(theirs.type, type(ours.value)), ours.value


# ------------------------------------------------------------------ calls that a keyword changes
def order_of(np: Any, y: Any) -> Any:
    """Numbers that say the dtype and the memory order."""
    return np.array([y.flags.c_contiguous, 2 * y.flags.f_contiguous, y.dtype.itemsize, *y.shape], float)


def shares(np: Any, x: Any, take: Callable) -> Any:
    """What is in an array after its part, or copy, was written."""
    a = x * 1
    take(a)[0] = 9
    return a


if NUMPY_2:
    WRONG["prod, keepdims"] = lambda np, x: np.prod(x, keepdims=np.True_)


RIGHT: dict[str, Callable] = {  # name: (np, x) -> what NumPy gives
    "reshape, copy": lambda np, x: shares(np, x, lambda a: a.reshape(3, 2, copy=True) if NUMPY_2 else a.copy()),
    "reshape, no copy": lambda np, x: shares(np, x, lambda a: a.reshape(3, 2, **{"copy": False} if NUMPY_2 else {})),
    "np.reshape, copy": lambda np, x: shares(np, x, lambda a: np.reshape(a, 6, **{"copy": True} if NUMPY_2 else {})),
    "astype, no copy": lambda np, x: shares(np, x, lambda a: a.astype(float, copy=False)),
    "astype, no copy, F": lambda np, x: shares(np, x, lambda a: a.astype(float, order="F", copy=False)),
    "array, no copy": lambda np, x: shares(np, x, lambda a: np.asarray(a)),
    "array, F": lambda np, x: shares(np, x, lambda a: np.asarray(a, order="F")),
    "windows to write": lambda np, x: shares(np, x, lambda a: sliding(np, a, writeable=True)),
    "tensordot, an array as axes": lambda np, x: np.tensordot(x, x.T, axes=np.asarray(1)),
    "astype lies": lambda np, x: order_of(np, x.astype("f4", order="F")),
    "astype lies as it was": lambda np, x: order_of(np, x.T.astype("f4")),
    "exp lies": lambda np, x: order_of(np, np.exp(x, order="F")),
    "exp, A": lambda np, x: order_of(np, np.exp(x.T, order="A")),
    "add, C": lambda np, x: order_of(np, np.add(x.T, x.T, order="C")),
    "zeros_like lies": lambda np, x: order_of(np, np.zeros_like(x, order="F")),
    "full_like lies": lambda np, x: order_of(np, np.full_like(x.T, x[0, 0])),
    "full lies": lambda np, x: order_of(np, np.full((2, 3), x[0, 0], order="F")),
    "array lies": lambda np, x: order_of(np, np.array(x, order="F")),
    "copy lies": lambda np, x: order_of(np, x.copy(order="F")),
    "chkfinite lies": lambda np, x: order_of(np, np.asarray_chkfinite(x, order="F")),
    "sum, where": lambda np, x: np.sum(x, axis=0, where=MASK, initial=1.0, keepdims=True),
    "max, where": lambda np, x: np.max(x, axis=1, where=MASK, initial=0.5),
    "add, where and out": lambda np, x: np.add(x, x, where=MASK, out=x * 1),
    "clip, where": lambda np, x: np.clip(x, 2, 3, where=MASK, out=x * 1),
    "clip, dtype": lambda np, x: np.clip(x, 2, 3, dtype="f4", casting="same_kind"),
    "exp, dtype": lambda np, x: np.exp(x, dtype="f4"),
    "modf, dtype": lambda np, x: np.modf(x, dtype="f4")[0],
    "exp, signature": lambda np, x: np.exp(x, signature="f->f", casting="same_kind"),
    "sign, dtype": lambda np, x: np.sign(x, dtype="f4"),
    "matmul, dtype": lambda np, x: np.matmul(x, x.T, dtype="f4"),
    "matmul, axes": lambda np, x: np.matmul(x, x, axes=[(1, 0), (0, 1), (1, 0)]),
    "take, mode": lambda np, x: np.take(x, [7, -9], mode="wrap") + np.take(x, [7, -9], mode="clip"),
    "choose, mode": lambda np, x: np.choose(np.array([0, 3, 5]), [x[0], x[1]], mode="wrap"),
    "sort, stable": lambda np, x: np.sort(-x, axis=0, kind="stable"),
    "std, ddof": lambda np, x: np.std(x, axis=0, ddof=1, keepdims=True),
    "concatenate, dtype": lambda np, x: np.concatenate([x, x], dtype="f4", casting="same_kind"),
    "nan_to_num, no copy": lambda np, x: [a := x * 1, np.nan_to_num(a, copy=False).__setitem__(0, 3)][0],
    "full, order of bytes": lambda np, x: np.full(3, x[0, 0], dtype=">f8"),
    "trace, order of bytes": lambda np, x: np.trace(x, dtype=">f4"),
    "median, out": lambda np, x: np.median(x, axis=0, out=np.zeros(3, int)),
    "nanmedian, wide out": lambda np, x: np.nanmedian(x, axis=0, out=np.zeros((2, 3), "f4")),
    "nansum, out": lambda np, x: np.nansum(x / 2, axis=0, out=np.zeros(3, int)),
    "nanmax, out": lambda np, x: np.nanmax(x / 2, axis=0, out=np.zeros(3, bool)),
    "percentile, wide out": lambda np, x: np.percentile(x, 30, axis=0, out=np.zeros((2, 3))),
    "nancumsum, out": lambda np, x: np.nancumsum(x / 2, axis=0, out=np.zeros((2, 3), int)),
    "add.reduce, a tuple out": lambda np, x: np.add.reduce(x, out=(np.zeros(3),)),
    "clip, out of None": lambda np, x: np.clip(x, 2, 3, out=(None,)),
    "logical_and.reduce, out": lambda np, x: np.logical_and.reduce(x, out=np.zeros(3, bool)) * 1.0,
    "reduceat, axis": lambda np, x: np.add.reduceat(x[0], [0, 2], axis=0),
    "ravel, F": lambda np, x: x.ravel(order="F") * np.arange(6.0),
    "flatten, F": lambda np, x: x.flatten("F") * np.arange(6.0),
}
if NUMPY_2:
    RIGHT["vecdot, axis"] = lambda np, x: np.vecdot(x, x, axis=0)
    RIGHT["vecdot, keepdims"] = lambda np, x: np.vecdot(x, x, keepdims=True)
    RIGHT["vecdot, axes"] = lambda np, x: np.vecdot(x, x, axes=[(0,), (0,), ()])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_a_keyword_changes_is_changed(name, way):
    f = RIGHT[name]
    want = onp.asarray(f(onp, X.copy()))
    got = onp.asarray(WAYS[way](lambda x: f(np, x), np.array(X)))
    assert got.dtype == want.dtype and got.shape == want.shape
    tolerance = 4 * onp.finfo(want.dtype).eps if want.dtype.kind == "f" else 0
    onp.testing.assert_allclose(got, want, rtol=tolerance)
