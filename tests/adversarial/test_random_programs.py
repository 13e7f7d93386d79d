"""Random programs agree in every way that minnp runs them: index arrays that repeat and change later, masks that change
later, writes to arguments, arguments that are one array, ufunc methods, memory orders, scalars that were read.

    MINNP_FUZZ=20000 python -m pytest tests/adversarial/test_random_programs.py

Each program takes the ways of ways.py in turn, four at a time (all of them: MINNP_FUZZ_WAYS=16). MINNP_FUZZ_SEED is the
first program's number: another gives programs that no run has seen.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from tests.adversarial.program import Program
from tests.adversarial.ways import SEEDS, WAYS, Case, outcome

COUNT = int(os.environ.get("MINNP_FUZZ", "120"))
FIRST = int(os.environ.get("MINNP_FUZZ_SEED", "0"))
AT_ONCE = int(os.environ.get("MINNP_FUZZ_WAYS", "4"))
BLOCKS = 40
SHAPE = (3, 4)


class State:
    """What a program has: arrays, an index array, a mask, and the sum of what it read."""

    def __init__(self, xp: Any, x: Any, y: Any, i: Any, m: Any, begin: int):
        self.xp, self.i, self.m, self.total = xp, i, m, (x * 0.5).sum() + (y * y).sum()
        # the arguments themselves, which are written to, one of them twice, or copies
        self.pool = [[x, y], [x, x], [x, x[::-1]], [x, x.T], [x * 1.0, y * 2.0], [y.copy(order="F"), x]][begin]

    def index(self, a: Any) -> Any:
        return self.i % a.shape[0]


def pick(s: State, u: int) -> Any:
    return s.pool[u % len(s.pool)]


VIEWS = [
    lambda a: a.T,
    lambda a: a[0:2],
    lambda a: a[::-1],
    lambda a: a[..., 1:],
    lambda a: a.reshape(-1),
    lambda a: a.reshape(-1, order="F"),
    lambda a: a.ravel(order="K"),
    lambda a: a[0],
    lambda a: a[None],
    lambda a: a.swapaxes(0, -1),
    lambda a: a[..., ::2],
    lambda a: a.T.reshape(-1),
    lambda a: a[:, None],
    lambda a: a.reshape(2, -1),
]
COPIES = [
    lambda a, xp: a.copy(order="F"),
    lambda a, xp: xp.asfortranarray(a),
    lambda a, xp: xp.array(a, order="K"),
    lambda a, xp: xp.array(a, copy=True, order="C"),
    lambda a, xp: a.astype(a.dtype, order="F"),
    lambda a, xp: a.reshape(a.shape, order="F").copy(),
    lambda a, xp: xp.ascontiguousarray(a.T),
    lambda a, xp: xp.require(a, requirements="F"),
]
REDUCE = ["add", "multiply", "maximum", "minimum", "logaddexp", "hypot", "subtract"]
ACCUMULATE = ["add", "multiply", "maximum", "minimum", "logaddexp"]
AT = ["add", "subtract", "multiply", "maximum"]


# Each step: (state, two numbers that choose, a number that is used). What NumPy refuses is not taken into a program.
def view(s: State, u: int, v: int, w: float) -> None:
    made = VIEWS[v % len(VIEWS)](pick(s, u))
    if made.ndim <= 3 and made.size:
        s.pool.append(made)


def copy(s: State, u: int, v: int, w: float) -> None:
    s.pool.append(COPIES[v % len(COPIES)](pick(s, u), s.xp))


def update(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    if w > 0.6:
        a += b
    elif w > 0.2:
        a *= b
    elif w > -0.2:
        a -= 0.5 * b[0]
    else:
        a *= w


def assign(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    a[u % a.shape[0]] = b if w > 0 else s.xp.sin(b[0]) * w


def read_by_index(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    i = s.index(a)
    s.total = s.total + s.xp.sum(a[i] * a[i]) * w
    s.pool.append(s.xp.take(b, s.index(b), axis=0) if w > 0 else b[s.index(b), ...])


def change_index(s: State, u: int, v: int, w: float) -> None:
    if v % 3 == 0:
        s.i += 1
    elif v % 3 == 1:
        s.i[u % len(s.i)] = v % 7
    else:
        s.i[:] = s.i[::-1].copy()
    s.i %= 5


def write_by_index(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    i = s.index(a)
    if w > 0.5:
        a[i] = s.xp.sin(b)[s.index(b)]
    elif w > 0:
        a[i] += w * a[i // 2]
    elif w > -0.5:
        a[i // 2] = s.xp.arange(1.0, 1.0 + i.size).reshape(-1, *[1] * (a.ndim - 1)) * s.xp.cos(a[i])
    else:
        s.xp.put(a, s.i, s.xp.sin(b).reshape(-1)[: len(s.i)])


def at(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    getattr(s.xp, AT[v % len(AT)]).at(a, s.index(a), w if w > 0 else s.xp.tanh(b)[s.index(b)])


def change_mask(s: State, u: int, v: int, w: float) -> None:
    if v % 2:
        s.m[:] = ~s.m
    else:
        s.m[u % SHAPE[0], v % SHAPE[1]] ^= True


def by_mask(s: State, u: int, v: int, w: float) -> None:
    a, b, xp = pick(s, u), pick(s, v), s.xp
    kind = v % 7
    if kind == 0:
        s.pool.append(xp.where(s.m, a, xp.sin(b)))
    elif kind == 1:
        a[s.m] *= w
    elif kind == 2:
        s.total = s.total + (a[s.m] * b[s.m]).sum()
    elif kind == 3:
        xp.copyto(a, xp.cos(b), where=s.m)
    elif kind == 4:
        s.pool.append(xp.select([s.m, a > 0.3], [a * w, b], default=0.5))
    elif kind == 5:
        s.pool.append(xp.choose(s.m.astype(int), [a, xp.sin(b)]))
    else:
        xp.multiply(a, xp.sin(b), out=a, where=s.m)


def reduce(s: State, u: int, v: int, w: float) -> None:
    a = pick(s, u)
    f = getattr(s.xp, REDUCE[v % len(REDUCE)])
    s.pool.append(f.reduce(a, axis=u % a.ndim, keepdims=w > 0) * 0.5)


def accumulate(s: State, u: int, v: int, w: float) -> None:
    a = pick(s, u)
    s.pool.append(getattr(s.xp, ACCUMULATE[v % len(ACCUMULATE)]).accumulate(a, axis=u % a.ndim) * 0.3)


def pairs(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    if w > 0:
        s.pool.append(s.xp.multiply.outer(a.reshape(-1)[:3], b.reshape(-1)[:4]))
    elif w > -0.5:
        s.pool.append(s.xp.add.reduceat(a, [0, 1], axis=u % a.ndim))
    else:
        s.pool.append(s.xp.subtract.outer(a[0], b[0]).reshape(-1)[:6] * w)


def scalar(s: State, u: int, v: int, w: float) -> None:
    a = pick(s, u)
    place = tuple((u + k) % n for k, n in enumerate(a.shape))
    t = a[place]
    if v % 3 == 0:
        a[place] = w
    elif v % 3 == 1:
        a[place] *= t
    else:
        t += 1.0
    s.total = s.total + t * t


def diagonal(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    if w > 0:
        s.xp.fill_diagonal(a, w)
    else:
        square = a[:2, :2]
        s.xp.einsum("ii->i", square)[...] = b.reshape(-1)[:2]


def parts(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    if w > 0.3:
        first, *rest = s.xp.split(a, a.shape[0])
        first *= w
        s.pool.append(s.xp.concatenate([*rest, first]))
    elif w > -0.3:
        s.pool.append(s.xp.stack([s.xp.tanh(row) for row in a]))
    else:
        for row in a:
            row += s.xp.sin(b[0]) * 0.1


def function(s: State, u: int, v: int, w: float) -> None:
    a = pick(s, u)
    s.pool.append(getattr(s.xp, ("sin", "tanh", "exp", "cos")[v % 4])(a) + w)


def into(s: State, u: int, v: int, w: float) -> None:
    a, b = pick(s, u), pick(s, v)
    if w > 0:
        s.xp.add(a, s.xp.sin(b), out=a)
    else:
        s.xp.cumsum(b * 0.3, axis=0, out=a) if w < -0.5 else s.xp.sin(b, a)


def branch(s: State, u: int, v: int, w: float) -> None:
    a = pick(s, u)
    if a.sum() > w:
        a *= 0.7
    else:
        s.pool.append(a + w)


def loop(s: State, u: int, v: int, w: float) -> None:
    a, count = pick(s, u), 0
    while abs(a).max() > abs(w) + 0.1 and count < 3:
        a *= 0.6
        count += 1


STEPS: list[Callable] = [view, view, copy, update, update, assign, read_by_index, read_by_index, change_index]
STEPS += [write_by_index, write_by_index, at, change_mask, by_mask, by_mask, reduce, accumulate, pairs, scalar, scalar]
STEPS += [diagonal, parts, function, into]


# ------------------------------------------------------------------ programs
def play(xp: Any, begin: int, steps: list[tuple], x: Any, y: Any, i: Any, m: Any) -> Any:
    s = State(xp, x, y, i, m, begin)
    for step, u, v, w in steps:
        step(s, u, v, w)
    for a in s.pool:
        s.total = s.total + (xp.sin(a) * (a + 0.3)).sum()
    return s.total


def arguments(r: onp.random.Generator, order: str) -> tuple:
    x, y = (onp.array(r.uniform(-1, 1, SHAPE), order=order) for _ in range(2))
    return x, y, r.integers(0, 5, 4), r.random(SHAPE) < 0.5


def make(seed: int, order: str) -> tuple[int, list[tuple]]:
    """A program that NumPy runs, to finite numbers of moderate size, on both choices of arguments."""
    r = random.Random(seed)
    begin, steps = r.randrange(6), []
    kinds = STEPS + [branch, loop] * (seed % 3 == 0)
    for _ in range(r.randrange(4, 13)):
        step = (r.choice(kinds), r.randrange(50), r.randrange(50), round(r.uniform(-1, 1), 3))
        try:
            with onp.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = [play(onp, begin, [*steps, step], *arguments(onp.random.default_rng(k), order)) for k in SEEDS]
        except (ValueError, IndexError, TypeError, ZeroDivisionError, onp.exceptions.AxisError):
            continue
        if all(onp.isfinite(value) and abs(value) < 1e4 for value in values):
            steps.append(step)
    return begin, steps


def check(seed: int) -> list[str]:
    """What differs."""
    order = "CF"[seed % 2]
    begin, steps = make(seed, order)
    text = ", ".join(f"{step.__name__}({u}, {v}, {w})" for step, u, v, w in steps)
    branches = any(step in (branch, loop) for step, *_ in steps)
    draw = lambda r: arguments(r, order)
    real, mine = (Program(lambda *args, xp=xp: play(xp, begin, steps, *args), draw, rtol=1e-5) for xp in (onp, np))
    case, other = (Case(f"program {seed}", real, mine, k) for k in SEEDS)
    differ = []
    for k in range(AT_ONCE):
        way = WAYS[(seed * AT_ONCE + k) % len(WAYS)]
        said = outcome(case, other, way)
        if "is not smooth" in said or (said.startswith("refused") and branches and "vmap" in way):
            continue
        if said != "fine":
            differ.append(f"{way}: {said}\n    begin {begin}: {text}")
    return differ


@pytest.mark.long
@pytest.mark.dealt(parts=16)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs_agree_in_every_way(block: int) -> None:
    differ = [said for seed in range(FIRST + block, FIRST + COUNT, BLOCKS) for said in check(seed)]
    assert not differ, f"{len(differ)} differ:\n" + "\n".join(differ[:10])
