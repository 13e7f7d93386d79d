"""Lists, classes that are lists or sequences, and objects with NumPy's protocols are operands and arguments as arrays
are, where they hold traced numbers."""

from __future__ import annotations

from collections import deque, namedtuple
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp, vmap
from minnp.errors import TracedValueError


class History(list):
    pass


Pair = namedtuple("Pair", "a b")


class Readings(Sequence):
    def __init__(self, v: Any) -> None:
        self.v = v

    def __len__(self) -> int:
        return len(self.v)

    def __getitem__(self, i: Any) -> Any:
        return self.v[i]


class Image:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.v


class Wrapped:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Wrapped:
        inputs = [i.v if isinstance(i, Wrapped) else i for i in inputs]
        options = {k: v for k, v in options.items() if k != "out"}
        return Wrapped(getattr(ufunc, method)(*inputs, **options))


class Unit(np.lib.mixins.NDArrayOperatorsMixin):
    __init__ = Wrapped.__init__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Unit:
        return Unit(getattr(ufunc, method)(*[i.v if isinstance(i, Unit) else i for i in inputs], **options))


class Vector:
    def __init__(self, *v: Any) -> None:
        self.v = v

    def __add__(self, other: Vector) -> Vector:
        return Vector(*[a + b for a, b in zip(self.v, other.v, strict=True)])

    def __rmul__(self, k: Any) -> Vector:
        return Vector(*[k * a for a in self.v])

    def __radd__(self, k: Any) -> Any:
        return k + sum(self.v)


OTHERS: dict[str, Any] = {"numpy": onp, "__name__": "a_library"}  # which does not know minnp
exec(
    """class Quantity(numpy.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, v):
        self.v = v

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return Quantity(getattr(ufunc, method)(*[i.v if isinstance(i, Quantity) else i for i in inputs], **options))

class Strict(Quantity):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if not all(isinstance(i, (numpy.ndarray, Strict)) for i in inputs):
            return NotImplemented
        return Strict(getattr(ufunc, method)(*[i.v if isinstance(i, Strict) else i for i in inputs]))
""",
    OTHERS,
)
Quantity, Strict = OTHERS["Quantity"], OTHERS["Strict"]


def written(x, write):
    y = x * 1.0
    write(y)
    return np.sum(y * y)


def added(y, values):
    y += values


def multiplied(x, by):
    x = x * 1.0
    x *= by
    return x


