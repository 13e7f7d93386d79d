"""Public NumPy functions under a trace: NumPy's values and dtypes, and derivatives to second order against differences.

Each case is a program `f(np, *arrays)` as a user would write it. It runs on real NumPy for the wanted values.
"""

import numpy as onp
import pytest
from derivatives import leaves, paired, random_like, slope

import minnp.numpy as mnp
from minnp import grad, vjp


def draw(*shape, low=-2.0, high=2.0, seed=0):
    return onp.random.RandomState(seed + 7 * len(shape)).uniform(low, high, shape)


A, B, V, W = draw(3, 4), draw(3, 4, seed=1), draw(5), draw(5, seed=1)
P = draw(3, 4, low=0.5, high=2.0)
C = draw(3, 4) + 1j * draw(3, 4, seed=3)
N = onp.where(draw(3, 4, seed=5) > 1, onp.nan, A)
X = onp.sort(draw(6, low=0.0, high=5.0, seed=4))
MASK = draw(3, 4, seed=6) > 0
IDX = onp.array([2, 0, 2, 1])

CASES = {
    # ---------------------------------------------------------------- calls of ufuncs
    "add.where.out": (lambda np, x, y: np.add(x, y, where=MASK, out=np.zeros((3, 4))), A, B),
    "divide.where": (lambda np, x: np.divide(1.0, x, out=np.zeros_like(x), where=MASK), A * MASK),
    "log.where": (lambda np, x: np.log(x, out=np.zeros_like(x), where=x > 0), A),
    "exp.dtype": (lambda np, x: np.exp(x, dtype="f8"), A),
    "exp.out": (lambda np, x: np.exp(x, out=np.empty(x.shape)), A),
    "add.list": (lambda np, x: np.add(x, [1.0, 2.0, 3.0, 4.0]), A),
    "list.of.traced": (lambda np, x: np.sin([x[0], x[1], 2.0]), V),
    "add.reduce": (lambda np, x: np.add.reduce(x), A),
    "multiply.reduce": (lambda np, x: np.multiply.reduce(x, axis=1), A),
    "maximum.reduce": (lambda np, x: np.maximum.reduce(x, axis=None), A),
    "logaddexp.reduce": (lambda np, x: np.logaddexp.reduce(x, axis=1, keepdims=True), A),
    "subtract.reduce": (lambda np, x: np.subtract.reduce(x, axis=0), A),
    "add.accumulate": (lambda np, x: np.add.accumulate(x, axis=1), A),
    "maximum.accumulate": (lambda np, x: np.maximum.accumulate(x), V),
    "add.reduceat": (lambda np, x: np.add.reduceat(x, [0, 3, 1]), V),
    "multiply.outer": (lambda np, x, y: np.multiply.outer(x, y), V, A),
    "add.at": (lambda np, x, y: _at(np, np.add, x, y), V, W[:4]),
    "subtract.at": (lambda np, x, y: _at(np, np.subtract, x, y), V, W[:4]),
    "multiply.at": (lambda np, x, y: _at(np, np.multiply, x, y), V, W[:4]),
    "divmod": (
        lambda np, x, y: np.divmod(x, y)[1],
        draw(3, 4, low=5.0, high=9.0, seed=8),
        draw(3, 4, low=1.1, high=2.0, seed=9),
    ),
    "modf": (lambda np, x: np.modf(x)[0], A),
    "frexp": (lambda np, x: np.frexp(x)[0], P),
    "where": (lambda np, x, y: np.where(x > 0, x * y, x), A, B),
    "where.guard": (lambda np, x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0), A),
    "clip": (lambda np, x: np.clip(x, -1, 1), A),
    "clip.max": (lambda np, x: np.clip(x, None, 0.5), A),
    "clip.method": (lambda np, x: x.clip(-0.5, 1), A),
    "clip.bounds": (lambda np, x, y: np.clip(x, y - 1, y + 1), A, V[:4]),
    "nan_to_num": (lambda np, x: np.nan_to_num(x, nan=2.0) ** 2, N),
    "power.int": (lambda np, x: x**3 + x**2 + x**1 + x**0 + x**-1.0, P),
    "power.zero": (lambda np, x: (x * 0.0) ** 2, V),
    "power.both": (lambda np, x, y: x**y, P, B),
    "sinc.zero": (lambda np, x: np.sinc(x), onp.array([0.0, 1e-9, 0.1, 1.0, 2.5])),
    "i0": (lambda np, x: np.i0(x), onp.array([0.5, -1.5, 7.0, 9.0])),
    "angle": (lambda np, z: np.angle(z), C),
    "angle.deg": (lambda np, z: np.angle(z, deg=True), C),
    "abs.complex": (lambda np, z: np.abs(z), C),
    "real.imag": (lambda np, z: z.real * z.imag + np.real(z) * np.imag(z), C),
    "conj": (lambda np, z: z.conj() * z, C),
    "complex.mix": (lambda np, x, z: (x * z + np.exp(1j * x)).real, A, C),
    "real_if_close": (lambda np, x: np.real_if_close(x + 0j), A),
    "round.ste": (lambda np, x: x + (np.round(x) - np.floor(x)), A),
    # ---------------------------------------------------------------- reductions
    "sum": (lambda np, x: np.sum(x, axis=(0, -1)), A),
    "sum.where": (lambda np, x: np.sum(x, axis=1, where=MASK, initial=2.0), A),
    "sum.list": (lambda np, x: np.sum([x[0], x[1] * 2]), V),
    "sum.out": (lambda np, x: np.sum(x, axis=0, out=np.zeros(4)), A),
    "sum.method": (lambda np, x: x.sum(1, keepdims=True), A),
    "prod": (lambda np, x: np.prod(x, axis=1), A),
    "prod.where": (lambda np, x: np.prod(x, where=MASK, initial=0.5), A),
    "mean": (lambda np, x: np.mean(x, axis=0) + x.mean(), A),
    "mean.where": (lambda np, x: np.mean(x, axis=0, where=onp.ones((3, 4), bool) & (A[0] != A)), A[:, :]),
    "mean.complex": (lambda np, z: np.mean(z, axis=0), C),
    "var": (lambda np, x: np.var(x, axis=1, ddof=1), A),
    "var.complex": (lambda np, z: np.var(z, axis=0), C),
    "var.where": (lambda np, x: np.var(x, where=MASK, keepdims=True), A),
    "std": (lambda np, x: np.std(x, axis=0, keepdims=True) + x.std(), A),
    "std.where": (lambda np, x: np.std(x, where=MASK), A),
    "average": (lambda np, x, y: np.average(x, axis=1, weights=y), A, P),
    "max": (lambda np, x: np.max(x, axis=1) + x.max() + np.amax(x), A),
    "min": (lambda np, x: np.min(x, axis=(0, 1), keepdims=True) * x.min(0), A),
    "max.initial": (lambda np, x: np.max(x, axis=0, initial=0.5, where=MASK), A),
    "ptp": (lambda np, x: np.ptp(x, axis=1), A),
    "median": (lambda np, x: np.median(x), A),
    "median.axis": (lambda np, x: np.median(x, axis=1), A),
    "percentile": (lambda np, x: np.percentile(x, [10, 50, 90], axis=1), A),
    "quantile.linear": (lambda np, x: np.quantile(x, 0.3), V),
    "quantile.nearest": (lambda np, x: np.quantile(x, 0.3, method="nearest"), V),
    "quantile.weibull": (lambda np, x: np.quantile(x, [0.3, 0.6], axis=0, method="weibull"), A),
    "cumsum": (lambda np, x: np.cumsum(x, axis=1) + x.cumsum(0), A),
    "cumsum.flat": (lambda np, x: np.cumsum(x), A),
    "cumprod": (lambda np, x: np.cumprod(x, axis=0), A),
    "cumprod.zeros": (lambda np, x: np.cumprod(x), onp.array([1.0, 2.0, 0.0, 3.0, 0.0, 2.0])),
    "prod.zeros": (lambda np, x: np.prod(x), onp.array([1.0, 2.0, 0.0, 3.0])),
    "trace": (lambda np, x: np.trace(x, offset=1) + x.trace(), A),
    "cov": (lambda np, x: np.cov(x), A),
    "cov.y": (lambda np, x, y: np.cov(x, y, ddof=0), V, W),
    "corrcoef": (lambda np, x: np.corrcoef(x), A),
    "nansum": (lambda np, x: np.nansum(x, axis=0), N),
    "nanprod": (lambda np, x: np.nanprod(x, axis=1), N),
    "nanmean": (lambda np, x: np.nanmean(x, axis=1), N),
    "nanvar": (lambda np, x: np.nanvar(x, axis=1), N),
    "nanstd": (lambda np, x: np.nanstd(x, axis=1), N),
    "nanmax": (lambda np, x: np.nanmax(x, axis=1), N),
    "nanmin": (lambda np, x: np.nanmin(x), N),
    "nanmedian": (lambda np, x: np.nanmedian(x, axis=1), N),
    "nanpercentile": (lambda np, x: np.nanpercentile(x, 40, axis=1), N),
    "nanquantile": (lambda np, x: np.nanquantile(x, 0.7), N),
    "nancumsum": (lambda np, x: np.nancumsum(x, axis=1), N),
    "nancumprod": (lambda np, x: np.nancumprod(x), N),
    # ---------------------------------------------------------------- shape
    "reshape": (lambda np, x: np.reshape(x, (2, -1)) * x.reshape(2, 6), A),
    "reshape.F": (lambda np, x: x.reshape(6, 2, order="F"), A),
    "ravel": (lambda np, x: np.ravel(x, order="F") + x.ravel(), A),
    "ravel.K": (lambda np, x: np.ravel(x.T, order="K"), A),
    "flatten": (lambda np, x: x.flatten() + x.flatten("F"), A),
    "transpose": (lambda np, x: np.transpose(x) @ x + x.T @ x, A),
    "transpose.axes": (lambda np, x: np.transpose(x[None], (1, 2, 0)) + x[None].transpose(1, 2, 0), A),
    "swapaxes": (lambda np, x: np.swapaxes(x, 0, 1) + x.swapaxes(1, 0), A),
    "moveaxis": (lambda np, x: np.moveaxis(x[None], 0, -1), A),
    "rollaxis": (lambda np, x: np.rollaxis(x, 1), A),
    "expand_dims": (lambda np, x: np.expand_dims(x, (0, 2)), A),
    "squeeze": (lambda np, x: np.squeeze(x[None]) + x[:, None].squeeze(1), A),
    "broadcast_to": (lambda np, x: np.broadcast_to(x, (2, 3, 4)), A),
    "broadcast_arrays": (lambda np, x, y: np.multiply(*np.broadcast_arrays(x, y)), A, V[:4]),
    "concatenate": (lambda np, x, y: np.concatenate([x, y, B], axis=1), A, P),
    "concatenate.flat": (lambda np, x, y: np.concatenate((x, y), axis=None), A, V),
    "stack": (lambda np, x, y: np.stack([x, y], axis=1), A, B),
    "vstack": (lambda np, x, y: np.vstack([x, y[:4]]), A, V),
    "hstack": (lambda np, x, y: np.hstack([x, y]), V, W),
    "dstack": (lambda np, x, y: np.dstack([x, y]), A, B),
    "column_stack": (lambda np, x, y: np.column_stack([x, y]), V, W),
    "block": (lambda np, x, y: np.block([[x, y], [y, x]]), A, B),
    "append": (lambda np, x, y: np.append(x, y), A, V),
    "split": (lambda np, x: np.split(x, 2, axis=1)[1], A),
    "array_split": (lambda np, x: np.array_split(x, [1, 3])[1], V),
    "hsplit": (lambda np, x: np.hsplit(x, 2)[0], A),
    "vsplit": (lambda np, x: np.vsplit(x, 3)[1], A),
    "dsplit": (lambda np, x: np.dsplit(x[None], 2)[1], A),
    "tile": (lambda np, x: np.tile(x, (2, 1, 3)), A),
    "repeat": (lambda np, x: np.repeat(x, 2, axis=1), A),
    "repeat.each": (lambda np, x: x.repeat([1, 0, 2], axis=0), A),
    "roll": (lambda np, x: np.roll(x, 1, axis=0) + np.roll(x, 2), A),
    "flip": (lambda np, x: np.flip(x, 0) + np.fliplr(x) + np.flipud(x), A),
    "rot90": (lambda np, x: np.rot90(x, 3), A),
    "pad.constant": (lambda np, x: np.pad(x, ((1, 2), (0, 1)), constant_values=3.0), A),
    "pad.edge": (lambda np, x: np.pad(x, 2, mode="edge"), A),
    "pad.reflect": (lambda np, x: np.pad(x, ((1, 2), (3, 1)), mode="reflect"), A),
    "pad.reflect.odd": (lambda np, x: np.pad(x, 1, mode="reflect", reflect_type="odd"), A),
    "pad.symmetric": (lambda np, x: np.pad(x, ((2, 1), (1, 5)), mode="symmetric"), A),
    "pad.wrap": (lambda np, x: np.pad(x, ((2, 1), (1, 5)), mode="wrap"), A),
    "pad.ramp": (lambda np, x: np.pad(x, 2, mode="linear_ramp"), A),
    "pad.mean": (lambda np, x: np.pad(x, 1, mode="mean"), A),
    "pad.maximum": (lambda np, x: np.pad(x, 1, mode="maximum"), A),
    "pad.median": (lambda np, x: np.pad(x, 1, mode="median"), V),
    "atleast": (lambda np, x: np.atleast_3d(x) + np.atleast_2d(x)[..., None] + np.atleast_1d(x)[..., None], A),
    "astype": (lambda np, x: x.astype("c16") * (1 + 2j), A),
    "copy": (lambda np, x: np.copy(x) * x.copy(), A),
    "apply_along_axis": (lambda np, x: np.apply_along_axis(lambda r: r * r.sum(), 1, x), A),
    "apply_over_axes": (lambda np, x: np.apply_over_axes(np.sum, x, [0, 1]), A),
    "resize": (lambda np, x: np.resize(x, (5, 4)), A),
    "trim_zeros": (lambda np, x: np.trim_zeros(x * onp.array([0, 0, 1, 2, 0])), V),
    "insert": (lambda np, x, y: np.insert(x, 2, y), V, W[:2]),
    "delete": (lambda np, x: np.delete(x, [0, 3]), V),
    # ---------------------------------------------------------------- indexing
    "index.slice": (lambda np, x: x[::-2, 1:] * x[0, None, :3], A),
    "index.array": (lambda np, x: x[IDX], A),
    "index.arrays": (lambda np, x: x[[0, 2, 2], [1, 1, 1]], A),
    "index.mixed": (lambda np, x: x[1:, [0, 0, 3]], A),
    "index.mask": (lambda np, x: x[MASK], A),
    "index.mask.traced": (lambda np, x: x[x > 0], A),
    "index.ellipsis": (lambda np, x: x[..., -1] + x[1, ...][:3], A),
    "index.ix_": (lambda np, x: x[np.ix_([0, 2], [1, 3])], A),
    "take": (lambda np, x: np.take(x, [[0, 5], [5, -1]]) + x.take([0, 1]), A),
    "take.axis": (lambda np, x: np.take(x, [0, 2, 2], axis=1, mode="wrap"), A),
    "take_along_axis": (lambda np, x: np.take_along_axis(x, np.argsort(x, axis=1)[:, :2], axis=1), A),
    "put_along_axis": (
        lambda np, x, y: _written(np, x, lambda z: np.put_along_axis(z, IDX[:3, None], y, 1)),
        A,
        B[:, :1],
    ),
    "diagonal": (lambda np, x: np.diagonal(x, 1) * x.diagonal(1), A),
    "diag": (lambda np, x: np.diag(x), V),
    "diag.2d": (lambda np, x: np.diag(x, 1), A),
    "diagflat": (lambda np, x: np.diagflat(x, 1), V),
    "tril": (lambda np, x: np.tril(x) - np.triu(x, 1), A),
    "fill_diagonal": (lambda np, x, y: _written(np, x, lambda z: np.fill_diagonal(z, y)), A, V[:3]),
    "put": (lambda np, x, y: _written(np, x, lambda z: np.put(z, [0, 5], y)), A, V[:2]),
    "place": (lambda np, x, y: _written(np, x, lambda z: np.place(z, MASK, y)), A, V[:2]),
    "putmask": (lambda np, x, y: _written(np, x, lambda z: np.putmask(z, MASK, y)), A, B),
    "copyto": (lambda np, x, y: _written(np, x, lambda z: np.copyto(z, y, where=MASK)), A, B),
    "compress": (lambda np, x: np.compress([True, False, True], x, axis=0), A),
    "extract": (lambda np, x: np.extract(x > 0, x), A),
    "choose": (lambda np, x, y: np.choose([0, 1, 1, 0], [x, y]), A, B),
    "select": (lambda np, x: np.select([x < -1, x > 1], [x**2, 3 * x], 0.5), A),
    "piecewise": (lambda np, x: np.piecewise(x, [x < 0, x >= 0], [lambda t: t**2, lambda t: 3 * t]), V),
    # ---------------------------------------------------------------- products
    "matmul": (lambda np, x, y: x @ y.T + np.matmul(x, y.T), A, B),
    "dot": (lambda np, x, y: np.dot(x, y.T) * x.dot(y.T), A, B),
    "dot.vectors": (lambda np, x, y: np.dot(x, y), V, W),
    "dot.scalar": (lambda np, x, y: np.dot(x[0], y), V, A),
    "dot.nd": (lambda np, x, y: np.dot(x[None], y.T[None]), A, B),
    "inner": (lambda np, x, y: np.inner(x, y), A, B),
    "outer": (lambda np, x, y: np.outer(x, y), V, A),
    "vdot": (lambda np, x, y: np.vdot(x, y), C, C[::-1].copy()),
    "tensordot": (lambda np, x, y: np.tensordot(x, y, axes=([0, 1], [0, 1])), A, B),
    "tensordot.one": (lambda np, x, y: np.tensordot(x, y, axes=1), A, B.T.copy()),
    "einsum": (lambda np, x, y: np.einsum("ij,kj->ik", x, y), A, B),
    "einsum.lists": (lambda np, x, y: np.einsum(x, [0, 1], y, [2, 1], [0, 2]), A, B),
    "einsum.optimize": (lambda np, x, y: np.einsum("ij,kj,kl->il", x, y, x, optimize=True), A, B),
    "kron": (lambda np, x, y: np.kron(x, y), V[:2], A),
    "cross": (lambda np, x, y: np.cross(x, y), draw(2, 3), draw(3)),
    "convolve": (lambda np, x, y: np.convolve(x, y, "same"), V, W[:2]),
    "convolve.swap": (lambda np, x, y: np.convolve(x, y, "same"), V[:2], W),
    "correlate": (lambda np, x, y: np.correlate(x, y), V, W[:3]),
    "correlate.full": (lambda np, x, y: np.correlate(x, y, "full"), V[:3], W),
    "correlate.same": (lambda np, x, y: np.correlate(x, y, "same"), V[:2], W),
    "correlate.same4": (lambda np, x, y: np.correlate(x, y, "same"), V[:4], W),
    "correlate.complex": (lambda np, x, y: np.correlate(x, y, "full"), C[0], C[1]),
    # ---------------------------------------------------------------- calculus and polynomials
    "diff": (lambda np, x: np.diff(x, n=2, axis=1), A),
    "diff.ends": (lambda np, x: np.diff(x, prepend=x[0], append=0.0), V),
    "ediff1d": (lambda np, x: np.ediff1d(x, to_end=x[:1]), V),
    "gradient": (lambda np, x: np.gradient(x, axis=1), A),
    "gradient.spaced": (lambda np, x, y: np.gradient(x, y, edge_order=2), V, onp.sort(W)),
    "trapezoid": (lambda np, y, x: (np.trapezoid if hasattr(np, "trapezoid") else np.trapz)(y, x), V, W),
    "interp": (lambda np, x, xp, fp: np.interp(x, xp, fp), draw(4, low=0.2, high=4.5), X, draw(6)),
    "interp.ends": (lambda np, x, fp: np.interp(x, X, fp, left=-1.0), onp.array([-1.0, 9.0, 2.0]), draw(6)),
    "interp.period": (
        lambda np, x, fp: np.interp(x, [0.1, 1.0, 3.0], fp, period=4.0),
        onp.array([-1.3, 9.1, 2.0]),
        draw(3),
    ),
    "unwrap": (lambda np, x: np.unwrap(x), onp.cumsum(draw(6, low=1.0, high=4.0))),
    "polyval": (lambda np, p, x: np.polyval(p, x), V, A),
    "polyadd": (lambda np, p, q: np.polyadd(p, q) + np.polysub(p, q), V, W[:3]),
    "polymul": (lambda np, p, q: np.polymul(p, q), V, W[:3]),
    "polydiv": (lambda np, p, q: np.polydiv(p, q)[0], V, W[:3]),
    "polyder": (lambda np, p: np.polyder(p), V),
    "polyint": (lambda np, p: np.polyint(p), V),
    "poly": (lambda np, r: np.poly(r), V),
    "vander": (lambda np, x: np.vander(x, 4), V),
    # ---------------------------------------------------------------- sorting and sets
    "sort": (lambda np, x: np.sort(x, axis=0) + np.sort(x), A),
    "sort.flat": (lambda np, x: np.sort(x, axis=None), A),
    "sort.inplace": (lambda np, x: _written(np, x, lambda z: z.sort(axis=0)), A),
    "partition": (lambda np, x: np.partition(x, 2, axis=1)[:, :2].sum() + np.partition(x, 2, axis=1)[:, 2], A),
    "unique": (lambda np, x: np.unique(x), V),
    "union1d": (lambda np, x, y: np.union1d(x, y), V, W),
    # ---------------------------------------------------------------- creation
    "array": (lambda np, x: np.array([[x[0], 1.0], [x[1] * x[2], x[3]]]), V),
    "asarray": (lambda np, x: np.asarray(x) * np.asanyarray(x) + np.ascontiguousarray(x.T).T, A),
    "full": (lambda np, x: np.full((2, 3), x[0] * x[1]), V),
    "full_like": (lambda np, x: np.full_like(x, x[0, 0]), A),
    "zeros_like": (lambda np, x: np.zeros_like(x) + x * np.ones_like(x), A),
    "linspace": (lambda np, x: np.linspace(x[0], x[1], 5), V),
    "linspace.arrays": (lambda np, x, y: np.linspace(x, y, 4, axis=1, endpoint=False), V, W),
    "logspace": (lambda np, x: np.logspace(x[0], x[1], 4), V),
    "geomspace": (lambda np, x: np.geomspace(x[0], x[1], 4), onp.array([1.5, 7.0])),
    "meshgrid": (lambda np, x, y: np.multiply(*np.meshgrid(x, y)), V, W),
    "buffer": (lambda np, x: _filled(np, x), V),
}


