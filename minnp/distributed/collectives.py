"""Collectives: rows whose values are on several processes, with their transposes as gradient rules.

A function that every rank differentiates has the gradient of the *sum* of what the ranks' functions return: a
collective is a linear map from all ranks' arrays to all ranks' arrays, and its rule is the transpose of that map.

    all_reduce sum <-> itself     all_gather <-> reduce_scatter     all_to_all <-> itself     broadcast <-> reduce

So every rank must walk backwards through the same collectives as well: a result that only some ranks use stops the
others, which is told after `timeout`.

These rows are in no table: they are not to be folded, shared, reordered or left out where a graph is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, read, wrap
from ..core.rows.dispatch import bind, describe
from ..core.rows.primitive import TABLE, Primitive
from ..core.rows.value import Buffer, Host

REDUCING = {"sum": onp.add, "mean": onp.add, "max": onp.maximum, "min": onp.minimum, "prod": onp.multiply}
BY_GLOO = ("i1", "u1", "i4", "i8", "f2", "f4", "f8")  # what gloo adds up; other dtypes are gathered, and NumPy does
ROOM = 512  # bytes of an array that travels within the record of what the ranks are about to do


def part(n: int, ranks: int, rank: int) -> slice:
    """A rank's share of n things: as even as can be, the first ranks take what is left over (as np.array_split)."""
    each, more = divmod(n, ranks)
    start = rank * each + min(rank, more)
    return slice(start, start + each + (rank < more))