PROGRAMS = {
    "a sequence": lambda x: np.sum(np.array(Readings(x)) ** 2),
    "sequences of sequences": lambda x: np.sum(np.asarray([Readings(x), Readings([x[0], 1, 2])]) ** 2),
    "a sum of a sequence": lambda x: np.sum(Readings([x[0] ** 2, x[1] * x[2]])),
    "an operator with a sequence": lambda x: np.sum(x * Readings(x)) + np.sum(np.ones(3) * deque(x)),
    "a sequence written": lambda x: written(x, lambda y: y.__setitem__(slice(2), Readings(x[1:] ** 2))),
    "an object with an array": lambda x: np.sum(np.asarray(Image(x)) ** 2),
    "an object with an array, of another dtype": lambda x: np.sum(np.asarray(Image(x), complex) ** 2).real,
    "a function of one": lambda x: np.sum(np.sin(Image(x))) + np.sum(np.stack([Image(x), Image(x * x)])),
    "an operator with one": lambda x: np.sum(x * Image(x)) + np.sum(Image(x) * x) + np.sum(np.ones(3) * Image(x)),
    "one written": lambda x: written(x, lambda y: y.__setitem__(..., Image(x * x))),
    "a ufunc of objects": lambda x: np.sum(np.multiply(x, Unit(x)).v) + np.sum(np.sin(Unit(x)).v),
    "an operator with an object": lambda x: np.sum((x * Unit(x)).v) + np.sum((-x @ Unit(np.ones((3, 2)))).v),
    "a comparison with one": lambda x: np.sum(np.where((x > Unit(2.0)).v, x, 2 * x)),
    "in place, one": lambda x: np.sum(multiplied(x, Unit(x)).v),
    "a ufunc's method": lambda x: np.sum(np.add.reduce(Unit(np.outer(x, x))).v),
    "a class without operators": lambda x: np.sum((x * Wrapped(x)).v) + np.sum(np.multiply(x, Wrapped(x)).v),
    "in place, without operators": lambda x: np.sum(multiplied(x, Wrapped(x)).v),
    "a number and a sequence": lambda x: np.sum(x[0] ** range(3)) + np.sum(x[1] - Readings([1.0, x[2], 3.0])),
    "an array and a sequence": lambda x: np.sum(x * range(3)) + np.sum(multiplied(x, range(3)) * x),
    "a number and an object": lambda x: np.prod((Vector(0.0, 1.0) + x[0] * Vector(1.0, x[1])).v),
    "a number and an object that makes a number": lambda x: x[0] + Vector(1.0, x[1]),
    "a number and a fraction": lambda x: x[0] * Fraction(1, 3) - Fraction(1, 7) / x[1] + x[2] ** Fraction(3, 2),
    "a number that is compared with a fraction": lambda x: x[1] if x[0] / x[0] / 3 == Fraction(1, 3) else x[0],
    "a number that is asked what it has": lambda x: x[0] if hasattr(x[0], "is_integer") else x[1],
    "a library's class": lambda x: np.sum((x * Quantity(x)).v) + np.sum(np.sin(Quantity(x)).v),
    "matmul": lambda x: x @ [1.0, 2.0, 3.0],
    "reflected matmul": lambda x: [1.0, 2.0, 3.0] @ x,
    "product": lambda x: np.sum(x * [x[0], x[1], 2.0]),
    "reflected product": lambda x: np.sum([x[0], x[1], 2.0] * x),
    "of a constant": lambda x: np.sum(np.ones(3) * [x[0], 1, 2]),
    "power": lambda x: np.sum(x ** [2, 3, 1]),
    "comparison": lambda x: np.sum(np.where(x > [x[1], 0, 0], x, 2 * x)),
    "in place": lambda x: written(x, lambda y: added(y, [x[0], 1, 2])),
    "put": lambda x: written(x, lambda y: np.put(y, [0, 0, -1], [1.0, x[1], x[2]])),
    "put, method": lambda x: written(x, lambda y: y.put([0], [x[1]])),
    "place": lambda x: written(x, lambda y: np.place(y, y > 1.5, [x[1]])),
    "putmask": lambda x: written(x, lambda y: np.putmask(y, y > 1.5, [x[1], x[0]])),
    "copyto": lambda x: written(x, lambda y: np.copyto(y, [x[1], 2.0, x[0]])),
    "fill_diagonal": lambda x: np.sum(written(np.outer(x, x), lambda y: np.fill_diagonal(y, [x[1], x[0]]))),
    "a class that is a list": lambda x: np.sum(np.asarray(History([x, x * 2]))[:, 0] ** 2),
    "a mean of one": lambda x: np.sum(np.mean(History([x, x * x]), axis=0)),
    "a named tuple": lambda x: np.sum(np.array(Pair(x[0], x[1])) ** 2) + np.linalg.norm(Pair(x[1], x[2])),
}
ELSE: list[int] = []  # which no program reads
POINTS = onp.array([[1.1, 2.2, 3.3], [1.3, 2.1, 3.4]])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_list_is_an_operand_as_an_array_is(name: str) -> None:
    f = PROGRAMS[name]
    slopes = []
    for x in POINTS:
        at = lambda d, x=x: float(f(np.array(x + d)))
        slopes.append(onp.array([(at(1e-6 * e) - at(-1e-6 * e)) / 2e-6 for e in onp.eye(3)]))
        onp.testing.assert_allclose(onp.asarray(grad(f)(np.array(x))), slopes[-1], atol=1e-6)
        onp.testing.assert_allclose(onp.asarray(jvp(f, (np.array(x),), (np.ones(3),))[1]), slopes[-1].sum(), atol=1e-6)
    compiled, derivative = jit(f), jit(grad(f))
    for x, slope in [*zip(POINTS, slopes)] * 2:
        onp.testing.assert_allclose(float(compiled(np.array(x))), float(f(np.array(x))), rtol=1e-12)
        onp.testing.assert_allclose(onp.asarray(derivative(np.array(x))), slope, atol=1e-6)
    if name not in ("place", "putmask"):  # whose masks differ from one example to the next
        onp.testing.assert_allclose(onp.asarray(vmap(grad(f))(np.array(POINTS))), slopes, atol=1e-6)
        onp.testing.assert_allclose(onp.asarray(vmap(f)(np.array(POINTS))), [float(f(x)) for x in np.array(POINTS)])


def test_what_else_a_module_holds_captures_nothing_anew() -> None:
    compiled = jit(PROGRAMS["an operator with an object"])
    for _ in range(3):
        ELSE.append(len(ELSE))
        compiled(np.array(POINTS[0]))
    assert compiled.captures == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum((x * Strict(x)).v) + np.sum(np.multiply(x, Strict(x)).v),
        lambda x: np.sum(multiplied(x, Strict(x)).v),
    ],
)
def test_a_class_that_knows_numpys_arrays_alone_is_given_those(f: Any) -> None:
    wanted = [float(f(x)) for x in np.array(POINTS)]
    compiled = jit(f)
    for x, y in [*zip(np.array(POINTS), wanted)] * 2:
        assert float(compiled(x)) == y
    assert vmap(f)(np.array(POINTS)).tolist() == wanted
    with pytest.raises(TracedValueError, match="gradient would be lost"):
        grad(f)(np.array(POINTS[0]))


def test_a_list_says_where_under_every_policy() -> None:
    some = [True, False] * 4

    def everywhere(np):
        x = np.arange(8.0)
        out = np.ones(8)
        np.add(out, x, out=out, where=some)
        parts = [np.sum(x, where=some), np.mean(x, where=some), np.std(x, where=some), np.any(x > 6, where=some)]
        return [out, np.max(x, where=some, initial=-1.0), np.multiply.reduce(x + 1, where=some), *parts]

    for got, want in zip(everywhere(np), everywhere(onp), strict=True):
        onp.testing.assert_allclose(onp.asarray(got), want, rtol=1e-14)
