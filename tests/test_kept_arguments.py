"""What a gradient, a view or compiled code keeps of a call is what the program gave, whatever becomes of that later."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.npx  # fills the table
import minnp.numpy as np
from minnp import grad, jit, jvp, vjp, vmap
from minnp.core.arrays.array import ndarray
from minnp.core.rows.primitive import CONSTANT, TABLE, Primitive

DIFFERENTIABLE = sorted(
    name for name, row in TABLE.items() if row.vjp is not None and row.vjp is not CONSTANT and row.samples is not None
)


def changed(x: Any) -> None:
    """Every array and list in x changed where it is."""
    if isinstance(x, (tuple, list)):
        for e in x:
            changed(e)
        if isinstance(x, list):
            x.clear()
    elif isinstance(x, dict):
        for e in x.values():
            changed(e)
    elif isinstance(x, slice):
        changed((x.start, x.stop, x.step))
    elif isinstance(x, (ndarray, onp.ndarray)) and x.flags.writeable:
        x[...] = ~x if x.dtype == bool else 0 if x.dtype.kind in "iu" else 7.5


def reordered(x: Any) -> None:
    """The same, so that a call stays valid: arrays backwards, lists turned round."""
    if isinstance(x, (tuple, list)):
        for e in x:
            reordered(e)
        if isinstance(x, list):
            x.reverse()
    elif isinstance(x, dict):
        for e in x.values():
            reordered(e)
    elif isinstance(x, (ndarray, onp.ndarray)) and x.flags.writeable:
        x[...] = onp.array(x).ravel()[::-1].reshape(x.shape)


def of_ours(x: Any) -> Any:
    """x with arrays of ours in the place of NumPy's."""
    if isinstance(x, onp.ndarray):
        return np.array(x)
    return type(x)(map(of_ours, x)) if type(x) in (tuple, list) else x


def same(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True):
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), 1e-9, 1e-12)


def floats(y: Any) -> tuple:
    """The results of a row through which gradients flow."""
    return tuple(v for v in (y if isinstance(y, (tuple, list)) else (y,)) if getattr(v, "dtype", None).kind in "fc")


