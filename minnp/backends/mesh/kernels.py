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
from .parts import Part, bounds, cut, exchange, fitted, gathered, moved, ranges, shifted, whole_of

KERNELS: dict[str, Callable] = {}
SMALL = 1 << 16  # elements of a product of split sums that every rank gets


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
    """(mesh, shape, layout, local operands) of arrays that are broadcast together."""
    parts = [x for x in xs if type(x) is Part]
    shape = onp.broadcast_shapes(*[onp.shape(x) for x in xs])
    ndim = len(shape)
    mesh = parts[0].mesh
    best: tuple = (None,) * ndim
    for x in sorted(parts, key=lambda x: (x.whole is None, math.prod(x.shape))):
        on = [None] * (ndim - x.ndim) + [m if n == shape[ndim - x.ndim + i] else None for i, (n, m) in
                                         enumerate(zip(x.shape, x.on))]  # fmt: skip
        if any(m is not None for m in on):
            best = tuple(on)
    return mesh, shape, best, [local_of(x, shape, best, mesh) for x in xs]


def local_of(x: Any, shape: tuple, on: tuple, mesh: Any) -> Any:
    """What of an operand that is broadcast to a shape this rank needs for its part in that layout."""
    if onp.ndim(x) == 0 and type(x) is not Part:
        return x
    ndim = len(x.shape)
    mine = [m if n == shape[len(shape) - ndim + i] else None for i, (n, m) in
            enumerate(zip(x.shape, on[len(shape) - ndim :]))]  # fmt: skip
    if type(x) is Part:
        local = moved(x, mine).local
        return local if x.ndim else local[()]
    return cut(mesh, x, mine)


def elementwise(row: Primitive, place: Any, *xs: Any, **params: Any) -> Any:
    if any(type(v) is Buffer for v in params.values()):
        refuse(f"{row.name} with an array among its parameters")
    mesh, shape, on, local = aligned(place, xs)
    out = row.numpy(*local, **params)
    if type(out) in (tuple, list):
        return type(out)(Part(mesh, shape, on, y) for y in out)
    return Part(mesh, shape, on, out)


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
    empty = [i for i, _ in lines if not x.local.shape[i]]
    if _row in ("max", "min") and empty:  # a rank that has nothing gives nothing
        shape = [0 if i in empty else 1 if i in axes else n for i, n in enumerate(x.local.shape)]
        y = onp.empty(shape, x.dtype)
    else:
        y = onp.asarray(run(x.local, axis=axes, keepdims=True, **params))
    for i, line in lines:
        if _row == "sum" and y.nbytes > collectives.ROOM:
            y = collectives._all_reduce(y, mesh=line, op="sum")
        else:
            y = run(collectives._all_gather(y, mesh=line, axis=i), axis=i, keepdims=True)
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
def scan(place: Any, x: Part, axis: Any = None, _row: Any = None, **params: Any) -> Part:
    if any(v is not None for v in params.values()) or x.dtype.kind not in "biufc":
        refuse(f"{_row} with {', '.join(params) or x.dtype}")
    if axis is None:
        x, axis = reshape(place, x, shape=(-1,)), 0
    (axis,) = axes_of(axis, x.ndim)
    run, join = TABLE[_row].numpy, onp.add if _row == "cumsum" else onp.multiply
    y = run(x.local, axis=axis)
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


LAST = ("sort", "argsort", "fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft")


@kernel(*LAST)
def along(place: Any, x: Part, axis: Any = -1, _row: Any = None, **params: Any) -> Part:
    """What works along one axis: in parts of another, which the array is split over on the way if need be."""
    if axis is None or not x.ndim:
        refuse(f"{_row} of all elements")
    (axis,) = axes_of(axis, x.ndim)
    if x.on[axis] is not None:
        other = next((i for i, m in enumerate(x.on) if m is None and x.shape[i] > 1), None)
        if other is None:
            refuse(f"{_row} along the only axis")
        on = list(x.on)
        on[axis], on[other] = None, on[axis]
        x = moved(x, on)
    y = TABLE[_row].numpy(x.local, axis=axis, **params)
    return Part(x.mesh, [y.shape[i] if i == axis else n for i, n in enumerate(x.shape)], x.on, y)


