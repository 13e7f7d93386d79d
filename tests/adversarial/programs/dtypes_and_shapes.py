"""Types and shapes: float32, float16, integers, booleans, bits, 0-d, empty, one element, broadcasting, orders."""

import math

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(3, 4)).astype(np.float32), r.normal(size=4)), order=1, rtol=1e-3)
def single_times_double(a, b):
    c = a * b
    a *= 2
    d = a + np.float32(1)
    return c, d, a @ a.T, c.dtype == np.float64, d.dtype.itemsize


@program(lambda r: (r.normal(size=6).astype(np.float32),), order=1, rtol=1e-3)
def python_scalars_do_not_widen(a):
    b = a * 2.0 + 1
    b /= 3
    s = float(a.sum()) * a
    z = np.zeros(6, np.float32)
    z += a.astype(float) ** 2
    return b, s, z, np.mean(a), np.sum(a, dtype=np.float64)


@program(lambda r: (r.normal(size=5).astype(np.float16), r.normal(size=5).astype(np.float32)), order=0, rtol=1e-2)
def half_and_single(h, s):
    t = h + s
    h += 1
    u = h * h
    return t, u, u.sum(), np.stack([h, h.astype(np.float16)]).mean(0), t.dtype.name == "float32"


@program(lambda r: (r.normal(size=6),), order=1, rtol=1e-2)
def rounded_through_single(x):
    y = x.astype(np.float32)
    z = (y * y).astype(np.float64)
    w = np.asarray(z - x * x, dtype=np.float32)
    return z, y.sum(), np.abs(w).max() < 1e-5


@program(lambda r: (r.integers(-5, 9, (3, 4)), r.normal(size=4)))
def integers_times_floats(k, x):
    y = k * x
    k //= 2
    y -= k**2 / 3
    k[0] = y[0] * 10 // 10 * 0
    return y @ k.T, k % 3, k.mean(axis=0), np.true_divide(k, 2).sum()


@program(lambda r: (r.integers(0, 255, 7, dtype="u1"), r.integers(-99, 99, 7, dtype="i1")), order=0, nums=False)
def small_integers_wrap(u, s):
    a = u + np.uint8(100)
    b = s * np.int8(3)
    c = u + s
    u -= 10
    return a, b, c, u, u.sum(), np.add.reduce(u, dtype=np.uint8), c.dtype.name, -u, abs(s)


@program(lambda r: (r.integers(0, 2**16, 8), r.integers(0, 7, 8)), order=0, nums=False)
def bit_tricks(x, k):
    count = np.zeros(8, dtype=int)
    y = x.copy()
    while y.any():
        count += y & 1
        y >>= 1
    low = x & -x
    rev = sum(((x >> b) & 1) << (15 - b) for b in range(16))
    gray = x ^ (x >> 1)
    return count, low, rev, gray, ~x, (x >> k) | (x << 2), np.bitwise_xor.reduce(x), np.left_shift(1, k)


@program(lambda r: (r.normal(size=6), r.random(6) < 0.5))
def booleans_as_numbers(x, b):
    y = x * b - b.sum()
    b ^= x > 0
    y[b] += True
    c = (x > 0).astype(float) * x
    return y, c, b.mean(), b & ~(x < 1), np.logical_xor(b, x), (b + b).dtype == bool, x @ b


@program(lambda r: (r.normal(size=()), r.normal(size=(1,)), r.normal(size=(3, 1))))
def zero_one_and_column(a, b, c):
    d = a * b + c
    e = d * np.array(2.0)
    f = np.add(a, 1)
    g = a[()] ** 2 + a.item()
    e[0] = b
    e[1:] *= a
    return d, e, f, g, np.sum(a), a.reshape(1, 1), float(a) * c.ravel(), b.item() + 1


@program(lambda r: (r.normal(size=(0, 3)), r.normal(size=(4, 3))))
def empty_arrays(e, x):
    a = np.concatenate([e, x])
    b = e @ x.T
    c = e.sum(0) + x.sum(0)
    d = x[x.sum(1) > 1e9]
    s = np.prod(e) + np.sum(b)
    return a, b, c, d, s, np.zeros((3, 0)) @ e, e.T.shape[1], np.cumsum(d, axis=0), e.mean() if e.size else 0.0


@program(lambda r: (r.normal(size=(1,)), r.normal(size=(1, 1)), r.normal(size=5)))
def one_element_arrays(a, b, x):
    x[2] = a[0]
    x[1:2] = b[0]
    x[:] += b.ravel()
    y = x * a if a > 0 else x - a
    return y, max(a, b[0]), [float(v[0]) for v in (a, b[0])], np.squeeze(b) * 2, int(a[0] > 0)


@program(lambda r: (r.normal(size=(4, 1)), r.normal(size=(1, 5)), r.normal(size=(3, 1, 1))))
def broadcasting_three_ways(a, b, c):
    d = a * b + c
    d[0] -= a
    d[:, 1] = b
    d[..., -1] **= 2
    e = a + b
    e -= b
    return d.sum(axis=(0, 1)), e, (a == a.T).sum(), np.broadcast_shapes(a.shape, b.shape)[1]


@program(lambda r: (np.asfortranarray(r.normal(size=(3, 4))), r.normal(size=(4, 3))))
def orders_of_memory(f, c):
    a = f + c.T
    b = np.empty_like(f)
    b[:] = c.T
    k = a.copy(order="K").ravel(order="A")
    r = np.reshape(f, (4, 3), order="A")
    r = r + c
    return k, r, b.ravel("F"), np.array(f, order="C").ravel(), f.flags["F_CONTIGUOUS"], c.T.copy().strides[0]


