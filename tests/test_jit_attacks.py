"""Small programs that write, index, alias and mix dtypes in ways that compiled code could get wrong: under jit, by
machine code and by NumPy, they give NumPy's results, leave their arguments as NumPy does, and have eager gradients,
which are those of differences; each with two sets of values, and both once more.

A program's parameters say what it is given (`MAKERS`): x, y of six floats, i indices that repeat, p a permutation, ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import errors, grad, hvp, jit, vmap
from tests.derivatives import slope

PROGRAMS: list[Callable] = []
COMPILERS = ["auto", "numpy"]


def program(f: Callable) -> Callable:
    PROGRAMS.append(f)
    return f


def floats(*shape: int, seed: int) -> onp.ndarray:
    return onp.random.RandomState(seed).uniform(0.3, 1.9, shape)


# What a parameter of this name is, in the set of values k
MAKERS: dict[str, Callable[[int], Any]] = {
    "x": lambda k: floats(6, seed=k),
    "y": lambda k: floats(6, seed=10 + k),
    "a": lambda k: floats(3, 4, seed=20 + k),
    "b": lambda k: floats(4, 3, seed=30 + k),
    "s": lambda k: floats(3, 3, seed=40 + k) + 2 * onp.eye(3),
    "d": lambda k: floats(2, 3, 4, seed=50 + k),
    "F": lambda k: onp.asfortranarray(floats(3, 4, seed=60 + k)),
    "t": lambda k: floats(12, seed=70 + k)[::2],
    "R": lambda k: floats(6, seed=75 + k)[::-1],
    "T": lambda k: floats(4, 3, seed=78 + k).T,
    "z": lambda k: floats(seed=80 + k).reshape(()),
    "o": lambda k: floats(1, seed=85 + k),
    "e": lambda k: onp.zeros((0,)),
    "w": lambda k: floats(0, 3, seed=k),
    "h": lambda k: floats(6, seed=90 + k).astype("f4"),
    "g": lambda k: floats(6, seed=95 + k).astype("f2"),
    "c": lambda k: floats(6, seed=100 + k) + 1j * floats(6, seed=101 + k),
    "i": lambda k: onp.array([[0, 2, 2, 4, 0, 5], [5, 5, 1, 3, 3, 0]][k]),
    "p": lambda k: onp.array([[3, 1, 0, 5, 2, 4], [0, 1, 2, 3, 4, 5]][k]),
    "q": lambda k: onp.array([[0, -1, 2, -2], [-3, 0, 0, 1]][k]),
    "u": lambda k: onp.array([[1, 1, 0], [2, 0, 2]][k], "u1"),
    "m": lambda k: onp.array([[1, 0, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1]][k], bool),
    "M": lambda k: onp.array([[1, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1]][k], bool),
    "k": lambda k: onp.array([2, 4][k]),
    "n": lambda k: [2, 3][k],
    "r": lambda k: [0.5, 1.25][k],
    "v": lambda k: onp.array([[4, 1, 3, 0, 2, 7], [1, 1, 0, 9, 2, 2]][k]),
}
DIFFERENTIATED = "xyabsdFtRTzorhg"
ROUNDING = "hg"  # of which differences tell nothing


# ------------------------------------------------------------------ indices that repeat, or are computed
@program
def writes_at_repeats(np, x, i):
    y = np.zeros(6)
    y[i] = x * 2
    return y


@program
def adds_at_half(np, x, i):
    z = np.zeros(6)
    z[i // 2] += x
    return z


@program
def writes_rows_at_repeats(np, x, i):
    w = np.zeros((6, 6))
    w[i] = np.outer(x**2, x)
    return w


@program
def writes_columns_at_repeats(np, x, i):
    w = np.ones((6, 6))
    w[:, i] = np.outer(x**2, x)
    return w * w


@program
def writes_at_pairs(np, x, i, v):
    w = np.zeros((6, 4))
    w[i, v % 4] = x**2
    return w


@program
def writes_at_repeats_twice(np, x, y, i):
    out = x * 1
    out[i] = y
    out[i[::-1]] *= x
    return out


@program
def writes_at_sorted_places(np, x, y):
    out = np.zeros(6)
    out[np.argsort(x)] = y * x
    return out


@program
def writes_at_ranks(np, x, y):
    out = x + 0
    out[np.argsort(x)[:3]] = y[:3] ** 2
    return out


@program
def reads_at_computed(np, x, v):
    return x[v % 6] * x[(v + 1) % 6]


@program
def adds_at(np, x, y, i):
    out = y * 1
    np.add.at(out, i, x**2)
    return out


@program
def multiplies_at(np, x, y, i):
    out = y * 1
    np.multiply.at(out, i, x)
    return out


@program
def subtracts_at_int(np, x, v):
    out = x * 1
    np.subtract.at(out, v % 6, 1)
    return out


@program
def maximum_at(np, x, y, i):
    out = y * 1
    np.maximum.at(out, i, x)
    return out


@program
def writes_at_negative(np, x, q):
    out = np.ones(3)
    out[q] = x[:4]
    return out


@program
def writes_at_a_tuple_of_lists(np, x):
    out = np.zeros((3, 2))
    out[[0, 0, 1], [1, 1, 0]] = x[:3]
    return out


@program
def writes_at_a_tuple_in_a_tuple(np, x):
    out = np.zeros(3)
    out[(0, 0, 1),] = x[:3] ** 2
    return out


@program
def writes_at_a_range(np, x):
    out = np.zeros(6)
    out[range(1, 4)] = x[:3] ** 2
    return out


@program
def takes_twice(np, a, u):
    return np.take(a, u, axis=0) * np.take(a, u, axis=1, mode="wrap")[: len(u), :1]


@program
def puts_at(np, x, i):
    out = np.zeros(6)
    np.put(out, i, x**2)
    return out


@program
def puts_along(np, a, u):
    out = a * 1
    np.put_along_axis(out, u[:, None].astype(int), a[:, :1] ** 2, 1)
    return out


@program
def takes_along(np, a):
    return np.take_along_axis(a, np.argsort(a, axis=1), axis=1) * np.arange(4.0)


@program
def one_hot(np, a, u):
    t = np.zeros((3, 4))
    t[np.arange(3), u] = 1
    return (a * t).sum(1)


@program
def picks_one_each(np, a, u):
    return np.log(a[np.arange(len(u)), u])


@program
def writes_one_each(np, a, u):
    out = a * 2
    out[np.arange(3), u] -= 1
    out[np.arange(3), u] *= a[:, 0]
    return out


@program
def writes_with_index_of_two_axes(np, x, i):
    out = np.zeros((6, 2))
    out[i.reshape(2, 3)] = x.reshape(2, 3)[..., None] ** 2
    return out


@program
def writes_beside_none(np, x, i):
    out = np.zeros((2, 6))
    out[None, 0, i] = x
    return out


@program
def writes_at_slice_and_index(np, d, u):
    out = d * 1
    out[:, u, 1:3] = d[:, :, :2] ** 2
    return out


@program
def index_changes_between(np, x, i):
    i = i * 1
    out = x[i]
    i += 1
    i %= 6
    return out * x[i]


@program
def mask_changes_between(np, x, m):
    m = m | False
    out = np.where(m, x, 0)
    np.logical_not(m, out=m)
    return out - np.where(m, x**2, 0)


@program
def counts_at(np, x, i):
    return x * np.bincount(i, minlength=6)


@program
def weights_at(np, x, i):
    return np.bincount(i, weights=x, minlength=6) ** 2


@program
def accumulates_in_a_loop(np, x, i):
    out = np.zeros(6)
    for k in range(6):
        out[i[k]] += x[k] * out[i[k]] + x[k]
    return out


@program
def swaps(np, x, i):
    out = x * 1
    out[[0, 3]] = out[[3, 0]]
    out[i[0]], out[i[1]] = out[i[1]], out[i[0]]
    return out * np.arange(6)


@program
def permutes(np, x, p):
    out = np.empty(6)
    out[p] = x
    return out * np.arange(6) + x[p]


@program
def index_from_where(np, x):
    k = np.where(x > 1)[0]
    out = x * 1
    out[k] = out[k] ** 2
    return out


@program
def index_from_nonzero_of_ints(np, x, v):
    out = np.zeros(6)
    out[np.nonzero(v % 2)] = 3
    return out * x


@program
def index_from_unique(np, x, i):
    _, inverse = np.unique(i, return_inverse=True)
    out = np.zeros(6)
    np.add.at(out, inverse, x)
    return out


@program
def index_from_searchsorted(np, x, y):
    return y[np.searchsorted(np.sort(x), x) % 6] * x


@program
def index_by_argmax(np, a):
    out = a * 1
    out[a.argmax(0), np.arange(4)] = 0
    return out


@program
def zero_dim_index(np, x, k):
    out = x * 1
    out[k] = x[k] ** 2 + x[k - 1]
    return out


@program
def slice_to_index(np, x, k):
    return x[:k].sum() + x[k:] ** 2 if k > 2 else x[k:]


@program
def length_from_data(np, x, k):
    return np.ones(int(k)) * x[0]


@program
def number_fixed_by_the_first_path(np, x, y, m, n):
    y[m] = x[m]
    x.reshape(2, 3).T[1] *= float(n)
    return x[x > x[0]].sum() + y


@program
def changed_by_itself(np, x, i):
    out = x * 1
    np.maximum.at(out, i, out)
    np.multiply.at(out, i, out[::-1])
    np.add.at(out, i, out)
    return out


@program
def powers_by_int(np, x, v):
    return x ** v[0]


@program
def powers_by_ints(np, x, v):
    return x**v


@program
def powers_by_small(np, x, u):
    return x[:3] ** u


@program
def int_argument_written(np, x, v):
    v += 1
    v[0] = 3
    return x * v


@program
def int_arguments_index_and_raise(np, x, i):
    y = np.zeros(6)
    y[i] += 1
    np.add.at(y, i, x)
    return y * x ** i[0] + x ** i[1]


@program
def int_argument_written_at_repeats(np, x, v, i):
    v[i] += 1
    np.add.at(v, i[:3], [1, 2, 3])
    return x ** v[i[0]] * v


@program
def flat_written(np, a, i):
    out = a * 1
    out.flat[i] = a.flat[:6] ** 2
    return out


# ------------------------------------------------------------------ masks
@program
def writes_at_mask(np, x, m):
    out = x * 1
    out[m] = 0
    return out**2


@program
def writes_array_at_mask(np, x, y, m):
    out = x * 1
    out[m] = y[m] ** 2
    return out


@program
def writes_first_at_mask(np, x, y, M):
    out = x * 1
    out[M] = y[: int(M.sum())]
    return out


@program
def scales_at_mask(np, x, m):
    out = x * 1
    out[m] *= 3
    out[~m] += out[m].sum()
    return out


@program
def rows_at_mask(np, a, u):
    out = a * 1
    out[u > 0, 1] = a[u > 0, 0] ** 2
    return out


@program
def mask_and_array(np, a, u):
    out = np.zeros((3, 4))
    out[np.array([True, True, True]), u] = a[:, 0] ** 2
    return out


@program
def mask_of_values(np, x):
    return x[x > 1].sum() * x


@program
def copies_where(np, x, y, m):
    out = x * 1
    np.copyto(out, y**2, where=m)
    return out


@program
def places(np, x, m):
    out = x * 1
    np.place(out, m, [7.0, 8.0])
    return out * x


@program
def putmasks(np, x, y, m):
    out = x * 1
    np.putmask(out, m, y)
    return out


@program
def where_keyword(np, x, y, m):
    return np.add(x, y, out=x * 2, where=m)


@program
def sum_where(np, x, m):
    return np.sum(x**2, where=m) + np.max(x, where=m, initial=0.0) + np.mean(x, where=m)


@program
def compresses(np, x, M):
    return np.compress(M, x) * 2


@program
def empty_mask(np, x, m):
    out = x * 1
    out[m & False] = 9
    out[x > 100] *= x[x > 100]
    return out


# ------------------------------------------------------------------ views, and views of views, written
@program
def view_written(np, x):
    out = x * 1
    z = out.reshape(2, 3)
    z[0] = x[3:] ** 2
    return out


@program
def copy_of_view_written(np, a):
    out = a * 1
    z = out.reshape(4, 3, order="F")
    z[0] = 9
    return out.sum() + z.sum()


@program
def view_of_view_written(np, d):
    out = d * 1
    t = out[1].T[::-1]
    t[1:, 0] *= 5
    return out**2


@program
def transposed_reshape_written(np, a):
    out = a * 1
    z = out.T.reshape(-1)
    z[:3] = 0
    return out + z.sum()


@program
def ravel_written(np, a):
    out = a * 1
    out.ravel()[::2] = 0
    out.flatten()[1] = 100
    return out


@program
def ravel_k_of_fortran(np, F):
    out = F * 1
    out.ravel(order="K")[:4] *= 2
    out.ravel(order="F")[:2] *= 3
    return out


@program
def ravel_k_of_argument(np, F):
    return F.ravel(order="K") * np.arange(12.0) + F.ravel(order="A") ** 2


@program
def reshape_orders(np, a, F):
    return a.reshape(4, 3, order="F") + F.reshape(4, 3, order="A") + np.reshape(F, (4, 3))


@program
def real_part_written(np, x, y):
    z = x + 1j * y
    z.real[1:3] = y[:2]
    z.imag *= 2
    return np.abs(z)


@program
def diagonal_written(np, s):
    out = s * 1
    np.fill_diagonal(out, s[0] ** 2)
    np.einsum("ii->i", out)[0] = 3
    return out


@program
def swapaxes_written(np, d):
    out = d * 1
    v = np.swapaxes(out, 0, 2)
    v[0] = v[1] * v[2]
    return out


@program
def windows_read(np, x):
    return np.lib.stride_tricks.sliding_window_view(x, 3) @ np.arange(3.0)


@program
def views_overlap(np, x):
    out = x * 1
    out[1:] = out[:-1] * 2
    out[:-1] += out[1:]
    return out


@program
def reversed_into_itself(np, x):
    out = x * 1
    out[:] = out[::-1]
    out[::2] -= out[::-2]
    return out


@program
def split_parts_written(np, x):
    out = x * 1
    for k, part in enumerate(np.split(out, 3)):
        part *= k + x[0]
    return out


@program
def starred(np, a):
    out = a * 1
    first, *rest = out
    first[:] = rest[0] * rest[1]
    rest[1][0] = 0
    return out


@program
def broadcast_read_then_written(np, x):
    out = x * 1
    wide = np.broadcast_to(out, (2, 6))
    before = wide * 1
    out[0] = 5
    return wide - before * x


@program
def atleast_and_squeeze(np, x):
    out = x * 1
    np.atleast_2d(out)[0, 1] = 0
    np.squeeze(out[None])[2] = x[0]
    np.expand_dims(out, 1)[3:] *= 2
    return out


@program
def moveaxis_of_fortran(np, T):
    out = T * 1
    np.moveaxis(out, 0, 1)[0] = 7
    return out * T


@program
def old_value_kept(np, x):
    out = x * 1
    kept = out
    copy = out.copy()
    out *= 2
    return kept * copy


@program
def scalar_taken_before_write(np, x):
    out = x * 1
    first = out[0]
    part = out[:1]
    out[0] = 10
    return first * part


@program
def reshape_with_copy(np, x):
    out = x * 1
    np.ravel(out).reshape(2, 3)[0, 0] = 4
    return out


@program
def repeated_writes(np, x):
    out = np.zeros((4, 6))
    out[0] = x
    for k in range(1, 4):
        out[k] = np.sin(out[k - 1]) + out[k - 1][::-1]
    return out


@program
def rolled_in_place(np, x):
    out = x * 1
    for _ in range(3):
        out[...] = np.roll(out, 1) * 0.5 + out
    return out


@program
def view_as_other_dtype(np, x):
    z = (x * 1).view("c16")
    z *= 2j
    return np.abs(z)


# ------------------------------------------------------------------ arguments: aliased, written, strided, F-ordered
@program
def argument_written(np, x):
    x[1] = x[0] * x[2]
    x *= 2
    return x


@program
def argument_view_written(np, a):
    a[:, 1:][0] *= 3
    return a**2


@program
def argument_returned_as_view(np, a):
    a += 1
    return a.T, a[0], a


@program
def both_arguments_written(np, x, y):
    x += y
    y *= x
    return x * y


@program
def argument_written_at_repeats(np, x, y, i):
    x[i] = y * 2
    x[i] += y
    return x**2


@program
def fortran_argument_written(np, F):
    F[1] = F[0] * F[2]
    F.T[0] = 1
    return F.sum(0)


@program
def transposed_argument_written(np, T):
    T.reshape(-1)[0] = 100
    T[0, 1] = 3
    return T * 2


@program
def layouts(np, F, T, a):
    return F * T + a, (F @ T.T).ravel(order="K"), np.concatenate([F, T], 1)


@program
def sums_of_layouts(np, F, T, t):
    return F.sum(0), T.sum(1), t.sum(), F.cumsum(), T.max(0), np.sort(T, axis=None)


@program
def strided_reads(np, t, R):
    return np.cumsum(R) * t[::-1] + t.reshape(2, 3).ravel(order="F")


@program
def same_argument_in_two_places(np, x):
    def inner(a, b):
        a[0] = b[1] * 3
        return a * b

    out = x * 1
    return inner(out, out)


@program
def fill_and_itemset(np, x):
    out = np.empty_like(x)
    out.fill(2)
    out[2:4] = 5
    return out * x


@program
def sorts_in_place(np, x):
    out = x * 1
    out.sort()
    out.partition(2)
    return out * np.arange(6)


@program
def resizes(np, x):
    return np.resize(x, (3, 5)) * np.arange(5)


@program
def out_is_argument(np, x, y):
    np.multiply(x, y, out=x)
    np.exp(x, out=y)
    return x + y


@program
def out_overlaps(np, x):
    out = x * 1
    np.add(out[:-1], out[1:], out=out[1:])
    np.cumsum(out, out=out)
    return out


@program
def out_of_other_dtype(np, x, h):
    np.add(x, h, out=h, casting="same_kind")
    return h * 2


# ------------------------------------------------------------------ 0-d, one element, empty
@program
def zero_dim(np, z):
    z = np.array(z)
    z += 1
    z[...] = z**2
    z[()] *= 2
    return z, np.exp(z), z.reshape(1), z[None, None]


@program
def one_element(np, o):
    return o.sum(), o[0], o.reshape(()), o.T, o.squeeze(), o.max(), np.prod(o)


@program
def one_element_fortran(np, o):
    a = np.asfortranarray(o.reshape(1, 1))
    return a.sum(), a.sum(0), a[0], a.ravel(), a.trace()


@program
def empties(np, e, w, x):
    return e * 2, e.sum(), w.sum(0), w @ np.ones(3), np.concatenate([e, x]), w.T + 1, x[:0].prod()


@program
def empty_index(np, x, e):
    out = x * 1
    out[e.astype(int)] = 3
    out[[]] *= 2
    return out


@program
def zero_dim_broadcast(np, z, x, a):
    a += z
    x[...] = z
    return a * z, x - z, np.maximum(z, a), np.where(z > 1, a, z)


@program
def zero_dim_of_reduction(np, x):
    s = x.sum()
    s += 1
    t = np.array(s)
    t *= 2
    return s * t, x / s


# ------------------------------------------------------------------ dtypes
@program
def mixes_floats(np, h, g, x):
    return h + g, g * x, h * 2.0, g * 3, np.float32(2) * g, h.sum() + g.sum(), (h @ g)


@program
def float32_in_place(np, h, x):
    h *= 2
    h += x
    h[1:3] = x[:2]
    return h


@program
def half_in_place(np, g, x):
    g += x
    g[...] = g * g
    return g.astype("f8") * x


@program
def ints_and_floats(np, v, x, u):
    return v / 3, v * x, v // 2, v % 4, u + v[:3], u * 2.5, (x * 10).astype(int) + v, -u, v**2, x.astype("i4")


@program
def bools(np, m, M, x):
    return m & M, m | ~M, m ^ M, m * x, m.sum(), M.any(), x * (m == M), m + M, (x > 1) & m


@program
def unsigned_wraps(np, u):
    return u - np.uint8(3), u + 250, -u, ~u, u << 1


@program
def complexes(np, c, x):
    c = c * x
    c[0] = 1j
    c[1:3] += x[:2]
    return c * c.conj(), c.real, abs(c), np.angle(c)


@program
def truth_of_numbers(np, x, r, n):
    return x * r + n if r > 1 else x * n - r


@program
def numbers_as_sizes(np, x, n):
    return x[:n] * n, np.zeros(n) + x[0], np.full(n, n), x.reshape(n, -1) ** n


@program
def numbers_promote(np, h, r, n):
    return h * r, h + n, h / n, np.where(h > r, h, r), np.maximum(h, n), h**n


@program
def integer_division_in_place(np, v):
    v //= 2
    v[v > 1] = -1
    return v * 2


@program
def astype_and_back(np, x):
    return (x * 4).astype("i4").astype("f4") * x.astype("f4"), x.astype("?") * x


# ------------------------------------------------------------------ in place, with broadcasting
@program
def broadcasts_into(np, a, z):
    out = a * 1
    out += out[0]
    out *= out[:, :1]
    out -= z
    out[1:] /= out[0]
    return out


@program
def row_into_three_axes(np, d, a):
    out = d * 1
    out -= a
    out[0] = a[0]
    out[..., 1] = 3
    out[:, 1] += a[1]
    return out


@program
def matmul_in_place(np, s):
    out = s * 1
    out @= s
    out[0] = out[0] @ s
    return out


@program
def powers_in_place(np, x, y):
    out = x * 1
    out **= y
    out **= 2
    out /= 3
    return out


# ------------------------------------------------------------------ methods of ufuncs
@program
def reduces(np, a):
    return (
        np.add.reduce(a, axis=1),
        np.multiply.reduce(a, axis=0, keepdims=True),
        np.maximum.reduce(a, axis=None),
        np.minimum.reduce(a, initial=0.5),
        np.subtract.reduce(a),
        np.add.reduce(a, axis=(0, 1)),
    )


@program
def accumulates(np, a):
    return np.add.accumulate(a), np.multiply.accumulate(a, axis=1), np.maximum.accumulate(a), np.subtract.accumulate(a)


@program
def reduces_at(np, x):
    return np.add.reduceat(x, [0, 2, 1, 4]), np.multiply.reduceat(x, [0, 3]), np.maximum.reduceat(x, [1, 5, 2])


@program
def reduces_at_argument(np, x, p):
    return np.add.reduceat(x, p)


@program
def outers(np, x, u):
    return np.multiply.outer(x, x[:2]), np.subtract.outer(u, x), np.power.outer(x, u)


@program
def reduces_with_out(np, a, x):
    np.add.reduce(a, axis=0, out=x[:4])
    np.cumsum(a[0], out=x[2:])
    return x


@program
def reduces_where(np, x, m):
    return np.add.reduce(x, where=m), np.multiply.reduce(x, where=m, initial=2.0)


@program
def divmods(np, x, v):
    q, r = np.divmod(x * 5, 2)
    f, e = np.modf(x * 3)
    return q + r * x, f * e, np.frexp(x)[0], np.floor_divide(v, 2), np.fmod(v, 3) * x


# ------------------------------------------------------------------ closures, control flow, containers
@program
def closure_writes(np, x):
    total = np.zeros(6)

    def add(k):
        total[k:] += x[k] * total[k] + x[k:]

    for k in range(4):
        add(k)
    return total


@program
def branches_on_index(np, x, i):
    return x * 2 if i[0] == 0 else x**3


@program
def branches_on_sum(np, x, v):
    return x.cumsum() if v.sum() > 16 else x - v


@program
def loops_over_index(np, x, i):
    out = 0
    for k in i:
        out = out * 0.5 + x[k] ** 2
    return out


@program
def recursion(np, x):
    def merge(v):
        if v.shape[0] <= 1:
            return v
        half = v.shape[0] // 2
        return np.concatenate([merge(v[half:]) * 2, merge(v[:half]) + v[0]])

    return merge(x)


@program
def dict_of_buffers(np, x, y):
    held = {"x": x * 1, "y": y * 1}
    for key in sorted(held):
        held[key][1:] *= held["x"][:-1]
    return held


@program
def catches(np, x):
    try:
        return x.reshape(4, 4)
    except ValueError:
        return x.reshape(3, 2)


@program
def catches_index(np, x, k):
    try:
        return x[k + 3] * x
    except IndexError:
        return x * 0 + 1


@program
def prefix_by_list(np, x):
    parts = [x[0]]
    for k in range(1, 6):
        parts.append(parts[-1] * x[k] + 1)
    return np.array(parts)


@program
def stacks_and_writes(np, x, y):
    s = np.stack([x, y, x])
    s[1] = s[0] * s[2]
    s[:, ::2] = 0
    return s, x


@program
def padded(np, x, a):
    return np.pad(x, 2, mode="edge"), np.pad(a, ((0, 1), (1, 0)), constant_values=2.0), np.pad(x, 3, mode="reflect")


@program
def products(np, a, b, s):
    return a @ b, np.dot(a, b[:, 0]), np.einsum("ij,ji->i", a, b), np.inner(s, s), np.tensordot(a, b, 1), np.vdot(s, s)


@program
def selections(np, x, i):
    return np.select([x > 1.2, x > 0.8], [x, x**2], 5.0), np.choose(i % 2, [x, -x]), np.clip(x, 0.5, 1.2)


@program
def statistics(np, a, T):
    return a.mean(0), T.var(1), T.std(), np.median(a, axis=0), np.percentile(T, 30), np.ptp(a, axis=1)


@program
def interpolates(np, x, y):
    return np.interp(x, np.linspace(0, 2, 6), y), np.diff(x, prepend=y[0]), np.gradient(x * y)


@program
def solves(np, s):
    return np.linalg.solve(s, s[0]), np.linalg.inv(s), np.linalg.det(s), np.linalg.norm(s)


# ------------------------------------------------------------------ shapes and dtypes that depend on data
ROTATION, SYMMETRIC = onp.array([[0.0, -1.0], [1.0, 0.0]]), onp.array([[2.0, 1.0], [1.0, 3.0]])
RANK_ONE, RANK_TWO = onp.ones((3, 2)), onp.arange(6.0).reshape(3, 2)
BY_DATA: dict[str, tuple] = {  # name: (function, an argument, one for which the result lies or is typed otherwise)
    "bincount": (lambda x: np.bincount(x) * 2.0 + 1, [5, 1, 1], [0, 1, 1]),
    "bincount, weighted": (lambda x: np.bincount(x, weights=x * 1.0) * 2.0, [5, 1, 1], [0, 1, 1]),
    "eigvals": (lambda x: np.linalg.eigvals(x) * 2.0 + 1, SYMMETRIC, ROTATION),
    "eig": (lambda x: np.linalg.eig(x)[1] * 2.0 + 1, SYMMETRIC, ROTATION),
    "roots": (lambda x: np.roots(x) * 2.0 + 1, [1.0, 0.0, -1.0], [1.0, 0.0, 1.0]),
    "roots, fewer": (lambda x: np.roots(x) * 2.0 + 1, [1.0, 0.0, -1.0], [0.0, 1.0, 1.0]),
    "emath.sqrt": (lambda x: np.emath.sqrt(x) * 2.0, [1.0, 4.0], [-1.0, 4.0]),
    "real_if_close": (lambda x: np.real_if_close(x) * 2.0, [1 + 0j, 2], [1j, 2]),
    "lstsq": (lambda x: np.linalg.lstsq(x, onp.ones((3, 2)), rcond=None)[1] * 2.0 + 1, RANK_ONE, RANK_TWO),
    "trim_zeros": (lambda x: np.trim_zeros(x) * 2.0, [1.0, 2.0, 0.0], [1.0, 0.0, 0.0]),
    "unique": (lambda x: np.unique(x) * 2.0, [1.0, 2.0, 0.0], [1.0, 0.0, 0.0]),
    "delete": (lambda x: np.delete(x, x > 1) * 2.0, [1.0, 2.0, 0.0], [1.0, 1.0, 0.0]),
    "split": (lambda x: np.split(x, x.astype(int)[:2])[1] * 2.0, [1.0, 2.0, 0.0], [1.0, 3.0, 0.0]),
    "repeat": (lambda x: np.repeat(x, x.astype(int)) * 2.0, [1.0, 2.0, 0.0], [1.0, 3.0, 0.0]),
    "arange": (lambda x: np.arange(x[0]) * 2.0, [1.0, 2.0], [3.0, 2.0]),
    "rows at a mask": (lambda x: x[x[:, 0] > 1, 1] * 2.0, RANK_ONE, RANK_TWO),
    "gradient at a mask": (lambda x: grad(lambda y: written_at(y, x > 1))(x), [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]),
    "tangent at a mask": (lambda x: hvp(lambda y: written_at(y, x > 1))(x, x), [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]),
}


def written_at(x, chosen):
    out = x * 1
    out[chosen] = out[chosen] ** 2 * 3
    out[chosen] *= 2
    out[chosen, ...] += x[0]
    return (out**2).sum()


@pytest.mark.parametrize("name", BY_DATA)
def test_shapes_and_dtypes_that_depend_on_data_are_guarded(name):
    f, *values = BY_DATA[name]
    values = [onp.asarray(v) for v in values]
    for compiler in COMPILERS:
        for order in (values, values[::-1]):
            compiled = jit(f, compiler=compiler)
            for v in (*order, *order):
                want = onp.asarray(f(np.array(v)))
                got = onp.asarray(compiled(np.array(v)))
                close(got, want, f"{compiler}, {v}")


# ------------------------------------------------------------------ the checks
def given(f: Callable, k: int) -> list:
    return [MAKERS[name](k) for name in list(inspect.signature(f).parameters)[1:]]


def as_ours(values: list) -> list:
    return [np.asarray(v) if isinstance(v, onp.ndarray) else v for v in values]


def flat(out: Any) -> list:
    if isinstance(out, dict):
        return [v for key in sorted(out) for v in flat(out[key])]
    return [v for part in out for v in flat(part)] if isinstance(out, (tuple, list)) else [onp.asarray(out)]


def close(a: Any, b: Any, what: str, loose: float = 1.0) -> None:
    a, b = onp.asarray(a), onp.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.dtype}{a.shape} is not {b.dtype}{b.shape}"
    # a chain of operations, each within some units in the last place
    tolerance = 64 * loose * float(onp.finfo(b.dtype).eps) if b.dtype.kind in "fc" else 0
    onp.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.dealt
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_results_and_arguments_are_numpys(f):
    """Values, dtypes and shapes; what became of the arguments; what an exception was."""
    for compiler in [None, *COMPILERS]:
        run = lambda *args: f(np, *args)
        run = run if compiler is None else jit(run, compiler=compiler)
        for call, k in enumerate((0, 1, 0, 1)):
            reference = given(f, k)
            want = f(onp, *reference)
            arguments = given(f, k)
            got = run(*as_ours(arguments))
            assert len(flat(got)) == len(flat(want))
            for a, b in zip(flat(got), flat(want)):
                close(a, b, f"{compiler}, call {call}")
            for a, b in zip(arguments, reference):
                close(a, b, f"{compiler}, call {call}, argument")


def weighted(np: Any, out: Any) -> Any:
    """A number of a program's floating-point results, in which each element counts otherwise."""
    total = 0.0
    for n, part in enumerate(leaves(out)):
        part = np.asarray(part)
        if part.dtype.kind in "fc" and part.size:
            part = part.real if part.dtype.kind == "c" else part
            w = np.asarray(onp.cos(onp.arange(float(part.size)) + n).reshape(part.shape))
            total = total + (part.astype("f8") * w).sum()
    return total