def seeds(ys: tuple) -> tuple:
    return tuple(onp.cos(onp.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in ys)


def rules(row: Primitive, arrays: tuple) -> list[int]:
    """The arguments that a rule gives a cotangent."""
    return [
        i
        for i, a in enumerate(arrays)
        if isinstance(a, onp.ndarray) and a.dtype.kind in "fc" and callable(row.rule(i)) and row.name != "empty_like"
    ]


# ------------------------------------------------------------------ every row
@pytest.mark.dealt
@pytest.mark.parametrize("flavour", ["ours", "NumPy's"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_of_a_row_is_that_of_its_arguments_as_they_were(name: str, flavour: str) -> None:
    row = TABLE[name]
    ours = of_ours if flavour == "ours" else lambda x: x
    for arrays, params in row.samples():
        for i in rules(row, arrays):
            found = []
            for touched in (False, True):
                # the others are constants of the function: held, written and passed on by the program
                given, kept = [ours(copy.deepcopy(a)) for a in arrays], copy.deepcopy(params)
                x = ours(copy.deepcopy(arrays[i]))

                def call(x: Any) -> tuple:
                    return floats(row(*given[:i], x, *given[i + 1 :], **kept))  # noqa: B023

                try:
                    y, pull = vjp(call, x)
                except minnp.errors.NotDifferentiableError:
                    break
                g = seeds(y)
                if touched:
                    changed([*given, x])
                    changed(kept)
                found.append(pull(g))
            if found:
                same(found[1], found[0])


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_compiled_row_sees_what_became_of_its_parameters(name: str) -> None:
    row = TABLE[name]
    for arrays, params in row.samples() if row.samples is not None else ():
        places = [i for i, a in enumerate(arrays) if isinstance(a, onp.ndarray)]
        held = copy.deepcopy(params)
        before = copy.deepcopy(params)
        reordered(held)
        if not places or repr(held) == repr(before) or name in ("empty_like",):
            continue
        held = copy.deepcopy(params)

        def call(*given: Any) -> Any:
            args = list(arrays)  # noqa: B023
            for i, g in zip(places, given, strict=True):  # noqa: B023
                args[i] = g
            return row(*args, **held)  # noqa: B023

        handles = [np.array(arrays[i]) for i in places]
        compiled = jit(call)
        for _ in range(3):
            try:
                want = call(*handles)
            except (ValueError, IndexError, TypeError) as error:
                with pytest.raises(type(error)):
                    compiled(*handles)
            else:
                want = want if isinstance(want, (tuple, list)) else (want,)
                got = compiled(*handles)
                same(got if isinstance(got, (tuple, list)) else (got,), want)
            reordered(held)


# ------------------------------------------------------------------ public functions
X = onp.linspace(0.5, 2.5, 12).reshape(3, 4)
I = onp.array([2, 0, 1, 1])
J = onp.array([0, 2, 1])
M = onp.arange(12).reshape(3, 4) % 3 > 0
W = onp.linspace(-1.0, 2.0, 12).reshape(3, 4)

# name -> (a function of x and of what it is given besides, what it is given)
PROGRAMS: dict[str, tuple[Callable, list]] = {
    "x[i]": (lambda x, i: x[i] ** 2, [J]),
    "x[i, j]": (lambda x, i, j: x[i, j] ** 2, [J, J]),
    "x[:, i]": (lambda x, i: x[:, i] ** 2, [I]),
    "x[list]": (lambda x, i: x[i] ** 2, [[0, 2, 2]]),
    "x[mask]": (lambda x, m: x[m] ** 2, [M]),
    "x[mask rows]": (lambda x, m: x[m] ** 2, [onp.array([True, False, True])]),
    "x.T[i][j]": (lambda x, i, j: x.T[i][:, j] ** 2, [I, J]),
    "z[i] = x": (lambda x, i: _written(x, i), [J]),
    "z[mask] = x[mask]": (lambda x, m: _written(x, m, m), [M]),
    "z[i] += x": (lambda x, i: _added(x, i), [J]),
    "take": (lambda x, i: np.take(x, i) ** 2, [I]),
    "take axis": (lambda x, i: np.take(x, i, axis=1, mode="wrap") ** 2, [I]),
    "x.take": (lambda x, i: x.take(i, axis=0) ** 2, [J]),
    "take_along_axis": (lambda x, i: np.take_along_axis(x, i, 1) ** 2, [onp.array([[0, 3], [1, 1], [2, 0]])]),
    "put_along_axis": (lambda x, i: _put_along(x, i), [onp.array([[0, 3], [1, 2], [2, 0]])]),
    "put": (lambda x, i: _put(x, i), [I]),
    "place": (lambda x, m: _place(x, m), [M]),
    "putmask": (lambda x, m: _putmask(x, m), [M]),
    "copyto": (lambda x, m: _copyto(x, m), [M]),
    "where": (lambda x, m, w: np.where(m, x**2, w * x), [M, W]),
    "where list": (lambda x, m: np.where(m, x**2, x), [[True, False, False, True]]),
    "select": (lambda x, c: np.select(c, [x**2, 3 * x], 0.5), [[M, ~M]]),
    "choose": (lambda x, i: np.choose(i, [x[0], x[1] ** 2, x[2] ** 3]), [I]),
    "compress": (lambda x, m: np.compress(m, x, axis=1) ** 2, [[True, False, True, True]]),
    "extract": (lambda x, m: np.extract(m, x) ** 2, [M]),
    "repeat": (lambda x, n: np.repeat(x, n, axis=0) ** 2, [onp.array([2, 0, 3])]),
    "repeat list": (lambda x, n: np.repeat(x, n, axis=1) ** 2, [[1, 2, 0, 1]]),
    "transpose list": (lambda x, axes: np.transpose(x, axes) ** 2, [[1, 0]]),
    "x.transpose list": (lambda x, axes: x.transpose(axes) ** 2, [[1, 0]]),
    "reshape list": (lambda x, shape: np.reshape(x, shape) ** 2 * onp.arange(shape[1]), [[6, 2]]),
    "tile": (lambda x, n: np.tile(x, n) ** 2, [[2, 1]]),
    "pad": (lambda x, w: np.pad(x, w) ** 2, [[[1, 0], [2, 1]]]),
    "pad array": (lambda x, w: np.pad(x, w, mode="edge") ** 2, [onp.array([[1, 0], [2, 1]])]),
    "roll": (lambda x, s: np.roll(x, s, axis=(0, 1)) * W, [[1, 2]]),
    "moveaxis": (lambda x, a, b: np.moveaxis(x[None], a, b) ** 2, [[0, 1], [2, 0]]),
    "sum axes": (lambda x, axes: np.sum(x[None] ** 2, axis=tuple(axes)), [[0, 2]]),
    "sum where": (lambda x, m: np.sum(x**2, axis=0, where=m), [M]),
    "max where": (lambda x, m: np.max(x**2, axis=0, where=m, initial=-9.0), [M]),
    "mean where": (lambda x, m: np.mean(x**2, axis=1, where=m), [M]),
    "var where": (lambda x, m: np.var(x, axis=1, where=m), [M]),
    "exp where": (lambda x, m: _exp_where(x, m), [M]),
    "add.at": (lambda x, i: _add_at(x, i), [J]),
    "add.at list": (lambda x, i: _add_at(x, i), [[0, 2, 2]]),
    "subtract.at": (lambda x, i: _add_at(x, i, np.subtract), [J]),
    "add.reduceat": (lambda x, i: np.add.reduceat(x**2, i, axis=1), [onp.array([0, 2, 3])]),
    "average": (lambda x, w: np.average(x**2, axis=1, weights=w), [onp.array([1.0, 2.0, 0.5, 3.0])]),
    "interp": (
        lambda x, xp, fp: np.interp(x, xp, fp),
        [onp.array([0.0, 1.0, 2.0, 3.0]), onp.array([0.0, 2.0, 1.0, 5.0])],
    ),
    "interp fp": (lambda x, xp: np.interp(xp, onp.arange(12.0), x.ravel()) ** 2, [onp.array([0.5, 3.25, 7.5])]),
    "searchsorted": (lambda x, v: x.ravel()[np.searchsorted(x.ravel(), v)] ** 2, [onp.array([0.6, 1.2, 2.0])]),
    "digitize": (lambda x, b: x * (1 + np.digitize(x, b)), [onp.array([0.9, 1.7])]),
    "bincount": (
        lambda x, i: np.bincount(i, weights=x.ravel() ** 2, minlength=4),
        [onp.array([0, 1, 3, 1, 0, 0, 2, 3, 1, 1, 2, 0])],
    ),
    "histogram": (
        lambda x, v: np.histogram(v, bins=3, weights=x.ravel() ** 2)[0],
        [onp.arange(12.0) % 5],
    ),
    "cross": (lambda x, w: np.cross(x[:, :3], w), [onp.arange(9.0).reshape(3, 3)]),
    "x * w": (lambda x, w: x * w, [W]),
    "w @ x": (lambda x, w: w.T @ x, [W]),
    "w / x": (lambda x, w: w / x, [W]),
    "w ** x": (lambda x, w: w**x, [abs(W) + 1]),
    "x -= w": (lambda x, w: _subtracted(x, w), [W]),
    "maximum": (lambda x, w: np.maximum(x, w), [W]),
    "clip": (lambda x, lo, hi: np.clip(x, lo, hi) ** 2, [W, W + 1.0]),
    "dot": (lambda x, w: np.dot(x, w.T), [W]),
    "tensordot": (lambda x, w, a: np.tensordot(x, w, axes=a), [W, [[0], [0]]]),
    "einsum": (lambda x, w: np.einsum("ij,ij->i", x, w), [W]),
    "einsum lists": (lambda x, w, a, b: np.einsum(x, a, w, b, [0]), [W, [0, 1], [0, 1]]),
    "outer": (lambda x, w: np.outer(x, w), [W]),
    "kron": (lambda x, w: np.kron(x, w), [onp.array([[1.0, 2.0]])]),
    "convolve": (lambda x, w: np.convolve(x.ravel(), w), [onp.array([1.0, -2.0, 0.5])]),
    "polyval": (lambda x, p: np.polyval(p, x), [onp.array([2.0, -1.0, 3.0])]),
    "linalg.solve": (lambda x, a: np.linalg.solve(a, x), [onp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 5]])]),
    "concatenate": (lambda x, w: np.concatenate([x, w]) ** 2 * onp.arange(6.0)[:, None], [W]),
    "list of arrays": (lambda x, ws: sum(x * w for w in ws), [[W, W + 1, W - 2]]),
    "stack": (lambda x, w: np.stack([x, w, x * w]).prod(0), [W]),
    "insert": (lambda x, i: np.insert(x, i, 7.0, axis=1) ** 2, [[1, 2]]),
    "delete": (lambda x, i: np.delete(x, i, axis=1) ** 2, [onp.array([0, 2])]),
    "split": (lambda x, at: np.split(x, at, axis=1)[1] ** 2, [[1, 3]]),
    "ix_": (lambda x, i, j: x[np.ix_(i, j)] ** 2, [[0, 2], [1, 3]]),
    "unravel_index": (lambda x, i: x[np.unravel_index(i, (3, 4))] ** 2, [onp.array([1, 5, 11, 5])]),
    "s_ of arrays": (lambda x, i: x[i[0] : i[1], i[2] :] ** 2, [onp.array([0, 2, 1])]),
    "diff prepend": (lambda x, w: np.diff(x, axis=0, prepend=w) ** 2, [W]),
    "trapezoid": (lambda x, t: np.diff(t) * (x[:, 1:] + x[:, :-1]), [onp.array([0.0, 1.0, 1.5, 4.0])]),
    "quantile": (lambda x, q: np.quantile(x**2, q, axis=1), [onp.array([0.25, 0.6])]),
    "fft.fftshift": (lambda x, axes: np.fft.fftshift(x, axes) * W, [[0, 1]]),
    "piecewise": (lambda x, m: np.piecewise(x, m, [lambda v: v**2, lambda v: 3 * v]), [[M, ~M]]),
    "lexsort": (lambda x, k: x.ravel()[np.lexsort(k)] * onp.arange(12.0), [[onp.arange(12.0) % 5, onp.arange(12) % 3]]),
}


