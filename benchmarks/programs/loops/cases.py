"""The inputs of each program of loops, and its results got another way: by a formula, by SciPy, or by plain Python.

    CASES["gemm"].make(8) -> arguments, expected       expected() has what gemm(*copies of the arguments) returns

A result of which `expected` has None is not compared. `wrt` are the arguments that the results are differentiable in.
"""

from __future__ import annotations

import binascii
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph


@dataclass(frozen=True)
class Case:
    """One program: `inputs(size, rng) -> (arguments, expected)`, and its two sizes."""

    name: str
    inputs: Callable
    small: int
    medium: int
    wrt: tuple[int, ...]
    rtol: float

    def make(self, size: int) -> tuple[tuple, Callable[[], Any]]:
        return self.inputs(size, np.random.default_rng(22))


CASES: dict[str, Case] = {}


def case(small: int, medium: int, wrt: tuple[int, ...] = (), rtol: float = 1e-9) -> Callable:
    def add(inputs: Callable) -> Callable:
        CASES[inputs.__name__] = Case(inputs.__name__, inputs, small, medium, wrt, rtol)
        return inputs

    return add


# Linear algebra


@case(6, 250, wrt=(2, 3, 4, 5))
def mm2(n, rng):
    A, B, C, D = (rng.random(shape) for shape in ((n, n + 2), (n + 2, n + 1), (n + 1, n + 3), (n, n + 3)))
    return (1.5, 1.2, A, B, C, D), lambda: 1.5 * np.einsum("ij,jk,kl->il", A, B, C, optimize=True) + 1.2 * D


@case(6, 250, wrt=(0, 1, 2, 3))
def mm3(n, rng):
    A, B, C, D = (rng.random(shape) for shape in ((n, n + 2), (n + 2, n + 1), (n + 1, n + 3), (n + 3, n + 4)))
    return (A, B, C, D), lambda: np.linalg.multi_dot((A, B, C, D))


@case(6, 300, wrt=(2, 3, 4))
def gemm(n, rng):
    A, B, C = rng.random((n, n + 2)), rng.random((n + 2, n + 1)), rng.random((n, n + 1))
    return (1.5, 1.2, A, B, C), lambda: 1.5 * np.einsum("ij,jk->ik", A, B, optimize=True) + 1.2 * C


@case(6, 700, wrt=(2, 3, 4, 5, 6, 7, 8, 9, 10))
def gemver(n, rng):
    A, (u, v, r, s, y, z, x, w) = rng.random((n, n)), rng.random((8, n)) / n

    def expected():
        full = A + np.einsum("i,j->ij", u, v) + np.einsum("i,j->ij", r, s)
        moved = x + 1.2 * full.T.dot(y) + z
        return full, moved, w + 1.5 * full.dot(moved)

    return (1.5, 1.2, A, u, v, r, s, y, z, x, w), expected


@case(6, 700, wrt=(2, 3, 4))
def gesummv(n, rng):
    A, B, x = rng.random((n, n)), rng.random((n, n)), rng.random(n)
    return (1.5, 1.2, A, B, x), lambda: (1.5 * A + 1.2 * B).dot(x)


@case(6, 80, wrt=(2, 3, 4))
def symm(n, rng):
    A, B, C = rng.random((n, n)), rng.random((n, n + 2)), rng.random((n, n + 2))
    return (1.5, 1.2, A, B, C), lambda: 1.2 * C + 1.5 * (np.tril(A) + np.tril(A, -1).T) @ B


@case(6, 120, wrt=(2, 3))
def syrk(n, rng):
    A, C = rng.random((n, n + 2)), rng.random((n, n))
    return (1.5, 1.2, A, C), lambda: np.triu(C, 1) + np.tril(1.2 * C + 1.5 * A @ A.T)


@case(6, 100, wrt=(2, 3, 4))
def syr2k(n, rng):
    A, B, C = rng.random((n, n + 2)), rng.random((n, n + 2)), rng.random((n, n))
    return (1.5, 1.2, A, B, C), lambda: np.triu(C, 1) + np.tril(1.2 * C + 1.5 * (A @ B.T + B @ A.T))


