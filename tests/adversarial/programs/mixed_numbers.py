"""Mixed numbers: half and single, integers and booleans as arguments, complex steps, 0-d, empty, identities."""

import numpy as np

from tests.adversarial.program import program


@program(
    lambda r: (r.normal(size=5).astype("f2"), r.normal(size=5).astype("f4"), r.integers(1, 5, 5)), order=0, rtol=2e-2
)
def promotions_of_every_pair(h, f, k):
    b = f > 0
    return (
        h + f,
        h * k.astype(np.int8),
        f * k.astype("i2"),
        f * k,
        h * b,
        k / k,
        b / k,
        h**2,
        f**k,
        (h + 1.5).dtype.name,
        b + b,
        b * 2.0,
    )


@program(lambda r: (r.normal(size=(2, 3)).astype("f4"), r.normal(size=(2, 3))), order=1, rtol=1e-3)
def single_precision_state_in_a_double_loop(state, drive):
    total = 0.0
    for _ in range(3):
        state += 0.1 * drive
        state *= np.float32(0.9)
        total = total + (state * drive).sum()
    out = np.empty(3, "f4")
    np.sum(state, axis=0, out=out)
    out -= drive[0].astype("f4")
    return state, out, total, np.multiply(state, drive, dtype="f8"), np.add(state, 1, dtype=float).mean()


@program(lambda r: (np.array(r.normal()), r.normal(size=3), r.normal(size=())))
def zero_dimensional_arguments(a, x, s):
    a += x[0]
    b = a[...]
    b *= 2
    c = np.add.outer(a, x)
    d = x.sum(out=np.zeros(()))
    e = a[None] * x[:, None] - s
    return (
        a,
        c,
        d,
        e,
        np.atleast_1d(s) ** 2,
        np.stack([a, a * s]),
        np.where(a > 100, a, x),
        a.reshape(1, 1) @ np.ones((1, 2)),
    )


@program(lambda r: (r.normal(size=(0, 3)), r.normal(size=(3, 2)), r.normal(size=4)))
def nothing_in_the_middle(e, a, x):
    y = e @ a
    z = np.concatenate([e, a.T, e])
    none = x[x > 99]
    x[none.astype(int)] = 5
    x[4:] += none
    return (
        y,
        z,
        none.sum(),
        np.prod(none) * x,
        y.sum(0),
        np.vstack([e, a[:, :1].T]),
        e.T.reshape(0),
        np.add.reduceat(x, [0, 2]),
        a[:0].mean(axis=1),
        np.sort(none),
    )


@program(lambda r: (r.random(9) < 0.5, r.normal(size=9)))
def masks_as_arguments_and_counters(b, x):
    n = b.sum()
    x[b] = x[b][::-1]
    runs = np.diff(np.flatnonzero(np.diff(np.r_[0, b, 0])))
    b[::2] = ~b[::2]
    odd = np.logical_xor.accumulate(b)
    y = np.where(odd)[0]
    x[y] -= np.arange(len(y))
    return (
        x,
        runs,
        b,
        odd,
        x @ b,
        x[np.nonzero(b)].sum() / max(n, 1),
        (b & odd) | ~b,
        np.count_nonzero(b),
        b.any() and x[0],
    )


@program(lambda r: (r.integers(-20, 20, 12), r.uniform(1, 2, 3)))
def integers_that_drive_floats(k, x):
    q, m = np.divmod(k, 7)
    bits = (np.abs(k)[:, None] >> np.arange(5)) & 1
    c = np.polynomial.polynomial.polyval(x, k[:3] / 10)
    k[k < 0] += 5
    w = x[m % 3] ** (q / 2)
    gcd = np.gcd.reduce(np.abs(k) * 6 + 6)
    return (
        w,
        c,
        bits @ (x[0] ** np.arange(5)),
        gcd,
        k.cumsum()[-1] * x,
        np.floor_divide(-k, 4),
        np.remainder(-x, 0.75),
        np.fmod(-x, 0.75),
        k,
    )


@program(lambda r: (r.normal(size=4), r.normal(size=4) + 1j * r.normal(size=4)))
def complex_step_and_its_neighbours(x, z):
    f = lambda v: np.exp(v) * np.sin(v) + v**3
    step = f(x + 1e-20j).imag / 1e-20
    z[1:] *= z[:-1].conj()
    w = np.exp(1j * np.cumsum(x))
    z.real[...] = np.sort(z.real)
    return (
        step,
        z,
        (w * z).sum(),
        np.abs(z) ** 2 - (z * z.conj()).real,
        np.angle(w[:2] * 2),
        np.polyval(z, 0.3 + 0.1j),
        1 / z,
        z.conj() @ w,
    )


@program(lambda r: (r.normal(size=(2, 2)) + 1j * r.normal(size=(2, 2)), r.normal(size=2)))
def moebius_chain_and_spinor(m, x):
    h = m + m.conj().T
    w, v = np.linalg.eigh(h)
    evolved = v @ (np.exp(-0.3j * w) * (v.conj().T @ x))
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    bloch = np.einsum("i,kij,j->k", evolved.conj(), pauli, evolved).real
    z = x + 0.5j
    for _ in range(3):
        z = (m[0, 0] * z + m[0, 1]) / (m[1, 0] * z + m[1, 1] + 3)
    return np.abs(evolved), bloch, z, np.linalg.det(m), np.linalg.inv(m + 2), np.kron(h, h).trace().real


