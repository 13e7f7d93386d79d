"""jit's machine code agrees with NumPy: to the bit in arithmetic, within 3 ulp in elementary functions."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from minnp import grad, jit, report, vmap
from minnp.core.cpu import products
from minnp.core.graph.effects import Diverged
from minnp.core.llvm import engine, rows
from minnp.core.llvm.program import Writer
from minnp.core.llvm.steps import Input, Map

compiled = pytest.mark.skipif(not engine.available(), reason="needs llvmlite: pip install 'llvmlite>=0.45'")
RNG = onp.random.default_rng(5)
SPECIAL = [0.0, -0.0, onp.inf, -onp.inf, onp.nan, 1.0, -1.0, 1e-40, 1e-310, 88.73, 709.9, -104.0, -745.2, 3e38, 1e30]
FUNCTIONS = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "sinh", "cosh", "tanh", "sqrt"]


@compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forks_only_while_no_thread_is_inside_of_llvm() -> None:
    """Its locks would be held in the child by nobody: the child's first compilation would never end."""
    program = """if True:
        import os, signal, threading, time
        import minnp.numpy as np
        from llvmlite.binding import ffi
        from minnp import jit

        assert jit(lambda x: np.cos(x) * x)(np.ones(3)).size == 3
        inside = threading.Event()

        def stays():
            with ffi.lib._lock:
                inside.set()
                time.sleep(0.5)

        thread = threading.Thread(target=stays)
        thread.start()
        inside.wait()
        if (child := os.fork()) == 0:
            signal.alarm(60)
            os._exit(jit(lambda x: np.sin(x) * x)(np.ones(3)).size)
        thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr


def both(f: Any, *arrays: Any, exact: bool = True, nodes: int | None = None, ulps: int = 8) -> None:
    """f under jit's machine code is f under NumPy; `nodes` calls are left in the compiled graph."""
    g = jit(lambda *a: f(np, *a), compiler="llvm")
    with onp.errstate(all="ignore"):
        want = f(onp, *arrays)
        for _ in range(3):
            got = g(*arrays)
    (path,) = next(iter(g.paths.values()))
    assert "compiled" in path.run.source
    if nodes is not None:
        assert path.run.source.count("k_") == nodes, path.run.source
    want, got = (w if isinstance(w, tuple) else (w,) for w in (want, got))
    for w, y in zip(want, got, strict=True):
        y, w = onp.asarray(y), onp.asarray(w)
        assert y.dtype == w.dtype and y.shape == w.shape
        if exact:
            onp.testing.assert_array_equal(y, w)
            assert w.dtype.kind != "f" or onp.array_equal(onp.signbit(y), onp.signbit(w))
        else:
            size = onp.finfo(y.dtype).eps * ulps
            onp.testing.assert_allclose(y, w, rtol=size, atol=size * max(onp.abs(w).max(initial=0), 1e-30))


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_elementary_functions_are_within_3_ulp(kind: str) -> None:
    dtype, n = onp.dtype(kind), 4099
    texts = []
    for name in FUNCTIONS:
        x = Input((n,), dtype)
        y = Map((n,), dtype, (x,), rows.elementwise(name, [dtype], {}, dtype, True))
        texts.append(Writer([x, y], [y], True).small_text())
    ranges = [RNG.uniform(-1, 1, n), RNG.uniform(-30, 30, n), RNG.uniform(-800, 800, n), onp.resize(SPECIAL, n)]
    ranges.append(RNG.standard_normal(n) * 10.0 ** RNG.uniform(-30, 30, n))
    for name, run in zip(FUNCTIONS, engine.build(texts), strict=True):
        for values in ranges:
            x, y = values.astype(dtype), onp.empty(n, dtype)
            run(x, y)
            with onp.errstate(all="ignore"):
                want, exact = getattr(onp, name)(x), getattr(onp, name)(x.astype(onp.longdouble))
            assert onp.array_equal(onp.isnan(y), onp.isnan(want)), name
            assert onp.array_equal(onp.isinf(y), onp.isinf(want)), name
            number = ~onp.isnan(y)
            assert onp.array_equal(onp.signbit(y[number]), onp.signbit(want[number])), name
            finite = onp.isfinite(y)
            apart = onp.abs(y[finite] - exact[finite]) / onp.spacing(onp.abs(want[finite]))
            assert apart.max() < 3, (name, x[finite][apart.argmax()])


