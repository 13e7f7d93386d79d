"""jit of functions that keep state outside: they do at every call what they do eagerly, compiled or not."""

from __future__ import annotations

import abc
import array
import asyncio
import collections
import contextlib
import contextvars
import copy
import csv
import ctypes
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import io
import itertools
import logging
import math
import operator
import os
import pickle
import queue
import random
import sqlite3
import statistics
import string
import struct
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import Context, fx, grad, jit, nn, report
from minnp.core.graph import kept
from minnp.errors import CaptureError

X = np.arange(6.0).reshape(2, 3)


def counter() -> Callable:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1
        return x * n

    return f


def momentum() -> Callable:
    class Optimiser:
        def __init__(self) -> None:
            self.v, self.t = np.zeros(3), 0

        def step(self, x: Any) -> Any:
            self.v = 0.9 * self.v + x
            self.t += 1
            return self.v / (1 - 0.9**self.t)

    return Optimiser().step


def slots() -> Callable:
    class State:
        __slots__ = ("n", "w")

        def __init__(self) -> None:
            self.n, self.w = 0, np.ones(3)

    s = State()

    def f(x: Any) -> Any:
        s.n += 1
        s.w = s.w * x
        return s.w + s.n

    return f


def memo() -> Callable:
    known: dict = {}

    def f(x: Any) -> Any:
        if "first" not in known:
            known["first"] = x * 2
        return x + known["first"]

    return f


def default() -> Callable:
    def f(x: Any, acc: list = []) -> Any:  # noqa: B006
        acc.append(1)
        return x * len(acc)

    return f


def log() -> Callable:
    kept: list = []

    def f(x: Any) -> Any:
        kept.append(x.sum())
        return sum(kept)

    return f


def members() -> Callable:
    met: set = set()

    def f(x: Any, s: set = met) -> Any:
        s.add(len(s))
        return x * len(s)

    return f


def generates() -> Callable:
    return lambda x: (row * 2 for row in x)


def closes() -> Callable:
    return lambda x: lambda y: y + x


def test_a_container_among_the_arguments_may_be_one_that_is_read_outside() -> None:
    history: list = []
    table = {"n": 0.0, "deep": {"w": onp.ones(2)}}

    def appends(x: Any, h: list) -> Any:
        history.append(1.0)
        return x * len(h)

    def counts(x: Any, d: dict) -> Any:
        table["n"] += 1
        table["deep"]["w"] = table["deep"]["w"] + x
        return x * d["n"] + d["deep"]["w"]

    for f, given in ((appends, history), (counts, table)):
        before = copy.deepcopy(given)
        compiled = jit(f)
        got = [onp.asarray(compiled(np.ones(2), given)).tolist() for _ in range(5)]
        after = copy.deepcopy(given)
        given.clear()
        given.extend(before) if isinstance(given, list) else given.update(before)
        assert got == [f(onp.ones(2), given).tolist() for _ in range(5)]
        assert str(after) == str(given)


def test_nested_containers_of_arguments_alone_are_compiled_for() -> None:
    compiled = jit(lambda tree, x: tree["a"]["w"] * x + len(tree["b"][0]))
    for _ in range(4):
        compiled({"a": {"w": np.ones(2)}, "b": [[1, 2]]}, np.ones(2))
    assert compiled.captures == 1


@pytest.mark.parametrize("make", [counter, momentum, slots, memo, default, log, members, generates, closes])
def test_state_advances_at_every_call(make: Callable) -> None:
    eager, compiled = make(), jit(make())
    for k in range(6):
        want, got = eager(X + k), compiled(X + k)
        if make is generates:
            want, got = np.array(list(want)), np.array(list(got))
        elif make is closes:
            want, got = want(1.0), got(1.0)
        onp.testing.assert_array_equal(onp.asarray(got), onp.asarray(want))
    assert compiled.captures == (make is memo)  # which changes nothing once it is filled


def test_what_is_exchanged_between_calls_is_seen() -> None:
    class Net:
        gain = 2.0

        def __init__(self) -> None:
            self.act, self.sizes = np.tanh, [1.0, 2.0]

        def __call__(self, x: Any) -> Any:
            for s in self.sizes:
                x = x * s
            return self.act(x) * self.gain + shift(x)

    net, shift = Net(), lambda x: x
    compiled = jit(lambda x: net(x), compiler="numpy")
    for change in range(6):
        if change == 1:
            net.act = np.sin
        elif change == 2:
            Net.gain = 3.0
        elif change == 3:
            shift = np.cos
        elif change == 4:
            net.sizes.append(3.0)
        elif change == 5:
            net.sizes = [0.5]
        for _ in range(2):
            onp.testing.assert_array_equal(onp.asarray(compiled(X)), onp.asarray(net(X)))
    assert compiled.captures == 6


@dataclasses.dataclass
class State:
    w: Any
    n: int = 0


def test_containers_that_are_given_back_are_the_callers() -> None:
    def f(s: State, d: dict, parts: list, x: Any) -> Any:
        s.n += 1
        d["x"] = x + 1
        return s, {"d": d, "parts": (parts, [x])}, x

    compiled = jit(f)
    for k in range(3):
        s, d, parts, x = State(X, k), collections.OrderedDict(a=X), [X], X + k
        got = compiled(s, d, parts, x)
        assert got[0] is s and got[1]["d"] is d and got[1]["parts"][0] is parts and got[2] is x
        assert s.n == k + 1 and np.array_equal(d["x"], x + 1) and got[1]["parts"][1][0] is x
    assert compiled.captures == 1


@jit
def decorated(x: Any) -> Any:
    return x + 4


def plain(x: Any) -> Any:
    return x * 2


def test_jitted_functions_are_pickled_and_copied() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated and copy.deepcopy(decorated) is decorated
    other = pickle.loads(pickle.dumps(jit(plain, compiler="numpy")))
    assert other.compiler == "numpy" and np.array_equal(other(X), X * 2)


@pytest.mark.parametrize("arange", [np.arange, onp.arange])
def test_a_shape_that_the_function_sets_is_the_arguments(arange: Callable) -> None:
    def f(x: Any) -> Any:
        x.shape = (2, x.size // 2)
        x += 1
        return x

    compiled = jit(f)
    for _ in range(3):
        x = arange(6.0)
        first = x[:2]
        assert compiled(x) is x and x.shape == (2, 3) and first.tolist() == [1.0, 2.0]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_what_no_graph_can_hold_runs_as_it_is() -> None:
    def masked(x: Any) -> Any:
        x += 1.0
        kept = np.ma.masked_less(x, 0)
        x *= 2.0
        return kept.sum(), np.ma.array(x, mask=x > 6).filled(7.0), (np.asmatrix(x) * np.asmatrix(x)).sum()

    def told(x: Any) -> Any:
        return f"{x.sum():.2f}", str(x), x * 2

    for f in (masked, told):
        g = jit(f)
        for k in range(5):
            x = np.array([[-3.0, 1.0], [2.0, k]])
            y = x.copy()
            for a, b in zip(g(x), f(y), strict=True):
                onp.testing.assert_array_equal(onp.asarray(a), onp.asarray(b))
            onp.testing.assert_array_equal(onp.asarray(x), onp.asarray(y))
        assert g.captures == 0
        with pytest.raises(CaptureError, match="jit runs such a function as it is"):
            fx.capture(f, np.eye(2))


def test_a_generator_bound_anew_is_the_one_that_is_drawn_from() -> None:
    class Noise:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)

        def __call__(self, x: Any) -> Any:
            return x + self.rng.normal(size=x.shape)

    noise = Noise()
    compiled = jit(noise)
    for seed in (0, 1, 2, 1):
        noise.rng = np.random.default_rng(seed)
        got = [compiled(X), compiled(X)]
        noise.rng = np.random.default_rng(seed)
        assert all((a == b).all() for a, b in zip(got, [noise(X), noise(X)], strict=True))


def test_gradients_of_compiled_code_follow_arrays_made_outside() -> None:
    """Rules that compute with such an array alone, 1 / w, are recorded: it may be written, or bound anew."""

    class Net:
        w: Any = None

    net = Net()
    for f in (
        lambda x: (x / net.w).sum(),
        lambda x: (x.T @ net.w).sum(),
        lambda x: ((x + 1) ** net.w).sum(),
        lambda x: np.arctan2(x, net.w).sum(),
    ):
        for make in (np.array, onp.array):
            net.w = make(onp.full((2, 3), 2.0))
            slope = jit(grad(f))
            slope(X)
            net.w[...] = 3.0
            onp.testing.assert_allclose(onp.asarray(slope(X)), onp.asarray(grad(f)(X)), rtol=1e-14)
            net.w = make(onp.full((2, 3), 4.0))
            onp.testing.assert_allclose(onp.asarray(slope(X)), onp.asarray(grad(f)(X)), rtol=1e-14)


def test_the_cache_may_be_cleared_while_a_function_is_captured() -> None:
    def f(x: Any, n: int) -> Any:
        if n == 3 or clears:
            g.clear_cache()  # another thread
        return x[:n] * 2

    clears = True
    g = jit(f)
    for n in (3, 3, 4, 3):
        assert g(np.arange(5.0), n).tolist() == [2.0 * k for k in range(n)]
    h = jit(lambda x: x * float(cleared(x.sum())))
    cleared = lambda s: (h.clear_cache(), s)[1]
    assert [h(np.ones(2)).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2


class Mode(enum.Enum):
    ADD = 1
    DROP = 2


class Doubled:
    def __get__(self, owner: Any, kind: Any) -> Any:
        return owner.z * 2


class Base:
    k = 1

    def inherited(self) -> Any:
        return self.k


class Held(Base):
    """Whose numbers the code of a function reads without naming them."""

    z, mode, weights, layers = 1, Mode.ADD, None, [np.ones(2)]
    doubled = Doubled()

    @property
    def tenfold(self) -> Any:
        return self.k * 10

    @classmethod
    def of_class(cls) -> Any:
        return cls.k * 100

    def inherited(self) -> Any:
        return super().inherited() * 2

    def __mul__(self, x: Any) -> Any:
        return x * self.k

    def __getitem__(self, i: int) -> int:
        return self.k + i

    def __len__(self) -> int:
        return self.k

    def __bool__(self) -> bool:
        return self.k > 2

    def __iter__(self) -> Any:
        return iter(range(self.k))

    def __contains__(self, x: Any) -> bool:
        return x < self.k


def layered(h: Held, x: Any) -> Any:
    for w in h.layers:
        x = x * w
    return x


HELD: dict[str, tuple[Callable, Callable]] = {
    "property": (lambda h, x: x * h.tenfold, lambda h, k: setattr(h, "k", k)),
    "classmethod": (lambda h, x: x * h.of_class(), lambda h, k: setattr(Held, "k", k)),
    "operator": (lambda h, x: h * x, lambda h, k: setattr(h, "k", k)),
    "descriptor": (lambda h, x: x * h.doubled, lambda h, k: setattr(h, "z", k)),
    "super": (lambda h, x: x * h.inherited(), lambda h, k: setattr(h, "k", k)),
    "item": (lambda h, x: x * h[2] + len(h), lambda h, k: setattr(h, "k", k)),
    "truth": (lambda h, x: x * (5 if h else 7) + (2 in h), lambda h, k: setattr(h, "k", k)),
    "iteration": (lambda h, x: x + sum(i for i in h), lambda h, k: setattr(h, "k", k)),
    "enum": (lambda h, x: x + 1 if h.mode is Mode.ADD else x, lambda h, k: setattr(h, "mode", Mode(k % 2 + 1))),
    "none": (
        lambda h, x: x if h.weights is None else x * h.weights,
        lambda h, k: setattr(h, "weights", np.ones(2) * k if k != 3 else None),
    ),
    "missing": (lambda h, x: x * (h.new if hasattr(h, "new") else 100), lambda h, k: setattr(h, "new", k)),
    "list": (layered, lambda h, k: h.layers.append(np.ones(2) * k)),
}


@pytest.mark.parametrize("name", HELD)
def test_what_classes_read_of_their_objects_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Held, "k", 1)
    monkeypatch.setattr(Held, "layers", [np.ones(2)])
    read, change = HELD[name]
    held = Held()
    compiled = jit(lambda x: read(held, x))
    for k in (1, 2, 3, 3, 5):
        change(held, k)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(np.ones(2)), read(held, np.ones(2)))


def test_namespaces_functions_and_dicts_are_looked_into() -> None:
    space = types.SimpleNamespace(k=1, inner=types.SimpleNamespace(z=1))
    queue, empty, steps = collections.deque([1, 2], maxlen=2), {}, [functools.partial(np.multiply, 2)]

    def scale(x: Any) -> Any:
        return x * scale.by

    scale.by = 1

    def f(x: Any) -> Any:
        return scale(x) * space.k + space.inner.z + queue[0] + empty.get("k", 7) + len(empty) + steps[0](x)

    compiled = jit(f)
    for k in (1, 2, 3, 3, 5):
        for _ in range(2):
            np.testing.assert_array_equal(compiled(np.ones(2)), f(np.ones(2)))
        space.k, space.inner, scale.by = k, types.SimpleNamespace(z=k), k + 1
        queue.append(k)
        empty[k] = empty["k"] = k
        steps[0] = functools.partial(np.multiply, k)


def test_iterators_and_pythons_random_numbers_are_drawn_from_at_every_call() -> None:
    counts, squares = itertools.count(1), (i * i for i in range(9))
    f = jit(lambda x: x * next(counts) + next(squares))
    assert [float(f(np.ones(1))[0]) for _ in range(5)] == [1, 3, 7, 13, 21]
    stream = random.Random(3)
    g = jit(lambda x: x * random.random() + stream.random())
    random.seed(1)
    drawn = [float(g(np.ones(1))[0]) for _ in range(5)]
    random.seed(1)
    again = random.Random(3)
    assert drawn == [random.random() + again.random() for _ in range(5)]


@pytest.mark.parametrize(
    "read",
    [
        lambda o, z: o.item(0),
        lambda o, z: float(z),
        lambda o, z: [5, 6, 7, 8, 9, 10][int(z)],
        lambda o, z: o.tolist()[0] + z.tolist(),
        lambda o, z: o.tobytes()[6],
        lambda o, z: next(o.flat) + next(iter(o.flat)),
        lambda o, z: o.copy().item(0) + complex(z).real,
    ],
)
def test_numbers_that_python_takes_from_arrays_outside_are_seen(read: Callable) -> None:
    o, z = np.array([1.0, 0.0]), np.array(1.0)
    f = jit(lambda x: x * read(o, z))
    for k in (1, 2, 3, 3, 5):
        o[0] = z[...] = k
        for _ in range(2):
            np.testing.assert_array_equal(f(np.ones(2)), np.ones(2) * read(o, z))


PLAIN, OWN, MAPPED = onp.ones(2), np.ones(2), None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * PLAIN + PLAIN * 2,
        lambda x: x * PLAIN + PLAIN[0],
        lambda x: (lambda c: x * c + c.sum())(PLAIN),
        lambda x: x * PLAIN,
        lambda x: PLAIN @ x,
        lambda x: sum(v * PLAIN for v in (x, onp.ones(2))),
        lambda x: x * OWN + onp.asarray(OWN)[0],
        lambda x: x * onp.array(OWN),
        lambda x: x * memoryview(OWN)[0],
        lambda x: x * onp.frombuffer(OWN),
        lambda x: np.frombuffer(memoryview(OWN)) * x,
        lambda x: x + MAPPED * 2,
        lambda x: x * MAPPED.sum(),
    ],
)
def test_elements_that_numpys_code_reads_of_arrays_outside_are_seen(
    f: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "MAPPED", np.memmap(tmp_path / "m", dtype=float, mode="w+", shape=(2,)))
    g = jit(f)
    for k in (1, 2, 3, 3, 5):
        for a in (PLAIN, OWN, MAPPED):
            a[0] = k
        for _ in range(2):
            onp.testing.assert_array_equal(g(np.array([2.0, 3.0])), f(onp.array([2.0, 3.0])))


class Layers:
    """Of NumPy's own arrays, which a program trains in place."""

    def __init__(self) -> None:
        self.w, self.b, self.more = onp.ones((2, 2)), onp.zeros(2), {"u": onp.eye(2)}

    def scores(self, x: Any) -> Any:
        h = np.zeros(2)
        for t in range(3):
            h = np.tanh(x[t] @ self.w + np.dot(h, self.more["u"]) + self.b)
        return np.dot(h, self.w) + self.b

    def scaled(self, x: Any) -> Any:
        return x * self.w

    def half(self, x: Any) -> Any:
        return x / 2

    def halved(self, x: Any) -> Any:
        return self.half(4.0) * self.w + self.half(self.w) @ x[0]

    def normed(self, x: Any) -> Any:
        return x @ self.w / np.size(x) * self.b + self.b * 2


