"""Numbers and names: what a name keeps when another one is written, several results, and lists among arrays."""

import functools

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(4, 3)),))
def best_so_far_is_kept(x):
    best = np.linalg.norm(x[0], 3)
    history = [best]
    for row in x[1:]:
        now = np.linalg.norm(row, 3)
        if now < best:
            best = now
        now *= 0.5
        best += 0.1 * now
        history.append(best)
    return np.array(history), best


@program(lambda r: (r.normal(size=7), r.normal(size=7)))
def totals_carried_under_two_names(x, y):
    total = start = np.inner(x, y)
    low = high = np.median(x)
    for k, v in enumerate(y):
        total += v * k
        low = min(low, v)
        high = max(high, v)
        high -= 0.01
    spread = kept = np.var(x)
    spread **= 0.5
    spread /= 2
    return total, start, low, high, spread, kept


@program(lambda r: (r.uniform(1, 9, 6), r.uniform(0.3, 2, 6)))
def quotients_and_remainders_kept_apart(x, y):
    q, r = np.divmod(x, y)
    whole, part = q, r
    r += q
    q *= 0
    f, i = np.modf(x, out=(np.empty(6), x[::-1].copy()))
    m, e = np.frexp(y)
    np.divmod(x, 2.5, out=(y, None))
    np.modf(x, where=y > 1, out=(x, y))
    return whole, part, f * i, np.ldexp(m, e + 1), x, y


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=4)))
def lists_and_tuples_written_among_arrays(a, v):
    a[0] = [1, 2, 3, 4]
    a[1, :2] = (v[0], 5)
    a[:, 3] = [v[1], 0.5, v[2] * v[3]]
    a[[0, 2], [1, 1]] = [7, v.sum()]
    v[...] = list(range(4))
    v[1:3] += [0.5, -0.5]
    a -= [[1], [v[1]], [a[0, 0]]]
    b = np.zeros((2, 2))
    b[:] = [[a[0, 1], 1], [2, a[2, 2]]]
    return a * v, b, v


@program(lambda r: (r.normal(size=5), r.normal(size=(2, 5))))
def elements_are_numbers_and_rows_are_views(x, m):
    first, row, one = x[0], m[0], m[1, ...]
    first += 10
    row += 10
    one[...] = first
    part = x[1:2]
    part *= 3
    n = x[1]
    n -= 1
    x[0] *= 2
    return x, m, first, n, row.max(), (lambda v: v.__iadd__(1))(x[4:]), x[4]


@program(lambda r: (r.normal(size=6),))
def several_targets_in_one_statement(x):
    a = b = x[:3] * 2
    a += 1
    c, d = d, c = x[3:], x[:3]
    c[0], d[0] = d[0], c[0] * 2
    (e, *f), g = x[1:5], x[5]
    f.append(e)
    e += 1
    x[0], x[1], x[2] = x[2], x[0], x[1]
    i = 0
    i, x[i] = 3, 9.0
    x[i], i = x[i] * 2, 4
    x[i] = i
    return x, b, c + d, f, e, g


@program(lambda r: (r.normal(size=4), r.normal(size=4)))
def defaults_and_keywords_that_are_arrays(x, y):
    def step(a, scale=y, *rest, out=x, **more):
        out[: len(rest)] += [v * 2 for v in rest]
        out *= more.get("damp", 1.0)
        return a @ scale + out.sum()

    first = step(x, y[::-1], x[0], damp=0.5)
    second = step(*[x * 1], damp=y[1])
    third = functools.partial(step, scale=x)(y, out=y)
    return first, second, third, x, y


@program(lambda r: (r.normal(size=8),))
def sums_of_none_and_of_one(x):
    empty = sum(v for v in x if v > 99)
    one = sum(v for v in x[:1])
    one += 1
    start = sum(x[2:4], start=x[1])
    prod = np.prod([v for v in x if v > 99]) * x[0]
    least = min((v for v in x if v > 99), default=x[5])
    least += 2
    stacked = np.array([empty, one, prod, least, np.sum([]), *x[:2]])
    return stacked, x, start, any(x > 99) or x[2], all(x < 99) and x[3]


