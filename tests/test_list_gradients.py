"""Gradients of functions that fill lists in loops: the same as eager ones, and no list is left to Python."""

import numpy
import pytest

import minnp
import minnp.numpy as np
from minnp import grad, jit, jvp, vmap
from minnp.core.llvm import engine

pytestmark = pytest.mark.skipif(not engine.available(), reason="llvmlite is not installed")


def powers(p, n):
    out, x = [], p[0]
    for _ in range(n):
        x = x * p[1] + np.sin(x) * 0.1
        out.append(x)
    return np.sum(np.array(out) ** 2) if out else p[1]


def trajectory(p, n):
    steps, x = [], p.copy()
    for _ in range(n):
        x = x + 0.01 * np.sin(x[::-1])
        steps.append(x)
    return np.sum(np.array(steps)[:, 0] ** 2) if n else p[0]


def last_but_one(p, n):
    out = [p[0], p[1]]
    for _ in range(n):
        out.append(out[-1] * 0.5 + np.tanh(out[-2]))
    total = 0.0
    for x in out:
        total += x * x
    return total


def two_lists(p, n):
    times, values = [0.0], [p[0]]
    while times[-1] < n * 0.01:
        step = 0.01 * (1 + p[1] ** 2)
        values.append(values[-1] - step * values[-1] * p[1])
        times.append(times[-1] + step)
    return values[-1] + np.mean(np.array(values))


def comprehension(p, n):
    xs = [p[0] * i for i in range(1, n + 2)]
    return sum(xs) / len(xs)


def states(p, n):
    kept, h = [], np.zeros(3)
    for _ in range(n + 1):
        h = np.tanh(p[0] * h + p[1])
        kept.append(h.copy())
    return np.sum(np.stack(kept) * np.arange(3.0))


def lists_in_turn(p, n):
    sums = [p[0]]
    for i in range(n):
        row = []
        for j in range(5):
            row.append(p[0] * i + p[1] * j)
        sums.append(sum(row))
    return np.sum(np.array(sums) ** 2)


def joined(p, n):
    parts = [p]
    for k in range(n):
        parts.append(parts[-1] * p[k % 2])
    return np.sum(np.concatenate(parts) ** 2) + np.vstack(parts)[-1, 0]


def a_stack(p, n):
    stack, total = [p[0]], 0.0
    for k in range(n):
        if k % 3 == 2:
            total += stack.pop() * p[1]
        else:
            stack.append(p[0] * p[1] + k)
    return total + stack[0]


def overwritten(p, n):
    out = [p[0]] * 4
    for k in range(n):
        out[k % 4] = out[(k + 1) % 4] * p[1] + p[0]
    return out[0] * out[1] + sum(out)


def kept_row(p, n):
    rows, w = [], p * 1.0
    for _ in range(n):
        w = w * p
        rows.append(w)
        if len(rows) > 2:
            w = rows[0] + w
            rows.pop()
    return np.sum(w) + (np.sum(rows[-1]) if rows else 0.0)


FUNCTIONS = [
    *(powers, trajectory, last_but_one, two_lists, comprehension, states),
    *(lists_in_turn, joined, a_stack, overwritten, kept_row),
]
P = np.array([0.5, 0.9])