@pytest.mark.parametrize(
    ("of", "captures"),
    [
        (lambda layers: layers.scores, 1),
        (lambda layers: lambda x: np.maximum(layers.scores(x), layers.b), 1),
        (lambda layers: layers.normed, None),
        (lambda layers: layers.halved, None),
        (lambda layers: lambda x: x[:2] @ layers.w + layers.half(layers.w) * np.size(x), None),
        (lambda layers: lambda x: layers.scaled(x[:2]) + layers.scaled(2.0), None),
        (lambda layers: lambda x: (layers.w * 3.0 + x[:2]) @ layers.w, None),
    ],
)
def test_weights_of_numpys_that_change_are_read_by_the_graph(of: Callable, captures: int | None) -> None:
    layers, x = Layers(), onp.arange(6.0).reshape(3, 2)
    f = of(layers)
    g = jit(f)
    for k in range(6):
        layers.w[0, 1], layers.b[0], layers.more["u"][0, 0] = k, k / 2, k / 3
        expected = onp.asarray(f(np.array(x)))
        onp.testing.assert_allclose(g(np.array(x)), expected, rtol=1e-14)
    if captures is not None:
        assert g.captures == captures


def test_elements_that_libraries_read_of_attributes_are_seen() -> None:
    linalg = pytest.importorskip("scipy.linalg")

    class Model:
        weights = np.eye(2)

        def scaled(self, x: Any) -> Any:
            return x * linalg.det(self.weights)

    model = Model()
    f = jit(model.scaled)
    for k in (1, 2, 3, 3, 5):
        model.weights[0, 0] = k
        for _ in range(2):
            assert f(np.ones(2)).tolist() == [k, k]


def test_numbers_that_a_function_leaves_alone_are_no_guards() -> None:
    @dataclasses.dataclass
    class Training:
        rate: float = 0.5
        epoch: int = 0

        def report(self) -> str:
            return f"{self.epoch}"

    training = Training()

    @jit
    def f(x: Any) -> Any:
        return x * training.rate

    for epoch in range(6):
        training.epoch = epoch
        f(np.ones(2))
    assert f.captures == 1


def kinds(x: Any) -> Any:
    """What an object is to a caller: its type and value, and those of all it holds; arrays by their own class."""
    if isinstance(x, onp.ndarray) or type(x).__name__ == "VirtualArray":
        return type(x), x.dtype, x.tolist()
    if isinstance(x, dict):
        return type(x), [(kinds(k), kinds(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple, collections.deque)):
        return type(x).__name__, [kinds(v) for v in x]
    if isinstance(x, (set, frozenset)):
        return type(x), [kinds(v) for v in sorted(x)]
    if hasattr(x, "__dict__"):
        return type(x).__name__, kinds(vars(x))
    return type(x), x


class Stop(Exception):
    pass


class Slotted:
    __slots__ = ("n", "parts", "w")
    total: Any = 0

    @property
    def count(self) -> int:
        return self.n

    @count.setter
    def count(self, n: int) -> None:
        self.n = n


best: Any = None
Step = collections.namedtuple("Step", "loss number")


def keeps_in_lists(seen: list) -> Callable:
    def f(x: Any, k: int) -> Any:
        seen.append(k * 2)
        seen.append([x.sum(), (k + 0.5, {"x": x * 2})])
        seen.append(Step(x.max(), k))
        return x

    return f


def keeps_in_dicts(seen: list) -> Callable:
    d, counts, ordered = collections.defaultdict(list), collections.Counter(), collections.OrderedDict(a=1, b=2)
    seen += [d, counts, ordered]

    def f(x: Any, k: int) -> Any:
        d[k % 2].append(x.mean())
        counts["n"] += k
        ordered["a"] = k * 0.5
        ordered[k + 1] = {x.max(): frozenset([k])}
        return x

    return f


def keeps_in_sets_and_queues(seen: list) -> Callable:
    s, q = set(), collections.deque(maxlen=3)
    seen += [s, q]

    def f(x: Any, k: int) -> Any:
        s.add(k + 1)
        q.append(x.sum())
        return x * k

    return f


def keeps_in_attributes(seen: list) -> Callable:
    a, s = types.SimpleNamespace(), Slotted()
    seen += [a]

    def f(x: Any, k: int) -> Any:
        a.n, a.loss, a.large, a.some, a.at = k + 1, x.sum(), k > 2, x.any(), x.argmax()
        a.view = (x * 2)[0]
        s.count = k * 3
        s.parts, s.w = (k, [x.min()]), x + 1
        Slotted.total = x.max()
        seen.append((s.n, s.parts, s.w, Slotted.total))
        return x

    return f


def keeps_in_variables(seen: list) -> Callable:
    last: Any = None
    mean = running_mean()
    next(mean)

    def f(x: Any, k: int) -> Any:
        global best
        nonlocal last
        best, last = x.max(), (k, x[0])
        seen.append(mean.send(x.sum()))
        seen.append((best, last))
        return x

    return f


def running_mean() -> Any:
    total, n, last = 0.0, 0, None
    while True:
        last = yield total, n, last
        total, n = total + last, n + 1


def keeps_and_raises(seen: list) -> Callable:
    def f(x: Any, k: int) -> Any:
        seen.append((k, x.sum()))
        if k > 1:
            raise Stop(x.max(), k, {"best": x.min()})
        return x

    return f


KEEPS = (keeps_in_lists, keeps_in_dicts, keeps_in_sets_and_queues, keeps_in_attributes, keeps_in_variables)
KEEPS += (keeps_and_raises,)


@pytest.mark.parametrize("make", KEEPS)
def test_what_a_function_keeps_outside_is_what_it_would_be_eagerly(make: Callable) -> None:
    held: tuple[list, list] = ([], [])
    eager, compiled = make(held[0]), jit(make(held[1]))
    for k in range(5):
        for f, seen in zip((eager, compiled), held, strict=True):
            try:
                seen.append(f(X + k, k))
            except Stop as error:
                seen.append(error.args)
        assert kinds(held[1]) == kinds(held[0])
    assert pickle.loads(pickle.dumps(held[1][0])) is not None


def test_what_a_function_keeps_of_its_arguments_is_the_callers_own() -> None:
    kept = types.SimpleNamespace()

    @jit
    def f(x: Any, d: dict, parts: list) -> Any:
        kept.x, kept.row, kept.d, kept.both = x, x[0], d, (x, parts)
        kept.y = x * 2
        kept.view = kept.y[0]
        kept.view[0] = 7.0
        x[0] += 1
        d["x"] = x
        parts.append(d)
        return kept.y

    for k in range(4):
        x, d, parts = X + k, {}, []
        y = f(x, d, parts)
        assert kept.x is x and kept.d is d and kept.both[0] is x and kept.both[1] is parts and d["x"] is x
        assert parts == [d] and parts[0] is d and kept.y is y
        assert onp.shares_memory(kept.row, x) and kept.row.tolist() == (X[0] + k + 1).tolist()
        assert onp.shares_memory(kept.view, y) and kept.view[0] == 7.0


class Refused(Exception):
    def __init__(self, value: float) -> None:
        super().__init__(value)
        object.__setattr__(self, "discarded", 5)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            raise AttributeError(name)
        super().__setattr__(name, value)


def test_nothing_is_left_on_an_exception_that_a_function_raises() -> None:
    raised = Refused(2.0)

    @jit
    def f(x: Any, k: int) -> Any:
        if k > 2:
            raise raised
        return int("no number") if k == 2 else x * k

    for k in (1, 2, 3, 3, 3, 3, 2, 1, 3):
        if k == 1:
            assert f(np.ones(3), k).tolist() == [1.0] * 3
            continue
        with pytest.raises(Refused if k == 3 else ValueError) as info:
            f(np.ones(3), k)
        assert k == 2 or (info.value is raised and vars(raised) == {"discarded": 5})
        assert k == 3 or not vars(info.value)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_done_to_arguments_before_an_exception_stays_done(error: type[BaseException]) -> None:
    def f(x: Any, parts: list, d: dict, s: State, k: int) -> Any:
        parts.append(k)
        parts[0] = x.sum() * 2
        d["n"], d[k] = k + 1, parts
        s.w = x * 2
        s.n += 1
        x[0] = k
        raise error("stop")

    compiled = jit(f)
    given = [[X * 1, [1.0], {}, State(X)] for _ in range(2)]
    for k in range(5):
        for g, arguments in zip((f, compiled), given, strict=True):
            with pytest.raises(error):
                g(*arguments, k)
        assert kinds(given[1]) == kinds(given[0]) and given[1][2][k] is given[1][1]


@pytest.mark.parametrize(
    "change",
    [
        lambda o, x: o.parts.append(1),
        lambda o, x: o.parts.append(float(x.sum())),
        lambda o, x: o.queue.append("step"),
        lambda o, x: o.counts.update(n=1),
        lambda o, x: o.seen.add(len(o.seen)),
        lambda o, x: setattr(o, "ready", True),
        lambda o, x: setattr(o, "made", x.shape),
        lambda o, x: vars(o).pop("ready", None),
    ],
)
def test_what_a_function_changes_outside_it_changes_at_every_call(change: Callable) -> None:
    make = lambda: types.SimpleNamespace(
        parts=[0.5], queue=collections.deque(maxlen=50), counts=collections.Counter(), seen=set(), ready=False
    )
    eager, compiled = make(), make()

    @jit
    def f(x: Any) -> Any:
        change(compiled, x)
        return x * 2

    for k in range(40):
        change(eager, X + k)
        onp.testing.assert_array_equal(f(X + k), (X + k) * 2)
        assert kinds(compiled) == kinds(eager)
        eager.ready = compiled.ready = k % 2 == 1


def records() -> Any:
    return np.zeros(3, [("n", "i8"), ("t", "f8"), ("p", "f8", (2,)), ("in", [("a", "f8"), ("b", "f8")])])


def each_element(a: Any, x: Any) -> None:
    for i in range(len(a)):
        a["t"][i] += x[0] * i


def a_name(a: Any, x: Any) -> None:
    v = a["n"]
    v += 1


def rows_named(a: Any, x: Any) -> None:
    for v in np.split(a, [1]):
        v += x


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (records, each_element),
        (records, a_name),
        (records, lambda a, x: operator.setitem(a["n"], 0, a["n"][0] + 1)),
        (records, lambda a, x: operator.iadd(a["t"][1:], x)),
        (records, lambda a, x: operator.iadd(a[1:]["t"], x)),
        (records, lambda a, x: operator.iadd(a["p"][0], x)),
        (records, lambda a, x: operator.iadd(a[["n", "t"]]["t"], x[0])),
        (records, lambda a, x: operator.setitem(a["in"]["a"], 1, a["in"]["a"][1] + x[0])),
        (records, lambda a, x: operator.setitem(a[0], "t", a[0]["t"] + x[0])),
        (records, lambda a, x: operator.setitem(a, 0, (1, x[0] + a["t"][0], x, (x[0], x[1])))),
        (records, lambda a, x: np.add.at(a["t"], [0, 0], x)),
        (records, lambda a, x: np.add(a["t"], x[0], out=a["t"])),
        (records, lambda a, x: a["t"].fill(a["t"][0] + x[0])),
        (lambda: np.zeros((3, 2)), rows_named),
        (lambda: np.zeros((3, 2)), lambda a, x: operator.iadd(a[1:][0], x)),
        (lambda: np.zeros((3, 2)), lambda a, x: operator.iadd(a.T[0][1:], x)),
        (lambda: np.zeros((3, 2)), lambda a, x: operator.iadd(a.reshape(2, 3)[:, 0], x)),
        (lambda: np.zeros((3, 2)), lambda a, x: operator.iadd(np.atleast_3d(a)[0, :, 0], x)),
        (lambda: np.zeros((3, 2)), lambda a, x: operator.iadd(a.view("i8")[:1], 1)),
        (lambda: onp.zeros((3, 2)), lambda a, x: operator.iadd(np.reshape(a, (2, 3))[:, 0], x)),
    ],
)
def test_what_is_written_to_views_of_arrays_outside_is_written_at_every_call(make: Callable, change: Callable) -> None:
    eager, compiled = make(), make()

    @jit
    def f(x: Any) -> Any:
        change(compiled, x)
        return compiled.copy()

    for k in range(5):
        x = np.array([1.0, 2.0]) + k
        change(eager, x)
        assert f(x).tobytes() == compiled.tobytes() == eager.tobytes()


class Shifted(np.ndarray):
    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * other + 100.0

    __rmul__ = __mul__


def a_masked() -> Any:
    return onp.ma.array([1.0, 2.0], mask=[False, True])


def a_matrix() -> Any:
    return onp.array([[1.0, 2.0], [3.0, 4.0]]).view(onp.matrix)


def a_recarray() -> Any:
    return onp.rec.fromarrays([[1, 2], [0.5, 1.5]], names="n,t")


def each_masked(x: Any, o: Any) -> Any:
    total = 0.0
    for i in range(len(o)):
        total += o[i] * x[i]
    return total


OF_SUBCLASSES = [
    *[(a_masked, f) for f in (lambda x, o: x * o, lambda x, o: o * x, lambda x, o: (x + o).sum(), each_masked)],
    (a_masked, lambda x, o: np.max(o) * x),
    (a_masked, lambda x, o: o.filled(7.0) * x),
    (a_masked, lambda x, o: o > x),
    (a_masked, lambda x, o: np.sort(o)),
    (a_masked, lambda x, o: onp.ma.sqrt(o - 1.5) * x),
    (a_masked, lambda x, o: [np.stack([x, o]), operator.iadd(x * 1, o)]),
    (a_matrix, lambda x, o: x * o),
    (a_matrix, lambda x, o: o.T * o),
    (a_matrix, lambda x, o: [o**2 @ x, o.I @ x, np.multiply(o, x)]),
    (a_recarray, lambda x, o: x * o.t),
    (lambda: np.array([1.0, 2.0]).view(Shifted), lambda x, o: [x * o, o * x]),
]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(("make", "f"), OF_SUBCLASSES)
def test_masked_arrays_and_matrices_of_outside_keep_their_operators(make: Callable, f: Callable) -> None:
    free, held, library = make(), types.SimpleNamespace(o=make()), types.ModuleType("library")
    library.__file__, library.o = onp.__file__, make()
    ways = [lambda x: f(x, free), lambda x: f(x, held.o), lambda x: f(x, library.o), lambda x: f(x, make())]
    for way in ways:
        compiled = jit(way)
        for k in range(4):
            x = np.array([1.0, 2.0]) + k
            assert repr(compiled(x)) == repr(way(x))
            held.o = held.o[::-1].copy()


def test_what_computes_with_masked_arrays_says_so() -> None:
    o = a_masked()
    inside = lambda x: x * onp.ma.array([1.0, 2.0], mask=[False, True])
    jit(lambda x: x * o)(np.ones(2))
    jit(inside)(np.ones(2))
    said = str(report())
    assert "reads a MaskedArray outside, whose operators" in said and "computes with a MaskedArray, whose" in said
    for f, why in ((inside, "computes with"), (lambda x: onp.ma.array(x), "makes")):
        with pytest.raises(CaptureError, match=f"the function {why} a MaskedArray"):
            fx.capture(f, np.ones(2))


def test_traced_numbers_are_no_arrays() -> None:
    """Where NumPy has a scalar; what goes through nested arrays stops at its elements."""

    def total(x: Any) -> Any:
        return sum(map(total, x)) if isinstance(x, np.ndarray) else x * x

    def asks(x: Any) -> Any:
        for v in (x[0, 0], x.sum(), x.max() * 2):
            assert not isinstance(v, np.ndarray) and not isinstance(v, onp.ndarray)
            assert isinstance(v, float) and isinstance(v, np.float64) and isinstance(v, np.generic) and np.isscalar(v)
        assert all(isinstance(v, np.ndarray) for v in (x, x[0], x.sum(axis=0), np.asarray(x.sum()), x[0, 0, ...]))
        return total(x)

    assert asks(X) == jit(asks)(X) == 55.0
    onp.testing.assert_array_equal(grad(asks)(X), 2 * X)
    onp.testing.assert_array_equal(jit(grad(asks))(X), 2 * X)


def test_a_function_that_is_run_again_because_it_wants_a_number_itself_does_all_once() -> None:
    log, n = [], 0
    state = types.SimpleNamespace(steps=0, seen=set(), last=None)

    def f(x: Any, k: int) -> Any:
        nonlocal n
        n += 1
        state.steps += 1
        state.seen.add(k)
        state.last = functools.partial(max, k)
        log.append(x.sum())
        return x * len(struct.pack("i", k))

    compiled = jit(f)
    for k in range(5):
        onp.testing.assert_array_equal(compiled(X, k), X * 4)
        assert n == state.steps == len(log) == len(state.seen) == k + 1 and type(state.last(-1)) is int
        assert type(log[-1]) is onp.float64


