"""How rows act on split arrays: kernels (place, *parts and numbers, **params) -> part, by the row's name or kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE, Primitive
from ...core.rows.value import Buffer
from ...distributed import collectives
from ...errors import BackendUnsupportedError
from ...numpy.shaping import full_shape
from . import chains, orders
from .chains import chained, wait
from .own import summed
from .parts import Part, bounds, cut, exchange, fitted, moved, ranges, whole_of

KERNELS: dict[str, Callable] = {}


NUMBERS = (int, float, complex, onp.generic)
ELEMENTWISE = ("where", "real", "imag", "round", "fix", "isclose")  # and NumPy's ufuncs


def kernel(*names: str) -> Callable:
    def register(run: Callable) -> Callable:
        for name in names:
            KERNELS[name] = run
        return run

    return register


def refuse(why: str) -> None:
    raise BackendUnsupportedError(f"{why} is not done in parts")


def kernel_of(row: Primitive) -> Callable | None:
    """The kernel for a row, without its place; None where it has no rule for splits."""
    if TABLE.get(row.name) is not row:
        return None
    found = KERNELS.get(row.name)
    if found is not None:
        return found
    ufunc = getattr(onp, row.name, None)
    of_numpy = isinstance(ufunc, onp.ufunc) and ufunc.signature is None
    if of_numpy or row.elementwise or row.batch == "elementwise" or row.name in ELEMENTWISE:
        return lambda place, *xs, **params: elementwise(row, place, *xs, **params)
    return None


# ------------------------------------------------------------------ element by element
def aligned(place: Any, xs: tuple) -> tuple[Any, tuple, tuple, list]:
    """(mesh, shape, layout, operands in it) of arrays that are broadcast together."""
    parts = [x for x in xs if type(x) is Part]
    mesh, shape, best = parts[0].mesh, parts[0].shape, parts[0].on
    if all((x.shape, x.on) == (shape, best) if type(x) is Part else isinstance(x, NUMBERS) for x in xs):
        return mesh, shape, best, list(xs)
    shape = onp.broadcast_shapes(*[onp.shape(x) for x in xs])
    ndim = len(shape)
    best = (None,) * ndim
    for x in sorted(parts, key=lambda x: (x.whole is None, math.prod(x.shape))):
        on = [None] * (ndim - x.ndim) + [m if n == shape[ndim - x.ndim + i] else None for i, (n, m) in
                                         enumerate(zip(x.shape, x.on))]  # fmt: skip
        if any(m is not None for m in on):
            best = tuple(on)
    return mesh, shape, best, [lying(x, shape, best, mesh) for x in xs]


def lying(x: Any, shape: tuple, on: tuple, mesh: Any) -> Any:
    """An operand that is broadcast to a shape, as this rank needs it for its part in that layout."""
    if onp.ndim(x) == 0 and type(x) is not Part:
        return x
    ndim = len(x.shape)
    mine = [m if n == shape[len(shape) - ndim + i] else None for i, (n, m) in
            enumerate(zip(x.shape, on[len(shape) - ndim :]))]  # fmt: skip
    if type(x) is Part:
        return moved(x, mine)
    y = Part(mesh, x.shape, mine, cut(mesh, x, mine))
    y.lent = True  # the user's own memory
    return y


def local_of(x: Any) -> Any:
    """This rank's elements of an operand; a number where it has no axes."""
    return x if type(x) is not Part else x.local if x.ndim else x.local[()]


def elementwise(row: Primitive, place: Any, *xs: Any, **params: Any) -> Any:
    if any(type(v) is Buffer for v in params.values()):
        refuse(f"{row.name} with an array among its parameters")
    parts = [x for x in xs if type(x) is Part]
    if all(x.everywhere and x.held.nbytes < chains.LEAST for x in parts):  # each rank computes the whole
        mesh, operands = parts[0].mesh, xs
        result = lambda y: Part(mesh, onp.shape(y), (None,) * onp.ndim(y), y)
    else:
        mesh, shape, on, operands = aligned(place, xs)
        if not params and (chain := chained(row, operands)) is not None:
            return wait(Part(mesh, shape, on, chain), row)
        result = lambda y: Part(mesh, shape, on, y)
    out = row.numpy(*map(local_of, operands), **params)
    return type(out)(map(result, out)) if type(out) in (tuple, list) else result(out)


