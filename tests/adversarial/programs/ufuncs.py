"""Ufunc methods, selection functions, histograms, interpolation, polynomials, cumulative and nan-aware operations."""

import functools

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(4, 6)),))
def reduce_accumulate_outer(x):
    p = np.multiply.reduce(x, axis=1)
    a = np.logaddexp.accumulate(x, axis=-1)
    o = np.subtract.outer(p, p)
    return p, a[:, -1], np.add.reduce(o, axis=(0, 1), keepdims=True), np.maximum.outer(x[0], x[1]).sum(0)


@program(lambda r: (r.normal(size=10),))
def segments_by_reduceat(x):
    a = np.add.reduceat(x, [0, 3, 3, 7])
    b = np.multiply.reduceat(x, [0, 5])
    c = np.maximum.reduceat(x.reshape(2, 5), [0, 2], axis=1)
    return a, b, c, np.add.reduceat(x, [6, 2])


@program(lambda r: (r.uniform(0.1, 0.9, 9),))
def select_by_bands(x):
    return np.select([x < 0.3, x < 0.6, x < 0.8], [x, x**2, np.sqrt(x)], default=1 - x)


@program(lambda r: (r.normal(size=(3, 5)), r.integers(0, 3, 5)))
def choose_from_rows(x, k):
    a = np.choose(k, x)
    b = np.choose(k + 4, x, mode="wrap")
    c = np.choose((k > 0).astype(int), [a, b * 2])
    return a, b, c


@program(lambda r: (r.normal(size=8),))
def piecewise_with_functions(x):
    y = np.piecewise(x, [x < -0.5, x > 0.5], [lambda t: -t, np.exp, 0.25])
    return y, np.piecewise(x, [x > 0], [lambda t: t**3, lambda t: -t])


@program(lambda r: (r.uniform(0, 1, 20), r.normal(size=20)))
def histogram_with_weights(x, w):
    h, edges = np.histogram(x, bins=5, range=(0, 1), weights=w)
    k = np.digitize(x, edges) - 1
    centred = w - h[np.minimum(k, 4)]
    return h, centred, np.bincount(k, minlength=5), edges


@program(lambda r: (r.normal(size=15),), order=0)
def histogram_by_hand(x):
    lo, hi = x.min(), x.max()
    k = np.minimum(((x - lo) / (hi - lo) * 4).astype(int), 3)
    counts = np.zeros(4, dtype=int)
    np.add.at(counts, k, 1)
    assert (counts == np.histogram(x, 4)[0]).all()
    return counts, np.cumsum(counts) / len(x)


@program(lambda r: (r.uniform(0, 4, 7), r.normal(size=5)))
def linear_interpolation(x, y):
    a = np.interp(x, np.arange(5), y)
    b = np.interp(x - 1, np.arange(5), y, left=0, right=0)
    k = x.astype(int)
    t = x - k
    return a, b, (1 - t) * y[k] + t * y[np.minimum(k + 1, 4)] - a


@program(lambda r: (r.normal(size=5), r.normal(size=6)))
def horner_and_its_derivative(c, x):
    p, d = np.zeros_like(x), np.zeros_like(x)
    for a in c:
        d = d * x + p
        p = p * x + a
    return p, d, np.polyval(c, x) - p


@program(lambda r: (np.linspace(-1, 1, 8), r.normal(size=8)))
def polynomial_fit(x, y):
    c = np.polyfit(x, y, 2)
    v = np.vander(x, 3)
    normal = np.linalg.solve(v.T @ v, v.T @ y)
    return c, c - normal, np.polyval(c, 0.3)


@program(lambda r: (r.uniform(1, 2, 4), r.normal(size=3)))
def polynomial_algebra(a, b):
    p = np.convolve(a, b)
    q = np.polymul(a, b)
    d = np.polyder(p)
    i = np.polyint(d)
    s = np.polyadd(a, b)
    quotient, rest = np.polydiv(p, a)
    return p - q, d, i, s, quotient, np.abs(rest).sum() < 1e-8


@program(lambda r: (np.sort(r.normal(size=4)) + np.arange(4),))
def roots_from_coefficients(roots):
    c = np.poly(roots)
    companion = np.diag(np.ones(3), -1)
    companion[0] = -c[1:] / c[0]
    found = np.sort(np.linalg.eigvals(companion).real)
    return c, found - roots


@program(lambda r: (r.normal(size=(3, 6)),))
def nan_functions(x):
    y = x.copy()
    y[0, 1] = y[2, 3] = np.nan
    m = np.nanmean(y, axis=0)
    filled = np.where(np.isnan(y), m, y)
    return m, filled.sum(), np.nansum(y, 1), np.nanstd(y), np.nan_to_num(y, nan=0.5).prod(1), np.nancumsum(y[0])


@program(lambda r: (r.normal(size=(3, 4)),))
def cumulative_chains(x):
    a = np.cumsum(np.cumprod(x, axis=1), axis=0)
    b = np.diff(np.cumsum(x, axis=None), n=2)
    c = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
    return a, b, c, np.trapezoid(x, dx=0.5) if hasattr(np, "trapezoid") else np.trapz(x, dx=0.5)


@program(lambda r: (r.normal(size=9),))
def running_extremes(x):
    hi = np.maximum.accumulate(x)
    lo = np.minimum.accumulate(x[::-1])[::-1]
    level = functools.reduce(np.minimum, [hi - lo, 2 * np.ones(9), np.abs(x) + 1])
    return hi - lo, level, np.fmax.reduce(level), np.ptp(x)


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 4))))
def generalised_products(a, b):
    k = np.multiply.outer(a, b)
    c = k.trace(axis1=1, axis2=2)
    d = np.add.outer(a[0], b[:, 0]) @ b
    return c - a @ b, d, k.sum(axis=(0, -1)), np.logaddexp.outer(a[0], a[1]).ravel()