@program(lambda r: (r.uniform(0.2, 0.8, 5),))
def logs_of_probabilities(p):
    logit = np.log(p) - np.log1p(-p)
    total = np.logaddexp.reduce(logit)
    pair = np.logaddexp(logit[:, None], logit)
    entropy = -(p * np.log2(p)).sum() - np.dot(1 - p, np.log2(1 - p))
    soft = np.exp(logit - total)
    return (
        total,
        soft.sum() - 1,
        pair,
        entropy,
        np.expm1(np.log1p(p)) - p,
        np.logaddexp2(p, 1),
        np.sinc(p),
        np.exp2(p),
        np.cbrt(p),
    )


@program(lambda r: (r.normal(size=6).astype("f4"),), order=1, rtol=2e-3)
def compensated_and_plain_sums(x):
    s, c = np.float32(0), np.float32(0)
    for v in x:
        y = v - c
        t = s + y
        c = (t - s) - y
        s = t
    big = np.concatenate([np.full(1, 1e4, "f4"), x])
    return (
        s,
        x.sum(dtype="f8"),
        np.cumsum(x),
        big.astype("f8").sum() - 1e4,
        np.add.accumulate(x, dtype=np.float64),
        x.mean(dtype="f8"),
    )


@program(lambda r: (r.integers(0, 9, 6), r.integers(0, 2, 6).astype(bool), 3, 2.5, True, r.normal(size=6)))
def plain_numbers_among_the_arguments(k, b, n, scale, flag, x):
    y = x * scale if flag else x / scale
    y[:n] += k[:n]
    y[b] *= n
    if n > 2 and not flag:
        return y
    shifted = np.roll(y, n) - y * flag
    return shifted, y.reshape(-1, n), np.full(n, scale) * y[:n], range(n)[-1], k * flag, n * scale


@program(lambda r: (r.normal(size=5),))
def signs_rounding_and_bits_of_floats(x):
    m, e = np.frexp(x)
    f, i = np.modf(3 * x)
    up = np.nextafter(x, np.inf)
    return (
        np.ldexp(m, e) - x,
        f + i,
        np.copysign(x, -1),
        np.ceil(x) - np.floor(x),
        np.rint(2 * x),
        np.trunc(x),
        np.round(x, 2),
        up > x,
        np.spacing(1.0),
        np.fabs(x),
        np.signbit(x),
    )


@program(lambda r: (r.normal(size=4), r.uniform(1, 2, 4)))
def out_of_order_arithmetic_of_scalars(x, y):
    a, b, c, d = x
    det = a * d - b * c
    y[0] -= det
    total = 1 / y[1] + y[2] ** -2 + 2 ** y[3] - (-a) // 10 * 0
    first = divmod(7.5, y[3])[1]
    return (
        det,
        y,
        total,
        first,
        max(a, b, key=abs),
        abs(-c),
        -d,
        +a,
        pow(y[1], 3),
        sum([a, b], start=c),
        np.hypot(a, b) % 1.0,
    )


@program(lambda r: (r.normal(size=(3, 4)),))
def arrays_of_arrays_and_of_lists(x):
    a = np.array([x[0], [1.0, 2, 3, x[1, 1]], list(x[2])])
    b = np.asarray([[x[0, 0], 2], [True, x[1, 0]]])
    c = np.stack([x, a], -1)
    d = np.hstack([x[:, :1], x[:, 2:] * 0, np.ones((3, 1))])
    e = np.column_stack([x[:, 0], x[:, 1] ** 2])
    x[0] = 0
    return (
        a,
        b,
        c.sum(-1),
        d,
        e,
        np.concatenate((x, a), axis=None)[::5],
        np.array([row.sum() for row in x]),
        np.vstack([x[1], a[1]]),
    )


@program(lambda r: (r.normal(size=5), r.normal(size=(2, 5))))
def ufuncs_with_every_keyword(x, y):
    out = np.zeros((2, 5))
    np.multiply(x, y, out=out, where=y > 0)
    (res,) = (np.subtract(out, 1, out=(out,)),)
    np.add.at(x, [0, 0, 4], [1.0, x[1], 2])
    np.multiply.at(y, (slice(None), [1, 1]), 2.0)
    np.negative.at(x, [2, 3])
    q, r = np.divmod(np.abs(y) + 1, 0.3, out=(None, out))
    return (
        out,
        res is out,
        x,
        y,
        q,
        np.subtract.outer(x, y[0]).shape,
        np.minimum.reduce(y, axis=None),
        np.multiply.reduce(y, axis=1, keepdims=True),
        r.sum(),
        np.logical_and.reduce(y > -9),
    )


@program(lambda r: (r.normal(size=6), r.normal(size=6).astype("f4") + 1j), order=1, rtol=1e-3)
def complex_single_with_real_double(x, z):
    a = z.astype(np.complex64) * x.astype(np.float32)
    b = z * x
    z[:2] = x[:2]
    z.imag[3:] -= 1
    return (
        a,
        b,
        z,
        np.abs(a).dtype.name,
        a.real.sum(),
        np.real_if_close(b.real),
        np.isrealobj(a),
        np.fft.fft(a.real)[1].real * 0,
    )