@case(6, 100, wrt=(1, 2))
def trmm(n, rng):
    A, B = rng.random((n, n)), rng.random((n, n + 2))
    return (1.5, A, B), lambda: 1.5 * (np.tril(A, -1) + np.eye(n)).T @ B


@case(6, 900, wrt=(0, 1))
def atax(n, rng):
    A, x = rng.random((n + 2, n)), rng.random(n)
    return (A, x), lambda: (A.T @ A).dot(x)


@case(6, 900, wrt=(0, 1, 2))
def bicg(n, rng):
    A, p, r = rng.random((n + 2, n)), rng.random(n), rng.random(n + 2)
    return (A, p, r), lambda: ((A * r[:, None]).sum(axis=0), (A * p).sum(axis=1))


@case(6, 900, wrt=(0, 1, 2, 3, 4))
def mvt(n, rng):
    A, (x, y, p, q) = rng.random((n, n)), rng.random((4, n))
    return (A, x, y, p, q), lambda: (x + (A * p).sum(axis=1), y + (A.T * q).sum(axis=1))


@case(4, 60, wrt=(0, 1))
def doitgen(n, rng):
    A, C = rng.random((n, n + 1, n + 2)), rng.random((n + 2, n + 2))
    return (A, C), lambda: np.einsum("rqs,sp->rqp", A, C, optimize=True)


@case(6, 2000, wrt=(0, 1))
def trisolv(n, rng):
    L, b = np.tril(rng.random((n, n)) / n) + np.eye(n), rng.random(n)
    return (L, b), lambda: scipy.linalg.solve_triangular(L, b, lower=True)


def positive_definite(n: int, rng: np.random.Generator) -> np.ndarray:
    A = rng.random((n, n))
    return A @ A.T / n + np.eye(n)


@case(6, 120, wrt=(0,))
def cholesky(n, rng):
    A = positive_definite(n, rng)
    return (A,), lambda: np.triu(A, 1) + np.linalg.cholesky(A)


@case(6, 120, wrt=(0,))
def lu(n, rng):
    A = rng.random((n, n)) + n * np.eye(n)  # a dominant diagonal: no rows are exchanged
    return (A,), lambda: scipy.linalg.lu_factor(A)[0]


@case(6, 150, wrt=(0, 1))
def ludcmp(n, rng):
    A, b = rng.random((n, n)) + n * np.eye(n), rng.random(n)
    return (A, b), lambda: np.linalg.solve(A, b)


@case(6, 1500, wrt=(0,))
def durbin(n, rng):
    r = rng.random(n) / (2 * n)
    return (r,), lambda: scipy.linalg.solve_toeplitz(np.r_[1.0, r[:-1]], -r)


@case(6, 120, wrt=(0,))
def gramschmidt(n, rng):
    A = rng.random((n + 3, n)) + np.eye(n + 3, n)

    def expected():
        Q, R = np.linalg.qr(A)
        sign = np.sign(np.diag(R))
        return Q * sign, R * sign[:, None]

    return (A,), expected


@case(6, 500, wrt=(0,))
def covariance(n, rng):
    data = rng.random((n + 3, n))
    return (data,), lambda: np.cov(data, rowvar=False)


@case(6, 500, wrt=(0,))
def correlation(n, rng):
    data = rng.random((n + 3, n))
    return (data,), lambda: np.corrcoef(data, rowvar=False)


def sparse(n: int, rng: np.random.Generator) -> tuple:
    A = scipy.sparse.random(n, n + 2, density=min(0.4, 20 / n), format="csr", random_state=rng)
    x = rng.random(n + 2)
    return (A.indptr, A.indices, A.data, x), lambda: A @ x


@case(8, 20000, wrt=(2, 3))
def spmv(n, rng):
    return sparse(n, rng)


@case(8, 20000, wrt=(2, 3))
def spmv_scalars(n, rng):
    return sparse(n, rng)


