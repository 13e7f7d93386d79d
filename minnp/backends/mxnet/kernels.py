"""Kernels: rows run as MXNet operators, on NumPy's memory (HostKernel) or on NDArrays of a device (PlaceKernel).

What an operator call needs besides the data is worked out once for every combination of shapes, dtypes and parameters:
a plan, or the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ...errors import BackendUnsupportedError
from . import elementwise
from .capi import Call, Derivative, copy_in, runtime
from .lowering import Lowered, Lowering, Meta, numbers, refuse

Host = onp.ndarray
SCALARS = (bool, int, float, onp.generic)
OWN_DTYPE = {"where": 1}  # rows whose first arguments keep their dtype: the condition
APART = {"linalg.solve"}  # rows whose dtype is not that of adding their operands: float64 for integers beside float32
FLOAT = onp.dtype(float)
FLOATS = (onp.float16, onp.float32, onp.float64)
MOST_ELEMENTS = 2**31 - 1  # MXNet's indices are 32-bit
ONE = {dtype: onp.ones(1, dtype) for dtype in map(onp.dtype, "?bBhHiIlLqQefdFD")}
VALUE_BASED = onp.result_type(onp.ones(1, "f4"), 1e300) == onp.float64  # NumPy 1: a number's value decides the dtype


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def in_range(value: Any, dtype: onp.dtype) -> bool:
    """Whether the number fits the dtype, so that NumPy too computes in the dtype of the array beside it."""
    if dtype.kind == "f":
        return not abs(value) > onp.finfo(dtype).max or abs(value) == onp.inf
    if dtype.kind in "iu":
        return onp.iinfo(dtype).min <= value <= onp.iinfo(dtype).max
    return isinstance(value, (bool, onp.bool_))


class Kernel:
    """A row as MXNet runs it: kernel(*values, **params).

    name      of the row
    lowering  the MXNet operator it becomes
    dtypes    those it is verified for (of the arguments, after NumPy's promotion)
    """

    def __init__(self, name: str, lowering: Lowering, dtypes: Sequence[str]) -> None:
        self.name, self.lowering, self.dtypes = name, lowering, frozenset(dtypes)
        self.own = OWN_DTYPE.get(name, 0)
        self.elementwise = name in elementwise.BINARY or name in elementwise.UNARY
        self.plans: dict[Any, Any] = {}

    def plan(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        """The plan for these arguments, or a text: the reason why there is none."""
        key = (*[(v.shape, v.dtype) if type(v) is Host else self.kind(v) for v in values], *params.items())
        try:
            plan = self.plans.get(key)
        except TypeError:  # a list among the parameters, or an array
            params = {name: frozen(value) for name, value in params.items()}
            if any(isinstance(value, Host) for value in params.values()):
                return "an array among the parameters"
            return self.plan(values, params)
        if plan is None:
            try:
                plan = self.prepare(self.lowered(values, params))
            except BackendUnsupportedError as reason:
                plan = str(reason)
            self.plans[key] = plan
        return plan

    def lowered(self, values: Sequence[Any], params: dict[str, Any]) -> Lowered:
        metas = [self.meta(v) for v in values]
        for value, meta in zip(values, metas, strict=True):
            if getattr(value, "dtype", FLOAT).kind not in "biuf":
                raise refuse(f"MXNet has no {meta.dtype}")
            if 0 in meta.shape:
                raise refuse("MXNet takes no empty arrays")
            if onp.prod(meta.shape, dtype=float) > MOST_ELEMENTS:
                raise refuse("more than 2**31 elements")
        together = metas[self.own :]
        if self.name in APART and len({meta.dtype for meta in together}) > 1:
            raise refuse("operands of different dtypes")
        # numbers count as 1: what their value changes under NumPy 1 is refused at the call
        dtype = onp.result_type(*(self.like(v, meta) for v, meta in zip(values[self.own :], together, strict=True)))
        if dtype.name not in self.dtypes:
            raise refuse(f"{self.name} is not verified for {dtype.name}")
        metas = [*metas[: self.own], *(Meta(meta.shape, dtype.name) for meta in together)]
        lowered = self.lowering(metas, params)
        if lowered.before is None and sum(a.value is not None for a in lowered.arguments) != len(values):
            raise refuse(f"{len(values)} arguments")
        return lowered

    def like(self, value: Any, meta: Meta) -> Any:
        """What stands for the value in NumPy's promotion."""
        if isinstance(value, SCALARS):
            return type(value)(1)
        return onp.ones((1,) * min(len(meta.shape), 1), meta.dtype)

    def kind(self, value: Any) -> Any:
        if not isinstance(value, SCALARS):
            raise refuse(f"MXNet takes no {type(value).__name__}")
        return type(value)

    def meta(self, value: Any) -> Meta:
        if isinstance(value, SCALARS):
            return Meta((), onp.asarray(value).dtype.name)
        return Meta(value.shape, value.dtype.name)

    def prepare(self, lowered: Lowered) -> Any:
        raise NotImplementedError

    def supports(self, values: Sequence[Any], params: dict[str, Any]) -> str:
        try:
            plan = self.plan(values, params)
        except BackendUnsupportedError as reason:  # of a type that no plan is for
            return str(reason)
        return plan if type(plan) is str else ""

    def __call__(self, *values: Any, **params: Any) -> Any:
        plan = self.plan(values, params)
        if type(plan) is str:
            raise BackendUnsupportedError(plan)
        return plan(values)


def number(value: Any, dtype: onp.dtype, beside_array: bool) -> onp.ndarray:
    """A number as a one-element array of the dtype."""
    if beside_array and (not in_range(value, dtype) or (VALUE_BASED and onp.result_type(ONE[dtype], value) != dtype)):
        raise refuse(f"{value} does not fit {dtype}")
    return onp.array([value], dtype)


# ------------------------------------------------------------------ on the host's memory
class HostKernel(Kernel):
    """Takes and returns NumPy arrays and scalars; nothing is copied that is C-contiguous and has the right dtype."""

    def prepare(self, lowered: Lowered) -> HostPlan:
        return HostPlan(lowered)

    def __call__(self, *values: Any, **params: Any) -> Any:
        if self.elementwise:
            first = values[0]
            if type(first) is Host and not first.flags.c_contiguous and first.ndim > 1 and alike(values):
                order = memory_order(first)
                views = [v.transpose(order) if type(v) is Host and v.ndim else v for v in values]
                if all(type(v) is not Host or v.flags.c_contiguous for v in views):
                    # All in the same order, such as Fortran's: so is NumPy's result, and nothing need be copied.
                    result = super().__call__(*views, **params)
                    return result.transpose(sorted(range(first.ndim), key=order.__getitem__))
        return super().__call__(*values, **params)


def alike(values: Any) -> bool:
    """Whether all arrays have one shape, so that nothing is broadcast along the axes."""
    return len({v.shape for v in values if type(v) is Host and v.ndim}) == 1


def memory_order(array: onp.ndarray) -> list[int]:
    """The axes from the longest stride to the shortest: transposed so, an array without gaps is C-contiguous."""
    return sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))


