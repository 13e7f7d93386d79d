"""Captured and compiled code agrees with the same code run eagerly."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest
from test_fuzz_writes import make, run

import minnp.numpy as np
from minnp import grad, jit, npx, report, reset_report, vmap
from minnp.core.llvm import engine
from minnp.core.rows.primitive import TABLE
from minnp.errors import RecompilationWarning

X = onp.random.default_rng(1).uniform(0.2, 1, 4)


def close(a: Any, b: Any) -> None:
    onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), rtol=1e-9, atol=1e-9)


@pytest.mark.long
@pytest.mark.dealt(parts=8)
@pytest.mark.parametrize("block", range(10))
def test_random_programs_jitted_and_differentiated(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        program, rng = make(seed, 12), onp.random.default_rng(seed)
        f = lambda x: run(program, x, np)  # noqa: B023
        with onp.errstate(all="ignore"):
            # machine code for one in ten, which takes time to make; NumPy's kernels for the others
            how = {} if seed % 10 == 0 else {"compiler": "numpy"}
            compiled, derivative = jit(f, **how), jit(grad(f), **how)
            for x in rng.uniform(-1, 1, (2, 3, 3)):
                want, slope = float(f(np.array(x))), onp.asarray(grad(f)(np.array(x)))
                if not onp.isfinite(want) or not onp.isfinite(slope).all() or abs(slope).max() > 1e8:
                    continue
                for _ in range(2):
                    given = np.array(x)
                    assert float(compiled(given)) == pytest.approx(want, rel=1e-9, abs=1e-9), f"program {seed}"
                    assert onp.array_equal(onp.asarray(given), x)
                    onp.testing.assert_allclose(onp.asarray(derivative(given)), slope, rtol=1e-8, atol=1e-8)
                close(grad(compiled)(np.array(x)), slope)


# a loop that is compiled is one path, however often it runs
@pytest.mark.parametrize(
    "compiler, paths", [("numpy", 3), pytest.param("auto", 2 if engine.available() else 3, marks=pytest.mark.host)]
)
def test_every_branch_is_compiled_once(compiler: str, paths: int) -> None:
    @jit(compiler=compiler)
    def f(x: Any) -> Any:
        if x.sum() > 2:
            return x * 2
        n = 0
        while float(x.max()) > 0.1 and n < 5:
            x = x / 2
            n += 1
        return x + int(x.size) + sum(i for i in range(int(np.floor(x.sum() + 2))))

    def eager(x: Any) -> Any:
        return f.function(np.array(x))

    for x in (X, X + 1, X / 8, X / 3, X, X / 8, X / 3, X + 2):
        close(f(x), eager(x))
    info = f.cache_info()
    assert info["paths"] == info["captures"] == paths and info["keys"] == 1


def test_keys_are_shapes_dtypes_structure_and_types_of_numbers() -> None:
    f = jit(lambda x, k=1.0: (x["a"] if isinstance(x, dict) else x) * k)
    calls = [(X,), (X[:2],), (X.astype("f4"),), ({"a": X},), (X, 2.0), (X, 2), (X, 0.0), (X, -0.0), (X, float("nan"))]
    for _ in range(2):
        for args in calls:
            want = f.function(*args)
            got = onp.asarray(f(*args))
            assert got.dtype == want.dtype
            onp.testing.assert_array_equal(got, want)
            assert onp.array_equal(onp.signbit(got), onp.signbit(want))
    info = f.cache_info()
    assert info == {"calls": 18, "captures": 6, "guard_failures": 0, "keys": 6, "paths": 6}
    f.clear_cache()
    close(f(X), X)
    assert f.cache_info()["captures"] == 7


def test_of_too_many_paths_jit_warns_once_and_runs_others_as_they_are() -> None:
    f = jit(lambda x, k: x * k, limit=3, static="k")
    for k in range(3):
        close(f(X, k), X * k)
    with pytest.warns(RecompilationWarning, match="pass numbers that keep changing as arrays"):
        close(f(X, 3), X * 3)
        close(f(X, 4), X * 4)
    for k in range(8):
        close(f(X, k), X * k)
    assert f.cache_info()["captures"] == 3


def test_a_branch_that_compiled_code_rounds_to_the_other_side_is_no_new_path() -> None:
    f = jit(lambda x, b: x + 1 if np.exp(x).sum() < b else x - 1)
    x = onp.array([1.764052345967664, 0.4001572083672233, 0.9787379841057392, 2.240893199201458, 1.8675579901499675])
    at = onp.exp(x).sum()
    for bound in (onp.nextafter(at, 0.0), at, onp.nextafter(at, 99.0)):
        for _ in range(40):
            y = f(x, float(bound))
            assert onp.array_equal(y, x + 1) or onp.array_equal(y, x - 1)  # sums are in another order
    assert f.cache_info()["paths"] <= 2
    assert f.cache_info()["captures"] <= 100


def test_arguments_written_in_place_are_written_back() -> None:
    step = jit(lambda w, x: w.__isub__(0.1 * x).sum())
    w, want = np.ones(4), onp.ones(4)
    view = w[1:]
    for _ in range(3):
        want -= 0.1 * X
        close(step(w, X), want.sum())
        close(w, want)
        close(view, want[1:])


def test_an_operator_in_place_is_its_result_and_views_show_it() -> None:
    def f(p: Any, g: Any) -> Any:
        first, before = p[0], p.copy()
        p -= g
        new = p + 0
        first *= 2
        p += 1
        p[1] = before[0]
        return first, before, new, p.T

    p, g = onp.arange(6.0).reshape(2, 3), onp.full((2, 3), 0.5)
    kept = f(expected := p.copy(), g)
    jitted, q = jit(f), np.array(p)
    writes = jitted.lower(q, np.array(g)).graph.find_nodes(op="call_function", target=TABLE["write_view"])
    assert len(writes) == 2  # through the view and to a row: the operators on the whole make no copy
    for _ in range(2):
        q[...] = p
        for a, b in zip(jitted(q, np.array(g)), kept, strict=True):
            onp.testing.assert_array_equal(onp.asarray(a), b)
        onp.testing.assert_array_equal(onp.asarray(q), expected)


def test_where_to_add_is_an_argument_like_any_other() -> None:
    def f(h: Any, to: Any, column: Any) -> Any:
        out = np.zeros((4, 3))
        np.add.at(out, to, h * h)
        np.subtract.at(out, (slice(1, None), column), 1.0)
        return out

    r, g = onp.random.RandomState(0), jit(f)
    total = lambda *args: np.sum(f(*args) ** 2)
    h = jit(grad(total))
    for _ in range(3):
        args = np.array(r.randn(8, 3)), np.array(r.randint(-4, 4, 8)), np.array(r.randint(3, size=5))
        onp.testing.assert_array_equal(g(*args), f(*args))
        onp.testing.assert_allclose(h(*args), grad(total)(*args), rtol=1e-14)
    assert g.cache_info()["captures"] == h.cache_info()["captures"] == 1
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        g(args[0], args[1] * 0 + 7, args[2])
    rows = jit(lambda x, i: x[i] * 2)
    for x in (np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(3, 4).T, np.arange(4.0)):
        for i in (np.array([[0, -1], [2, 2]]), np.array([3]), np.array(1), np.zeros(0, int), np.arange(4) > 1):
            for _ in range(2):
                onp.testing.assert_array_equal(rows(x, i), x[i] * 2)
            if i.ndim and i.dtype != bool and i.size:
                with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
                    rows(x, i * 0 + 4)


def test_outside_arrays_are_read_anew_and_written_without_a_graph() -> None:
    w = np.ones(4)
    f = jit(lambda x: x * w)
    close(f(X), X)
    w *= 3
    close(f(X), 3 * X)
    g, want = jit(lambda x: x * w.__iadd__(x)), onp.asarray(w).copy()
    reset_report()
    for _ in range(4):
        want += X
        close(g(X), X * want)
        close(w, want)
    assert any("writes to an array made outside it" in r["why"] for r in report())


def test_random_draws_are_fresh_and_follow_the_seed() -> None:
    f = jit(lambda x: x + np.random.rand(4))
    np.random.seed(3)
    first = [onp.asarray(f(X)) for _ in range(3)]
    np.random.seed(3)
    again = [onp.asarray(X + np.random.rand(4)) for _ in range(3)]
    close(first, again)
    assert not onp.array_equal(first[0], first[1])


def test_trees_methods_closures_and_nesting() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = np.array(X)

        @jit
        def __call__(self, batch: dict) -> Any:
            return {"y": batch["x"] * self.w, "n": (batch["x"].sum(), 3)}

    model = Model()
    for x in (X, X * 2):
        out = model({"x": np.array(x)})
        close(out["y"], x * X)
        assert out["n"][1] == 3
    inner = jit(lambda x: np.tanh(x) * x)
    outer = jit(lambda x: inner(x).sum() + vmap(inner)(x).sum())
    close(outer(X), 2 * (onp.tanh(X) * X).sum())
    close(jit(grad(outer))(X), grad(outer)(X))
    close(jit(vmap(inner))(X), onp.tanh(X) * X)


def test_code_of_a_graph_runs_with_minnp_alone() -> None:
    def f(x: Any) -> Any:
        b = np.zeros((2, 4))
        b[0] = x[::-1] ** 2
        b[1, 1:] += np.exp(-x)[1:]
        return np.concatenate((b, x[None] @ np.ones((4, 4)))).sum(axis=0) + np.where(x > 0.5, x, 0.0)

    for g in (f, grad(lambda x: f(x).sum())):
        lowered = jit(g).lower(X)
        names: dict[str, Any] = {}
        exec("import minnp.numpy as np\n" + lowered.code, names)
        out = names["forward"](np.array(X))
        close(out, g(X))
        lowered.graph.lint()
    assert jit(f).lower(X).flops() > 0


def test_a_capture_does_not_survive_an_exception() -> None:
    from minnp.core.rows.state import capture, state

    before = state.busy

    @jit
    def fails(x: Any) -> Any:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        fails(X)
    assert state.busy == before and capture.get() is None


def test_convolutions_go_to_a_backend_that_is_better_at_them() -> None:
    pytest.importorskip("torch")
    x, w = onp.ones((24, 32, 24, 24), "f"), onp.full((32, 32, 3, 3), 0.01, "f")
    f = jit(lambda x, w: npx.convolution(x, w, None, kernel=(3, 3), num_filter=32, no_bias=True).sum())
    onp.testing.assert_allclose(f(x, w), f.function(np.array(x), np.array(w)), rtol=1e-5)
    reset_report()
    f(x, w)
    (line,) = [line for line in str(report()).splitlines() if "conv" in line]
    assert "torch" in line or "mxnet" in line


@pytest.mark.parametrize("width", [0, 1, (1, 2), ((1, 2), (0, 3)), ((1,), (2,)), -1, 1.0, ((1, 2, 3),)])
@pytest.mark.parametrize("fill", [{}, {"constant_values": 0.0}, {"constant_values": 2}, {"constant_values": (1, 2)}])
def test_padding_under_a_trace_is_numpys(width: Any, fill: dict) -> None:
    for a in (onp.arange(6.0).reshape(2, 3), onp.arange(6).reshape(2, 3), onp.zeros((2, 0), bool)):
        try:
            want: Any = onp.pad(a, width, **fill)
        except (ValueError, TypeError) as error:
            with pytest.raises(type(error)):
                jit(lambda x: np.pad(x, width, **fill))(np.array(a))
            continue
        f = jit(lambda x: np.pad(x, width, **fill))
        for _ in range(2):
            got = onp.asarray(f(np.array(a)))
            onp.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_sums_of_python_objects_run_as_they_do_eagerly():
    def objects(x):
        return np.sum(np.array([2, 3, x[0]], dtype=object)) + x.sum()

    f = jit(objects)
    for k in (1.0, 2.0):
        assert float(f(np.full(3, k))) == objects(np.full(3, k)) == 5 + 4 * k


@pytest.mark.host("NumPy's kernels warn")
def test_a_warning_of_compiled_code_names_the_line_where_the_users_code_begins() -> None:
    f = jit(lambda x: 1 / x, compiler="numpy")
    f(np.ones(2))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="divide by zero") as seen:
            f(np.zeros(2))
    line = f.__wrapped__.__code__.co_firstlineno
    assert seen[0].filename.endswith(f"test_jit.py:{line}>") and seen[0].filename.startswith("<minnp jit")