@kernel("astype", "copy", "zeros_like", "ones_like", "empty_like", "stop_gradient")
def alike(place: Any, x: Part, _row: Any = None, **params: Any) -> Part:
    row = TABLE[_row]
    if params.get("shape") is not None:
        refuse(f"{_row} of another shape")
    return x.like(onp.array(row.numpy(x.local, **params)))


# ------------------------------------------------------------------ reductions
def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if any(not -ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) != len(axes):
        refuse("an axis that NumPy refuses")
    return tuple(a % ndim for a in axes)


def dropped(x: Part, axes: tuple, keepdims: bool, local: Any) -> Part:
    """The result of a reduction, whose local part has the reduced axes as ones, whole along them."""
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    on = [None if i in axes else m for i, m in enumerate(x.on)]
    if not keepdims:
        keep = [i for i in range(x.ndim) if i not in axes]
        local = local.reshape([local.shape[i] for i in keep])
        shape, on = [shape[i] for i in keep], [on[i] for i in keep]
    return Part(x.mesh, shape, on, local)


@kernel("sum", "prod", "max", "min", "any", "all")
def reduce(place: Any, x: Part, axis: Any = None, keepdims: bool = False, _row: Any = None, **params: Any) -> Part:
    if any(v is not None for k, v in params.items() if k != "dtype") or x.dtype.kind not in "biufc":
        refuse(f"{_row} with {', '.join(params) or x.dtype}")
    run, axes = TABLE[_row].numpy, axes_of(axis, x.ndim)
    lines = [(i, x.mesh.axis(x.on[i])) for i in axes if x.on[i] is not None]
    if not axes:
        return x.like(run(x.local, axis=(), keepdims=True, **params))
    if _row in ("max", "min") and not all(x.shape[i] for i in axes):
        refuse(f"{_row} of nothing")
    empty = [i for i, _ in lines if not x.held.shape[i]]
    y = summed(x, axes) if _row == "sum" and params.get("dtype") in (None, x.dtype) else None
    if y is None and _row in ("max", "min") and empty:  # a rank that has nothing gives nothing
        shape = [0 if i in empty else 1 if i in axes else n for i, n in enumerate(x.local.shape)]
        y = onp.empty(shape, x.dtype)
    elif y is None:
        y = onp.asarray(run(x.local, axis=axes, keepdims=True, **params))
    same = {"dtype": y.dtype} if _row in ("sum", "prod") else {}
    for i, line in lines:
        if _row == "sum" and y.nbytes > collectives.ROOM:
            y = collectives.added(y, line)
        else:
            y = run(collectives._all_gather(y, mesh=line, axis=i), axis=i, keepdims=True, **same)
    return dropped(x, axes, keepdims, y)


@kernel("count_nonzero")
def count_nonzero(place: Any, x: Part, axis: Any = None, keepdims: bool = False) -> Part:
    return reduce(place, x.like(x.local != 0), axis, keepdims, _row="sum")


@kernel("mean", "var", "std")
def moments(place: Any, x: Part, axis: Any = None, keepdims: bool = False, _row: Any = None, **params: Any) -> Part:
    ddof = params.pop("ddof", 0)
    if any(v is not None for v in params.values()) or x.dtype.kind not in "biufc":
        refuse(f"{_row} with {', '.join(params) or x.dtype}")
    axes = axes_of(axis, x.ndim)
    n = math.prod(x.shape[i] for i in axes)
    if not n or n <= ddof:
        refuse(f"{_row} of nothing")  # NumPy warns
    wide = onp.dtype("f8") if x.dtype.kind in "biu" else onp.result_type(x.dtype, onp.float32)
    total = reduce(place, x, axes, True, _row="sum", dtype=wide)
    mean = total.local / wide.type(n)
    out = onp.float64 if x.dtype.kind in "biu" else x.dtype
    if _row == "mean":
        return dropped(x, axes, keepdims, mean.astype(out))
    centred = x.local - mean
    squares = (centred * centred.conj()).real if centred.dtype.kind == "c" else centred * centred
    y = reduce(place, x.like(squares), axes, True, _row="sum").local / (n - ddof)
    out = onp.zeros(0, out).real.dtype
    return dropped(x, axes, keepdims, (onp.sqrt(y) if _row == "std" else y).astype(out))