@compiled
@pytest.mark.parametrize("shape", [(), (3,), (16,), (7, 5), (300, 201)])
@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u1"])
def test_arithmetic_is_numpys_to_the_bit(kind: str, shape: tuple) -> None:
    x, y = (RNG.uniform(1 if kind == "u1" else -9, 9, shape).astype(kind) for _ in range(2))
    if kind[0] == "f" and shape:
        x.flat[:3], y.flat[1:3] = onp.nan, (-0.0, onp.inf)

    def f(m: Any, x: Any, y: Any) -> tuple:
        a, b = x * y + x - 3, abs(x - y) * 2
        c = m.maximum(a, b) - m.minimum(x, y) * m.sign(x) + m.where(x > y, a, 1)
        d = (x >= y) & (a != b) | ~(x == 3)
        e = m.square(x) + x**2 + (-y)
        return (a, b, c, d, e, m.logical_or(x, y), m.clip(x, 2, 5), d.astype("f8"), x / y)

    both(f, onp.asarray(x), onp.asarray(y))


@compiled
def test_small_arrays_are_one_call() -> None:
    x, w = RNG.standard_normal((5, 6)), RNG.standard_normal((6, 4))

    def f(m: Any, x: Any, w: Any) -> Any:
        h = m.tanh(x @ w + w[0])
        h = m.concatenate([h, m.stack([h[:, 0], h[:, 1]], axis=1)], axis=1)[::-1]
        e = m.exp(h - h.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return p.T.reshape(3, 10).mean(axis=0) * p.min() + x.sum(), p.var()

    both(lambda m, x, w: f(m, x, w)[0], x, w, exact=False, nodes=1)
    both(lambda m, x, w: f(m, x, w)[0], x.T.copy().T, w[:, ::-1], exact=False, nodes=1)  # other memory orders
    g = lambda x, w: f(np, x, w)[0].sum()
    onp.testing.assert_allclose(jit(grad(g))(x, w), grad(g)(x, w), rtol=1e-12, atol=1e-14)


@compiled
@pytest.mark.parametrize("kind", ["f8", "i8", "f4", "u1", "?"])
@pytest.mark.parametrize("n", [3, 8, 19, 20, 37])
def test_the_rest_of_a_row_is_code_without_branches(n: int, kind: str, monkeypatch: Any) -> None:
    """LLVM took most of a first call for the branches of columns that were put beside one another."""
    texts, assemble = [], engine.assemble
    monkeypatch.setattr(engine, "assemble", lambda made: texts.extend(t.body for t in made) or assemble(made))
    x = RNG.integers(0, 9, (n, n + 2)).astype(kind)
    both(lambda np, x: (np.roll(x, 1, 0) + np.roll(x, 1, 1), np.roll(x, 2, 1).T.sum(0), x[:, ::2].max(1)), x)
    assert texts and not any("tail" in text for text in texts)


@compiled
def test_writes_into_parts() -> None:
    def f(m: Any, x: Any) -> Any:
        b = m.zeros((4, 5))
        b[1:3, ::2] = x[:2, :3] * 2
        b[0] = 7
        b[:, 1] += x[:4, 0]
        c = m.pad(b, 1)
        return b, c * 2

    both(f, RNG.standard_normal((5, 5)))


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_products_rolls_and_norms_are_in_the_one_call(kind: str) -> None:
    m = RNG.standard_normal((12, 10)).astype(kind)
    for f in (
        lambda np, m: np.roll(m, 2, 1) * 2 + np.roll(m.T, -1, axis=0).T + np.roll(m, 12, 0),
        lambda np, m: np.roll(m[0], -3) * np.linalg.norm(m) + np.roll(m[:, 0], 15)[:10],
        lambda np, m: m / np.linalg.norm(m, axis=1, keepdims=True) + np.linalg.norm(m.T, axis=-1),
        lambda np, m: (m.T @ m) @ m.T + m[::2][:1] @ (m @ m.T)[:10],
        lambda np, m: (m[:, ::2] @ m.T[::2]) @ m + m @ m[:10],
        lambda np, m: m @ m[0] + m[:, 0] @ (m @ m[:10].T) @ m.T,
        lambda np, m: np.broadcast_to(m[0], (12, 10)) @ m.T + np.broadcast_to(m[:, :1], (12, 10)) @ m.T,
        lambda np, m: m[::-1] @ m.T[:, ::-1] * 2,
        lambda np, m: np.stack([m[0, 1] * 2, m.sum(), m[2, 3]]) * 2,
    ):
        both(f, m, exact=False, nodes=1, ulps=64)


@pytest.mark.long
@compiled
def test_programs_with_more_than_a_stack_of_results_are_one_call() -> None:
    def steps(np: Any, x: Any) -> Any:
        u = np.zeros((30, 500))
        u[0] = x

        def step(t: int) -> None:  # called by `map`: not a loop that is compiled as one
            u[t + 1, 1:-1] = u[t, 1:-1] + 0.1 * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])

        list(map(step, range(29)))
        return u

    def many(np: Any, u: Any) -> Any:  # 7 MB in all, of which few lie in memory at one time
        us = [u]

        def step(t: int) -> None:
            u = us[-1]
            u = np.concatenate([u[1:] * 0.5 + u[:-1] * 0.5, u[:1]])
            us.append(u[::-1] - u.mean())

        list(map(step, range(90)))
        return us[-1], us[60][1:] * us[0][1:]

    both(steps, RNG.standard_normal(500), exact=False, nodes=1)
    both(many, RNG.standard_normal(5000), exact=False, nodes=1, ulps=2000)


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8", "i8"])
@pytest.mark.parametrize("shape", [(50, 700), (40000,), (9, 60, 70)])
def test_reductions_of_large_arrays(kind: str, shape: tuple) -> None:
    x = RNG.uniform(-9, 9, shape).astype(kind)
    for axis in [None, *range(-1, len(shape) - 1), tuple(range(len(shape) - 1))]:
        if axis == ():
            continue

        def f(m: Any, x: Any, axis: Any = axis) -> tuple:
            y = x * 2 + 1
            return y.sum(axis=axis), y.max(axis=axis), (y - x).min(axis=axis, keepdims=True), y.mean(axis=axis), y

        both(f, x, exact=kind == "i8")
    both(lambda m, x: ((x > 8).any(axis=0), (x > -8).all()), x)


