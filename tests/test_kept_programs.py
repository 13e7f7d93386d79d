"""Programs that use index arrays, masks, lists, buffers and bounds again after they changed, run in every way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import checkpoint, grad, hvp, jit, jvp, vjp, vmap

X, V = onp.array([0.7, 1.3, -0.4, 2.1]), onp.array([0.3, -0.2, 0.5, 0.1])
PROGRAMS: dict[str, Callable] = {}


def program(f: Callable) -> Callable:
    PROGRAMS[f.__name__] = f
    return f


@program
def list_appended(x: Any) -> Any:
    idx = [0]
    s = 0.0
    for k in range(1, 4):
        s = s + (x[idx] ** 2).sum() * k
        idx.append(k)
    return s


@program
def take_buffer(x: Any) -> Any:
    idx = np.zeros(2, int)
    s = 0.0
    for k in range(4):
        idx[0] = k
        idx[1] = (k + 1) % 4
        s = s + np.prod(np.take(x, idx)) * (k + 1)
    return s


@program
def take_buffer_plain(x: Any) -> Any:
    idx = onp.zeros(2, int)
    s = 0.0
    for k in range(4):
        idx[0] = k
        idx[1] = (k + 1) % 4
        s = s + np.prod(np.take(x, idx)) * (k + 1)
    return s


@program
def mask_buffer(x: Any) -> Any:
    m = np.zeros(4, bool)
    s = 0.0
    for k in range(4):
        m[k] = True
        s = s + (x[m] ** 3).sum() * np.where(m, x, 1.0).prod()
        m[k] = k % 2 == 0
    return s


@program
def mask_buffer_plain(x: Any) -> Any:
    m = onp.zeros(4, bool)
    s = 0.0
    for k in range(4):
        m[k] = True
        s = s + (x[m] ** 3).sum() * np.where(m, x, 1.0).prod()
        m[k] = k % 2 == 0
    return s


@program
def where_flip(x: Any) -> Any:
    m = np.array([True, False, True, False])
    y = x
    for _k in range(3):
        y = np.where(m, y * x, np.sin(y))
        np.logical_not(m, out=m)
    return y.sum()


@program
def select_reuse(x: Any) -> Any:
    c = [np.array([True, False, False, False]), np.array([False, True, False, True])]
    ch = [x**2, x**3]
    s = np.select(c, ch, x).sum()
    c[0][:] = ~c[0]
    c.pop()
    ch.pop()
    return s + np.select(c, ch, 2 * x).prod()


@program
def choose_reuse(x: Any) -> Any:
    i = np.array([0, 1, 0, 1])
    s = np.choose(i, [x**2, x**3]).sum()
    i[:] = 1 - i
    s = s * np.choose(i, [x**2, x**3]).sum()
    i[:] = 0
    return s


@program
def addat_reuse(x: Any) -> Any:
    z = np.zeros(4)
    i = np.array([0, 1, 1, 3])
    np.add.at(z, i, x**2)
    i[:] = [3, 2, 1, 0]
    np.add.at(z, i, x * z)
    i[:] = 0
    return (z**2).sum()


@program
def addat_reuse_list(x: Any) -> Any:
    z = np.zeros(4)
    i = [0, 1, 1, 3]
    np.add.at(z, i, x**2)
    i.reverse()
    np.add.at(z, i, x * z)
    i.clear()
    return (z**2).sum()


@program
def einsum_lists(x: Any) -> Any:
    a, b = [0], [0]
    s = np.einsum(x, a, x**2, b, [])
    a[0] = 5
    ops = [x, x**2]
    s = s + np.einsum("i,i->", *ops)
    ops.clear()
    return s


@program
def slices_from_arrays(x: Any) -> Any:
    e = np.array([0, 2])
    s = 0.0
    for _k in range(3):
        s = s + (x[e[0] : e[1]] ** 2).prod()
        e += 1
    return s


@program
def slices_from_plain(x: Any) -> Any:
    e = onp.array([0, 2])
    s = 0.0
    for _k in range(3):
        s = s + (x[e[0] : e[1]] ** 2).prod()
        e += 1
    return s


@program
def out_buffers(x: Any) -> Any:
    b = np.empty(4)
    s = 0.0
    for k in range(3):
        np.multiply(x, k + 1, out=b)
        np.sin(b, out=b)
        s = s + (b * x).sum()
    return s


@program
def out_untraced(x: Any) -> Any:
    w = np.ones(4)
    s = 0.0
    for k in range(3):
        np.multiply(w, 1.5, out=w)
        s = s + (w * x**2).sum()
        w += k
    return s


@program
def put_along(x: Any) -> Any:
    z = np.zeros((2, 2))
    i = np.array([[0], [1]])
    np.put_along_axis(z, i, x[:2, None] ** 2, 1)
    i[:] = 1 - i
    np.put_along_axis(z, i, x[2:, None] * z[:1, :1], 1)
    i[:] = 0
    return (z**2).sum()


@program
def weights_list_plain(x: Any) -> Any:
    w = [1.0, 2.0, 3.0, 4.0]
    s = (x * w).sum()
    w[0] = 50.0
    return s + (x**2 * w).sum()


@program
def plain_weights(x: Any) -> Any:
    w = onp.array([1.0, 2.0, 3.0, 4.0])
    s = (x * w).sum()
    w *= 2
    s = s + (x**2 * w).sum()
    w[:] = 0
    return s


@program
def plain_left(x: Any) -> Any:
    w = onp.array([1.0, 2.0, 3.0, 4.0])
    s = (w * x).sum()
    w *= 2
    s = s + (w / x**2).sum()
    w[:] = 0
    return s


@program
def plain_view(x: Any) -> Any:
    w = onp.arange(8.0)
    v = w[::2]
    s = (x * v).sum()
    w += 1
    s = s + (np.sin(x) * v).sum()
    w[:] = 0
    return s


@program
def asarray_view(x: Any) -> Any:
    w = onp.arange(8.0)
    v = np.asarray(w)[::2]
    s = (x * v).sum()
    w += 1
    s = s + (np.sin(x) * v).sum()
    w[:] = 0
    return s


@program
def matmul_plain(x: Any) -> Any:
    A = onp.arange(16.0).reshape(4, 4)
    s = (A @ x).sum()
    A[0] = 7
    s = s * (x @ A).sum()
    A[:] = 0
    return s


@program
def dot_ours(x: Any) -> Any:
    A = np.arange(16.0).reshape(4, 4)
    s = np.dot(A, x).sum()
    A[0] = 7
    s = s * np.dot(x, A).sum()
    A[:] = 0
    return s


@program
def ix_reuse(x: Any) -> Any:
    M = np.outer(x, x)
    i = np.array([0, 2])
    s = (M[np.ix_(i, i)] ** 2).sum()
    i += 1
    s = s + (M[np.ix_(i, i)]).sum()
    i[:] = 0
    return s


@program
def argsort_inplace(x: Any) -> Any:
    o = np.argsort(x)
    s = (x[o] * np.arange(4)).sum()
    o[:] = o[::-1].copy()
    s = s * (x[o] * np.arange(4)).sum()
    o[:] = 0
    return s


@program
def permutation_step(x: Any) -> Any:
    o = np.arange(4)
    y = x
    for k in range(3):
        y = y[o] * (k + 1) + x
        o[:] = np.roll(o, 1)
    return (y**2).sum()


@program
def repeats_buffer(x: Any) -> Any:
    r = np.array([1, 0, 2, 1])
    s = (np.repeat(x, r) ** 2).sum()
    r[:] = [0, 3, 0, 0]
    s = s * np.repeat(x, r).sum()
    r[:] = 1
    return s


@program
def searchsorted_buffer(x: Any) -> Any:
    e = np.array([0.0, 1.0, 2.0])
    k = np.searchsorted(e, x)
    s = (np.array([1.0, 2.0, 3.0, 4.0])[k] * x).sum()
    e += 0.5
    k[:] = 0
    return s + np.interp(x, e, e**2).sum()


@program
def interp_buffers(x: Any) -> Any:
    xp, fp = np.array([-1.0, 0.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0, 5.0])
    s = np.interp(x, xp, fp).sum()
    fp[:] = fp[::-1].copy()
    s = s + np.interp(x, xp, fp).prod()
    xp[:] = 0
    fp[:] = 0
    return s


@program
def axes_list(x: Any) -> Any:
    M = np.outer(x, x**2).reshape(2, 2, 4)
    a = [0, 2, 1]
    s = (M.transpose(a) * np.arange(16.0).reshape(2, 4, 2)).sum()
    a[:] = [2, 1, 0]
    s = s + (np.transpose(M, a) * np.arange(16.0).reshape(4, 2, 2)).prod(axis=(0,)).sum()
    a.clear()
    return s


@program
def view_via_list(x: Any) -> Any:
    M = np.outer(x, x)
    a = [1, 0]
    v = M.transpose(a)
    a.reverse()
    a[:] = [0, 1]
    M[0, 1] = 9.0
    return (v * np.arange(16.0).reshape(4, 4)).sum()


@program
def shape_list(x: Any) -> Any:
    z = x * 1.0
    s = [2, 2]
    v = z.reshape(s)
    s[:] = [4, 1]
    z[1] = 5 * x[0]
    return (v * np.array([[1.0, 2.0], [3.0, 4.0]])).sum()


@program
def cumulative_idx(x: Any) -> Any:
    i = np.array([0])
    s = 0.0
    for k in range(4):
        s = s + x[i][0] ** (k + 1)
        i += 1
        i %= 4
    return s


@program
def idx_in_dict(x: Any) -> Any:
    d = {"i": np.array([0, 1]), "m": [0, 3]}
    s = (x[d["i"]] * x[d["m"]]).sum()
    d["i"] += 2
    d["m"][0] = 1
    s = s * (x[d["i"]] * x[d["m"]]).sum()
    d["i"][:] = 0
    d["m"][:] = [0, 0]
    return s


@program
def generator_idx(x: Any) -> Any:
    i = np.zeros(2, int)

    def gen():
        for k in range(3):
            i[:] = [k, k + 1]
            yield i

    return sum((x[j] ** 2).prod() for j in gen())


@program
def setitem_idx(x: Any) -> Any:
    z = np.zeros(4)
    i = np.array([0, 1])
    for k in range(3):
        z[i] = x[i] ** 2 * (k + 1)
        i[:] = (i + 1) % 4
    return (z * x).sum()


@program
def setitem_mask(x: Any) -> Any:
    z = np.ones(4)
    m = np.array([True, False, True, False])
    z[m] = x[:2] * 3
    m[:] = ~m
    z[m] *= x[2:]
    m[:] = True
    return (z**2).sum()


@program
def copyto_mask(x: Any) -> Any:
    z = x * 1.0
    m = np.array([True, False, True, False])
    np.copyto(z, x**2, where=m)
    m[:] = ~m
    np.copyto(z, np.sin(z), where=m)
    m[:] = False
    return z.sum()


@program
def where_kw(x: Any) -> Any:
    m = np.array([True, False, True, False])
    s = np.sum(x**2, where=m)
    m[:] = ~m
    s = s * np.sum(x, where=m)
    m[:] = True
    return s + np.mean(x**3, where=m)


@program
def clip_bounds(x: Any) -> Any:
    lo, hi = np.full(4, -0.1), np.full(4, 1.0)
    s = np.clip(x, lo, hi).sum()
    lo[:] = -5
    hi[:] = 5
    s = s * (np.clip(x, lo, hi) ** 2).sum()
    lo[:] = hi[:] = 0
    return s


@program
def power_exps(x: Any) -> Any:
    e = np.array([1.0, 2.0, 3.0, 2.0])
    y = np.abs(x) ** e
    s = y.sum()
    e += 1
    s = s + (np.abs(x) ** e).sum()
    e[:] = 0
    return s


@program
def maximum_ref(x: Any) -> Any:
    r = np.zeros(4)
    s = np.maximum(x, r).sum()
    r += 1
    s = s + np.maximum(x * 2, r).prod()
    r[:] = 100
    return s


@program
def tile_pad(x: Any) -> Any:
    w = [[1, 2]]
    s = (np.pad(x, w) ** 2).sum()
    w[0][0] = 0
    r = [2]
    t = np.tile(x, r)
    r[0] = 3
    return s + (t * np.arange(8.0)).sum()


@program
def roll_shift(x: Any) -> Any:
    sh = np.array(1)
    s = (np.roll(x, int(sh)) * np.arange(4)).sum()
    sh += 1
    return s * (np.roll(x, int(sh)) * np.arange(4)).sum()


@program
def polyval_coeffs(x: Any) -> Any:
    c = np.array([1.0, -2.0, 3.0])
    s = np.polyval(c, x).sum()
    c[:] = c[::-1].copy()
    s = s + np.polyval(c, x).prod()
    c[:] = 0
    return s


@program
def convolve_kernel(x: Any) -> Any:
    k = np.array([1.0, -2.0])
    s = (np.convolve(x, k) ** 2).sum()
    k *= -1
    s = s + np.convolve(x, k)[2]
    k[:] = 0
    return s


@program
def solve_matrix(x: Any) -> Any:
    A = np.eye(4) * 3 + np.ones((4, 4))
    s = np.linalg.solve(A, x).sum()
    A[0, 0] = 9
    s = s * np.linalg.solve(A, x**2).sum()
    A[:] = np.eye(4)
    return s


@program
def float_idx_arith(x: Any) -> Any:
    i = np.array([0, 1, 2])
    f = i * 0.5
    s = (x[i] * f).sum()
    i += 1
    f += i
    s = s + (x[i] * f).prod()
    i[:] = 0
    f[:] = 0
    return s


@program
def large_index(x: Any) -> Any:
    i = np.arange(4000) % 4
    s = np.sin(x[i] * np.arange(4000) * 1e-3).sum()
    i += 1
    i %= 4
    s = s + (x[i] * np.arange(4000) * 1e-3).sum() ** 2 * 1e-4
    i[:] = 0
    return s


@program
def large_plain(x: Any) -> Any:
    i = onp.arange(4000) % 4
    w = onp.arange(4000) * 1e-3
    s = np.sin(x[i] * w).sum()
    i += 1
    i %= 4
    w *= 2
    s = s + (x[i] * w).sum() ** 2 * 1e-4
    i[:] = 0
    w[:] = 0
    return s


@program
def rec_closure(x: Any) -> Any:
    st = {"k": np.array([0])}

    def step(y, d):
        if d == 0:
            return y
        r = y * x[st["k"]][0] + np.sin(x)
        st["k"] += 1
        return step(r, d - 1)

    return step(x, 3).sum()


@program
def choice_reduceat(x: Any) -> Any:
    i = np.array([0, 2])
    s = (np.add.reduceat(x**2, i) * np.array([1.0, 3.0])).sum()
    i[1] = 1
    s = s * np.add.reduceat(x, i).prod()
    i[:] = 0
    return s


@program
def take_along(x: Any) -> Any:
    M = np.outer(x, x)
    i = np.argsort(M, axis=1)
    s = (np.take_along_axis(M, i, 1) * np.arange(4)).sum()
    i[:] = i[:, ::-1].copy()
    s = s + (np.take_along_axis(M, i, 1) * np.arange(4)).sum() ** 2
    i[:] = 0
    return s


@program
def delete_insert(x: Any) -> Any:
    i = [1]
    y = np.delete(x, i)
    i[0] = 2
    z = np.insert(y, i, x[0] ** 2)
    i[0] = 0
    return (z * np.arange(1.0, 5.0)).sum()


@program
def split_points(x: Any) -> Any:
    q = [1, 3]
    a, b, c = np.split(x, q)
    q[:] = [2, 2]
    return (a**2).sum() + b.prod() + (c**3).sum()


@program
def fill_diag(x: Any) -> Any:
    M = np.outer(x, x)
    d = np.array([1.0, 2.0, 3.0, 4.0])
    np.fill_diagonal(M, d * x)
    d[:] = 0
    return (M**2).sum()


@program
def cross_tensordot(x: Any) -> Any:
    ax = [[0], [0]]
    W = np.arange(4.0)
    s = np.tensordot(x, W, ax)
    ax[0][0] = 5
    W[:] = 9
    return s + np.tensordot(x, x, [[0], [0]])


def slope(f: Callable, x: onp.ndarray) -> onp.ndarray:
    out = onp.zeros_like(x)
    for i in range(x.size):
        e = onp.zeros_like(x)
        e[i] = 1e-5
        out[i] = (float(f(np.array(x + e))) - float(f(np.array(x - e)))) / 2e-5
    return out


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_kept_is_what_it_was(name: str) -> None:
    f = PROGRAMS[name]
    g, compiled, slopes, products = grad(f), jit(f), jit(grad(f)), jit(hvp(f))
    value, want = float(f(np.array(X))), slope(f, X)
    second = (onp.asarray(g(np.array(X + 1e-5 * V))) - onp.asarray(g(np.array(X - 1e-5 * V)))) / 2e-5
    near, twice = 1e-5 * max(1, abs(want).max()), 1e-4 * max(1, abs(second).max())
    batch = np.array([X + 0.125, X])

    def close(got: Any, to: Any, limit: float) -> None:
        onp.testing.assert_allclose(onp.asarray(got), to, 1e-5, limit)

    for _ in range(2):
        close(compiled(np.array(X)), value, near)
        close(slopes(np.array(X)), want, near)
        close(products(np.array(X), np.array(V)), second, twice)
    for ways in (g(np.array(X)), g(X.copy()), grad(compiled)(np.array(X)), vjp(f, X.copy())[1](np.array(1.0))[0]):
        close(ways, want, near)
    close(grad(checkpoint(f))(np.array(X)), want, near)
    close(jvp(f, (X,), (V,))[1], want @ V, near)
    close(hvp(f)(np.array(X), V), second, twice)
    close(grad(lambda x: (g(x) * V).sum())(np.array(X)), second, twice)
    close(vmap(f)(batch)[1], value, near)
    close(vmap(g)(batch)[1], want, near)
    close(jit(vmap(g))(batch)[1], want, near)
    close(vmap(lambda x: hvp(f)(x, V))(batch)[1], second, twice)