@kernel("argmax", "argmin")
def position(place: Any, x: Part, axis: Any = None, keepdims: bool = False, _row: Any = None) -> Part:
    if x.dtype.kind not in "biuf" or not x.size:
        refuse(f"{_row} of {x.dtype}")
    if axis is None:
        if keepdims:
            refuse(f"{_row} with keepdims")
        x, axis = reshape(place, x, shape=(-1,)), 0
    (axis,) = axes_of(axis, x.ndim)
    run = TABLE[_row].numpy
    if x.on[axis] is None:
        return dropped(x, (axis,), keepdims, run(x.local, axis=axis, keepdims=True))
    line = x.mesh.axis(x.on[axis])
    shape = list(x.local.shape)
    if shape[axis]:
        at = run(x.local, axis=axis, keepdims=True)
        best = onp.take_along_axis(x.local, at, axis)
    else:
        at, best = onp.empty(shape, "i8"), onp.empty(shape, x.dtype)
    at = at + bounds(x.shape[axis], line)[0]
    every = collectives._all_gather(best, mesh=line, axis=axis)
    places = collectives._all_gather(onp.asarray(at, "i8"), mesh=line, axis=axis)
    return dropped(x, (axis,), keepdims, onp.take_along_axis(places, run(every, axis=axis, keepdims=True), axis))


@kernel("sum_to")
def sum_to(place: Any, x: Part, shape: tuple) -> Part:
    more = x.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < more or (shape[i - more] == 1 and n != 1))
    if not axes:
        return x
    y = reduce(place, x, axes, True, _row="sum", dtype=x.dtype)
    return Part(x.mesh, shape, y.on[more:], y.local.reshape(y.local.shape[more:]))


@kernel("cumsum", "cumprod")
def scan(place: Any, x: Part, axis: Any = None, dtype: Any = None, _row: Any = None, **params: Any) -> Part:
    if any(v is not None for v in params.values()) or x.dtype.kind not in "biufc":
        refuse(f"{_row} with {', '.join(params) or x.dtype}")
    if axis is None:
        x, axis = reshape(place, x, shape=(-1,)), 0
    (axis,) = axes_of(axis, x.ndim)
    run, join = TABLE[_row].numpy, onp.add if _row == "cumsum" else onp.multiply
    y = run(x.local, axis=axis, dtype=dtype)
    if x.on[axis] is None:
        return x.like(y)
    line = x.mesh.axis(x.on[axis])
    last = onp.take(y, [-1], axis) if y.shape[axis] else y
    every = collectives._all_gather(last, mesh=line, axis=axis)
    before = sum(1 for a, b in ranges(x.shape[axis], line)[: line.rank] if b > a)
    if before:
        prefix = join.reduce(onp.take(every, range(before), axis), axis=axis, keepdims=True, dtype=y.dtype)
        y = join(prefix, y)
    return x.like(y)


@kernel("tril", "triu")
def triangle(place: Any, x: Part, k: int = 0, _row: Any = None) -> Part:
    if x.ndim < 2:
        refuse(f"{_row} of one axis")
    i, j = (0 if m is None else bounds(n, x.mesh.axis(m))[0] for n, m in zip(x.shape[-2:], x.on[-2:]))
    return x.like(TABLE[_row].numpy(x.local, k=k + i - j))


# ------------------------------------------------------------------ shapes
@kernel("transpose")
def transpose(place: Any, x: Part, axes: Any = None) -> Part:
    axes = tuple(range(x.ndim))[::-1] if axes is None else axes_of(tuple(axes), x.ndim)
    if len(axes) != x.ndim:
        refuse("transpose by these axes")
    return Part(x.mesh, [x.shape[i] for i in axes], [x.on[i] for i in axes], x.local.transpose(axes))


@kernel("swapaxes")
def swapaxes(place: Any, x: Part, axis1: int, axis2: int) -> Part:
    i, j = axes_of(axis1, x.ndim)[0], axes_of(axis2, x.ndim)[0]
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return transpose(place, x, tuple(order))


@kernel("expand_dims", "squeeze", "reshape")
def reshape(place: Any, x: Part, _row: str = "reshape", **params: Any) -> Part:
    if orders.counted(x, params.pop("order", "C")) == "F":
        turned = reshape(place, transpose(place, x), shape=full_shape(params["shape"], x.size)[::-1])
        return transpose(place, turned)
    like = onp.broadcast_to(onp.zeros((), "?"), x.shape)
    if _row == "reshape":
        shape = full_shape(params["shape"], x.size)
        if math.prod(shape) != x.size:
            refuse("reshape to this shape")
    else:
        shape = TABLE[_row].numpy(like, **params).shape
    return reshaped(x, shape)


