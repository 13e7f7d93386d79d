"""Generic tests over the table and the namespace: capture, `out=`, in place, strides, and exceptions as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.npx  # noqa: F401  (fills the table)
import minnp.numpy as np
from minnp import grad, jit, vjp
from minnp.core.rows.primitive import TABLE
from tests.agreement import assert_same

UFUNCS = sorted(
    n for n, r in TABLE.items() if isinstance(r.numpy, onp.ufunc) and isinstance(getattr(onp, n, None), onp.ufunc)
)


def flat(y: Any) -> list:
    return [onp.asarray(v) for v in (y if isinstance(y, (tuple, list)) else (y,))]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_captured_row_is_the_row(name: str) -> None:
    row = TABLE[name]
    for arrays, params in row.samples():
        places = [i for i, a in enumerate(arrays) if isinstance(a, onp.ndarray)]
        if not places:
            continue

        def call(*given: Any) -> Any:
            args = list(arrays)  # noqa: B023
            for i, g in zip(places, given, strict=True):  # noqa: B023
                args[i] = g
            return row(*args, **params)  # noqa: B023

        handles = [np.array(arrays[i]) for i in places]
        want = flat(call(*handles))
        compiled = jit(call)
        for _ in range(2):
            for got, expected in zip(flat(compiled(*handles)), want, strict=True):
                assert got.dtype == expected.dtype and got.shape == expected.shape
                if name != "empty_like":
                    assert_same(got, expected)


def operands(name: str) -> tuple:
    arrays, _ = TABLE[name].samples()[0]
    return arrays


@pytest.mark.parametrize("name", UFUNCS)
def test_out_where_and_layout_are_numpys(name: str) -> None:
    ours, theirs, arrays = getattr(np, name), getattr(onp, name), operands(name)
    want = theirs(*arrays)
    if isinstance(want, tuple) or theirs.signature:
        return
    handles = [np.array(a) for a in arrays]
    got = ours(*handles)
    assert got.dtype == want.dtype and onp.asarray(got).strides == want.strides
    assert_same(got, want)
    out = np.zeros(want.shape, want.dtype)
    assert ours(*handles, out=out) is out
    if name not in ("maximum", "minimum"):  # NumPy 2.4 deprecates a positional `out` there
        assert ours(*handles, out) is out
    assert_same(out, want)
    mask = onp.arange(want.size).reshape(want.shape) % 2 == 0
    a, b = np.zeros(want.shape, want.dtype), onp.zeros(want.shape, want.dtype)
    ours(*handles, out=a, where=np.array(mask))
    theirs(*arrays, out=b, where=mask)
    assert_same(a, b)
    if len({a.shape for a in arrays}) == 1:
        flipped = [a.T for a in arrays]
        assert ours(*map(np.asarray, flipped)).strides == theirs(*flipped).strides


@pytest.mark.parametrize("name", [n for n in UFUNCS if callable(TABLE[n].rule(0)) and TABLE[n].numpy.nout == 1])
def test_out_under_a_tape_carries_the_gradient(name: str) -> None:
    ours, arrays = getattr(np, name), operands(name)
    if TABLE[name].numpy.signature or any(a.dtype.kind not in "f" for a in arrays):
        return
    shape = TABLE[name].numpy(*arrays).shape

    def into(x: Any) -> Any:
        out = np.zeros(shape)
        ours(x, *arrays[1:], out=out)
        return out.sum()

    want = grad(lambda x: ours(x, *arrays[1:]).sum())(arrays[0])
    onp.testing.assert_allclose(onp.asarray(grad(into)(arrays[0])), onp.asarray(want))


@pytest.mark.parametrize("spelling", ["function", "method", "ufunc"])
@pytest.mark.parametrize(
    "shape, axis, room",
    [
        ((2, 1), 0, (2, 3)),
        ((2, 1), 1, (2, 3)),
        ((2, 3, 1), -2, (2, 3, 5)),
        ((1, 1, 2), 0, (2, 3, 2)),
        ((2, 3), 0, (2, 3)),
    ],
)
def test_accumulations_fill_a_larger_out_as_numpy_does(shape: tuple, axis: int, room: tuple, spelling: str) -> None:
    def into(xp: Any, x: Any) -> Any:
        out = xp.full(room, -7.0)
        call = {"function": xp.cumsum, "method": type(x).cumsum, "ufunc": xp.add.accumulate}[spelling]
        assert call(x, axis, None, out) is out
        return out

    weights = onp.arange(1.0, 1 + onp.prod(room)).reshape(room)
    for x in (onp.full(shape, 0.5), onp.arange(1.0, 1 + onp.prod(shape)).reshape(shape)):
        mine = lambda x: into(np, x)
        if room != shape and onp.lib.NumpyVersion(onp.__version__) >= "2.5.0":
            for f, y in ((lambda x: into(onp, x), x), *((f, np.array(x)) for f in (mine, jit(mine), grad(mine)))):
                with pytest.raises(ValueError, match="wrong size for the accumulation"):
                    f(y)
            continue
        want = into(onp, x)
        for f in (mine, jit(mine)):
            assert_same(f(np.array(x)), want)
        slopes = [((into(onp, x + d.reshape(shape)) - want) * weights).sum() for d in onp.eye(x.size)]
        got = grad(lambda x: (into(np, x) * weights).sum())(np.array(x))
        onp.testing.assert_allclose(onp.asarray(got).ravel(), slopes)
    for smaller in ((3,), (1, *room[1:]), (*room, 2)):
        with pytest.raises(ValueError):
            grad(lambda x: np.cumsum(x, axis, out=np.zeros(smaller)).sum())(np.ones((2, 3)))  # noqa: B023


BAD = {
    "broadcast": lambda xp: xp.ones(3) + xp.ones(4),
    "matmul": lambda xp: xp.ones((2, 3)) @ xp.ones((2, 3)),
    "axis": lambda xp: xp.ones((2, 3)).sum(axis=5),
    "axis twice": lambda xp: xp.sum(xp.ones((2, 3)), axis=(0, 0)),
    "index": lambda xp: xp.ones(3)[7],
    "too many indices": lambda xp: xp.ones(3)[0, 0],
    "float index": lambda xp: xp.ones(3)[1.5],
    "mask": lambda xp: xp.ones(3)[xp.ones(4, bool)],
    "reshape": lambda xp: xp.ones(6).reshape(4, 2),
    "concatenate": lambda xp: xp.concatenate([xp.ones((2, 2)), xp.ones((3, 3))]),
    "concatenate nothing": lambda xp: xp.concatenate([]),
    "stack": lambda xp: xp.stack([xp.ones(2), xp.ones(3)]),
    "singular": lambda xp: xp.linalg.inv(xp.zeros((2, 2))),
    "not square": lambda xp: xp.linalg.inv(xp.zeros((2, 3))),
    "not positive": lambda xp: xp.linalg.cholesky(-xp.eye(2)),
    "int of many": lambda xp: int(xp.ones(3)),
    "truth": lambda xp: bool(xp.ones(3)),
    "unhashable": lambda xp: hash(xp.ones(3)),
    "len": lambda xp: len(xp.array(1.0)),
    "iter": lambda xp: iter(xp.array(1.0)),
    "cast": lambda xp: xp.ones(3, int).__iadd__(0.5),
    "out shape": lambda xp: xp.add(xp.ones(3), 1, out=xp.ones(2)),
    "out cast": lambda xp: xp.add(xp.ones(3), 1, out=xp.ones(3, int)),
    "assign": lambda xp: xp.ones(3).__setitem__(slice(0, 2), xp.ones(3)),
    "assign index": lambda xp: xp.ones(3).__setitem__(9, 1),
    "einsum": lambda xp: xp.einsum("ij,jk", xp.ones((2, 3)), xp.ones((2, 3))),
    "transpose": lambda xp: xp.ones((2, 3)).transpose(0, 0),
    "squeeze": lambda xp: xp.squeeze(xp.ones((2, 3)), axis=0),
    "argmax of nothing": lambda xp: xp.argmax(xp.ones(0)),
    "max of nothing": lambda xp: xp.max(xp.ones(0)),
    "unknown dtype": lambda xp: xp.ones(3).astype("nonsense"),
    "unknown argument": lambda xp: xp.sum(xp.ones(3), wrong=1),
    "missing argument": lambda xp: xp.exp(),
    "read only": lambda xp: xp.broadcast_to(xp.ones(3), (2, 3)).__setitem__(0, 1),
    "no attribute": lambda xp: xp.ones(3).nonsense,
    "no function": lambda xp: xp.nonsense,
    "string math": lambda xp: xp.array(["a"]) * 2.5,
    "convolve": lambda xp: xp.convolve(xp.ones(0), xp.ones(2)),
    "split": lambda xp: xp.split(xp.ones(5), 2),
    "linspace": lambda xp: xp.linspace(0, 1, -1),
    "take": lambda xp: xp.take(xp.ones(3), 5),
    "cross": lambda xp: xp.cross(xp.ones(4), xp.ones(4)),
}


@pytest.mark.parametrize("what", sorted(BAD))
def test_exceptions_have_numpys_type(what: str) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[what](onp)
    with pytest.raises(theirs.type):
        BAD[what](np)


TRACED = [
    *(
        "broadcast",
        "matmul",
        "axis",
        "index",
        "too many indices",
        "mask",
        "reshape",
        "concatenate",
        "stack",
        "singular",
    ),
    *("not square", "int of many", "truth", "out shape", "out cast", "assign", "assign index", "einsum", "squeeze"),
    *("unknown argument", "no attribute", "take", "argmax of nothing", "max of nothing"),
]


class Traced:
    """NumPy's namespace whose new arrays depend on x: the same bad calls meet traced arrays."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getattr__(self, name: str) -> Any:
        f = getattr(np, name)
        if name in ("ones", "zeros", "eye", "array"):

            def made(*args: Any, **kwargs: Any) -> Any:
                a = f(*args, **kwargs)
                return a if a.dtype != float else a + 0 * self.x

            return made
        return f


@pytest.mark.parametrize("what", TRACED)
def test_exceptions_under_a_tape_have_numpys_type(what: str) -> None:
    with pytest.raises(Exception) as theirs:
        BAD[what](onp)
    with pytest.raises(theirs.type):
        vjp(lambda x: BAD[what](Traced(x)), 1.0)
