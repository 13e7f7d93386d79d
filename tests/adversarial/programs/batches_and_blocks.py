"""Batches and blocks: borders, windows, ramps and tables that functions make around arrays, and indices from arrays."""

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.random((4, 5)),))
def borders_of_every_kind(a):
    total = 0
    for mode, more in (
        ("constant", {"constant_values": 2.5}),
        ("constant", {"constant_values": ((1, 2), (3, 4))}),
        ("edge", {}),
        ("reflect", {}),
        ("symmetric", {"reflect_type": "odd"}),
        ("wrap", {}),
        ("linear_ramp", {"end_values": -1.0}),
        ("mean", {"stat_length": 2}),
        ("maximum", {}),
    ):
        p = np.pad(a, ((1, 2), (2, 1)), mode=mode, **more)
        total = total + p * p.shape[0] ** 0.5
    return total, np.pad(a[0], (2, 0)), np.pad(a, 1, constant_values=-np.inf).max(0)[1:-1]


@program(lambda r: (r.random((6, 5)),))
def best_paths_with_infinite_borders(cost):
    best = np.pad(cost[0], 1, constant_values=np.inf)
    choice = []
    for row in cost[1:]:
        three = np.stack([best[:-2], best[1:-1], best[2:]])
        choice.append(three.argmin(0))
        best[1:-1] = row + three.min(0)
    j = best[1:-1].argmin()
    path = [j]
    for c in reversed(choice):
        j += c[j] - 1
        path.append(j)
    marked = np.zeros_like(cost)
    marked[np.arange(6)[::-1], path] = 1
    return (marked * cost).sum(), best[1:-1], np.array(path)


@program(lambda r: (r.normal(size=(5, 4)), r.integers(0, 4, 5)))
def rows_and_their_own_columns(a, k):
    rows = np.arange(5)
    picked = a[rows, k]
    a[rows, k] = 0
    a[rows[:, None], [[0, 1]]] += picked[:, None]
    b = a[:, k]
    c = a[k % 2][:, [3, 0]]
    d = a[k[0]]
    d -= 1
    e = a[..., k[1]]
    e *= 2
    return picked, a, b, c, a[(k > 1).nonzero()].sum(0), np.take(a, k, axis=1, mode="wrap")[0]


@program(lambda r: (r.normal(size=(3, 6)),))
def running_windows_and_their_statistics(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
    mean, high = w.mean(-1), w.max(-1)
    x[:, 2] = 0
    again = w.std(axis=-1)
    v = np.lib.stride_tricks.sliding_window_view(x[::-1, ::2], (2, 2))
    x[0] *= 2
    return mean, high, again, v.sum((2, 3)), np.median(w, axis=-1), w[:, ::2, 1]


@program(lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 2)), r.normal(size=2)))
def layers_stacked_by_every_function(a, b, c):
    s = np.stack([a, b.T, np.tile(c[:, None], 3)], axis=1)
    t = np.concatenate([a.ravel(), c, b.T.flat], dtype=float)
    u = np.dstack([a, b.T])[..., ::-1]
    u[0] = 1
    v = np.hstack([a, c[:, None]]) @ np.vstack([b, c])
    w = np.append(a, [c[[0, 1, 0]]], axis=0)
    w[-1] *= 2
    x = np.insert(b, 1, c, axis=0)
    y = np.r_["0,2", c, v[0], 1:3]
    return s, t, u, v, w, x, y, np.array_split(t, 5)[1] * np.broadcast_to(c[0], (3,))


@program(lambda r: (r.normal(size=(3, 5)),))
def orders_and_ranks_of_every_row(x):
    order = x.argsort(axis=1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(5)[None], axis=1)
    top = np.take_along_axis(x, order[:, -2:], axis=1)
    y = np.sort(x, axis=0)
    y[ranks[:, 0] > 2] = 0
    x.sort()
    i = x.argmax(1)
    x[np.arange(3), i] -= 1
    part = np.partition(x, 2, axis=1)[:, 2]
    flat = np.unravel_index(np.argsort(x, axis=None)[-2:], x.shape)
    return ranks, top, y, x, part, x[flat].sum()


@program(lambda r: (r.normal(size=(4, 4)),))
def neighbours_by_rolling_and_by_slices(a):
    ring = sum(np.roll(a, s, axis) for s in (1, -1) for axis in (0, 1)) - 4 * a
    inner = np.zeros_like(a)
    inner[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]
    mask = np.zeros(a.shape, bool)
    mask[1:-1, 1:-1] = True
    a[mask] += 0.1 * inner[mask]
    a[~mask] = ring[~mask] * 0.1
    edge = np.concatenate([a[0], a[1:, -1], a[-1, -2::-1], a[-2:0:-1, 0]])
    return a, edge, np.where(mask, ring, inner).sum(0), np.flip(np.rollaxis(a, 1), 0)[0]