# (what a module holds, a function that reads it, what is done to it between calls)
MODULES = [
    ("def q(v): return v * 2", "q(x)", ["q = lambda v: v * 3", "q = np.negative", "q = abs"]),
    ("def q(v): return v * 2", "sum(q(x[i]) for i in range(3))", ["q = lambda v: v * 3"]),
    ("from numpy import tanh as q", "q(x)", ["from numpy import exp as q"]),
    ("def q(v): return p(v) * 2\ndef p(v): return v", "q(x)", ["p = lambda v: v + 1"]),
    ("a = np.zeros(3)", "x * a.shape[0]", ["a = np.zeros(1)", "a = np.zeros((2, 2))"]),
    ("a = np.zeros(3)", "x * len(a)", ["a = np.zeros(1)", "a = [1, 2]"]),
    ("a = np.zeros(3)", "x.astype(a.dtype)", ["a = np.zeros(3, int)"]),
    ("a = np.zeros(3)", "x * 2 if a is None else x", ["a = None", "a = np.zeros(2)"]),
    ("d = {'a': 1.0, 'b': 2.0}", "sum(x * v for v in d.values())", ["d['b'] = 3.0", "d['b'] = np.ones(3)"]),
    ("d = {'a': 1.0, 'b': 2.0}", "sum(x * v for _, v in d.items())", ["d['b'] = 3.0", "d['c'] = 4.0"]),
    ("d = {f'k{i}': i for i in range(50)}", "x * sum(d.values())", ["d['k7'] = 100"]),
    ("s = {1.0, 2.0}", "x * sum(s)", ["s.discard(1.0); s.add(5.0)"]),
    ("r = range(3)", "sum(x[i] for i in r)", ["r = range(2)"]),
    ("r = slice(0, 2)", "x[r].sum()", ["r = slice(1, 3)"]),
    ("t = np.float32", "x.astype(t)", ["t = np.float64", "t = int"]),
    (
        "class D:\n    def go(self, v): return v * 2\nclass E(D):\n    def go(self, v): return v * 100\no = D()",
        "o.go(x)",
        ["D.go = lambda self, v: v * 3", "o.go = lambda v: v * 7", "o = E()", "o = D()"],
    ),
    ("class D: pass\nclass E: pass\no = D()", "x * 2 if isinstance(o, D) else x", ["o = E()", "o = D()"]),
    ("class S: s = staticmethod(lambda v: v)", "S.s(x)", ["S.s = staticmethod(lambda v: v * 2)"]),
    ("from types import ModuleType\nm = ModuleType('m'); m.k = 2.0", "x * m.k", ["m.k = 3.0"]),
    ("class N:\n    class Opt: lr = 1.0", "x * N.Opt.lr", ["N.Opt.lr = 2.0"]),
]


@pytest.mark.parametrize(("held", "reads", "changes"), MODULES, ids=[f"{k}-{m[1]}" for k, m in enumerate(MODULES)])
def test_what_a_module_holds_is_looked_at_in_every_call(held, reads, changes):
    module = {"np": np, "__name__": "program"}
    exec(f"{held}\ndef f(x): return {reads}", module)
    f, x = module["f"], np.array([1.5, 2.5, -3.5])
    g = jit(f)
    for change in ["pass", "pass", *changes]:
        exec(change, module)
        for _ in range(2):
            expected, found = f(x), g(x)
            assert type(found) is type(expected) and found.dtype == expected.dtype
            onp.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_argument_and_a_container_of_it_are_two_arguments():
    f = jit(lambda x, s: x.sum() if isinstance(s, tuple) else x * s)
    x = np.array([1.0, 2.0, 3.0])
    for s in ((1,), 1, (1,), 1, (2.0,), 2.0, 3):
        onp.testing.assert_array_equal(f(x, s), 6.0 if type(s) is tuple else onp.array([1.0, 2.0, 3.0]) * s)


@pytest.mark.parametrize(
    "values",
    [
        ((1,), (True,), (1.0,), [1], [True]),
        ({1}, {1.0}, {True}, frozenset({1})),
        (range(0, 4, 2), range(0, 3, 2)),
        (b"1", bytearray(b"1")),
        (0j, -0j, complex(-0.0, 0)),
        ((0.0,), (-0.0,), (float("nan"),)),
        (onp.datetime64("2020"), onp.datetime64("2020-01-01")),
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_static_arguments_that_are_equal_may_be_of_other_types(values):
    f = jit(lambda x, k: (repr(k), x), static="k")
    for k in (*values, *values):
        assert f(X, k)[0] == repr(k)


def test_a_static_list_is_what_it_holds():
    f, held = jit(lambda x, k: x * sum(k), static="k"), [1, 2]
    onp.testing.assert_array_equal(f(X, held), X * 3)
    held.append(5)
    onp.testing.assert_array_equal(f(X, held), X * 8)


def named(s: Any) -> str:
    return {int: "int", float: "float", onp.float64: "float64", onp.float32: "float32"}[type(s)]


@pytest.mark.parametrize(
    "f",
    [
        lambda s: named(s),
        lambda s: [named(v) for v in (s, s)],
        lambda s: (lambda: type(s) is int)(),
        lambda s: [type(v) is int for v in (s, 1)],
        lambda s: sorted([s, s], key=lambda v: type(v) is int) == [s, s],
        lambda s: type(s)(3.75),
        lambda s: [k := s, type(k) is int][1],
    ],
)
def test_types_of_numbers_are_asked_anywhere(f):
    g = jit(f)
    for s in (2, 2.5, 3, onp.float64(2), onp.float32(1.5), 2):
        for _ in range(2):
            assert type(g(s)) is type(f(s)) and g(s) == f(s)


def test_numbers_beside_functions_that_ask_types_are_not_refused():
    f = jit(lambda x, s: x * s if named(s) == "int" else x)
    assert [f(np.ones(2), i)[0] for i in range(80)] == list(range(80))


def test_numbers_are_copied_and_pickled():
    @dataclasses.dataclass
    class Step:
        rate: Any
        x: Any

    f = jit(lambda x, n: (copy.deepcopy([n, x])[0], copy.copy(n) * x, dataclasses.asdict(Step(n, x))["rate"] * 2))
    g = jit(lambda n: pickle.loads(pickle.dumps(n)) + 1)
    for n in (2, 3, 0.5):
        rate, product, twice = f(X, n)
        assert (rate, twice, g(n)) == (n, n * 2, n + 1) and type(g(n)) is type(n)
        onp.testing.assert_array_equal(product, onp.asarray(X) * n)


def test_writes_to_an_array_on_a_device_come_back_and_its_function_is_compiled() -> None:
    pytest.importorskip("torch", reason="the torch backend needs torch")

    @jit
    def f(x: Any) -> Any:
        x[0] = 9.0
        return x * 2

    for n in range(3):
        with Context("cpu", 0, "torch"):
            x = np.arange(4.0) + n
        onp.testing.assert_array_equal(f(x), [18.0, 2.0 + 2 * n, 4.0 + 2 * n, 6.0 + 2 * n])
        assert x[0] == 9.0
    assert f.captures == 1


def histogram(x: Any, k: Any) -> Any:
    out = np.zeros(k.shape[0])
    for i in range(len(x)):
        out[i % len(out)] += x[i]
    return out


def calls_a_closure(x: Any, k: Any) -> Any:
    step = lambda v: v * x.sum() - x
    y = x
    for _ in range(3):
        y = step(y) / 8
    return y


def remembers(x: Any, k: Any) -> Any:
    seen = {}

    def cost(i: int) -> Any:
        if i not in seen:
            seen[i] = x[i] if i == 0 else cost(i - 1) * x[i]
        return seen[i]

    return cost(3)


def collects_by_key(x: Any, k: Any) -> Any:
    groups = collections.defaultdict(list)
    for i, v in zip("abab", x):
        groups[i].append(v)
    return np.array([sum(groups["a"]), sum(groups["b"])])


def collects_many(x: Any, k: Any) -> Any:
    found: list = []
    for i in [*range(100)]:
        found.append(x[i % 4] * i)
    for i in [*range(100)]:
        found[i] = found[i] + found[99 - i]
    return np.array(found)


@pytest.mark.parametrize("transformed", [lambda f: f, lambda f: grad(lambda x, k: np.sum(f(x, k) ** 2))])
@pytest.mark.parametrize(
    "f",
    [
        histogram,
        calls_a_closure,
        remembers,
        collects_by_key,
        collects_many,
        lambda x, k: x[k[0] :],
        lambda x, k: x[-k[0] : 2 : -1] * 2,
        lambda x, k: x.reshape(2, 2).transpose(np.argsort(-k)),
        lambda x, k: np.round(x, k[0]) * x,
        lambda x, k: np.quantile(x, [0.25, 0.5], axis=k[0] - k[0]),
        lambda x, k: np.zeros(k[0]) + x[:1],
        lambda x, k: np.ones((k[1], k[0])) * x[0],
    ],
)
def test_what_keeps_nothing_outside_is_compiled(f: Callable, transformed: Callable) -> None:
    """Nothing of ours holds a stand-in after the call, and a number that decides a shape is looked at again."""
    compiled, eager = jit(transformed(f)), transformed(f)
    x = np.array([1.25, 2.5, 0.5, 3.75])
    for n, k in enumerate(([1, 2], [1, 2], [2, 1], [2, 1], [1, 2])):
        onp.testing.assert_allclose(compiled(x + n, np.array(k)), eager(x + n, np.array(k)))
    assert 1 <= compiled.captures <= 2


STREAMS = {
    "numpy.Generator": lambda: onp.random.default_rng(0),
    "numpy.RandomState": lambda: onp.random.RandomState(0),
    "minnp.Generator": lambda: np.random.default_rng(0),
}


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_each_call_draws_from_generators(make):
    draws = lambda r, x: x[0] + r.normal()
    given, held, eager = make(), make(), make()
    inside = jit(lambda x: draws(held, x))
    f = jit(draws)
    for _ in range(4):
        expected = draws(eager, X[0])
        assert float(f(given, X[0])) == float(inside(X[0])) == float(expected)


def test_each_call_draws_from_numpys_own_numbers_and_pythons():
    f = jit(lambda x: x[0] + onp.random.rand())
    g = jit(lambda r, x: x[0] + r.random())
    onp.random.seed(0)
    found = [float(f(X[0])) for _ in range(4)]
    onp.random.seed(0)
    assert found == [float(X[0, 0]) + onp.random.rand() for _ in range(4)]
    given, eager = random.Random(0), random.Random(0)
    assert [float(g(given, X[0])) for _ in range(4)] == [float(X[0, 0]) + eager.random() for _ in range(4)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: math.copysign(1, x[0]),
        lambda x: math.atan2(x[0], -1.0),
        lambda x: 1 / math.copysign(float(x[0]) + 1, x.tolist()[0]),
        lambda x: repr(x[0].item()) == "-0.0",
    ],
)
def test_numbers_that_leave_are_told_from_their_negative_zeros(f):
    g = jit(f)
    for v in (0.0, -0.0, 0.0, 1.0, -0.0):
        assert g(np.array([v])) == f(np.array([v]))


def test_what_changes_its_type_between_calls_is_captured_anew():
    class Holder:
        v: Any = None

    held = Holder()
    f, g = jit(lambda x: x * 2 if held.v else x), jit(lambda x: x * 2 if 2 in held.v else x)
    for v in ([], 0, {}, 3, (), [1], None, {5}):
        held.v = v
        onp.testing.assert_array_equal(f(X), onp.asarray(X) * (2 if v else 1))
    for v in ({2}, (2,), {3}, [2], (), {2: 1}):
        held.v = v
        onp.testing.assert_array_equal(g(X), onp.asarray(X) * (2 if 2 in v else 1))
    h = jit(lambda x: x * 2 if held.v.flags.c_contiguous else x)
    for v in (np.ones((2, 3)), np.ones((3, 2)).T, np.ones((2, 3))):
        held.v = v
        onp.testing.assert_array_equal(h(X), onp.asarray(X) * (2 if v.flags.c_contiguous else 1))


def test_what_a_default_argument_reads_is_looked_at():
    k = 2.0
    inner = lambda x: x * k
    f = jit(lambda x, base=inner: base(x))
    onp.testing.assert_array_equal(f(X), onp.asarray(X) * 2)
    k = 3.0
    onp.testing.assert_array_equal(f(X), onp.asarray(X) * 3)


@pytest.mark.parametrize("dtype", [int, onp.int8])
def test_numbers_that_integers_cannot_hold_are_refused_at_every_call(dtype):
    def f(x):
        y = np.zeros(2, dtype)
        for i in range(2):
            y[i] = x[i] * 1
        return y

    g = jit(f)
    for v in ([1.0, 2.0], [1.0, 2.5], [1.0, onp.nan], [1.0, 1e300], [1, 2], [1, 300], [1, -200], [3.0, 4.0]):
        try:
            expected = f(onp.array(v))
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)):
                g(np.array(v))
        else:
            onp.testing.assert_array_equal(g(np.array(v)), expected)


@dataclasses.dataclass(slots=True)
class OneSlot:
    n: Any = None


def test_defaults_that_are_replaced_are_seen() -> None:
    def helper(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
        return x * k + j

    compiled, itself = jit(lambda x: helper(x)), jit(helper)
    helper_of_one = jit(lambda x: one(x))
    one = lambda x, by=[2.0]: x * by[0]
    for change in (
        lambda: None,
        lambda: setattr(helper, "__defaults__", (3.0,)),
        lambda: setattr(helper, "__kwdefaults__", {"j": 2.0}),
        lambda: helper.__kwdefaults__.update(j=4.0),
        lambda: one.__defaults__[0].insert(0, 5.0),
        lambda: setattr(one, "__defaults__", (7.0 * X,)),
        lambda: setattr(one, "__defaults__", ([6.0],)),
    ):
        change()
        for _ in range(3):
            onp.testing.assert_array_equal(compiled(X), helper(X))
            onp.testing.assert_array_equal(itself(X), helper(X))
            onp.testing.assert_array_equal(helper_of_one(X), X * one.__defaults__[0][0])


def test_defaults_of_a_jitted_function_are_its_functions() -> None:
    @jit
    def f(x: Any, k: float = 2.0, *, j: float = 1.0) -> Any:
        total = 0.0
        for i in range(2):
            total = total + x[i] * k + j
        return total

    for k, j in ((2.0, 1.0), (3.0, 1.0), (3.0, 4.0)):
        f.__defaults__, f.__kwdefaults__ = (k,), {"j": j}
        for _ in range(2):
            onp.testing.assert_array_equal(f(X), X[0] * k + j + X[1] * k + j)


def test_what_two_variables_hold_may_be_two_things_later() -> None:
    class Methods:
        @staticmethod
        def one(x: Any, k: Any = (2.0,)) -> Any:
            return x * k[0]

        @classmethod
        def two(cls, x: Any, k: Any = (2.0,)) -> Any:
            return x * k[0]

    a = b = [2.0, np.ones(3)]
    c = d = types.SimpleNamespace(k=2.0)
    f = jit(lambda x: x * a[0] * b[0] * a[1] * b[1])
    g = jit(lambda x: x * c.k * d.k)
    h = jit(lambda x: Methods.one(x) * Methods.two(x))
    for change in range(4):
        if change == 1:
            b, d = [3.0, np.ones(3) * 2], types.SimpleNamespace(k=3.0)
            Methods.one.__defaults__ = ((3.0,),)
        elif change == 2:
            a, c = b, d
            Methods.two.__func__.__defaults__ = Methods.one.__defaults__
        elif change == 3:
            a, c = [4.0, np.ones(3)], types.SimpleNamespace(k=4.0)
            Methods.two.__func__.__defaults__ = ((4.0,),)
        for _ in range(3):
            onp.testing.assert_array_equal(f(X), X * a[0] * b[0] * a[1] * b[1])
            onp.testing.assert_array_equal(g(X), X * c.k * d.k)
            onp.testing.assert_array_equal(h(X), Methods.one(X) * Methods.two(X))


def test_loops_of_other_texts_are_other_loops() -> None:
    """Which the graph does not show: all have one name there."""
    way = "add"

    def f(x: Any) -> Any:
        total = 0.0
        for v in x:
            if way == "add":
                total += v
            elif way == "subtract":
                total -= v
            else:
                total += v * 7
        return total

    g = jit(f)
    for then in ("add", "add", "subtract", "subtract", "", "", "add", "subtract", "subtract"):
        way = then
        assert g(np.arange(3.0)) == f(onp.arange(3.0))


def test_a_global_that_hides_a_builtin_later_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def loop(x: Any) -> Any:
        total = 0.0
        for i in range(3):
            total += abs(x[i])
        return total

    f, g, v = jit(lambda x: abs(x) * max(2, 1)), jit(loop), np.arange(-3.0, 0.0)
    for hides in (False, True, False):
        if hides:
            monkeypatch.setitem(globals(), "abs", lambda x: x * 100)
        elif "abs" in globals():
            monkeypatch.delitem(globals(), "abs")
        for _ in range(3):
            onp.testing.assert_array_equal(f(-X), X * (-200 if hides else 2))
            assert g(v) == (-600 if hides else 6)


def slot_that_may_be_empty(s: Any) -> Callable:
    def f(x: Any) -> Any:
        s.n = s.n + 1 if hasattr(s, "n") else 1
        return x * s.n

    return f


def tries_a_slot(s: Any) -> Callable:
    def f(x: Any) -> Any:
        try:
            return x * s.n
        except AttributeError:
            return x * 10

    return f


@pytest.mark.parametrize("make", [slot_that_may_be_empty, tries_a_slot])
@pytest.mark.parametrize("kind", [OneSlot, types.SimpleNamespace])
def test_attributes_that_are_not_there_yet_are_looked_at(make: Callable, kind: type) -> None:
    own, compiled = kind(n=1), kind(n=1)
    del own.n, compiled.n
    f, g = make(own), jit(make(compiled))
    for k in range(5):
        onp.testing.assert_array_equal(g(X), f(X))
        if k == 3:
            own.n = compiled.n = 5


def test_objects_of_classes_without_a_module_are_looked_at() -> None:
    made = eval("type('Made', (), {'k': 4})", {})
    instance = made()
    f = jit(lambda x: x * instance.k + made.k)
    for k in (4, 5):
        made.k = k
        for _ in range(3):
            onp.testing.assert_array_equal(f(X), X * k + k)


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


Named = collections.namedtuple("Named", "a b")


@pytest.mark.parametrize(
    "make",
    [
        *(lambda: np.ones(3), lambda: onp.ones(3), lambda: np.array(3.0), lambda: onp.array([1, "a"], dtype=object)),
        *(lambda: [np.ones(3), 2.0], lambda: {"a": np.ones(2)}, list, dict, lambda: [[np.ones(2)], [[1]]]),
        *(lambda: Named(np.ones(2), 3), lambda: Pair(np.ones(3), 3), lambda: types.SimpleNamespace(v=3)),
        *(lambda: {1, 2}, lambda: collections.deque([1, 2]), lambda: bytearray(b"ab"), lambda: lambda x: x * X),
    ],
)
def test_what_is_outside_is_returned_itself(make: Callable) -> None:
    """At every call: whoever writes to it writes to what the variable, the attribute or the item holds."""
    free, held, items = make(), types.SimpleNamespace(v=make()), [make(), make()]
    extra, kept = make(), []
    f = jit(lambda x, extra=extra, kept=kept: (free, {"v": held.v}, x * 2, items[1], extra, kept))

    def same() -> None:
        for _ in range(3):
            a, b, c, d, e, g = f(X)
            assert a is free and b["v"] is held.v and d is items[1] and e is extra and g is kept
            onp.testing.assert_array_equal(c, X * 2)

    same()
    free, held.v = make(), make()
    same()
    items[1], held = make(), types.SimpleNamespace(v=make())
    same()
    free = np.zeros(7) if make() is not None else None
    same()


@pytest.mark.parametrize(
    "make", [lambda: {1, 2}, lambda: bytearray(b"ab"), lambda: collections.deque([1]), lambda: [1]]
)
def test_an_argument_is_returned_itself(make: Callable) -> None:
    f = jit(lambda x, given: (x * 2, {"given": given}))
    for given in (make(), make(), make()):
        assert f(X, given)[1]["given"] is given


def test_a_write_to_memory_that_is_read_outside_too_is_done_once() -> None:
    def program(f: Callable) -> list:
        shared, seen = np.arange(3.0), types.SimpleNamespace(n=0, all=[])

        def step(y: Any) -> Any:
            seen.n += 1
            seen.all.append(seen.n)
            y[0] += 1
            return y + shared

        def read_only(y: Any) -> Any:
            seen.n += 1
            y[0] += 1

        g, h, out = f(step), f(read_only), []
        for y in (shared[:], shared, np.zeros(3), shared[::-1], shared):
            out += [g(y), shared.copy(), seen.n, list(seen.all)]
        y.flags.writeable = False
        for _ in range(4):
            with pytest.raises(ValueError, match="read-only"):
                h(y)
            out.append(seen.n)
        return out

    assert repr(program(jit)) == repr(program(lambda f: f))


def test_memory_that_is_read_outside_too_is_compiled_for_where_nobody_writes() -> None:
    shared = np.arange(5.0)
    f = jit(lambda y: y[1:] - shared[:4])
    for _ in range(3):
        onp.testing.assert_array_equal(f(shared), onp.ones(4))
    assert f.captures == 1


class Coarse:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Coarse)

    def __hash__(self) -> int:
        return 1


