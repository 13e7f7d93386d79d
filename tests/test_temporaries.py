"""Dying operands lend their memory to results; whatever anybody can still see keeps its numbers."""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.core.host import temporaries

pytestmark = pytest.mark.host("NumPy writes into temporaries; another backend's kernels do not")
N = 1 << 17


@pytest.fixture(autouse=True)
def learnt() -> None:
    x = np.ones(N)
    x * 1.0 + x


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list:
    """The operands that were found to be temporaries, by address."""
    found: list = []
    callers = temporaries.mark.callers

    class Watched(frozenset):
        def __contains__(self, caller: object) -> bool:
            found.append(caller in callers)
            return found[-1]

    monkeypatch.setattr(temporaries.mark, "callers", Watched(callers))
    return found


def arrays(n: int = 3, dtype: Any = "f8") -> list:
    rng = onp.random.default_rng(0)
    return [rng.uniform(1, 2, N).astype(dtype) for _ in range(n)]


def test_a_temporary_is_known_wherever_the_c_library_can_tell(taken: list) -> None:
    known = bool(temporaries.mark.callers)
    assert known is (temporaries.find_backtrace() is not None)
    a, b = map(np.asarray, arrays(2))
    c = a * 2.0 + b
    d = b - (a * a)
    e = 3.0 - (a * a)
    assert taken == [True] * 3 * known
    taken.clear()
    f = sum(x for x in (a, b, a, b))  # the sum of the first two is taken twice; the first is a number and an array
    assert taken == [True] * 3 * known and (f.asnumpy() == a.asnumpy() + b.asnumpy() + a.asnumpy() + b.asnumpy()).all()
    for ours, theirs in ((c, a.asnumpy() * 2 + b.asnumpy()), (d, b.asnumpy() - a.asnumpy() ** 2)):
        onp.testing.assert_array_equal(ours.asnumpy(), theirs)
    onp.testing.assert_array_equal(e.asnumpy(), 3 - a.asnumpy() ** 2)