class HostPlan:
    __slots__ = ("after", "arguments", "arrays", "before", "call", "checked", "guard", "scalar", "shape", "zeros")

    def __init__(self, lowered: Lowered) -> None:
        self.shape, self.scalar = lowered.shape, lowered.scalar
        self.checked = lowered.checked and lowered.arguments[0].dtype.startswith("float")
        self.guard, self.before, self.after = lowered.guard, lowered.before, lowered.after
        self.arguments = [(argument.value, onp.dtype(argument.dtype)) for argument in lowered.arguments]
        self.arrays = any(argument.shape != (1,) for argument in lowered.arguments)
        self.zeros = next((onp.zeros(a.shape, a.dtype) for a in lowered.arguments if a.value is None), None)
        specs = [(argument.shape, argument.dtype) for argument in lowered.arguments]
        call = Derivative if lowered.derivative else Call
        self.call = call(
            lowered.operator, lowered.attributes, specs, lowered.training, lowered.blocked, lowered.results
        )

    def __call__(self, values: Sequence[Any]) -> Any:
        if self.guard is not None:
            self.guard(values)
        if self.after is not None:
            return self.after(values, self.call(self.prepared(values)))
        results = self.call(self.prepared(values))
        if len(results) == 1:
            result, shape = results[0], self.shape
            if self.checked:
                numbers(result)
            if shape is None or result.shape == shape:
                return result
            return result.reshape(shape)[()] if self.scalar else result.reshape(shape)
        return tuple(result.reshape(shape) for result, shape in zip(results, self.shape, strict=True))

    def prepared(self, values: Sequence[Any]) -> list[onp.ndarray]:
        """The values as MXNet must have them: C-contiguous, aligned, in the declared dtypes."""
        if self.before is not None:
            values = self.before(values)
        arrays = []
        for i, dtype in self.arguments:
            value = values[i] if i is not None else self.zeros
            if type(value) is not Host:
                value = number(value, dtype, self.arrays)
            elif value.dtype != dtype or not (value.flags.c_contiguous and value.flags.aligned):
                if VALUE_BASED and not value.ndim and self.arrays:
                    value = number(value[()], dtype, True)
                value = onp.require(value, dtype, "CA")
            arrays.append(value)
        return arrays


