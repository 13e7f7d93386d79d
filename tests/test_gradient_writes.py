"""Every way NumPy has of writing to an array, under a tape: NumPy's values, derivatives to second order in both modes,
the same under jit and vmap; and what NumPy calls a view is one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest
from test_gradient_coverage import CASES, HOLES, MASK, POINTS, after, compiled, function

import minnp.numpy as np
from minnp import grad, jit, jvp, vjp, vmap
from minnp.core.arrays.array import array_of
from minnp.errors import NotDifferentiableError, TracedValueError
from minnp.testing import check_grads

X, V, Z = (onp.random.RandomState(0).standard_normal(shape) for shape in ((3, 4), 4, (3, 4)))
C = X + 1j * Z

# statements that write to x [3, 4], given v [4] -> what is returned
LINES = """
np.add.at(x, ([0, 2, 0],), v) -> x * x
x.T[...] += v[:3] -> x * x
x[1:][:, ::-1][0][1:3] = v[:2] -> x * x
x.ravel()[2:5] *= v[:3] -> x * x
x.T.ravel()[2:5] *= v[:3] -> x * x
x.flat[[1, 5, 1]] = v[:3] -> x * x
x.flat = v -> x * x
x.flat[::2] = x; x[1:].flat[1:] = x[:2] -> x * v
x.T.flat = x[:, ::-1]; x.flat = x[::-1]; x.flat[[1, 0, 2]] = x[0] -> x * v
x[...] = np.concatenate([x.T.flat, v])[4:].reshape(3, 4); x[1:].ravel()[:] = x[:2].T.flat -> x * np.dot(x.flat, x.flat)
x.sort(axis=0); x[0] *= v -> x * x
x.partition(1, axis=0) -> x[1] * v
np.put(x, [0, 5, -1], v[:3]) -> x * x
np.copyto(x, v, where=MASK) -> x * x
np.place(x, MASK, v) -> x * x
np.putmask(x, x > 0, v) -> x * x
np.fill_diagonal(x, v[:3]) -> x * x
y = x.reshape(4, 3); y[0] = v[:3] -> x * y.reshape(3, 4)
y = x.T.reshape(2, 6); y[0, :4] = v -> x.sum() * y
np.multiply(x, v, out=x, where=MASK) -> x * x
y = np.zeros(4); np.sum(x, axis=0, out=y); y += v -> y * y
np.cumsum(x, axis=1, out=x) -> x * v
np.exp(x[0], out=x[1]); np.add(x[1], v, x[2]) -> x * x
np.subtract.at(x, (0, [1, 1]), v[:2]); np.multiply.at(x, (1, [1, 1]), v[:2]) -> x * x
a, b = x[:, :2], x[:, 2:]; a[...], b[...] = b.copy(), a.copy() -> x * v
x[:, 0], x[:, 1] = x[:, 1], x[:, 0].copy() -> x * v
x[[0, 1]] = x[[1, 0]] -> x * v
x[1:] += x[:-1] -> x * v
x[::-1] -= 0.5 * x -> x * v
y = x[None, :, None]; y[0, 1, 0] = v; z = y.squeeze(); z[2] *= 2 -> x * x
np.swapaxes(x, 0, 1)[1] = v[:3]; np.moveaxis(x, 0, -1)[2] *= v[:3] -> x * x
np.flip(x, 0)[0] = v; np.rot90(x)[0] *= v[:3]; np.fliplr(x)[1] += v -> x * x
p, q = np.split(x, 2, axis=1); p *= v[:2]; q[0] = v[2:] -> x * x
np.atleast_3d(x)[1, :, 0] = v; np.expand_dims(x, 0)[0, 0] *= v -> x * x
y = x.view(); y[1] = v; y.shape = (4, 3); y[3] *= 2 -> x * x
y = x * 1; a = y[1]; b = y.T; y.shape = (2, 6); a[1:] = v[:3]; b[0] *= v[:3]; y[1] *= 2 -> x * y.reshape(3, 4) + b.T
a = x[1]; x.shape = (2, 6); x[0] *= 2; a[1:] = v[:3]; x.shape = (3, 4) -> x * a
y = np.ones((3, 4)); a = y[1]; y[0] = v; b = y[:, 1]; y.shape = 12; a[:3] = x[2, :3]; b[2] = v[0] -> y * x.ravel()
y = x[0, 0].copy(); y.flat[::2] = v[0]; y.flat[[0, 0]] = v[1:3] * y; y.flat[1:] = 5 -> x * y
z = x.view(complex); z[1] *= v[0] + 2j * v[1]; z.imag += 1; y = (z * z).view(float); y[0] = v -> x * y
z = x + 1j * v; y = z.view(float); y[1, ::2] = v; y[0] *= 2 -> abs(z) ** 2 + y[:, ::2]
y = np.asarray(x); y[0] = v; z = np.asanyarray(y); z[1] = 2 * v -> x * x
y = np.ascontiguousarray(x); y[0] = v; w = np.ascontiguousarray(x.T); w[0] = 5 -> x * x
y = np.broadcast_arrays(x, x)[0] -> x * y * v
y = np.lib.stride_tricks.as_strided(x, (2, 2), (32, 8)); y[1] = v[:2] -> x * x
y = np.lib.stride_tricks.as_strided(x[1:, :3], (3, 2), (-8, 32)); y[2] *= v[:2] -> x * x + y.sum()
d = np.einsum("ii->i", x[:, :3]); d[...] = v[:3] -> x * x
x.fill(v[0] * v[1]); x[0] += v -> x * x
x[...] = v; x[()] *= 2; x[:] = x + v -> x * x
x[np.newaxis, 1] = v; x[..., None][2, :, 0] = 2 * v -> x * x
x[x > 0.2] *= v[0]; x[~(x > 0)] = v[1]; x[np.isnan(x)] = 0 -> x * x
x[[0, 1], [1, 2]] += v[:2]; x[1:, [0, 3]] = v[:2]; x[:, MASK[0]] *= v[1] -> x * x
i = np.argsort(x[0]); x[:, i] = x * v -> x * x
np.put_along_axis(x, np.argsort(x, axis=1), v[None], 1) -> x * x
y = x; y += v; x = x * 2; y *= 3 -> x * y
l = [x[0], x[1]]; l[0] += v; l[1] *= l[0] -> x * x
x //= 1.0 -> x + v
x = abs(x) + 1; x **= v; x %= v * v + 1; x /= v * v + 1 -> x
y = x[:3, :3]; y @= np.ones((3, 3)); y += y.T -> x * x
y = x[0]; x = x + 1; y[...] = v -> x * y.sum()
np.maximum(x, 0, out=x); np.sqrt(x + 1, x); np.clip(x, 0.1, 1.4, out=x) -> x * v
np.dot(x, x.T @ x, out=x); np.matmul(x, np.ones((4, 4)), out=x) -> x * v
np.concatenate([x[:1] * 2, x[1:]], out=x); np.stack([v, v, v], out=x) -> x * x
np.take(x, [1, 0, 2], axis=0, out=x, mode="clip") -> x * v
x.clip(-0.5, 0.5, out=x); x.round(0); x.cumsum(1, out=x) -> x * v
np.where(x > 0, x, 0); x.mean(0, out=x[0]); x.max(0, out=x[1]) -> x * v
np.copyto(x[1], x[0] * v); np.copyto(x.T[0], 2.0) -> x * x
del_ = x.diagonal(); y = np.diag(x) -> x[:, :3] * y * del_
x.real[0] = v; x.real *= 2 -> x * x
np.nan_to_num(x, copy=False); x.swapaxes(0, 1)[:] = x.T[::-1].copy() -> x * v
x.__setitem__(0, v); x.__iadd__(v); np.ndarray.sort(x, axis=1); np.ndarray.fill(x[0], v[0]) -> x * x
np.random.seed(0); np.random.shuffle(x) -> x * v
e = next(iter(x)); e[0] = v[0]; x[-1][-1] = v[1]; x[0][1:3][::-1][0] = v[2] -> x * x
y = x[MASK]; y *= v[0]; z = x[[0, 1]]; z[0] = v -> x.sum() * y[:2] * z[:, :2]
np.add(x, 1, out=(x,)); np.divmod(x * x + 5, 2.0, out=(x, np.empty_like(x))) -> x + v
np.modf(x * v, out=(x, np.empty_like(x))) -> x * v
q, r = np.divmod(x * x + 5, 2.0, out=(None, x)) -> q * v + r * x
q, r = np.divmod(x * x + 5, 2.0, x[::-1]) -> q * v + r * x
q, r = np.modf(x * v, x) -> q * v + r * x
y = np.ones_like(x); q, r = np.modf(x * v, out=(y, x), where=MASK) -> x * y + q * r
x[0] = [1.0, 2.0, 3.0, 4.0]; x[1, 1:] = (2.0, 1.0, 0.5); x[:2] *= v; x[2] -= x[1] -> x * v
"""
COMPLEX = """
z.imag[...] = x -> z
z.imag[1:] *= x[1:]; z.real[0] = x[0] -> z * z
np.clip(z.imag, -0.5, 0.5, out=z.imag); np.clip(z.real, -0.5, 0.5, out=z.real) -> z * x
z.imag = x; z.T.real[1] += x[:, 1] -> z * z
np.imag(z)[0] = x[0]; z[:, ::2].imag[2] = x[1, :2] -> z * z
z += 1j * x; z.real **= 2; np.conj(z, out=z) -> z * z
"""


def by_rows(np: Any, x: Any, v: Any) -> Any:
    for row in x:
        row *= v
    return x * x


def by_index(np: Any, x: Any, v: Any) -> Any:
    for i in np.ndindex(x.shape):
        x[i] *= v[i[1]]
    return x * x


def by_flat(np: Any, x: Any, v: Any) -> Any:
    for i, e in enumerate(x.flat):
        x.flat[i] = e * v[i % 4]
    return x * x


def by_windows(np: Any, x: Any, v: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1, writeable=True)
    windows[0, 0, 1] = v[0]
    windows[1, 1] *= v[:2]
    return x * x


def a_copy_stays(np: Any, x: Any, v: Any) -> Any:
    c = x.copy()
    x *= v
    c += x
    x -= c * v
    return x * c


def a_buffer(np: Any, x: Any, v: Any) -> Any:
    out = np.empty((5, 4))
    for t in range(5):
        out[t] = x[t % 3] * v + (out[t - 1] if t else 0)
    return out


def a_stencil(np: Any, x: Any, v: Any) -> Any:
    out = np.zeros_like(x)
    out[1:-1] = x[2:] - x[:-2]
    out[0] = v
    out[-1] = -v
    out.T[1] *= 2
    return out * out


def a_history(np: Any, x: Any, v: Any) -> Any:
    h, history = np.zeros((2, 4)), np.zeros((3, 2, 4))
    for t in range(3):
        h[0] = np.tanh(h[1] + x[t])
        h[1] = h[0] * v
        history[t] = h
    return history


def program(line: str, names: tuple) -> Callable:
    statements, _, result = line.partition(" -> ")
    source = f"def run(np, {', '.join(names)}):\n    {statements}\n    return {result}"
    space: dict = {"MASK": MASK}
    exec(source, space)
    return space["run"]


PROGRAMS: dict[str, tuple] = {
    **{line: (program(line, ("x", "v")), X, V) for line in LINES.strip().splitlines()},
    **{line: (program(line, ("z", "x")), C, X) for line in COMPLEX.strip().splitlines()},
    **{
        f.__name__: (f, X, V)
        for f in (by_rows, by_index, by_flat, by_windows, a_copy_stays, a_buffer, a_stencil, a_history)
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_writes(name: str) -> None:
    f, x, v = PROGRAMS[name]
    wanted = f(onp, x * 1.0, v.copy())
    ours = lambda x, v: f(np, x * 1.0, v)
    onp.testing.assert_allclose(onp.asarray(vjp(ours, x, v)[0]), wanted, rtol=1e-12, atol=1e-12)
    check_grads(ours, (x, v))
    compiled_ = jit(ours)
    for _ in range(2):
        onp.testing.assert_allclose(onp.asarray(compiled_(np.array(x), np.array(v))), wanted, rtol=1e-12, atol=1e-12)
    batch = vmap(ours)(onp.stack([x, 2 * x]), onp.stack([v, v]))
    onp.testing.assert_allclose(onp.asarray(batch[0]), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_callers_argument_is_not_written(name: str) -> None:
    """A function that writes to its own argument: the gradient is with respect to what was passed in."""
    f, x, v = PROGRAMS[name]
    given = np.array(x)
    _, pullback = vjp(lambda x: f(np, x, v), given)
    out, inner = vjp(lambda x: f(np, x * 1.0, v), x)
    onp.testing.assert_array_equal(onp.asarray(given), x)
    g = onp.cos(onp.arange(out.size)).reshape(out.shape).astype(out.dtype)
    onp.testing.assert_allclose(onp.asarray(pullback(g)[0]), onp.asarray(inner(g)[0]), rtol=1e-12, atol=1e-12)


def adds_up(np: Any, x: Any, w: Any) -> Any:
    """What NumPy says of nditer: elements read and written, a result allocated, where it is, outer products."""
    with np.nditer([x, w, None], flags=["multi_index"]) as it:
        for a, b, y in it:
            y[...] = a * b + sum(it.multi_index)
        out = it.operands[2]
    with np.nditer(out, op_flags=["readwrite"], order="F") as it:
        for e in it:
            e[...] = 2 * e
    it = np.nditer([w, w, None], op_axes=[[0, -1], [-1, 0], None])
    while not it.finished:
        it[2] = it[0] * it[1]
        it.iternext()
    return (out * out).sum() + it.operands[2].sum()


def test_nditer_reads_and_writes_elements_of_traced_arrays() -> None:
    y = np.ones(3)
    with np.nditer(y, op_flags=["readwrite"]) as elements:
        for e in elements:
            e[...] = 2
    assert y.tolist() == [2, 2, 2] and isinstance(elements, np.nditer)
    x, w = onp.arange(6.0).reshape(2, 3).T, onp.array([0.5, 2.0])
    expected, grads = adds_up(onp, x, w), grad(lambda x, w: adds_up(np, x, w), (0, 1))
    assert float(jit(lambda x, w: adds_up(np, x, w))(x, w)) == expected
    for found in (grads(x, w), jit(grads)(x, w)):
        for g, k in zip(found, (0, 1)):
            for i in onp.ndindex(g.shape):
                step = onp.zeros(g.shape)
                step[i] = 1e-3
                moved = [adds_up(onp, *[a + s * step if j == k else a for j, a in enumerate((x, w))]) for s in (1, -1)]
                onp.testing.assert_allclose(float(g[i]), (moved[0] - moved[1]) / 2e-3, rtol=1e-6)
    for flag in ("external_loop", "buffered"):
        squares = grad(lambda x: sum((e * e).sum() for e in np.nditer(x, flags=[flag])))  # noqa: B023
        assert squares(np.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(TracedValueError, match=r"external_loop.*do not follow each other"):
        grad(lambda x: sum(e.sum() for e in np.nditer((x * 1)[:, ::2], ["external_loop"], ["readwrite"])))(
            np.ones((2, 3))
        )

    def behind_the_tape(x: Any) -> Any:
        z = x * y
        for e in np.nditer(y, op_flags=["readwrite"]):
            e[...] = 5
        return z.sum()

    assert grad(behind_the_tape)(np.ones(3)).tolist() == [2, 2, 2]


VIEWS = [(name, text) for name, text in CASES if not name.startswith((".__", "npx", "polynomial", "random"))]


def test_what_is_a_view_for_numpy_is_one_under_every_transformation() -> None:
    """Whatever shares memory with an argument in NumPy is written to: the argument shows it."""

    def written(xp: Any, f: Callable, code: Any, letters: list, k: int, arrays: Any) -> tuple:
        arrays = [a * 1.0 for a in arrays]
        scope = {"np": xp, "onp": onp, "f": f, "after": after, "MASK": MASK, "HOLES": HOLES}
        out = eval(code, {**scope, **dict(zip(letters, arrays, strict=True))})
        out = out[k] if isinstance(out, (tuple, list)) else out
        out[...] = 7.0
        out[0] *= 2
        return tuple(arrays)

    checked = 0
    for name, text in VIEWS:
        theirs: Any = onp.ndarray if name.startswith(".") else onp
        for part in name.strip(".").split("."):
            theirs = getattr(theirs, part, None)
        if name.startswith(".") and theirs is not None and not callable(theirs):
            theirs = lambda a, name=name: getattr(a, name[1:])
        _, letters = compiled(name, text)
        points, code = [POINTS[letter] for letter in letters], compile(text, name, "eval")
        scope = {"np": onp, "onp": onp, "f": theirs, "after": after, "MASK": MASK, "HOLES": HOLES}
        given = [p.copy() for p in points]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                out = eval(code, {**scope, **dict(zip(letters, given, strict=True))})
            except (TypeError, AttributeError, ValueError):
                continue  # not said so in NumPy
            for k, o in enumerate(out if isinstance(out, (tuple, list)) else [out]):
                shared = type(o) is onp.ndarray and o.ndim and any(onp.shares_memory(o, a) for a in given)
                if not shared or not o.flags.writeable or "broadcast" in name:  # read-only for us, as NumPy means to
                    continue
                wanted = written(onp, theirs, code, letters, k, points)
                ours = lambda *a, name=name, code=code, letters=letters, k=k: written(
                    np, function(name), code, letters, k, a
                )
                fast = jit(ours)
                fast(*map(np.array, points))
                for how, got in {
                    "tape": vjp(ours, *points)[0],
                    "jit": fast(*map(np.array, points)),
                    "vmap": [a[0] for a in vmap(ours)(*[p[None] for p in points])],
                }.items():
                    for a, b in zip(got, wanted, strict=True):
                        onp.testing.assert_array_equal(onp.asarray(a), b, err_msg=f"{how}: {name} {text}")
                checked += 1
    assert checked > 60  # fewer with NumPy 1.26, which has fewer names


def _through_a_field(x: Any) -> Any:
    table = np.zeros(2, [("a", "f8"), ("b", "f8")])
    table["a"] = x
    return (table["a"] * 2).sum()


@pytest.mark.parametrize(
    "f",
    [
        _through_a_field,
        lambda x: x.astype([("a", "f8")])["a"].sum(),
        lambda x: np.rec.fromarrays([x[:1], x[1:]], names="a,b")["a"].sum(),
        lambda x: (x * (np.ma.masked_less(x, 2).sum() > 1)).sum(),
        lambda x: (np.asmatrix(x) * np.asmatrix(x).T).sum(),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("slope", [lambda f, x: grad(f)(x), lambda f, x: jvp(f, (x,), (x,))])
def test_numbers_in_structures_and_other_classes_raise_rather_than_pass_for_constants(f: Any, slope: Any) -> None:
    with pytest.raises(NotDifferentiableError):
        slope(f, np.array([1.0, 3.0]))


@pytest.mark.parametrize("lies", ["a[:, ::2]", "a[::-1]", "a.T", "a[:, ::-1]", "a[1:, 1:]"])
def test_an_argument_with_gaps_keeps_them_when_it_is_written(lies: str) -> None:
    """What reshape finds of it is a copy before and after."""

    def f(np: Any, x: Any) -> Any:
        x[0] = 1.0
        v = x.reshape(-1)
        v[1] = 7.0
        return (x * x * x).sum() + (v * v).sum()

    made = lambda: eval(lies, {"a": onp.random.default_rng(0).normal(size=(4, 6))})
    wanted = onp.zeros(made().shape)
    for at in onp.ndindex(wanted.shape):
        moved = [made(), made()]
        moved[0][at] += 1e-6
        moved[1][at] -= 1e-6
        wanted[at] = (f(onp, moved[0]) - f(onp, moved[1])) / 2e-6
    g = lambda x: f(np, x)
    for way in (grad(g), jit(grad(g)), grad(jit(g)), lambda x: jvp(g, (x,), (np.ones(x.shape),))):
        y = way(array_of(made()))
        if isinstance(y, tuple):
            onp.testing.assert_allclose(float(y[1]), wanted.sum(), rtol=1e-4)
        else:
            onp.testing.assert_allclose(onp.asarray(y), wanted, rtol=1e-4, atol=1e-4)


def test_ravel_in_memory_order_takes_numpys_order() -> None:
    rng = onp.random.default_rng(0)
    for _ in range(200):
        ndim = int(rng.integers(1, 4))
        a = onp.arange(4.0**ndim).reshape((4,) * ndim).transpose(rng.permutation(ndim))
        a = a[tuple(slice(None, None, int(rng.choice([1, -1, 2]))) for _ in range(ndim))]
        if rng.random() < 0.5:  # NumPy leaves a broadcast axis where it is
            i = int(rng.integers(0, ndim))
            a = onp.broadcast_to(a[(slice(None),) * i + (slice(0, 1),)], a.shape)
        weights = onp.arange(a.size) + 1.0
        found = vjp(lambda x: x.ravel("K"), array_of(a))[1](np.array(weights))[0]
        onp.testing.assert_array_equal(onp.asarray(jit(lambda x: x.ravel("K"))(array_of(a))), a.ravel("K"))
        assert (onp.asarray(found) * a).sum() == (weights * a.ravel("K")).sum()


# what writes to w [4], of which a tape has saved the memory; `rng` draws, `linalg` is SciPy's
BEHIND = """
w.sort()
w.partition(2)
w.fill(7)
w.byteswap(True)
w.put([0], 9)
w.cumsum(0, None, w)
w.clip(3, 4, w)
w.setfield(3, float)
w.resize(4, refcheck=False)
w.flat[0] = 9
np.put(w, [0], 9)
np.copyto(w, 5)
np.nan_to_num(w / 0, False)
np.cumsum(w, 0, None, w)
np.round(w / 3, 0, w)
np.take(w + 1, [1, 2, 3, 0], 0, w)
np.dot(np.eye(4) * 2, w * 1, w)
np.concatenate([w[:2], w[:2]], 0, w)
np.mean(np.ones((2, 4)), 0, None, w)
np.max(np.ones((2, 4)), 0, w)
np.add.reduce(np.ones((2, 4)), 0, None, w)
np.add.at(w, [0], 5)
np.einsum("i->i", w * 3, out=w)
np.median(w, overwrite_input=True)
np.median(w, None, None, True)
np.percentile(w, 30, None, None, True)
np.quantile(w, 0.3, overwrite_input=True)
np.random.shuffle(w)
rng.shuffle(w)
rng.permuted(w, out=w)
rng.random(4, float, w)
rng.standard_normal(4, float, w)
rng.standard_exponential(4, float, "zig", w)
rng.standard_gamma(2.0, 4, float, w)
rng.random(4, out=w)
linalg.det(w.reshape(2, 2), overwrite_a=True)
linalg.lu_factor(w.reshape(2, 2).T, True)
linalg.solve(np.eye(4), w, overwrite_b=True)
"""


@pytest.mark.parametrize("statement", BEHIND.split("\n")[1:-1])
def test_what_a_tape_saved_may_be_written_by_any_call(statement: str) -> None:
    linalg = (
        pytest.importorskip("minnp.scipy.linalg", reason="SciPy is not installed") if "linalg" in statement else None
    )
    w = np.array([4.0, 1.0, 2.0, 5.0])

    def behind_the_tape(x: Any) -> Any:
        y = (x * w).sum()
        exec(statement, {"np": np, "w": w, "rng": np.random.default_rng(0), "linalg": linalg})
        return y

    with onp.errstate(all="ignore"):
        assert grad(behind_the_tape)(np.ones(4)).tolist() == [4, 1, 2, 5]


OVERLAPPING = {
    "windows *=": lambda np, x, v: np.lib.stride_tricks.sliding_window_view(x, 3, writeable=True).__imul__(2),
    "windows +=": lambda np, x, v: np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)[1:3].__iadd__(v[:2]),
    "a window": lambda np, x, v: np.lib.stride_tricks.sliding_window_view(x, 3, writeable=True).__setitem__(1, v),
    "strides": lambda np, x, v: np.lib.stride_tricks.as_strided(x, (3, 2), (8, 16)).__setitem__(..., v[:2]),
    "matrix": lambda np, x, v: np.lib.stride_tricks.as_strided(x, (3, 3), (8, 8)).__setitem__(..., v * v[:, None]),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_view_that_shows_elements_several_times_is_written_as_numpys(name: str) -> None:
    def f(np: Any, x: Any, v: Any) -> Any:
        y = x * 1
        OVERLAPPING[name](np, y, v)
        return y

    x, v = onp.arange(1.0, 7.0), onp.array([3.0, 5.0, 7.0])
    compiled = jit(lambda x, v: f(np, x, v))
    for k in range(3):
        onp.testing.assert_array_equal(compiled(np.array(x), np.array(v + k)), f(onp, x, v + k))
    check_grads(lambda x, v: f(np, x, v), (np.array(x), np.array(v)), order=1)


PLAIN = (lambda f: f, jit, grad)
SCALARS = {
    "an argument": lambda x: x[...].sum(),
    "a sum": lambda x: x.sum(),
    "an element": lambda x: x[1],
}


WRITERS = {
    "copyto": lambda s: np.copyto(s, 3.0),
    "place": lambda s: np.place(s, [True], 3.0),
    "putmask": lambda s: np.putmask(s, True, 3.0),
    "at": lambda s: np.add.at(s, (), 1.0),
    "out": lambda s: np.multiply(2.0, 3.0, out=s),
    "out of a sum": lambda s: np.sum(np.ones(2), out=s),
    "flat": lambda s: setattr(s, "flat", 3.0),
    "real": lambda s: setattr(s, "real", 3.0),
    "fill": lambda s: s.fill(3.0),
    "put": lambda s: np.put(s, 0, 3.0),
    "put of another": lambda s: np.put(np.int64(3), 0, 5),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("transform", [*PLAIN, vmap])
def test_functions_do_to_numbers_what_numpys_do(name: str, transform: Any) -> None:
    def f(x: Any) -> Any:
        s = x.sum()
        WRITERS[name](s)
        return s * x

    x = onp.ones((2, 3)[transform in PLAIN :])
    try:
        want = onp.asarray(transform(lambda x: x.sum() * x)(np.array(x)))
        WRITERS[name](onp.float64(2.0))
    except (AttributeError, TypeError) as error:
        with pytest.raises(type(error)):
            transform(f)(np.array(x))
    else:
        assert onp.array_equal(transform(f)(np.array(x)), want)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("transform", [*PLAIN, vmap])
def test_numbers_cannot_be_written(name: str, transform: Any) -> None:
    def f(x: Any) -> Any:
        s = SCALARS[name](x)
        s[()] = 5.0
        return s

    x = onp.ones((2, 3)[transform in PLAIN :])
    with pytest.raises(TypeError, match="does not support item assignment"):
        transform(f)(np.array(x))