def leaves(out: Any) -> list:
    if isinstance(out, dict):
        return [out[key] for key in sorted(out)]
    return list(out) if isinstance(out, (tuple, list)) else [out]


def numbers(f: Callable) -> list[int]:
    """The arguments that a program is differentiated by."""
    names = list(inspect.signature(f).parameters)[1:]
    return [n for n, name in enumerate(names) if name in DIFFERENTIATED]


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("f", [f for f in PROGRAMS if numbers(f)], ids=lambda f: f.__name__)
def test_gradients_are_eager_ones_and_those_of_differences(f):
    loss = lambda *args: weighted(np, f(np, *args))
    by = numbers(f)
    eager = grad(loss, argnums=by)
    ways = {f"jit(grad), {c}": jit(eager, compiler=c) for c in COMPILERS}
    ways |= {f"grad(jit), {c}": grad(jit(loss, compiler=c), argnums=by) for c in COMPILERS}
    for call, k in enumerate((0, 1, 0, 1)):
        want = as_list(eager(*as_ours(given(f, k))))
        for n in by if call < 2 and not rounds(f) else ():
            t = onp.random.RandomState(n).standard_normal(onp.shape(given(f, k)[n]))
            (want_slope,) = slope(lambda v, at=(k, n): weighted(onp, f(onp, *moved(f, *at, v))), [value(f, k, n)], [t])
            got = float(onp.sum(onp.asarray(want[by.index(n)]) * t))
            onp.testing.assert_allclose(got, want_slope, rtol=2e-6, atol=1e-7, err_msg=f"argument {n}")
        for name, way in ways.items():
            got = as_list(way(*as_ours(given(f, k))))
            for a, b in zip(got, want, strict=True):
                close(a, b, f"{name}, call {call}", 16)


