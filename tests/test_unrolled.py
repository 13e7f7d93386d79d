"""What unrolled loops leave behind is gathered: sums of products, parts that make a whole, one matrix for all steps."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit
from minnp.core.cpu import products
from minnp.core.jit.unrolled import gather_steps, row_name
from minnp.core.llvm.engine import available
from minnp.core.passes.dead import dead_code

pytestmark = [
    pytest.mark.skipif(not available(), reason="needs llvmlite: pip install 'llvmlite>=0.45'"),
    pytest.mark.skipif(not products.can_update(), reason="needs a BLAS that adds"),
    pytest.mark.host("machine code is the host's"),
]
STEPS, ROWS, WIDE = 6, 16, 128


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = onp.random.default_rng(0)
    return [np.array(rng.standard_normal(s).astype("f") / 8) for s in shapes]


def gathered(f: Any, *args: Any) -> dict[str, int]:
    """How often the rewritten graph of f calls what."""
    graph = jit(f).lower(*args).graph
    gather_steps(graph)
    dead_code(graph).lint()
    names = [row_name(n) or n.target.__name__ for n in graph.nodes if n.op == "call_function"]
    return {name: names.count(name) for name in names}


def agrees(f: Any, *args: Any) -> None:
    compiled, expected = jit(f), f(*args)
    for _ in range(2):
        onp.testing.assert_allclose(compiled(*args), expected, rtol=2e-4, atol=2e-5)


def recurrent(w: Any, x: Any) -> Any:
    h = x[0]
    for t in range(1, STEPS):
        a = np.tanh((h + x[t]) @ w)
        h = a[:, WIDE:] * a[:, :WIDE] + h
    return np.sum(h)


def test_the_gradient_of_a_recurrent_network_is_one_sum_of_products() -> None:
    w, x = arrays((WIDE, 2 * WIDE), (STEPS, ROWS, WIDE))
    calls = gathered(grad(recurrent), w, x)
    assert calls["update"] == 1 and calls["concatenate"] == STEPS - 1 and "index_add" not in calls
    assert calls["matmul"] == 2 * STEPS - 3 and calls["ascontiguousarray"] == 1
    agrees(grad(recurrent), w, x)
    step = jit(lambda w, x: w.__isub__(0.1 * grad(recurrent)(w, x)).sum())
    want = w - 0.1 * grad(recurrent)(w, x)
    step(w, x)
    onp.testing.assert_allclose(w, want, rtol=1e-4, atol=1e-5)
    want = w - 0.1 * grad(recurrent)(w, x)
    step(w, x)
    onp.testing.assert_allclose(w, want, rtol=1e-4, atol=1e-5)


def test_other_terms_are_added_and_shared_products_stay() -> None:
    a, b, c = arrays((STEPS, 64, 64), (STEPS, 64, 64), (64, 64))

    def f(a: Any, b: Any, c: Any) -> Any:
        shared, y = a[0] @ b[0], c
        for t in range(1, STEPS):
            y = y + a[t] @ b[t]
        return y + shared, shared

    calls = gathered(f, a, b, c)
    assert calls["update"] == 1 and calls["matmul"] == 1 and calls["add"] == 2
    for got, want in zip(jit(f)(a, b, c), f(a, b, c), strict=True):
        onp.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("cuts", "joined"),
    [
        ([(0, 3), (3, 8)], True),
        ([(5, 8), (0, 2), (2, 5)], True),
        ([(0, 3), (2, 8)], False),  # one column in both
        ([(0, 3), (4, 8)], False),  # and one in none
        ([(0, 8), (0, 8)], False),
        ([(0, 3), (3, 8), (3, 8)], False),
    ],
)
def test_slices_are_joined_where_they_make_the_whole(cuts: list, joined: bool) -> None:
    (x,) = arrays((4, 8))

    def f(x: Any) -> Any:
        return sum(np.sum(x[:, i:j] ** (k + 2)) for k, (i, j) in enumerate(cuts))

    assert ("concatenate" in gathered(grad(f), x)) is joined
    agrees(grad(f), x)


def test_slices_of_rows_and_of_columns_are_not_joined() -> None:
    (x,) = arrays((6, 6))
    f = grad(lambda x: np.sum(x[:3] ** 2) + np.sum(x[:, 3:] ** 3))
    assert "concatenate" not in gathered(f, x)
    agrees(f, x)


def test_a_sum_that_doubles_itself_stays_as_it_is() -> None:
    (x,) = arrays((4, 8))

    def f(x: Any) -> Any:
        for _ in range(40):
            x = x + x
        return x * 2.0**-40

    agrees(f, x)
