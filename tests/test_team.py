"""The work that threads share in C: an LSTM through all its steps, and matrix products in pieces."""

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp.core import compiled
from minnp.core.cpu import products
from minnp.npx import cells

pytestmark = [
    pytest.mark.either("about the C part"),
    pytest.mark.skipif(
        compiled.team is None or products.best() is None, reason="minnp was installed without a C compiler"
    ),
]


@pytest.fixture(autouse=True)
def blas(library: Any) -> Any:
    return library


SHAPES = [(6, 64, 9, 40), (4, 33, 24, 32), (5, 3, 4, 7), (1, 16, 5, 8), (2, 1, 1, 1)]


def drawn(steps: int, n: int, inputs: int, hidden: int) -> tuple[list, tuple]:
    """The arguments of an LSTM, and cotangents of its outputs and cells."""
    rng = onp.random.default_rng(0)
    shapes = [(steps, n, inputs), (n, hidden), (n, hidden), (4 * hidden, inputs), (4 * hidden, hidden), (4 * hidden,)]
    draw = lambda s: (0.5 * rng.standard_normal(s)).astype("f4")
    return list(map(draw, shapes)), (draw((steps, n, hidden)), draw((steps, n, hidden)))


def wide(arrays: tuple) -> tuple:
    return tuple(None if a is None else a.astype("f8") for a in arrays)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lstm_of_floats_is_that_of_doubles_both_ways(shape):
    given, (gh, gc) = drawn(*shape)
    y, exact = cells.lstm.numpy(*given), cells.lstm.numpy(*wide(given))
    for a, b in zip(y, exact, strict=True):
        onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    for g in ((gh, gc), (gh, None), (None, gc)):
        grads = cells._lstm_back([True] * 6, g, y, *given)
        for a, b in zip(grads, cells._lstm_back([True] * 6, wide(g), exact, *wide(given)), strict=True):
            onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_bits_do_not_depend_on_threads_or_on_the_layout_of_weights(shape):
    (x, h, c, w_x, w_h, b), g = drawn(*shape)
    found, before = set(), minnp.set_num_threads(1)
    try:
        for n in (1, 2, 3, 8):
            minnp.set_num_threads(n)
            for order in "CF":
                given = (x, h, c, onp.array(w_x, order=order), onp.array(w_h, order=order), b)
                y = cells.lstm.numpy(*given)
                grads = cells._lstm_back([True] * 6, g, y, *given)
                found.add(b"".join(a.tobytes() for a in (*y, *grads[1:])))
    finally:
        minnp.set_num_threads(before)
    assert len(found) <= 2  # x w_x^T is a product of its own: BLAS adds in an order that depends on the layout


def test_gates_are_within_three_units_in_the_last_place():
    x = onp.concatenate([onp.linspace(-16, 16, 1 << 16), onp.linspace(-0.01, 0.01, 999), [80.0, -80.0, 1e30, 0.0]])
    x = x.astype("f4")
    zeros = onp.zeros((len(x), 1), "f4")
    ones, no_weight = onp.ones((4, 1), "f4"), onp.zeros((4, 1), "f4")
    _, cs, gates, tanh_cs = cells.lstm.numpy(x[None, :, None], zeros, zeros, ones, no_weight, no_weight[:, 0])
    exact = x.astype("f8")
    want = (1 / (1 + onp.exp(-exact)), onp.tanh(exact), onp.tanh(cs.astype("f8").ravel()))
    for got, value in zip((gates[0], gates[3], tanh_cs), want, strict=True):
        assert (abs(got.ravel() - value) <= 3 * onp.spacing(abs(value).astype("f4"))).all()
    nothing = cells.lstm.numpy(onp.full((1, 1, 1), onp.nan, "f4"), *[zeros[:1]] * 2, ones, no_weight, no_weight[:, 0])
    assert all(onp.isnan(a).all() for a in nothing)


def test_an_infinite_weight_is_reported_as_by_numpy():
    given, _ = drawn(2, 3, 4, 5)
    given[4][0, 0], given[1][0] = onp.inf, 0
    with pytest.warns(RuntimeWarning, match="invalid value"):
        hs, *_ = cells.lstm.numpy(*given)
    assert onp.isnan(hs).any() and not onp.isnan(hs).all()