def as_list(gradients: Any) -> list:
    return list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]


def rounds(f: Callable) -> bool:
    return f.__name__ == "astype_and_back" or bool(set(inspect.signature(f).parameters) & set(ROUNDING))


def value(f: Callable, k: int, n: int) -> onp.ndarray:
    return onp.asarray(given(f, k)[n])


def moved(f: Callable, k: int, n: int, new: Any) -> list:
    """The k-th arguments with new numbers in the n-th, where they lay; a Python number is one again."""
    args = given(f, k)
    if isinstance(args[n], onp.ndarray):
        args[n][...] = new
    else:
        args[n] = float(new)
    return args


ALIASED: dict[str, Callable] = {  # of eight floats, the two arguments of a function
    "same": lambda b: (b, b),
    "the same view": lambda b: (b[:], b[:]),
    "backwards": lambda b: (b, b[::-1]),
    "overlapping": lambda b: (b[:-1], b[1:]),
    "interleaved": lambda b: (b[::2], b[1::2]),
    "of one root": lambda b: (b[:4], b[4:]),
    "apart": lambda b: (b[:6] * 1, b[2:] * 1),
}


def writes_first(np, x, y):
    x[0] = 5.0
    return y * 2


def adds_into(np, x, y):
    x += y
    return x * y


