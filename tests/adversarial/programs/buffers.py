"""Scratch arrays, ring buffers, ping-pong buffers, out= and where=, accumulators: memory used again and again."""

import itertools

import numpy as np

from tests.adversarial.program import program


@program(lambda r: (r.normal(size=(6, 3)),))
def scratch_row(x):
    scratch = np.empty(3)
    out = []
    for row in x:
        np.square(row, out=scratch)
        scratch /= scratch.sum()
        out.append(scratch.copy())
    return np.array(out), scratch


@program(lambda r: (r.normal(size=(4, 3)),))
def scratch_kept_without_a_copy(x):
    scratch = np.zeros(3)
    seen = []
    for row in x:
        scratch += row**2
        seen.append(scratch)
    return np.array(seen), seen[0] is seen[-1]


@program(lambda r: (r.normal(size=20),))
def ring_buffer(x):
    ring = np.zeros(5)
    out = np.empty_like(x)
    for k, v in enumerate(x):
        ring[k % 5] = v
        out[k] = ring.mean() + ring[(k + 1) % 5] * 0.5
    return out, ring


@program(lambda r: (r.normal(size=9),))
def ping_pong(x):
    buffers = [x.copy(), np.empty_like(x)]
    for k in range(7):
        src, dst = buffers[k % 2], buffers[(k + 1) % 2]
        dst[1:-1] = (src[:-2] + src[1:-1] + src[2:]) / 3
        dst[[0, -1]] = src[[-1, 0]]
    return buffers[0] - buffers[1]


@program(lambda r: (r.normal(size=(3, 4)), r.normal(size=(4, 3))))
def out_of_everything(a, b):
    c = np.empty((3, 3))
    np.matmul(a, b, out=c)
    np.add(c, c.T, out=c)
    s = np.zeros(3)
    np.sum(c, axis=0, out=s)
    np.cumsum(s, out=s)
    np.divide(c, 1 + s[:, None] ** 2, out=c)
    np.clip(c, -2, 2, out=c)
    r = np.subtract(c, 0.1, c)
    return c, s, r is c


@program(lambda r: (r.normal(size=8), r.normal(size=8)))
def where_keeps_the_old_values(x, y):
    out = y.copy()
    np.log(x, out=out, where=x > 0.1)
    np.divide(y, x, out=out, where=np.abs(x) > 0.5)
    np.add(out, 1, out=out, where=[True, False] * 4)
    s = np.sum(out, where=x < 0)
    return out, s, np.mean(x, where=y > y.min()), np.max(x, where=y > 0, initial=-1.0)


@program(lambda r: (r.normal(size=6),))
def adam_with_slots(w):
    m, v = np.zeros((2, 6))
    for t in range(1, 8):
        g = 2 * w + np.sin(w)
        m *= 0.9
        m += 0.1 * g
        np.multiply(v, 0.99, out=v)
        v += 0.01 * g * g
        w -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-3)
    return w, m, v


@program(lambda r: (r.normal(size=(4, 5)),))
def accumulators_by_axis(x):
    acc = np.zeros(5)
    hist = np.zeros_like(x)
    for k in range(4):
        acc += x[k]
        hist[k] = acc
        acc *= hist[k] > -1
    acc[:] = hist[-1]
    acc[0] = 99
    return acc, hist


@program(lambda r: (r.normal(size=10),))
def prefix_buffer_grows_by_doubling(x):
    buf, n = np.empty(1), 0
    for v in x:
        if n == len(buf):
            bigger = np.empty(2 * n)
            bigger[:n] = buf
            buf = bigger
        buf[n] = v if n == 0 else v + 0.5 * buf[n - 1]
        n += 1
    return buf[:n], len(buf)


@program(lambda r: (r.normal(size=6),))
def stack_machine_on_an_array(x):
    stack = np.zeros(8)
    top = 0
    for k, op in enumerate("vv+vv*-v+n"):
        if op == "v":
            stack[top] = x[k % 6]
            top += 1
        elif op == "n":
            stack[top - 1] = -stack[top - 1]
        else:
            top -= 1
            b, a = stack[top], stack[top - 1]
            stack[top - 1] = {"+": a + b, "*": a * b, "-": a - b}[op]
    return stack[:top], stack


@program(lambda r: (r.normal(size=12), r.normal(size=4)))
def fir_with_a_shifting_line(x, h):
    line = np.zeros(4)
    y = np.zeros(12)
    for n in range(12):
        line[1:] = line[:-1]
        line[0] = x[n]
        y[n] = np.dot(h, line)
    return y