EQUAL = [
    [decimal.Decimal("1.0"), decimal.Decimal("1.00")],
    [Coarse(1), Coarse(1.0), Coarse(2), Coarse("1"), Coarse(True)],
    [{1: 2.0}, {1.0: 2.0}, {True: 2.0}],
    [{(1,): 2.0}, {(1.0,): 2.0}],
    [[0.0] * 40, [0] * 40, [False] * 40, [-0.0] * 40],
    [
        datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2020, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    ],
]


def told(k: Any) -> str:
    return repr(vars(k)) if type(k) is Coarse else str(k)


@pytest.mark.parametrize("values", EQUAL)
def test_equal_values_that_are_told_apart_are_no_same_values(values: list) -> None:
    k = None
    argument, static, outside = (
        jit(lambda x, k: (x, told(k))),
        jit(lambda x, k: (x, told(k)), static="k"),
        jit(lambda x: (x, told(k))),
    )
    for _ in range(3):
        for k in values:
            assert argument(X, k)[1] == static(X, k)[1] == outside(X)[1] == told(k)


def test_numbers_of_numpys_have_no_length() -> None:
    asks = lambda s: (hasattr(s, "__len__"), hasattr(s, "__iter__"), isinstance(s, (collections.abc.Iterable)), s * 2)
    sized = lambda s: isinstance(s, collections.abc.Sized)
    f, g = jit(asks), jit(lambda s: [sized(v) for v in (s,)])
    for k in range(40):
        for s in (onp.float64(k), onp.float32(k), k + 0.5, k):
            assert f(s) == asks(s) and g(s) == [False]


def test_types_of_numbers_are_asked_of_attributes() -> None:
    class Kept:
        def __init__(self, s: Any) -> None:
            self.s = s

        def asks(self) -> bool:
            return type(self.s) is int

    def inline(s: Any) -> bool:
        k = Kept(s)
        return type(k.s) is int

    f, g = jit(lambda s: Kept(s).asks()), jit(inline)
    for s in (2, 2.5, 3, onp.float64(2)):
        assert f(s) == g(s) == (type(s) is int)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: type(t[0]) is int,
        lambda t: set(map(type, t)) == {int},
        lambda t: {int: 2.0, float: 3.0}.get(type(t[0])),
        lambda t: type(t[0]).__name__,
        lambda t: type(t[0]) is type(t[1]),
        lambda t: [type(v) for v in t] == [int, int],
    ],
)
def test_classes_of_numbers_in_a_tuple_are_theirs(f: Callable) -> None:
    g = jit(f)
    for t in ((1, 2), (1.0, 2), (3, 4), (3.0, 4.0), (True, 2), (3, 4)):
        assert g(t) == f(t)


@pytest.mark.parametrize("s", [2, 2.5, onp.float64(2)])
def test_arrays_of_objects_hold_numbers(s: Any) -> None:
    outside = onp.empty(3, object)

    def f(s: Any) -> Any:
        own = onp.empty(3, object)
        own[0], outside[0] = s, s * 2
        own[1], outside[1] = [s], (s, 1)
        return own, np.array([s, None], dtype=object)

    g = jit(f)
    for _ in range(4):
        own, ours = g(s)
        assert own[0] == s and ours[0] == s and outside[0] == s * 2 and outside[1] == (s, 1) and own[1] == [s]
        assert {type(v) for v in (own[0], own[1][0], ours[0], outside[0], outside[1][0])} == {type(s)}


def in_buckets(x: Any) -> Any:
    o = np.empty(2, dtype=object)
    o[0], o[1] = [], []
    for i in range(len(x)):
        o[i % 2].append(x[i] * x[i])
    return sum(o[0]) - 2 * sum(o[1])


def in_lists_of_frompyfunc(x: Any) -> Any:
    o = np.frompyfunc(lambda i: [], 1, 1)(np.arange(3))
    for i in range(len(x)):
        o[i % 3].append(x[i] * 2)
    return sum(o[0]) - sum(o[2])


def in_arrays(x: Any) -> Any:
    o = np.empty(3, dtype=object)
    for i in range(3):
        o[i] = np.zeros(2)
    for i in range(len(x)):
        o[i % 3][i % 2] += x[i]
    return o[0].sum() * 2 + o[1][0] - o[2][1]


@pytest.mark.parametrize("f", [in_buckets, in_lists_of_frompyfunc, in_arrays])
def test_what_arrays_of_objects_hold_is_written(f: Callable) -> None:
    compiled, slope = jit(f), jit(grad(f))
    for k in range(5):
        x = np.arange(5.0) + k
        assert compiled(x) == f(x) and slope(x).tolist() == grad(f)(x).tolist()


def same_object(o: Any) -> Any:
    o[1] = o[0]
    o[1][0] = 5
    return o[0] is o[1], [v is w for v, w in zip(o.tolist(), o)]


def writes_an_element(o: Any) -> Any:
    o[0][0] = 7
    return o[0]


def writes_by_a_copy(o: Any) -> Any:
    c = o.copy()
    c[1][1] = 2
    return c[::-1]


@pytest.mark.parametrize("f", [same_object, writes_an_element, writes_by_a_copy])
@pytest.mark.parametrize("element", [list, np.array])
def test_what_arrays_of_objects_that_are_arguments_hold_is_written(f: Callable, element: Callable) -> None:
    compiled = jit(f)
    for _ in range(4):
        outcomes = []
        for g in (f, compiled):
            o = np.empty(2, dtype=object)
            o[0], o[1] = element([1, 2]), element([3, 4])
            first = o[0]
            outcomes.append((str(g(o)), str(o), str(first), first is o[0]))
        assert outcomes[0] == outcomes[1]


class _Remembers:
    def __init__(self):
        self.seen = []

    def step(self, x):
        self.last = x * 2
        self.seen.append(self.last.sum())
        return self.last + 1


STORED = {}


def _stores(x):
    STORED["product"] = x * 3
    return x + 1


@pytest.mark.parametrize("near", [True, False])
def test_what_the_function_keeps_is_found_near_it_or_in_the_whole_process(monkeypatch, near):
    def searched(*objects):
        raise AssertionError("all objects were looked through")

    if near:
        monkeypatch.setattr(kept.gc, "get_referrers", searched)
        monkeypatch.setattr(kept.gc, "collect", searched)
    else:
        monkeypatch.setattr(kept, "NEAR", 0)
    holder, x, variable = _Remembers(), np.arange(3.0), None

    def binds(x):
        nonlocal variable
        variable = x * 4
        return x.sum()

    for f, held in (
        (holder.step, lambda: holder.last),
        (_stores, lambda: STORED["product"] / 3 * 2),
        (binds, lambda: variable / 2),
    ):
        g = jit(f)
        for i in range(1, 5):
            g(x * i)
            assert type(held()) is np.ndarray
            onp.testing.assert_array_equal(held(), x * i * 2)
    assert [float(s) for s in holder.seen] == [6.0 * i for i in range(1, 5)]


# ------------------------------------------------------------------ code that Python runs without a name in the code
class Setting:
    """A number outside, which only the code that is meant reads."""

    def __init__(self) -> None:
        self.scale = 1.0


def by_init(s: Setting) -> Callable:
    class Made:
        def __init__(self, x: Any) -> None:
            self.x = x * s.scale

    return lambda x: Made(x).x


def by_new(s: Setting) -> Callable:
    class Made:
        def __new__(cls) -> Any:
            made = super().__new__(cls)
            made.v = s.scale
            return made

    return lambda x: x * Made().v


def by_init_of_a_base(s: Setting) -> Callable:
    class Base:
        def __init__(self) -> None:
            self.v = s.scale

    class Made(Base):
        pass

    return lambda x: x * Made().v


def by_init_of_the_class_of_an_object(s: Setting) -> Callable:
    class Made:
        def __init__(self) -> None:
            self.v = s.scale

    made = Made()
    return lambda x: x * type(made)().v


def by_a_class_in_a_dict(s: Setting) -> Callable:
    class Made:
        def __init__(self) -> None:
            self.v = s.scale

    classes = {"made": Made}
    return lambda x: x * classes["made"]().v


def by_a_class_method(s: Setting) -> Callable:
    class Made:
        def __init__(self) -> None:
            self.v = s.scale

        @classmethod
        def make(cls) -> Any:
            return cls()

    made = Made()
    return lambda x: x * made.make().v


def by_post_init(s: Setting) -> Callable:
    @dataclasses.dataclass
    class Made:
        x: Any

        def __post_init__(self) -> None:
            self.x = self.x * s.scale

    return lambda x: Made(x).x


def by_default_factory(s: Setting) -> Callable:
    @dataclasses.dataclass
    class Made:
        v: float = dataclasses.field(default_factory=lambda: s.scale)

    return lambda x: x * Made().v


def by_replace(s: Setting) -> Callable:
    @dataclasses.dataclass
    class Made:
        v: float

        def __post_init__(self) -> None:
            self.v = self.v * s.scale

    made = Made(1.0)
    return lambda x: x * dataclasses.replace(made, v=2.0).v


def by_init_subclass(s: Setting) -> Callable:
    class Base:
        def __init_subclass__(cls) -> None:
            cls.v = s.scale

    def f(x: Any) -> Any:
        class Made(Base):
            pass

        return x * Made.v

    return f


def by_the_body_of_a_class(s: Setting) -> Callable:
    def f(x: Any) -> Any:
        class Made:
            v = s.scale

        return x * Made.v

    return f


def by_an_exception(s: Setting) -> Callable:
    class Failed(Exception):
        def __init__(self, x: Any) -> None:
            self.x = x * s.scale

    def f(x: Any) -> Any:
        try:
            raise Failed(x)
        except Failed as e:
            return e.x

    return f


def by_the_text_of_an_exception(s: Setting) -> Callable:
    class Failed(Exception):
        def __str__(self) -> str:
            return str(s.scale)

    def f(x: Any) -> Any:
        try:
            raise Failed
        except Failed as e:
            return x * float(str(e))

    return f


def by_a_formatted_object(s: Setting) -> Callable:
    class Shown:
        def __repr__(self) -> str:
            return str(s.scale)

    shown = Shown()
    return lambda x: x * float(f"{shown!r}")


def by_a_method(name: str, use: Callable) -> Callable:
    def make(s: Setting) -> Callable:
        made = type("Made", (), {name: lambda self, *args: s.scale, "__module__": __name__})()
        return lambda x: use(x, made)

    make.__name__ = name
    return make


def by_a_method_of_a_metaclass(name: str, use: Callable) -> Callable:
    def make(s: Setting) -> Callable:
        meta = type("Meta", (type,), {name: lambda cls, *args: s.scale, "__module__": __name__})
        made = meta("Made", (), {"__module__": __name__})
        return lambda x: use(x, made)

    make.__name__ = f"meta{name}"
    return make


def by_missing(s: Setting) -> Callable:
    class Table(dict):
        def __missing__(self, key: Any) -> Any:
            return s.scale

    table = Table()
    return lambda x: x * table["a"]


def by_missing_of_an_enum(s: Setting) -> Callable:
    class Kind(enum.Enum):
        A = 1.0
        B = 2.0

        @classmethod
        def _missing_(cls, value: Any) -> Any:
            return cls.A if s.scale < 2 else cls.B

    return lambda x: x * Kind(7).value


def by_a_method_of_a_number(s: Setting) -> Callable:
    class Rate(float):
        def twice(self) -> Any:
            return 2 * self * s.scale

    rate = Rate(1.0)
    return lambda x: x * rate.twice()


def by_a_method_of_an_enum(s: Setting) -> Callable:
    class Kind(enum.Enum):
        A = 1

        def scale(self) -> Any:
            return s.scale

    kind = Kind.A
    return lambda x: x * kind.scale()


def by_single_dispatch(s: Setting) -> Callable:
    class Made:
        @functools.singledispatchmethod
        def scaled(self, k: Any) -> Any:
            return k

        @scaled.register
        def _(self, k: int) -> Any:
            return k * s.scale

    made = Made()
    return lambda x: x * made.scaled(1)


def by_a_partial_method(s: Setting) -> Callable:
    class Made:
        def scaled(self, k: Any, x: Any) -> Any:
            return k * x * s.scale

        twice = functools.partialmethod(scaled, 2)

    made = Made()
    return lambda x: made.twice(x)


def by_a_method_of_super(s: Setting) -> Callable:
    class Base:
        def other(self, x: Any) -> Any:
            return x * s.scale

    class Made(Base):
        def scaled(self, x: Any) -> Any:
            return super().other(x)

    made = Made()
    return lambda x: made.scaled(x)