@compiled
def test_rows_and_columns_are_multiplied_in_one_pass() -> None:
    outer, same = jit(lambda a, b: a[:, None] * b), jit(lambda a, b: a * b)
    a, b = np.array(onp.random.default_rng(3).random((2, 300)))
    for x, y in ((a, b), (a[::-1], b[::2])):
        onp.testing.assert_array_equal(outer(x, y), onp.multiply.outer(onp.asarray(x), onp.asarray(y)))
    assert "compiled" in outer.lower(a, b).source
    whole = np.array(onp.random.default_rng(3).random((300, 300)))
    assert "compiled" not in same.lower(whole, whole).source  # NumPy does as well
    assert "compiled" not in same.lower(whole, 2.0).source


@compiled
def test_large_arrays_in_any_layout() -> None:
    x, y = RNG.standard_normal((300, 400)), RNG.standard_normal((400, 300))
    f = lambda m, x, y, b: (x * 2 - y) * b + x
    both(f, x, y.T, x[:, :1])
    both(f, x[::-1, ::2], y.T[:, ::2], x[0, ::2])
    g = jit(lambda x: x * 2 + x, compiler="llvm")
    for a in (x, x.T.reshape(300, 400), x[::-1], x[:, ::-1], onp.broadcast_to(x[:1], (300, 400))):
        for _ in range(2):
            onp.testing.assert_array_equal(g(a), a * 2 + a)


