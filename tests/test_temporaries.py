"""Large expressions on recycled memory: whatever anybody can still see keeps its numbers."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.core.compiled import fastpath

pytestmark = pytest.mark.host("memory is recycled for NumPy's kernels; another backend has its own")
N = 1 << 17


def arrays(n: int = 3, dtype: Any = "f8") -> list:
    rng = onp.random.default_rng(0)
    return [rng.uniform(1, 2, N).astype(dtype) for _ in range(n)]


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
    borrowed = onp.full(N, 3.0)  # the caller's own memory, which an array was put on
    np.asarray(borrowed) + b
    assert (borrowed == 3.0).all()
    frozen = onp.full(N, 3.0)
    frozen.flags.writeable = False
    onp.testing.assert_array_equal((np.asarray(frozen) + b).asnumpy(), 3 + b.asnumpy())


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 14), reason="CPython says in 3.14 what is a temporary; later it was not looked at"
)
@pytest.mark.either("about the C part")
@pytest.mark.skipif(fastpath is None, reason="the C part asks")
def test_a_result_takes_the_memory_of_a_temporary_and_of_nothing_else() -> None:
    a, b = map(np.asarray, arrays(2))
    seen: list = []

    def noted(x: Any) -> Any:
        seen.append(x.__array_interface__["data"][0])
        return x

    def reused(f: Any) -> bool:
        return f(noted).__array_interface__["data"][0] == seen[-1]

    assert reused(lambda noted, b=b: noted(a * 2) + b) and reused(lambda noted: noted(a * 2) / 2.0)
    assert reused(lambda noted: noted(a * 2) - (a * b)) and reused(lambda noted: noted(noted(a * 2) * 3.0) - 1)
    assert not reused(lambda noted: (lambda t: t * 2.0 + 0 * t)(noted(a * 2)))
    assert not reused(lambda noted: noted(a * 2) * 1j) and not reused(lambda noted: noted(a[:1] * 2) + a)
    assert not reused(lambda noted: operator.add(noted(a * 2), b))  # a function may use its argument twice


def test_gradients_keep_what_their_rules_read() -> None:
    a, b = map(np.asarray, arrays(2))
    g = minnp.grad(lambda a: ((a * b) * (a + b) * 2.0 + a * 3.0).sum())(a)
    x, y = a.asnumpy(), b.asnumpy()
    onp.testing.assert_allclose(g.asnumpy(), 2 * (y * (x + y) + x * y) + 3, rtol=1e-12)


def test_an_error_leaves_the_operands() -> None:
    a, b = np.full(N, 1e200), np.full(N, 1e200)
    with onp.errstate(over="raise"), pytest.raises(FloatingPointError):
        (a * 1.0) * b
    assert (a.asnumpy() == 1e200).all()


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


def on_memory_of_c(memory: Any) -> onp.ndarray:
    """An array of float64 as C code makes it around its own memory: without a base, and without owning it."""
    core = onp._core if hasattr(onp, "_core") else onp.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = ctypes.cast(pointer(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    new = ctypes.PYFUNCTYPE(
        *(ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
        *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
    )(api[93])  # PyArray_New
    dims = (ctypes.c_ssize_t * 1)(len(memory))
    return new(onp.ndarray, 1, dims, onp.dtype("f8").num, None, ctypes.addressof(memory), 0, 0x501, None)


def test_memory_that_is_not_numpys_keeps_its_numbers() -> None:
    memory = (ctypes.c_double * N)(*[3.0] * N)
    a = on_memory_of_c(memory)
    assert a.base is None and not a.flags.owndata and a.flags.writeable
    del a
    other = np.ones(N)
    for f in (
        lambda: np.asarray(on_memory_of_c(memory)) * 2.0,
        lambda: np.asarray(on_memory_of_c(memory)) + other,
        lambda: other - np.asarray(on_memory_of_c(memory)),
        lambda: 2.0 / np.asarray(on_memory_of_c(memory)),
    ):
        for _ in range(3):
            f()
        assert onp.frombuffer(memory).min() == onp.frombuffer(memory).max() == 3.0
    with pytest.raises(ValueError, match="does not own its data"):
        np.asarray(on_memory_of_c(memory)).resize(4)


def test_two_names_keep_two_arrays_in_every_interpreter() -> None:
    def f(t: Any, u: Any) -> tuple:
        k = t * u
        y = k + u
        z = u - k
        return k[0], y[0], z[0]

    for _ in range(50):
        assert f(np.full(2 * N, 2.0), np.ones(2 * N)) == (2.0, 3.0, -1.0)


WATCHED = """
import sys, threading
import minnp.numpy as np
def reads_names(frame, event, arg):
    frame.f_locals
    return reads_names
def f(t, u):
    k = t * u
    y = k + u
    z = 2.0 - k
    return k[0], y[0], z[0]
x, one = np.full(1 << 17, 2.0), np.ones(1 << 17)
sys.settrace(reads_names)
for i in range(3):
    assert f(x, one) == (2.0, 3.0, 0.0), f(x, one)
sys.settrace(None)
for i in range(50):
    assert f(x, one) == (2.0, 3.0, 0.0), f(x, one)
"""


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_a_debugger_that_reads_the_names_of_frames_changes_no_number(compiled: str) -> None:
    subprocess.run([sys.executable, "-c", WATCHED], check=True, env={**os.environ, "MINNP_COMPILED": compiled})
