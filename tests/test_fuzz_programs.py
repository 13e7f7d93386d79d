"""Random programs over dtypes, shapes, views, masks and writes do with ours what they do with NumPy.

    MINNP_FUZZ=20000 python -m pytest tests/test_fuzz_programs.py      # a long run; 2000 programs otherwise

A program keeps a few variables, each held twice, by NumPy and by us. Every step is one call on some of them. Its result
(value, dtype, shape, strides), or the type of what it raises, must agree; then so must every variable, for some are
views of others. Where another backend computes (MINNP_BACKEND=torch) values agree within a few units in the last place,
and then go on from NumPy's, for what a program makes of a rounding is not the backend's doing.
"""

from __future__ import annotations

import operator
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
from tests.agreement import exact
from tests.agreement import same as agree

PROGRAMS, STEPS, BLOCK = int(os.environ.get("MINNP_FUZZ", "2000")), 12, 100
DTYPES = ("?", "i1", "u1", "i4", "u4", "i8", "f2", "f4", "f8", "c8", "c16")
SCALARS = (0, 1, 2, -3, 7, 0.5, -1.5, 1e3, True, 2j, onp.float32(1.5), onp.int8(3), onp.float64(2), onp.bool_(True))
words = str.split
OPERATORS = [getattr(operator, op) for op in words("add sub mul truediv floordiv mod and_ or_ xor lt le eq ne gt ge")]
INPLACE = [getattr(operator, f"i{op}") for op in words("add sub mul truediv floordiv and or xor mod")]
UNARY = words("negative absolute sqrt exp sin sign floor isnan logical_not square conjugate rint tanh log1p signbit")
BINARY = words("add multiply maximum minimum hypot arctan2 logical_and power copysign fmod less_equal matmul")
REDUCTIONS = words("sum prod mean max min any all argmax argmin cumsum std var cumprod count_nonzero ptp median")


def index(rng: random.Random, shape: tuple, arrays: bool = True) -> Any:
    """A random index, mostly one that fits."""
    kind = rng.random()
    if arrays and kind < 0.15:
        return onp.array([rng.random() < 0.5 for _ in range(int(onp.prod(shape)))], bool).reshape(shape)
    if arrays and kind < 0.3 and shape:
        return onp.array([rng.randrange(-max(shape[0], 1), max(shape[0], 1)) for _ in range(rng.randrange(1, 4))])
    if kind < 0.35:
        return ...
    parts: list = []
    for n in shape[: rng.randrange(len(shape) + 1)]:
        step = rng.choice((None, None, 1, 2, -1))
        parts.append(
            rng.choice(
                (
                    rng.randrange(-n - 1, n + 1),
                    slice(rng.choice((None, 0, 1, -2)), rng.choice((None, n, -1, 2)), step),
                    slice(None, None, step),
                )
            )
        )
    if rng.random() < 0.2:
        parts.insert(rng.randrange(len(parts) + 1), None)
    if arrays and rng.random() < 0.1:
        parts.append([0, -1])
    return parts[0] if len(parts) == 1 and rng.random() < 0.5 else tuple(parts)


def axis(rng: random.Random, ndim: int) -> Any:
    choices = [None, 0, -1, 1, *range(ndim)]
    return tuple(range(min(ndim, 2))) if rng.random() < 0.1 and ndim else rng.choice(choices)


