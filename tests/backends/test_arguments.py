"""Arguments that a definition in rows must read as NumPy reads them: on every backend, as policy and as a place.

Each line is a program on the arrays below; its result (value, dtype, shape), or the class of what it raises, is
NumPy's, and so are the arrays afterwards.
"""

import contextlib

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import backends

WAYS = {
    f"{way} {name}": (lambda name=name, way=way: minnp.policy(f"prefer_{name}"))
    if way == "prefer"
    else (lambda name=name, way=way: minnp.Context("cpu", 0, name))
    for name in ("torch", "mxnet")
    if name in backends.installed()
    for way in ("prefer", "place")
}
PROGRAMS = """
np.nanmedian(tiny)
np.nanmedian(tiny, axis=1)
np.nanmedian(x)
np.nanmedian(x[:0])
np.median(half)
np.nanmedian(half)
np.clip(n, None, 2)
n.clip(1)
np.clip(x[0, 0], None, 1)
np.max(tiny, initial=300, where=tiny > 0)
np.max(n, axis=0, initial=1.5, where=n > 0)
np.min(x, initial=2, where=x > 0)
np.min(n, initial=onp.nan)
np.max(n, initial=2**80)
np.sum(n, initial=1.5)
np.sum(n, 0, None, None, True, 300)
np.prod(x, 0, None, None, True, 2)
np.prod(n, axis=0, initial=2.5, where=n > 1)
np.sum(x[0], initial=1, where=x[0] > 0)
np.mean(x, where=x > 0)
np.var(n, axis=0, dtype="i4")
np.std(x, axis=0, dtype="c16")
np.count_nonzero(n, axis=0)
np.take(x, [])
np.take(n, [[], []], axis=1)
np.logical_and.reduce(x, axis=1, initial=False)
np.logical_or.reduce(n, axis=0, keepdims=True, initial=True)
np.maximum.reduce(n, axis=0, dtype="f8")
np.subtract.reduce(x, axis=2)
np.subtract.reduce(x, axis=(0, 1))
np.floor_divide.reduce(n > 0, axis=0, initial=1)
np.hypot.reduce(-np.abs(x)[:1], axis=0)
np.fmax.reduce(n, axis=0, initial=1.5)
np.hypot.reduce(x, axis=0, where=x > 0)
np.power.accumulate(n > 0, axis=0)
np.logaddexp.reduceat(x, [0, 5], axis=1)
np.add(x, 0.5, out=n, casting="unsafe")
np.hypot(n, n, out=n, casting="unsafe")
np.copyto(n, 1.5)
np.copyto(n, x)
np.copyto(n, x, casting="unsafe")
np.copyto(n, 7, where=n > 0)
np.put(n, [0, -1, 2], [7, 8])
np.put(n, [0], [7, 8, 9])
np.put(n, [[0, 1], [1, 2]], n)
np.putmask(n, n > 0, [5, 6])
np.putmask(n, n > 0, x[0])
np.put_along_axis(n, np.argmax(n, 0, keepdims=True), 9, 0)
np.put_along_axis(n, np.argmax(n, 0, keepdims=True), 9, -4)
n.flat.__setitem__(np.array([0, 2]), 9)
n.__setitem__(0, onp.nan)
x.__setitem__(0, 1j)
np.broadcast_to(n, (2, 3, 4)).__setitem__(0, 1)
np.add.at(x[0], [0, 0], onp.uint8(200))
np.subtract.at(n, [0, 0], onp.uint8(1))
np.add.at(n, 0, 0.5)
np.mean(n > 0, axis=0, where=n != 1)
np.var(tiny, where=tiny > -3)
np.correlate(x[0, 0], np.array(2.0))
np.concatenate([n, n[0]], axis=-1)
np.concatenate([tiny[0], tiny[0, 0]])
np.broadcast_to(n[:1, :1], (2, 0, 1, 3)) + 1
np.nan_to_num(infinite, nan=np.bool_(True))
np.roll(n, 2, ())
np.matmul(x[0, :1], x[0, :1].T, out=x[0, :1, :2])
np.arange(3) + (2**53 + 1)
-0.0 * np.ones(3)
np.cross(x[0, 0, :3], x[0, 1, :3])
np.copyto(x[0, 0, ..., 0], 5)
np.negative(x[0, 0, 1], out=x[..., 0][0, ..., 0])
np.array(3.0)[...].__iadd__(1)
np.kron(x, x)
np.std(x + 1j, where=x > 0)
np.mean(np.array([2**62, 2**62, 2**62]), where=True * np.ones(3, bool))
np.bitwise_or.reduce(n[0, 0], axis=0)
np.max(n[0, 0], axis=-1, initial=2)
np.pad(n, 2, "linear_ramp")
np.arange(3, dtype=onp.dtype("f8"))
np.linalg.solve(np.eye(2, dtype="f4"), np.arange(2))
np.inner(x[0], x[0])
np.select([n > 0, n < 0], [n > 0, tiny[:1, :1] + 0 * n.astype("i1")], 1)
np.choose((n % 2).astype("u8"), [n, -n])
x[(np.array(-1), slice(None), -1)]
np.quantile(x.astype("f2"), 1, axis=1, method="midpoint")
np.quantile(np.abs(n), 1, axis=0)
np.vander(x[0, 0], -1)
(big + big).sum()
np.mean(big)
np.where(np.isfinite(infinite), infinite, 0).sum()
infinite.sum(0)
np.average(infinite)
-(infinite**2)
np.float32(2) ** -1 + x.astype("f4") ** -1
np.zeros(3, "f4") + 2**31
""".strip().splitlines()