@program(lambda r: (r.normal(size=(5, 2)),))
def preallocated_history_with_none_yet(x):
    history = np.full((5, 2, 2), np.nan)
    for t, row in enumerate(x):
        history[t] = np.outer(row, row)
        if t:
            history[t] += 0.5 * history[t - 1]
    assert not np.isnan(history).any()
    return history[-1], np.nanmax(history[:2])


@program(lambda r: (r.normal(size=5), r.normal(size=5)))
def rebinding_versus_writing(x, y):
    a = x
    a = a + y
    b = x
    b += y
    c = d = np.zeros(5)
    c += a
    d[0] = 3
    return a, b, x, c is d, c


@program(lambda r: (r.normal(size=4),))
def default_argument_as_a_memory(x):
    def remember(v, store=[]):  # noqa: B006
        store.append(v)
        return sum(store)

    return np.array([remember(v * v) for v in x])


@program(lambda r: (r.normal(size=(4, 4)),))
def dot_into_a_slice_of_a_buffer(a):
    big = np.zeros((6, 6))
    view = big[1:5, 1:5]
    np.dot(a, a.T, out=np.zeros((4, 4)))
    view[:] = a @ a
    view.sort(axis=1)
    np.negative(big[::2], out=big[::2])
    return big


@program(lambda r: (r.normal(size=10),))
def in_place_methods(x):
    x.sort()
    y = x[::-1].copy()
    y.partition(4)
    y[:4].sort()
    y[5:].sort()
    z = x.clip(-1, 1, out=np.empty(10))
    x.fill(y[4])
    x.put([1, 2], y[:2])
    return x, y, z


@program(lambda r: (r.normal(size=6),))
def frexp_modf_divmod_into_two_outputs(x):
    f, i = np.empty(6), np.empty(6)
    np.modf(x * 3, out=(f, i))
    q, m = np.divmod(x, 0.7)
    man, e = np.frexp(x)
    return f * x, i, q, m**2, np.ldexp(man, e) - x, e


@program(lambda r: (r.normal(size=8),))
def xor_like_swaps_of_numbers(x):
    a, b = x[:4], x[4:]
    a += b
    b *= -1
    b += a
    a -= b
    return x


@program(lambda r: (r.normal(size=5),))
def several_names_one_memory(x):
    y = np.asarray(x)
    z = np.array(x, copy=False) if np.__version__ < "2" else np.asarray(x)
    w = x.reshape(5)
    v = x[...]
    y[0] += 1
    z[1] *= 2
    w[2] -= 3
    v[3] **= 2
    u = np.array(x)
    u[:] = 0
    return x, u, np.shares_memory(x, v)


@program(lambda r: (r.normal(size=6), r.normal(size=6)))
def cross_updates_with_tuples(x, y):
    for k in range(5):
        x[k], y[k + 1] = y[k], x[k + 1] + x[k]
    x, y = y, x
    x[0], x[1] = x[1], x[0]
    return x, y


@program(lambda r: (r.normal(size=(3, 3)),))
def a_matrix_that_is_its_own_operand(a):
    a @= a
    a += a.T
    a *= a[0]
    a -= a[:, :1]
    a /= 1 + np.abs(a).max()
    return a


@program(lambda r: (r.normal(size=12),))
def circular_convolution_by_scatter(x):
    y = np.zeros(12)
    index = np.arange(12)
    for lag, weight in zip(itertools.count(), (0.5, 0.3, 0.2)):
        y[(index + lag) % 12] += weight * x
        np.roll(index, lag)
    return y


@program(lambda r: (r.normal(size=(2, 5)), r.normal(size=(2, 5))))
def delayed_targets_are_snapshots(online, target):
    losses = []
    for _ in range(6):
        losses.append(((online - target) ** 2).sum())
        online -= 0.2 * (online - 0.5 * target)
        target[...] = 0.9 * target + 0.1 * online
    return np.array(losses), online


@program(lambda r: (r.normal(size=8),))
def full_like_and_friends_do_not_alias(x):
    z, o, f, e = np.zeros_like(x), np.ones_like(x), np.full_like(x, 2), np.empty_like(x)
    e[:] = x
    z += x
    o *= z
    f -= o
    x[:] = -1
    return z, o, f, e


@program(lambda r: (r.normal(size=6),))
def chained_assignment_of_one_value(x):
    a = np.zeros(3)
    b = np.zeros((2, 3))
    a[:] = b[0] = b[1, ::-1] = x[:3]
    a[0] = a[1] = a[2] = x[5] ** 2
    return a, b