EXPRESSIONS = {
    "chain": lambda np, a, b, c: np.exp(-a * a) * np.tanh(a) + np.log(b) * np.sqrt(c),
    "both sides": lambda np, a, b, c: (a * b) * (b - c) / (a + c) - (a * c),
    "broadcast": lambda np, a, b, c: (a * b).reshape(-1, 64) * a[:64] + (b[:64] * 2.0),
    "grows": lambda np, a, b, c: (a[:65536, None] * 2.0) + (b[:65536, None] * onp.ones(2)),
    "other dtype": lambda np, a, b, c: (a * b) + np.arange(N),
    "numpy scalar": lambda np, a, b, c: (a * b) * onp.float64(3),
    "complex": lambda np, a, b, c: (a + 1j * b) * (b + 1j * c) - 2.5,
    "integers": lambda np, a, b, c: (np.arange(N) * 2) + np.arange(N) - 3,
    "mask": lambda np, a, b, c: ((a > b) & (b > c)) | (a == c),
    "view of a temporary": lambda np, a, b, c: (a * b)[::-1] + c,
    "twice the same": lambda np, a, b, c: (lambda t: t + t)(a * b),
    "assigned inside": lambda np, a, b, c: (t := a * b) + (t * c) + t,
    "number too large": lambda np, a, b, c: (a.astype("f4") * b.astype("f4")) * 1e30,
    "reversed": lambda np, a, b, c: 2.0 / (1.0 - (a * b)) + (3.0 - b * c),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_expressions_have_numpys_values_and_their_operands_keep_theirs(name: str, dtype: str) -> None:
    theirs = arrays(3, dtype)
    ours = [np.array(x) for x in theirs]
    for _ in range(3):  # the interpreter specializes as it goes
        with onp.errstate(all="ignore"):
            got, wanted = EXPRESSIONS[name](np, *ours), EXPRESSIONS[name](onp, *theirs)
        assert got.dtype == wanted.dtype
        onp.testing.assert_array_equal(got.asnumpy(), wanted)
    for x, y in zip(ours, theirs):
        onp.testing.assert_array_equal(x.asnumpy(), y)


def test_compiled_code_keeps_the_operands_it_holds() -> None:
    a, b = map(np.asarray, arrays(2))
    boxes, others = onp.empty(2, object), onp.empty(2, object)
    boxes[0], boxes[1], others[0], others[1] = a * 1.0, a * 2.0, b, b
    for f in (
        lambda: boxes + others,
        lambda: others * boxes,
        lambda: np.array(boxes) - 1.0,
        lambda: boxes.sum(),
        lambda: list(map(operator.add, boxes, others)),
        lambda: functools.reduce(operator.mul, boxes.tolist()),
        lambda: sum(boxes.tolist(), b),
        lambda: boxes.dot(others),
    ):
        f()
        onp.testing.assert_array_equal(boxes[0].asnumpy(), a.asnumpy())
        onp.testing.assert_array_equal(boxes[1].asnumpy(), a.asnumpy() * 2)


def test_whatever_is_seen_elsewhere_is_kept() -> None:
    a, b = map(np.asarray, arrays(2))
    once = a.asnumpy() * 1.5
    seen: list = []

    def kept(x: Any, by: Any) -> Any:
        seen.append(by(x))
        return x

    for by in (
        lambda x: x,
        lambda x: x[1:],
        onp.asarray,
        memoryview,
        lambda x: x.reshape(2, -1).T,
        lambda x: iter([x]),
    ):
        kept(a * 1.5, by) + b
    for s in seen[:4]:
        s = onp.asarray(s)
        onp.testing.assert_array_equal(s, once[N - len(s) :])
    onp.testing.assert_array_equal(seen[4].asnumpy(), once.reshape(2, -1).T)
    onp.testing.assert_array_equal(next(seen[5]).asnumpy(), once)

    alive: list = []

    def watched(x: Any) -> Any:
        alive.append(weakref.ref(x))
        return x

    c = watched(a * 1.5) + b
    assert alive[0]() is None
    onp.testing.assert_array_equal(c.asnumpy(), once + b.asnumpy())
    borrowed = onp.full(N, 3.0)  # the caller's own memory, which a handle was put on
    np.asarray(borrowed) + b
    assert (borrowed == 3.0).all()
    frozen = onp.full(N, 3.0)
    frozen.flags.writeable = False
    onp.testing.assert_array_equal((np.asarray(frozen) + b).asnumpy(), 3 + b.asnumpy())


def test_gradients_keep_what_their_rules_read() -> None:
    a, b = map(np.asarray, arrays(2))
    g = minnp.grad(lambda a: ((a * b) * (a + b) * 2.0 + a * 3.0).sum())(a)
    x, y = a.asnumpy(), b.asnumpy()
    onp.testing.assert_allclose(g.asnumpy(), 2 * (y * (x + y) + x * y) + 3, rtol=1e-12)


def test_an_error_leaves_the_operands_and_reuse_can_be_switched_off(taken: list) -> None:
    a, b = np.full(N, 1e200), np.full(N, 1e200)
    with onp.errstate(over="raise"), pytest.raises(FloatingPointError):
        (a * 1.0) * b
    assert (a.asnumpy() == 1e200).all()
    taken.clear()
    before = minnp.memory_reuse(False)
    try:
        a + (b * 2.0)
        (b * 2.0) + a
    finally:
        minnp.memory_reuse(before)
    assert taken == []


def test_threads_do_not_mix_their_temporaries() -> None:
    theirs = arrays(2)
    wanted = theirs[0] * 2 + theirs[1] * theirs[0] - 1
    a, b = map(np.asarray, theirs)
    wrong: list = []

    def work() -> None:
        for _ in range(20):
            c = a * 2.0 + b * a - 1.0
            if not (c.asnumpy() == wanted).all():
                wrong.append(c)

    team = [threading.Thread(target=work) for _ in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    assert not wrong