def stays_in_python():
    return [r for r in minnp.report(reset=True) if r["function"].startswith("loop in") and r["backend"] == "python"]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_the_eager_ones(f):
    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        minnp.report(reset=True)
        compiled = make(f)
        for n in (11, 30, 30, 70):
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10, atol=1e-12)
        assert stays_in_python() == []
        for n in (9, 1, 0):  # a few steps of arrays are a graph
            numpy.testing.assert_allclose(compiled(P, n), grad(f)(P, n), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_gradients_are_the_differences_of_the_first(f):
    slope = lambda p: np.sum(grad(f)(p, 7) * np.array([1.0, -0.5]))
    found = jit(grad(lambda p: np.sum(grad(f)(p, 7) * np.array([1.0, -0.5]))))(P)
    step = 1e-6
    for k in range(2):
        e = step * numpy.eye(2)[k]
        assert found[k] == pytest.approx((slope(P + e) - slope(P - e)) / (2 * step), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_tangents_and_batches(f):
    direction = np.array([0.3, -0.7])
    tangent = jit(lambda p: jvp(lambda q: f(q, 9), (p,), (direction,))[1])(P)
    assert tangent == pytest.approx(float(grad(f)(P, 9) @ direction), rel=1e-9)
    points = np.array([[0.5, 0.9], [0.2, -0.4], [1.1, 0.3]])
    of_each = [grad(f)(p, 9) for p in points] if f is not two_lists else None
    if of_each is not None:  # each example of that one takes its own number of steps
        numpy.testing.assert_allclose(vmap(jit(grad(f)), (0, None))(points, 9), of_each, rtol=1e-9)
        numpy.testing.assert_allclose(jit(vmap(grad(f), (0, None)))(points, 9), of_each, rtol=1e-9)


def test_lists_have_room_for_all_that_is_appended():
    minnp.report(reset=True)
    compiled = jit(grad(powers))
    for n in (3, 300, 5000, 20):
        numpy.testing.assert_allclose(compiled(P, n), grad(powers)(P, n), rtol=1e-9)
    assert stays_in_python() == []


@pytest.mark.parametrize("make", [lambda f: grad(jit(f)), lambda f: jit(grad(f))])
def test_a_list_that_is_empty_has_no_maximum(make):
    def largest(p, n):
        out = []
        for k in range(n):
            out.append(p[k % 2] * k)
        return max(out)

    assert make(largest)(P, 5).tolist() == [0.0, 3.0]
    with pytest.raises(ValueError, match="empty"):
        make(largest)(P, 0)


def test_an_array_that_is_written_after_it_was_appended():
    def rows(p, n):
        kept, row = [], np.zeros(2)
        for k in range(n):
            row[k % 2] = p[0] * k
            kept.append(row)  # the same array each time
        return np.sum(np.array(kept) * p)

    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        for n in (1, 4, 5):
            numpy.testing.assert_allclose(make(rows)(P, n), grad(rows)(P, n), rtol=1e-12)


def test_an_item_that_is_written_is_the_array_that_was_appended():
    def first(p, n):
        kept, x = [], p * 2.0
        for k in range(n):
            kept.append(x)
            kept[0][k % 2] = p[1] * k
        return np.sum(x) + np.sum(kept[-1] ** 2)

    for make in (jit, lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        plain = first if make is jit else grad(first)
        for n in (1, 2, 5):
            numpy.testing.assert_allclose(make(first)(P, n), plain(P, n), rtol=1e-12)


def test_arrays_of_other_shapes_in_one_list():
    def longer(p, n):
        kept, x = [], p * 1.0
        for _ in range(n):
            kept.append(x)
            x = np.append(x, x[-1] * p[0])
        return np.sum(np.concatenate(kept))

    for make in (jit, lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        plain = longer if make is jit else grad(longer)
        for n in (1, 2, 6):
            numpy.testing.assert_allclose(make(longer)(P, n), plain(P, n), rtol=1e-12)


def test_ranges_of_floats():
    def sampled(p, start, stop, step):
        total = 0.0
        for k in range(3):
            for t in np.arange(start, stop, step):
                total += p[k % 2] * t
        return total

    for ends in ((0.0, 1.0, 0.1), (1, 2.5, 0.3), (0.0, -1.0, -0.25), (2.0, 1.0, 0.5)):
        assert jit(sampled)(P, *ends) == pytest.approx(float(sampled(P, *ends)), rel=1e-14)
    with pytest.raises(ZeroDivisionError):
        jit(sampled)(P, 0.0, 1.0, 0.0)


def test_functions_that_are_called():
    def loss(p, n):
        return trajectory(p, n) * 2.0 + states(p, n)

    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        minnp.report(reset=True)
        for n in (20, 20, 33):
            numpy.testing.assert_allclose(make(loss)(P, n), grad(loss)(P, n), rtol=1e-10)
        assert stays_in_python() == []


def path_of(p, n):
    state, path = np.array([1.0, 0.5]), []
    for _ in range(n):
        x, y = state
        state = state + 0.01 * np.array([p[0] * x - x * y, y * x - p[1] * y])
        path.append(state)
    return np.stack(path)


def test_lists_of_functions_that_are_called_become_arrays():
    def loss(p, n):
        return np.mean((path_of(p, n)[:, 0] - 1.2) ** 2)

    for make in (lambda f: grad(jit(f)), lambda f: jit(grad(f))):
        minnp.report(reset=True)
        compiled = make(loss)
        for n in (30, 30, 75):
            numpy.testing.assert_allclose(compiled(P, n), grad(loss)(P, n), rtol=1e-10)
        assert stays_in_python() == []
