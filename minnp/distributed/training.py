"""Gradients of a function of a batch that the ranks hold in shares.

Gradients travel in buckets, while the walk backwards goes on: a bucket of some 25 MB is sent as soon as the walk has
passed the first use of each of its parameters, those of the last layers first. The walk is over when the first layer's
bucket is sent; then this process waits for what has not arrived.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as onp

import minnp

from ..core import cpu
from ..core.arrays.array import ARRAY_TYPES, array_of, on_host, read
from ..core.rows.dispatch import describe
from ..core.rows.pytree import tree_flatten, tree_leaves
from ..core.rows.references import references
from ..core.rows.state import watched
from ..core.rows.value import Buffer, Tracer, concrete, lower
from ..core.transforms.grad import argument_numbers, differentiate
from ..errors import MeshError, TracedValueError
from .batches import Share, sharing
from .collectives import BY_GLOO, REDUCING, hosted, raw

MB = 1 << 20
ALONE = 1 * MB  # bytes of a gradient that travels alone, without a copy
VALUE = 256  # bytes of a result that travels within the ranks' agreement


class Buckets:
    """The gradients of some arrays on their way: flat arrays that are summed over the ranks, each when it is full.

    like     the arrays whose gradients they are
    plan     lists of numbers of arrays, a bucket each
    """

    def __init__(self, group: Any, like: list, plan: list[list[int]]) -> None:
        self.group, self.like, self.plan = group, like, plan
        self.flat: dict[int, onp.ndarray] = {}
        self.works: dict[int, Any] = {}

    def send(self, b: int, grads: list) -> None:
        """Start bucket b on its way with what `grads` has for its arrays (None: zeros)."""
        members = self.plan[b]
        if len(members) == 1 and free_to_write(grads, members[0]):  # it travels where it lies
            flat = self.flat[b] = grads[members[0]].reshape(-1)
            grads[members[0]] = None
            self._start(b, flat)
            return
        flat = self.flat[b] = cpu.empty((sum(self.like[k].size for k in members),), self.like[members[0]].dtype)
        parts = []
        for k in members:
            g, like, grads[k] = grads[k], self.like[k], None
            g = g.host() if type(g) is Buffer else g
            if g is None or onp.shape(g) != like.shape:
                g = onp.broadcast_to(flat.dtype.type(0) if g is None else g, like.shape)
            parts.append(g.ravel())
        onp.concatenate(parts, out=flat, casting="same_kind")
        self._start(b, flat)

    def _start(self, b: int, flat: onp.ndarray) -> None:
        what = f"the sum of gradients, bucket {b + 1} of {len(self.plan)} ({describe(flat)})"
        self.group.transport.doing = what
        numbers = flat.view(flat.real.dtype)
        if numbers.dtype.str[1:] in BY_GLOO and numbers.size:
            tensor = self.group.torch.from_numpy(numbers)
            self.works[b] = self.group.start(lambda: self.group.all_reduce(tensor), what), what
        elif numbers.size:
            each = self.group.gather(raw(flat), what).view(flat.dtype)
            flat[...] = REDUCING["sum"].reduce(each, axis=0)

    def arrive(self) -> list:
        """The sums as arrays, where the arrays they are gradients of live."""
        out: list = [None] * len(self.like)
        for b, members in enumerate(self.plan):
            if b in self.works:
                self.group.transport.wait(*self.works.pop(b))
            at = 0
            for k in members:
                like = self.like[k]
                g = self.flat[b][at : at + like.size].reshape(like.shape)
                at += like.size
                if type(like) is Buffer:
                    out[k] = array_of(Buffer(like.backend.from_host(g), like.backend, computed=True))
                else:
                    out[k] = on_host(g)
        return out


def planned(like: list, order: list[int], limit: float) -> list[list[int]]:
    """Buckets of at most `limit` bytes (or one array), of one dtype each, of the arrays in that order.

    A large array is a bucket by itself: it need not be copied into one.
    """
    plan: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for k in order:
        nbytes = like[k].size * like[k].dtype.itemsize
        if nbytes >= min(ALONE, limit):
            plan.append([k])
            continue
        members, held = open_.get(like[k].dtype, ([], 0))
        if members and held + nbytes > limit:
            plan.append(members)
            members, held = [], 0
        members.append(k)
        open_[like[k].dtype] = members, held + nbytes
    return plan + [members for members, _ in open_.values() if members]


def free_to_write(grads: list, k: int) -> bool:
    """Whether grads[k] is an array of the walk's own, which nothing else refers to."""
    g = grads[k]
    plain = type(g) is onp.ndarray and g.flags.c_contiguous and g.flags.writeable and cpu.owned(g)
    del g
    return plain and references(list.__getitem__, grads, k) == 1