def writes_through_views(np, x, y):
    y[::-1][:2] *= x[0]
    return x.sum() * y


def empties_first(np, x, y):
    z = x * y
    x[...] = 0
    return z + y


def outs(np, x, y):
    np.add(x, y, out=x)
    np.multiply(x, y, out=y)
    return x - y


def shifts(np, x, y):
    x[1:] = y[:-1]
    return x * y


def swaps_between(np, x, y):
    x[[0, 1]] = y[[1, 0]]
    return x + y


@pytest.mark.long
@pytest.mark.once("captures that end, in Python: each searches what the process has")
@pytest.mark.parametrize(
    "f", [writes_first, adds_into, writes_through_views, empties_first, outs, shifts, swaps_between]
)
def test_arguments_that_share_memory(f):
    """Called with arguments that do, that do not, and that do again."""
    for first in ALIASED:
        for compiler in COMPILERS:
            run = jit(lambda x, y: f(np, x, y), compiler=compiler)
            for call, name in enumerate((first, "apart", first, "overlapping", first)):
                if name == "overlapping" and len(ALIASED[first](onp.ones(8))[0]) != 7:
                    continue
                ours, theirs = onp.linspace(1.0, 2.0, 8) + call, onp.linspace(1.0, 2.0, 8) + call
                want = f(onp, *ALIASED[name](theirs))
                got = run(*ALIASED[name](np.asarray(ours)))
                close(got, want, f"{name}, {compiler}, call {call}")
                close(ours, theirs, f"{name}, {compiler}, call {call}, memory")
        loss = lambda b, take=ALIASED[first]: weighted(np, f(np, *take(b * 1)))
        b = onp.linspace(1.0, 2.0, 8)
        close(jit(grad(loss))(b), grad(loss)(b), f"gradient, {first}", 16)
        v = onp.cos(onp.arange(8.0))
        (want,) = slope(lambda b, take=ALIASED[first]: weighted(onp, f(onp, *take(b * 1))), [b], [v])
        onp.testing.assert_allclose(float((onp.asarray(grad(loss)(b)) * v).sum()), want, rtol=1e-7)


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("f", [f for f in PROGRAMS if numbers(f)], ids=lambda f: f.__name__)
def test_second_derivatives_are_eager_ones(f):
    n = numbers(f)[0]
    loss = lambda *args: weighted(np, f(np, *args))
    eager = hvp(loss, n)
    compiled = {c: jit(eager, compiler=c) for c in COMPILERS}
    gradient = grad(loss, n)
    for call, k in enumerate((0, 1, 0)):
        x = value(f, k, n)
        v = onp.cos(onp.arange(float(x.size))).reshape(x.shape).astype(x.dtype)
        want = eager(*as_ours(given(f, k)), np.asarray(v))
        if call < 2 and not rounds(f):
            of = lambda u, k=k: onp.asarray(gradient(*as_ours(moved(f, k, n, u))))
            (want_slope,) = slope(of, [value(f, k, n)], [v])
            onp.testing.assert_allclose(onp.asarray(want), want_slope, rtol=2e-6, atol=1e-6)
        for c, way in compiled.items():
            close(way(*as_ours(given(f, k)), np.asarray(v)), want, f"{c}, call {call}", 64)