@program(lambda r: (float(r.normal()), float(r.uniform(1, 2)), 3))
def python_floats_only(a, b, n):
    s = 0.0
    for k in range(n + 2):
        s += a**k / math.factorial(k)
    t = round(b) + abs(a) + max(a, b) * min(a, 1)
    return s, t, a if a > b else b, (a + 1j * b) * (a - 1j * b), divmod(b, 1)[1]


@program(lambda r: (np.float64(r.normal()), np.float32(r.normal())), order=1, rtol=1e-3)
def numpy_scalars(a, b):
    c = a * b
    d = b + 1
    e = np.sin(a).astype(np.float32) * b
    return c, d, e, type(d) is np.float32, a.clip(-0.5, 0.5) + a, a.round(12) * 1.0


@program(lambda r: (r.normal(size=4), r.integers(1, 5, 4)))
def integer_powers_and_divisions(x, k):
    a = x**k
    b = k**2 / x
    c = np.power(2.0, -k) * x
    d = x // 10 * 1.0 + np.mod(x, 10)
    e = (-k) // 2 + (-k) % 3
    return a, b, c, d, e, np.gcd(k, 6), np.lcm.reduce(k)


@program(lambda r: (r.normal(size=6),))
def integers_from_floats_and_back(x):
    k = np.trunc(x * 2).astype(np.int32)
    f = x * 2 - k
    g = np.floor(x) + np.ceil(x) + np.rint(x)
    k[::2] = x[::2] * 4
    return f, g * x, k, k.astype(bool), (k + 0.5) * x


@program(lambda r: (r.normal(size=(3, 3)), r.normal(size=(3, 3)).astype(np.float32)), order=1, rtol=1e-3)
def casting_rules_in_writes(a, b):
    b[0] = a[0]
    b[1:] += a[1:]
    a[:, 0] = b[:, 0]
    try:
        k = np.ones(3, dtype=int)
        k += a[0]
    except TypeError:
        a[2] = 0
    return a, b, np.result_type(a, b).name, np.can_cast(b.dtype, a.dtype)


@program(lambda r: (r.normal(size=(2, 1, 3)), r.normal(size=(4, 1))))
def reductions_with_and_without_axes(x, y):
    z = x - y
    return (
        z.sum(),
        z.mean(axis=(0, 2)),
        z.max(axis=1, keepdims=True) - z,
        np.var(z, axis=-1, ddof=1),
        np.all(z > -9, axis=0),
        z.prod(axis=2).min(),
        np.linalg.norm(z, axis=2),
        np.average(z, axis=1, weights=y[:, 0] ** 2),
    )


@program(lambda r: (r.normal(size=7),))
def comparisons_chained_and_combined(x):
    a = (x > -1) & (x < 1) | (np.abs(x) > 2)
    b = np.logical_and.reduce([x > -1, x < 2, x != 0])
    lo, hi = sorted([x[0], x[1]])
    c = x[2] if lo < x[2] < hi else (lo + hi) / 2
    return np.where(a, x, b), c, np.isclose(x, x + 1e-9).all(), np.array_equiv(x, x[None]), any(x > 1), x.any()


@program(lambda r: (r.normal(size=5),))
def lists_become_arrays(x):
    a = np.array([[x[0], 1], [2, x[1] * x[2]]])
    b = np.asarray([x, x[::-1], range(5)])
    c = np.array([x[:2], [0.5, x[4]]]) @ a
    d = np.sum([x[0], x[1] ** 2, 3])
    e = np.maximum([x[0], 0], [[x[1]], [x[2]]])
    return a, b, c, d, e, np.dot([1, 2], [x[3], x[4]])


@program(lambda r: (r.normal(size=(2, 3)), r.integers(0, 10, (2, 3))))
def types_of_results(x, k):
    parts = [k / 2, k * 1.0, k + x, np.sqrt(k), k.mean(0), np.exp(x) * k, k @ x.T, np.where(k > 3, k, x)]
    names = [p.dtype.kind for p in parts]
    assert names == ["f"] * len(parts)
    return [p.sum() for p in parts], k.sum().dtype.kind, (k > 2).sum() * x


@program(lambda r: (r.normal(size=(2, 2)),))
def deep_dimensions(x):
    y = x.reshape(1, 2, 1, 2, 1)
    z = np.broadcast_to(y, (3, 2, 2, 2, 2)) * np.arange(3).reshape(3, 1, 1, 1, 1)
    w = z.transpose(4, 2, 0, 3, 1).sum((1, 2))
    return w, z.max(axis=(0, -1)), np.swapaxes(z, 0, 3)[1, ..., -1].mean(0), np.ndim(z)


@program(lambda r: (r.integers(1, 50, 8), r.integers(1, 50, 8)), order=0, nums=False)
def euclid_on_arrays(a, b):
    a, b = np.maximum(a, b), np.minimum(a, b)
    while (live := b > 0).any():
        a[live], b[live] = b[live], a[live] % b[live]
    return a, b.any(), a.prod(dtype=np.int64) % 1000007


@program(lambda r: (30,), order=0, nums=False)
def sieve(n):
    prime = np.ones(n, dtype=bool)
    prime[:2] = False
    for p in range(2, int(n**0.5) + 1):
        if prime[p]:
            prime[p * p :: p] = False
    return np.flatnonzero(prime), prime.sum()


@program(lambda r: (r.integers(0, 2**31, 4).astype(np.uint32),), order=0, nums=False)
def xorshift(state):
    out = np.empty((6, 4), np.uint32)
    for row in out:
        state ^= state << np.uint32(13)
        state ^= state >> np.uint32(17)
        state ^= state << np.uint32(5)
        row[:] = state
    return out, out / 2.0**32, np.uint64(out[0, 0]) * np.uint64(3)
