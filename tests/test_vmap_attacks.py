"""Programs that write through views, index and branch on what they hold, under vmap and everything that meets it.

A line is a program of one example `x`: its shape, statements, and what it returns. Each is compared with a loop over
the examples in NumPy, and its gradients with differences of that loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import Context, grad, hvp, jit, jvp, vmap
from minnp.core.arrays.array import array_of
from minnp.errors import NotDifferentiableError

LINES = """
4   | s = np.sum(x)                                                      | s * 2 if isinstance(s, float) else -s
4   | s = x[0] * x[1]                                                    | -s if isinstance(s, np.ndarray) else s * 2
4   | n = (x > 0).sum()                                                  | x if isinstance(n, np.integer) else -x
4   | z = x * 1; t = z[0]; z[0] = 0                                    | t ** 2 + z.sum()
4   | z = x * 1; t = z[1:2]; z[1] = 5                                  | (t * x[1:2]).sum()
4   | z = x * 1; t = z[1, ...]; z[1] = 5                               | t * x[0]
4   | z = x * 1; t = z[-1]; t += 1                                     | t * z.sum()
4   | z = x * 1; z[0], z[3] = z[3], z[0]                               | z * z[::-1] * x
4   | z = x * 1; z[:2], z[2:] = z[2:], z[:2]                           | z * x
4   | z = x * 1; z[[0, 3]] = z[[3, 0]]                                 | z * x
4   | z = x * 1; z[::2] = z[1::2] ** 2                                 | z
4   | z = x * 1; z[1:] += z[:-1]                                       | z * z
4   | z = x * 1; z[:-1] *= z[1:]                                       | z * z
4   | z = x * 1; v = z[::-1]; v[0] = x[1] * x[2]                       | z * v
4   | z = x * 1; v = z.reshape(2, 2); v[0] = x[2:] ** 2                | z * x
4   | z = x * 1; v = z.reshape(2, 2).T; v[0] = x[2:] ** 2              | z * x
4   | z = x * 1; v = z.reshape(2, 2).T.reshape(-1); v[0] = 7           | z * v * x
4   | z = x * 1; v = z.reshape(2, 2).T.ravel(); v[:] = 7; z[0] = 1     | z * v * x
4   | z = x * 1; v = z.reshape(2, 2, order='F'); v[0] = x[:2] * 3      | z * x
4   | z = x * 1; a, b = np.split(z, 2); a *= b; b[:] = a               | z * x
4   | z = x * 1; a, *b = z; z[0] = 3; z[1] = 4                         | a * b[0] * b[1] * z.sum()
4   | z = x * 1; a, *b = z.reshape(2, 2); a[0] = 3; b[0][1] = x[0]     | z * x
4   | z = x * 1; w = z; w *= 2; z += w                                 | z * w
4   | z = x * 1; w = z[1:3]; u = w[1:]; u[0] = x[0] ** 2               | z * w.sum()
4   | z = np.zeros(4); z[1:3] = x[:2]; z[0] = z[1] * z[2]              | z * z
4   | z = np.zeros(4); v = z[1:]; z[2] = x[0]; v[0] = x[1] ** 2        | z * v.sum()
4   | z = np.zeros((2, 4)); z[0] = x; z[1] = z[0] ** 2                 | z * x
4   | z = np.zeros((2, 4)); z.T[1] = x[:2]; z[:, 2] = x[2:]            | z * z
4   | z = np.zeros((2, 4)); z[:] = x; z[1, 1:3] *= x[0]                | z * x
4   | z = np.empty_like(x); z[...] = x ** 2; z[1] -= z[0]              | z
4   | z = x.copy(); z.fill(2.0); z[1] = x[0]                           | z * x
4   | z = x.astype(complex); z.real[1:3] = x[:2]; z.imag[:] = x        | (z * z).real + z.imag * x
4   | z = x + 1j * x ** 2; v = z.real; v *= 2; z[0] = 1j               | abs(z) + v
4   | z = x * (1 + 2j); z.imag = x ** 2                                | (z * z * z).imag
4   | z = x * (1 + 2j); t = z[1].real; z[1] = 0                        | t * abs(z)[0]
4   | z = (x * 1).view(complex); z[0] *= 1j                            | z.real * z.imag
4   | z = np.exp(1j * x); z[1:].real = 0.5                             | abs(z) ** 2 * x
2,3 | z = x * 1; z[0] = x[1] ** 2; z[:, 1] = z[:, 0]                   | z * x
2,3 | z = x * 1; v = z.T; v[0] = x[:, 2]; v[1, 0] = 4                  | z * x
2,3 | z = x.T * 1; v = z.reshape(-1); v[0] = 5; v *= 2                 | z * v.reshape(3, 2)
2,3 | z = x.T * 1; v = z.ravel(); v[1] = 5                             | z.sum() * v
2,3 | z = x.T * 1; v = z.ravel(order='K'); v[1] = 5                    | z.T * x + v.sum()
2,3 | z = x.T * 1; v = z.reshape(-1, order='F'); v[1] = 5 * x[0, 0]    | z.T * x
2,3 | z = x.T * 1; v = z.reshape(-1, order='A'); v[1] = 5 * x[0, 0]    | z.T * x
2,3 | z = np.copy(x.T); v = z.reshape(-1); v[1] = 5 * x[0, 0]          | z.T * x
2,3 | z = x.T.copy(); v = z.reshape(-1); v[1] = 5 * x[0, 0]            | z.T * x
2,3 | z = np.exp(x.T); v = z.reshape(-1); v[1] = 5 * x[0, 0]           | z.T * x
2,3 | z = np.sort(x.T, 0); v = z.reshape(-1); v[1] = 5                 | z.T * x
2,3 | z = x[:, [0, 2]] * 1; v = z.reshape(-1); v[1] = 5                | z * x[:, :2]
2,3 | z = x[:, [0, 2]]; v = z.reshape(-1); v[1] = 5                    | z * x[:, :2]
2,3 | z = np.asfortranarray(x); z = z * 1; v = z.reshape(-1); v[0] = 9 | z * x + v[0]
2,3 | z = np.asfortranarray(x) * 1; z.ravel(order='F')[1] = x[0, 1]**2 | z * x
2,3 | z = x * 1; z.flat[::2] = 3 * x.flat[1]; z.flat[1] = 0            | z * x
2,3 | z = x * 1; z.flat = x[0]                                         | z * x
2,3 | z = x * 1; z.T.flat[1] = x[1, 1] ** 2                            | z * x
2,3 | z = x * 1; t = [v for v in z.flat]; z[:] = 0                     | t[0] * t[4] + z.sum()
2,3 | z = x * 1; t = [r for r in z]; t[0] *= t[1]                      | z * x
2,3 | z = x * 1; v = z.swapaxes(0, 1)[1:]; v *= 2; v[0, 0] = x[1, 1]   | z * x
2,3 | z = x * 1; v = z[None, ..., None]; v[0, 1, :, 0] = x[0] ** 2     | z * x
2,3 | z = x * 1; v = np.expand_dims(z, 1).squeeze(); v[1] = x[0] ** 2  | z * x
2,3 | z = x * 1; v = np.flip(z, 1); v[0] = x[1] ** 2                   | z * v
2,3 | z = x * 1; v = np.rot90(z); v[0] = x[:, 0] ** 2                  | z * x
2,3 | z = x * 1; v = np.moveaxis(z, 0, 1); v[1] *= x[0, 0]             | z * x
2,3 | z = x * 1; v = np.atleast_3d(z); v[0, 1] = x[1, 1] ** 2          | z * x
2,3 | z = x * 1; a, b, c = np.hsplit(z, 3); a *= b; c[:] = a           | z * x
2,3 | z = x * 1; a, b = np.vsplit(z, 2); a += b; b[:, 1:] = 0          | z * x
2,3 | z = x * 1; a, b = np.array_split(z, 2, axis=1); b[0] *= a[0, 0]  | z * x
2,3 | z = x * 1; v = np.lib.stride_tricks.sliding_window_view(z, 2, 1) | v.prod(-1) * x[:, 1:]
2,3 | z = np.broadcast_to(x[0], (2, 3)) * 1; z[0] = x[1]               | z * x
2,3 | z = np.zeros((3, 3)); z[:2] = x; z[2] = z[0] * z[1]; z[0, 0] = 1 | z * z
2,3 | z = np.zeros((2, 3), order='F'); z[:] = x; v = z.reshape(-1); v[0] = 4 | z * v.sum()
2,3 | z = np.zeros_like(x.T); v = z.reshape(-1); v[:3] = x[0] ** 2     | z.T + x
3,3 | z = x * 1; np.einsum('ii->i', z)[...] = x[0] ** 2                | z * x
3,3 | z = x * 1; v = np.einsum('ij->ji', z); v[0] = x[1] * 2           | z * x
3,3 | z = x * 1; t = np.einsum('ii', z); z[0, 0] = 1                   | t * z
3,3 | z = x * 1; np.fill_diagonal(z, x[0] ** 2)                        | z * x
3,3 | z = x * 1; z[np.arange(3), np.arange(3)] = x[1]                  | z * x
3,3 | z = x * 1; z[np.diag_indices(3)] *= 2; z.flat[::4] += 1          | z * x
3,3 | z = x * 1; z[np.triu_indices(3, 1)] = 0                          | z * x
3,3 | z = x * 1; z[np.tril(np.ones((3, 3), bool))] = x[0, 0] ** 2      | z * x
3,3 | z = x * 1; d = z.diagonal(); z[1, 1] = 3                         | d * x[0]
3,3 | z = x * 1; d = np.diag(z); z[1, 1] = 3                           | d * x[0]
3,3 | z = np.diag(x[0]); z[0, 1] = x[1, 1]                             | z @ x
3,3 | z = x + 4 * np.eye(3); L = np.linalg.inv(z); L[0] = z[1]         | L * x
3,3 | z = x @ x.T + np.eye(3); L = np.linalg.cholesky(z); L[2, 0] = 1  | L
3,3 | z = x + 4 * np.eye(3); y = np.linalg.solve(z, x[0]); y[0] = 0    | y * x
3,3 | z = x + 4 * np.eye(3); t = np.linalg.det(z); t += 1              | t * x[0, 0]
3,3 | z = x + x.T + np.diag(np.array([1., 5., 9.])); w = np.linalg.eigvalsh(z); w[0] = 1 | w * x[0]
3,3 | n = np.linalg.norm(x, axis=1); n[0] = x[0, 0]                    | n * x
3,3 | z = x * 1; z -= z.mean(0); z /= z.std(1, keepdims=True)          | z * x
3,3 | z = x * 1; z[1:, 1:] -= np.outer(z[1:, 0], z[0, 1:]) / (4 + z[0, 0]) | z * x
3,3 | z = x.T; v = z.reshape(9); v[0] = 2                              | v.reshape(3, 3) * x
3,3 | z = x * 1; z.T[...] = z @ z                                      | z * x
3,3 | z = x * 1; z += z.T                                              | z * x
3,3 | z = x * 1; z[:] = z[::-1, ::-1]                                  | z * x
3,3 | z = x * 1; z[1:] = z[:-1]; z[:, 1:] = z[:, :-1] * x[0, 0]        | z * x
4   | r = np.zeros(4); r[x > 0] = 1                                    | r * x
4   | r = np.zeros(4); m = x > 0; r[m] = x[m]                          | r * x
4   | z = x * 1; z[z < 0] *= 0.5                                       | z * x
4   | z = x * 1; z[x > 0] = x.max()                                    | z * x
4   | z = x * 1; z[np.abs(z) > 0.5] = 0; z[~(z > 0)] += 1              | z * x
4   | m = x > 0                                                        | x[m].sum() * x[~m].sum()
4   | m = x > 100                                                      | x[m].sum() + x.sum()
4   | i = np.argmax(x)                                                 | x[i] ** 2
4   | i = np.argmax(x); z = x * 1; z[i] = 0                            | z * x
4   | i = np.argsort(x)                                                | x[i] * np.arange(4)
4   | i = np.argsort(x); z = np.zeros(4); z[i] = x * np.arange(4)      | z * x
4   | i = np.argsort(x); z = x * 1; z[i[:2]] = 1; z[i[-1]] *= 2        | z * x
4   | i = np.argmin(np.abs(x)); r = np.eye(4)[i]; r[0] = x[0]          | r * x
4   | i = np.argmax(x); t = np.arange(12.).reshape(4, 3); r = t[i]; t[i, 1] = 7 | r * x[:3]
4   | i = np.argmax(x); t = np.zeros((4, 3)); r = t[i]; r[1] = x[0]    | t * r * x[1]
4   | i = np.argmax(x); t = np.zeros((4, 3)); r = t[i]; t[:, 1] = 3    | r * x[:3]
4   | i = np.argmax(x); t = np.zeros((4, 3)); r = t[i]; t += 2; t[i] = 5 | r * x[:3]
4   | i = np.argmax(x); z = x.reshape(2, 2) * 1; r = z[i // 2]; r[0] = 9 | z * x[0]
4   | i = np.argmax(x); z = x.reshape(2, 2) * 1; r = z[i // 2]; z[0] = 9 | r * x[:2]
4   | i = np.argmax(x)                                                 | x[i] * x[i - 1] + x[(i + 1) % 4]
4   | i = np.argmax(x)                                                 | np.take(x, i) * x
4   | i = np.array([0, 0, 2]); z = x * 1; z[i] = x[:3] * 2             | z * x
4   | i = np.array([0, 0, 2]); z = x * 1; z[i] += x[:3]                | z * x
4   | i = np.array([0, 0, 2]); z = x * 1; np.add.at(z, i, x[:3] ** 2)  | z * x
4   | i = np.argsort(x) // 2; z = x * 1; np.add.at(z, i, x ** 2)       | z * x
4   | i = np.argsort(x) // 2; z = x * 1; np.multiply.at(z, i, x)       | z * x
4   | i = np.argsort(x) // 2; z = x * 1; z[i] = x ** 2                 | z * x
4   | i = np.searchsorted(np.sort(x), 0.1)                             | np.append(x, 1.0)[i] * x
4   | i = np.nonzero(x > 0)[0]                                         | (x[i] * i).sum()
4   | z = np.where(x > 0, x, 0.1 * x); z[0] = 1                        | z * x
4   | z = np.where(x[0] > 0, x, -x)                                    | z * x
4   | z = np.select([x < -0.5, x < 0.5], [x * 2, x ** 2], 1.0)         | z * x
4   | z = np.choose((x > 0).astype(int), [x, x ** 2])                  | z * x
4   | z = np.clip(x, -0.5, 0.5); z[1] = 3                              | z * x
4   | z = np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v ** 2]) | z * x
4   | z = x * 1; np.putmask(z, x > 0, x ** 2)                          | z * x
4   | z = x * 1; np.place(z, x > 0, np.array([1., 2.]))                | z * x
4   | z = x * 1; np.copyto(z, x ** 2, where=x > 0)                     | z * x
4   | z = x * 1; np.put(z, [0, -1], x[:2] ** 2)                        | z * x
4   | z = x * 1; np.multiply(z, x, out=z, where=x > 0)                 | z * x
4   | z = x * 1; np.add(z[1:], x[0], out=z[:-1])                       | z * x
4   | z = x * 1; np.cumsum(z, out=z)                                   | z * x
4   | z = x * 1; z.sort(); z[0] = 0                                    | z * x
4   | z = x * 1; z[1:].sort()                                          | z * x
4   | z = np.extract(x > 0, x ** 2)                                    | z.sum() * x
2,3 | i = np.argsort(x, 1); z = np.take_along_axis(x, i, 1); z[0] = 1  | z * x
2,3 | i = np.argmax(x, 1)[:, None]; z = x * 1; np.put_along_axis(z, i, 0.0, 1) | z * x
2,3 | i = np.argmax(x, axis=1); z = x * 1; z[np.arange(2), i] = x[:, 0] ** 2 | z * x
2,3 | i = np.argmax(x, axis=1)                                         | x[np.arange(2), i] * x[:, 0]
2,3 | i = np.argmax(x, axis=1)                                         | x[:, i] * x[0, 0]
2,3 | i, j = np.unravel_index(np.argmax(x), (2, 3)); z = x * 1; z[i, j] = 0 | z * x
2,3 | z = x * 1; z[x.sum(1) > 0] = 2                                   | z * x
2,3 | z = x * 1; z[:, x.sum(0) > 0] *= 2                               | z * x
2,3 | z = x * 1; z[1, np.argmax(z[0])] = 3; z[:, 0] = z[:, np.argmin(z[1])] | z * x
2,3 | z = np.concatenate([x, x ** 2]); z[1] = z[2]                     | z
2,3 | z = np.stack([x, x.T.reshape(2, 3)], 1); z[:, 0] *= 2            | z
2,3 | z = np.roll(x, 1, 1); z[0] = 1; z = np.roll(z, -1)               | z * x
2,3 | z = np.hstack([x, x[:, :1]]); z[:, -1] = 0; z = np.vstack([z, z[0]]) | z
2,3 | z = np.tile(x, 2); z[0] = 1; z = np.repeat(z, 2, 0); z[0] = 2    | z
2,3 | z = np.pad(x, 1); z[0] = 1; z[:, 0] = z[:, 1]                    | z
2,3 | z = np.delete(x, 1, 1); z[0] = 1                                 | z * x[:, :2]
2,3 | z = np.insert(x, 1, 5.0, 1); z[0, 0] = x[1, 1]                   | z
2,3 | z = np.block([[x, x], [x * 2, x]]); z[0] = 1                     | z
2,3 | z = np.meshgrid(x[0], x[1])[0]; z[0] = 1                         | z
2,3 | z = x.sum(0); z[0] = x[0, 0]; t = x.sum(); t *= 2                | z * t
2,3 | z = x.max(1); m = x == z[:, None]; z[0] = 1                      | (m * x).sum() * z
2,3 | t = x.min(); t -= 1; u = x.mean(); u **= 2                       | t * u * x
2,3 | a = (x > 0).any(1); b = (x > 0).all(); c = np.count_nonzero(x > 0, 0) | a.sum() * x + b * x ** 2 + c
2,3 | z = np.cumsum(x, 1); z[:, 0] = 0; z = np.diff(z, axis=1)         | z * x[:, 1:]
2,3 | a = np.array([x[0, 0], x[1, 1]]); a[0] = x[0, 1]                 | a * x[:, 0]
2,3 | a = np.array(x[0, 0]); a[...] = x[1, 1]; a += 1                  | a * x
2,3 | a = np.asarray(x); a = a + 0; a[0] = 1; b = np.array(a); a[1] = 2 | b * x
2,3 | a = np.ascontiguousarray(x.T); a[0] = 1                          | a.T * x
2,3 | a = x * 1; b = a[...]; a += 1; b[0] *= 2                         | a * x
2,3 | a = x * 1; a.shape = (3, 2); a[0] = 1                            | a * x.T
2,3 | a = x.strides[0] // 8 * x; b = x.flags.c_contiguous              | a * (2 if b else 3)
2,3 | x[0] = x[1] ** 2; x[:, 1] = 0                                    | x * x
2,3 | x *= 2; v = x.reshape(-1); v[0] = 3                              | x * x
2,3 | z = x * 1; z[0, :2] = z[0, 1:]; z[0, 1:] = z[0, :2]              | z * x
2,3 | z = np.ones((2, 3), int); z[0] = 2.7; w = z * x; w[1] = z[0]     | w * x
"""


def _parse(line: str) -> tuple[str, tuple[int, ...], Callable]:
    shape, statements, result = line.split("|")
    body = "".join(f"    {s.strip()}\n" for s in statements.split(";") if s.strip())
    space: dict[str, Any] = {}
    exec(compile(f"def program(np, x):\n{body}    return {result.strip()}\n", line, "exec"), space)
    name = " ".join(f"{statements.strip()}; {result.strip()}".split())
    return name, tuple(int(n) for n in shape.split(",")), space["program"]


PROGRAMS = [_parse(line) for line in LINES.strip().splitlines()]
SIZE, STEP = 3, 1e-6
LAYOUTS: dict[str, Callable] = {  # of data, batch first: (an array of the same examples, its batch axis)
    "first axis": lambda d: (d, 0),
    "second axis": lambda d: (onp.ascontiguousarray(onp.moveaxis(d, 0, 1)), 1),
    "last axis": lambda d: (onp.ascontiguousarray(onp.moveaxis(d, 0, -1)), -1),
    "Fortran's order": lambda d: (onp.asfortranarray(d), 0),
    "backwards": lambda d: (onp.ascontiguousarray(d[..., ::-1])[..., ::-1], 0),
    "every other": lambda d: (onp.repeat(d, 2, -1)[..., ::2], 0),
}


def fresh(x: onp.ndarray) -> onp.ndarray:
    """A copy with the same strides."""
    if x.flags.forc:
        return x.copy("K")
    return onp.repeat(x, 2, -1)[..., ::2] if x.strides[-1] > 0 else x[..., ::-1].copy()[..., ::-1]


def weighted(y: Any) -> Any:
    """A number that each element of y moves in its own way."""
    return (y * onp.cos(onp.arange(y.size) + 1.0).reshape(y.shape)).sum()


def looped(f: Callable, x: onp.ndarray, axis: int) -> onp.ndarray:
    """f of each example in NumPy, stacked."""
    x = onp.moveaxis(fresh(x), axis, 0)
    return onp.stack([f(onp, x[i]) for i in range(len(x))])


def slopes(f: Callable, x: onp.ndarray, axis: int) -> onp.ndarray:
    """The gradient of weighted(f) at each example, by differences, shaped as x."""
    out = onp.zeros_like(x)
    for at in onp.ndindex(x.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = fresh(x)
            moved[at] += step
            ends.append(weighted(f(onp, onp.moveaxis(moved, axis, 0)[at[axis]])))
        out[at] = (ends[0] - ends[1]) / (2 * STEP)
    return out


def values_and_gradients(f: Callable, axis: int) -> Iterator[tuple[str, str, Callable]]:
    """(what it is compared with, its name, function of the batch), for any memory order."""
    v, s = lambda x: f(np, x), lambda x: weighted(f(np, x))
    yield "value", "vmap", vmap(v, in_axes=axis)
    yield "slope", "vmap(grad)", vmap(grad(s), in_axes=axis, out_axes=axis)
    yield "slope", "grad(vmap)", grad(lambda x: vmap(s, in_axes=axis)(x).sum())


def in_every_way(f: Callable, t: Any) -> Iterator[tuple[str, str, Callable]]:
    """The same for a batch along the first axis; t is a direction for derivatives."""
    v, s = lambda x: f(np, x), lambda x: weighted(f(np, x))
    yield "value", "jit(vmap)", jit(vmap(v))
    yield "value", "vmap(jit)", vmap(jit(v))
    yield "value", "vmap(vmap)", lambda x: vmap(vmap(v))(np.stack([x + 1, x]))[1]
    yield "value", "vmap of two", lambda x: vmap(lambda x, y: f(np, x) + 0 * y, in_axes=(0, None))(x, np.zeros(()))
    yield "slope", "vmap(vmap(grad))", lambda x: vmap(vmap(grad(s)))(np.stack([x + 1, x]))[1]
    yield "slope", "jit(vmap(grad))", jit(vmap(grad(s)))
    yield "slope", "vmap(grad(jit))", vmap(grad(jit(s)))
    yield "tangent", "jvp(vmap)", lambda x: jvp(vmap(s), (x,), (t,))[1]
    yield "tangent", "vmap(jvp)", lambda x: vmap(lambda x, t: jvp(s, (x,), (t,))[1])(x, t)
    yield "curvature", "hvp(vmap)", lambda x: hvp(lambda x: vmap(s)(x).sum())(x, t)
    yield "curvature", "vmap(hvp)", lambda x: vmap(lambda x, t: hvp(s)(x, t))(x, t)


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize(("shape", "f"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_a_batch_is_a_loop_over_examples(shape: tuple[int, ...], f: Callable) -> None:
    data = onp.random.default_rng(0).normal(size=(SIZE, *shape))
    direction = onp.cos(onp.arange(data.size) * 1.7).reshape(data.shape)
    s = lambda x: weighted(f(np, x))
    for layout, laid in LAYOUTS.items():
        x, axis = laid(data)
        try:
            wanted = {"value": looped(f, x, axis), "slope": slopes(f, x, axis)}
        except (ValueError, AttributeError) as error:  # arrays that lie so cannot be viewed so
            with pytest.raises(type(error)):
                vmap(lambda x: f(np, x), in_axes=axis)(array_of(fresh(x)))
            continue
        ways = [*values_and_gradients(f, axis)]
        if layout == "first axis":
            wanted["tangent"] = (wanted["slope"] * direction).reshape(SIZE, -1).sum(1)
            at = lambda x: onp.stack([onp.asarray(grad(s)(np.array(example))) for example in x])
            wanted["curvature"] = (at(x + STEP * direction) - at(x - STEP * direction)) / (2 * STEP)
            ways += in_every_way(f, np.array(direction))
        for kind, name, way in ways:
            given = array_of(fresh(x))
            y = onp.asarray(way(given))
            exact = {"rtol": 1e-9, "atol": 1e-9} if kind == "value" else {"rtol": 1e-4, "atol": 2e-4}
            onp.testing.assert_allclose(y, wanted[kind], **exact, err_msg=f"{name}, {layout}")
            assert (onp.asarray(given) == x).all(), f"{name} wrote to the caller's array"


# ------------------------------------------------------------------ what a batch is not seen by
def batch(*shape: int) -> onp.ndarray:
    return onp.random.default_rng(1).normal(size=shape)


def test_an_element_is_a_number_in_nested_batches() -> None:
    def f(x: Any) -> Any:
        z = x * 1.0
        t = z[0]
        z[0] = 0.0
        return t**2

    x = batch(2, 3, 4)
    onp.testing.assert_allclose(vmap(vmap(f))(np.array(x)), x[..., 0] ** 2)
    slope = onp.zeros_like(x)
    slope[..., 0] = 2 * x[..., 0]
    onp.testing.assert_allclose(vmap(vmap(grad(f)))(np.array(x)), slope)
    onp.testing.assert_allclose(jit(vmap(grad(f)))(np.array(x[0])), slope[0])


def test_strides_and_flags_are_those_of_an_example() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((x.strides, x.T.strides, x.flags.f_contiguous, np.exp(x).strides, (x * 1).T.copy("K").strides))
        return x

    vmap(f, in_axes=1)(np.array(batch(2, 5, 3)))
    vmap(f)(np.array(onp.asfortranarray(batch(2, 5, 3))))
    assert seen[0] == ((120, 8), (8, 120), False, (24, 8), (8, 24))
    assert seen[1] == ((16, 80), (80, 16), False, (8, 40), (40, 8))


def test_an_example_on_a_device_lies_as_one_in_numpys_memory() -> None:
    torch_ = pytest.importorskip("torch", reason="a place besides NumPy's memory") and Context("cpu", 0, "torch")

    def f(np: Any, x: Any) -> Any:
        assert x.strides == (24, 8) and x.T.flags.f_contiguous
        z = x.T * 1
        v = z.ravel(order="K")
        v[1] = 5
        y = np.zeros_like(x.T)
        w = y.reshape(-1)
        w[:3] = x[0] ** 2
        return z.T * x + y.T + w.sum()

    x = batch(2, 2, 3)
    found = vmap(lambda x: f(np, x))(np.array(x).to_device(torch_))
    onp.testing.assert_allclose(onp.asarray(found), onp.stack([f(onp, e) for e in x]))


def test_a_result_shows_no_argument() -> None:
    a = np.array(batch(3, 4))
    was = onp.array(a)
    for f in (lambda x: x, lambda x: x[1:], lambda x: x.T, lambda x: x.reshape(2, 2)):
        vmap(f)(a)[0] = 9.0
        assert (onp.asarray(a) == was).all()

    def returned_and_written(x: Any) -> Any:
        z = x * 1
        y = vmap(lambda v: v)(z)
        y[0] = 0.0
        return (y * z).sum()

    slope = 2 * was
    slope[0] = 0.0
    onp.testing.assert_allclose(grad(returned_and_written)(a), slope)


def test_a_function_that_catches_everything_still_branches_by_example() -> None:
    def f(x: Any) -> Any:
        try:
            return x * (2.0 if x[0] > 0 else 3.0)
        except Exception:
            return x * 0.0

    x = batch(6, 4)
    wanted = x * onp.where(x[:, :1] > 0, 2.0, 3.0)
    onp.testing.assert_allclose(vmap(f)(np.array(x)), wanted)
    onp.testing.assert_allclose(vmap(vmap(f))(np.array(x.reshape(2, 3, 4))), wanted.reshape(2, 3, 4))


def test_a_branch_by_example_leaves_the_arguments_alone() -> None:
    def f(x: Any) -> Any:
        x[0] = 5.0
        return x if x[1] > 0 else -x

    a = np.array(batch(6, 4))
    was = onp.array(a)
    wanted = was * onp.where(was[:, 1:2] > 0, 1.0, -1.0)
    wanted[:, 0] = onp.where(was[:, 1] > 0, 5.0, -5.0)
    onp.testing.assert_allclose(vmap(f)(a), wanted)
    assert (onp.asarray(a) == was).all()


def test_batched_indices_into_arrays_from_outside() -> None:
    table, i = batch(5, 3), onp.array([4, 0, 0, 2])
    t = np.array(table)
    onp.testing.assert_allclose(vmap(lambda k: t[k])(np.array(i)), table[i])
    onp.testing.assert_allclose(
        vmap(lambda k: t[k, 1:] * t[1, k % 3])(np.array(i)), table[i, 1:] * table[1, i % 3][:, None]
    )
    onp.testing.assert_allclose(vmap(vmap(lambda k: t[k]))(np.array(i.reshape(2, 2))), table[i].reshape(2, 2, 3))
    onp.testing.assert_allclose(jit(vmap(lambda k: t[k]))(np.array(i)), table[i])
    counts = onp.bincount(i, minlength=5)[:, None] * onp.ones(3)
    summed = lambda t: vmap(lambda k: t[k])(np.array(i)).sum()
    onp.testing.assert_allclose(grad(summed)(t), counts)
    onp.testing.assert_allclose(jit(grad(summed))(t), counts)
    onp.testing.assert_allclose(jvp(summed, (t,), (t,))[1], table[i].sum())
    per_table = vmap(grad(lambda t, k: t[k].sum()), in_axes=(None, 0))(t, np.array(i))
    onp.testing.assert_allclose(per_table, onp.eye(5)[i][..., None] * onp.ones(3))
    onp.testing.assert_allclose(
        vmap(lambda x, k: x[k], in_axes=(1, 0))(np.array(table[:, [0, 1, 2, 0]]), np.array(i)), table[i, [0, 1, 2, 0]]
    )


def test_what_a_batched_index_shows_follows_later_writes() -> None:
    def f(k: Any) -> Any:
        t = np.zeros((4, 2))
        row = t[k]
        t[0] = 1.0
        before = row * 1
        row += 1.0
        np.add(t, 1.0, out=t)
        return before + 10 * row + 100 * t[0]

    def plain(k: int) -> onp.ndarray:
        t = onp.zeros((4, 2))
        row = t[k]
        t[0] = 1.0
        before = row * 1
        row += 1.0
        onp.add(t, 1.0, out=t)
        return before + 10 * row + 100 * t[0]

    i = onp.array([0, 3, 1])
    onp.testing.assert_allclose(vmap(f)(np.array(i)), onp.stack([plain(k) for k in i]))


def test_the_shape_of_a_traced_array_is_set_where_numpy_sets_it() -> None:
    def f(x: Any) -> Any:
        z = (x * 1).T
        z.shape = (4,)
        return z.sum()

    for way in (grad(f), jit(f), lambda x: vmap(f)(x[None])):
        with pytest.raises(AttributeError, match="in-place modification"):
            way(np.array(batch(2, 2)))


# ------------------------------------------------------------------ batched indices
INDEXED = """
r = x[i]; r *= 2; x[i - 1] = x[0]; x[:, i] += 1           | (x * x).sum() + r.sum()
r = x[i]; s = x[:, i]; r[0] = 9; s *= 2; x[0] = x[1]      | x + r * s.sum()
r = x.T[i]; x[1] = 4; x[i] = r                            | x * r
x[[0, i]] = x[[i, 0]]; x[[0, i], :2] *= 2                 | x
x[i, 1:] = x[i - 1, :-1]; x[1:][i - 1] += 1               | x * x
x[i] = x[i - 1] ** 2; x.T[i, 0] = 3                       | x * x[0]
np.add.at(x, i, x[1]); np.multiply.at(x, (i, 0), 2.0)     | x * x
np.put(x, i, 7.0)                                         | x * x[i]
t = np.zeros((3, 3)); r = t[i]; t[0] = x[1]; r += x[i]    | t + r
t = np.eye(3); t[i] = x[0]; t[:, i] = 5                   | t * x
t = np.arange(9.0).reshape(3, 3); r = t[i]; t += 1        | r * x
m = np.arange(3) == i; x[m] = 0; x[:, m] += 1; x[~m] *= 3 | x * x
p = i % 2; x[p:] *= 2                                     | x * x
"""


@pytest.mark.parametrize("line", INDEXED.strip().splitlines())
def test_a_batched_index_takes_what_numpy_takes(line: str) -> None:
    statements, result = line.rsplit("|", 1)
    body = "".join(f"    {s.strip()}\n" for s in statements.split(";"))
    space: dict[str, Any] = {}
    exec(compile(f"def program(np, x, i):\n{body}    return {result.strip()}\n", line, "exec"), space)
    f, x, i = space["program"], batch(4, 3, 3), onp.array([[2, 0], [1, 1], [0, 2], [2, 1]])
    ours, s = lambda x, i: f(np, x * 1, i), lambda x, i: weighted(f(np, x * 1, i))
    each = lambda x, i: f(onp, x * 1, i)
    values = onp.stack([each(y, k) for y, k in zip(x, i[:, 0])])
    rising = onp.stack([slopes(lambda np, y: f(np, y * 1, k), y[None], 0)[0] for y, k in zip(x, i[:, 0])])  # noqa: B023
    of_both = onp.stack([[each(y, k) for k in ks] for y, ks in zip(x, i)])
    to_both = onp.stack([[slopes(lambda np, y: f(np, y * 1, k), y[None], 0)[0] for k in ks] for y, ks in zip(x, i)])  # noqa: B023
    for name, y, wanted in (
        ("vmap", vmap(ours)(np.array(x), np.array(i[:, 0])), values),
        ("of one array", vmap(ours, (None, 0))(np.array(x[0]), np.array(i[0])), of_both[0]),
        ("in_axes", vmap(ours, (1, 0))(np.array(x.swapaxes(0, 1)), np.array(i[:, 0])), values),
        ("jit", jit(vmap(ours))(np.array(x), np.array(i[:, 0])), values),
        ("nested", vmap(vmap(ours, (None, 0)))(np.array(x), np.array(i)), of_both),
        ("outer index", vmap(lambda k: vmap(ours, (0, None))(np.array(x), k))(np.array(i[0]))[:, 0], of_both[0]),
        ("vmap(grad)", vmap(grad(s))(np.array(x), np.array(i[:, 0])), rising),
        ("grad(vmap)", grad(lambda x: vmap(s)(x, np.array(i[:, 0])).sum())(np.array(x)), rising),
        ("jit(vmap(grad))", jit(vmap(grad(s)))(np.array(x), np.array(i[:, 0])), rising),
        ("nested grad", vmap(vmap(grad(s), (None, 0)))(np.array(x), np.array(i)), to_both),
        ("jvp", vmap(lambda y, k: jvp(lambda y: s(y, k), (y,), (y,))[1])(np.array(x), np.array(i[:, 0])),
         (rising * x).sum((1, 2))),
    ):  # fmt: skip
        onp.testing.assert_allclose(onp.asarray(y), wanted, rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_batched_mask_meets_a_cotangent_that_is_not_batched() -> None:
    x, weights = onp.array([1.0, -2.0, 3.0]), onp.array([1.0, 2.0, 4.0])
    twice = grad(lambda x: (grad(lambda x: (x[x > 0] ** 2).sum())(x) * np.array(weights)).sum())
    assert vmap(twice)(np.array([x, -x])).tolist() == [[2.0, 0.0, 8.0], [0.0, 4.0, 0.0]]


def test_a_mask_without_axes_of_each_example() -> None:
    f = lambda m: np.ravel(m[m < 1]).sum()
    assert vmap(f)(np.array([0.25, 0.5])).tolist() == [0.25, 0.5]
    assert vmap(f)(np.array([0.25, 3.0])).tolist() == [0.25, 0.0]
    assert vmap(lambda m: np.ravel(m[m < 1]))(np.array([0.25, 0.5])).tolist() == [[0.25], [0.5]]


def test_writes_to_a_batched_argument_stay_in_the_function():
    def first(r):
        r[0] = 5.0
        return r.sum()

    def decides(r):
        if float(r[0]) > -1:
            r[0] = 5.0
        return r.sum()

    for f in (vmap(first), vmap(decides), jit(vmap(first))):
        x = np.ones((3, 2))
        assert f(x).tolist() == [6.0] * 3 and x.tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize("dtype", [int, onp.int8])
@pytest.mark.parametrize("wrap", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
def test_numbers_that_integers_cannot_hold_are_refused(dtype: Any, wrap: Callable) -> None:
    def f(x: Any) -> Any:
        y = np.zeros(2, dtype)
        y[0], y[1] = x[0], x[1]
        return y

    g = wrap(f)
    for v in ([1.0, 2.5], [1.0, 127.9], [0.0, onp.nan], [onp.inf, 0.0], [1e300, 0.0], [3.0, 4.0], [300.0, 1.0]):
        batch = onp.array([[1.0, 2.0], v])
        try:
            expected = [f(example) for example in batch]
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                g(np.array(batch))
        else:
            onp.testing.assert_array_equal(g(np.array(batch)), expected)


@pytest.mark.parametrize("wrap", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
def test_fields_of_records_are_written(wrap: Callable) -> None:
    def f(x: Any) -> Any:
        r = np.zeros(2, dtype=[("a", "f8"), ("b", "i4"), ("c", "f8", (2,))])
        for i in range(2):
            r["a"][i] = x[i] * 2
        v = r["a"]
        v[1] += 1
        r["c"][0], r["b"][1] = x, 3
        return v, r["c"], r["b"]

    batch = onp.array([[1.0, 2.0], [3.0, 4.0]])
    for k in range(3):
        for out, expected in zip(wrap(f)(np.array(batch + k)), zip(*map(f, batch + k)), strict=True):
            onp.testing.assert_array_equal(out, expected)


def test_records_that_are_written_have_no_gradient() -> None:
    def f(x: Any) -> Any:
        r = np.zeros(2, dtype=[("a", "f8"), ("b", "f8")])
        r["a"][0] = x[0] * 2
        return r["a"].sum()

    for of in (grad(f), jit(grad(f)), grad(jit(f)), lambda x: jvp(f, (x,), (x,))):
        with pytest.raises(NotDifferentiableError):
            of(np.array([1.0, 2.0]))


@pytest.mark.parametrize("around", [lambda f: f, jit])
@pytest.mark.parametrize(
    "f, shape",
    [
        (np.cumsum, (3,)),
        (np.median, (3,)),
        (np.linalg.inv, (3, 3)),
        (np.linalg.cholesky, (3, 3)),
        (lambda x: np.tensordot(x, x, 1), (3, 3)),
        (lambda x: (np.stack([x, x]), np.argmax(x), x > 0), (3,)),
        (lambda x: x if x[0] > 0 else -x, (3,)),
        (grad(lambda x: np.sum(np.cumsum(x))), (3,)),
        (vmap(np.cumsum), (2, 3)),
    ],
)
def test_a_batch_of_no_examples_has_results_like_those_of_an_example(
    f: Callable, shape: tuple, around: Callable
) -> None:
    one = f(np.ones(shape) + (np.eye(3) if shape == (3, 3) else 0.0))
    out = around(vmap(f))(np.zeros((0, *shape)))
    parts = lambda y: y if isinstance(y, tuple) else (y,)
    for a, b in zip(parts(out), parts(one), strict=True):
        assert (a.shape, a.dtype) == ((0, *onp.shape(b)), b.dtype)


def test_gradients_of_a_batch_of_no_examples() -> None:
    assert grad(lambda x: np.sum(vmap(np.cumsum)(x)))(np.zeros((0, 3))).shape == (0, 3)
    assert vmap(np.sin, in_axes=1, out_axes=1)(np.zeros((3, 0))).shape == (3, 0)


def test_examples_that_return_other_numbers_of_results_are_refused() -> None:
    with pytest.raises(ValueError, match="2 arrays and numbers for example 0 and 1 for example 1"):
        vmap(lambda x: [v for v in x if v > 0])(np.array([[1.0, 2.0], [1.0, -2.0]]))


@pytest.mark.parametrize(
    "f",
    [
        lambda n: len(str(n)),
        lambda n: str(n) == str(n)[::-1],
        lambda n: len(f"{n:06d}") + len(f"{n}") + len("%s" % n),  # noqa: UP031
        lambda n: len(repr(n)) * n,
        lambda n: len(str(np.array([n, 0]))),
    ],
)
def test_each_example_has_a_text_of_its_own(f: Callable) -> None:
    n = np.array([5, 121, 12])
    wanted = [f(v) for v in n]
    for way in (vmap(f), jit(vmap(f)), vmap(jit(f))):
        assert way(n).tolist() == wanted


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.ma.array(x, mask=x > 3).filled(0),
        lambda x: np.ma.masked_less(x, 3).sum(),
        lambda x: np.matrix(x) * 2,
    ],
    ids=["masked", "a sum", "a matrix"],
)
def test_subclasses_of_arrays_are_computed_example_by_example(f: Callable) -> None:
    x = np.arange(12.0).reshape(2, 2, 3)
    want = [onp.asarray(f(row)) for row in x]
    for way in (vmap(f), jit(vmap(f))):
        onp.testing.assert_array_equal(way(x), want)


def test_masked_arrays_are_not_stacked_without_their_masks() -> None:
    with pytest.raises(TypeError, match="masked arrays, which cannot be stacked"):
        vmap(lambda x: np.ma.masked_less(x, 3))(np.arange(6.0).reshape(2, 3))