def parts(n: int, ranks: int) -> list[int]:
    """How many of n things each rank has."""
    return [n // ranks + (r < n % ranks) for r in range(ranks)]


# ------------------------------------------------------------------ values as bytes
def hosted(x: Any) -> onp.ndarray:
    """A value as a NumPy array in C order, that may be read only."""
    return onp.ascontiguousarray(x.host() if type(x) is Buffer else x).reshape(onp.shape(x))


def raw(x: onp.ndarray) -> onp.ndarray:
    """The bytes of an array in C order, as a writable array of them (torch takes no other)."""
    b = x.reshape(-1).view("u1") if x.size else onp.empty(0, "u1")
    return b if b.flags.writeable else b.copy()


def back(y: onp.ndarray, x: Any) -> Any:
    """A result where x lives: a buffer on x's device, a number if x is one."""
    if type(x) is Buffer:
        return Buffer(x.backend.from_host(onp.asarray(y)), x.backend, computed=True)
    return y[()] if not isinstance(x, Host) and not y.ndim else y


def facts(op: str, x: Any, **more: Any) -> dict:
    return {"op": op, "dtype": x.dtype.str if x.dtype.names is None else str(x.dtype), "shape": x.shape, **more}


# ------------------------------------------------------------------ kernels
def _all_reduce(x: Any, *, mesh: Any, op: str) -> Any:
    dtype = x.dtype
    if dtype.kind == "b" and op in ("sum", "prod"):
        x = x.astype(onp.int64)  # as np.sum counts
    if op == "mean" and dtype.kind in "biu":
        x = x.astype(onp.float64)
    group = mesh.group()
    if group is None:
        return _own(x)
    y = hosted(x)
    told = facts("all_reduce", x, by=op)
    small = y.nbytes <= ROOM
    found = group.agree(told, y.tobytes() if small else b"", ("by", "dtype", "shape"))
    if small or y.dtype.str[1:] not in BY_GLOO:
        if small:
            each = [onp.frombuffer(b, y.dtype) for _, b in found]
        else:
            each = list(group.gather(raw(y), "all_reduce").view(y.dtype))
        total = each[0].copy()
        for other in each[1:]:
            REDUCING[op](total, other, out=total)
        total = total.reshape(y.shape)
    else:
        total = onp.array(y)
        group.sum_into(group.torch.from_numpy(total), f"all_reduce of {describe(y)}", "sum" if op == "mean" else op)
    if op == "mean":
        total /= mesh.size
    return back(total, x)


def added(y: onp.ndarray, mesh: Any) -> onp.ndarray:
    """The ranks' y added up as np.add does, in their dtype: of truth values, whether any is true."""
    return onp.asarray(_all_reduce(y, mesh=mesh, op="max" if y.dtype.kind == "b" else "sum"))


def _own(x: Any) -> Any:
    """What a mesh of one returns: an array that is not x's memory."""
    return onp.array(x) if isinstance(x, Host) else x


def _all_gather(x: Any, *, mesh: Any, axis: int) -> Any:
    group = mesh.group()
    if group is None:
        return _own(x)
    y = hosted(x)
    small = y.nbytes <= ROOM
    rest = [n for k, n in enumerate(y.shape) if k != axis]
    told = facts("all_gather", x, axis=axis, beside=rest)
    found = group.agree(told, y.tobytes() if small else b"", ("axis", "dtype", "beside"))
    shapes = [tuple(said["shape"]) for said, _ in found]
    if small and all(b for _, b in found):
        each = [onp.frombuffer(b, y.dtype).reshape(s) for (_, b), s in zip(found, shapes)]
    else:
        sizes = [onp.prod(s, dtype=int) * y.dtype.itemsize for s in shapes]
        mine = onp.zeros(max(sizes), "u1") if min(sizes) < max(sizes) else raw(y)
        mine[: y.nbytes] = raw(y)
        every = group.gather(mine, f"all_gather of {describe(y)}")
        each = [b[:n].view(y.dtype).reshape(s) for b, n, s in zip(every, sizes, shapes)]
        if axis == 0 and min(sizes) == max(sizes):
            return back(every.reshape(-1).view(y.dtype).reshape((-1, *y.shape[1:]) if y.size else _joined(shapes)), x)
    return back(onp.concatenate(each, axis), x)


def _joined(shapes: list) -> tuple:
    return (sum(s[0] for s in shapes), *shapes[0][1:])


def _reduce_scatter(x: Any, *, mesh: Any, axis: int, size: int | None) -> Any:
    group = mesh.group()
    if group is None:
        return _own(x)
    y = hosted(x)
    told = facts("reduce_scatter", x, axis=axis, size=size)
    sizes = [said["size"] for said, _ in group.agree(told, alike=("axis", "dtype", "shape"))]
    if None in sizes:
        sizes = parts(y.shape[axis], mesh.size)
    if sum(sizes) != y.shape[axis]:
        raise ValueError(f"reduce_scatter of {describe(y)}: the ranks ask for {sizes} along axis {axis}, which has "
                         f"{y.shape[axis]}")  # fmt: skip
    pieces = onp.split(y, onp.cumsum(sizes)[:-1], axis)
    mine = pieces[mesh.rank]
    sent = onp.concatenate([raw(onp.ascontiguousarray(p)) for p in pieces])
    coming = group.exchange(sent, [p.nbytes for p in pieces], [mine.nbytes] * mesh.size, told["op"])
    total = onp.zeros(mine.shape, y.dtype)
    if mine.size:
        for other in coming.view(y.dtype).reshape((mesh.size, *mine.shape)):
            total += other
    return back(total, x)


def _all_to_all(x: Any, *, mesh: Any, split: int, concat: int, sizes: Any) -> Any:
    group = mesh.group()
    if group is None:
        return _own(x)
    y = hosted(x)
    sizes = parts(y.shape[split], mesh.size) if sizes is None else sizes
    told = facts("all_to_all", x, split=split, concat=concat, sizes=list(map(int, sizes)))
    shapes = []
    for said, _ in group.agree(told, alike=("split", "concat", "dtype")):
        shape = list(said["shape"])
        shape[split] = said["sizes"][mesh.rank]
        shapes.append(tuple(shape))
    pieces = onp.split(y, onp.cumsum(sizes)[:-1], split)
    sent = onp.concatenate([raw(onp.ascontiguousarray(p)) for p in pieces])
    many = [onp.prod(s, dtype=int) * y.dtype.itemsize for s in shapes]
    coming = group.exchange(sent, [p.nbytes for p in pieces], many, told["op"])
    each = onp.split(coming, onp.cumsum(many)[:-1])
    return back(onp.concatenate([b.view(y.dtype).reshape(s) for b, s in zip(each, shapes)], concat), x)


def _broadcast(x: Any, *, mesh: Any, root: int) -> Any:
    group = mesh.group()
    if group is None:
        return _own(x)
    y = hosted(x)
    small = y.nbytes <= ROOM
    payload = y.tobytes() if small and mesh.rank == root else b""
    found = group.agree(facts("broadcast", x, root=root), payload, ("root", "dtype", "shape"))
    if small:
        return back(onp.frombuffer(found[root][1], y.dtype).reshape(y.shape).copy(), x)
    out = onp.array(y) if mesh.rank == root else onp.empty(y.shape, y.dtype)
    group.broadcast(raw(out), root, f"broadcast of {describe(y)}")
    return back(out, x)


def _reduce(x: Any, *, mesh: Any, root: int) -> Any:
    total = _all_reduce(x, mesh=mesh, op="sum")
    return total if mesh.rank == root else bind(TABLE["zeros_like"], (total,), {})


# ------------------------------------------------------------------ rules
def _reduced(g: Any, y: Any, x: Any, *, mesh: Any, op: str) -> Any:
    total = ALL_REDUCE(g, mesh=mesh, op="mean" if op == "mean" else "sum")
    if op in ("max", "min"):  # to those that have it, in equal parts
        has = TABLE["equal"](x, y).astype(x.dtype)
        return total * (has / ALL_REDUCE(has, mesh=mesh, op="sum"))
    if op == "prod":  # the product of the others: no division, which zeros would not allow
        shape = (1, *x.shape)
        every = ALL_GATHER(TABLE["reshape"](x, shape=shape), mesh=mesh, axis=0)
        others = TABLE["concatenate"](every[: mesh.rank], every[mesh.rank + 1 :], axis=0)
        return total * TABLE["prod"](others, axis=0)
    return total


def _exchanged(g: Any, y: Any, x: Any, *, mesh: Any, split: int, concat: int, sizes: Any) -> Any:
    if split == concat:  # what came from each rank is the share of its array that it sent here
        sent = parts(x.shape[split], mesh.size) if sizes is None else sizes
        counts = _all_gather(onp.array([sent]), mesh=mesh, axis=0)[:, mesh.rank].tolist()
    else:
        counts = _all_gather(onp.array([x.shape[concat]]), mesh=mesh, axis=0).tolist()
    return ALL_TO_ALL(g, mesh=mesh, split=concat, concat=split, sizes=tuple(counts))


def same(metas: Any, params: dict) -> Any:
    return metas[0]


ALL_REDUCE = Primitive("all_reduce", _all_reduce, vjp=[_reduced], anywhere=True)
ALL_GATHER = Primitive(
    "all_gather",
    _all_gather,
    vjp=[lambda g, y, x, *, mesh, axis: REDUCE_SCATTER(g, mesh=mesh, axis=axis, size=x.shape[axis])],
    jvp="linear",
    saves="",
    anywhere=True,
)
REDUCE_SCATTER = Primitive(
    "reduce_scatter",
    _reduce_scatter,
    vjp=[lambda g, y, x, *, mesh, axis, size: ALL_GATHER(g, mesh=mesh, axis=axis)],
    jvp="linear",
    saves="",
    anywhere=True,
)
ALL_TO_ALL = Primitive("all_to_all", _all_to_all, vjp=[_exchanged], jvp="linear", saves="", anywhere=True)
BROADCAST = Primitive(
    "broadcast",
    _broadcast,
    vjp=[lambda g, y, x, *, mesh, root: REDUCE(g, mesh=mesh, root=root)],
    jvp="linear",
    saves="",
    shape=same,
    anywhere=True,
)
REDUCE = Primitive(
    "reduce",
    _reduce,
    vjp=[lambda g, y, x, *, mesh, root: BROADCAST(g, mesh=mesh, root=root)],
    jvp="linear",
    saves="",
    shape=same,
    anywhere=True,
)


# ------------------------------------------------------------------ what users call
def value_of(x: Any) -> Any:
    """The value of an array, a number or a list of numbers. Raises TypeError for objects, which would be pickled."""
    value = read(x) if type(x) in ARRAY_TYPES else x if type(x) is Host else onp.asarray(x)[()]
    if value.dtype.hasobject:
        raise TypeError(f"only numbers, texts and records travel between processes, got {describe(value)}")
    return value


def axis_of(name: str, axis: int, x: Any) -> int:
    if not isinstance(axis, (int, onp.integer)) or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{name} along axis {axis!r} of an array of shape {x.shape}, which has {x.ndim} axes")
    return int(axis) % x.ndim


def root_of(name: str, root: int, mesh: Any) -> int:
    if not isinstance(root, int) or not 0 <= root < mesh.size:
        raise ValueError(f"{name} from rank {root!r} of a mesh of {mesh.size}")
    return root


def all_reduce(x: Any, mesh: Any, op: str = "sum") -> Any:
    """The elementwise sum of every rank's x, or another of them, with the same numbers on every rank.

    mesh   the processes that take part; each of them makes the same call
    op     "sum", "mean", "max", "min" or "prod"
    x      of one shape and dtype on all ranks (MeshError where they differ). The result has x's dtype, but booleans are
           counted, and the mean of integers is float64
    Gradient: the transpose, of the sum of what all ranks return; of a maximum, to those ranks that have it.

    Raises ValueError for another op.

    >>> mesh = distributed.init()
    >>> distributed.all_reduce(np.arange(3.0), mesh, op="max")
    array([0., 1., 2.])
    >>> distributed.leave()
    """
    if op not in REDUCING:
        raise ValueError(f"all_reduce by {op!r}; known: {', '.join(REDUCING)}")
    return wrap(bind(ALL_REDUCE, (value_of(x),), {"mesh": mesh, "op": op}))


def all_gather(x: Any, mesh: Any, axis: int = 0) -> Any:
    """Every rank's x joined along an axis in the order of ranks, on every rank. The ranks may differ along that axis.

    mesh   the processes that take part; each of them makes the same call

    Gradient: reduce_scatter.

    >>> mesh = distributed.init()
    >>> distributed.all_gather(np.arange(3.0), mesh).shape == (3 * mesh.size,)
    True
    >>> distributed.leave()
    """
    value = value_of(x)
    return wrap(bind(ALL_GATHER, (value,), {"mesh": mesh, "axis": axis_of("all_gather", axis, value)}))


def reduce_scatter(x: Any, mesh: Any, axis: int = 0, size: int | None = None) -> Any:
    """This rank's part, along an axis, of the sum of every rank's x.

    mesh    the processes that take part; each of them makes the same call
    size    how many this rank keeps, in the order of ranks; by default as even as can be (np.array_split)
    Gradient: all_gather.

    >>> mesh = distributed.init()
    >>> distributed.reduce_scatter(np.ones(4), mesh).shape == (4 // mesh.size,)
    True
    >>> distributed.leave()
    """
    value = value_of(x)
    params = {"mesh": mesh, "axis": axis_of("reduce_scatter", axis, value), "size": size}
    return wrap(bind(REDUCE_SCATTER, (value,), params))


def all_to_all(x: Any, mesh: Any, split: int = 0, concat: int = 0) -> Any:
    """Part k of every rank's x, on rank k: what an array split along one axis is, split along another.

    mesh            the processes that take part; each of them makes the same call
    split, concat   x is cut along `split` in as many parts as there are ranks (np.array_split); what came from the
                    ranks is joined along `concat`, in their order

    An array that is whole along one axis and split over ranks along another becomes the other way round. Gradient: the
    same, backwards.

    >>> mesh = distributed.init()
    >>> distributed.all_to_all(np.ones((2, 3)), mesh, split=0, concat=1).shape
    (2, 3)
    >>> distributed.leave()
    """
    value = value_of(x)
    split, concat = axis_of("all_to_all", split, value), axis_of("all_to_all", concat, value)
    return wrap(bind(ALL_TO_ALL, (value,), {"mesh": mesh, "split": split, "concat": concat, "sizes": None}))


def broadcast(x: Any, mesh: Any, root: int = 0) -> Any:
    """Rank `root`'s x on every rank. All give an x of the same shape and dtype. Gradient: the sum at the root.

    mesh   the processes that take part; each of them makes the same call

    >>> mesh = distributed.init()
    >>> distributed.broadcast(np.arange(3.0), mesh)
    array([0., 1., 2.])
    >>> distributed.leave()
    """
    return wrap(bind(BROADCAST, (value_of(x),), {"mesh": mesh, "root": root_of("broadcast", root, mesh)}))


def reduce(x: Any, mesh: Any, root: int = 0) -> Any:
    """The sum of every rank's x at rank `root`, zeros elsewhere. Gradient: broadcast.

    mesh   the processes that take part; each of them makes the same call

    >>> mesh = distributed.init()
    >>> distributed.reduce(np.ones(2), mesh)
    array([1., 1.])
    >>> distributed.leave()
    """
    return wrap(bind(REDUCE, (value_of(x),), {"mesh": mesh, "root": root_of("reduce", root, mesh)}))


def barrier(mesh: Any) -> None:
    """Wait until every rank is here, and has computed its parts of split arrays.

    mesh   the processes that take part; each of them makes the same call

    >>> mesh = distributed.init()
    >>> distributed.barrier(mesh)
    >>> distributed.leave()
    """
    for device in mesh.devices.values():
        device.synchronize()
    if (group := mesh.group()) is not None:
        group.agree({"op": "barrier"})