def step(rng: random.Random, shapes: list[tuple]) -> Callable[[Any, list], Any]:
    """One random call as a function of the namespace and the variables."""
    i, j, k = (rng.randrange(len(shapes)) for _ in range(3))
    shape, ndim = shapes[i], len(shapes[i])
    ax, keep, scalar = axis(rng, ndim), rng.random() < 0.3, rng.choice(SCALARS)
    name, at, dtype = rng.choice(UNARY), index(rng, shape), rng.choice(DTYPES)
    op, two, down, n = rng.choice(OPERATORS), rng.choice(BINARY), rng.choice(REDUCTIONS), rng.randrange(-3, 4)
    # an index array is ours as often as NumPy's
    own = rng.random() < 0.5
    given = lambda np: np.asarray(at) if own and type(at) is onp.ndarray else at
    options = {"axis": ax} if not keep or down in ("cumsum", "cumprod") else {"axis": ax, "keepdims": True}
    into = two if two != "power" else "subtract"  # a refused power leaves what happened to be in NumPy's buffer
    reads: list[Callable] = [
        lambda np, v: op(v[i], v[j]),
        lambda np, v: op(v[i], scalar),
        lambda np, v: op(scalar, v[i]),
        lambda np, v: v[i] ** rng_power,
        lambda np, v: getattr(np, name)(v[i]),
        lambda np, v: getattr(np, two)(v[i], v[j]),
        lambda np, v: getattr(np, down)(v[i], **options),
        lambda np, v: getattr(v[i], down if hasattr(onp.ndarray, down) else "sum")(**options),
        lambda np, v: v[i][given(np)],
        lambda np, v: v[i][index_without_arrays],
        lambda np, v: v[i].T,
        lambda np, v: v[i].reshape(-1),
        lambda np, v: v[i].reshape((2, -1)),
        lambda np, v: np.ravel(v[i]),
        lambda np, v: np.swapaxes(v[i], 0, -1),
        lambda np, v: np.expand_dims(v[i], n),
        lambda np, v: np.squeeze(v[i]),
        lambda np, v: np.broadcast_to(v[i], (2, *shape)),
        lambda np, v: np.flip(v[i], ax),
        lambda np, v: np.roll(v[i], n, ax),
        lambda np, v: np.repeat(v[i], 2, ax if type(ax) is not tuple else None),
        lambda np, v: np.concatenate([v[i], v[j]], axis=rng_axis),
        lambda np, v: np.stack([v[i], v[i]], axis=rng_axis),
        lambda np, v: np.where(v[i], v[j], v[k]),
        lambda np, v: np.where(v[i] > 0, v[j], scalar),
        lambda np, v: v[i].astype(dtype),
        lambda np, v: v[i].copy(),
        lambda np, v: np.sort(v[i], rng_axis),
        lambda np, v: np.argsort(v[i], rng_axis, kind="stable"),
        lambda np, v: np.take(v[i], [0, n]),
        lambda np, v: np.clip(v[i], -1, 2),
        lambda np, v: np.dot(v[i], v[j]),
        lambda np, v: v[i] @ v[j],
        lambda np, v: np.outer(v[i], v[j]),
        lambda np, v: np.unique(v[i]),
        lambda np, v: np.diff(v[i]),
        lambda np, v: np.tile(v[i], 2),
        lambda np, v: np.zeros_like(v[i], dtype=dtype),
        lambda np, v: np.asarray(v[i], dtype=dtype),
        lambda np, v: np.array([v[i], v[i]]),
        lambda np, v: np.add.reduce(v[i], axis=rng_axis),
        lambda np, v: np.maximum.accumulate(v[i]),
        lambda np, v: np.multiply.outer(v[i], v[j]),
        lambda np, v: np.nonzero(v[i])[0],
        lambda np, v: v[i].real,
        lambda np, v: v[i].imag,
        lambda np, v: np.diagonal(v[i]),
        lambda np, v: np.cumsum(v[i], ax if type(ax) is not tuple else None),
        lambda np, v: (float if scalar else int)(v[i]),
        lambda np, v: bool(v[i]),
        lambda np, v: len(v[i]),
        lambda np, v: v[i].tolist(),
        lambda np, v: repr(v[i]),
        lambda np, v: np.array_equal(v[i], v[j]),
        lambda np, v: v[i].view(dtype),
    ]
    writes: list[Callable] = [
        lambda np, v: v[i].__setitem__(given(np), v[j]),
        lambda np, v: v[i].__setitem__(given(np), scalar),
        lambda np, v: v[i].__setitem__(index_without_arrays, v[j]),
        lambda np, v: inplace(v[i], v[j]),
        lambda np, v: inplace(v[i], scalar),
        lambda np, v: getattr(np, name)(v[i], out=v[j]),
        lambda np, v: getattr(np, into)(v[i], v[j], out=v[k]),
        lambda np, v: getattr(np, into)(v[i], v[j], v[k]),
        lambda np, v: np.add(v[i], scalar, out=v[k], where=v[j] > 0),
        lambda np, v: v[i].sort(rng_axis),
        lambda np, v: v[i].fill(scalar),
        lambda np, v: np.copyto(v[i], v[j], where=v[k] > 0),
        lambda np, v: np.put(v[i], [0, n], v[j]),
        lambda np, v: np.add.at(v[i], [0, n], scalar),
        lambda np, v: v[i].flat.__setitem__(n, scalar),
        lambda np, v: np.sum(v[i], axis=rng_axis, out=v[j]),
        lambda np, v: np.place(v[i], v[i] > 0, [1, 2]),
    ]
    rng_power, rng_axis, inplace = rng.choice((2, 0.5, 3, -1)), rng.choice((0, -1, 1)), rng.choice(INPLACE)
    index_without_arrays = index(rng, shape, arrays=False)
    return rng.choice(writes) if rng.random() < 0.3 else rng.choice(reads)