@kernel("diff")
def diff(place: Any, x: Part, n: int = 1, axis: int = -1) -> Part:
    (axis,) = axes_of(axis, x.ndim)
    minus = TABLE["not_equal" if x.dtype == "?" else "subtract"]
    for _ in range(n):
        later, before = (getitem(place, x, index=(*[slice(None)] * axis, s)) for s in (slice(1, None), slice(None, -1)))
        x = elementwise(minus, place, later, before)
    return x


@kernel("roll")
def roll(place: Any, x: Part, shift: Any, axis: Any = None) -> Part:
    if not isinstance(axis, (int, onp.integer)) or not isinstance(shift, (int, onp.integer)):
        if axis is None and isinstance(shift, (int, onp.integer)):
            return reshaped(roll(place, reshaped(x, (x.size,)), shift, 0), x.shape)
        refuse("roll along several axes")
    (axis,) = axes_of(axis, x.ndim)
    at = -shift % max(x.shape[axis], 1)
    front, end = (getitem(place, x, index=(*[slice(None)] * axis, s)) for s in (slice(at, None), slice(None, at)))
    return concatenate(place, front, end, axis=axis)


@kernel("tril", "triu")
def triangle(place: Any, x: Part, k: int = 0, _row: Any = None) -> Part:
    if x.ndim < 2:
        refuse(f"{_row} of one axis")
    i, j = (0 if m is None else bounds(n, x.mesh.axis(m))[0] for n, m in zip(x.shape[-2:], x.on[-2:]))
    return x.like(TABLE[_row].numpy(x.local, k=k + i - j))


@kernel("linalg.norm")
def norm(place: Any, x: Part, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Part:
    if ord not in (None, 2) or (ord == 2 and (x.ndim != 1 if axis is None else isinstance(axis, tuple))):
        refuse("a norm of this order")
    if x.dtype.kind not in "fc":
        x = x.like(x.local.astype("f8"))
    squares = x.like((x.local * x.local.conj()).real)
    y = reduce(place, squares, axis, keepdims, _row="sum")
    return y.like(onp.sqrt(y.local))


# ------------------------------------------------------------------ products
@kernel("matmul")
def matmul(place: Any, a: Any, b: Any) -> Part:
    mesh = (a if type(a) is Part else b).mesh
    a, b = (x if type(x) is Part else Part(mesh, x.shape, (None,) * x.ndim, x) for x in (a, b))
    if not a.ndim or not b.ndim or b.ndim > 2 or a.shape[-1] != b.shape[-2 if b.ndim == 2 else 0]:
        refuse("matmul of these shapes")
    k = 0 if b.ndim == 1 else -2
    columns = b.on[-1] if b.ndim == 2 else None
    rows = a.on[:-1]
    if columns is not None and columns in rows:  # both over one mesh axis: the smaller is made whole
        if a.size < b.size:
            a = gathered(a, rows.index(columns))
        else:
            b = gathered(b, b.ndim - 1)
    rows, columns = a.on[:-1], b.on[-1] if b.ndim == 2 else None
    taken = {m for m in (*rows, columns) if m is not None}
    ka, kb = a.on[-1], b.on[k]
    over = ka if ka is not None else kb
    if over in taken:
        over = None
    a = moved(a, (*rows, over))
    b = moved(b, (over,) if b.ndim == 1 else (over, columns))
    y = onp.asarray(TABLE["matmul"].fast(a.local, b.local))
    shape, on = (*a.shape[:-1], *b.shape[1:]), (*rows, *((columns,) if b.ndim == 2 else ()))
    if over is None:
        return Part(mesh, shape, on, y)
    line = mesh.axis(over)
    if y.size <= SMALL or on[0] is not None:
        return Part(mesh, shape, on, collectives._all_reduce(y, mesh=line, op="sum"))
    return Part(mesh, shape, (over, *on[1:]), collectives._reduce_scatter(y, mesh=line, axis=0, size=None))


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
    if params.get("order", "C") not in ("C", "A", None):
        refuse("reshape in this order")
    like = onp.broadcast_to(onp.zeros((), "?"), x.shape)
    params.pop("order", None)
    if _row == "reshape":
        shape = params["shape"]
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if -1 in shape:
            known = math.prod(n for n in shape if n != -1)
            shape = tuple(x.size // max(known, 1) if n == -1 else n for n in shape)
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


@kernel("flip")
def flip(place: Any, x: Part, axis: Any = None) -> Part:
    axes = axes_of(axis, x.ndim)
    return getitem(place, x, index=tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim)))


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
    mesh, shape, on, local = aligned(place, xs)
    if any(onp.shape(x) != shape for x in xs):
        refuse("stack of these shapes")
    axis %= ndim + 1
    return Part(mesh, (*shape[:axis], len(xs), *shape[axis:]), (*on[:axis], None, *on[axis:]), onp.stack(local, axis))


