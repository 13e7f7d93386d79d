"""Everyday numerics: fits, interpolation, quadrature, bins, ranks, percentiles, windows, and sums told by labels."""

import numpy as np

from tests.adversarial.program import program

trapezoid = getattr(np, "trapezoid", None) or np.trapz


@program(lambda r: (np.sort(r.uniform(0, 3, 9)), r.normal(size=9)))
def area_length_and_centroid_of_a_curve(x, y):
    area = trapezoid(y, x)
    length = np.hypot(np.diff(x), np.diff(y)).sum()
    running = np.concatenate([[0], np.cumsum(np.diff(x) * (y[1:] + y[:-1]) / 2)])
    both = trapezoid([y, y**2], x, axis=1)
    return area, length, running, both, trapezoid(x * y, x) / (1 + area**2), trapezoid(y.reshape(3, 3), dx=0.5, axis=0)


@program(lambda r: (r.normal(size=12),))
def trend_removed_and_put_back(y):
    t = np.linspace(-1, 1, 12)
    c = np.polyfit(t, y, 2)
    rest = y - np.polyval(c, t)
    weighted = np.polyfit(t, y, 1, w=np.exp(-t))
    p = np.poly1d(c)
    y -= p(t)
    return c, rest.std(), weighted, np.polyder(c), np.polyint(c), p.deriv()(0.5), y


@program(lambda r: (r.uniform(-0.4, 0.4, 14).cumsum() * 3,))
def phase_wrapped_and_unwrapped(phi):
    wrapped = (phi + np.pi) % (2 * np.pi) - np.pi
    back = np.unwrap(wrapped)
    f = np.gradient(back, 0.1)
    return back - back[0], f, np.unwrap(np.stack([wrapped, 2 * phi]), axis=-1, period=2 * np.pi)[1], wrapped.max()


@program(lambda r: (r.normal(size=(4, 5)), np.cumsum(r.uniform(0.5, 1, 5))))
def divergence_and_curl(u, x):
    dy, dx = np.gradient(u, 0.5, x)
    d2 = np.gradient(dx, x, axis=1, edge_order=2)
    flow = np.stack([dx, dy])
    return dx, d2, np.gradient(flow, axis=0)[0], sum(np.gradient(f, axis=k) for k, f in enumerate(flow)).T


@program(lambda r: (r.normal(size=20), r.uniform(0.1, 1, 20)))
def weighted_bins_and_their_density(x, w):
    edges = np.array([-9, -0.5, 0, 0.7, 9.0])
    h, e = np.histogram(x, bins=edges, weights=w)
    which = np.digitize(x, edges[1:-1])
    sums = np.bincount(which, weights=x * w, minlength=4)
    means = np.array([np.average(x[which == k], weights=w[which == k]) for k in range(4) if (which == k).any()])
    d, _ = np.histogram(x, bins=edges, density=True)
    h2, _, _ = np.histogram2d(x, w, bins=[2, 2], range=[[-3, 3], [0, 1]])
    return h, sums, means.sum(), d, h2, e


@program(lambda r: (r.normal(size=(3, 9)), r.uniform(5, 95, 3)))
def percentiles_of_rows_at_given_places(x, q):
    q25, q75 = np.percentile(x, [25, 75], axis=1)
    at = np.quantile(x[0], q / 100)
    iqr = q75 - q25
    keep = np.abs(x - np.median(x, axis=1, keepdims=True)) < 2 * iqr[:, None]
    low = np.percentile(x, 30, axis=0, method="lower")
    return at, iqr, np.where(keep, x, 0).mean(1), low, np.nanpercentile(np.where(keep, x, np.nan), 40, axis=1)


@program(lambda r: (r.integers(0, 4, 11), r.normal(size=11)))
def statistics_by_label(k, x):
    values, first, inverse, counts = np.unique(k, return_index=True, return_inverse=True, return_counts=True)
    sums = np.zeros(len(values))
    np.add.at(sums, inverse, x)
    means = sums / counts
    centred = x - means[inverse]
    tops = np.full(len(values), -np.inf)
    np.maximum.at(tops, inverse, centred)
    order = np.lexsort((x, k))
    starts = np.searchsorted(k[order], values)
    return np.add.reduceat(x[order], starts) - sums, (centred**2).sum(), tops.sum(), x[first].sum(), x[order]


@program(lambda r: (np.sort(r.normal(size=7)), r.normal(size=7), r.uniform(-2, 2, 5)))
def tables_read_between_their_rows(xp, fp, x):
    a = np.interp(x, xp, fp)
    b = np.interp(x, xp, fp, left=-1, right=xp[-1])
    c = np.interp(0.3, xp, fp**2)
    j = np.clip(np.searchsorted(xp, x) - 1, 0, 5)
    t = (x - xp[j]) / (xp[j + 1] - xp[j])
    d = fp[j] * (1 - t) + fp[j + 1] * t
    inverse = np.interp(x, fp.cumsum() * 0 + np.arange(7), np.exp(xp))
    return a, b, c, np.where((x > xp[0]) & (x < xp[-1]), a - d, 0), inverse