@compiled
def test_numpys_own_results_are_one_word_away() -> None:
    x = onp.float32(RNG.standard_normal(50000))
    f = lambda x: np.tanh(x * 2) + np.exp(x)
    run = jit(f, compiler="numpy")
    for _ in range(2):
        onp.testing.assert_array_equal(run(x), onp.tanh(x * 2) + onp.exp(x))
    with pytest.raises(ValueError, match="one of auto, llvm, numpy"):
        jit(f, compiler="gcc")


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_large_products_are_shared_and_leave_blas_as_it_was(kind: str) -> None:
    a, b = RNG.standard_normal((90, 700)).astype(kind), RNG.standard_normal((700, 130)).astype(kind)
    f = lambda m, a, b: m.tanh(a @ b) @ b.T + (a @ b).sum()
    single = products.single_thread()
    before = single.get() if single else None
    both(f, a, b, exact=False, ulps=1000)
    both(f, a.T.copy().T, b[::-1], exact=False, ulps=1000)
    assert single is None or single.get() == before


@compiled
def test_parameters_overwritten_whole_are_not_copied_twice() -> None:
    def step(w: Any, g: Any) -> Any:
        w[...] = w * 2 - g
        return g

    run = jit(step, compiler="llvm")
    w, g, want = np.ones(40000), np.arange(40000.0), onp.ones(40000)
    for _ in range(3):
        run(w, g)
        want = want * 2 - onp.arange(40000.0)
        onp.testing.assert_array_equal(onp.asarray(w), want)
    assert "write_view" not in next(iter(run.paths.values()))[0].run.source


def test_without_the_compiler_jit_runs_on_numpy() -> None:
    code = (
        "import minnp, minnp.numpy as np; from minnp.core.llvm import engine; assert not engine.available()\n"
        "f = minnp.jit(lambda x: np.tanh(x) * 2); x = np.arange(5.0)\n"
        "assert (f(x) == np.tanh(x) * 2).all() and (f(x) == np.tanh(x) * 2).all()\n"
        "try: minnp.jit(f, compiler='llvm')\n"
        "except ModuleNotFoundError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"MINNP_COMPILER": "none", "PYTHONPATH": "."}, capture_output=True, text=True
    )
    assert 'pip install "llvmlite>=0.45"' in done.stdout, done.stderr


# ------------------------------------------------------------------ arguments overwritten where they lie
def descend(p: Any, a: Any, b: Any) -> Any:
    p -= 0.01 * (a.T @ b)
    return (b * b).sum()


@compiled
@pytest.mark.parametrize("shape", [(128, 96, 90), (90, 200, 256)])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_product_is_added_to_a_parameter_where_it_lies(kind: str, shape: tuple) -> None:
    k, m, n = shape
    rng = onp.random.default_rng(0)
    p, a, b = (rng.standard_normal(s).astype(kind) for s in ((m, n), (k, m), (k, n)))
    want = p - 0.01 * (a.T @ b)
    ours, step = np.array(p), jit(descend, compiler="llvm")
    at = ours.ctypes.data
    for _ in range(2):
        ours[...] = p
        step(ours, np.array(a), np.array(b))
    rtol, atol = (1e-5, 1e-6) if kind == "float32" else (1e-13, 1e-15)
    onp.testing.assert_allclose(ours, want, rtol, atol)
    assert ours.ctypes.data == at and "out=p" in step.lower(ours, a, b).source
    # one array twice, a view of it, another memory order, an array nobody may write to: no argument is lost on the way
    square = rng.standard_normal((128, 128)).astype(kind)
    for make in (lambda s: (s, s, s), lambda s: (s, s[::-1], s.T), lambda s: (s.T, s, np.array(square))):
        s = np.array(square)
        step(*make(s))
        q = square.copy()
        x, y, z = (onp.asarray(v).copy() for v in make(np.array(square)))
        descend(make(q)[0], y, z)
        assert x.shape == q.shape
        onp.testing.assert_allclose(s, q, 10 * rtol, 10 * atol)
    frozen = np.array(square)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        step(frozen, np.array(square), np.array(square))
    onp.testing.assert_array_equal(frozen, square)