def first_uses(nodes: list, inputs: int) -> list[int]:
    """For each of a tape's inputs the first node that reads it: passed that, the walk backwards has its gradient."""
    first = [len(nodes)] * inputs
    for n in range(len(nodes) - 1, inputs - 1, -1):
        for p in nodes[n][2]:
            if 0 <= p < inputs:
                first[p] = n
    return first


class Step:
    """A function with its gradients over a mesh, made by value_and_grad; for its arguments see value_and_grad.

    >>> mesh = distributed.init()
    >>> step = distributed.value_and_grad(lambda w: w * w, mesh)
    >>> type(step) is distributed.Step
    True
    >>> distributed.leave()
    """

    def __init__(
        self, f: Callable, mesh: Any, argnum: Any, has_aux: bool, weight: Callable | None, bucket: float
    ) -> None:
        self.f, self.mesh, self.has_aux, self.weight, self.bucket = f, mesh, has_aux, weight, bucket * MB
        self.argnum = argnum
        self.numbers, self.form = argument_numbers(argnum)
        self.synchronised = True
        self.__name__ = getattr(f, "__name__", "function")
        self._purpose = "gradients"

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        weight = 1.0 if self.weight is None else self.weight(*args, **kwargs)
        counts = isinstance(weight, Tracer) or bool(weight != 0)
        if self.mesh.size == 1 or not self.synchronised:
            value, grads = self._alone()(*args, **kwargs)
            return value, grads
        share = Share(self.mesh, weight, counts)
        if watched() or any(isinstance(read(x), Tracer) for x in tree_leaves((args, kwargs)) if type(x) in ARRAY_TYPES):
            return self._by_rows(share, args, kwargs)
        found: list = []

        def walk(run: Any, seeds: list) -> list:
            total, buckets, stops, part = self._agreed(run, share)
            found.append(total)
            seeds = [(n, g * g.dtype.type(part)) for n, g in seeds]
            run.trace.backward(seeds, len(run.starts), stops)
            return buckets.arrive()

        with sharing(share):
            grads, value, aux = differentiate(self.f, self.numbers, args, kwargs, self.has_aux, walk)
        value = found[0]
        return (value, aux) if self.has_aux else value, self.form(grads)

    def _alone(self) -> Callable:
        return minnp.value_and_grad(self.f, self.argnum, has_aux=self.has_aux)

    def _agreed(self, run: Any, share: Share) -> tuple[Any, Buckets, list, float]:
        """(the mean of the ranks' results, the buckets, where the walk stops to send them, this rank's part of it all).

        One message: each rank's weight, its result, and what its gradients look like.
        """
        starts, nodes = run.starts, run.trace.nodes
        if any(type(lower(v)) is Tracer and type(v.value) is Tracer for v in run.values):
            raise TracedValueError(
                f"distributed.value_and_grad of {self.__name__} reads a traced array from outside its arguments, which "
                "would get no gradient: pass it in as an argument, or use np.stop_gradient"
            )
        first = first_uses(nodes, len(starts))
        order = sorted(range(len(starts)), key=lambda k: (-first[k], -k))
        looks = [f"{describe(x)}" for x in starts]
        if len(run.values) != 1:
            raise TypeError(f"distributed.value_and_grad is of a function with one result, got {len(run.values)}")
        result = hosted(concrete(run.values[0]))
        group = self.mesh.group(self._purpose)
        facts = {
            "op": "value_and_grad",
            "function": self.__name__[-80:],
            "dtype": result.dtype.str,
            "shape": result.shape,
            "parameters": f"{len(starts)} ({zlib.crc32(repr(looks).encode()):08x})",
            "order": zlib.crc32(repr(order).encode()),
            "weight": float(concrete(read(share.weight) if type(share.weight) in ARRAY_TYPES else share.weight)),
            "counts": share.counts,
        }
        small = result.nbytes <= VALUE
        records = group.agree(facts, result.tobytes() if small else b"", ("function", "dtype", "shape"))
        if len({said["parameters"] for said, _ in records}) > 1:
            raise self._other_parameters(group, looks)
        weights = [said["weight"] if said["counts"] else 0.0 for said, _ in records]
        whole = sum(weights)
        if not whole > 0:
            raise ValueError(f"the ranks' shares of the batch weigh {weights}: there is nothing to average")
        payloads = [b for _, b in records] if small else list(group.gather(raw(result), "the mean of results"))
        total = onp.zeros(result.shape, onp.result_type(result.dtype, onp.float64))
        for w, b in zip(weights, payloads):
            if w:
                total += (w / whole) * onp.frombuffer(b, result.dtype).reshape(result.shape)
        alike = len({said["order"] for said, _ in records}) == 1
        if not alike:  # ranks that went different ways: in an order that all know, at the end of the walk
            order = list(range(len(starts)))[::-1]
        buckets = Buckets(group, starts, planned(starts, order, self.bucket))
        reach = [min(first[k] for k in members) if alike else len(starts) for members in buckets.plan]
        stops, least = [], len(nodes)
        for b, n in enumerate(reach):
            least = max(min(least, n), len(starts))
            stops.append((least, lambda grads, b=b: buckets.send(b, grads)))
        value = array_of(onp.asarray(total, result.dtype))
        return value, buckets, stops, weights[self.mesh.rank] / whole

    def _other_parameters(self, group: Any, looks: list[str]) -> MeshError:
        """The first parameter that is another on some rank, and what it is on both."""
        lines = "\n".join(looks).encode()[: 1 << 16]
        mine = onp.zeros(1 << 16, "u1")
        mine[: len(lines)] = onp.frombuffer(lines, "u1")
        texts = [b.tobytes().rstrip(b"\0").decode(errors="replace") for b in group.gather(mine, "parameters")]
        every = [text.split("\n") for text in texts]
        for r, other in enumerate(every):
            for k in range(max(len(other), len(every[0]))):
                a, b = (names[k] if k < len(names) else "nothing" for names in (every[0], other))
                if a != b:
                    return MeshError(
                        f"value_and_grad of {self.__name__}: parameter {k} is {a} on rank 0, and {b} on rank {r}"
                    )
        return MeshError(f"value_and_grad of {self.__name__}: the ranks have other parameters")

    def _by_rows(self, share: Share, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """The same in collectives that are rows: where a graph is captured, or the arguments are differentiated."""
        np, mesh = minnp.numpy, self.mesh

        def shared(*args: Any, **kwargs: Any) -> Any:
            with sharing(share):
                out = self.f(*args, **kwargs)
            value, aux = out if self.has_aux else (out, None)
            weight = np.asarray(share.weight, np.float64) if share.counts else np.zeros(())
            part = (weight / mesh.all_reduce(weight)).astype(value.dtype)
            return np.where(part > 0, value * part, 0 * part), aux

        (value, aux), grads = minnp.value_and_grad(shared, self.argnum, has_aux=True)(*args, **kwargs)
        leaves, rebuild = tree_flatten(grads)
        out: list = [None] * len(leaves)
        for members in planned([read(g) for g in leaves], list(range(len(leaves))), float("inf")):
            flat = mesh.all_reduce(np.concatenate([leaves[k].reshape(-1) for k in members]))
            at = 0
            for k in members:
                out[k] = flat[at : at + leaves[k].size].reshape(leaves[k].shape)
                at += leaves[k].size
        value = mesh.all_reduce(value)
        return (value, aux) if self.has_aux else value, rebuild(out)

    # -------------------------------------------------------------- accumulation
    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, each rank gets the value and the gradients of its own share, and nothing travels.

        Add them up over several shares, and `average` the sums.
        """
        before, self.synchronised = self.synchronised, False
        try:
            yield
        finally:
            self.synchronised = before

    def average(self, tree: Any, weight: float = 1.0) -> Any:
        """The mean over the ranks of a tree of arrays, such as gradients, each rank's counting `weight`; in buckets."""
        return average(tree, self.mesh, weight, self.bucket / MB)


def value_and_grad(
    f: Callable,
    mesh: Any,
    argnum: Any = 0,
    *,
    has_aux: bool = False,
    weight: Callable | None = None,
    bucket: float = 25.0,
) -> Step:
    """A function that returns (mean of the ranks' results, mean of their gradients), the same on every rank.

    mesh     the processes that take part; each of them makes the same call
    f        of this rank's share of the batch, and of parameters that are the same on all ranks: a mean over examples.
             The means over the ranks are then those over the whole batch
    weight   (*args of f) -> how much this rank's share counts, such as lambda params, x, y: len(x); equal without it.
             A rank whose share is empty calls with any one example, and weight 0
    argnum, has_aux   as in minnp.value_and_grad; aux is each rank's own
    bucket   megabytes of gradients that travel together, while the rest of the gradients are computed

    Batch normalisation in f is over the whole batch. Under `jit`, and where a transformation differentiates the
    gradients again, they travel in one piece per dtype, after the walk. Raises MeshError where the ranks' parameters
    have other shapes or dtypes. Cost per call: one message of 1 KB per rank, and the sum of the gradients.

    >>> mesh = distributed.init()
    >>> step = distributed.value_and_grad(lambda w, x: np.mean((x * w) ** 2), mesh)
    >>> loss, gradient = step(np.array(3.0), np.ones(4))
    >>> float(loss), float(gradient)
    (9.0, 6.0)
    >>> distributed.leave()
    """
    return Step(f, mesh, argnum, has_aux, weight, bucket)


def average(tree: Any, mesh: Any, weight: float = 1.0, bucket: float = 25.0) -> Any:
    """The mean over the ranks of a tree of float or complex arrays, each rank's counting `weight`; in buckets.

    mesh     the processes that take part; each of them makes the same call
    bucket   megabytes that travel together

    Raises TypeError for arrays of integers.

    >>> mesh = distributed.init()
    >>> distributed.average({"w": np.ones(2)}, mesh)
    {'w': array([1., 1.])}
    >>> distributed.leave()
    """
    leaves, rebuild = tree_flatten(tree)
    values = [read(x) if type(x) in ARRAY_TYPES else onp.asarray(x) for x in leaves]
    for v in values:
        if v.dtype.kind not in "fc":
            raise TypeError(f"average of {describe(v)}: means are of float and complex arrays")
    if mesh.size == 1:
        return tree
    group = mesh.group("gradients")
    looks = f"{len(values)} ({zlib.crc32(repr([describe(v) for v in values]).encode()):08x})"
    records = group.agree({"op": "average", "arrays": looks, "weight": float(weight)}, alike=("arrays",))
    part = weight / sum(said["weight"] for said, _ in records)
    buckets = Buckets(group, values, planned(values, list(range(len(values))), bucket * MB))
    scaled = [v * v.dtype.type(part) for v in values]
    for b in range(len(buckets.plan)):
        buckets.send(b, scaled)
    return rebuild(buckets.arrive())