@pytest.mark.parametrize(
    "make",
    [
        *(by_init, by_new, by_init_of_a_base, by_init_of_the_class_of_an_object, by_a_class_in_a_dict),
        *(by_a_class_method, by_post_init, by_default_factory, by_replace, by_init_subclass, by_the_body_of_a_class),
        *(by_an_exception, by_the_text_of_an_exception, by_a_formatted_object, by_missing, by_missing_of_an_enum),
        *(by_a_method_of_a_number, by_a_method_of_an_enum, by_single_dispatch, by_a_partial_method),
        by_a_method_of_super,
        by_a_method("__call__", lambda x, m: x * m()),
        by_a_method("__rtruediv__", lambda x, m: x * (1.0 / m)),
        by_a_method("__reversed__", lambda x, m: x * reversed(m)),
        by_a_method("__trunc__", lambda x, m: x * math.trunc(m)),
        by_a_method_of_a_metaclass("__call__", lambda x, m: x * m()),
        by_a_method_of_a_metaclass("__getattr__", lambda x, m: x * m.anything),
        by_a_method_of_a_metaclass("__instancecheck__", lambda x, m: x if isinstance(3, m) else -x),
        by_a_method_of_a_metaclass("__subclasscheck__", lambda x, m: x if issubclass(int, m) else -x),
        by_a_method_of_a_metaclass("__contains__", lambda x, m: x if 3 in m else -x),
        by_a_method_of_a_metaclass("__truediv__", lambda x, m: x * (m / 2)),
    ],
    ids=lambda f: f.__name__,
)
def test_what_code_reads_that_python_calls_itself_is_looked_at(make: Callable) -> None:
    s = Setting()
    f = make(s)
    g = jit(f)
    for scale in (1.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 1.0):
        s.scale = scale
        assert g(X).tolist() == f(X).tolist()


def test_fields_that_a_dataclass_compares_or_shows_are_looked_at() -> None:
    @dataclasses.dataclass
    class Point:
        a: float
        b: float = 0.0

    here, there = Point(1.0), Point(1.0)
    for f in (
        lambda x: x if here == there else -x,
        lambda x: x if there in [here] else -x,
        lambda x: x * len(repr(there)),
        lambda x: x * dataclasses.astuple(there)[0],
    ):
        g = jit(f)
        for a in (1.0, 1.0, 200.0, 3.0, 1.0):
            there.a = a
            assert g(X).tolist() == f(X).tolist()


def instances_counted() -> Callable:
    class Counted:
        n = 0

        def __init__(self) -> None:
            Counted.n += 1
            self.id = Counted.n

    return lambda x: x * Counted().id


def instances_numbered() -> Callable:
    numbers = itertools.count(1)

    class Numbered:
        def __init__(self) -> None:
            self.id = next(numbers)

    return lambda x: x * Numbered().id


def singleton() -> Callable:
    class Single:
        made = None

        def __new__(cls) -> Any:
            if cls.made is None:
                cls.made = super().__new__(cls)
                cls.made.n = 0
            return cls.made

    def f(x: Any) -> Any:
        s = Single()
        s.n += 1
        return x * s.n

    return f


def singleton_of_a_metaclass() -> Callable:
    made: dict = {}

    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            if cls not in made:
                made[cls] = super().__call__(*args)
            return made[cls]

    class Single(metaclass=Meta):
        def __init__(self) -> None:
            self.n = 0

    def f(x: Any) -> Any:
        s = Single()
        s.n += 1
        return x * s.n

    return f


def attributes_shared() -> Callable:
    held = {"n": 0}

    class Shared:
        def __init__(self) -> None:
            self.__dict__ = held

    def f(x: Any) -> Any:
        s = Shared()
        s.n += 1
        return x * s.n

    return f


def counted_by_a_metaclass() -> Callable:
    counts: list = []

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            counts.append(1)
            return len(counts)

    class Made(metaclass=Meta):
        pass

    return lambda x: x * Made.n


def counted_by_a_partial_method() -> Callable:
    counts: list = []

    class Made:
        def scaled(self, k: Any, x: Any) -> Any:
            counts.append(1)
            return k * x * len(counts)

        twice = functools.partialmethod(scaled, 2)

    made = Made()
    return lambda x: made.twice(x)


@pytest.mark.parametrize(
    "make",
    [
        *(instances_counted, instances_numbered, singleton, singleton_of_a_metaclass, attributes_shared),
        *(counted_by_a_metaclass, counted_by_a_partial_method),
    ],
)
def test_what_code_stores_that_python_calls_itself_is_stored_at_every_call(make: Callable) -> None:
    f, g = make(), jit(make())
    for _ in range(6):
        assert g(X).tolist() == f(X).tolist()


def test_code_that_makes_objects_is_none_of_functions_that_use_them() -> None:
    numbers = itertools.count()

    class Model:
        def __init__(self) -> None:
            self.id = next(numbers)
            self.w = np.arange(3.0) + 1

        def __repr__(self) -> str:
            return f"Model {self.id}"

        def __call__(self, x: Any) -> Any:
            return x * self.w

    model = Model()
    f = jit(lambda x: model(x))
    for i in range(5):
        model.id = i
        f(X)
    assert f.captures == 1


def by_a_method_that_a_library_calls(s: Setting) -> Callable:
    class Scaled(nn.Layer):
        def forward(self, x: Any) -> Any:
            return x * s.scale

    scaled = Scaled()
    return lambda x: scaled(x)


def by_a_thread(s: Setting) -> Callable:
    class Worker(threading.Thread):
        def run(self) -> None:
            self.v = s.scale

    def f(x: Any) -> Any:
        worker = Worker()
        worker.start()
        worker.join()
        return x * worker.v

    return f


def by_vectorize(s: Setting) -> Callable:
    scaled = np.vectorize(lambda v: v * s.scale)
    return lambda x: scaled(x)


def by_vectorize_of_numpy(s: Setting) -> Callable:
    scaled = onp.vectorize(lambda v: v * s.scale)
    return lambda x: x * scaled(2.0)


def by_frompyfunc(s: Setting) -> Callable:
    scaled = onp.frompyfunc(lambda v: v * s.scale, 1, 1)
    return lambda x: x * scaled(2.0)


def by_an_element_of_a_set(s: Setting) -> Callable:
    class Scaled:
        def scaled(self) -> Any:
            return s.scale

    few = {Scaled()}
    return lambda x: x * next(iter(few)).scaled()


def by_methodcaller(s: Setting) -> Callable:
    class Scaled:
        def scaled(self) -> Any:
            return s.scale

    scaled, call = Scaled(), operator.methodcaller("scaled")
    return lambda x: x * call(scaled)


def by_an_import(s: Setting) -> Callable:
    module = types.ModuleType("of_the_test")
    module.s = s
    sys.modules["of_the_test"] = module

    def f(x: Any) -> Any:
        from of_the_test import s

        return x * s.scale

    return f


def by_an_evaluated_text(s: Setting) -> Callable:
    return lambda x: x * eval("s.scale", {"s": SETTINGS[-1]})


def by_globals(s: Setting) -> Callable:
    return lambda x: x * globals()["SETTINGS"][-1].scale


def by_attrgetter(s: Setting) -> Callable:
    scale = operator.attrgetter("scale")
    return lambda x: x * scale(s)


def by_a_cached_getter(s: Setting) -> Callable:
    get = functools.cache(lambda: SETTINGS[-1])
    get()
    return lambda x: x * get().scale


def by_a_cached_method(s: Setting) -> Callable:
    class Made:
        @functools.lru_cache  # noqa: B019
        def get(self) -> Any:
            return SETTINGS[-1]

    made = Made()
    return lambda x: x * made.get().scale


def by_a_small_cache(s: Setting) -> Callable:
    get = functools.lru_cache(maxsize=1)(lambda n: [Setting(), SETTINGS[-1]][n])
    get(1)
    return lambda x: x * get(1).scale


def by_a_cache_of_many(s: Setting) -> Callable:
    get = functools.cache(lambda n: SETTINGS[-1] if n == 0 else Setting())
    for n in range(40):
        get(n)
    return lambda x: x * get(0).scale


def by_a_weak_reference(s: Setting) -> Callable:
    to = weakref.ref(s)
    return lambda x: x * to().scale


def by_a_proxy(s: Setting) -> Callable:
    proxy = weakref.proxy(s)
    return lambda x: x * proxy.scale


def by_a_weak_dict(s: Setting) -> Callable:
    weak = weakref.WeakValueDictionary({"s": s})
    return lambda x: x * weak["s"].scale


def by_a_weak_set(s: Setting) -> Callable:
    weak = weakref.WeakSet([s])
    return lambda x: x * next(iter(weak)).scale


def by_a_default_of_a_context(s: Setting) -> Callable:
    variable = contextvars.ContextVar("variable", default=s)
    return lambda x: x * variable.get().scale


def by_a_proxy_of_a_dict(s: Setting) -> Callable:
    proxy = types.MappingProxyType({"s": s})
    return lambda x: x * proxy["s"].scale


SETTINGS: list[Setting] = []


@pytest.mark.parametrize(
    "make",
    [
        *(by_a_method_that_a_library_calls, by_a_thread, by_vectorize, by_vectorize_of_numpy, by_frompyfunc),
        *(by_an_element_of_a_set, by_methodcaller, by_attrgetter, by_an_import, by_an_evaluated_text, by_globals),
        *(by_a_cached_getter, by_a_cached_method, by_a_small_cache, by_a_cache_of_many, by_a_weak_reference),
        *(by_a_proxy, by_a_weak_dict, by_a_weak_set, by_a_default_of_a_context, by_a_proxy_of_a_dict),
    ],
)
def test_what_is_reached_through_libraries_is_looked_at(make: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    s = Setting()
    monkeypatch.setitem(globals(), "SETTINGS", [s])
    monkeypatch.setitem(sys.modules, "of_the_test", types.ModuleType("of_the_test"))
    f = make(s)
    g = jit(f)
    for scale in (1.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 1.0):
        s.scale = scale
        assert g(X).tolist() == f(X).tolist()


def test_a_cache_that_was_cleared_returns_another_object() -> None:
    for cache in (functools.cache, functools.lru_cache, functools.lru_cache(maxsize=2)):
        get = cache(lambda: Setting())
        g = jit(lambda x, get=get: x * get().scale)
        for scale in (1.0, 2.0, 2.0, 3.0, 1.0):
            get.cache_clear()
            get().scale = scale
            assert g(X).tolist() == (X * scale).tolist()
            get().scale = scale + 1
            assert g(X).tolist() == (X * (scale + 1)).tolist()


def test_the_shape_of_an_argument_with_views_is_set() -> None:
    def f(a: Any) -> Any:
        b = a.reshape(2, 3)
        a.shape = (3, 2)
        a[0] = a[-1]
        return b

    g = jit(f)
    for _ in range(3):
        ours, theirs = np.arange(6.0), onp.arange(6.0)
        assert g(ours).tolist() == f(theirs).tolist()
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "write",
    [
        lambda a, x: onp.put(a, [0, 1], x[:, 0]),
        lambda a, x: onp.putmask(a, [True, False, True], x[0]),
        lambda a, x: onp.put_along_axis(a, onp.array([0, 1]), x[:, 0], 0),
        lambda a, x: onp.add.at(a, [0, 1], x[:, 0]),
        lambda a, x: np.put(a, [0, 1], x[:, 0]),
    ],
)
def test_numpys_functions_write_elements_to_an_array_of_its_own(write: Callable) -> None:
    ours, theirs = onp.zeros(3), onp.zeros(3)
    f = jit(lambda x: write(ours, x) or x * 2)
    for k in (1.0, 2.0, 3.0, 4.0, 5.0):
        assert f(X * k).tolist() == (X * k * 2).tolist()
        write(theirs, X * k)
        assert ours.tolist() == theirs.tolist()


class Point(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double),)


def test_fields_of_a_structure_of_c_among_the_arguments_are_read_at_each_call() -> None:
    point, f = Point(1.0), jit(lambda x, s: x * s.a)
    for a in (1.0, 1.0, 5.0, 5.0, 1.0):
        point.a = a
        assert f(X, point).tolist() == (X * a).tolist()


class Making(dict):
    def __missing__(self, key: str) -> float:
        self[key] = 0.0
        return 0.0


@pytest.mark.parametrize("made", [Making, functools.partial(collections.defaultdict, float)])
def test_a_dict_that_makes_items_is_asked_for_none(made: Callable) -> None:
    held = made(a=1.0)
    f = jit(lambda x: x * held["q"] + len(held))
    assert [f(X).tolist(), f(X).tolist()] == [(X * 0 + 2).tolist()] * 2
    held.clear()
    assert f(X).tolist() == (X * 0 + 1).tolist()
    assert dict(held) == {"q": 0.0}
    held.clear()
    held["q"] = 3.0
    assert f(X).tolist() == (X * 3 + 1).tolist()
    assert dict(held) == {"q": 3.0}


@pytest.mark.parametrize("ones", [onp.ones, np.ones])
def test_whether_an_array_outside_may_be_written_is_asked_at_each_call(ones: Callable) -> None:
    held = types.SimpleNamespace(a=ones(3))
    f = jit(lambda x: x if held.a.flags.writeable else x * 2)
    for a in (held.a, ones(3)):
        held.a = a
        for writeable in (True, True, False, False, True):
            a.flags.writeable = writeable
            assert f(X).tolist() == (X if writeable else X * 2).tolist()


def test_a_cache_of_arrays_that_was_cleared_returns_others() -> None:
    for cache in (functools.cache, functools.lru_cache):
        weights = np.ones(3)
        get = cache(lambda weights=weights: weights * 2)
        g = jit(lambda x, get=get: get() + x)
        for k in (1.0, 1.0, 5.0, 5.0, 7.0):
            weights[:] = k
            get.cache_clear()
            for _ in range(3):
                assert g(X).tolist() == (X + 2 * k).tolist()
        get()[0] = 77.0
        assert g(X).tolist() == (X + get()).tolist()


def test_caches_of_numbers_and_arrays_are_compiled() -> None:
    number, table = functools.cache(lambda n: 2.0 * n), functools.lru_cache(lambda n: np.arange(3.0) * n)
    for n in range(100):
        number(n), table(n)
    f = jit(lambda x: x * number(1) + table(2))
    for _ in range(4):
        f(X)
    assert f.captures == 1


def set_in_a_context() -> tuple:
    v = contextvars.ContextVar("v", default=1.0)
    return v.set, lambda x: x * v.get()


def in_a_user_dict() -> tuple:
    d = collections.UserDict(n=1.0)
    return functools.partial(operator.setitem, d, "n"), lambda x: x * d["n"]


def in_the_data_of_a_user_dict() -> tuple:
    d = collections.UserDict(n=1.0)
    return lambda v: setattr(d, "data", {"n": v}), lambda x: x * d["n"]


def in_a_user_list() -> tuple:
    values = collections.UserList([1.0])
    return functools.partial(operator.setitem, values, 0), lambda x: x * values[0]


def in_a_chain() -> tuple:
    d = {"n": 1.0}
    chain = collections.ChainMap({}, d)
    return functools.partial(operator.setitem, d, "n"), lambda x: x * chain["n"]


def in_an_array_of_pythons() -> tuple:
    values = array.array("d", [math.nan, 1.0])
    return functools.partial(operator.setitem, values, 1), lambda x: x * values[1]


def in_bytes() -> tuple:
    values = bytearray(1)
    return lambda v: operator.setitem(values, 0, int(v)), lambda x: x * values[0]


def in_memory_of_bytes() -> tuple:
    values = bytearray(1)
    view = memoryview(values)
    return lambda v: operator.setitem(values, 0, int(v)), lambda x: x * view[0]


def in_a_polynomial() -> tuple:
    held = types.SimpleNamespace(p=np.polynomial.Polynomial([1.0, 2.0]))

    def change(v: float) -> None:
        held.p = held.p.copy()
        held.p.coef[0] = v

    return change, lambda x: held.p(x)


def in_a_poly1d() -> tuple:
    held = types.SimpleNamespace(p=np.poly1d([1.0, 2.0]))
    return lambda v: setattr(held, "p", np.poly1d([v, 2.0])), lambda x: held.p(x)


def in_a_recarray() -> tuple:
    held = types.SimpleNamespace(r=onp.zeros(3, [("t", "f8")]).view(onp.recarray))

    def change(v: float) -> None:
        held.r = held.r.copy()
        held.r["t"][0] = v

    return change, lambda x: x * held.r.t


@pytest.mark.parametrize(
    "make",
    [
        *(set_in_a_context, in_a_user_dict, in_the_data_of_a_user_dict, in_a_user_list, in_a_chain),
        *(in_an_array_of_pythons, in_bytes, in_memory_of_bytes, in_a_polynomial, in_a_poly1d, in_a_recarray),
    ],
)
def test_values_that_objects_of_libraries_hold_are_looked_at(make: Callable) -> None:
    change, f = make()
    g = jit(f)
    for v in (1.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 1.0):
        change(v)
        assert g(X).tolist() == f(X).tolist()


def counts_in_a_cached_object() -> Callable:
    get = functools.cache(lambda: types.SimpleNamespace(n=0))

    def f(x: Any) -> Any:
        get().n += 1
        return x * get().n

    return f


def counts_by_a_weak_reference() -> Callable:
    s = Setting()
    to = weakref.ref(s)

    def f(x: Any) -> Any:
        to().scale += 1
        return x * to().scale

    f.keeps = s
    return f