def _written(x: Any, i: Any, of: Any = ...) -> Any:
    z = np.zeros(x.shape)
    z[i] = x[of] ** 2
    return z * W


def _added(x: Any, i: Any) -> Any:
    z = np.ones(x.shape)
    z[i] += x**2
    return z * W


def _put_along(x: Any, i: Any) -> Any:
    z = x * 1.0
    np.put_along_axis(z, i, x[:, :2] ** 2, 1)
    return z * W


def _put(x: Any, i: Any) -> Any:
    z = x * 1.0
    np.put(z, i, x[0] ** 2)
    return z * W


def _place(x: Any, m: Any) -> Any:
    z = x * 1.0
    np.place(z, m, x[0] ** 2)
    return z * W


def _putmask(x: Any, m: Any) -> Any:
    z = x * 1.0
    np.putmask(z, m, x**2)
    return z * W


def _copyto(x: Any, m: Any) -> Any:
    z = x * 1.0
    np.copyto(z, x**2, where=m)
    return z * W


def _exp_where(x: Any, m: Any) -> Any:
    out = x * 2.0
    np.exp(x, out=out, where=m)
    return out


def _add_at(x: Any, i: Any, f: Any = np.add) -> Any:
    z = np.zeros(x.shape)
    f.at(z, i, x**2)
    return z * W