def test_products_of_several_callers_at_once():
    a, b = (onp.random.default_rng(i).standard_normal((300, 300)).astype("f4") for i in range(2))
    want, wrong = products.matmul(a, b), []

    def caller() -> None:
        for _ in range(20):
            if not onp.array_equal(products.matmul(a, b), want):
                wrong.append(1)

    callers = [threading.Thread(target=caller) for _ in range(3)]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong
    onp.testing.assert_allclose(want, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_stacks_of_matrices_as_they_lie(kind):
    rng = onp.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(kind)
    turned = lambda x: x.swapaxes(-1, -2)
    a, b = draw(6, 300, 9, 40), draw(6, 300, 40, 11)
    heads = draw(64, 30, 8, 40).swapaxes(1, 2)
    cases = [(a, b), (turned(draw(6, 300, 40, 9)), b), (a, turned(draw(6, 300, 11, 40))), (heads, turned(heads))]
    cases += [(draw(20, 3000, 10), draw(20, 10, 10)), (a[..., ::2], b[:, :, ::2])]
    before = minnp.set_num_threads(1)
    try:
        for x, y in cases:
            found = set()
            for n in (1, 3):
                minnp.set_num_threads(n)
                z = products.stacked(x, y)
                onp.testing.assert_allclose(z, x @ y, rtol=1e-4, atol=1e-4)
                found.add(z.tobytes())
            assert len(found) == 1
    finally:
        minnp.set_num_threads(before)
    b[2, 3, 4, 5] = onp.nan
    z = products.stacked(a, b)
    assert onp.isnan(z[2, 3, :, 5]).all() and onp.isnan(z).sum() == 9


FORKS = """
import os, sys
sys.argv[1] == "mkl" and __import__("torch")
import numpy
from minnp.core.cpu import products
a = numpy.ones((300, 300), "f4")
right = lambda: bool((products.matmul(a, a.copy()) == 300).all())
assert right()
child = os.fork()
if not child:
    os._exit(0 if right() else 1)
assert os.waitpid(child, 0)[1] == 0 and right()
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_hires_threads_of_its_own(request):
    """In a process of its own: this one may hold JAX, which warns of every fork."""
    run = [sys.executable, "-c", FORKS, request.node.callspec.params["library"]]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr


def test_what_does_not_fit_is_refused(blas):
    a = onp.ones((4, 4), "f4")
    call = lambda *matrices: compiled.team.gemm(blas.places["f"], blas.local, *matrices, 1.0, 0.0, 1, 1)
    for matrices in ((a, a, a[:3]), (a, a, a.astype("f8")), (a, a[:3], a), (a, a, onp.ones((4, 8), "f4")[:, ::2])):
        with pytest.raises(ValueError, match=r"do not fit|dense"):
            call(*matrices)
    with pytest.raises(ValueError, match=r"another size"):
        compiled.team.lstm((1, 1, 1, 4, 4, 4, 32), a, a, *[a] * 9)


def test_what_is_refused_is_let_go(blas):
    """A view whose memory a function still held could not be released."""
    team, views = compiled.team, []

    def view(*shape, kind="f"):
        size = {"f": 4, "d": 8, "q": 8, "B": 1}[kind] * onp.prod(shape, dtype=int)
        views.append(memoryview(bytearray(int(size))).cast(kind, shape))
        return views[-1]

    def constant(*shape):
        views.append(view(*shape).toreadonly())
        return views[-1]

    a, stack, flat = view(4, 4), view(2, 4, 4), view(16)
    routine, local = blas.places["f"], blas.local
    sizes = (1, 1, 1, 4, 4, 4, 32)  # of an LSTM of one step and four rows, of four inputs and numbers
    states = [view(n, 4, 4) for n in (1, 4, 1, 1, 4, 1)]
    for function, *args in [
        (team.gemm, routine, local, a),
        (team.gemm, routine, local, a, a, None, 1.0, 0.0, 1, 1),
        (team.gemm, routine, local, a, a, constant(4, 4), 1.0, 0.0, 1, 1),
        (team.gemm, routine, local, a, a, flat, 1.0, 0.0, 1, 1),
        (team.gemm, "address", local, a, a, a, 1.0, 0.0, 1, 1),
        (team.stack, routine, local, stack, stack),
        (team.stack, routine, local, stack, stack, None, 1, 1),
        (team.stack, routine, local, stack, stack, constant(2, 4, 4), 1, 1),
        (team.lstm, sizes),
        (team.lstm, sizes[1:], a, a, *[a] * 9),
        (team.lstm, sizes, a, a, view(1, 4, 4), a, a, flat, *[states[k] for k in (1, 2, 3)], a, a),
        (team.lstm, sizes, view(16, 4), flat, view(1, 4, 4), a, a, flat, view(4, 16), a, a, view(4, 4, 4), a),
        (team.lstm, sizes, view(16, 4), a, view(1, 4, 4), a, a, flat, view(4, 16), a, a, view(4, 4, 4), a),
        (team.lstm, sizes, view(16, 4), a, view(1, 4, 4), a, a, flat, view(4, 16), constant(4, 4), a, view(64), a),
        (team.lstm_back, sizes),
        (team.lstm_back, sizes, a, a, None, None, a, a, *[a] * 7),
        (team.conv, (), a),
        (team.conv, (routine, local, 1, 0, *[1] * 17), *[a] * 7),
        (team.conv, (routine, local, 1, 1, 9, 1, *[1] * 9, 1, 1, 0, 0, 1, 1), a, *[None] * 5, a),
        (team.kernel, "no such kernel", 4, 4, (), 1, a, a),
        (team.kernel, "softmax", 4, 4, (), 1, a, None),
        (team.kernel, "softmax", 4, 4, (), 1, a, constant(4, 4)),
        (team.kernel, "softmax", 4, 4, (), 1, a, view(4, 3)),
        (team.kernel, "softmax", 4, 4, ("number",), 1, a, a),
        (team.run, 0),
        (team.run, 0, "step", 1, 1),
        (team.stencil, a),
        (team.stencil, view(8, kind="q"), view(1, kind="q"), 1, 1, 1, a, view(1, 2, 4)),
        (team.stencil, view(8, kind="q"), view(1, 1, 2, kind="q"), "lag", 1, 1, a, view(1, 2, 4)),
        (team.stencil, view(8, kind="q"), view(1, 1, 2, kind="q"), 1, 1, 1, constant(4, 4), view(1, 2, 4)),
        (team.add_at, a, view(4, kind="q")),
        (team.add_at, a, view(4, kind="q"), None, 1),
        (team.add_at, constant(4, 4), view(4, kind="q"), view(4, 4), 1),
        (team.add_at, a, view(4, kind="q"), view(4, 4, kind="d"), 1),
        (team.add_at, a, view(3, kind="q"), view(4, 4), 1),
    ]:
        with pytest.raises((TypeError, ValueError, BufferError)):
            function(*args)
    if hasattr(team, "integers"):
        q, panels, vector = view(4, 8, kind="B"), view(8, 64, kind="B"), view(4)
        for args in [
            (q, panels, vector, vector, vector, view(4, 4, kind="d")),
            (q, panels, vector, vector, None, view(3, 4)),
            (q, view(8, 32, kind="B"), vector, vector, None, a),
            (q, panels, view(3), vector, None, a),
            (q, panels, vector, vector, view(3), a),
            (q, None, vector, vector, None, a),
            (q, panels, vector, vector, None, constant(4, 4)),
        ]:
            with pytest.raises((ValueError, BufferError)):
                team.integers(*args, 0, 1)
    assert team.stack(routine, local, stack, stack, view(2, 4, 3), 1, 1) is None
    assert team.kernel("softmax", 4, 4, (), 1, a, a) is None  # whose memory is shared
    assert team.add_at(a, view(4, kind="q"), a, 1) is None
    for one in views:
        one.release()


def test_traced_sums_of_short_rows_and_squares_of_what_was_summed():
    x = np.array(onp.random.default_rng(0).standard_normal((7, 3000, 10)).astype("f4"))
    for keepdims in (False, True):
        y, g = minnp.value_and_grad(lambda x, k=keepdims: np.sum(np.sin(np.sum(x * x, -1, keepdims=k))))(x)
        inner = onp.sum(onp.square(onp.asarray(x, "f8")), -1, keepdims=True)
        onp.testing.assert_allclose(y, onp.sin(inner).sum(), rtol=1e-3)
        onp.testing.assert_allclose(g, 2 * onp.cos(inner) * onp.asarray(x), rtol=1e-4, atol=1e-4)
        assert g.dtype == x.dtype


def test_rows_added_to_a_small_table_and_an_infinite_one_stays_where_it_is():
    rng = onp.random.default_rng(0)
    table, rows = np.array(rng.standard_normal((60, 24)).astype("f4")), rng.integers(-60, 60, (40, 32))
    g = rng.standard_normal((40, 32, 24)).astype("f4")
    for at in (None, onp.inf, onp.nan):
        if at is not None:
            g[3, 4, 5] = at
        wanted = onp.zeros((60, 24))
        onp.add.at(wanted, rows, g.astype("f8"))
        got = minnp.vjp(lambda t: t[rows], table)[1](g)[0]
        onp.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
