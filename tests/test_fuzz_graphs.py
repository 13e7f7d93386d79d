"""Random programs of branches, views, writes, masks and reductions agree, whichever way they are captured and run.

MINNP_FUZZ=5000 in the environment runs that many.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as onp
import pytest
from test_fuzz_writes import VIEWS

import minnp.numpy as np
from minnp import fx, grad, jit
from minnp.errors import CaptureError

COUNT = int(os.environ.get("MINNP_FUZZ", "200"))
BLOCKS = 10
SHAPE = (3, 3)


# ------------------------------------------------------------------ programs
def decide(seed: int, branches: bool) -> list[tuple]:
    """A program as steps that ask for no shape: what fits was decided on NumPy's arrays, once."""
    r = random.Random(seed)
    x = onp.random.default_rng(seed).uniform(-1, 1, SHAPE)
    steps: list[tuple] = [("start", r.random() < 0.5)]
    pool = begin(x.copy(), onp, steps[0][1])
    for _ in range(r.randrange(4, 15)):
        kinds = "vvviisfmMwkouaxcrRtzge" + "bbl" * branches
        step = choose(r, r.choice(kinds), pool)
        if step is None:
            continue
        with onp.errstate(all="ignore"):
            try:
                do(step, pool, [0.0], onp)
            except (ValueError, IndexError):  # an update of overlapping memory that NumPy itself refuses
                continue
        steps.append(step)
    return steps


def choose(r: random.Random, kind: str, pool: list) -> tuple | None:
    """A step of this kind that fits the shapes in the pool."""
    i, j, w = r.randrange(len(pool)), r.randrange(len(pool)), round(r.uniform(-1, 1), 3)
    a, b = pool[i], pool[j]
    alike = b.shape == a.shape
    if a.ndim == 0 or a.size == 0:
        return None
    if kind == "v":
        k = r.randrange(len(VIEWS))
        try:
            return (kind, i, k) if 0 < VIEWS[k](a).ndim <= 3 else None
        except (IndexError, ValueError):
            return None
    if kind == "i":
        return (kind, i, j if alike else None, r.randrange(3), w)
    if kind == "s":
        return (kind, i, j if b.shape == a.shape[1:] else None, w)
    if kind == "f":
        return (kind, i, a.shape[0] - 1) if a.shape[0] >= 2 else None
    if kind in "kxt":
        square = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
        return (kind, i, j, w) if (square if kind == "t" else alike) else None
    if kind == "u":
        return (kind, i, w) if a.ndim == 1 and a.size >= 2 else None
    if kind in "rR":
        return (kind, i, r.randrange(a.ndim), r.randrange(4)) if a.ndim > 1 else None
    if kind == "g":
        return (kind, i, tuple(r.randrange(n) for n in a.shape), w)
    if kind in "bl":
        inner = [s for s in (choose(r, r.choice("isfmMko"), pool) for _ in range(r.randrange(1, 4))) if s is not None]
        cut = r.randrange(len(inner) + 1)
        return (kind, i, w, inner[:cut], inner[cut:])
    return (kind, i, w, r.randrange(3))


UNARY = ("sin", "tanh", "exp")
REDUCE = ("sum", "mean", "max", "prod")


def begin(x: Any, xp: Any, own: bool) -> list:
    return [x if own else x * 1.0, x * 2.0 + 1.0, xp.zeros(SHAPE)]


def do(step: tuple, pool: list, total: list, xp: Any) -> None:
    kind, a = step[0], pool[step[1]]
    if kind == "v":
        pool.append(VIEWS[step[2]](a))
    elif kind == "i":
        b = step[4] if step[2] is None else pool[step[2]]
        if step[3] == 0:
            a += b
        elif step[3] == 1:
            a *= b
        else:
            a -= b
    elif kind == "s":
        a[0] = step[3] if step[2] is None else pool[step[2]]
    elif kind == "f":
        a[[0, step[2], 0]] = xp.sin(a)[[0, 0, 1]]
    elif kind == "m":
        a[a > step[2]] += 0.25
    elif kind == "M":
        mask = a > step[2]
        a[mask] = xp.cos(a)[mask]
    elif kind == "w":
        pool.append(xp.where(a > step[2], a, xp.tanh(a) - 1.0))
    elif kind == "k":
        xp.add(a, pool[step[2]], out=a)
    elif kind == "o":
        xp.multiply(a, 0.5, out=a, where=a > step[2])
    elif kind == "u":
        xp.add.at(a, [0, 1, 0], step[2])
    elif kind == "a":
        pool.append(getattr(xp, UNARY[step[3]])(a) + step[2])
    elif kind == "x":
        pool.append(xp.maximum(a, pool[step[2]]) - step[3] * a)
    elif kind == "c":
        pool.append(a.copy())
    elif kind == "r":
        pool.append(getattr(a, REDUCE[step[3]])(axis=step[2]) * 0.5)
    elif kind == "R":
        a -= getattr(xp, REDUCE[step[3]])(a, axis=step[2], keepdims=True)
    elif kind == "t":
        pool.append(xp.tanh(a @ pool[step[2]]))
    elif kind == "z":
        s = xp.sin(a).sum()
        first = s
        s += step[2]
        total[0] = total[0] + s * first
    elif kind == "g":
        a[step[2]] += step[3] * a[step[2]]
    elif kind == "e":
        a.sort(axis=-1)
    elif kind == "b":  # a branch on data
        for inner in step[3] if a.sum() > step[2] else step[4]:
            do(inner, pool, total, xp)
    elif kind == "l":  # a loop on data
        count = 0
        while abs(a).max() > abs(step[2]) + 0.1 and count < 3:
            a *= 0.5
            count += 1
            for inner in step[3]:
                do(inner, pool, total, xp)