@program(lambda r: (r.normal(size=13),))
def moving_averages_three_ways(x):
    k = np.array([0.25, 0.5, 0.25])
    a = np.convolve(x, k, mode="same")
    c = np.cumsum(np.insert(x, 0, 0))
    b = (c[3:] - c[:-3]) / 3
    d = np.convolve(np.pad(x, 2, mode="reflect"), np.ones(5) / 5, "valid")
    e = np.correlate(x, x[:4], "full")
    return a, b - np.convolve(x, np.ones(3) / 3, "valid"), d, e, np.convolve(a[:3], b)


@program(lambda r: (r.normal(size=(3, 6)),))
def holes_in_the_data(x):
    x[1, 2:4] = np.nan
    x[2, 0] = np.nan
    m = np.isnan(x)
    mean = np.nanmean(x, axis=0)
    i, j = np.where(m)
    filled = x.copy()
    filled[i, j] = mean[j]
    line = filled[1]
    good = ~m[1]
    line[m[1]] = np.interp(np.flatnonzero(m[1]), np.flatnonzero(good), x[1][good])
    return (
        filled,
        np.nansum(x * x),
        np.nanstd(x, 1),
        np.nanmax(x, axis=1),
        np.nancumsum(x[1]),
        np.nan_to_num(x)[2],
        np.nanargmin(x),
    )


@program(lambda r: (r.normal(size=10),))
def ranks_with_ties_and_inverse_permutations(x):
    x[3] = x[7]
    order = np.argsort(x, kind="stable")
    rank = np.empty(10, dtype=int)
    rank[order] = np.arange(10)
    s = x[order]
    new = np.r_[True, s[1:] != s[:-1]]
    dense = new.cumsum()[rank]
    part = np.partition(x, 4)
    score = (rank + 1) * x
    return score, dense, part[4], part[:4].sum(), np.sort(-x)[::-1] @ s, x[np.argpartition(x, -3)[-3:]].prod()


@program(lambda r: (r.uniform(0.5, 2, 6), r.normal(size=6)))
def piecewise_curves_joined(x, y):
    f = np.piecewise(x, [x < 0.8, (x >= 0.8) & (x < 1.4)], [lambda t, s: t**s, lambda t, s: s * t, -1.0], 3)
    g = np.select([y < -0.5, y < 0.5], [np.exp(y), y**3 + x], default=x)
    h = np.choose((y > 0) + 0, [x, y * 2])
    k = np.where(x > 1, np.where(y > 0, x * y, x / (1 + y * y)), 0)
    return f, g, h, k, np.heaviside(y, 0.5) * y, np.sign(y) * np.sqrt(np.abs(y) + 0.1)


@program(lambda r: (r.normal(size=4), r.normal(size=3)))
def repeated_tiled_and_crossed(a, b):
    r1 = np.repeat(a, [2, 0, 1, 3])
    r2 = np.repeat(np.outer(a, b), 2, axis=1)
    t = np.tile(b, (2, 2)) * np.tile(a[:2, None], (1, 6))
    k = np.kron(np.diag(b), a)
    x, y = np.meshgrid(a, b, indexing="ij", sparse=True)
    c = np.c_[a[:3], b, np.ones(3)]
    r3 = np.r_[a, 0, b[::-1], np.r_["-1", b, 2]]
    return r1, r2[:, ::3], t, k, x * y - x, np.cross(c[0], c), r3, np.vander(b, 4), np.linspace(a[0], b[0], 4)


@program(lambda r: (r.normal(size=15), np.sort(r.choice(15, 4, replace=False))))
def spans_between_events(x, at):
    c = np.concatenate([[0.0], x.cumsum()])
    spans = c[at[1:]] - c[at[:-1]]
    tail = np.add.reduceat(x, at)
    mx = np.maximum.reduceat(x, at)
    since = np.arange(15) - np.maximum.accumulate(np.where(np.isin(np.arange(15), at), np.arange(15), 0))
    return spans - tail[:-1], mx, (x * 0.9**since).sum(), np.split(x, at)[1].sum(), np.diff(c, 2, prepend=0)


@program(lambda r: (r.normal(size=(6, 2)),))
def covariance_by_every_name(x):
    c = np.cov(x, rowvar=False)
    d = x - x.mean(0)
    e = np.einsum("ni,nj->ij", d, d) / 5
    r = np.corrcoef(x.T)
    w = np.cov(x.T, aweights=np.arange(1.0, 7), ddof=0)
    z = d / x.std(axis=0, ddof=1)
    return c - e, r[0, 1] - (z[:, 0] * z[:, 1]).sum() / 5, w, np.var(x, axis=1), (z**3).mean(0), np.ptp(x, axis=0)


@program(lambda r: (r.normal(size=7), r.normal(size=7)))
def differences_divided_by_newton(x, y):
    x = x + 3 * np.arange(7)
    c = y.copy()
    for k in range(1, 7):
        c[k:] = (c[k:] - c[k - 1 : -1]) / (x[k:] - x[:-k])
    v = c[-1]
    for k in range(5, -1, -1):
        v = v * (1.5 - x[k]) + c[k]
    w = np.array([np.prod(x[i] - np.delete(x, i)) for i in range(7)])
    return c[:4], np.tanh(v), np.tanh((y / w).sum() * 1e4)
