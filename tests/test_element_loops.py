"""Python's loops over elements that NumPy offers, on traced arrays: nditer, vectorize, apply_along_axis and their kin.

A line is a program of an array `x` [2, 3], as in test_vmap_attacks.py; its values, dtype and derivatives are compared
with NumPy's and with differences, in every transformation.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, hvp, jit, jvp, vmap
from minnp.errors import NotDifferentiableError, TracedValueError
from minnp.numpy.rebound import _rebind

LINES = """
s = sum(v * v for v in np.nditer(x))                                     | s
s = sum(v * k for k, v in enumerate(np.nditer(x, order='F')))            | s
s = sum(v * (2 if isinstance(v, np.ndarray) else 3) for v in np.nditer(x)) | s
s = sum(v * (3 if np.isscalar(v) or isinstance(v, float) else 2) for v in np.nditer(x)) | s
s = sum(a * b for a, b in np.nditer([x, x[0]]))                          | s
s = sum(v * v for v in np.nditer(x, flags=['buffered'], op_dtypes=['c16'])) | s.real
s = sum((v * v).sum() * v[0] for v in np.nditer(x, flags=['external_loop'])) | s
s = sum((v * v).sum() * v[0] for v in np.nditer(x[:, ::2], flags=['external_loop'])) | s
s = sum(v[1] for v in np.nditer(x, flags=['external_loop'], order='F'))  | s
s = sum(v[1] for v in np.nditer(x.T, flags=['external_loop', 'buffered'], buffersize=2)) | s
s = sum(a[0] * b[-1] for a, b in np.nditer([x.T * 1, x], flags=['external_loop'], op_axes=[[1, 0], [0, 1]])) | s
s = sum(a * (k - 2) for k, (a, b) in enumerate(np.nditer([x[::-1], None]))) | s
z = x * 1; [v.__setitem__(..., 2 * v * v) for v in np.nditer(z, op_flags=['readwrite'])] | z
z = x.T * 1; [v.__imul__(v[::-1]) for v in np.nditer(z, ['external_loop'], ['readwrite'])] | z * x.T
z = x * 1; [v.__imul__(v[0]) for v in np.nditer(z, ['external_loop'], ['readwrite'], order='C')] | z * x
it = np.nditer([x, None]); [b.__setitem__(..., a * a) for a, b in it]    | it.operands[1] * x
it = np.nditer([x.T, None], op_dtypes=[None, 'f4']); [b.__setitem__(..., 1) for a, b in it] | it.operands[1] * 1.0
it = np.nditer(x, flags=['multi_index']); s = sum(v * (it.multi_index[0] + 1) for v in it) | s
it = np.nditer(x, flags=['c_index'], order='F'); s = sum(v * it.index for v in it) | s
i, j = np.nested_iters(x, [[0], [1]]); s = sum(b * b for a in i for b in j) | s
i, j = np.nested_iters(x, [[1], [0]], flags=['multi_index']); s = sum(b * i.multi_index[0] for a in i for b in j) | s
z = x * 1; i, j = np.nested_iters(z, [[0], [1]], op_flags=[['readwrite']]); [b.__imul__(b) for a in i for b in j] | z
s = sum(a * b for a, b in np.broadcast(x, x[0]))                         | s
b = np.broadcast(x, 2.0, x[:, :1]); z = [p * q * r for p, q, r in b]     | np.array(z).reshape(b.shape)
z = np.zeros(x.shape); [z.__setitem__(i, v * v * (i[0] + 2 * i[1])) for i, v in np.ndenumerate(x)] | z
z = np.zeros(x.shape); [z.__setitem__(i, x[i] ** 2) for i in np.ndindex(*x.shape)] | z
s = sum(k * v * v for k, v in enumerate(x.flat))                         | s
g = lambda r: r * r.sum()                                                | np.apply_along_axis(g, 0, x)
g = lambda r: r.sum() ** 2                                               | np.apply_along_axis(g, 1, x)
g = lambda r: [r[0], r[1] * 2]                                           | np.apply_along_axis(g, 1, x)
g = lambda r: r if r[0] > 0 else -r * r                                  | np.apply_along_axis(g, -1, x)
g = lambda r, s, k=1: r * s + k                                          | np.apply_along_axis(g, 1, x, x[0], k=3)
z = np.apply_along_axis(np.outer, 1, x, x[0])                            | z
z = np.apply_along_axis(sorted, 1, x)                                    | z * x
z = np.apply_along_axis(np.diag, -1, x)                                  | z
z = np.apply_along_axis(np.median, -1, x)                                | z * z
z = np.apply_along_axis(lambda r: r, 0, x); z[0] = 1                     | z * x
z = np.apply_over_axes(np.sum, x * x, [0, 1])                            | z * x
z = np.apply_over_axes(np.mean, x * x, 0)                                | z * x
z = np.vectorize(lambda v: v * v if v > 0 else -3 * v)(x)                | z
z = np.vectorize(lambda v, w: v * w + 1)(x, x[0])                        | z
z = np.vectorize(lambda v, w: v * w)(x, [1, 2.5, 3])                     | z
z = np.vectorize(lambda v, w: v * w)([[1], [2]], x[0])                   | z
z = np.vectorize(lambda k: k * x[0, 0])([1, 2, 3])                       | z
z = np.vectorize(lambda k: x[0, k] ** 2, otypes=[float])(np.arange(3))   | z
z = np.vectorize(lambda v, p: v * p[0] + p[1] ** 2, excluded=[1])(x, [x[0, 0], 2.0]) | z
z = np.vectorize(lambda v, p: v * p[0] * p[1], excluded=['p'])(x, p=x[0]) | z
z = np.vectorize(lambda v, k=2: v ** k)(x, k=3)                          | z
z = np.vectorize(lambda v, w: (v * w).sum(), signature='(n),(n)->()')(x, x[0]) | z
z = np.vectorize(lambda v: v * v[0], signature='(n)->(n)')(x)            | z
z = np.vectorize(lambda v: (v[:2], v.sum()), signature='(n)->(m),()')(x) | z[0] * z[1][:, None]
z = np.vectorize(lambda v, w: v @ w, signature='(m,n),(n)->(m)')(x, x[:1]) | z
z = np.vectorize(lambda v: v * v, otypes=[float])(x)                     | z
a, b = np.vectorize(lambda v: (v * v, v + 1))(x)                         | a * b
a, b = np.vectorize(lambda v: (v * v, v + 1), otypes='dd')(x)            | a * b
z = np.vectorize(lambda v: v * v, cache=True)(x)                         | z
z = np.vectorize(lambda v: v * v)(x[0, 0])                               | z * x
z = np.vectorize(lambda v: 1 if v > 0 else 0)(x)                         | z * x
z = np.vectorize(lambda v: v > 0)(x)                                     | z * x
z = np.vectorize(lambda v: 1j * v)(x)                                    | (z * z).real
z = np.vectorize(lambda v: v, otypes=[int])(x * 5)                       | z * x
z = np.vectorize(lambda v: 0 if v < 0 else v * 1.5)(-abs(x))             | z * x
z = np.fromiter((v * v for v in x[0]), float)                            | z * x
z = np.fromiter((v * v for v in x.flat), dtype=float, count=4)           | z
z = np.fromiter([1, x[0, 1], 2.5], 'f8')                                 | z * x
z = np.fromiter((r * r for r in x), dtype=np.dtype((float, 3)))          | z
z = np.fromiter(x[0], complex)                                           | (z * z).real
z = np.fromiter((v * 3 for v in x[1]), int)                              | z * x
z = np.piecewise(x, [x < 0, x >= 0.5], [lambda v: -v, lambda v: v * v, lambda v: 1.0 * v]) | z
z = np.piecewise(x, [x < 0], [1.0, lambda v, k: v * k], 3.0)             | z
z = np.piecewise(x[0], x[0] < 0.5, [lambda v: v * v, 7])                 | z
z = np.piecewise(x[0, :2], x[0, :2] < 0.5, [lambda v: v * v, lambda v: 2 * v]) | z
z = np.piecewise(x[0], [v < 0 for v in x[0]], [lambda v: v * v, 7])      | z
z = np.add.reduceat(x, [], axis=1)                                       | z.sum() + x
z = np.piecewise(x[0, 0], [x[0, 0] > 0, x[0, 0] <= 0], [lambda v: v * v, -1.0]) | z * x
z = np.piecewise(x, [x < 0, x < 1], [lambda v, p=2: v ** p, 7, 9])       | z
"""


def _parse(line: str) -> tuple[str, Callable]:
    statements, result = line.rsplit(" | ", 1)
    body = "".join(f"    {s.strip()}\n" for s in statements.split(";"))
    space: dict[str, Any] = {}
    exec(compile(f"def program(np, x):\n{body}    return {result.strip()}\n", line, "exec"), space)
    return " ".join(line.split()), space["program"]


PROGRAMS = dict(map(_parse, LINES.strip().splitlines()))
DATA = onp.random.default_rng(0).normal(size=(2, 2, 3))
STEP = 1e-6


def weighted(y: Any) -> Any:
    """A number that each element of y moves in its own way."""
    return (y * onp.cos(onp.arange(onp.size(y)) + 1.0).reshape(onp.shape(y))).sum()


def slopes(f: Callable, x: onp.ndarray) -> onp.ndarray:
    out = onp.zeros_like(x)
    for at in onp.ndindex(x.shape):
        ends = []
        for step in (STEP, -STEP):
            moved = x.copy()
            moved[at] += step
            ends.append(weighted(onp.asarray(f(onp, moved))))
        out[at] = (ends[0] - ends[1]) / (2 * STEP)
    return out


def ways(f: Callable) -> Iterator[tuple[str, str, Callable]]:
    """(what it is compared with, its name, function of DATA)."""
    v, s = lambda x: f(np, x), lambda x: weighted(f(np, x))
    compiled, gradient, batched = jit(v), jit(grad(s)), jit(vmap(v))
    yield "value", "eager", lambda d: v(d[0])
    yield "value", "jit", lambda d: (compiled(d[1]), compiled(d[0]))[1]
    yield "value", "jvp's value", lambda d: jvp(v, (d[0],), (d[1],))[0]
    yield "values", "vmap", vmap(v)
    yield "values", "jit(vmap)", lambda d: (batched(d[::-1]), batched(d))[1]
    yield "slope", "grad", lambda d: grad(s)(d[0])
    yield "slope", "grad(jit)", lambda d: grad(jit(s))(d[0])
    yield "slope", "jit(grad)", lambda d: (gradient(d[1]), gradient(d[0]))[1]
    yield "slopes", "vmap(grad)", vmap(grad(s))
    yield "slopes", "grad(vmap)", grad(lambda d: vmap(s)(d).sum())
    yield "slopes", "jit(vmap(grad))", jit(vmap(grad(s)))
    yield "tangent", "jvp", lambda d: jvp(s, (d[0],), (d[1],))[1]
    yield "curvature", "hvp", lambda d: hvp(s)(d[0], d[1])


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_over_elements_are_numpys(name: str) -> None:
    f = PROGRAMS[name]
    every = [onp.asarray(f(onp, x)) for x in DATA]
    rising = onp.stack([slopes(f, x) for x in DATA])
    at = lambda x: onp.asarray(grad(lambda x: weighted(f(np, x)))(np.array(x)))
    wanted = {
        "value": every[0],
        "values": onp.stack(every),
        "slope": rising[0],
        "slopes": rising,
        "tangent": (rising[0] * DATA[1]).sum(),
        "curvature": (at(DATA[0] + STEP * DATA[1]) - at(DATA[0] - STEP * DATA[1])) / (2 * STEP),
    }
    for kind, way, of in ways(f):
        y = onp.asarray(of(np.array(DATA)))
        exact = {"rtol": 1e-9, "atol": 1e-9} if kind.startswith("value") else {"rtol": 1e-4, "atol": 1e-4}
        onp.testing.assert_allclose(y, wanted[kind], **exact, err_msg=way)
        assert not kind.startswith("value") or y.dtype == wanted[kind].dtype, way


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "i2", "?"])
def test_vectorize_and_fromiter_give_numpys_dtypes(dtype: str) -> None:
    x = onp.array([0, 1, 3]).astype(dtype)
    for f in (
        lambda np, x: np.vectorize(lambda v: v + v)(x),
        lambda np, x: np.vectorize(lambda v: (v, v * v))(x)[1],
        lambda np, x: np.vectorize(lambda v: v, otypes="F")(x),
        lambda np, x: np.vectorize(lambda v: v + v, signature="()->()")(x),
        lambda np, x: np.vectorize(lambda v: v[:2], signature="(n)->(m)")(x),
        lambda np, x: np.fromiter(x, dtype),
        lambda np, x: np.fromiter(iter(x), "c16"),
    ):
        wanted = f(onp, x)
        for way in (lambda x: f(np, x), jit(lambda x: f(np, x)), lambda x: vmap(lambda x: f(np, x))(x[None])[0]):  # noqa: B023
            y = onp.asarray(way(np.array(x)))
            assert y.dtype == wanted.dtype
            onp.testing.assert_allclose(y, wanted)


@pytest.mark.parametrize(
    "f",
    [
        lambda n: np.vectorize(lambda k: k**40 % 1000007)(n),
        lambda n: np.vectorize(lambda k: k * 2 if isinstance(k, int) and not isinstance(k, np.generic) else -1)(n),
        lambda n: np.vectorize(lambda k: k * 2 if type(k) is bool else -1, otypes=[int])(n > 2),
        lambda n: np.vectorize(lambda a: (-a) ** 0.5, otypes=[complex])(n / 2),
    ],
)
def test_vectorize_gives_its_function_pythons_numbers(f: Callable) -> None:
    n = np.array([3, 1, 7, 5])
    wanted = f(n)
    for way in (jit(f), *(lambda n, g=g: g(n[None])[0] for g in (vmap(f), jit(vmap(f)), vmap(jit(f))))):
        for _ in range(2):
            y = way(n)
            assert y.dtype == wanted.dtype
            onp.testing.assert_array_equal(y, wanted)


def test_vectorize_raises_what_pythons_numbers_raise() -> None:
    f = lambda x: np.vectorize(lambda a: 1 / a, otypes=[float])(x)
    for way in (f, jit(f), lambda x: vmap(f)(x[None])):
        with pytest.raises(ZeroDivisionError):
            way(np.array([0.0, 2.0]))


WRONG: dict[str, Callable] = {
    "an element that is only read": lambda np, x: [v.__setitem__(..., 1.0) for v in np.nditer(x)],
    "sizes that do not fit": lambda np, x: np.vectorize(lambda v, w: v)(x, np.ones(4)),
    "no element": lambda np, x: np.vectorize(lambda v: v)(x[:0]),
    "an argument too many": lambda np, x: np.vectorize(lambda v: v)(x, x),
    "a signature of two": lambda np, x: np.vectorize(lambda v, w: v, signature="(n),(n)->()")(x),
    "another size": lambda np, x: np.vectorize(lambda v, w: v, signature="(n),(n)->(n)")(x, x[:, :2]),
    "too many results": lambda np, x: np.vectorize(lambda v: (v, v), signature="()->()")(x),
    "arrays for numbers": lambda np, x: np.vectorize(lambda v: np.array([v, v]), otypes=[float])(x),
    "complex for real": lambda np, x: np.vectorize(lambda v: 1j * v, otypes=[float])(x),
    "an iterator too short": lambda np, x: np.fromiter((v for v in x[0]), float, 4),
    "rows for numbers": lambda np, x: np.fromiter(x, float),
    "no iterator": lambda np, x: np.fromiter(x[0, 0], float),
    "a function that raises": lambda np, x: np.vectorize(lambda v: {}[float(v > 9)])(x),
    "conditions that do not fit": lambda np, x: np.piecewise(x, [x < 0], [1, 2, 3]),
    "no axis": lambda np, x: np.apply_along_axis(np.sum, 2, x),
    "no axis to go over": lambda np, x: np.apply_over_axes(np.sum, x, [2]),
    "a flag that is none": lambda np, x: np.nditer(x, flags=["loops"]),
    "axes twice": lambda np, x: np.nested_iters(x, [[0], [0]]),
    "a cast that is not safe": lambda np, x: np.nditer(x, flags=["buffered"], op_dtypes=["i4"]),
    "arrays that do not broadcast": lambda np, x: np.broadcast(x, x.T),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_exceptions_are_numpys(name: str) -> None:
    f = WRONG[name]
    with pytest.raises(Exception) as theirs:
        f(onp, DATA[0])
    for way in (
        grad(lambda x: weighted(f(np, x))),
        jit(lambda x: f(np, x)),
        lambda x: vmap(lambda x: f(np, x))(x[None]),
    ):
        with pytest.raises(type(theirs.value)) as ours:
            way(np.array(DATA[0]))
        assert type(ours.value) is type(theirs.value)


def test_a_lazy_iterator_is_read_as_far_as_numpy_reads_it() -> None:
    for count in (2, -1):

        def read_on(np: Any, x: Any) -> list:
            items = iter([x[0, 0], 1.0, x[0, 1], 2.0])
            np.fromiter(items, float, count)  # noqa: B023
            return list(items)

        found: list = []
        grad(lambda x: (found.append(read_on(np, x)), x.sum())[1])(np.array(DATA[0]))  # noqa: B023
        assert len(found[0]) == len(read_on(onp, DATA[0]))
    endless = grad(lambda x: np.fromiter(itertools.cycle(x), float, 5).sum())
    assert endless(np.array([1.0, 2.0])).tolist() == [3.0, 2.0]


def test_arrays_of_objects_say_why_no_gradient_flows() -> None:
    x = np.array([1.0, 2.0])
    made = lambda x: np.frompyfunc(lambda v: v * v, 1, 1)(x).astype(float).sum()
    for way in (grad(made), jit(grad(made)), lambda x: vmap(grad(made))(x[None]), lambda x: jvp(made, (x,), (x,))):
        with pytest.raises(NotDifferentiableError, match=r"Python objects.*np\.vectorize"):
            way(x)
    for f in (lambda x: np.vectorize(lambda v: v, otypes=["O"])(x), lambda x: np.fromiter(x, object)):
        with pytest.raises(TracedValueError, match="traced numbers"):
            grad(lambda x: f(x).sum())(x)  # noqa: B023
    reduced = jit(lambda x: np.frompyfunc(lambda a, b: a * b, 2, 1).reduce(x))
    assert float(reduced(x)) == 2.0 and float(reduced(x * 3)) == 18.0


def test_a_signature_works_whatever_ran_before() -> None:
    """NumPy's own code finds what stands for its private functions also if it was bound earlier."""
    program = """
import minnp.numpy as np
from minnp import jit
jit(lambda x: np.median(x) + np.gradient(x).sum())(np.ones(4))
f = jit(lambda x: np.vectorize(lambda v: v * v[0], signature="(n)->(n)")(x))
assert f(np.full((2, 3), 2.0)).tolist() == [[4.0] * 3] * 2
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_rebound_code_has_the_names_it_uses() -> None:
    """To make those of all of NumPy took half a second of the first call that has a gradient, or is compiled."""
    names = {"__name__": "numpy.of_this_test", "add": onp.add, "sin": onp.sin}
    exec("def f(x): return [add(y, 1) for y in x]", names)
    made = _rebind(names["f"])
    assert "add" in made.__globals__ and "sin" not in made.__globals__
    assert made([1]) == [2]