@program(lambda r: (r.uniform(0.5, 2, 6), r.uniform(0.5, 2, 6)))
def elementary_functions_mix(x, y):
    return (
        np.arctan2(x, y) + np.hypot(x, y),
        np.log1p(x) * np.expm1(y) - np.exp2(x) + np.log2(y),
        np.sinh(x) / np.cosh(y) + np.arcsinh(x) - np.arctanh(y / 3),
        np.float_power(x, y) - x**y + np.cbrt(x * y),
        np.copysign(x, -y) + np.fmod(x, 0.7) + np.sinc(y),
        np.deg2rad(x) * np.rad2deg(y) + np.square(x) - np.reciprocal(y),
    )


@program(lambda r: (r.normal(size=7), 1.5))
def scalar_and_array_operators(x, s):
    y = 2**x - s / (1 + x * x) + (-x) ** 2 // 1e9
    y = s - y if y.sum() > 0 else y - s
    return y, abs(x) ** 1.5, divmod(s, 1.0)[1] * x, +x, 3 % (2 + s) * x


@program(lambda r: (r.normal(size=(4, 5)),))
def sorting_family(x):
    a = np.sort(x, axis=0)
    b = np.partition(x, 2, axis=1)[:, 2]
    c = x.ravel()[np.argpartition(x, 6, axis=None)[:6]].sum()
    d = x[np.arange(4), np.argsort(-x, axis=1)[:, 1]]
    return a, b, c, d, np.median(x, axis=1)


@program(lambda r: (r.normal(size=8),))
def padding_and_tiling(x):
    a = np.pad(x, (2, 1), mode="reflect")
    b = np.pad(x.reshape(2, 4), ((1, 0), (0, 2)), mode="edge")
    c = np.tile(x[:3], (2, 2)) * np.repeat(x[:2], 3)
    d = np.repeat(x, [0, 1, 2, 0, 1, 0, 3, 1])
    return a, b, c, d, np.pad(x, 1, mode="symmetric")[::3], np.pad(x[:2], 3, mode="wrap")


@program(lambda r: (r.normal(size=6), r.normal(size=6)))
def clip_and_its_relatives(x, lo):
    hi = np.abs(lo) + 0.5
    a = np.clip(x, -0.4, None)
    b = np.clip(x, -hi, hi)
    c = np.minimum(np.maximum(x, -1), hi)
    d = np.where(x > hi, hi, np.where(x < lo, lo, x))
    return a, b, c, d, np.heaviside(x, 0.5) * x


@program(lambda r: (r.normal(size=(3, 4)),))
def vectorized_python_function(x):
    @np.vectorize
    def bend(a, b):
        return a * b if a > b else a - b

    return bend(x, 0.2)


@program(lambda r: (r.normal(size=(3, 4)),))
def applied_along_an_axis(x):
    a = np.apply_along_axis(lambda row: row / (1 + row @ row), 1, x)
    b = np.apply_along_axis(lambda col: col.max() - col.min(), 0, x)
    c = np.apply_over_axes(np.sum, x**2, [0, 1])
    return a, b, c


@program(lambda r: (r.normal(size=(3, 4)),))
def iterated_with_nditer(x):
    total = 0.0
    it = np.nditer(x, flags=["multi_index"])
    for v in it:
        i, j = it.multi_index
        total = total + v * (i + 1) / (j + 1)
    y = np.zeros_like(x)
    for (i, j), v in np.ndenumerate(x):
        y[i, j] = v * (i - j)
    for i in np.ndindex(3, 2):
        y[i] += x[i[::-1]] if max(i) < 2 else 0
    return total, y


@program(lambda r: (r.normal(size=5),))
def built_from_functions(x):
    g = np.fromfunction(lambda i, j: x[i] * x[j] + i, (5, 5), dtype=int)
    h = np.fromiter((v * v for v in x), dtype=float, count=5)
    k = np.array([x[i] if i % 2 else h[i] for i in range(5)])
    return g @ h, k, np.fromfunction(lambda i: i**2, (5,)) * x


@program(lambda r: (r.normal(size=10),))
def gradients_and_differences(x):
    g = np.gradient(x)
    g2 = np.gradient(x.reshape(2, 5), 0.5, axis=1)
    e = np.ediff1d(x, to_begin=0.0)
    return g, g2, e, np.diff(x, prepend=x[-1]), np.unwrap(3 * x)


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=(2, 3))))
def joined_in_many_ways(a, b):
    c = np.concatenate([a, b], axis=None)
    s = np.stack([a, b], axis=-1)
    d = np.dstack((a, b)) - s
    blk = np.block([[a, b], [b, a]])
    col = np.column_stack([a.T, b[0], b[1]])
    return c, s, d, blk, col, np.c_[a[0], b[1]], np.r_[a[0], 1.0, b[1]]


@program(lambda r: (r.normal(size=6),))
def cross_correlations(x):
    k = np.array([0.25, 0.5, 0.25])
    return (
        np.convolve(x, k, mode="same"),
        np.convolve(x, k, "valid"),
        np.correlate(x, x[:3], "full"),
        np.cross(x[:3], x[3:]),
        np.inner(x, x[::-1]),
        np.vdot(x, x) + np.outer(k, x).sum(),
    )