@compiled
def test_an_argument_is_overwritten_in_place_only_where_nobody_can_tell() -> None:
    x = onp.random.default_rng(0).standard_normal((200, 200))

    def mirrored(p: Any) -> None:
        p -= 0.5 * p[::-1, ::-1]

    def read_after(p: Any) -> Any:
        q = p * 1.0
        p += 1.0
        return q.sum() + p[0]

    def returned(p: Any) -> Any:
        p *= 2.0
        return p

    def branched(p: Any) -> Any:
        p += 1.0
        return p.sum() if p[0, 0] > 1.0 else p.sum() * 2.0

    def parts(p: Any) -> None:
        p[1:-1] = p[2:] + p[:-2]
        p[0] = 0.0

    def shifted(p: Any) -> None:
        p[1:] = p[:-1]

    for f in (mirrored, read_after, returned, branched, parts, shifted):
        fast = jit(f, compiler="llvm")
        for sign in (1.0, -1.0, 1.0):
            ours, theirs = np.array(sign * x), sign * x
            for _ in range(3):
                got, want = fast(ours), f(theirs)
                onp.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=f.__name__)
                if want is not None:
                    onp.testing.assert_allclose(got, want, rtol=1e-12, err_msg=f.__name__)


@compiled
def test_a_padded_result_is_computed_where_it_lies() -> None:
    def relax(np: Any, u: Any, p: Any) -> Any:
        for _ in range(3):
            inner = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - p[1:-1, 1:-1])
            u = np.pad(inner, ((1, 1), (1, 1)))
        return u, np.pad(u * 2.0, ((0, 3), (2, 0))), u.sum(0)

    x, p = RNG.standard_normal((2, 150, 170))
    both(relax, x, p, exact=False)
    fast = jit(lambda *a: relax(np, *a), compiler="llvm")
    assert "write_view" not in fast.lower(np.array(x), np.array(p)).source
    both(relax, x[::-1], p.T.copy().T, exact=False)  # in other layouts


@compiled
def test_equal_kernels_are_compiled_once(monkeypatch: Any) -> None:
    made: list[int] = []
    assemble = engine.assemble
    monkeypatch.setattr(engine, "assemble", lambda texts: made.append(len(texts)) or assemble(texts))

    def steps(np: Any, x: Any, m: Any) -> Any:
        for _ in range(5):
            x = np.tanh(x @ m[:, :300]) * 0.37 + x
        return x

    x, m = RNG.standard_normal((300, 300)), RNG.standard_normal((300, 400))
    both(steps, x, m, exact=False, ulps=2**14)
    assert sum(made) <= 2


@pytest.mark.parametrize("compiler", ["auto", "numpy"])
def test_what_a_tape_saved_survives_a_compiled_write(compiler: str) -> None:
    x, w = RNG.standard_normal((2, 150, 150))
    halve = jit(lambda p: p.__imul__(0.5).sum(), compiler=compiler)
    parts = jit(lambda p: p.__setitem__(0, 0.0), compiler=compiler)
    for change in (halve, parts):
        change(np.array(w))

        def f(x: Any, w: Any, change: Any = change) -> Any:
            y = np.tanh(x @ w)
            change(w)
            return (y * y).sum() + (x @ w).sum()

        def plain(x: Any, w: Any, whole: bool = change is halve) -> Any:
            y = np.tanh(x @ w)
            v = w * 0.5 if whole else np.concatenate([np.zeros((1, 150)), w[1:]])
            return (y * y).sum() + (x @ v).sum()

        onp.testing.assert_allclose(
            grad(f)(np.array(x), np.array(w)), grad(plain)(np.array(x), np.array(w)), rtol=1e-9, atol=1e-9
        )