@program(lambda r: (r.normal(size=10), np.sort(r.uniform(0, 1, 4))))
def tables_made_with_given_edges(x, e):
    low = np.linspace(e[0], e[-1], 5)
    ramp = np.geomspace(e[1] + 1, e[2] + 2, 3)
    steps = e[0] + np.arange(4) * (e[3] - e[0])
    grid = np.add.outer(low, steps)
    bins = np.searchsorted(e, np.abs(x))
    level = np.append(e, 2.0)[bins]
    h, _ = np.histogram(np.abs(x), bins=[0, 0.5, 1.0, 9.0], weights=x)
    m = np.logspace(0, e[0], 3)
    f = np.fromfunction(lambda i, j: i * e[0] + j, (2, 3))
    return (
        ramp,
        grid[::2],
        level * x,
        h,
        m,
        f,
        np.full((2, 2), e[1]),
        np.tri(2) * e[2],
        np.diag(e, 1)[0],
        np.identity(2) * e[3],
    )


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=(3, 4))))
def reductions_into_parts_of_results(x, y):
    out = np.zeros((3, 4))
    np.mean(x, axis=0, out=out[0])
    np.max(x, axis=1, out=out[:, 3])
    np.cumprod(y[1], out=out[2])
    np.add.reduce(y, axis=1, out=out[:, 1])
    np.var(y, axis=0, out=y[2])
    np.dot(x, y.T[:, 0], out=np.ascontiguousarray(out[:, 0]))
    np.add.reduceat(x, [0, 2], axis=1, out=out[:, ::2])
    np.multiply.outer(x[0, :3], y[0], out=x)
    np.take(y, [2, 0], axis=0, out=out[:2], mode="clip")
    np.clip(x, -1, y, out=x)
    np.round(x[0], 3).sum()
    return out, x, y


@program(lambda r: (r.normal(size=(2, 3, 3)), r.normal(size=(2, 3))))
def one_factorisation_for_many_right_sides(a, b):
    s = np.einsum("bij,bkj->bik", a, a) + np.eye(3)
    low = np.linalg.cholesky(s)
    half = np.zeros_like(b)
    for i in range(3):
        half[:, i] = (b[:, i] - np.einsum("bj,bj->b", low[:, i, :i], half[:, :i])) / low[:, i, i]
    full = np.zeros_like(b)
    for i in reversed(range(3)):
        full[:, i] = (half[:, i] - (low[:, i + 1 :, i] * full[:, i + 1 :]).sum(-1)) / low[:, i, i]
    logdet = 2 * np.log(np.diagonal(low, axis1=1, axis2=2)).sum(-1)
    return full - np.linalg.solve(s, b[..., None])[..., 0], full, logdet, np.linalg.inv(s).trace(axis1=1, axis2=2)


@program(lambda r: (r.normal(size=(4, 8)),))
def frames_filtered_by_a_mask_of_frequencies(x):
    window = np.hamming(8)
    f = np.fft.rfft(x * window)
    f[:, 3:] = 0
    f[1:] += 0.5 * f[:-1]
    f.imag[:, 0] = 0
    y = np.fft.irfft(f, axis=-1)
    out = np.zeros(20)
    norm = np.zeros(20)
    for k, frame in enumerate(y):
        out[4 * k : 4 * k + 8] += frame * window
        norm[4 * k : 4 * k + 8] += window**2
    np.divide(out, norm, out=out, where=norm > 1e-3)
    return out, np.abs(f).max(1), np.fft.fftshift(np.fft.fft(x[0]))[3].imag, np.fft.ifftn(np.fft.fftn(x) * 0.5).real[0]


@program(lambda r: (r.normal(size=(3, 4)), r.integers(-4, 4, 5)))
def negative_steps_and_indices(a, k):
    b = a[::-1, ::-2]
    b[0] += 1
    c = a.T[k[0] :: -1] if k[0] >= 0 else a.T[k[0] :: -1][:1]
    v = a[-1, k]
    a[-1, -1] = v.sum()
    w = a[1:-1:-1]
    r = a[:, -2:][:, ::-1]
    r[...] = r.copy()[::-1]
    return a, b, c.sum(), v, w.size, a.ravel()[::-3], a[-3:, -3:].trace()


@program(lambda r: (r.normal(size=(2, 2, 3)),))
def axes_given_by_names(x):
    axis = {"batch": 0, "row": 1, "column": -1}
    y = x.sum(axis=(axis["batch"], axis["column"]))
    z = np.moveaxis(x, axis["column"], axis["batch"])
    z[0] = y
    n = np.linalg.norm(x, axis=axis["column"], keepdims=True)
    x /= n
    q = np.quantile(x, [0.25, 0.5], axis=axis["row"])
    m = np.apply_along_axis(lambda v: v[0] * v, 2, x)
    c = np.cross(x[:, 0], x[:, 1])
    d = np.diff(x, axis=axis["column"], append=0)
    return (
        y,
        x,
        q,
        m,
        c,
        d,
        np.ptp(x, axis=axis["row"]),
        np.average(x, axis=-1, weights=[1, 2, 3]),
        np.flip(x, (0, 2))[0],
    )