@case(4, 60)
def contour_integral(n, rng):
    A = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    Y = rng.standard_normal((n, 2)) + 0j

    def expected():
        values, vectors = np.linalg.eig(A)
        inside = np.abs(values - 0.5) < radius
        weights = np.linalg.solve(vectors, Y)[inside]
        return vectors[:, inside] @ weights, vectors[:, inside] @ (values[inside, None] * weights)

    # a circle halfway between two eigenvalues: the rule converges geometrically
    far = np.sort(np.abs(np.linalg.eigvals(A) - 0.5))
    at = max(range(len(far) - 1), key=lambda k: far[k + 1] / far[k])
    radius = float(np.sqrt(far[at] * far[at + 1]))
    points = math.ceil(math.log(1e-12) / math.log(far[at] / radius))
    return (np.array([-A, np.eye(n)]), Y, 0.5, radius, points), expected


@case(6, 2000, wrt=(0,))
def go_fast(n, rng):
    a = rng.standard_normal((n, n))
    return (a,), lambda: a + math.fsum(map(math.tanh, a.diagonal().tolist()))


# Stencils


def swept(A: np.ndarray, kernel: Any, steps: int) -> np.ndarray:
    """steps convolutions of the inside of A; the border stays."""
    A, inside = A.copy(), (slice(1, -1),) * A.ndim
    for _ in range(steps):
        A[inside] = scipy.ndimage.convolve(A, np.asarray(kernel))[inside]
    return A


def two_fields(A: np.ndarray, B: np.ndarray, kernel: Any, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """What A and B hold after the steps, each step both from A to B and back, where their borders are the same."""
    return swept(A, kernel, 2 * steps), swept(A, kernel, 2 * steps - 1)


@case(8, 20000, wrt=(0,))
def jacobi_1d(n, rng):
    A = rng.random(n)
    return (A, A.copy(), n if n < 10 else 400), lambda: two_fields(A, A, np.full(3, 1 / 3), n if n < 10 else 400)


@case(6, 150, wrt=(0,))
def jacobi_2d(n, rng):
    A, steps = rng.random((n, n + 1)), 3 if n < 10 else 200
    kernel = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) / 5
    return (A, A.copy(), steps), lambda: two_fields(A, A, kernel, steps)


@case(5, 40, wrt=(0,))
def heat_3d(n, rng):
    A, steps = rng.random((n, n + 1, n)), 2 if n < 10 else 60
    kernel = scipy.ndimage.generate_binary_structure(3, 1) / 8.0
    kernel[1, 1, 1] = 1 - 6 / 8
    return (A, A.copy(), steps), lambda: two_fields(A, A, kernel, steps)


@case(6, 200, wrt=(0,))
def seidel_2d(n, rng):
    A, steps = rng.random((n, n + 1)), 2 if n < 10 else 10

    def expected():
        # a sweep is a triangular system: the neighbours before a point are new, the others old
        rows, columns = A.shape
        before, after = scipy.sparse.lil_array((A.size, A.size)), scipy.sparse.lil_array((A.size, A.size))
        for i, j in itertools.product(range(rows), range(columns)):
            at = i * columns + j
            if 0 < i < rows - 1 and 0 < j < columns - 1:
                for di, dj in itertools.product((-1, 0, 1), repeat=2):
                    (before if (di, dj) < (0, 0) else after)[at, at + di * columns + dj] = 1 / 9
            else:
                after[at, at] = 1.0
        left = (scipy.sparse.eye_array(A.size) - before).tocsr()
        after, x = after.tocsr(), A.ravel()
        for _ in range(steps):
            x = scipy.sparse.linalg.spsolve_triangular(left, after @ x)
        return x.reshape(A.shape)

    return (A, steps), expected


