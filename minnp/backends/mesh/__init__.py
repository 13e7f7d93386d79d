"""A mesh of processes as a device: each rank holds a part, and rows run on the parts.

What a row does to splits is in kernels.py. A row that has no rule there, or refuses its arguments, gathers them, runs
as NumPy on every rank, and the result is split again: `minnp.report()` tells which, how many bytes, and where.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as onp

from ...core.arrays.array import ARRAY_TYPES, Array, on_host, read
from ...core.arrays.devices import Context
from ...core.rows import policy
from ...core.rows.on_device import hosted
from ...core.rows.primitive import TABLE
from ...core.rows.references import references
from ...core.rows.state import state
from ...core.rows.value import Buffer, concrete
from ...errors import BackendUnsupportedError, FallbackError
from .. import Backend
from . import orders
from .chains import PENDING, flush, lend
from .kernels import KERNELS, kernel_of
from .parts import Part, bounds, fitted, moved, of_host, whole_of

for _module in ("indices", "products", "sorting", "transforms", "linalg"):  # their kernels are in KERNELS then
    importlib.import_module(f"{__name__}.{_module}")


ONE_ARRAY = ("reduction", "one", "some", "cast")  # forms of Primitive.takes


class Layout(Context):
    """How new arrays are split over a mesh: `mesh.split(0)`, `mesh.replicate()`; a context, and a `device=`.

    on   for each axis of an array the axis of the mesh it is split over, or None; axes beyond are not split
    """

    def __init__(self, mesh: Any, on: Sequence[int | None]) -> None:
        self.mesh, self.on = mesh, tuple(on)
        while self.on and self.on[-1] is None:
            self.on = self.on[:-1]
        self.device_type, self.device_id, self.backend = "mesh", 0, "split"

    def __repr__(self) -> str:
        if not self.on:
            return "mesh.replicate()"
        axes = [self.on.index(m) if m in self.on else None for m in range(len(self.mesh.shape))]
        while axes[-1] is None:
            axes.pop()
        return f"mesh.split({', '.join(map(str, axes))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.on == other.on and alike(self.mesh, other.mesh)

    def __hash__(self) -> int:
        return hash((self.mesh.ranks, self.mesh.shape, self.on))

    def admitted(self, x: Any) -> Any:
        if 0 < x.ndim < len(self.on):
            raise ValueError(
                f"{self!r} of an array of shape {x.shape}, which has no axis {len(self.on) - 1}: give an axis that it "
                "has, or mesh.replicate()"
            )
        return x

    @property
    def device(self) -> MeshDevice:
        devices = self.mesh.devices
        if self.on not in devices:
            devices[self.on] = MeshDevice(self.mesh, self.on)
        return devices[self.on]


class MeshDevice(Backend):
    """Where arrays of one mesh live; new ones, and what comes from the host, are split as `on` says."""

    name = "split"
    shares_host = False
    spans = True

    def __init__(self, mesh: Any, on: tuple) -> None:
        self.mesh, self.on = mesh, on
        self.device = (Layout(mesh, on),)
        self.makers = {name: self._making(name) for name in ("zeros", "ones", "empty", "full")}
        self._kernels: dict[Any, Callable] = {}

    def __repr__(self) -> str:
        return f"MeshDevice({self.mesh}, {self.on})"

    def kernel(self, row: Any) -> Callable:
        if row not in self._kernels:
            self._kernels[row] = self._found(row)
        return self._kernels[row]

    def _found(self, row: Any) -> Callable:
        run = kernel_of(row)
        more = {"_row": row.name} if run is not None and "_row" in inspect.signature(run).parameters else {}

        form, *words = row.takes or ("",)
        elementwise = run is not None and row.name not in KERNELS

        def call(*data: Any, **params: Any) -> Any:
            if form in ONE_ARRAY and len(data) > 1:  # the fast path gives a row's only parameter by position
                data, params = data[:1], dict(zip(words, data[1:])) | params
            try:
                if run is None:
                    raise BackendUnsupportedError("it has no rule for split arrays")
                if not all(p.mesh is self.mesh for p in parts_among((data, params))):
                    data, params = self._on_one_mesh(data, params)
                out = run(self, *data, **params, **more)
            except BackendUnsupportedError as refusal:
                if TABLE.get(row.name) is row and not any(p.split for p in parts_among((data, params))):
                    return self._alike(row, data, params)
                if policy.current().name == "only_split":
                    raise FallbackError(
                        f"np.{row.name} of split arrays under policy 'only_split': {refusal}; under 'auto' it gathers "
                        "them and computes on every rank"
                    ) from None
                raise
            orders.place_in_memory(row, elementwise, data, params, out)
            return out

        return call

    def _alike(self, row: Any, data: Any, params: dict) -> Any:
        """A row whose arguments every rank has: each computes it."""
        out = row.numpy(*[self.to_host(d) if type(d) is Part else d for d in data], **hosted(params))
        if any(onp.asarray(y).dtype.hasobject for y in (out if type(out) is tuple else (out,))):
            raise BackendUnsupportedError("objects do not travel between processes")

        def part(y: Any) -> Part:
            whole = Part(self.mesh, onp.shape(y), (None,) * onp.ndim(y), y)
            whole.steps = orders.of_array(whole.local)
            return whole

        return tuple(map(part, out)) if type(out) is tuple else part(out)

    def _on_one_mesh(self, data: Any, params: Any) -> Any:
        """Operands and parameters, of which those that every rank has are parts of the others' mesh."""
        split = [p.mesh for p in parts_among((data, params)) if p.split]
        mesh = split[0] if split else self.mesh

        def adapt(x: Any) -> Any:
            if type(x) is Buffer:
                part = adapt(x.data)
                return x if part is x.data else Buffer(part, x.backend)
            if type(x) in (tuple, list):
                return type(x)(map(adapt, x))
            if type(x) is dict:
                return {k: adapt(v) for k, v in x.items()}
            if type(x) is not Part or alike(x.mesh, mesh):
                return x
            if x.mesh.ranks != mesh.ranks:
                raise ValueError(f"arrays of two meshes: {x.mesh} and {mesh}")
            if x.split:
                raise BackendUnsupportedError(
                    f"what is split over {x.mesh.shape} and {mesh.shape} processes has no rule"
                )
            there = Part(mesh, x.shape, x.on, x.local)
            there.steps = x.steps
            return there

        return adapt(data), adapt(params)

    def is_view(self, row: Any, source: Any, result: Any, params: dict) -> bool | None:
        return orders.is_view(row, source, result, params)

    def order(self, data: Part) -> list[int] | None:
        return None if data.steps is None else sorted(range(data.ndim), key=lambda i: -abs(data.steps[i]))

    def strides(self, data: Part) -> tuple[int, ...] | None:
        return data.steps

    def context_of(self, data: Part) -> Layout:
        return Layout(self.mesh, data.on)

    def holders(self, data: Part) -> int:
        """1 where the part's memory is its own, and no array made of it shows it; 0 where nobody knows."""
        if data.lent or data.margin is not None:
            return 0
        alone = data.local.base is None and references(getattr, data, "held") == 1
        if not alone and PENDING:  # what waits may be who reads it
            flush()
            alone = data.local.base is None and references(getattr, data, "held") == 1
        return int(alone)

    def synchronize(self) -> None:
        """Compute what waits (chains.py)."""
        flush()

    def lent(self, data: Part) -> bool:
        return data.lent

    def adopted(self, data: Any) -> Part | None:
        """The data of a buffer of this mesh in this device's layout; None for data that is none of the mesh's."""
        if type(data) is not Part or data.mesh.ranks != self.mesh.ranks:
            return None
        if alike(data.mesh, self.mesh):
            there = moved(data, fitted(self.on, data.ndim))
        else:  # numbered along other axes
            there = of_host(self.mesh, whole_of(data), fitted(self.on, data.ndim))
        there.steps = data.steps
        return there

    def from_host(self, array: Any) -> Part:
        array = onp.asarray(array)
        if array.dtype.hasobject:
            raise BackendUnsupportedError("objects do not travel between processes")
        part = of_host(self.mesh, array, fitted(self.on, array.ndim))
        part.steps = orders.of_array(array)
        return part

    def to_host(self, data: Part) -> onp.ndarray:
        order = self.order(data)
        return whole_of(data) if order is None else orders.in_order(whole_of(data), order)

    def exported(self, data: Part) -> onp.ndarray:
        return whole_of(data).copy()

    def number(self, data: Part) -> Any:
        return whole_of(data).item()

    def meta(self, data: Part) -> tuple[tuple[int, ...], Any]:
        return data.shape, data.dtype

    def _making(self, name: str) -> Callable:
        make, last = getattr(onp, name), 2 if name == "full" else 1  # where `order` stands behind the shape

        def run(shape: Any, *args: Any, **kwargs: Any) -> Part:
            if kwargs.keys() - {"dtype", "fill_value"}:
                raise TypeError(f"np.{name} with {sorted(kwargs)} is NumPy's")
            shape = tuple(int(n) for n in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
            on = fitted(self.on, len(shape))
            local = [
                n if m is None else len(range(n)[self.mesh.axis(m).part(n)]) for n, m in zip(shape, on, strict=True)
            ]
            part = Part(self.mesh, shape, on, make(local, *args, **kwargs))
            if args[last:] in (("F",), ("f",)):
                part.steps = orders.fortran(shape)
            return part

        return run


def alike(one: Any, other: Any) -> bool:
    """Whether two meshes number the same processes along the same axes."""
    return one is other or (one.ranks, one.shape) == (other.ranks, other.shape)


def parts_among(x: Any) -> Iterator[Part]:
    """The parts among operands and parameters."""
    if type(x) in (tuple, list, dict):
        for y in x.values() if type(x) is dict else x:
            yield from parts_among(y)
    x = x.data if type(x) is Buffer else x
    if type(x) is Part:
        yield x


def layout(mesh: Any, x: Any) -> list[tuple[slice, ...]]:
    """What of x each rank holds."""
    value = concrete(read(x)) if type(x) in ARRAY_TYPES else x
    if type(value) is not Buffer or type(value.data) is not Part:
        return [tuple(slice(0, n) for n in onp.shape(x))] * mesh.size
    part, out = value.data, []
    for rank in range(mesh.size):
        places = [rank // math.prod(mesh.shape[k + 1 :]) % n for k, n in enumerate(mesh.shape)]
        whole = [(0, n) if m is None else bounds(n, mesh.axis(m), places[m]) for n, m in zip(part.shape, part.on)]
        out.append(tuple(slice(*ends) for ends in whole))
    return out


def local(self: Any) -> Any:
    """This rank's part of an array that is split over a mesh, as an array whose memory it is: what is written to it is
    written to the array. Of any other array, itself. While a gradient is being recorded it is a copy."""
    value = concrete(read(self))
    if type(value) is not Buffer or type(value.data) is not Part:
        return self
    part = value.data
    if state.tapes or value.view is not None:
        return on_host(onp.array(part.local))
    if not part.local.flags.writeable or not part.local.flags.owndata:
        part.held = onp.array(part.local)
    part.whole, part.margin, part.lent = None, None, True
    lend(part.local)
    if hasattr(value, "_host"):
        del value._host
    return on_host(part.local)


Array.local = property(local)


__all__ = ["KERNELS", "Layout", "MeshDevice", "Part"]