def _at(np, ufunc, x, y):
    z = x * 1.0
    ufunc.at(z, IDX, y)
    return z


def _written(np, x, write):
    z = x * 1.0
    write(z)
    return z


def _filled(np, x):
    out = np.zeros(2 * len(x))
    for i in range(len(x)):
        out[2 * i] = x[i] ** 2
        out[2 * i + 1] += out[2 * i] * x[0]
    return out


@pytest.mark.parametrize("name", CASES)
def test_function_has_numpys_value_and_the_right_derivatives(name):
    f, *xs = CASES[name]
    wanted = f(onp, *(onp.array(x) for x in xs))
    out, pullback = vjp(lambda *a: f(mnp, *a), *xs)
    onp.testing.assert_allclose(onp.asarray(out), wanted, rtol=1e-12, atol=1e-12)
    assert (out.shape, out.dtype) == (onp.shape(wanted), onp.asarray(wanted).dtype)

    g = random_like(wanted, 1)
    ts = [random_like(onp.where(onp.isnan(x), 0, x), 2 + i) for i, x in enumerate(xs)]

    def first(*values):
        _, back = vjp(lambda *a: f(mnp, *a), *values)
        total = sum((c * t).sum() for c, t in zip(back(g), ts))
        return total.real if total.dtype.kind == "c" else total

    numpy_f = lambda *a: f(onp, *a)
    assert paired(pullback(g), ts) == pytest.approx(paired(g, slope(numpy_f, xs, ts)), rel=1e-6, abs=1e-6)
    second = leaves(grad(first, range(len(xs)))(*xs))
    ss = [random_like(x, 20 + i) for i, x in enumerate(xs)]
    wanted = paired([1.0], slope(lambda *v: onp.asarray(first(*v)), xs, ss))
    assert paired(second, ss) == pytest.approx(wanted, rel=1e-5, abs=1e-5)