@case(6, 200, wrt=(0, 1, 2, 3))
def fdtd_2d(n, rng):
    ex, ey, hz, source = rng.random((n, n + 1)), rng.random((n, n + 1)), rng.random((n, n + 1)), np.arange(n) / 7

    def expected():
        x, y, z = ex.tolist(), ey.tolist(), hz.tolist()
        inner, columns = range(1, n), range(n + 1)
        for now in source.tolist():
            y[0] = [now] * (n + 1)
            for i, j in itertools.product(inner, columns):
                y[i][j] -= 0.5 * (z[i][j] - z[i - 1][j])
            for i, j in itertools.product(range(n), range(1, n + 1)):
                x[i][j] -= 0.5 * (z[i][j] - z[i][j - 1])
            for i, j in itertools.product(range(n - 1), range(n)):
                z[i][j] -= 0.7 * (x[i][j + 1] - x[i][j] + y[i + 1][j] - y[i][j])
        return np.array(x), np.array(y), np.array(z)

    return (ex, ey, hz, source), expected


@case(7, 200, wrt=(0,))
def adi(n, rng):
    u, steps = np.pad(rng.random((n - 2, n - 2)), 1, constant_values=1.0), 3 if n < 10 else 20

    def expected():
        half = (n - 1) ** 2 / steps / 2
        second = np.diag(np.full(n - 3, 1.0), -1) - 2 * np.eye(n - 2) + np.diag(np.full(n - 3, 1.0), 1)
        ends = np.zeros(n - 2)
        ends[0] += half
        ends[-1] += half
        w = u.copy()
        for _ in range(steps):
            for _ in range(2):
                known = w[1:-1, 1:-1] + half * (w[1:-1, :-2] - 2 * w[1:-1, 1:-1] + w[1:-1, 2:])
                w = np.ones((n, n))
                w[1:-1, 1:-1] = np.linalg.solve(np.eye(n - 2) - half * second, known + ends[:, None]).T
        return w

    return (u, steps), expected


@case(6, 600, wrt=(0,))
def deriche(n, rng):
    image = rng.random((n, n + 2))

    def expected():
        e = math.exp(-0.25)
        k = (1 - e) ** 2 / (1 + 0.5 * e - e * e)
        feedback = [1, -2 * e, e * e]

        def smooth(x, axis):
            forth = scipy.signal.lfilter([k, k * e * (0.25 - 1)], feedback, x, axis=axis)
            back = scipy.signal.lfilter([0, k * e * (0.25 + 1), -k * e * e], feedback, np.flip(x, axis), axis=axis)
            return forth + np.flip(back, axis)

        return smooth(smooth(image, 1), 0)

    return (image, 0.25), expected


