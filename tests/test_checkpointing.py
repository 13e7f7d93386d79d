"""checkpoint(f) is f: values, gradients, writes, draws and side effects; only the memory is another."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import checkpoint, grad, hessian, hvp, jit, jvp, value_and_grad, vjp, vmap

X = onp.array([0.7, 1.3, 2.1, 0.4])
C = onp.array([1.0, -2.0, 0.5, 3.0])


def close(got: Any, want: Any) -> None:
    onp.testing.assert_allclose(onp.asarray(got), onp.asarray(want), 1e-9, 1e-11)


def differences(f: Callable, x: onp.ndarray) -> onp.ndarray:
    out = onp.zeros_like(x)
    for i in range(x.size):
        e = onp.zeros_like(x)
        e[i] = 1e-6
        out[i] = (float(f(np.array(x + e))) - float(f(np.array(x - e)))) / 2e-6
    return out


class Holder:
    def __init__(self) -> None:
        self.seen: Any = None
        self.scale = np.array(C)


HOLDER, KEPT, COUNTER = Holder(), [], np.array(C)


# each is given `mark`, which is checkpoint, or leaves a function as it is
def argument_written(x: Any, mark: Callable) -> Any:
    def f(x: Any) -> Any:
        x *= 2
        x[1] = x[0] * x[2]
        return (x**2).sum()

    return mark(f)(x)


def written_seen_after(x: Any, mark: Callable) -> Any:
    def f(h: Any) -> Any:
        h[1:] *= h[:-1]
        return np.sin(h).sum()

    h = x * 1.0
    return mark(f)(h) + (h**3).sum()


def views_given(x: Any, mark: Callable) -> Any:
    def f(a: Any, b: Any) -> Any:
        a *= 3
        b += a
        a[0] = b[1] ** 2
        return (a * b).sum()

    h = x * 1.0
    return mark(f)(h[:2], h[2:]) + (h**2).sum()


def the_same_twice(x: Any, mark: Callable) -> Any:
    def f(a: Any, b: Any) -> Any:
        a *= 3
        return (a * b).sum() + (b[::-1] * a).sum()

    h = x * 1.0
    return mark(f)(h, h) + h.sum()


def overlapping_views(x: Any, mark: Callable) -> Any:
    def f(a: Any, b: Any) -> Any:
        a *= b
        b -= a
        return (a**2).sum()

    h = x * 1.0
    return mark(f)(h[:3], h[1:]) + (h * C).sum()


def closure_is_the_argument(x: Any, mark: Callable) -> Any:
    h = x * 1.0

    def f(a: Any) -> Any:
        h[0] = 5 * a[1]
        a[2] = h[0] * a[3]
        return (a * h).sum()

    return mark(f)(h)


def traced_closure(x: Any, mark: Callable) -> Any:
    w = np.cos(x)
    return mark(lambda a: (a * w).sum() + (w[1:] * a[:-1]).sum())(x**2)


def traced_closure_written(x: Any, mark: Callable) -> Any:
    out = x * 1.0

    def f(a: Any) -> Any:
        out[1:3] = a[:2] ** 2
        return a.sum()

    return mark(f)(np.sin(x)) + (out**2).sum()


def untraced_closure_written(x: Any, mark: Callable) -> Any:
    out = np.zeros(4)

    def f(a: Any) -> Any:
        out[1:3] += a[:2] ** 2
        return a.sum()

    return mark(f)(np.sin(x)) + (out**2).sum()


def rows_of_a_buffer_written(x: Any, mark: Callable) -> Any:
    def f(a: Any) -> Any:
        m, v = np.zeros((2, 4))
        for _ in range(2):
            m *= 0.9
            m += a * a
            np.multiply(v, 0.5, out=v)
            v += m
            a -= 0.1 * m / (v + 1)
        return m, v

    return sum((part**2).sum() for part in mark(f)(x * 1.0))


def closure_changes_after(x: Any, mark: Callable) -> Any:
    w, theirs, numbers = np.array(C), C.copy(), [1.0, 2.0]
    y = mark(lambda a: np.sin(a * w) * theirs * numbers[1])(x)
    w[:] = 0
    theirs[:] = 0
    numbers[1] = 0.0
    return y.sum()


def closure_changes_inside(x: Any, mark: Callable) -> Any:
    w, theirs = np.array(C), C.copy()

    def f(a: Any) -> Any:
        y = np.sin(a * w) * theirs
        w[0], theirs[1] = 9, 7
        return y * (a * w + theirs)

    return mark(f)(x).sum()


def index_used_again(x: Any, mark: Callable) -> Any:
    i, m = np.array([0, 2, 1]), np.array([True, False, True, True])

    def f(a: Any) -> Any:
        s = (a[i] ** 2).sum() + (a[m] * 2).sum()
        i[:] = 3
        m[:] = ~m
        return s + (a[i] * a[m].sum()).sum()

    return mark(f)(x)


def attribute_written(x: Any, mark: Callable) -> Any:
    def f(a: Any) -> Any:
        HOLDER.seen = a**2
        return np.sin(HOLDER.seen).sum() * HOLDER.scale.sum()

    return mark(f)(x) + HOLDER.seen.sum()


def appended(x: Any, mark: Callable) -> Any:
    parts: list = []

    def f(a: Any, parts: list) -> Any:
        parts.append(a**2)
        parts.append(np.exp(parts[0]))
        return {"y": parts[1] * a, "x": a}

    out = mark(f)(x, parts)
    return (out["y"] * parts[0]).sum() + (out["x"] * parts[1]).sum()


def a_view_comes_back(x: Any, mark: Callable) -> Any:
    h = x * 1.0
    v = mark(lambda a: a[1:3])(h)
    v *= 10
    return (h**2).sum() + v.sum()


def raises_on_the_way(x: Any, mark: Callable) -> Any:
    h = x * 1.0

    def f(a: Any) -> Any:
        a[0] = a[1] ** 3
        raise KeyError("stop")

    try:
        mark(f)(h)
    except KeyError:
        return (h**2).sum()


def branches(x: Any, mark: Callable) -> Any:
    def f(a: Any) -> Any:
        for k in range(int(a.sum()) + 2):
            a = np.where(a > 1, np.sqrt(a), a * a + k)
        return a if a[0] > 0 else -a

    return mark(f)(x).sum()


def several_results(x: Any, mark: Callable) -> Any:
    def f(a: Any) -> Any:
        m = np.outer(a, a) + np.diag(C**2 + 5)
        values, vectors = np.linalg.eigh(m)
        fraction, exponent = np.modf(a * 3)
        return values, vectors**2, fraction, exponent

    return sum(((k + 1) * part**2).sum() for k, part in enumerate(mark(f)(x)))


def nested(x: Any, mark: Callable) -> Any:
    inner = lambda a, b: np.sin(mark(np.exp)(a) * b)

    def f(a: Any) -> Any:
        a *= 1.5
        for _ in range(2):
            a = a + mark(inner)(a, a[::-1]) * COUNTER
        return a

    return (mark(f)(x * 1.0) ** 2).sum()


def gradient_inside(x: Any, mark: Callable) -> Any:
    return (mark(lambda a: grad(lambda b: (b**3 * a).sum())(a) + vmap(lambda b: b**2)(a))(x) * C).sum()


def scattered(x: Any, mark: Callable) -> Any:
    def f(a: Any) -> Any:
        z = np.zeros((3, 4))
        np.add.at(z, np.array([0, 2, 0]), a)
        z[[1, 1]] = a**2
        np.put_along_axis(z, np.array([[0], [1], [3]]), a[:3, None], 1)
        return np.take(z, [0, 5, 5, 11], mode="clip").sum() + (z**2).sum()

    return mark(f)(x)


def loop_of_writes(x: Any, mark: Callable) -> Any:
    def f(a: Any, n: int) -> Any:
        z = np.zeros(6)
        z[:4] = a
        for k in range(n):
            z[k % 6] = np.tanh(z[(k + 1) % 6] + z[(k + 2) % 6])
        return z

    return (mark(f)(x, 9) ** 2).sum()


def another_dtype(x: Any, mark: Callable) -> Any:
    return np.abs(mark(lambda a: np.fft.fft(a * (1 + 2j)) * a.astype("c16"))(x)).sum()


def nothing_traced(x: Any, mark: Callable) -> Any:
    h = np.array(C)
    mark(lambda a: a.__imul__(2))(h)
    return (x * h).sum() + mark(lambda: 3.0)() * x.sum()


PROGRAMS = {
    f.__name__: f
    for f in (
        *(argument_written, written_seen_after, views_given, the_same_twice, overlapping_views),
        *(closure_is_the_argument, traced_closure, traced_closure_written, untraced_closure_written),
        *(
            rows_of_a_buffer_written,
            closure_changes_after,
            closure_changes_inside,
            index_used_again,
            attribute_written,
            appended,
        ),
        *(a_view_comes_back, raises_on_the_way, branches, several_results, nested, gradient_inside, scattered),
        *(loop_of_writes, another_dtype, nothing_traced),
    )
}


def as_it_is(f: Callable) -> Callable:
    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_checkpoint_gives_what_the_function_gives(name: str) -> None:
    f = PROGRAMS[name]
    kept, plain = (lambda x: f(x, checkpoint)), (lambda x: f(x, as_it_is))
    x, v = np.array(X), np.array(C)
    want = grad(plain)(x)
    onp.testing.assert_allclose(onp.asarray(want), differences(plain, X), 1e-6, 1e-6 * abs(onp.asarray(want)).max())
    close(kept(np.array(X)), plain(np.array(X)))
    got, slope = value_and_grad(kept)(x)
    close(got, plain(np.array(X)))
    close(slope, want)
    close(x, X)
    compiled = jit(grad(kept))
    for _ in range(2):
        close(compiled(np.array(X)), want)
    close(grad(jit(kept))(x), want)
    close(jvp(kept, (x,), (v,))[1], (want * C).sum())
    second = hessian(plain)(x)
    close(hessian(kept)(x), second)
    close(grad(lambda x: (grad(kept)(x) * v).sum())(x), second @ C)
    close(hvp(kept)(x, v), second @ C)
    if name not in ("attribute_written",):  # a batched value outlives the function
        batch = np.array([X, X + 0.125])
        close(vmap(grad(kept))(batch), vmap(grad(plain))(batch))
        close(grad(lambda b: vmap(kept)(b).sum())(batch), vmap(grad(plain))(batch))


@pytest.mark.parametrize("name", ["written_seen_after", "closure_changes_inside", "nested", "loop_of_writes"])
def test_a_pullback_of_a_checkpoint_may_be_called_later_and_again(name: str) -> None:
    x = np.array(X)
    _, pull = vjp(lambda x: PROGRAMS[name](x, checkpoint), x)
    want = grad(lambda x: PROGRAMS[name](x, as_it_is))(x)
    x[:] = 0
    for _ in range(2):
        close(pull(np.array(1.0))[0], want)


@pytest.mark.host("draws on a device are its own")
@pytest.mark.parametrize("around", [as_it_is, jit], ids=["eager", "jit"])
def test_draws_are_not_drawn_anew(around: Callable) -> None:
    generator = np.random.default_rng(3)
    legacy = onp.random.RandomState(5)

    def noisy(x: Any) -> Any:
        noise = generator.normal(size=4) + np.random.rand(4)
        return np.sin(x * noise) * np.random.permutation(4)

    def drawn(mark: Callable) -> list:
        nonlocal generator
        generator = np.random.default_rng(3)
        np.random.set_state(legacy.get_state())
        g = around(grad(lambda x: mark(noisy)(x).sum() + mark(mark(noisy))(x).sum()))
        out = [g(np.array(X)), g(np.array(X))]
        return [*out, generator.normal(), np.random.rand()]

    for got, want in zip(drawn(checkpoint), drawn(as_it_is), strict=True):
        close(got, want)


@pytest.mark.host("counts NumPy's kernels")
def test_the_function_runs_once_and_its_rows_twice() -> None:
    runs: list = []

    def layer(x: Any) -> Any:
        runs.append(1)
        return np.tanh(np.sin(x))

    row = minnp.core.rows.primitive.TABLE["tanh"]
    before = row.calls
    grad(lambda x: checkpoint(layer)(x).sum())(np.array(X))
    assert len(runs) == 1 and row.calls == before + 2


@pytest.mark.long
@pytest.mark.host("memory of NumPy's")
def test_intermediate_results_are_not_kept() -> None:
    def deep(x: Any) -> Any:
        for _ in range(30):
            x = np.tanh(x * 1.01)
        return x

    def total(x: Any, mark: Callable) -> Any:
        for _ in range(10):
            x = mark(deep)(x)
        return x.sum()

    peaks = []
    minnp.memory_reuse(False)
    try:
        for mark in (as_it_is, checkpoint, lambda f: checkpoint(checkpoint(f))):
            x = np.ones(1 << 14)
            tracemalloc.start()
            grad(lambda x: total(x, mark))(x)  # noqa: B023
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    finally:
        minnp.memory_reuse(True)
    assert peaks[1] < peaks[0] / 5 and peaks[2] < peaks[0] / 5


def test_a_batched_array_from_outside_is_refused_and_taken_as_an_argument() -> None:
    def outer(b: Any) -> Any:
        def of(x: Any) -> Any:
            return vmap(lambda c: checkpoint(lambda a: a * c)(x).sum())(b).sum()

        return grad(of)(np.array(X))

    with pytest.raises(minnp.errors.TracedValueError, match="pass it in"):
        outer(np.array(C))
    of = lambda x: vmap(lambda c: checkpoint(lambda a, c: a * c)(x, c).sum())(np.array(C)).sum()
    close(grad(of)(np.array(X)), onp.full(4, C.sum()))


def test_the_tape_is_freed_with_the_gradient() -> None:
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        big = np.array(X)
        held = big._host.base if big._host.base is not None else big._host
        alive = weakref.ref(held)
        grad(lambda x, big: checkpoint(lambda a: np.sin(a * big))(x).sum())(np.array(X), big)
        del big, held
        assert alive() is None
    finally:
        gc.enable()


def test_parts_of_a_gradient_inside_are_added_once() -> None:
    """What a replay adds to is not what the first run added to."""

    def f(x: Any) -> Any:
        y = x * x
        return y[0] * y[1] * y[0] + np.sum(y[1:] ** 2)

    inner = lambda x: grad(f)(x).sum()
    for _ in range(2):
        assert grad(checkpoint(inner))(np.array([1.0, 2.0, 3.0])).tolist() == [64.0, 66.0, 108.0]


def test_a_part_that_a_gradient_inside_still_needs_is_not_written_over_in_a_replay() -> None:
    def scaled(x: Any) -> Any:
        y = x * x
        y[:2] *= x[1:3]
        return (y * y).sum()

    def by_a_view(x: Any) -> Any:
        y = x * x
        part = y[:2]
        part *= x[:2]
        return (y * y).sum()

    x = np.array([1.0, 2.0, 3.0, 4.0])
    for f in (scaled, by_a_view):
        inner = lambda x, f=f: (grad(f)(x) ** 2).sum()
        back = vjp(checkpoint(inner), x)[1]
        for _ in range(2):
            assert back(np.array(1.0))[0].tolist() == grad(inner)(x).tolist()