def play(steps: list[tuple], x: Any, xp: Any) -> Any:
    """The program: one number of everything it made."""
    pool, total = begin(x, xp, steps[0][1]), [(x * 0.5).sum()]
    for step in steps[1:]:
        do(step, pool, total, xp)
    for a in pool:
        total[0] = total[0] + (xp.sin(a) * (a + 0.3)).sum()
    return total[0]


# ------------------------------------------------------------------ one program, every way
def close(got: Any, want: Any, what: str) -> None:
    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), rtol=1e-8, atol=1e-8, err_msg=what)


def called(f: Any, x: onp.ndarray) -> tuple[Any, onp.ndarray]:
    """(what f gives, what it left in its argument)"""
    given = np.array(x)
    out = f(given)
    return out, onp.asarray(given)


def executed(graph: fx.Graph) -> Any:
    """The printed code, executed with nothing but minnp.numpy."""
    names: dict[str, Any] = {}
    exec("import minnp.numpy as np\n" + graph.code, names)
    return names["forward"]


def check(seed: int) -> str:
    """Raise if a program does not agree; returns what was done: "checked", "refused" or "not finite"."""
    branches = seed % 2 == 1
    steps = decide(seed, branches)
    f = lambda x: play(steps, x, np)
    inputs = onp.random.default_rng(seed).uniform(-1, 1, (2, *SHAPE))
    compiled, derivative, said = jit(f), jit(grad(f)), "checked"
    for n, x in enumerate(inputs):
        after = x.copy()
        with onp.errstate(all="ignore"):
            want = play(steps, after, onp)
            if not onp.isfinite(want) or abs(want) > 1e8:
                return "not finite"
            slope = onp.asarray(grad(f)(np.array(x)))
            if not onp.isfinite(slope).all() or abs(slope).max() > 1e8:
                return "not finite"
            ways = {"eager": f, "jit": compiled}
            slopes = {"jit of grad": derivative, "grad of jit": grad(compiled)}
            if n == 0:
                captured, captured_slope = fx.capture(f, np.array(x)), fx.capture(grad(f), np.array(x))
                captured.graph.lint()
                ways |= {"jit again": compiled, "captured": captured, "captured, printed": executed(captured.graph)}
                slopes |= {"jit of grad again": derivative, "captured grad, printed": executed(captured_slope.graph)}
            if n == 0 and not branches:
                try:
                    gm = fx.symbolic_trace(f)
                except CaptureError as refusal:
                    assert "may or may not be a view" in str(refusal), refusal
                    said = "refused"
                else:
                    gm.graph.lint()
                    small = fx.GraphModule(gm, fx.propagate_shapes(gm.graph.copy(), x))
                    fx.fold_constants(fx.simplify(fx.common_subexpressions(small.graph)))
                    small.graph.lint()
                    small.recompile()
                    ways |= {"traced": gm, "printed": executed(gm.graph), "interpreted": fx.Interpreter(gm).run}
                    ways |= {"jit of traced": jit(gm), "simplified": small}
                    slopes |= {"grad of traced": grad(gm), "grad of simplified": grad(small), "jit of": jit(grad(gm))}
            for what, way in ways.items():
                got, left = called(way, x)
                close(got, want, f"{what}: program {seed}")
                close(left, after, f"{what}: what program {seed} left in its argument")
            for what, way in slopes.items():
                close(called(way, x)[0], slope, f"{what}: gradient of program {seed}")
    return said


@pytest.mark.long
@pytest.mark.dealt(parts=16)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_random_programs_agree_whichever_way_they_run(block: int) -> None:
    done = [check(seed) for seed in range(block, COUNT, BLOCKS)]
    assert done.count("checked") > len(done) * 0.6