@pytest.mark.parametrize("method", ["inverted_cdf", "averaged_inverted_cdf", "midpoint"])
def test_numpys_own_code_may_copy_to_its_own_arrays(method):
    x = onp.random.default_rng(5).random(6)
    f = grad(lambda x: np.sum(np.quantile(x, [0.37, 0.8], method=method) ** 2))
    onp.testing.assert_allclose(jit(f)(np.array(x)), f(np.array(x)))


def test_a_copy_to_an_array_of_numpys_is_made_by_every_call():
    buffer = onp.zeros(3)

    @jit
    def f(x):
        onp.copyto(buffer, x * 2)
        return np.sum(x)

    for k in range(4):
        f(np.ones(3) * k)
        assert buffer.tolist() == [2 * k] * 3
    with pytest.raises(errors.TracedValueError, match="about to leave minnp"):
        grad(lambda x: (onp.copyto(buffer, x), np.sum(x))[1])(np.ones(3))


def test_whether_arguments_share_memory_is_asked_at_each_call():
    f = jit(lambda x, y: (np.shares_memory(x, y), np.may_share_memory(x, y), (x + y).sum()))
    a, b = np.ones(4), np.ones(4)
    for x, y, shared in ((a, b, False), (a, a, True), (b[1:], b[:-1], True), (b[1:], a[1:], False), (a, a, True)):
        assert f(x, y) == (shared, shared, 2.0 * len(x))
    inside = jit(lambda x: (np.shares_memory(x[1:], x), np.shares_memory(x, x + 1), x * 2))
    assert all(inside(v)[:2] == (True, False) for v in (a, b))