def counts_in_a_context() -> Callable:
    v = contextvars.ContextVar("v", default=0)

    def f(x: Any) -> Any:
        v.set(v.get() + 1)
        return x * v.get()

    return f


def counts_in(held: Any, key: Any) -> Callable:
    def make() -> Callable:
        own = copy.copy(held)

        def f(x: Any) -> Any:
            own[key] += 1
            return x * own[key]

        return f

    make.__name__ = type(held).__name__
    return make


@pytest.mark.parametrize(
    "make",
    [
        *(counts_in_a_cached_object, counts_by_a_weak_reference, counts_in_a_context),
        counts_in(collections.UserDict(n=0), "n"),
        counts_in(collections.UserList([0]), 0),
        counts_in(bytearray(1), 0),
        counts_in(array.array("i", [0]), 0),
    ],
    ids=lambda f: f.__name__,
)
def test_what_objects_of_libraries_hold_is_stored_at_every_call(make: Callable) -> None:
    f, g = make(), jit(make())
    for _ in range(6):
        assert g(X).tolist() == f(X).tolist()


def test_the_report_says_what_is_not_known_from_the_code() -> None:
    minnp.reset_report()
    s = Setting()
    SETTINGS.append(s)
    jit(by_an_evaluated_text(s))(X)
    SETTINGS.pop()
    assert "what eval() leads to is not known" in str(report())


def a_table() -> tuple[Any, Any, Any]:
    table = pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0, 3.0]})
    return table, lambda t, x: x * t["a"].mean() + t["a"].values.sum(), lambda t: t.__setitem__("a", [3.0, 4.0, 8.0])


def a_model() -> tuple[Any, Any, Any]:
    model = pytest.importorskip("sklearn.linear_model").LinearRegression().fit(onp.eye(3), [1.0, 2.0, 4.0])
    return model, lambda m, x: x * m.intercept_ + m.coef_[1], lambda m: m.fit(onp.eye(3), [3.0, 5.0, 0.0])


def what_a_model_predicts() -> tuple[Any, Any, Any]:
    model, _, change = a_model()
    return model, lambda m, x: x * m.predict(onp.eye(3)), change


def a_tensor() -> tuple[Any, Any, Any]:
    tensor = pytest.importorskip("torch").arange(3.0)
    return tensor, lambda t, x: x * t.sum().item() + float(t[1]), lambda t: t.mul_(3)


def a_spline() -> tuple[Any, Any, Any]:
    spline = pytest.importorskip("scipy.interpolate").CubicSpline(onp.arange(4.0), onp.arange(4.0) ** 2)
    return spline, lambda s, x: x * s(1.5), lambda s: operator.imul(s.c, 2)


def a_template() -> tuple[Any, Any, Any]:
    return string.Template("ab"), lambda t, x: x * len(t.template), lambda t: setattr(t, "template", "abc")


def a_partial() -> tuple[Any, Any, Any]:
    made = functools.partial(lambda a=1.0, b=2.0: a * b, a=3.0)
    return made, lambda p, x: x * p(), lambda p: p.keywords.update(b=7.0)


def an_array_of_ctypes() -> tuple[Any, Any, Any]:
    return (ctypes.c_double * 2)(1, 2), lambda a, x: x * a[1], lambda a: operator.setitem(a, 1, 9.0)


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize(
    "make", [a_table, a_model, what_a_model_predicts, a_tensor, a_spline, a_template, a_partial, an_array_of_ctypes]
)
def test_what_objects_of_libraries_hold_is_what_they_hold_now(make: Callable, outside: bool) -> None:
    thing, read, change = make()
    f = jit((lambda x: read(thing, x)) if outside else read)
    given = (X,) if outside else (thing, X)
    for _ in range(4):
        expected = read(thing, onp.asarray(X))
        onp.testing.assert_allclose(f(*given), expected, rtol=1e-15)
        onp.testing.assert_allclose(f(*given), expected, rtol=1e-15)
        change(thing)
    if outside:
        thing, *_ = make()
        onp.testing.assert_allclose(f(X), read(thing, onp.asarray(X)), rtol=1e-15)


@pytest.mark.parametrize("kind", [TypeError, Exception, None])
def test_what_refuses_an_array_that_is_captured_is_not_caught_by_the_program(kind: Any) -> None:
    def mean(x: np.ndarray) -> float:
        if kind is None:
            with contextlib.suppress(TypeError):
                return statistics.mean(x)
            return -1.0
        try:
            return statistics.mean(x)
        except kind:
            return -1.0

    f = jit(mean)
    assert [f(X[0] + k) for k in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_errors_that_the_program_expects_are_caught_in_compiled_code() -> None:
    def f(x: np.ndarray) -> np.ndarray:
        try:
            return x @ np.ones(7)
        except ValueError:
            return x * 2

    g = jit(f)
    for _ in range(4):
        assert g(X).tolist() == f(X).tolist()
    assert g.cache_info()["captures"] == 1


class Holder:
    pass


def read_from(place: str, array: Any) -> Callable:
    """A function that returns an array outside, held in a place."""
    if place == "object":
        held = Holder()
        held.array = array
        return lambda: held.array
    if place == "default":
        return lambda array=array: array
    container = {"list": [array], "tuple": (array,), "dict": {"w": array}}.get(place)
    key = "w" if place == "dict" else 0
    if place == "values":
        container = {"w": array}
        return lambda: next(iter(container.values()))
    return (lambda: array) if container is None else (lambda: container["w"] if key == "w" else container[0])


@pytest.mark.parametrize("place", ["list", "tuple", "dict", "object", "default", "variable", "values"])
@pytest.mark.parametrize(
    "read",
    [
        copy.deepcopy,
        lambda a: a.__deepcopy__({}),
        lambda a: onp.asarray(pickle.loads(pickle.dumps(a))),
        lambda a: float(str(a).split()[0].strip("[]")),
        lambda a: float(f"{a}".split()[0].strip("[]")),
        lambda a: float(("%s" % a).split()[0].strip("[]")),  # noqa: UP031
        lambda a: memoryview(a)[0],
        lambda a: next(onp.nditer(a)) * 1.0,
        lambda a: onp.array(a),
        lambda a: a.data[0],
        lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0],
    ],
)
def test_elements_that_no_graph_reads_are_looked_at_wherever_the_array_is(read: Callable, place: str) -> None:
    array = np.array([1.0, 2.0, 3.0])
    get = read_from(place, array)
    f = jit(lambda x: read(get()) * x)
    for k in (1.0, 1.0, 50.0):
        array[0] = k
        onp.testing.assert_array_equal(f(np.ones(3)), read(onp.asarray(array)) * onp.ones(3))


def test_batches_of_an_iterator_of_ours_go_on() -> None:
    batches = lambda: nn.io.NDArrayIter(onp.arange(12.0).reshape(6, 2), onp.arange(6), batch_size=2)
    outside, given = batches(), batches()
    f, g = jit(lambda x: x * np.sum(next(outside).data[0])), jit(lambda x, it: x * np.sum(next(it).data[0]))
    for expected in (6.0, 22.0, 38.0):
        assert f(X).tolist() == g(X, given).tolist() == (X * expected).tolist()


def test_a_scale_of_the_loss_counts_steps() -> None:
    ours, theirs = nn.LossScale(), nn.LossScale()
    step = lambda s, x: (s.update({"w": x}), x * s.value, s.good)
    f = jit(lambda x: step(ours, x))
    for x in (1.0, 1.0, onp.inf, 1.0, 1.0, 1.0):
        a, b = f(np.ones(2) * x), step(theirs, np.ones(2) * x)
        assert (a[0], a[1].tolist(), a[2]) == (b[0], b[1].tolist(), b[2])


@pytest.mark.parametrize(
    "make, read",
    [
        (lambda: io.StringIO("1\n2\n3\n4\n"), lambda s: float(s.readline())),
        (lambda: csv.reader(io.StringIO("1\n2\n3\n4\n")), lambda s: float(next(s)[0])),
        (lambda: struct.iter_unpack("b", b"\1\2\3\4"), lambda s: float(next(s)[0])),
        (lambda: threading.Semaphore(2), lambda s: 2.0 if s.acquire(blocking=False) else 1.0),
        (lambda: threading.Event(), lambda s: (s.is_set(), s.set())[0] * 2.0),
    ],
)
def test_what_gives_something_else_at_each_use_does_so_outside_of_the_function(make: Callable, read: Callable) -> None:
    ours, theirs = make(), make()
    f = jit(lambda x: x * read(ours))
    for _ in range(4):
        assert f(X).tolist() == (X * read(theirs)).tolist()


@pytest.mark.parametrize(
    "write, load", [("tofile", onp.fromfile), ("dump", functools.partial(onp.load, allow_pickle=True))]
)
def test_each_call_writes_its_file(write: str, load: Callable, tmp_path: Path) -> None:
    f = jit(lambda x: getattr(x, write)(str(tmp_path / "x")) or x * 2)
    for k in range(4):
        f(np.ones(3) * k)
        assert load(tmp_path / "x").tolist() == [k] * 3


def with_default(o: Any, x: np.ndarray) -> np.ndarray:
    return x * getattr(o, "appeared", 1.0)


def with_handler(o: Any, x: np.ndarray) -> np.ndarray:
    try:
        return x * o.appeared
    except AttributeError:
        return x


@pytest.mark.parametrize("read", [with_default, with_handler, lambda o, x: x * 8 if hasattr(o, "appeared") else x])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("outside", [True, False])
def test_an_attribute_that_appears_in_a_class(read: Callable, which: int, outside: bool) -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    o = Derived()
    f = jit((lambda x: read(o, x)) if outside else read)
    given = (X,) if outside else (o, X)
    assert f(*given).tolist() == f(*given).tolist() == X.tolist()
    changed = (Derived, Base)[which]
    changed.appeared = 8.0
    assert f(*given).tolist() == (X * 8).tolist()
    del changed.appeared
    assert f(*given).tolist() == X.tolist()


def test_a_database_gets_numbers() -> None:
    def ask(x: Any) -> tuple:
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            return base.execute("select ?, ?", (x[1], x.sum())).fetchone()

    f = jit(ask)
    for k in (0.0, 0.0, 1.0):
        assert f(np.array([1.0, 2.0]) + k) == ask(onp.array([1.0, 2.0]) + k) == (2.0 + k, 3.0 + 2 * k)


def test_the_array_interface_is_numpys() -> None:
    assert jit(lambda x: x.__array_interface__["typestr"])(X) == onp.asarray(X).__array_interface__["typestr"]


def test_a_memoryview_among_the_arguments() -> None:
    held = bytearray(b"\x01\x02")
    f = jit(lambda x, s: x * s[0])
    for k in (1, 1, 5):
        held[0] = k
        assert f(X, memoryview(held)).tolist() == (X * k).tolist()


class Solid(Setting):
    pass


def test_an_object_whose_class_the_function_changes() -> None:
    def f(s: Setting, x: np.ndarray) -> np.ndarray:
        known = type(s) is Setting
        s.__class__ = Solid if known else Setting
        return x * 2 if known else x * 3

    s, other = Setting(), Setting()
    g = jit(f)
    for _ in range(5):
        assert g(s, X).tolist() == f(other, X).tolist()
        assert type(s) is type(other)


def test_a_weak_reference_that_is_looked_at_is_weak() -> None:
    s = Setting()
    to = weakref.ref(s)
    f = jit(lambda x: -x if to() is None else x * to().scale)
    for scale in (1.0, 2.0):
        s.scale = scale
        for _ in range(3):
            assert f(X).tolist() == (X * scale).tolist()
    del s
    assert to() is None and f(X).tolist() == (-X).tolist()


def test_methods_named_as_functions_that_evaluate_text_are_compiled() -> None:
    class Model:
        def eval(self) -> Any:
            return self

        def __call__(self, x: Any) -> Any:
            return x * 2

    model = Model()
    f = jit(lambda x: model.eval()(x))
    for _ in range(3):
        f(X)
    assert f.captures == 1


FIRST, SECOND = np.ones(3), np.arange(3.0)
CHOICE = {"first": FIRST, "second": SECOND}
use, key, number = True, "first", 1


def _chosen_by_condition(x: Any) -> Any:
    return x * (FIRST if use else SECOND)


def _chosen_by_key(x: Any) -> Any:
    return x + np.sum(CHOICE[key])


def _chosen_in_a_loop(x: Any) -> Any:
    w, s = CHOICE[key], 0.0
    for i in range(3):
        s += x[i] * w[i]
    return s


@pytest.mark.parametrize("f", [_chosen_by_condition, _chosen_by_key, _chosen_in_a_loop])
@pytest.mark.parametrize("transform", [jit, lambda f: jit(grad(lambda x: f(x).sum()))])
def test_paths_that_read_other_arrays_outside_are_other_paths(f, transform, monkeypatch) -> None:
    compiled = transform(f)
    plain = f if transform is jit else grad(lambda x: f(x).sum())
    for first in (True, False, True, False):
        monkeypatch.setitem(globals(), "use", first)
        monkeypatch.setitem(globals(), "key", "first" if first else "second")
        for _ in range(3):
            onp.testing.assert_allclose(compiled(X[1]), plain(X[1]), rtol=1e-14)


@pytest.mark.parametrize("values", [(1, 1.0), (1.0, True), (1, 1 + 0j), (0.0, -0.0), (onp.uint8(200), 200)])
def test_equal_numbers_outside_of_which_arrays_are_made_are_told_apart(values: tuple, monkeypatch: Any) -> None:
    functions = (lambda: np.full(2, number), lambda: np.array([number, number]), lambda: np.asarray(number) * 2)
    for f in functions:
        compiled = jit(lambda x, f=f: (x, f()))
        for value in (*values, *values):
            monkeypatch.setitem(globals(), "number", value)
            for _ in range(3):
                got, want = compiled(X)[1], f()
                assert (got.dtype, onp.asarray(got).tobytes()) == (want.dtype, onp.asarray(want).tobytes())


def in_its_items() -> Any:
    class Config(dict):
        __getattr__ = dict.__getitem__

    return Config(k=1.0)


def in_its_items_by_a_method() -> Any:
    class Config(dict):
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            return self[name]

    return Config(k=1.0)


def in_itself() -> Any:
    class Config(dict):
        def __init__(self, **items: Any) -> None:
            super().__init__(**items)
            self.__dict__ = self

    return Config(k=1.0)


@pytest.mark.parametrize("make", [in_its_items, in_its_items_by_a_method, in_itself])
def test_dicts_whose_items_are_attributes_are_followed_outside(make: Callable) -> None:
    c = make()
    f = jit(lambda x: x * c.k)
    for k in (1.0, 1.0, 2.0, 3.0, 1.0, 4.0):
        c["k"] = k
        assert f(X).tolist() == (X * k).tolist()


class HasScale:
    k = 2.0

    def by(self, x: Any) -> Any:
        return x * self.k

    def go(self, x: Any) -> Any:
        return x * 2.0


def hides(case: str) -> tuple:
    """(a function, the class of which an attribute is set, its name, and what it is set to)"""

    class Base(HasScale):
        pass

    class Between(Base):
        def go(self, x: Any) -> Any:
            return super().go(x) + 1.0

    class Held(Between):
        pass

    held = types.SimpleNamespace(o=Held())
    go = lambda self, x: x * 3.0
    return {
        "attribute": (lambda x: x * held.o.k, Held, "k", 4.0),
        "of a class": (lambda x: x * Held.k, Held, "k", 4.0),
        "between": (lambda x: x * held.o.k, Base, "k", 4.0),
        "in a method": (lambda x: held.o.by(x), Between, "k", 4.0),
        "of what is made": (lambda x: Held().by(x), Held, "k", 4.0),
        "array": (lambda x: x * held.o.k, Held, "k", onp.ones(3)),
        "method": (lambda x: held.o.go(x), Held, "go", go),
        "super": (lambda x: held.o.go(x), Base, "go", go),
    }[case]


@pytest.mark.parametrize(
    "case", ["attribute", "of a class", "between", "in a method", "of what is made", "array", "method", "super"]
)
def test_attributes_of_classes_that_hide_inherited_ones_are_seen(case: str) -> None:
    f, c, name, value = hides(case)
    g = jit(f)
    for _ in range(2):
        for _ in range(3):
            assert g(X).tolist() == f(X).tolist()
        setattr(c, name, value)
        for _ in range(3):
            assert g(X).tolist() == f(X).tolist()
        delattr(c, name)


def test_other_attributes_of_a_class_capture_nothing_anew() -> None:
    class Held(HasScale):
        pass

    held = Held()
    f = jit(lambda x: held.by(x))
    for i in range(6):
        setattr(Held, f"other{i}", i)
        f(X)
    assert f.captures == 1