@program(lambda r: (r.normal(size=(3, 3)),))
def scalars_of_a_matrix_kept_while_it_changes(a):
    trace, det, top = np.trace(a), np.linalg.det(a), a.max()
    mean, deviation = a.mean(), a.std()
    a -= mean
    a /= deviation
    mean += deviation
    a[0, 0] = trace
    trace *= det
    corner = a[-1, -1]
    a[...] = a.T @ a
    corner += a[-1, -1]
    return a, trace, det, top, mean, corner


@program(lambda r: (r.normal(size=5) + 1j * r.normal(size=5),))
def parts_of_complex_numbers_kept(z):
    one = z[1]
    re, im = one.real, one.imag
    re += 1
    im *= 2
    back = complex(1, 2) * one.conjugate() + re - 1j * im
    z.real[1:] = [1, 2, re, im]
    c = z.conj()
    c += 1
    size = np.abs(z[0])
    size -= 0.5
    w = z[2:3].imag
    w -= size
    return z, c, back, size, one


@program(lambda r: (r.normal(size=6), r.integers(0, 6, 6)))
def integers_kept_while_they_move(x, k):
    i = first = k[0]
    i += 1
    i %= 6
    x[first] += 1
    x[i] *= 2
    count = before = np.count_nonzero(k > 2)
    count += 1
    j = np.argmin(x)
    start = j
    j -= 1
    k[k == first] = i
    where = np.searchsorted(np.sort(x), 0.1)
    where //= 2
    n = k.sum()
    n **= 2
    return x, first, i, count, before, x[j] - x[start], k, where, n


@program(lambda r: (r.normal(size=(2, 6)),))
def numbers_of_nan_functions_accumulated(x):
    x[0, 2] = np.nan
    total, shown = 0.0, []
    for row in x:
        m = np.nanmean(row)
        shown.append(m)
        m *= 2
        s = np.nanstd(row)
        t = s
        s -= np.nanmax(row)
        total += m + s * t
        q = np.nanmedian(row)
        shown.append(q)
        q += 1
    return np.array(shown), total, np.nanvar(x), np.nanpercentile(x[0], 40)


@program(lambda r: (r.uniform(0, 1, 6),))
def property_over_a_number_of_an_array(x):
    class Gauge:
        def __init__(self, data):
            self.data, self.total, self.peak = data, data.sum(), data[0]

        @property
        def level(self):
            return self.data[1]

        @level.setter
        def level(self, value):
            self.data[1] = value

        @property
        def tail(self):
            return self.data[3:]

        @tail.setter
        def tail(self, value):
            assert value.base is not None

    g = Gauge(x)
    seen, peak = g.level, g.peak
    g.level += 2
    g.total -= g.level
    g.peak *= 3
    g.tail += [1, 2, 3]
    return x, seen, peak, g.level, g.total, g.peak


@program(lambda r: (r.normal(size=(3, 2)),))
def loop_variables_written(a):
    for row in a:
        for v in row:
            v += 100
        row *= 2
    for k, v in enumerate(a[:, 0]):
        a[k, 1] += v
        v = a[k]
        v -= 1
    for i, part in zip(range(2), np.split(a, 3)):
        part += i
    for (x, y), z in zip(a, a.sum(1)):
        x, y = y, x
        z -= x * y
    return a, x, y, z, v


@program(lambda r: (r.normal(size=4), 2.0, 3))
def python_numbers_beside_arrays(x, scale, n):
    scale *= x[0]
    kept = scale
    scale += 1
    n += 1
    total = 0
    for k in range(n):
        total += x[k] ** (k + 1)
        if k == 1:
            early = total
    power = 2 ** x[1]
    power /= n
    x[n - 1] = total
    return x, kept, scale, early, total, power, divmod(n, 3), round(n / 3, 2)


@program(lambda r: (r.normal(size=(2, 3, 2)),))
def where_and_select_make_arrays_of_their_own(x):
    a = np.where(x > 0, x, 0)
    b = np.where(True, x[0, 0, 0], x[1, 1, 1])
    c = b
    b += 1
    d = np.select([x[0] > 0, x[0] <= 0], [x[0], x[1]])
    d[0] = 5
    e = np.choose([0, 1], [x[0, 0], x[1, 0]])
    e *= 2
    f = np.array(x[0, 1, 0])
    g = f
    f *= 3
    h = np.squeeze(x[:1, :1, :1])
    h += 7
    t = np.tensordot(x[0, :, 0], x[1, :, 1], 1)
    u = t
    t -= 1
    return x, a, c, d, e, g, u