def _subtracted(x: Any, w: Any) -> Any:
    z = x**2
    z -= w * x
    return z


def program(name: str, flavour: str) -> tuple[Callable, Any, list]:
    f, given = PROGRAMS[name]
    given = copy.deepcopy(given)
    return f, of_ours(X) if flavour == "ours" else X.copy(), of_ours(given) if flavour == "ours" else given


@pytest.mark.parametrize("flavour", ["ours", "NumPy's"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_is_that_of_the_arguments_as_they_were(name: str, flavour: str) -> None:
    found = []
    for touched in (False, True):
        f, x, given = program(name, flavour)
        y, pull = vjp(lambda x: f(x, *given), x)  # noqa: B023
        if touched:
            changed([x, given])
        found.append(pull(seeds((y,))[0]))
    same(found[1], found[0])


@pytest.mark.dealt
@pytest.mark.parametrize("flavour", ["ours", "NumPy's"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_buffer_that_is_used_again_is_what_it_was_at_each_use(name: str, flavour: str) -> None:
    def twice(x: Any) -> Any:
        f, _, given = program(name, flavour)
        s = np.sum(f(x, *given) * 1.0)
        reordered(given)
        s = s + np.sum(f(x, *given) * 2.0)
        changed(given)
        return s

    def apart(x: Any) -> Any:
        f, _, given = program(name, flavour)
        _, _, others = program(name, flavour)
        reordered(others)
        return np.sum(f(x, *given) * 1.0) + np.sum(f(x, *others) * 2.0)

    try:
        want = grad(apart)(np.array(X))
    except (ValueError, IndexError, TypeError):  # the other way round it is no call
        return
    same([grad(twice)(np.array(X))], [want])
    compiled = jit(grad(twice))
    same([compiled(np.array(X)), compiled(np.array(X))], [want, want])
    same([grad(jit(twice))(np.array(X))], [want])
    same([vmap(grad(twice))(np.array([X, X + 0.5]))[0]], [want])
    t = onp.cos(X * 9)
    same([jvp(twice, (np.array(X),), (t,))[1]], [np.sum(want * t)])


@pytest.mark.dealt
@pytest.mark.parametrize("flavour", ["ours", "NumPy's"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_code_sees_what_became_of_what_it_read(name: str, flavour: str) -> None:
    f, _, given = program(name, flavour)
    total = lambda x: np.sum(f(x, *given) ** 2)
    ways = [jit(total), jit(grad(total))]
    for _ in range(3):
        for way, eager in zip(ways, (total, grad(total)), strict=True):
            try:
                want = eager(np.array(X))
            except (ValueError, IndexError, TypeError) as error:
                with pytest.raises(type(error)):
                    way(np.array(X))
            else:
                same([way(np.array(X))], [want])
        reordered(given)


def test_compiled_code_sees_a_long_list_that_changed() -> None:
    numbers = [float(k) for k in range(100)]
    order = list(range(99, -1, -1))
    f = lambda x: (x * numbers[57])[order][3]
    compiled, x = jit(f), np.arange(100.0)
    assert compiled(x) == f(x)
    numbers[57] = -1.0
    assert compiled(x) == f(x) == -96
    order[3] = 50
    assert compiled(x) == f(x) == -50


def test_compiled_code_sees_an_array_of_plain_numpy_that_python_reads() -> None:
    scales = onp.array([2.0, 3.0])
    compiled = jit(lambda x: x * float(scales[1]))
    assert compiled(np.ones(2)).tolist() == [3, 3]
    scales[1] = 5
    assert compiled(np.ones(2)).tolist() == [5, 5]
    assert compiled(np.ones(2)).tolist() == [5, 5]
    assert compiled.cache_info()["captures"] == 2


def test_memory_that_numpy_holds_too_is_copied_when_it_is_kept() -> None:
    theirs = onp.array([2.0, 3.0])
    for ours in (np.asarray(theirs), np.asarray(theirs)[:], np.reshape(theirs, (1, 2)), np.frombuffer(bytearray(16))):
        _, pull = vjp(lambda x: x * ours, np.ones(2))  # noqa: B023
        want = onp.array(ours).ravel()
        memory = ours
        onp.asarray(memory)[...] = 9
        assert onp.array_equal(onp.asarray(pull(np.ones(2 if ours.ndim == 1 else (1, 2)))[0]), want)
        theirs[:] = 2, 3


def test_a_large_index_is_copied_once_for_all_who_keep_it() -> None:
    from minnp.core.arrays import saved

    index = onp.arange(5000)
    first = saved.snapshot(index)
    assert first is not index and saved.snapshot(index) is first and saved.snapshot(first) is first
    index[7] = 0
    assert saved.snapshot(index) is not first and first[7] == 7