@pytest.mark.parametrize(
    "wrap, by_object",
    [(classmethod, False), (classmethod, True), (functools.cached_property, True), (functools.partialmethod, True)],
)
def test_members_of_classes_that_are_replaced_are_seen(wrap: Callable, by_object: bool) -> None:
    def made(k: float) -> Any:
        if wrap is classmethod:
            return classmethod(lambda c, x: x * k)
        if wrap is functools.partialmethod:
            return functools.partialmethod(lambda self, a, x: x * a, k)
        return functools.cached_property(lambda self: lambda x: x * k)

    class Held:
        pass

    def put(k: float) -> None:
        Held.m = made(k)
        if wrap is functools.cached_property:
            Held.m.__set_name__(Held, "m")

    put(1.0)
    f = (lambda x: Held().m(x)) if by_object else (lambda x: Held.m(x))
    g = jit(f)
    for k in (1.0, 1.0, 2.0, 3.0, 1.0):
        put(k)
        assert g(X).tolist() == f(X).tolist()


class Items(dict):
    pass


class ItemsAreAttributes(dict):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self


@dataclasses.dataclass
class Derived:
    a: float

    def __post_init__(self) -> None:
        self.k = 2 * self.a


def given(case: str) -> tuple:
    """(an argument, what is done to it before each call, with a number, the function)"""
    by_attribute = lambda x, o: x * o.k
    by_item = lambda x, o: x * o[0]
    sets = lambda o, v: setattr(o, "k", v)
    puts = lambda o, v: operator.setitem(o, 0, v)
    kept, member, key, read = {"k": 1.0}, Setting(), Setting(), Setting()
    variable, text = contextvars.ContextVar("v", default=1.0), io.StringIO()
    event, queued = threading.Event(), queue.Queue()

    def derived() -> Any:
        d = Derived(1.0)
        d.k = 1.0
        return d

    def items() -> Any:
        d = Items(a=1.0)
        d.k = 1.0
        return d

    def puts_an_array(o: Any, v: float) -> None:
        o[0] = np.full(3, v)

    def grows(o: Any, v: float) -> None:
        o.append(v)

    def switches(o: Any, v: float) -> None:
        o.set() if v > 2 else o.clear()

    return {
        "items are attributes": (ItemsAreAttributes(k=1.0), sets, by_attribute),
        "attribute of a dict": (items(), sets, by_attribute),
        "attribute of a dataclass": (derived(), sets, by_attribute),
        "default_factory": (
            collections.defaultdict(lambda: 1.0),
            lambda o, v: (o.clear(), setattr(o, "default_factory", lambda: v)),
            by_item,
        ),
        "deque": (collections.deque([1.0]), puts, by_item),
        "deque in a tuple": ((collections.deque([1.0]),), lambda o, v: puts(o[0], v), lambda x, o: x * o[0][0]),
        "deque of arrays": (collections.deque([np.ones(3)]), puts_an_array, by_item),
        "length of a deque": (collections.deque(), grows, lambda x, o: x * len(o)),
        "deque that is looped over": (collections.deque([1.0]), grows, lambda x, o: sum([x * v for v in o])),
        "array.array": (array.array("d", [1.0]), puts, by_item),
        "mapping proxy": (types.MappingProxyType(kept), lambda o, v: kept.update(k=v), lambda x, o: x * o["k"]),
        "new keys of a proxy": (
            types.MappingProxyType(kept),
            lambda o, v: kept.update({v: v}),
            lambda x, o: x * len(o),
        ),
        "view of a dict": (kept.values(), lambda o, v: kept.update(k=v), lambda x, o: x * sum(o)),
        "queue": (queued, lambda o, v: o.put(v), lambda x, o: x * o.qsize()),
        "text": (text, lambda o, v: o.write("ab"), lambda x, o: x * len(o.getvalue())),
        "event": (event, switches, lambda x, o: x * 2 if o.is_set() else x),
        "weak reference": (weakref.ref(read), lambda o, v: setattr(read, "scale", v), lambda x, o: x * o().scale),
        "variable of a context": (variable, lambda o, v: o.set(v), lambda x, o: x * o.get()),
        "objects in a set": (
            {member},
            lambda o, v: setattr(member, "scale", v),
            lambda x, o: x * sum([m.scale for m in o]),
        ),
        "objects that are keys": (
            {key: 1.0},
            lambda o, v: setattr(key, "scale", v),
            lambda x, o: x * sum([m.scale for m in o]),
        ),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        *("items are attributes", "attribute of a dict", "attribute of a dataclass", "default_factory", "deque"),
        *("deque in a tuple", "deque of arrays", "length of a deque", "deque that is looped over", "array.array"),
        *("mapping proxy", "new keys of a proxy", "view of a dict", "queue", "text", "event", "weak reference"),
        *("variable of a context", "objects in a set", "objects that are keys"),
    ],
)
def test_what_becomes_of_the_contents_of_arguments_is_seen(case: str) -> None:
    o, change, f = given(case)
    g = jit(f)
    for v in (1.0, 1.0, 2.0, 3.0, 3.0, 1.0, 4.0):
        change(o, v)
        assert g(X, o).tolist() == f(X, o).tolist()


def count_generated() -> Any:
    k = 0.0
    while True:
        k += 1.0
        yield k


@pytest.mark.parametrize(
    "make",
    [
        *(count_generated, itertools.count, lambda: iter([1.0, 2.0, 3.0, 4.0]), lambda: map(float, range(5))),
        lambda: (v for _, v in enumerate([1.0, 2.0, 3.0, 4.0])),
        lambda: zip(range(5)),
    ],
)
def test_iterators_among_the_arguments_are_taken_from_at_every_call(make: Callable) -> None:
    minnp.reset_report()
    f = lambda x, it: (x * np.asarray(next(it))).tolist()
    g, taken, wanted = jit(f), make(), make()
    for _ in range(4):
        assert g(X, taken) == f(X, wanted)
    assert "is among its arguments" in str(report())


@pytest.mark.parametrize("make", [lambda: Items(a=1.0), lambda: ItemsAreAttributes(k=1.0), lambda: Derived(1.0)])
def test_attributes_of_arguments_that_a_function_sets_are_set(make: Callable) -> None:
    def f(x: Any, o: Any) -> Any:
        o.k = getattr(o, "k", 0.0) + 1.0
        return x * o.k

    g, a, b = jit(f), make(), make()
    for _ in range(5):
        assert g(X, a).tolist() == f(X, b).tolist() and a.k == b.k and vars(a) == vars(b)


def test_attributes_of_dataclasses_that_are_no_fields_are_those_of_each() -> None:
    f = jit(lambda x, o: x * o.k)
    for a in (1.0, 2.0, 3.0, 1.0):
        assert f(X, Derived(a)).tolist() == (X * 2 * a).tolist()


def test_classes_of_arguments_are_looked_at() -> None:
    held = types.SimpleNamespace(scale=2.0)

    @dataclasses.dataclass
    class Scaled:
        a: float
        b = 1.0

        def by(self, x: Any) -> Any:
            return x * self.a * held.scale * self.b

    f = jit(lambda x, o: o.by(x))
    o = Scaled(3.0)
    for scale, b in ((2.0, 1.0), (2.0, 1.0), (5.0, 1.0), (5.0, 2.0), (1.0, 2.0)):
        held.scale, Scaled.b = scale, b
        assert f(X, o).tolist() == (X * 3.0 * scale * b).tolist()


@pytest.mark.parametrize(
    "o, f",
    [
        (collections.deque([2.0]), lambda x, o: x * o[0]),
        ((..., 0), lambda x, o: x[o] * 2.0),
        (slice(0, 1), lambda x, o: x[o] * 2.0),
        (logging.getLogger("minnp.test"), lambda x, o: x * 2.0 if o.isEnabledFor(50) else x),
        (decimal.Decimal(2), lambda x, o: x * float(o)),
        (object(), lambda x, o: x * 2.0),
        (math.sqrt, lambda x, o: x * o(4.0)),
    ],
)
def test_functions_with_arguments_that_are_followed_are_compiled(o: Any, f: Callable) -> None:
    g = jit(f)
    for _ in range(4):
        assert g(X, o).tolist() == f(X, o).tolist()
    assert g.captures == 1


@pytest.mark.parametrize("of", [dict, collections.OrderedDict, Items])
@pytest.mark.parametrize("many", [2, 40])
@pytest.mark.parametrize(
    "read",
    [
        lambda d: list(d.values())[1],
        lambda d: next(iter(d.values())),
        lambda d: sum([i * k for i, k in enumerate(d)]),
        lambda d: (lambda a, *b: a)(*d) + 1.0,
        lambda d: list(d.items())[-1][1],
    ],
)
def test_the_order_of_dicts_is_seen(of: Callable, many: int, read: Callable) -> None:
    held = types.SimpleNamespace(d=of({float(i): i + 1.0 for i in range(many)}))
    f = lambda x: x * read(held.d)
    g = jit(f)
    for key in (None, None, 0.0, 1.0, 1.0, 0.0):
        if key is not None:
            held.d[key] = held.d.pop(key)
        assert g(X).tolist() == f(X).tolist()


def test_the_order_of_a_cache_is_changed_at_every_call() -> None:
    def make() -> tuple:
        kept = collections.OrderedDict(a=1.0, b=2.0, c=3.0)
        held = types.SimpleNamespace(k="a")

        def f(x: Any) -> Any:
            kept.move_to_end(held.k)
            return x * kept[held.k]

        return f, held, kept

    (f, held, kept), (g, other, wanted) = make(), make()
    g = jit(g)
    for k in "aabbacabccba":
        held.k = other.k = k
        assert g(X).tolist() == f(X).tolist() and list(kept) == list(wanted)


def test_the_order_of_dicts_whose_items_are_named_captures_nothing_anew() -> None:
    d = {"a": 1.0, "b": 2.0}
    f = jit(lambda x: x * d["a"] + d["b"])
    f(X)
    d["a"] = d.pop("a")
    assert f(X).tolist() == (X + 2.0).tolist() and f.captures == 1


def in_the_environment(read: Callable) -> Callable:
    def make(monkeypatch: Any) -> tuple:
        def change(v: float) -> None:
            if v == 3.0:
                monkeypatch.delenv("MINNP_TEST", raising=False)
            else:
                monkeypatch.setenv("MINNP_TEST", str(v))

        return change, lambda x: x * float(read())

    return make


def in_the_arguments_of_the_program(monkeypatch: Any) -> tuple:
    monkeypatch.setattr(sys, "argv", ["a", "1"])
    return lambda v: operator.setitem(sys.argv, 1, str(v)), lambda x: x * float(sys.argv[1])


def in_how_many_arguments_the_program_has(monkeypatch: Any) -> tuple:
    monkeypatch.setattr(sys, "argv", ["a", "1"])
    return lambda v: sys.argv.append(str(v)), lambda x: x * len(sys.argv)


def in_other_arguments_of_the_program(monkeypatch: Any) -> tuple:
    return lambda v: monkeypatch.setattr(sys, "argv", [str(v)]), lambda x: x * float(sys.argv[0])


def in_a_module_of_pythons(monkeypatch: Any) -> tuple:
    return lambda v: monkeypatch.setattr(string, "own", v, raising=False), lambda x: x * string.own


def in_an_object_in_a_module_of_pythons(monkeypatch: Any) -> tuple:
    s = Setting()
    monkeypatch.setattr(string, "own", s, raising=False)
    return lambda v: setattr(s, "scale", v), lambda x: x * string.own.scale


def in_a_submodule_of_pythons(monkeypatch: Any) -> tuple:
    return lambda v: monkeypatch.setattr(os.path, "own", v, raising=False), lambda x: x * os.path.own


def in_a_module_that_is_imported_inside(monkeypatch: Any) -> tuple:
    def f(x: Any) -> Any:
        import string

        return x * string.own

    return lambda v: monkeypatch.setattr(string, "own", v, raising=False), f


def in_a_level(read: Callable) -> Callable:
    def make(monkeypatch: Any) -> tuple:
        above = logging.getLogger("minnp.test")
        log = logging.getLogger("minnp.test.below")
        monkeypatch.setattr(above, "level", 0)
        return lambda v: above.setLevel(10 * int(v)), lambda x: x * read(log, above)

    return make


def in_keywords(monkeypatch: Any) -> tuple:
    p = functools.partial(lambda x, k: x * k, k=1.0)
    return lambda v: operator.setitem(p.keywords, "k", v), p


@pytest.mark.parametrize(
    "make",
    [
        in_the_environment(lambda: os.environ.get("MINNP_TEST", "7")),
        in_the_environment(lambda: os.getenv("MINNP_TEST", "7")),
        in_the_environment(lambda: "MINNP_TEST" in os.environ),
        *(in_the_arguments_of_the_program, in_how_many_arguments_the_program_has, in_other_arguments_of_the_program),
        *(in_a_module_of_pythons, in_an_object_in_a_module_of_pythons, in_a_submodule_of_pythons),
        in_a_module_that_is_imported_inside,
        in_a_level(lambda log, above: above.level),
        in_a_level(lambda log, above: log.getEffectiveLevel()),
        in_a_level(lambda log, above: 2.0 if log.isEnabledFor(logging.INFO) else 3.0),
        in_keywords,
    ],
)
def test_what_pythons_own_modules_hold_is_looked_at(make: Callable, monkeypatch: Any) -> None:
    change, f = make(monkeypatch)
    g = jit(f)
    for v in (1.0, 1.0, 2.0, 4.0, 3.0, 3.0, 4.0, 1.0):
        change(v)
        assert g(X).tolist() == f(X).tolist()


ONES, COUNTED = np.ones(3), np.arange(3.0)


def chosen(case: str) -> tuple:
    """(an object with a switch `s`, a function that it chooses an outside array for)"""
    o = types.SimpleNamespace(s=0)
    both = [ONES, COUNTED]
    a, b = onp.ones(3), onp.arange(3.0, dtype="f4")

    def by_name(x: Any) -> Any:
        if o.s:
            return x * ONES
        return x * COUNTED

    return o, {
        "global": by_name,
        "item": lambda x: x + both[o.s],
        "key": lambda x: x + {0: ONES, 1: COUNTED}[o.s],
        "reduction": lambda x: x + np.sum(both[o.s]),
        "attribute": lambda x: x * [types.SimpleNamespace(w=w) for w in both][o.s].w,
        "order": lambda x: np.stack(both) * x if o.s else np.stack(both[::-1]) * x,
        "of NumPy's own": lambda x: x * (a if o.s else b),
        "default": lambda x, w=(ONES, COUNTED): x - w[o.s],
    }[case]


@pytest.mark.parametrize(
    "case", ["global", "item", "key", "reduction", "attribute", "order", "of NumPy's own", "default"]
)
@pytest.mark.parametrize("compiler", ["auto", "numpy"])
def test_arrays_outside_that_a_switch_outside_chooses(case: str, compiler: str) -> None:
    o, f = chosen(case)
    g, x = jit(f, compiler=compiler), np.arange(3.0)
    for s in (0, 0, 1, 1, 1, 0, 0, 1, 1):
        o.s = s
        assert g(x).tolist() == f(x).tolist()


def test_names_that_are_defined_later_are_seen() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    try:\n        return later(x)\n    except NameError:\n        return x\n", names)
    f = jit(names["f"])
    assert f(X).tolist() == f(X).tolist() == X.tolist()
    names["later"] = lambda x: x * 2.0
    assert f(X).tolist() == f(X).tolist() == (X * 2.0).tolist()
    del names["later"]
    assert f(X).tolist() == X.tolist()


def bound_to_what_changes(case: str) -> tuple:
    """(a function with a method of a builtin object under a name, what that changes, another argument for each call)"""
    numbers, of = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    held, double, w = collections.deque(numbers), array.array("d", numbers), onp.ones(2)
    append, pop, item, get, popitem = numbers.append, numbers.pop, numbers.__getitem__, of.get, of.popitem
    rotate, appended, total = held.rotate, double.append, w.sum
    take, taken = itertools.count().__next__, functools.partial(next, itertools.count())
    waiting: Any = queue.SimpleQueue()
    for v in range(10):
        waiting.put(v)
    received = waiting.get
    o, table = types.SimpleNamespace(push=numbers.append), {"push": [numbers.append]}

    def anew() -> Callable:
        of["a"] += 1.0
        o.get = of.get
        return of.get

    def written() -> None:
        numbers[0] += 1.0
        w[0] += 1.0

    def many(x: Any, push: Callable) -> Any:
        for i in range(3):
            push(i)
        return x * len(numbers)

    f, change = {
        "append": (lambda x, _: (append(int(x.argmax())), x)[1], None),
        "append of a default": (lambda x, _, push=append: (push(float(x.sum())), x)[1], None),
        "append of an attribute": (lambda x, _: (o.push(1), x)[1], None),
        "append of an item": (lambda x, _: (table["push"][0](1), x)[1], None),
        "append of an argument": (lambda x, push: (push(int(x.argmax())), x)[1], lambda: numbers.append),
        "append in a loop": (many, lambda: numbers.append),
        "append of an array": (lambda x, _: (appended(1.0), x)[1], None),
        "pop": (lambda x, _: x * pop(), None),
        "popitem": (lambda x, _: x * popitem()[1], None),
        "rotate": (lambda x, _: (rotate(1), x * held[0])[1], None),
        "item": (lambda x, _: x * item(0), written),
        "item by map": (lambda x, _: x * sum(map(item, range(2))), written),
        "get": (lambda x, _: x * get("a"), anew),
        "get of an attribute": (lambda x, _: x * o.get("a"), anew),
        "get of an argument": (lambda x, look: x * look("a"), anew),
        "sum": (lambda x, _: x * total(), written),
        "next": (lambda x, _: x * take(), None),
        "next of a partial": (lambda x, _: x * taken(), None),
        "next of an argument": (lambda x, n: x * n(), lambda: take),
        "get of a queue": (lambda x, _: x * received(), None),
    }[case]
    return f, (numbers, of, held, double), change


