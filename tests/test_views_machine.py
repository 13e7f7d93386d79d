"""A hypothesis state machine: the same views and writes on our arrays and on NumPy's, compared after every step.

The machine runs untraced, and once more inside `vjp`, where values must agree too and the gradient with a directional
difference of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import minnp.numpy as np
from minnp import vjp
from tests.agreement import same

VIEWS: list[Callable] = [
    lambda a: a.T,
    lambda a: a[1:],
    lambda a: a[::-1],
    lambda a: a[..., :2],
    lambda a: a[0],
    lambda a: a[None],
    lambda a: a.reshape(-1),
    lambda a: a.swapaxes(0, -1),
    lambda a: a[...],
    lambda a: a.squeeze(),
    lambda a: np.broadcast_to(a, (2, *a.shape))[0],
    lambda a: a.real,
]
WRITES: list[Callable] = [
    lambda xp, a, b: a.__setitem__(0, 2.0),
    lambda xp, a, b: a.__iadd__(1.5),
    lambda xp, a, b: a.__imul__(0.5),
    lambda xp, a, b: a.__setitem__(slice(None, None, 2), -1.0),
    lambda xp, a, b: a.__setitem__(a > 0.2, 0.1),
    lambda xp, a, b: a.__setitem__(..., b) if b.shape == a.shape else a.__isub__(b.sum()),
    lambda xp, a, b: xp.multiply(a, b, out=a) if b.shape == a.shape else xp.sin(a, out=a),
    lambda xp, a, b: a.sort() if a.ndim else None,
    lambda xp, a, b: a.fill(0.25),
    lambda xp, a, b: xp.add.at(a, ([0, 0],), 1.0),
    lambda xp, a, b: xp.copyto(a, 0.75, where=a < 0),
    lambda xp, a, b: a.__setitem__(([0, -1, 0],), a[[0, 0, -1]]),
    lambda xp, a, b: xp.put(a, [0, -1], [5.0, 6.0]),
]


def replay(steps: list[tuple], x: Any, xp: Any) -> tuple[list, Any]:
    """Run recorded steps under one library; returns (arrays, a scalar of them all)."""
    pool = [x * 1.0, xp.zeros((3, 3))]
    total = (x * x).sum()
    for kind, which, u, v in steps:
        a, b = pool[u % len(pool)], pool[v % len(pool)]
        if not a.ndim:
            continue
        if kind == "view":
            pool.append(VIEWS[which](a) if which != 10 else xp.broadcast_to(a, (2, *a.shape))[0].copy())
        elif kind == "write":
            WRITES[which](xp, a, b)
        elif kind == "copy":
            pool.append(a.copy())
        else:
            total = total + (xp.sin(a) * a).sum()
    for a in pool:
        total = total + (a * xp.cos(a)).sum()
    return pool, total


class ViewsAndWrites(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 10**6))
    def start(self, seed: int) -> None:
        rng = onp.random.default_rng(seed)
        self.x, self.direction = rng.uniform(-1, 1, (3, 3)), rng.standard_normal((3, 3))
        self.steps: list[tuple] = []
        self.theirs, self.ours = [self.x * 1.0, onp.zeros((3, 3))], [np.array(self.x) * 1.0, np.zeros((3, 3))]

    def step(self, kind: str, which: int, u: int, v: int) -> None:
        self.steps.append((kind, which, u, v))
        for pool, xp in ((self.theirs, onp), (self.ours, np)):
            a, b = pool[u % len(pool)], pool[v % len(pool)]
            if not a.ndim or not a.size:
                continue
            if kind == "view":
                pool.append(VIEWS[which](a) if which != 10 else xp.broadcast_to(a, (2, *a.shape))[0].copy())
            elif kind == "write":
                WRITES[which](xp, a, b)
            elif kind == "copy":
                pool.append(a.copy())

    @rule(which=st.integers(0, len(VIEWS) - 1), u=st.integers(0, 20))
    def view(self, which: int, u: int) -> None:
        a = self.theirs[u % len(self.theirs)]
        if a.ndim and a.shape[0] > 1 and a.ndim < 4:
            self.step("view", which, u, 0)

    @rule(which=st.integers(0, len(WRITES) - 1), u=st.integers(0, 20), v=st.integers(0, 20))
    def write(self, which: int, u: int, v: int) -> None:
        if self.theirs[u % len(self.theirs)].size:
            self.step("write", which, u, v)

    @rule(u=st.integers(0, 20))
    def copy(self, u: int) -> None:
        self.step("copy", 0, u, 0)

    @rule(u=st.integers(0, 20))
    def save(self, u: int) -> None:
        self.step("save", 0, u, 0)

    @invariant()
    def the_arrays_agree(self) -> None:
        for theirs, ours in zip(getattr(self, "theirs", ()), getattr(self, "ours", ()), strict=True):
            assert same(ours, theirs, ulps=64)
            assert ours.shape == theirs.shape and ours.strides == theirs.strides

    def teardown(self) -> None:
        if not getattr(self, "steps", None):
            return
        with onp.errstate(all="ignore"):
            want = replay(self.steps, self.x.copy(), onp)[1]
            y, pullback = vjp(lambda x: replay(self.steps, x, np)[1], self.x)
            assert onp.isclose(float(y), want, rtol=1e-9, equal_nan=True)
            e = 1e-6
            up, down = (replay(self.steps, self.x + s * e * self.direction, onp)[1] for s in (1, -1))
            slope = (up - down) / (2 * e)
            half = [replay(self.steps, self.x + s * e / 2 * self.direction, onp)[1] for s in (1, -1)]
            finer = (half[0] - half[1]) / e
        if abs(slope - finer) < 1e-4 * (1 + abs(slope)) and abs(slope) < 1e6:  # differences mean something here
            got = float((onp.asarray(pullback(1.0)[0]) * self.direction).sum())
            assert abs(got - slope) < 1e-3 * (1 + abs(slope) + abs(want)), (got, slope, self.steps)


TestViewsAndWrites = pytest.mark.long(ViewsAndWrites.TestCase)
TestViewsAndWrites.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