# ------------------------------------------------------------------ on a device
class DeviceArray:
    """An array in a device's memory. MXNet has no arrays of shape () and none without elements, NumPy has.

    array   NDArray with the elements, or None where there are none
    """

    __slots__ = ("array", "dtype", "shape")

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: onp.dtype) -> None:
        self.array, self.shape, self.dtype = array, shape, dtype

    def is_contiguous(self) -> bool:
        """MXNet has no views with strides: every array is in C order."""
        return True


class DeviceKernel(Kernel):
    """Takes and returns DeviceArray arrays; numbers among the arguments are moved there."""

    def __init__(self, name: str, lowering: Lowering, dtypes: Sequence[str], context: Any) -> None:
        super().__init__(name, lowering, dtypes)
        self.context = context

    def kind(self, value: Any) -> Any:
        return (value.shape, value.dtype) if type(value) is DeviceArray else super().kind(value)

    def prepare(self, lowered: Lowered) -> DevicePlan:
        return DevicePlan(lowered, self.context)


class DevicePlan:
    def __init__(self, lowered: Lowered, context: Any) -> None:
        if lowered.results or lowered.guard or lowered.before or lowered.after:
            raise refuse("a kernel for the host's memory only")
        self.lowered, self.context = lowered, context
        self.handle = runtime().operator(lowered.operator)
        self.arrays = any(argument.shape != (1,) for argument in lowered.arguments)

    def __call__(self, values: Sequence[Any]) -> Any:
        from mxnet import autograd, nd
        from mxnet._ctypes.ndarray import _imperative_invoke

        arrays = []
        for i, shape, dtype in self.lowered.arguments:
            value = values[i]
            if type(value) is DeviceArray:
                array = value.array if value.dtype == dtype else value.array.astype(dtype)
                arrays.append(array if array.shape == shape else array.reshape(shape))
            else:
                value = number(onp.asarray(value)[()], onp.dtype(dtype), self.arrays)
                arrays.append(nd.empty((1,), self.context, dtype))
                copy_in(arrays[-1].handle, value)  # not nd.full, for which every number is a double, and -0.0 is 0.0
        keys, texts = list(self.lowered.attributes), list(self.lowered.attributes.values())
        with autograd._RecordingStateScope(False, self.lowered.training):
            out = _imperative_invoke(self.handle, arrays, keys, texts, None, False, False)
        if self.lowered.checked and out.dtype in FLOATS:
            numbers(out.asnumpy())
        if isinstance(out, list):
            return tuple(
                self.device_array(o, s) for o, s in zip(out, self.lowered.shape or [None] * len(out), strict=True)
            )
        return self.device_array(out, self.lowered.shape)

    def device_array(self, array: Any, shape: Any) -> DeviceArray:
        return DeviceArray(array, array.shape if shape is None else shape, onp.dtype(array.dtype))