def reshaped(x: Part, shape: tuple) -> Part:
    before = lambda s, i: math.prod(s[:i])
    on: list = [None] * len(shape)
    for i in x.split:
        same = [j for j, n in enumerate(shape) if n == x.shape[i] > 1 and before(shape, j) == before(x.shape, i)]
        j = same[0] if same else None
        if j is None:
            break
        on[j] = x.on[i]
    else:
        local = [n if m is None else onp.subtract(*bounds(n, x.mesh.axis(m))[::-1]) for n, m in zip(shape, on)]
        return Part(x.mesh, shape, on, x.local.reshape(local))
    m = next(x.on[i] for i in x.split)
    rest, wide = math.prod(x.shape[1:]), math.prod(shape[1:])
    if not shape or not rest or not wide:
        return Part(x.mesh, shape, on := (None,) * len(shape), whole_of(x).reshape(shape))
    line = x.mesh.axis(m)
    x = moved(x, (m, *[None] * (x.ndim - 1)))  # then each rank's part is a piece of the elements in their order
    have = [(a * rest, b * rest) for a, b in ranges(x.shape[0], line)]
    want = [(a * wide, b * wide) for a, b in ranges(shape[0], line)]
    flat = exchange(line, onp.ascontiguousarray(x.local).reshape(-1), 0, have, want)
    return Part(x.mesh, shape, (m, *[None] * (len(shape) - 1)), flat.reshape(-1, *shape[1:]))


@kernel("broadcast_to")
def broadcast_to(place: Any, x: Part, shape: Any) -> Part:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    onp.broadcast_shapes(x.shape, shape)
    more = len(shape) - x.ndim
    if more < 0 or any(n not in (1, s) for n, s in zip(x.shape, shape[more:])):
        refuse("broadcast_to this shape")
    x = moved(x, [m if n == s else None for n, m, s in zip(x.shape, x.on, shape[more:])])
    on = (*[None] * more, *x.on)
    if all(m is None for m in on):  # what is made of little lies where new arrays do
        on = tuple(m if n > 1 else None for n, m in zip(shape, fitted(place.on, len(shape))))
    local = [n if m is None else onp.subtract(*bounds(n, x.mesh.axis(m))[::-1]) for n, m in zip(shape, on)]
    mine = [slice(None) if n == 1 or x.on[i] is not None or on[more + i] is None
            else slice(*bounds(n, x.mesh.axis(on[more + i]))) for i, n in enumerate(x.shape)]  # fmt: skip
    return Part(x.mesh, shape, on, onp.broadcast_to(x.local[tuple(mine)], local))


@kernel("concatenate")
def concatenate(place: Any, *xs: Any, axis: Any = 0) -> Part:
    first = next(x for x in xs if type(x) is Part)
    mesh = first.mesh
    if axis is None or any(onp.ndim(x) != first.ndim for x in xs):
        refuse("concatenate of these arrays")
    (axis,) = axes_of(axis, first.ndim)
    best = max((x for x in xs if type(x) is Part), key=lambda x: (any(m is not None for m in x.on), x.size))
    on = best.on
    lengths = [x.shape[axis] for x in xs]
    shape = list(first.shape)
    shape[axis] = sum(lengths)
    if any(n != s for x in xs for i, (n, s) in enumerate(zip(x.shape, shape)) if i != axis):
        refuse("concatenate of these shapes")
    xs = [moved(x, on) if type(x) is Part else Part(mesh, x.shape, on, cut(mesh, x, on)) for x in xs]
    pieces, start = [], 0
    for x, n in zip(xs, lengths):
        local = x.local
        if on[axis] is not None:
            line = mesh.axis(on[axis])
            want = [(min(max(a - start, 0), n), min(max(b - start, 0), n)) for a, b in ranges(shape[axis], line)]
            local = exchange(line, local, axis, ranges(n, line), want)
        pieces.append(local)
        start += n
    return Part(mesh, shape, on, onp.concatenate(pieces, axis))


@kernel("stack")
def stack(place: Any, *xs: Any, axis: int = 0) -> Part:
    ndim = onp.ndim(xs[0]) if type(xs[0]) is not Part else xs[0].ndim
    if not -ndim - 1 <= axis <= ndim:
        refuse("stack along this axis")
    mesh, shape, on, operands = aligned(place, xs)
    if any(onp.shape(x) != shape for x in xs):
        refuse("stack of these shapes")
    local = [local_of(x) for x in operands]
    axis %= ndim + 1
    return Part(mesh, (*shape[:axis], len(xs), *shape[axis:]), (*on[:axis], None, *on[axis:]), onp.stack(local, axis))
