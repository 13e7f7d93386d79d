"""Lists, and classes that are lists, of traced numbers are operands and arguments as arrays are."""

from __future__ import annotations

from collections import namedtuple

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, jvp, vmap


class History(list):
    pass


Pair = namedtuple("Pair", "a b")


def written(x, write):
    y = x * 1.0
    write(y)
    return np.sum(y * y)


def added(y, values):
    y += values


PROGRAMS = {
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
