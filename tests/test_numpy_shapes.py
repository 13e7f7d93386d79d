"""Arrays without elements, and arrays without axes: NumPy's results, and gradients of the arguments' shapes."""

import warnings

import numpy as onp
import pytest

import minnp.numpy as mnp
from minnp import vjp

EMPTY = {
    "sum": lambda np, x: np.sum(x),
    "sum.axis": lambda np, x: np.sum(x, axis=0),
    "prod": lambda np, x: np.prod(x, axis=0),
    "max": lambda np, x: np.max(x, axis=1),
    "max.initial": lambda np, x: np.max(x, axis=0, initial=0.0),
    "var": lambda np, x: np.var(x, axis=1),
    "median": lambda np, x: np.median(x, axis=1),
    "cumsum": lambda np, x: np.cumsum(x, axis=0) + np.cumsum(x).reshape(0, 3),
    "cumprod": lambda np, x: np.cumprod(x, axis=0),
    "diff": lambda np, x: np.diff(x, axis=1),
    "sort": lambda np, x: np.sort(x, axis=0),
    "unique": lambda np, x: np.unique(x),
    "concatenate": lambda np, x: np.concatenate([x, x]),
    "stack": lambda np, x: np.stack([x, x]),
    "tile": lambda np, x: np.tile(x, (2, 2)),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "split": lambda np, x: np.split(x, 3, axis=1)[1],
    "pad": lambda np, x: np.pad(x, 1),
    "roll": lambda np, x: np.roll(x, 1) + np.flip(x),
    "reshape": lambda np, x: x.reshape(3, 0),
    "broadcast_to": lambda np, x: np.broadcast_to(x, (2, 0, 3)),
    "mask": lambda np, x: x[x > 0],
    "index": lambda np, x: x[:0, [1, 1]],
    "take": lambda np, x: np.take(x, [0, 1], axis=1),
    "diagonal": lambda np, x: np.diagonal(x),
    "where": lambda np, x: np.where(x > 0, x, 1),
    "matmul": lambda np, x: x @ onp.ones((3, 2)),
    "matmul.over": lambda np, x: x.T @ x,
    "tensordot": lambda np, x: np.tensordot(x, x, axes=([0], [0])),
    "einsum": lambda np, x: np.einsum("ij,ij->j", x, x),
    "outer": lambda np, x: np.outer(x, x),
    "linspace": lambda np, x: np.linspace(x[:, 0], x[:, 1], 4),
}
SCALAR = {
    "sum": lambda np, x: np.sum(x) * x.mean() * np.max(x),
    "cumsum": lambda np, x: np.cumsum(x) + np.cumsum(x, axis=0),
    "cumprod": lambda np, x: np.cumprod(x) * np.prod(x),
    "var": lambda np, x: np.var(x) + x,
    "median": lambda np, x: np.median(x) * np.quantile(x, 0.3),
    "nan": lambda np, x: np.nansum(x) * np.nanmean(x) * np.nanmedian(x),
    "sort": lambda np, x: np.sort(x, axis=None),
    "shape": lambda np, x: np.ravel(x) * x.T * np.squeeze(x) * np.expand_dims(x, 0) * np.reshape(x, (1, 1)),
    "atleast": lambda np, x: np.atleast_2d(x) * np.roll(x, 1) * np.flip(x),
    "repeat": lambda np, x: np.repeat(x, 3) * np.tile(x, 3) * np.take(x, [0, 0, 0]),
    "join": lambda np, x: np.stack([x, x * 2]) + np.hstack([x, x]) + np.append(x, x),
    "vstack": lambda np, x: np.vstack([x, x]),
    "index": lambda np, x: x[None] * x[...] * x[()],
    "mask": lambda np, x: x[x > 0],
    "broadcast_to": lambda np, x: np.broadcast_to(x, (2, 2)) * np.full((2, 2), x),
    "where": lambda np, x: np.where(x > 0, x, 0.0) * np.clip(x, 0, 1),
    "select": lambda np, x: np.select([x > 0], [x]) * np.piecewise(x, [x > 0], [lambda t: t * t]),
    "dot": lambda np, x: np.dot(x, [1.0, 2.0]) * np.inner(x, x) * np.tensordot(x, x, 0),
    "outer": lambda np, x: np.outer(x, x) * np.kron(x, x) * np.einsum(",", x, x),
    "linspace": lambda np, x: np.linspace(0, x, 3),
    "meshgrid": lambda np, x: np.meshgrid(x, x)[0],
    "polyval": lambda np, x: np.polyval([1, 2.0], x) * np.sinc(x) * np.i0(x),
    "interp": lambda np, x: np.interp(x, [0.0, 1, 2], [1.0, 3, 2]) * np.modf(x)[0],
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_arrays(name):
    f, x = EMPTY[name], onp.zeros((0, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's: mean of empty slice
        wanted = onp.asarray(f(onp, x))
        out, pullback = vjp(lambda x: f(mnp, x), x)
        onp.testing.assert_array_equal(onp.asarray(out), wanted)
        assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype)
        assert pullback(onp.ones_like(wanted))[0].shape == x.shape


@pytest.mark.parametrize("name", SCALAR)
def test_arrays_without_axes(name):
    f, x, step = SCALAR[name], onp.array(1.5), 1e-6
    wanted = onp.asarray(f(onp, x.copy()))
    out, pullback = vjp(lambda x: f(mnp, x), x)
    onp.testing.assert_allclose(onp.asarray(out), wanted, rtol=1e-12)
    assert (out.shape, out.dtype) == (wanted.shape, wanted.dtype)
    slope = (f(onp, x + step) - f(onp, x - step)).sum() / (2 * step)
    assert float(pullback(onp.ones_like(wanted))[0]) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_sums_of_narrow_rows_are_sums() -> None:
    from minnp.core.rows.primitive import TABLE

    rng = onp.random.default_rng(0)
    for source, shape in [
        ((20, 1000, 10), (20, 1, 10)),
        ((20, 1000, 10), (10,)),
        ((20, 1000, 10), (20, 1000, 1)),
        ((20, 1000, 10), (20, 1, 1)),
        ((20, 1000, 10), (1, 1000, 10)),
        ((20, 1000, 10), (1, 1000, 1)),
        ((30000, 3), (3,)),
        ((30000, 3), (1, 3)),
    ]:
        x = rng.standard_normal(source)
        extra = x.ndim - len(shape)
        axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and source[i + extra] != 1)
        for a in (x, x.astype("f4"), x + 1j * x[::-1], onp.asfortranarray(x)):
            want = a.sum(axis=axes).reshape(shape)
            got = TABLE["sum_to"](a, shape=shape)
            assert got.shape == shape and got.dtype == a.dtype
            tolerance = 1e-12 if a.dtype.itemsize > 4 else 1e-3
            onp.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
