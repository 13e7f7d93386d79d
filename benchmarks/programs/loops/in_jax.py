"""The programs of loops as a JAX user writes them: scan, fori_loop, while_loop, `.at[]`, masks instead of slices.

    compiled(name, arguments)(*arguments) -> what the NumPy program returns

Integers among the arguments are static. Reverse mode does not pass through `while_loop`: not_reverse has such programs.
JAX must work in 64 bits (jax.config.update("jax_enable_x64", True)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as np
import numpy
from jax import lax

not_reverse = frozenset({"channel_flow", "runge_kutta", "kmeans"})


def compiled(name: str, arguments: tuple) -> Callable:
    """The program under jax.jit; shapes that depend on data are cut outside of it."""
    static = [i for i, value in enumerate(arguments) if isinstance(value, int)]
    run = jax.jit(PROGRAMS[name], static_argnums=static)
    cut = CUTS.get(name)
    return (lambda *given: cut(*run(*given))) if cut else run


# Linear algebra


def mm2(alpha, beta, A, B, C, D):
    return beta * D + alpha * A @ B @ C


def mm3(A, B, C, D):
    return (A @ B) @ (C @ D)


def gemm(alpha, beta, A, B, C):
    return beta * C + alpha * A @ B


def gemver(alpha, beta, A, u, v, r, s, y, z, x, w):
    A = A + np.outer(u, v) + np.outer(r, s)
    x = x + beta * (y @ A) + z
    return A, x, w + alpha * (A @ x)


def gesummv(alpha, beta, A, B, x):
    return alpha * (A @ x) + beta * (B @ x)


def symm(alpha, beta, A, B, C):
    k = np.arange(len(A))

    def row(i, C):
        before = np.where(k < i, A[i], 0)
        C = C + alpha * np.outer(before, B[i])
        return C.at[i].set(beta * C[i] + alpha * (B[i] * A[i, i] + before @ B))

    return lax.fori_loop(0, len(C), row, C)


def syrk(alpha, beta, A, C):
    return np.triu(C, 1) + np.tril(beta * C + alpha * A @ A.T)


def syr2k(alpha, beta, A, B, C):
    return np.triu(C, 1) + np.tril(beta * C + alpha * (A @ B.T + B @ A.T))


def trmm(alpha, A, B):
    return alpha * (B + np.tril(A, -1).T @ B)


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(A, x, y, p, q):
    return x + A @ p, y + q @ A


def doitgen(A, C):
    return A @ C


def trisolv(L, b):
    # what is not solved yet is 0, so that whole rows may be multiplied
    return lax.fori_loop(0, len(b), lambda i, x: x.at[i].set((b[i] - L[i] @ x) / L[i, i]), np.zeros_like(b))


def cholesky(A):
    n = len(A)
    rows = np.arange(n)

    def column(j, L):
        rest = A[:, j] - L @ L[j]
        return L.at[:, j].set(np.where(rows >= j, rest / np.sqrt(rest[j]), 0))

    return np.triu(A, 1) + lax.fori_loop(0, n, column, np.zeros_like(A))


def lu(A):
    k = np.arange(len(A))

    def eliminate(i, A):
        factor = np.where(k > i, A[:, i] / A[i, i], 0)
        A = A - np.outer(factor, np.where(k > i, A[i], 0))
        return A.at[:, i].set(np.where(k > i, factor, A[:, i]))

    return lax.fori_loop(0, len(A), eliminate, A)


def ludcmp(A, b):
    n = len(b)
    A = lu(A)
    y = lax.fori_loop(0, n, lambda i, y: y.at[i].set(b[i] - A[i] @ y), np.zeros(n))

    def back(k, x):
        i = n - 1 - k
        return x.at[i].set((y[i] - A[i] @ x) / A[i, i])

    return lax.fori_loop(0, n, back, np.zeros(n))


def durbin(r):
    n = len(r)
    turned = r[::-1]

    def step(k, carry):
        y, alpha, beta = carry
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + np.roll(turned, k) @ y) / beta
        y = y + alpha * np.roll(y[::-1], k)
        return y.at[k].set(alpha), alpha, beta

    return lax.fori_loop(1, n, step, (np.zeros(n).at[0].set(-r[0]), -r[0], np.ones(())))[0]


def gramschmidt(A):
    m, n = A.shape
    columns = np.arange(n)

    def step(k, carry):
        A, Q, R = carry
        length = np.sqrt(A[:, k] @ A[:, k])
        q = A[:, k] / length
        row = np.where(columns > k, q @ A, 0)
        return A - np.outer(q, row), Q.at[:, k].set(q), R.at[k].set(row.at[k].set(length))

    return lax.fori_loop(0, n, step, (A, np.zeros((m, n)), np.zeros((n, n))))[1:]


def covariance(data):
    data = data - data.mean(axis=0)
    return data.T @ data / (len(data) - 1)


def correlation(data):
    n, m = data.shape
    data = data - data.mean(axis=0)
    deviation = np.sqrt((data * data).mean(axis=0))
    data = data / (np.sqrt(n) * np.where(deviation <= 0.1, 1.0, deviation))
    return np.where(np.eye(m, dtype=bool), 1.0, data.T @ data)


def spmv(start, column, value, x):
    n = len(start) - 1
    row = np.repeat(np.arange(n), np.diff(start), total_repeat_length=len(value))
    return jax.ops.segment_sum(value * x[column], row, n, indices_are_sorted=True)


def contour_integral(coefficients, Y, centre, radius, points):
    def part(k):
        step = radius * np.exp(2j * np.pi * (k + 0.5) / points)
        z = centre + step
        T = np.zeros_like(coefficients[0])
        for c in coefficients[::-1]:
            T = T * z + c
        X = np.linalg.solve(T, Y) * (step / points)
        return X, z * X

    P0, P1 = jax.vmap(part)(np.arange(points))
    return P0.sum(axis=0), P1.sum(axis=0)


def go_fast(a):
    return a + lax.fori_loop(0, len(a), lambda i, trace: trace + np.tanh(a[i, i]), 0.0)


# Stencils


def repeated(step: Callable, steps: int, *fields: Any) -> Any:
    return lax.fori_loop(0, steps, lambda _, fields: step(*fields), fields)


def jacobi_1d(A, B, steps):
    def half(A, B):
        return B.at[1:-1].set((A[:-2] + A[1:-1] + A[2:]) / 3)

    def step(A, B):
        B = half(A, B)
        return half(B, A), B

    return repeated(step, steps, A, B)


def jacobi_2d(A, B, steps):
    def half(A, B):
        return B.at[1:-1, 1:-1].set(0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]))

    def step(A, B):
        B = half(A, B)
        return half(B, A), B

    return repeated(step, steps, A, B)


def heat_3d(A, B, steps):
    def half(A, B):
        middle = A[1:-1, 1:-1, 1:-1]
        along = A[2:, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1] - 2 * middle
        across = A[1:-1, 2:, 1:-1] + A[1:-1, :-2, 1:-1] - 2 * middle
        up = A[1:-1, 1:-1, 2:] + A[1:-1, 1:-1, :-2] - 2 * middle
        return B.at[1:-1, 1:-1, 1:-1].set(middle + 0.125 * (along + across + up))

    def step(A, B):
        B = half(A, B)
        return half(B, A), B

    return repeated(step, steps, A, B)


def seidel_2d(A, steps):
    def row(above, given):
        here, below = given
        known = above[:-2] + above[1:-1] + above[2:] + here[1:-1] + here[2:] + below[:-2] + below[1:-1] + below[2:]

        def point(left, known):
            new = (left + known) / 9.0
            return new, new

        new = here.at[1:-1].set(lax.scan(point, here[0], known)[1])
        return new, new

    def step(_, A):
        return A.at[1:-1].set(lax.scan(row, A[0], (A[1:-1], A[2:]))[1])

    return lax.fori_loop(0, steps, step, A)


def fdtd_2d(ex, ey, hz, source):
    def step(fields, now):
        ex, ey, hz = fields
        ey = ey.at[0].set(now)
        ey = ey.at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return (ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)), None

    return lax.scan(step, (ex, ey, hz), source)[0]


def adi(u, steps):
    n = len(u)
    half = (n - 1) ** 2 / steps / 2
    a, b = -half, 1 + 2 * half
    zeros, ones = np.zeros(n - 2), np.ones(n - 2)

    def down(carry, known):
        p, q = carry
        scale = a * p + b
        new = -a / scale, (known - a * q) / scale
        return new, new

    def up(ahead, given):
        p, q = given
        new = p * ahead + q
        return new, new

    def sweep(_, u):
        known = u[1:-1, 1:-1] + half * (u[1:-1, :-2] - 2 * u[1:-1, 1:-1] + u[1:-1, 2:])
        factors = lax.scan(down, (zeros, ones), known)[1]
        return np.ones((n, n)).at[1:-1, 1:-1].set(lax.scan(up, ones, factors, reverse=True)[1].T)

    return lax.fori_loop(0, 2 * steps, sweep, u)


def deriche(image, alpha):
    decay = np.exp(-alpha)
    k = (1 - decay) ** 2 / (1 + 2 * alpha * decay - decay**2)
    a1, a2, a3, a4 = k, k * decay * (alpha - 1), k * decay * (alpha + 1), -k * decay**2
    b1, b2 = 2 * decay, -(decay**2)

    def smooth(rows):
        zero = np.zeros_like(rows[0])

        def forth(carry, x):
            x1, y1, y2 = carry
            y = a1 * x + a2 * x1 + b1 * y1 + b2 * y2
            return (x, y, y1), y

        def back(carry, x):
            x1, x2, y1, y2 = carry
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            return (x, x1, y, y1), y

        return lax.scan(forth, (zero,) * 3, rows)[1] + lax.scan(back, (zero,) * 4, rows, reverse=True)[1]

    return smooth(smooth(image.T).T)


def cavity_flow(u, v, p, steps, sweeps, dt, rho, nu):
    ny, nx = p.shape
    dx, dy = 2 / (nx - 1), 2 / (ny - 1)

    def pressure(_, carry):
        p, b = carry
        p = p.at[1:-1, 1:-1].set(
            ((p[1:-1, 2:] + p[1:-1, :-2]) * dy**2 + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2 - dx**2 * dy**2 * b)
            / (2 * (dx**2 + dy**2))
        )
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0].set(p[1])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1].set(0), b

    def step(u, v, p):
        ux, vy = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx), (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        uy, vx = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy), (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        p, _ = lax.fori_loop(0, sweeps, pressure, (p, rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)))
        across, down = u[1:-1, 1:-1], v[1:-1, 1:-1]

        def moved(f, slope):
            here = f[1:-1, 1:-1]
            return (
                here
                - dt * (across * (here - f[1:-1, :-2]) / dx + down * (here - f[:-2, 1:-1]) / dy + slope)
                + nu * dt * (f[1:-1, 2:] - 2 * here + f[1:-1, :-2]) / dx**2
                + nu * dt * (f[2:, 1:-1] - 2 * here + f[:-2, 1:-1]) / dy**2
            )

        x = moved(u, (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * rho * dx))
        y = moved(v, (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * rho * dy))
        return np.zeros_like(u).at[1:-1, 1:-1].set(x).at[-1].set(1), np.zeros_like(v).at[1:-1, 1:-1].set(y), p

    return repeated(step, steps, u, v, p)


def channel_flow(u, force, dt, nu, tolerance):
    ny, nx = u.shape
    dx, dy = 2 / nx, 2 / (ny - 1)

    def step(carry):
        u, _, steps = carry
        here = u[1:-1]
        left, right = np.roll(here, 1, axis=1), np.roll(here, -1, axis=1)
        spread = (right - 2 * here + left) / dx**2 + (u[2:] - 2 * here + u[:-2]) / dy**2
        new = np.zeros_like(u).at[1:-1].set(here + dt * (nu * spread + force - here * (here - left) / dx))
        return new, np.sum(np.abs(new - u)) / np.sum(np.abs(new)), steps + 1

    u, _, steps = lax.while_loop(lambda carry: carry[1] > tolerance, step, (u, np.ones(()), 0))
    return u, steps


def vertical_advection(stage, position, tendency, wind, dt):
    weight = 0.25 * (wind[1:] + wind[:-1])
    none = np.zeros_like(weight[:, :, :1])
    low = np.concatenate((none, -weight[:, :, 1:]), axis=2)
    high = np.concatenate((weight[:, :, 1:], none), axis=2)
    step = np.concatenate((none, stage[:, :, 1:] - stage[:, :, :-1], none), axis=2)
    known = position / dt + tendency - low * step[:, :, :-1] - high * step[:, :, 1:]
    by_level = tuple(np.moveaxis(a, 2, 0) for a in (low, high, known))

    def up(carry, given):
        upper, right = carry
        low, high, known = given
        scale = 1 / (1 / dt - low - high - upper * low)
        new = high * scale, (known - right * low) * scale
        return new, new

    def down(ahead, given):
        upper, right = given
        new = right - upper * ahead
        return new, new

    zero = np.zeros_like(none[:, :, 0])
    factors = lax.scan(up, (zero, zero), by_level)[1]
    return (np.moveaxis(lax.scan(down, zero, factors, reverse=True)[1], 0, 2) - position) / dt


def horizontal_diffusion(field, coefficient):
    lap = 4 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    along = lap[1:, 1:-1] - lap[:-1, 1:-1]
    along = np.where(along * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, along)
    across = lap[1:-1, 1:] - lap[1:-1, :-1]
    across = np.where(across * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, across)
    return field[2:-2, 2:-2] - coefficient * (along[1:] - along[:-1] + across[:, 1:] - across[:, :-1])


def game_of_life(board, generations):
    around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]

    def step(_, board):
        alive = sum(np.roll(board, at, (0, 1)) for at in around)
        return ((alive == 3) | ((alive == 2) & (board == 1))).astype(board.dtype)

    return lax.fori_loop(0, generations, step, board)


# Tables, sequences, sets


def floyd_warshall(path):
    return lax.fori_loop(0, len(path), lambda k, path: np.minimum(path, path[:, k, None] + path[k]), path)


def nussinov(seq):
    n = len(seq)
    k = np.arange(n)

    def row(r, table):
        i = n - 1 - r

        def cell(j, table):
            best = np.maximum(table[i, j - 1], table[i + 1, j])
            pair = table[i + 1, j - 1] + (seq[i] + seq[j] == 3)
            best = np.maximum(best, np.where(i < j - 1, pair, 0))
            split = np.where((k > i) & (k < j), table[i] + np.roll(table[:, j], -1), 0)
            return table.at[i, j].set(np.maximum(best, split.max()))

        return lax.fori_loop(i + 1, n, cell, table)

    return lax.fori_loop(0, n, row, np.zeros((n, n), dtype=np.int64))


def crc16(data):
    def bit(_, crc):
        return np.where(crc & 0x8000, (crc << 1) ^ 0x1021, crc << 1)

    def byte(crc, value):
        return lax.fori_loop(0, 8, bit, crc ^ (value.astype(np.int64) << 8), unroll=True) & 0xFFFF, None

    return lax.scan(byte, np.int64(0xFFFF), data)[0]


def viterbi(start, move, emit):
    def forth(score, emit):
        ways = score[:, None] + move
        score = ways.max(axis=0) + emit
        return score, np.argmax(ways, axis=0)

    score, back = lax.scan(forth, start + emit[0], emit[1:])
    last = np.argmax(score)
    first, rest = lax.scan(lambda state, back: (back[state], state), last, back, reverse=True)
    return np.concatenate((first[None], rest)), score.max()


def smith_waterman(a, b, match, mismatch, gap):
    n, m = len(a), len(b)

    def row(above, letter):
        diagonal = np.maximum(above[:-1] + np.where(b == letter, match, mismatch), above[1:] - gap)

        def cell(left, best):
            here = np.maximum(0, np.maximum(best, left - gap))
            return here, here

        new = np.concatenate((np.zeros(1, dtype=above.dtype), lax.scan(cell, above[0] * 0, diagonal)[1]))
        return new, new

    first = np.zeros(m + 1, dtype=np.int64)
    table = np.concatenate((first[None], lax.scan(row, first, a)[1]))

    def step(carry):
        i, j, pairs, count = carry
        same = np.where(a[i - 1] == b[j - 1], match, mismatch)
        paired = table[i, j] == table[i - 1, j - 1] + same
        up = ~paired & (table[i, j] == table[i - 1, j] - gap)
        pairs = np.where(paired, pairs.at[count].set(np.array([i - 1, j - 1])), pairs)
        return i - (paired | up), j - ~up, pairs, count + paired

    i, j = np.unravel_index(np.argmax(table), table.shape)
    carry = i, j, np.zeros((min(n, m), 2), dtype=np.int64), 0
    _, _, pairs, count = lax.while_loop(lambda carry: table[carry[0], carry[1]] > 0, step, carry)
    return table, pairs, count


def quicksort(a):
    def swapped(a, i, j):
        return a.at[np.array([i, j])].set(np.array([a[j], a[i]]))

    def part(carry):
        a, stack, top = carry
        lo, hi = stack[top - 1]

        def place(j, carry):
            a, i = carry
            less = a[j] < a[hi]
            return swapped(a, np.where(less, i, j), j), i + less

        a, i = lax.fori_loop(lo, hi, place, (a, lo))
        a = swapped(a, i, hi)
        first, second = np.array([lo, i - 1]), np.array([i + 1, hi])
        longer = i - lo > hi - i
        stack = stack.at[top - 1].set(np.where(longer, first, second))
        top = top - 1 + (np.where(longer, i - 1 > lo, hi > i + 1))
        stack = stack.at[top].set(np.where(longer, second, first))
        return a, stack, top + np.where(longer, hi > i + 1, i - 1 > lo)

    stack = np.zeros((128, 2), dtype=np.int64).at[0].set(np.array([0, len(a) - 1]))
    return lax.while_loop(lambda carry: carry[2] > 0, part, (a, stack, 1))[0]


def sieve(n):
    def cross_out(prime, p):
        step = lambda carry: (carry[0].at[carry[1]].set(False), carry[1] + p)
        return lax.while_loop(lambda carry: carry[1] <= n, step, (prime, p * p))[0]

    def step(carry):
        prime, p = carry
        return lax.cond(prime[p], cross_out, lambda prime, p: prime, prime, p), p + 1

    return (lax.while_loop(lambda carry: carry[1] ** 2 <= n, step, (np.arange(n + 1) > 1, 2))[0],)


def find(parent, i):
    def up(carry):
        parent, i = carry
        parent = parent.at[i].set(parent[parent[i]])
        return parent, parent[i]

    return lax.while_loop(lambda carry: carry[0][carry[1]] != carry[1], up, (parent, i))


def union_find(n, pairs):
    def join(carry, pair):
        parent, components = carry
        parent, a = find(parent, pair[0])
        parent, b = find(parent, pair[1])
        return (parent.at[np.maximum(a, b)].set(np.minimum(a, b)), components - (a != b)), None

    def settle(i, parent):
        parent, root = find(parent, i)
        return parent.at[i].set(root)

    (parent, components), _ = lax.scan(join, (np.arange(n), n), pairs)
    return lax.fori_loop(0, n, settle, parent), components


# Particles, chains, series


def nbody(mass, position, velocity, steps, dt, G, softening):
    apart = ~np.eye(len(mass), dtype=bool)

    def acceleration(position):
        d = position[None] - position[:, None]
        return G * np.einsum("ijk,j->ik", d * ((d**2).sum(axis=2) + softening**2)[:, :, None] ** -1.5, mass[:, 0])

    def energy(position, velocity):
        d2 = ((position[None] - position[:, None]) ** 2).sum(axis=2)
        inverse = np.where(apart, 1 / np.sqrt(np.where(apart, d2, 1.0)), 0)
        return 0.5 * np.sum(mass * velocity**2), -0.5 * G * np.sum(mass * mass.T * inverse)

    def step(carry, _):
        position, velocity, pull = carry
        velocity = velocity + pull * dt / 2
        position = position + velocity * dt
        pull = acceleration(position)
        velocity = velocity + pull * dt / 2
        return (position, velocity, pull), energy(position, velocity)

    velocity = velocity - np.sum(mass * velocity, axis=0) / np.sum(mass)
    first = energy(position, velocity)
    (position, _, _), rest = lax.scan(step, (position, velocity, acceleration(position)), length=steps)
    kinetic, potential = (np.concatenate((a[None], b)) for a, b in zip(first, rest))
    return kinetic, potential, position


def mandelbrot(x, y, limit):
    C = x + y[:, None] * 1j

    def step(n, carry):
        Z, N = carry
        near = np.abs(Z) < 2.0
        return np.where(near, Z**2 + C, Z), np.where(near, n, N)

    Z, N = lax.fori_loop(0, limit, step, (np.zeros_like(C), np.zeros(C.shape, dtype=np.int64)))
    return Z, np.where(limit - 1 == N, 0, N)


def mandelbrot_shrinking(x, y, limit):
    C = x + y[:, None] * 1j

    def step(n, carry):
        Z, N = carry
        Z = Z * Z + C
        return Z, np.where((N == 0) & (np.abs(Z) > 2.0), n + 1, N)

    return lax.fori_loop(0, limit, step, (np.zeros_like(C), np.zeros(C.shape, dtype=np.int64)))[1]


def stockham_fft(x, radix, levels):
    n = radix**levels
    k = numpy.arange(radix)
    dft = numpy.exp(-2j * numpy.pi * numpy.outer(k, k) / radix)
    done = 1
    for _ in range(levels):
        turn = numpy.exp(-2j * numpy.pi * numpy.outer(k, numpy.arange(done)) / (done * radix))
        old = x.reshape(radix, n // (done * radix), done) * turn[:, None]
        x = np.einsum("rq,qbd->brd", dft, old).reshape(n)
        done *= radix
    return x


def azimuthal_masks(value, radius, bins):
    furthest = radius.max()

    def ring(i):
        inside = (furthest * i / bins <= radius) & (radius < furthest * (i + 1) / bins)
        return np.where(inside, value, 0).sum() / np.maximum(inside.sum(), 1)

    return lax.map(ring, np.arange(bins))


def azimuthal_histogram(value, radius, bins):
    at = (radius / radius.max() * bins).astype(np.int64)  # the furthest is in bin `bins`, which is dropped
    total = np.zeros(bins).at[at].add(value, mode="drop")
    return total / np.maximum(np.zeros(bins).at[at].add(1, mode="drop"), 1)


def kmeans(points, centres, most):
    def step(carry):
        old, _, _, count = carry
        label = np.argmin(((points[:, None] - old) ** 2).sum(axis=2), axis=1)
        total = jax.ops.segment_sum(points, label, len(old))
        number = jax.ops.segment_sum(np.ones(len(points)), label, len(old))[:, None]
        new = np.where(number > 0, total / np.maximum(number, 1), old)
        return new, label, np.sum((new - old) ** 2), count + 1

    carry = centres, np.zeros(len(points), dtype=np.int64), np.ones(()), 0
    return lax.while_loop(lambda carry: (carry[2] >= 1e-12) & (carry[3] < most), step, carry)[:2]


def gillespie(uniform, birth, death, count, end):
    def step(carry):
        t, count, events, area, over = carry
        rate = birth + death * count
        wait = -np.log(uniform[events, 0]) / rate
        over = t + wait > end
        area = area + count * np.where(over, end - t, wait)
        born = np.where(uniform[events, 1] * rate < birth, 1, -1)
        return np.where(over, t, t + wait), np.where(over, count, count + born), events + ~over, area, over

    carry = np.zeros(()), count, 0, np.zeros(()), False
    t, count, events, area, _ = lax.while_loop(lambda c: (c[2] < len(uniform)) & ~c[4], step, carry)
    return t, count, events, area / end


def metropolis(x, y, proposals, uniform, a, b):
    def energy(x, y):
        return (a - x) ** 2 + b * (y - x * x) ** 2

    def step(carry, given):
        here, old = carry
        move, u = given
        there = here + move
        new = energy(*there)
        take = (new <= old) | (u < np.exp(old - new))
        here = np.where(take, there, here)
        return (here, np.where(take, new, old)), (here, take)

    _, (chain, taken) = lax.scan(step, (np.stack((x, y)), energy(x, y)), (proposals, uniform))
    return chain, taken.sum()


def runge_kutta(y, p, end, tolerance):
    def slope(y):
        return np.stack((p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]))

    def step(carry):
        t, h, y, k1, steps, rejected = carry
        h = np.minimum(h, end - t)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + 3 * h / 4 * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = slope(new)
        error = h * np.max(np.abs(-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8))
        good = error <= tolerance
        t, y, k1 = np.where(good, t + h, t), np.where(good, new, y), np.where(good, k4, k1)
        h = h * np.clip(0.9 * (tolerance / (error + 1e-300)) ** (1 / 3), 0.2, 4.0)
        return t, h, y, k1, steps + good, rejected + ~good

    carry = np.zeros(()), np.full((), 0.01), y, slope(y), 0, 0
    _, _, y, _, steps, rejected = lax.while_loop(lambda carry: carry[0] < end, step, carry)
    return y, steps, rejected


def lstm(x, h, c, W, U, b):
    size = len(h)

    def step(carry, x):
        h, c = carry
        z = W @ x + U @ h + b
        i, f, o = (jax.nn.sigmoid(z[k * size : (k + 1) * size]) for k in range(3))
        c = f * c + i * np.tanh(z[3 * size :])
        h = o * np.tanh(c)
        return (h, c), h

    (_, c), states = lax.scan(step, (h, c), x)
    return states, c


PROGRAMS: dict[str, Callable] = {
    f.__name__: f
    for f in (
        *(mm2, mm3, gemm, gemver, gesummv, symm, syrk, syr2k, trmm, atax, bicg, mvt, doitgen, trisolv, cholesky, lu),
        *(ludcmp, durbin, gramschmidt, covariance, correlation, spmv, contour_integral, go_fast, jacobi_1d, jacobi_2d),
        *(heat_3d, seidel_2d, fdtd_2d, adi, deriche, cavity_flow, channel_flow, vertical_advection),
        *(horizontal_diffusion, game_of_life, floyd_warshall, nussinov, crc16, viterbi, smith_waterman, quicksort),
        *(sieve, union_find, nbody, mandelbrot, mandelbrot_shrinking, stockham_fft, azimuthal_masks),
        *(azimuthal_histogram, kmeans, gillespie, metropolis, runge_kutta, lstm),
    )
}
PROGRAMS |= {"spmv_scalars": spmv, "quicksort_recursive": quicksort}
# What NumPy's program returns of what the compiled one does.
CUTS: dict[str, Callable] = {
    "smith_waterman": lambda table, pairs, count: (table, pairs[:count][::-1]),
    "sieve": lambda prime: numpy.flatnonzero(prime),
}
