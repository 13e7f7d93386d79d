"""Random programs of views, in-place writes, masks and branches: values against NumPy, first and second derivatives
against finite differences. MINNP_FUZZ=10000 runs so many of them. By default it is 2,000, and the first 600
of these on another backend's kernels, which take four times as long under the same tape, and without the C part, which
takes twice as long."""

from __future__ import annotations

import os
import random

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jvp, vjp
from tests.agreement import exact, same

PROGRAMS = int(os.environ.get("MINNP_FUZZ", 2000))

VIEWS = [
    lambda a: a.T,
    lambda a: a[0:2],
    lambda a: a[::-1],
    lambda a: a[:, 1:],
    lambda a: a.reshape(-1),
    lambda a: a[...],
    lambda a: a[0],
    lambda a: a[None],
    lambda a: a.swapaxes(0, -1),
    lambda a: a[..., ::2],
]


def make(seed: int, length: int = 16) -> list[tuple]:
    r = random.Random(seed)
    return [(r.choice("vvviiissffmmaaabckouryl"), r.random(), r.random(), r.random()) for _ in range(length)]


def run(program: list[tuple], x, xp):
    """One program under two array libraries."""
    pool = [x * 1.0, x * 2.0 + 1.0, xp.zeros((3, 3))]
    total = (x * 0.5).sum()

    def pick(u):
        return pool[int(u * len(pool))]

    for op, u, v, w in program:
        a, b = pick(u), pick(v)
        if op == "v" and a.ndim:
            for k in range(len(VIEWS)):
                try:
                    view = VIEWS[(int(w * 97) + k) % len(VIEWS)](a)
                except (IndexError, ValueError):
                    continue
                if view.ndim <= 3:
                    pool.append(view)
                    break
        elif op == "i" and a.ndim:
            if b.shape == a.shape or b.ndim == 0:
                if w < 0.34:
                    a += b
                elif w < 0.67:
                    a *= b
                else:
                    a -= b
            else:
                a *= 0.5 + w
        elif op == "s" and a.ndim and a.shape[0]:
            a[0] = w if b.shape != a.shape[1:] else b
        elif op == "f" and a.ndim and a.shape[0] >= 2:
            source = xp.sin(a)
            a[[0, a.shape[0] - 1, 0]] = source[[0, 0, 1]]
        elif op == "m" and a.ndim:
            mask = a > w - 0.5
            if v < 0.5:
                a[mask] += 0.25
            else:
                a[mask] = xp.cos(a)[mask]
        elif op == "k" and a.ndim and b.shape == a.shape:
            xp.add(a, b, out=a)
        elif op == "o" and a.ndim:
            xp.multiply(a, 0.5, out=a, where=a > 0)
        elif op == "c" and a.ndim:
            pool.append(a.copy())
        elif op == "u" and a.ndim == 1 and a.size >= 2:
            xp.add.at(a, [0, 1, 0], w)
        elif op == "r":  # a branch on data, both sides of which write
            if a.sum() > 4 * w - 2:
                a *= xp.cos(a)
            elif a.ndim and bool((a > 0).any()):
                a[a > 0] = v
            else:
                total = total * 0.5
        elif op == "l" and a.ndim:  # a buffer filled in a loop whose length is data
            buffer = xp.zeros(3)
            for k in range(1 + int(abs(a.sum())) % 3):
                buffer[k] = xp.sin(a).sum() * (buffer[k - 1] + w)
            pool.append(buffer)
        elif op == "y" and a.ndim:
            i = int(xp.argmax(a))
            pool.append(xp.sort(a.reshape(-1))[1:] * a.reshape(-1)[i])
        elif op == "a":
            pool.append(xp.sin(a) + w)
        elif op == "b":
            total = total + (xp.sin(a) * a).sum()
    for a in pool:
        total = total + (xp.sin(a) * (a + 0.3)).sum()
    return total


def difference(f, e: float):
    """The central difference of step e of a function of one number, and whether a step twice as wide agrees with it."""
    near, far = ((f(s) - f(-s)) / (2 * s) for s in (e, 2 * e))
    return near, abs(near - far)


def check(seed: int, point: int = 0) -> bool:
    """Check a program's value, gradient and second derivative at a random point; False where differences have nothing
    to say: they have not converged, beside a kink or where the function is huge."""
    program = make(seed)
    rng = onp.random.default_rng([seed, point] if point else seed)
    x, d, v, e = rng.uniform(-1, 1, (3, 3)), rng.standard_normal((3, 3)), rng.standard_normal((3, 3)), 1e-6
    x *= 0.9**point  # near 0 the loops grow less wild
    f = lambda x: run(program, x, np)
    with onp.errstate(all="ignore"):
        want = run(program, x.copy(), onp)
        slope, spread = difference(lambda s: run(program, x + s * d, onp), e)
        if not onp.isfinite(want) or abs(want) > 1e8 or not spread < 1e-4 * (1 + abs(want) + abs(slope)):
            return False
        # Another backend rounds otherwise, and loops of sines multiply that: by 2 ** 12, or by what the program makes
        # of an x that is moved by a rounding.
        blur = 0.0 if exact() else max(abs(run(program, x * (1 + k * 2.0**-52), onp) - want) for k in (-2, -1, 1, 2))
        scale = 10.0 + 4 * blur / (2**12 * 2.0**-52)
        assert same(f(np.array(x)), want, ulps=2**12, scale=scale), f"value of program {seed}"
        mine = np.array(x)
        y, pullback = vjp(f, mine)
        assert float(y) == pytest.approx(want, rel=1e-12, abs=4 * blur), f"traced value of program {seed}"
        assert onp.array_equal(onp.asarray(mine), x), f"program {seed} wrote to the caller's array"
        (g,) = pullback(1.0)
        moved = float((onp.asarray(g) * d).sum())
        assert moved == pytest.approx(slope, rel=2e-4, abs=2e-4 * (1 + abs(want))), f"gradient of program {seed}"

        first = grad(f)
        curve, spread = difference(lambda s: onp.asarray(first(np.array(x + s * v))), e)
        limit = 1e-3 * (1 + abs(onp.asarray(g)).max() + abs(curve))
        if not (spread < limit).all() or abs(onp.asarray(g)).max() > 1e5:
            return False
        if seed % 2:
            second = jvp(first, (np.array(x),), (v,))[1]
        else:
            second = grad(lambda x: (first(x) * v).sum())(np.array(x))
        assert (abs(onp.asarray(second) - curve) <= limit).all(), f"second derivative of program {seed}"
    return True


@pytest.mark.long
@pytest.mark.dealt(parts=16)
@pytest.mark.parametrize("block", range(0, PROGRAMS, 100))
def test_values_and_derivatives_of_random_programs(block: int) -> None:
    unchecked = [seed for seed in range(block, block + 100) if not any(check(seed, point) for point in range(40))]
    assert unchecked == []