def test_sparse_matrices_of_scipys_compute_with_arrays():
    sparse = pytest.importorskip("scipy.sparse")
    for eye in (sparse.eye, sparse.eye_array):
        for f in (
            lambda x, one: one - x * 2,
            lambda x, one: x + one,
            lambda x, one: np.linalg.solve(one + x, x[0]),
            lambda x, one: x @ one,
            lambda x, one: one @ x - x,
        ):
            x = np.arange(9.0).reshape(3, 3) / 8
            g, want = jit(f), f(x, eye(3))
            for _ in range(2):
                got = g(x, eye(3))
                assert type(got) is type(want)
                onp.testing.assert_array_equal(onp.asarray(got), onp.asarray(want))


def test_sparse_matrices_beside_what_is_traced_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    x = np.ones((2, 3, 3))
    for f in (lambda x: sparse.eye(3) - x, lambda x: x + sparse.eye(3)):
        for traced in (vmap(f), lambda x, f=f: grad(lambda x: np.sum(f(x)))(x[0])):
            with pytest.raises(errors.TracedValueError, match="toarray"):
                traced(x)


def test_one_array_twice_in_a_large_einsum():
    x = np.ones((1 << 17, 2))
    for f in (
        lambda x: np.sum(np.einsum("ij,ik->ijk", x, x), axis=0),
        lambda x: np.sum(np.einsum("ij,ij->i", x, x)[:, None] * x, axis=0),
    ):
        onp.testing.assert_array_equal(jit(f)(x), f(x))


@pytest.mark.parametrize("draw", ["permutation", "choice"])
def test_draws_from_a_range(draw):
    for stream in (lambda: np.random.RandomState(0), lambda: np.random.default_rng(0)):
        f = lambda x, s: x[getattr(s, draw)(range(5))]
        x = np.arange(5.0)
        onp.testing.assert_array_equal(jit(f)(x, stream()), f(x, stream()))

    def sample(y):
        p = np.exp(y) / np.sum(np.exp(y))
        return np.random.choice(range(4), 3, p=p.ravel())

    y, g = np.array([[0.5], [0.0], [1.0], [2.0]]), jit(sample)
    np.random.seed(3)
    want = [sample(y) for _ in range(3)]
    np.random.seed(3)
    onp.testing.assert_array_equal([g(y) for _ in range(3)], want)