def start(rng: random.Random) -> onp.ndarray:
    shape = tuple(rng.choice((0, 1, 2, 3, 3, 4)) for _ in range(rng.randrange(4)))
    values = [rng.choice((0, 1, 2, 3, 5, -1, -2, 0.5, 2.25)) for _ in range(int(onp.prod(shape)))]
    return onp.array(values, "f8").reshape(shape).astype(rng.choice(DTYPES), order=rng.choice("CF"))


def attempt(f: Callable, np: Any, variables: list) -> tuple[Any, type | None]:
    try:
        return f(np, variables), None
    except Exception as error:
        return None, type(error)


def steps(a: onp.ndarray) -> list[int]:
    """The strides along which a step is ever taken."""
    return [s for s, n in zip(a.strides, a.shape) if n > 1 and a.size]


def close(ours: Any, theirs: Any) -> bool:
    """Whether numbers agree as those of another backend may, which adds up numbers of this size in another order."""
    if exact() or not isinstance(theirs, (onp.ndarray, onp.inexact)):
        return False
    scale = max([float(abs(x)) for x in onp.ravel(theirs) if onp.isfinite(x)], default=0.0)
    return agree(ours, theirs, ulps=16, scale=scale)


def same(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, onp.ndarray):
        assert type(ours) is np.ndarray, f"{where}: {type(ours)} for an array"
        h = onp.asarray(ours)
        assert (h.dtype, h.shape, steps(h)) == (theirs.dtype, theirs.shape, steps(theirs)), where
        assert h.flags.writeable == theirs.flags.writeable, where
        if h.tobytes() != theirs.tobytes():
            assert onp.array_equal(h, theirs, equal_nan=h.dtype.kind in "fc") or close(h, theirs), where
            if not exact() and h.flags.writeable:
                h[...] = theirs
    else:
        assert type(ours) is type(theirs), f"{where}: {type(ours)} for {type(theirs)}"
        assert repr(ours) == repr(theirs) or close(ours, theirs), where


def run(seed: int) -> None:
    rng = random.Random(seed)
    theirs: list = [start(rng) for _ in range(3)]
    ours: list = [np.array(x) for x in theirs]
    for number in range(STEPS):
        f = step(rng, [x.shape for x in theirs])
        where = f"program {seed}, step {number} (line {f.__code__.co_firstlineno})"
        wanted, raised = attempt(f, onp, theirs)
        got, error = attempt(f, np, ours)
        assert error is raised, f"{where}: {error} instead of {raised}"
        if raised is None and wanted is not None:
            same(got, wanted, where)
        for a, b in zip(ours, theirs):
            same(a, b, where)
        if isinstance(wanted, onp.ndarray) and wanted.size < 200:
            ours.append(got)
            theirs.append(wanted)


@pytest.mark.dealt
@pytest.mark.parametrize("block", range(0, PROGRAMS, BLOCK))
def test_random_programs_do_what_numpy_does(block: int) -> None:
    with warnings.catch_warnings(), onp.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(block, block + BLOCK):
            run(seed)