@case(6, 60, wrt=(0, 1, 2), rtol=1e-8)
def cavity_flow(n, rng):
    u, v, p = rng.random((3, n, n + 1)) / 10
    steps, sweeps, dt, rho, nu = (2, 3, 0.001, 1.0, 0.1) if n < 10 else (20, 25, 0.001, 1.0, 0.1)

    def expected():
        ny, nx = p.shape
        dx, dy = 2 / (nx - 1), 2 / (ny - 1)
        U, V, P = u.tolist(), v.tolist(), p.tolist()
        inside = [(i, j) for i in range(1, ny - 1) for j in range(1, nx - 1)]
        for _ in range(steps):
            b = {}
            for i, j in inside:
                ux, uy = (U[i][j + 1] - U[i][j - 1]) / (2 * dx), (U[i + 1][j] - U[i - 1][j]) / (2 * dy)
                vx, vy = (V[i][j + 1] - V[i][j - 1]) / (2 * dx), (V[i + 1][j] - V[i - 1][j]) / (2 * dy)
                b[i, j] = rho * ((ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy)
            for _ in range(sweeps):
                old = [row[:] for row in P]
                for i, j in inside:
                    a = (old[i][j + 1] + old[i][j - 1]) / dx**2 + (old[i + 1][j] + old[i - 1][j]) / dy**2 - b[i, j]
                    P[i][j] = a / (2 / dx**2 + 2 / dy**2)
                for i in range(ny):
                    P[i][-1] = P[i][-2]
                P[0] = P[1][:]
                for i in range(ny):
                    P[i][0] = P[i][1]
                P[-1] = [0.0] * nx
            un, vn = [row[:] for row in U], [row[:] for row in V]
            for i, j in inside:
                slopes = (P[i][j + 1] - P[i][j - 1]) / (2 * rho * dx), (P[i + 1][j] - P[i - 1][j]) / (2 * rho * dy)
                for new, f, slope in ((U, un, slopes[0]), (V, vn, slopes[1])):
                    carried = un[i][j] * (f[i][j] - f[i][j - 1]) / dx + vn[i][j] * (f[i][j] - f[i - 1][j]) / dy
                    spread = (f[i][j + 1] + f[i][j - 1] - 2 * f[i][j]) / dx**2
                    spread += (f[i + 1][j] + f[i - 1][j] - 2 * f[i][j]) / dy**2
                    new[i][j] = f[i][j] + dt * (nu * spread - carried - slope)
            for i, j in itertools.product(range(ny), range(nx)):
                if (i, j) not in b:
                    U[i][j], V[i][j] = float(i == ny - 1), 0.0
        return np.array(U), np.array(V), np.array(P)

    return (u, v, p, steps, sweeps, dt, rho, nu), expected


@case(6, 40, wrt=(0, 1))
def channel_flow(n, rng):
    u = rng.random((n, n + 2)) / 10
    dt, nu, tolerance = (0.01, 0.1, 1e-2) if n < 10 else (0.002, 0.1, 1e-3)

    def expected():
        ny, nx = u.shape
        dx, dy = 2 / nx, 2 / (ny - 1)
        U, change, steps = u.tolist(), 1.0, 0
        while change > tolerance:
            f = [row[:] for row in U]
            for i, j in itertools.product(range(1, ny - 1), range(nx)):
                left, right = f[i][j - 1], f[i][(j + 1) % nx]
                spread = (left + right - 2 * f[i][j]) / dx**2 + (f[i - 1][j] + f[i + 1][j] - 2 * f[i][j]) / dy**2
                U[i][j] += dt * (nu * spread - f[i][j] * (f[i][j] - left) / dx + 1.0)
            U[0], U[-1] = [0.0] * nx, [0.0] * nx
            total = math.fsum(abs(x) for row in U for x in row)
            change = math.fsum(abs(x - y) for a, b in zip(U, f) for x, y in zip(a, b)) / total
            steps += 1
        return np.array(U), steps

    return (u, 1.0, dt, nu, tolerance), expected


@case(4, 60, wrt=(0, 1, 2, 3))
def vertical_advection(n, rng):
    stage, position, tendency = rng.random((3, n, n + 1, n + 2))
    wind = rng.random((n + 1, n + 1, n + 2)) / 2

    def expected():
        out, nk = np.empty_like(stage), n + 2
        for i, j in itertools.product(range(n), range(n + 1)):
            w = (wind[i + 1, j] + wind[i, j]) / 4
            step = np.diff(stage[i, j])
            known = position[i, j] / 2.0 + tendency[i, j]
            known[1:] += w[1:] * step
            known[:-1] -= w[1:] * step
            bands = np.zeros((3, nk))
            bands[0, 1:], bands[2, :-1] = w[1:], -w[1:]
            bands[1] = 0.5 + np.r_[0, w[1:]] - np.r_[w[1:], 0]
            out[i, j] = scipy.linalg.solve_banded((1, 1), bands, known)
        return (out - position) / 2.0

    return (stage, position, tendency, wind, 2.0), expected


@case(7, 300, wrt=(0, 1))
def horizontal_diffusion(n, rng):
    field, coefficient = rng.random((n, n + 1)), rng.random((n - 4, n - 3))

    def expected():
        f = field.tolist()

        def lap(i, j):
            return 4 * f[i][j] - f[i + 1][j] - f[i - 1][j] - f[i][j + 1] - f[i][j - 1]

        def flux(i, j, k, l):
            step = lap(k, l) - lap(i, j)
            return 0.0 if step * (f[k][l] - f[i][j]) > 0 else step

        out = np.empty((n - 4, n - 3))
        for i, j in itertools.product(range(2, n - 2), range(2, n - 1)):
            leaving = flux(i, j, i + 1, j) - flux(i - 1, j, i, j) + flux(i, j, i, j + 1) - flux(i, j - 1, i, j)
            out[i - 2, j - 2] = f[i][j] - coefficient[i - 2, j - 2] * leaving
        return out

    return (field, coefficient), expected


@case(6, 120)
def game_of_life(n, rng):
    board = rng.integers(0, 2, (n, n + 2))

    def expected():
        now, ring = board, np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
        for _ in range(4):
            alive = scipy.ndimage.convolve(now, ring, mode="wrap")
            now = ((alive == 3) | ((alive == 2) & (now == 1))).astype(board.dtype)
        return now

    return (board, 4), expected


# Tables, sequences, sets


@case(7, 200, wrt=(0,))
def floyd_warshall(n, rng):
    path = rng.random((n, n)) * 10 + 0.1
    np.fill_diagonal(path, 0)
    return (path,), lambda: scipy.sparse.csgraph.dijkstra(path)


@case(9, 150)
def nussinov(n, rng):
    seq = rng.integers(0, 4, n)

    def expected():
        bases = seq.tolist()

        @functools.cache
        def most(i, j):
            if i >= j:
                return 0
            # the last base is alone, or paired with some base that is not beside it
            return max(
                most(i, j - 1),
                *(most(i, k - 1) + most(k + 1, j - 1) + (bases[k] + bases[j] == 3) for k in range(i, j - 1)),
                0,
            )

        return np.array([[most(i, j) for j in range(n)] for i in range(n)])

    return (seq,), expected


@case(20, 200000)
def crc16(n, rng):
    data = rng.integers(0, 256, n).astype(np.uint8)
    return (data,), lambda: binascii.crc_hqx(data.tobytes(), 0xFFFF)


@case(8, 6000, wrt=(0, 1, 2))
def viterbi(n, rng):
    states = 6
    start, move = np.log(rng.dirichlet(np.ones(states))), np.log(rng.dirichlet(np.ones(states), states))
    emit = np.log(rng.random((n, states)))

    def expected():
        # from the end to the beginning: what the best continuation of each state is worth
        ahead = np.zeros((n, states))
        for t in range(n - 2, -1, -1):
            ahead[t] = (move + emit[t + 1] + ahead[t + 1]).max(axis=1)
        path = [int(np.argmax(start + emit[0] + ahead[0]))]
        for t in range(1, n):
            path.append(int(np.argmax(move[path[-1]] + emit[t] + ahead[t])))
        return np.array(path), (start + emit[0] + ahead[0]).max()

    return (start, move, emit), expected


@case(8, 400)
def smith_waterman(n, rng):
    a, b = rng.integers(0, 4, n), rng.integers(0, 4, n + n // 4)

    def expected():
        @functools.cache
        def score(i, j):
            if i == 0 or j == 0:
                return 0
            same = 3 if a[i - 1] == b[j - 1] else -3
            return max(0, score(i - 1, j - 1) + same, score(i - 1, j) - 2, score(i, j - 1) - 2)

        table = np.array([[score(i, j) for j in range(len(b) + 1)] for i in range(n + 1)])
        i, j = (int(k) for k in np.unravel_index(table.argmax(), table.shape))
        pairs = []
        while score(i, j):
            if score(i, j) == score(i - 1, j - 1) + (3 if a[i - 1] == b[j - 1] else -3):
                i, j = i - 1, j - 1
                pairs.insert(0, (i, j))
            elif score(i, j) == score(i - 1, j) - 2:
                i -= 1
            else:
                j -= 1
        return table, np.array(pairs)

    return (a, b, 3, -3, 2), expected


@case(30, 50000)
def quicksort(n, rng):
    a = rng.standard_normal(n)
    return (a,), lambda: np.sort(a)


@case(30, 50000)
def quicksort_recursive(n, rng):
    a = rng.standard_normal(n)
    return (a,), lambda: np.sort(a)


@case(50, 2000000)
def sieve(n, rng):
    def expected():
        return np.array([p for p in range(2, n + 1) if all(p % q for q in range(2, math.isqrt(p) + 1))])

    return (n,), expected


@case(12, 50000)
def union_find(n, rng):
    pairs = rng.integers(0, n, (n * 2 // 3, 2))

    def expected():
        graph = scipy.sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        components, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
        least = np.full(components, n)
        np.minimum.at(least, label, np.arange(n))
        return least[label], components

    return (n, pairs), expected


# Particles, chains, series


@case(4, 120, wrt=(0, 1, 2))
def nbody(n, rng):
    mass, position, velocity = 20 * rng.random((n, 1)) / n, rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
    steps, dt, G, softening = 3 if n < 10 else 40, 0.01, 1.0, 0.1

    def expected():
        m, x, v = mass[:, 0].tolist(), position.tolist(), velocity.tolist()
        bodies = range(n)
        mean = [math.fsum(m[i] * v[i][k] for i in bodies) / math.fsum(m) for k in range(3)]
        v = [[v[i][k] - mean[k] for k in range(3)] for i in bodies]

        def pull(i):
            total = [0.0, 0.0, 0.0]
            for j in bodies:
                cube = (math.dist(x[i], x[j]) ** 2 + softening**2) ** 1.5
                total = [s + G * m[j] * (x[j][k] - x[i][k]) / cube for k, s in enumerate(total)]
            return total

        def energies():
            kinetic = sum(m[i] * (v[i][0] ** 2 + v[i][1] ** 2 + v[i][2] ** 2) / 2 for i in bodies)
            return kinetic, -sum(G * m[i] * m[j] / math.dist(x[i], x[j]) for i in bodies for j in range(i))

        seen = [energies()]
        force = [pull(i) for i in bodies]
        for _ in range(steps):
            v = [[v[i][k] + force[i][k] * dt / 2 for k in range(3)] for i in bodies]
            x = [[x[i][k] + v[i][k] * dt for k in range(3)] for i in bodies]
            force = [pull(i) for i in bodies]
            v = [[v[i][k] + force[i][k] * dt / 2 for k in range(3)] for i in bodies]
            seen.append(energies())
        kinetic, potential = np.array(seen).T
        return kinetic, potential, np.array(x)

    return (mass, position, velocity, steps, dt, G, softening), expected


def escapes(c: complex, limit: int, edge: Callable) -> tuple[complex, int]:
    """z at its last step, and the first n for which z after n steps is outside (limit if none is)."""
    z = 0j
    for n in range(limit):
        if edge(z):
            return z, n
        z = z * z + c
    return z, limit


@case(7, 300, rtol=1e-6)
def mandelbrot(n, rng):
    x, y, limit = np.linspace(-2.1, 0.6, n + 1), np.linspace(-1.2, 1.3, n), 12 if n < 10 else 50

    def expected():
        found = [[escapes(complex(a, b), limit, lambda z: abs(z) >= 2) for a in x.tolist()] for b in y.tolist()]
        last = np.array([[n - 1 for _, n in row] for row in found])
        return np.array([[z for z, _ in row] for row in found]), np.where(last == limit - 1, 0, last)

    return (x, y, limit), expected


@case(7, 300)
def mandelbrot_shrinking(n, rng):
    x, y, limit = np.linspace(-2.1, 0.6, n + 1), np.linspace(-1.2, 1.3, n), 12 if n < 10 else 50

    def expected():
        found = [[escapes(complex(a, b), limit + 1, lambda z: abs(z) > 2)[1] for a in x.tolist()] for b in y.tolist()]
        return np.where(np.array(found) > limit, 0, found)

    return (x, y, limit), expected


@case(2, 7, rtol=1e-8)
def stockham_fft(n, rng):
    radix, levels = (3, 3) if n < 3 else (4, n + 1)
    x = rng.standard_normal(radix**levels) + 1j * rng.standard_normal(radix**levels)
    return (x, radix, levels), lambda: np.fft.fft(x)


def rings(n: int, rng: np.random.Generator) -> tuple:
    value, radius, bins = rng.random(n), rng.random(n) + 0.01, 5 if n < 100 else 200

    def expected():
        at = np.minimum((radius / radius.max() * bins).astype(int), bins)
        total, count = np.bincount(at, value, bins + 1), np.bincount(at, minlength=bins + 1)
        return (total / np.maximum(count, 1))[:bins]

    return (value, radius, bins), expected


@case(40, 100000, wrt=(0,))
def azimuthal_masks(n, rng):
    return rings(n, rng)


@case(40, 200000, wrt=(0,))
def azimuthal_histogram(n, rng):
    return rings(n, rng)


@case(20, 3000, wrt=(0,), rtol=1e-7)
def kmeans(n, rng):
    k = 3 if n < 100 else 8
    points = rng.standard_normal((n, 2)) + 4 * rng.standard_normal((k, 2))[rng.integers(0, k, n)]

    def expected():
        return scipy.cluster.vq.kmeans2(points, points[:k], iter=60, minit="matrix", missing="raise")

    return (points, points[:k].copy(), 60), expected


@case(60, 100000)
def gillespie(n, rng):
    uniform = rng.random((n, 2))
    birth, death, count, end = 6.0, 0.5, 3, n / 15

    def expected():
        t, number, events, area = 0.0, count, 0, 0.0
        for a, b in uniform.tolist():
            rate = birth + death * number
            wait = -math.log(a) / rate
            area += number * min(wait, end - t)
            if t + wait > end:
                break
            t, number, events = t + wait, number + (1 if b * rate < birth else -1), events + 1
        return t, number, events, area / end

    return (uniform, birth, death, count, end), expected


@case(40, 100000)
def metropolis(n, rng):
    proposals, uniform = rng.standard_normal((n, 2)) / 2, rng.random(n)

    def expected():
        def log_density(p):
            return -((1.0 - p[0]) ** 2) - 3.0 * (p[1] - p[0] ** 2) ** 2

        here, chain, taken = (0.5, -0.5), [], 0
        for step, u in zip(proposals.tolist(), uniform.tolist()):
            there = (here[0] + step[0], here[1] + step[1])
            if math.log(u) < log_density(there) - log_density(here):
                here, taken = there, taken + 1
            chain.append(here)
        return np.array(chain), taken

    return (0.5, -0.5, proposals, uniform, 1.0, 3.0), expected


@case(2, 12, wrt=(0, 1), rtol=1e-4)
def runge_kutta(n, rng):
    y, p, end = np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4]), float(n)

    def expected():
        def slope(t, y):
            return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]

        return scipy.integrate.solve_ivp(slope, (0, end), y, rtol=1e-10, atol=1e-12).y[:, -1], None, None

    return (y, p, end, 1e-6 if n < 10 else 1e-8), expected


@case(4, 1000, wrt=(0, 1, 2, 3, 4, 5))
def lstm(n, rng):
    inputs, size = (3, 2) if n < 10 else (32, 32)
    x, h, c = rng.standard_normal((n, inputs)), rng.standard_normal(size), rng.standard_normal(size)
    W, U, b = (rng.standard_normal((4 * size, k)) / 2 for k in (inputs, size, 1))
    U, b = U / size**0.5, b[:, 0]

    def expected():
        def sigmoid(z):
            return (1 + math.tanh(z / 2)) / 2

        state, cell, states = h.tolist(), c.tolist(), []
        for row in x.tolist():
            z = [
                math.fsum([*map(float.__mul__, w, row), *map(float.__mul__, u, state), d])
                for w, u, d in zip(W.tolist(), U.tolist(), b.tolist())
            ]
            i, f, o, g = (z[k * size : (k + 1) * size] for k in range(4))
            cell = [sigmoid(a) * k + sigmoid(d) * math.tanh(e) for a, k, d, e in zip(f, cell, i, g)]
            state = [sigmoid(a) * math.tanh(k) for a, k in zip(o, cell)]
            states.append(state)
        return np.array(states), np.array(cell)

    return (x, h, c, W, U, b), expected