def arrays(np) -> dict:
    return {
        "np": np,
        "onp": onp,
        "x": np.array(onp.random.RandomState(0).normal(size=(2, 5, 4))),
        "n": np.array(onp.arange(12).reshape(3, 4) % 7 - 2),
        "tiny": np.array([[100, 100, 5], [-3, 0, 100]], "i1"),
        "half": np.array([65504, 65504], "f2"),
        "big": np.array([3e38, 3e38], "f4"),
        "infinite": np.array([[-0.0, onp.inf, -onp.inf], [1, 2, 3]]),
    }


def outcome(program: str, names: dict):
    try:
        return eval(program, names)
    except (ValueError, TypeError, OverflowError, LookupError) as error:
        return error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_arguments_mean_what_they_mean_to_numpy(way: str) -> None:
    with onp.errstate(all="ignore"):
        found = {program: difference(way, program) for program in PROGRAMS}
    assert not any(found.values()), {program: what for program, what in found.items() if what}


def difference(way: str, program: str) -> str:
    """How a program's result, or the arrays after it, differ from NumPy's; empty if they do not."""
    theirs = arrays(onp)
    wanted = outcome(program, theirs)
    with WAYS[way]() if way.startswith("place") else contextlib.nullcontext():
        ours = arrays(np)
    with WAYS[way]():
        got = outcome(program, ours)
    if isinstance(wanted, Exception) or isinstance(got, Exception):
        if not (isinstance(got, type(wanted)) or isinstance(wanted, type(got))):
            return f"{got!r} where NumPy has {wanted!r}"
    elif not agree(got, wanted):
        return f"{got!r} where NumPy has {wanted!r}"
    elif way.startswith("prefer") and isinstance(got, np.ndarray) != isinstance(wanted, onp.ndarray):
        return f"a {type(got)} where NumPy has a {type(wanted)}"
    return "".join(f"{name} = {ours[name]!r}" for name in ("x", "n") if not agree(ours[name], theirs[name]))


def agree(got, wanted) -> bool:
    got, wanted = onp.asarray(got), onp.asarray(wanted)
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind in "fc":
        return onp.allclose(got, wanted, rtol=2e-3 if wanted.dtype.char == "e" else 1e-6, equal_nan=True)
    return onp.array_equal(got, wanted)