# ------------------------------------------------------------------ indices
class Taken:
    """What a slice takes of an axis: `length` elements start, start + step, ..."""

    __slots__ = ("length", "start", "step")

    def __init__(self, r: range) -> None:
        self.start, self.step, self.length = r.start, r.step, len(r)

    def of(self, a: int, b: int) -> tuple[int, int]:
        """(first, last + 1) of the positions in the result whose elements lie in [a, b)."""
        if self.step > 0:
            lo, hi = -(-(a - self.start) // self.step), -(-(b - self.start) // self.step)
        else:
            lo, hi = (self.start - b) // -self.step + 1, (self.start - a) // -self.step + 1
        lo = min(max(lo, 0), self.length)
        return lo, max(min(max(hi, 0), self.length), lo)

    def local(self, a: int, lo: int, hi: int) -> slice:
        """Those elements in a part that begins at a."""
        if hi <= lo:
            return slice(0, 0)
        first = self.start + self.step * lo - a
        end = first + self.step * (hi - lo)
        return slice(first, end if end >= 0 else None, self.step)


def basic(index: Any, shape: tuple) -> list | None:
    """For each axis the number, or Taken of the slice, that an index says, and None for a new axis; None where the
    index is not made of those alone."""
    parts = list(index) if type(index) is tuple else [index]
    parts = [p[()] if isinstance(p, onp.ndarray) and not p.ndim else p for p in parts]
    kinds = (int, onp.integer, slice, type(None), type(Ellipsis))
    if any(not isinstance(p, kinds) or isinstance(p, bool) for p in parts) or parts.count(Ellipsis) > 1:
        return None
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(shape):
        return None
    fill = [slice(None)] * (len(shape) - used)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts = [*parts[:at], *fill, *parts[at + 1 :]]
    out, axis = [], 0
    for p in parts:
        if p is None:
            out.append(None)
            continue
        n = shape[axis]
        if isinstance(p, slice):
            out.append(Taken(range(n)[p]))
        else:
            if not -n <= p < n:
                return None
            out.append(int(p) % n)
        axis += 1
    return out


@kernel("getitem")
def getitem(place: Any, x: Part, index: Any) -> Part:
    index = unwrapped(index)
    parts = basic(index, x.shape)
    if parts is None:
        return chosen(place, x, index)
    local, shape, on, axis, out = x.local, [], [], 0, 0
    near = next((i for i, p in enumerate(p for p in parts if p is not None)
                 if x.on[i] is not None and type(p) is Taken and p.step == 1), None)  # fmt: skip
    if near is not None:
        p = [p for p in parts if p is not None][near]
        found = shifted(x, near, p.start, p.length)
        local, near = (x.local, None) if found is None else (found, near)
    for p in parts:  # `out` is the axis of `local` that is next
        if p is None:
            local = onp.expand_dims(local, out)
            shape.append(1), on.append(None)
            out += 1
            continue
        n, m = x.shape[axis], x.on[axis]
        line = None if m is None else x.mesh.axis(m)
        here: list = [slice(None)] * local.ndim
        if type(p) is int:
            if line is None:
                here[out] = p
                local = local[tuple(here)]
            else:
                owner = next(r for r, (a, b) in enumerate(ranges(n, line)) if a <= p < b)
                if owner == line.rank:
                    here[out] = p - bounds(n, line)[0]
                    local = onp.array(local[tuple(here)], order="C")
                else:
                    local = onp.empty(local.shape[:out] + local.shape[out + 1 :], local.dtype)
                local = onp.asarray(collectives._broadcast(local, mesh=line, root=owner))
        else:
            if line is None:
                here[out] = p.local(0, 0, p.length)
                local = local[tuple(here)]
            elif axis != near and (p.start, p.step, p.length) != (0, 1, n):
                have = [p.of(a, b) for a, b in ranges(n, line)]
                here[out] = p.local(bounds(n, line)[0], *have[line.rank])
                local = exchange(line, local[tuple(here)], out, have, ranges(p.length, line))
            shape.append(p.length), on.append(m)
            out += 1
        axis += 1
    return Part(x.mesh, shape, on, local)


def unwrapped(index: Any) -> Any:
    """An index with the parts of split arrays in the place of their buffers; numbers of those as numbers."""
    if type(index) is Buffer:
        part = index.data
        return part.local[()] if not part.ndim else part
    if type(index) is tuple:
        return tuple(map(unwrapped, index))
    return onp.asarray(index) if type(index) is list else index


def whole_index(index: Any) -> Any:
    """An index with the whole of the parts in it."""
    return tuple(map(whole_index, index)) if type(index) is tuple else whole_of(index) if type(index) is Part else index


def mask_of(index: Any, x: Part) -> Part | None:
    """A mask over the leading axes of x as a part that lies as x does; None for any other index."""
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if not isinstance(index, (onp.ndarray, Part)) or index.dtype != bool or not 0 < index.ndim <= x.ndim:
        return None
    if index.shape != x.shape[: index.ndim]:
        return None
    on = x.on[: index.ndim]
    return moved(index, on) if type(index) is Part else Part(x.mesh, index.shape, on, cut(x.mesh, index, on))


def in_front(x: Part) -> Part:
    """x, split along its first axis alone, so that each rank's part is a piece of its elements in their order."""
    m = next((m for m in x.on if m is not None), None)
    return moved(x, (m, *[None] * (x.ndim - 1)))


def chosen(place: Any, x: Part, index: Any) -> Part:
    """x[mask], and x[integers] along the first axis."""
    if not x.split:  # whole on every rank
        y = onp.asarray(x.local[whole_index(index)])
        return Part(x.mesh, y.shape, (None,) * y.ndim, y)
    mask = mask_of(index, x)
    if mask is not None:
        x = in_front(x)
        mask = moved(mask, x.on[: mask.ndim])
        line = x.mesh.axis(x.on[0])
        y = x.local[mask.local]
        ends = onp.cumsum(collectives._all_gather(onp.array([len(y)]), mesh=line, axis=0)).tolist()
        have = list(zip([0, *ends], ends))
        local = exchange(line, y, 0, have, ranges(ends[-1], line))
        return Part(x.mesh, (ends[-1], *y.shape[1:]), (x.on[0], *[None] * (y.ndim - 1)), local)
    at = integers_of(index, x)
    if at is None or at.ndim != 1:
        refuse("this index")
    x = in_front(x)
    line = x.mesh.axis(x.on[0])
    wanted, source = ranges(len(at), line), ranges(x.shape[0], line)
    start = source[line.rank][0]
    mine = [at[a:b] for a, b in wanted]
    held = [(m >= start) & (m < source[line.rank][1]) for m in mine]
    pieces = [x.local[m[h] - start] for m, h in zip(mine, held)]
    own = mine[line.rank]
    owners = onp.searchsorted([b for _, b in source], own, side="right")
    each = math.prod(x.shape[1:]) * x.dtype.itemsize
    many = [int((owners == r).sum()) for r in range(line.size)]
    group = line.group()
    if group is None:
        came = collectives.raw(pieces[0])
    else:
        group.agree({"op": "x[integers]", "dtype": x.dtype.str, "shape": x.shape, "n": len(at)}, alike=("shape", "n"))
        sent = onp.concatenate([collectives.raw(onp.ascontiguousarray(p)) for p in pieces])
        came = group.exchange(sent, [p.nbytes for p in pieces], [n * each for n in many], "x[integers]")
    y = onp.empty((len(own), *x.shape[1:]), x.dtype)
    y[onp.argsort(owners, kind="stable")] = came.view(x.dtype).reshape(y.shape)
    return Part(x.mesh, (len(at), *x.shape[1:]), (x.on[0], *[None] * (x.ndim - 1)), y)


def integers_of(index: Any, x: Part) -> onp.ndarray | None:
    """The places along the first axis that an index of one integer array names, none below 0; None for others."""
    if type(index) is tuple and len(index) == 1:
        (index,) = index
    if not isinstance(index, (onp.ndarray, Part)) or index.dtype.kind not in "iu":
        return None
    at = whole_of(index) if type(index) is Part else index
    n = x.shape[0]
    if at.size and (at.min() < -n or at.max() >= n):
        return None
    return onp.where(at < 0, at + n, at).astype(onp.int64)


# ------------------------------------------------------------------ writes
@kernel("write_view")
def write_view(
    place: Any, old: Part, new: Any, path: tuple = (), index: Any = (), layout: Any = None, donate: bool = False
) -> Part:
    index = unwrapped(index)
    parts = composed(path, index, old.shape)
    if parts is None and not path:
        return write_chosen(old, new, index, donate)
    if parts is None or None in parts:
        refuse("a write through this view, or to this index,")
    shape = tuple(p.length for p in parts if type(p) is Taken)
    new = fit(new, shape)
    here: list = []
    lines, k = [], 0
    mine = True
    for i, p in enumerate(parts):
        line = None if old.on[i] is None else old.mesh.axis(old.on[i])
        a, b = (0, old.shape[i]) if line is None else bounds(old.shape[i], line)
        if type(p) is int:
            mine &= a <= p < b
            here.append(p - a)
            continue
        here.append(p.local(a, *p.of(a, b)))
        lines.append((k, line, p, old.shape[i], old.on[i]))
        k += 1
    if type(new) is Part:  # bring it to where the elements are that it replaces
        on = [m if n == shape[len(shape) - new.ndim + j] else None for j, (n, (_, _, _, _, m)) in
              enumerate(zip(new.shape, lines[len(shape) - new.ndim :]))]  # fmt: skip
        new = moved(new, on)
    for k, line, p, n, _ in lines:
        j = k - (len(shape) - len(onp.shape(new)))
        if line is None or j < 0 or new.shape[j] != p.length:
            continue
        have = [p.of(a, b) for a, b in ranges(n, line)]
        cuts = (slice(None),) * j + (slice(*have[line.rank]),)
        if type(new) is not Part:
            new = new[cuts]
        elif new.on[j] is None:
            new = Part(new.mesh, new.shape, new.on, new.local[cuts])
        else:
            new = Part(new.mesh, new.shape, new.on, exchange(line, new.local, j, ranges(p.length, line), have))
    local = written(old, donate)
    if mine:
        local[tuple(here)] = new.local if type(new) is Part else new
    return old.like(local)


def written(old: Part, donate: bool) -> onp.ndarray:
    """The memory that a write to `old` goes to: its own, if nobody else shows it, or a copy."""
    return old.local if donate and old.local.flags.writeable else onp.array(old.local)


def fit(new: Any, shape: tuple) -> Any:
    """A value without the leading ones that NumPy lets an assignment drop; raises as NumPy where it does not fit."""
    given = onp.shape(new)
    while len(onp.shape(new)) > len(shape) and new.shape[0] == 1:
        new = reshaped(new, new.shape[1:]) if type(new) is Part else new[0]
    now = onp.shape(new)
    if len(now) > len(shape) or any(n not in (1, s) for n, s in zip(now[::-1], shape[::-1])):
        raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")
    return new


def composed(path: tuple, index: Any, shape: tuple) -> list | None:
    """The index into the root of what an index into a view of it says, where all steps are slices and numbers."""
    axes: list = [range(n) for n in shape]
    for step in (*[(row.name, params) for row, params in path], ("getitem", {"index": index})):
        if step[0] != "getitem":
            return None
        left = [i for i, a in enumerate(axes) if type(a) is range]
        parts = basic(unwrapped(step[1]["index"]), tuple(len(axes[i]) for i in left))
        if parts is None or None in parts:
            return None
        for i, p in zip(left, parts, strict=True):
            if type(p) is int:
                axes[i] = axes[i][p]
            else:
                stop = p.start + p.step * p.length
                axes[i] = axes[i][p.start : stop if stop >= 0 else None : p.step] if p.length else range(0)
    return [Taken(a) if type(a) is range else a for a in axes]


def write_chosen(old: Part, new: Any, index: Any, donate: bool = False) -> Part:
    """old[mask] = new, and old[integers] = new along the first axis."""
    mask = mask_of(index, old)
    local = written(old, donate)
    if not old.split:
        local[whole_index(index)] = whole_of(new) if type(new) is Part else new
        return old.like(local)
    if mask is not None:
        rest = old.shape[mask.ndim :]
        if onp.shape(new) == () or onp.shape(new) == rest == ():
            local[mask.local] = new.local if type(new) is Part else new
            return old.like(local)
        if any(m is not None for m in old.on[1:]) or old.on[0] is None:
            refuse("a write to a mask of an array that is split so")
        line = old.mesh.axis(old.on[0])
        count = int(mask.local.sum())
        ends = onp.cumsum(collectives._all_gather(onp.array([count]), mesh=line, axis=0)).tolist()
        if len(new.shape) != 1 + len(rest) or new.shape[0] != ends[-1]:
            refuse("a write of this shape to a mask")
        have = list(zip([0, *ends], ends))
        if type(new) is Part:
            new = moved(new, (old.on[0], *[None] * (new.ndim - 1)))
            piece = exchange(line, new.local, 0, ranges(ends[-1], line), have)
        else:
            piece = new[slice(*have[line.rank])]
        local[mask.local] = piece
        return old.like(local)
    at = integers_of(index, old)
    if at is None or at.ndim != 1 or any(m is not None for m in old.on[1:]):
        refuse("a write to this index")
    shape = (len(at), *old.shape[1:])
    new = fit(new, shape)
    value = onp.broadcast_to(whole_of(new) if type(new) is Part else new, shape)
    start, stop = (0, old.shape[0]) if old.on[0] is None else bounds(old.shape[0], old.mesh.axis(old.on[0]))
    mine = (at >= start) & (at < stop)
    local[at[mine] - start] = value[mine]
    return old.like(local)


@kernel("index_add")
def index_add(place: Any, g: Part, shape: tuple, index: Any) -> Part:
    """Zeros of a shape with g added at an index: what the gradient of x[index] is."""
    index = unwrapped(index)
    parts = basic(index, tuple(shape))
    on = tuple(m if n > 1 else None for n, m in zip(shape, fitted(place.on, len(shape))))
    local = [n if m is None else onp.subtract(*bounds(n, g.mesh.axis(m))[::-1]) for n, m in zip(shape, on)]
    zeros = Part(g.mesh, shape, on, onp.zeros(local, g.dtype))
    if parts is not None:
        if None in parts:
            kept = [p for p in parts if type(p) is not int]
            g = reshaped(g, tuple(n for n, p in zip(g.shape, kept) if p is not None))
            index = tuple(p for p in (index if type(index) is tuple else (index,)) if p is not None)
        return write_view(place, zeros, g, index=index)
    if mask_of(index, zeros) is not None:
        return write_chosen(zeros, g, index)
    at = integers_of(index, zeros)
    if at is None or at.ndim != 1 or any(m is not None for m in on[1:]):
        refuse("the gradient of this index")
    value = whole_of(g)
    start, stop = (0, shape[0]) if on[0] is None else bounds(shape[0], g.mesh.axis(on[0]))
    mine = (at >= start) & (at < stop)
    onp.add.at(zeros.local, at[mine] - start, value[mine])
    return zeros