@compiled
def test_small_arrays_beside_large_products_are_left_to_numpy() -> None:
    def scores(np: Any, x: Any, w: Any) -> Any:
        y = x
        for _ in range(4):
            y = y @ w
        top = y[:20, :10] - y[:20, :10].max(1, keepdims=True)
        return np.exp(top) / np.exp(top).sum(1, keepdims=True)

    for n in (40, 500):
        x = RNG.standard_normal((n, n)) / n**0.5
        found = jit(lambda *a: scores(np, *a), compiler="llvm").lower(x, x)
        assert ("compiled" in found.source) == (n == 40)


@compiled
def test_a_number_that_is_converted_is_numpys() -> None:
    f = lambda x: np.pad(x, 1, mode="linear_ramp")
    assert (jit(f)(np.arange(6.0).reshape(2, 3)) == f(np.arange(6.0).reshape(2, 3))).all()


@compiled
@pytest.mark.parametrize("n", [1, 3, 20])
def test_equations_and_inverses_are_part_of_the_call(n: int) -> None:
    def f(np: Any, a: Any, b: Any, c: Any) -> Any:
        s = a.T + 2 * np.eye(n)
        x = np.linalg.solve(s, b) + 1
        return x, np.linalg.solve(a * 2, c) * 2, np.linalg.inv(s[::-1]) @ x, np.linalg.inv(a)

    a, b, c = RNG.standard_normal((n, n)) + onp.diag(onp.arange(n)), RNG.standard_normal(n), RNG.standard_normal((n, 3))
    both(f, a, b, c, exact=False, nodes=1, ulps=1 << 20)
    both(f, onp.asfortranarray(a), b, onp.asfortranarray(c), exact=False, ulps=1 << 20)


@compiled
def test_a_singular_matrix_raises_numpys_error_and_may_be_caught() -> None:
    plain = lambda a: np.linalg.inv(a * 2) + 1

    def caught(a: Any) -> Any:
        try:
            return plain(a)
        except np.linalg.LinAlgError:
            return a - 7

    f, g = jit(plain, compiler="llvm"), jit(caught, compiler="llvm")
    for a in (np.eye(2), np.ones((2, 2)), np.full((2, 2), np.nan), np.eye(2)):
        onp.testing.assert_array_equal(onp.asarray(g(a)), onp.asarray(caught(a)))
        if a[0, 1] == 1:
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                f(a)
        else:
            onp.testing.assert_array_equal(onp.asarray(f(a)), onp.asarray(plain(a)))


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_powers_by_multiplication_are_within_3_ulp_and_numpys_at_the_ends(kind: str) -> None:
    x = onp.concatenate([10 ** RNG.uniform(-8, 8, 2000), [0.0, -0.0, onp.inf, -onp.inf, onp.nan, 1.0, -1.0]]).astype(
        kind
    )
    exponents = [-2, -1.5, -1, -0.5, 1.5, 2, 2.5, 3, 3.5, 4]
    f = jit(lambda x: [x**e * 1 for e in exponents], compiler="llvm")
    with onp.errstate(all="ignore"):
        f(x)
        for e, y in zip(exponents, map(onp.asarray, f(x)), strict=True):
            want, exact = onp.power(x, onp.array(e, kind)), onp.power(x.astype("g"), onp.longdouble(e))
            assert (abs(y - exact)[:2000] <= 3 * onp.spacing(want[:2000])).all()
            onp.testing.assert_array_equal(y[2000:], want[2000:])
            assert (onp.signbit(y) == onp.signbit(want))[~onp.isnan(want)].all()