@pytest.mark.parametrize(
    "case",
    [
        *("append", "append of a default", "append of an attribute", "append of an item", "append of an argument"),
        *("append in a loop", "append of an array", "pop", "popitem", "rotate", "item", "item by map", "get"),
        *("get of an attribute", "get of an argument", "sum", "next", "next of a partial", "next of an argument"),
        "get of a queue",
    ],
)
def test_a_method_of_a_builtin_object_under_a_name_is_of_that_object_as_it_is(case: str) -> None:
    results = []
    for make in (lambda f: f, jit):
        f, state, change = bound_to_what_changes(case)
        g = make(f)
        values = [
            g(np.array(v), change and change()).tolist() for v in ([1.0, 2.0], [1.0, 2.0], [4.0, 1.0], [1.0, 2.0])
        ]
        results.append((values, state))
    assert results[0] == results[1]


def test_a_method_that_is_asked_for_anew_is_the_same_one() -> None:
    """`d.get` is another object each time, of one identity as long as d is the same."""
    of, o = {"a": 2.0}, types.SimpleNamespace()
    f, g = jit(lambda x: x * o.get("a")), jit(lambda x, get: x * get("a"))
    for _ in range(5):
        o.get = of.get
        assert f(X).tolist() == g(X, of.get).tolist() == (X * 2.0).tolist()
    assert f.captures == g.captures == 1


LOG = logging.getLogger("minnp.tests.outputs")


def lines_of(case: str, to: io.StringIO) -> Callable:
    """A function that writes what it was told of its argument's elements."""
    alias = print
    return {
        "float": lambda x: print(float(x[0]), file=to),
        "integer": lambda x: print(int(x.argmax()), file=to),
        "truth": lambda x: print(bool(x[0] > 2), file=to),
        "f-string": lambda x: print(f"{float(x.sum()):.3f}", file=to),
        "list": lambda x: print(x.tolist(), file=to),
        "size of a mask": lambda x: print(np.where(x > 2)[0].size, file=to),
        "looked up": lambda x: print(["a", "b"][np.argmax(x)], file=to),
        "branch": lambda x: print("large" if x[0] > 2 else "small", file=to),
        "another name": lambda x: alias(x.item(0), file=to),
        "log": lambda x: LOG.warning("loss %.2f", x.sum()),
        "file": lambda x: to.write(f"{float(x.sum())}\n"),
        "warning": lambda x: warnings.warn(f"big {int(x.sum())}", stacklevel=1),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        *("float", "integer", "truth", "f-string", "list", "size of a mask", "looked up", "branch", "another name"),
        *("log", "file", "warning"),
    ],
)
def test_what_a_function_writes_of_its_arrays_it_writes_at_every_call(case: str) -> None:
    seen = []
    for make in (lambda f: f, jit):
        to = io.StringIO()
        write, handler = lines_of(case, to), logging.StreamHandler(to)
        f = make(lambda x, write=write: (write(x), x * 2)[1])
        LOG.addHandler(handler)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for v in ([1.0, 2.0], [1.0, 2.0], [4.0, 1.0], [1.0, 2.0], [1.0, 2.0]):
                assert f(np.array(v)).tolist() == [2 * a for a in v]
        LOG.removeHandler(handler)
        seen.append(to.getvalue().splitlines() + [str(w.message) for w in warned])
    assert seen[0] == seen[1] and len(seen[0]) == 5


def test_functions_that_only_might_write_or_write_before_they_ask_are_compiled() -> None:
    def f(x: Any, verbose: bool = False) -> Any:
        if verbose:
            print(float(x.sum()))
        return x * 2 if x[0] > 2 else x * 3

    g, h = jit(f), jit(lambda x: (print("begins"), f(x))[1])
    for compiled in (g, h):
        for _ in range(3):
            assert compiled(np.ones(2)).tolist() == [3.0, 3.0]
        assert compiled.captures == 1
    assert sys.getprofile() is None


def test_a_list_or_dict_that_is_twice_among_the_arguments_is_one():
    def tied(net, x):
        net["encoder"]["w"] = net["encoder"]["w"] + x
        return net["decoder"]["w"] * 2

    def count(a, b):
        a.append(1)
        return len(b)

    f, g = jit(tied), jit(count)
    for shared in (False, True, True, False, True):
        layer, x = {"w": np.zeros(2)}, np.ones(2)
        net = {"encoder": layer, "decoder": layer if shared else {"w": np.zeros(2)}}
        onp.testing.assert_array_equal(f(net, x), [2.0 * shared, 2.0 * shared])
        onp.testing.assert_array_equal(layer["w"], 1.0)
        items: list = []
        assert g(items, items if shared else []) == int(shared)
        assert items == [1]


@pytest.mark.parametrize(
    "f",
    [
        lambda w: np.sum(w * 3),
        lambda w: np.mean(w),
        lambda w: np.sum(w.reshape(2, 2).T),
        lambda w: np.sum(np.pad(w, 1)),
        lambda w: w @ np.ones(4),
    ],
)
def test_a_gradient_that_is_constant_is_another_array_in_every_call(f):
    slope, before = jit(grad(f)), []
    want = grad(f)(np.zeros(4))
    for _ in range(4):
        g = slope(np.zeros(4))
        onp.testing.assert_allclose(g, want, rtol=1e-15)
        assert not any(onp.may_share_memory(g, other) for other in before)
        g *= -0.5
        before.append(g)


def test_gradients_that_are_equal_are_two_arrays_and_are_written():
    @jit
    def both(w, x):
        g, h = grad(lambda w, x: np.sum(np.sin(w + x)), (0, 1))(w, x)
        g *= 2
        m = grad(lambda w: np.mean(w))(w)
        m += 1
        return g, h, m

    for f in (both, jit(grad(lambda w, x: np.sum(np.sin(w + x)), (0, 1)))):
        for _ in range(3):
            g, h, *m = f(np.zeros(2), np.zeros(2))
            assert not onp.may_share_memory(g, h)
            onp.testing.assert_allclose((g[0], h[0]), (2.0 if m else 1.0, 1.0))
            assert not m or m[0].tolist() == [1.5, 1.5]
            g[:] = 7.0


def test_a_static_object_is_what_it_holds():
    @dataclasses.dataclass
    class Config:
        n: int

    class Outer:
        def __init__(self):
            self.config = Config(1)

    outer, space = Outer(), types.SimpleNamespace(n=1)
    f = jit(lambda x, c: x * c.n, static="c")
    g = jit(lambda x, c: x * c.config.n, static="c")
    for n in (1, 2, 3, 3, 1):
        outer.config.n = space.n = n
        found = f(np.ones(1), outer.config), f(np.ones(1), space), g(np.ones(1), outer)
        assert [float(x[0]) for x in found] == [n] * 3
    assert g.cache_info()["captures"] == 3


def test_modules_that_libraries_load_when_they_are_used_are_not_loaded(monkeypatch):
    asked = []

    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    library = types.ModuleType("some_library")
    library.__file__, library.scale, library.lazy = onp.__file__, 2.0, Lazy("some_library.lazy")
    monkeypatch.setitem(globals(), "some_library", library)
    f = jit(lambda x: x * some_library.scale + (0 if x.size else some_library.lazy))  # noqa: F821
    for _ in range(3):
        onp.testing.assert_array_equal(f(np.ones(2)), 2.0)
    assert not asked


def test_a_large_gradient_of_one_number_is_another_array_in_every_call():
    slope, want, before = jit(grad(lambda a, x: np.sum(a + np.outer(x, x)))), onp.ones((300, 300)), []
    for _ in range(4):
        g = slope(np.zeros((300, 300)), np.arange(300.0))
        onp.testing.assert_array_equal(g, want)
        assert g.flags.c_contiguous
        assert not any(onp.may_share_memory(g, other) for other in before)
        g *= -0.5
        before.append(g)


def test_a_constant_of_zeros_of_both_signs_is_not_repeated():
    zeros = onp.zeros((300, 300))
    zeros[7, 5] = -0.0

    def f(x):
        return np.array(zeros) + x

    compiled = jit(f)
    for _ in range(3):
        out = compiled(np.full((300, 300), -0.0))
        onp.testing.assert_array_equal(onp.signbit(out), onp.signbit(zeros))


def sparse_matrix(n: float) -> Any:
    return pytest.importorskip("scipy.sparse").csr_matrix(onp.eye(2) * n)


def rows_in_lists(n: float) -> Any:
    return pytest.importorskip("scipy.sparse").lil_matrix(onp.eye(2) * n)


def frozen_normal(n: float) -> Any:
    return pytest.importorskip("scipy.stats").multivariate_normal([0.0, 0.0], onp.eye(2) * n)


def density(n: float) -> Any:
    return pytest.importorskip("scipy.stats").gaussian_kde(onp.array([[0.0, 1.0, 2.5], [1.0, 0.0, 2.0]]) * n)


def linear_operator(n: float) -> Any:
    return pytest.importorskip("scipy.sparse.linalg").aslinearoperator(onp.eye(2) * n)


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (sparse_matrix, lambda m: m.toarray().sum()),
        (sparse_matrix, lambda m: (m * 2).diagonal()[0]),
        (rows_in_lists, lambda m: m.toarray()[0, 0]),
        (frozen_normal, lambda m: m.pdf([0.1, 0.2])),
        (density, lambda m: m([0.1, 0.2])[0]),
        (linear_operator, lambda m: m.matvec(onp.ones(2))[0]),
    ],
)
def test_an_object_of_scipys_is_replaced(make: Callable, use: Callable) -> None:
    owner = types.SimpleNamespace()
    f, g = jit(lambda x: x * use(owner.model)), jit(lambda x, model: x * use(model))
    for n in (1.0, 1.0, 5.0, 2.0):
        owner.model = make(n)
        onp.testing.assert_allclose(f(np.ones(2)), use(make(n)))
        onp.testing.assert_allclose(g(np.ones(2), make(n)), use(make(n)))


def test_an_object_of_numpys_is_replaced() -> None:
    owner = types.SimpleNamespace()
    f = jit(lambda x: x * owner.facts.max)
    for dtype in ("i4", "i2", "i1", "i4"):
        owner.facts = onp.iinfo(dtype)
        onp.testing.assert_array_equal(f(np.ones(1)), onp.iinfo(dtype).max)


@pytest.mark.parametrize("make", [sparse_matrix, rows_in_lists])
def test_a_sparse_matrix_is_changed(make: Callable) -> None:
    owner = types.SimpleNamespace(A=make(1.0))
    f, g = jit(lambda x: owner.A.toarray() @ x), jit(lambda x, A: A.sum() * x)
    for n in (1.0, 3.0, 3.0, 7.0):
        owner.A.setdiag(n)
        onp.testing.assert_array_equal(f(np.ones(2)), n)
        onp.testing.assert_array_equal(g(np.ones(2), owner.A), 2 * n)


def test_the_fields_of_a_record_are_changed() -> None:
    record = onp.array([(1, 2.0)], dtype=[("a", int), ("b", float)])[0]
    owner = types.SimpleNamespace(record=record)
    for f in (jit(lambda x: x * record["b"]), jit(lambda x: x * owner.record["b"])):
        for n in (2.0, 9.0, 9.0, onp.nan, 1.0):
            record["b"] = n
            onp.testing.assert_array_equal(f(np.ones(2)), n)


class Size(int):
    unit: Any


class Share(float):
    unit: Any


class Places(frozenset):
    unit: Any


class Row(tuple):
    unit: Any


@pytest.mark.parametrize("make", [lambda: Size(3), lambda: Share(0.5), lambda: Places({1}), lambda: Row((1, 2))])
@pytest.mark.parametrize("units", [(2.0, 7.0), (np.ones(2), np.zeros(2))], ids=["numbers", "arrays"])
def test_equal_numbers_and_tuples_with_other_attributes(make: Callable, units: tuple) -> None:
    f = jit(lambda x, n: x * n.unit)
    for unit in (*units, *units):
        n = make()
        n.unit = unit
        onp.testing.assert_array_equal(f(np.ones(2), n), np.ones(2) * unit)


def test_a_jitted_method_is_a_method() -> None:
    class Model:
        def __init__(self) -> None:
            self.handlers: set = set()

        @jit
        def step(self, x: Any) -> Any:
            return x * 3

        @classmethod
        @jit
        def of_all(cls, x: Any) -> Any:
            return x * 2

    m = Model()
    m.handlers |= {m.step, m.step}
    assert len(m.handlers) == 1 and m.step == m.step and m.step != Model().step
    assert m.step.__name__ == "step" and m.step.__self__ is m
    assert m.step(np.ones(1)) == 3 and m.of_all(np.ones(1)) == Model.of_all(np.ones(1)) == 2

    class Layer(abc.ABC):
        @jit
        @abc.abstractmethod
        def forward(self, x: Any) -> Any: ...

    with pytest.raises(TypeError, match="abstract"):
        Layer()  # type: ignore[abstract]


def test_jitted_comparisons_and_hashes_of_objects() -> None:
    class Vector:
        def __init__(self, w: Any) -> None:
            self.w = w

        @jit
        def __eq__(self, other: Any) -> bool:
            return bool(np.all(self.w == other.w))

        @jit
        def __hash__(self) -> int:
            return int(np.sum(self.w))

    a, b, c = (Vector(np.full(2, float(k))) for k in (1, 1, 2))
    for _ in range(4):
        assert a == b and b == a and a != c and hash(a) == hash(b) == 2 and hash(c) == 4
    assert len({a, b, c}) == 2


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = np.array(factor)

    def __call__(self, x: Any) -> Any:
        return x * self.factor


def test_jitted_objects_are_copied_and_pickled() -> None:
    f = jit(Scaled(2.0))
    assert f(np.ones(2)).tolist() == [2, 2]
    for g in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        g.function.factor[...] = 3.0
        assert g(np.ones(2)).tolist() == [3, 3] and f(np.ones(2)).tolist() == [2, 2]
    assert copy.copy(f).function is f.function
    partial = jit(functools.partial(operator.mul, 2.0))
    assert copy.deepcopy(partial)(np.ones(2)).tolist() == pickle.loads(pickle.dumps(partial))(np.ones(2)).tolist()


def test_inspect_knows_a_jitted_function_as_the_function() -> None:
    @jit
    async def slowly(a: Any, b: float = 2.0) -> Any:
        return a * b

    @jit
    def one_by_one(a: Any, *, k: int = 3) -> Any:
        yield a * k

    assert inspect.iscoroutinefunction(slowly) and asyncio.run(slowly(np.ones(2))).tolist() == [2, 2]
    assert inspect.isgeneratorfunction(one_by_one) and not inspect.iscoroutinefunction(one_by_one)
    assert inspect.getfullargspec(slowly).args == ["a", "b"] and inspect.getfullargspec(slowly).defaults == (2.0,)
    assert inspect.getfullargspec(one_by_one).kwonlydefaults == {"k": 3}
    assert slowly.__code__.co_argcount == 2 and slowly.__globals__ is globals() and slowly.__closure__ is None
    assert not hasattr(jit(functools.partial(max, 1)), "__code__")


def test_an_array_on_the_memory_of_an_argument() -> None:
    class Quaternion(np.ndarray):
        def __new__(cls, q: Any) -> Any:
            q = np.array(q, dtype=float)
            return super().__new__(cls, q.shape, float, q)

    f = lambda v: np.asarray(Quaternion(v / 2)) + v
    g = jit(f)
    for _ in range(2):
        onp.testing.assert_array_equal(g(np.ones(4)), f(np.ones(4)))


def test_weak_containers_are_those_of_now() -> None:
    class Part:
        def __init__(self, v: float) -> None:
            self.v = v

    a, b = Part(3.0), Part(9.0)
    values, keys, some = weakref.WeakValueDictionary(), weakref.WeakKeyDictionary({a: 1}), weakref.WeakSet([a])
    f = jit(lambda x: x * len(values) + len(keys) * 10 + sum(p.v for p in some))
    g = jit(lambda x, d: x * len(d))
    for values_added in ({}, {"a": a}, {"b": b}, {}):
        values.update(values_added)
        onp.testing.assert_array_equal(f(np.ones(1)), len(values) + len(keys) * 10 + sum(p.v for p in some))
        onp.testing.assert_array_equal(g(np.ones(1), values), len(values))
        keys[b] = 2
        some.add(b)