@compiled
@pytest.mark.parametrize("shape, wrong", [((6,), [(5,), (7,), (2, 3), ()]), ((40_000,), [(30_000,), (200, 200)])])
def test_machine_code_refuses_what_it_was_not_made_for(shape: tuple, wrong: list) -> None:
    """It reads memory by the shape and the dtype of the capture: others take another way, whatever let them through."""
    f = jit(lambda x: np.exp(x * 2 + 1) * x, compiler="llvm")
    x = onp.linspace(0.0, 1.0, shape[0])
    f(x)
    run = next(iter(f.paths.values()))[0].run
    assert "compiled" in run.source
    onp.testing.assert_array_equal(run(onp.repeat(x, 2)[::2])[0], run(x)[0])  # it lies otherwise, that is all
    for other in [*(onp.zeros(s) for s in wrong), x.astype(int), x.astype("f4"), x.astype(">f8")]:
        with pytest.raises(Diverged):
            run(other)


@compiled
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize(
    ("shape", "f"),
    [
        ((50_001,), lambda x: np.sin(x[1:] * x[:-1])),
        ((150, 131), lambda x: x[1:-1, 1:-1] ** 2 * x[2:, 1:-1] - 3 * x[:-2, 1:-1] * x[1:-1, 2:] - x[1:-1, :-2]),
        ((150, 131), lambda x: x[2:] * x[1:-1] - np.exp(x[:-2])),
        ((150, 131), lambda x: x[:, 2:] * x[:, 1:-1] - np.exp(x[:, :-2])),
        ((150, 131), lambda x: (x.T[1:, :-1] * x.T[:-1, 1:]).mean(axis=0) * x[1:, 0]),
        ((20, 31, 99), lambda x: x[1:-1, 1:-1, 2:] * x[2:, 1:-1, :-2] - x[:-2, 1:-1, 2:] * x[1:-1, 2:, 2:]),
    ],
)
def test_large_parts_are_added_up_in_one_pass(kind: str, shape: tuple[int, ...], f: Any) -> None:
    x = RNG.standard_normal(shape).astype(kind)
    x[(-1,) * len(shape)] = onp.nan
    loss = lambda x: np.sum(f(x))
    gradient = jit(grad(loss), compiler="llvm")
    for given in (x, x, x, onp.asfortranarray(x)):
        got = onp.asarray(gradient(np.array(given)))
        want = onp.asarray(grad(loss)(np.array(given)))
        onp.testing.assert_allclose(
            got, want, rtol=1e-5 if kind == "f4" else 1e-13, atol=1e-5 if kind == "f4" else 1e-14
        )
    assert all("add_parts" not in path.run.source for paths in gradient.paths.values() for path in paths)


@compiled
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_a_kernel_without_inputs_may_begin_with_a_function(name: str) -> None:
    """One whose arguments beyond its domain take another way."""
    f = lambda x: getattr(np, name)(np.ones(3).sum()) * 2
    x = np.ones((2, 2))
    expected = [2 * getattr(onp, name)(3.0)] * 2
    for g in jit(vmap(f)), jit(vmap(grad(lambda z: z[0] * f(z)))):
        for _ in range(3):
            got = onp.asarray(g(x))
        onp.testing.assert_allclose(got if got.ndim == 1 else got[:, 0], expected, rtol=1e-15)


@compiled
def test_code_that_llvm_finds_broken_is_numpys(monkeypatch: Any) -> None:
    """LLVM ends the process where it is asked to compile such a function."""
    whole = Writer.large_text

    def broken(self: Any) -> Any:
        text = whole(self)
        wrong = "  br label %wrong\nwrong:\n  %never = phi i64 [ 0, %wrong ]\n  ret void\n"
        return text and text._replace(body=text.body.replace("  ret void\n", wrong))

    monkeypatch.setattr(Writer, "large_text", broken)
    report(reset=True)
    x = onp.linspace(0.0, 1.0, 100_000)
    f = jit(lambda x: np.exp(x) * x + 1.2345)
    for _ in range(3):
        onp.testing.assert_allclose(f(np.asarray(x)), onp.exp(x) * x + 1.2345, rtol=1e-12)
    assert any(engine.BUG in row["why"] for row in report())
