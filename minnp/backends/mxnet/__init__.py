"""The MXNet 1.9.1 backend: verified kernels over NumPy's memory on the CPU, and arrays on the GPUs it can drive.

MXNet is archived. It is very good at convolution, large pooling, recurrent layers and at running its symbols, and slow
or wrong at most else; which rows it may run, and for which dtypes, stands in verified.json, renewed by
`python -m minnp verify mxnet`. Importing this package does not import mxnet; making a backend does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as onp

from ...core.rows.primitive import TABLE
from .. import Backend

VERIFIED = Path(__file__).with_name("verified.json")
COMPUTES = ("sum_to",)  # rows that may return a view of their argument, and otherwise compute


class MXNetBackend(Backend):
    """Kernels over NumPy's memory, or, given a device such as "gpu(0)", one whose arrays are NDArrays."""

    name = "mxnet"
    refuses = True

    def __init__(self, device: Any = None) -> None:
        from . import algebra, elementwise, kernels, neural, shapes
        from .capi import runtime

        self.mx = runtime().mx
        self.shares_host = device is None
        self.context = self.mx.cpu() if device is None else context(self.mx, device)
        self._kernels: dict[str, Any] = {}
        self._verified = json.loads(VERIFIED.read_text()) if VERIFIED.exists() else {}
        self._table = {**elementwise.TABLE, **shapes.TABLE, **algebra.TABLE, **neural.TABLE}
        self._make = kernels.HostKernel if self.shares_host else self._device_kernel
        self._buffer, self._kernel_type = kernels.DeviceArray, kernels.Kernel
        self._devices: dict[str, MXNetBackend] = {}
        self.device = (self.context.device_type, self.context.device_id, *(() if self.shares_host else (self.name,)))

    def __repr__(self) -> str:
        return f"MXNetBackend({'' if self.shares_host else self.context})"

    # -------------------------------------------------------------- kernels
    def kernel(self, row: Any) -> Any:
        name = row.kernels.get(self.name, row.name)
        if callable(name):  # the row brings its own: a symbol
            return name(self)
        if TABLE.get(row.name) is not row:  # a fallback's, named as the function it calls and taking it frozen
            return None
        try:
            return self._kernels[name]
        except KeyError:
            return self._kernels.setdefault(name, self._find(name, row))

    def _find(self, name: str | None, row: Any) -> Any:
        if self.shares_host and (row.view or name == "copy") and name not in COMPUTES:
            return row.numpy  # copying or looking at the memory another way is nothing that MXNet could do better
        if name not in self._table or name not in self._verified:
            return None
        return self._make(name, self._table[name], self._verified[name])

    def _device_kernel(self, name: str, lowering: Any, dtypes: list[str]) -> Any:
        from .kernels import DeviceKernel

        return DeviceKernel(name, lowering, dtypes, self.context)

    def supports(self, row: Any, values: Any, params: dict) -> str:
        kernel = self.kernel(row)
        if kernel is None:
            return f"{row.name} is not on the list of kernels that agree with NumPy"
        return kernel.supports(values, params) if isinstance(kernel, self._kernel_type) else ""

    def lowerings(self) -> dict[str, Any]:
        """Row name -> lowering, of every row MXNet has an operator for, verified or not."""
        return self._table

    def unverified(self, name: str, dtypes: Sequence[str]) -> Any:
        """A kernel for these dtypes that nobody has compared with NumPy yet: what `verify` examines."""
        return self._make(name, self._table[name], dtypes)

    def verified(self) -> dict[str, list[str]]:
        """Row name -> dtypes for which its kernel was found to agree with NumPy."""
        return self._verified

    def compile(self, graph: Any, constants: dict, compiler: str = "auto") -> Any:
        from .compiler import compile_graph

        return compile_graph(graph, constants, self) if self.shares_host else None

    def program(self, symbol: Any) -> Any:
        from .executor import Program

        if not self.shares_host:
            return Program(symbol, self.context, self._buffer)
        return Program(symbol, self.context)

    # -------------------------------------------------------------- memory
    def device_at(self, device_type: str, device_id: int) -> tuple[Any, str]:
        """The device on a GPU, or (for tests, and to see what a GPU would do) MXNet's own memory on the CPU."""
        device = f"{device_type}({device_id})"
        if device_type == "gpu" and device_id >= gpus(self.mx):
            return None, f"the installed mxnet {self.mx.__version__} sees {gpus(self.mx)} GPUs it can run on"
        if device not in self._devices:
            self._devices[device] = MXNetBackend(device)
        return self._devices[device], ""

    def synchronize(self) -> None:
        self.mx.nd.waitall()

    def to_host(self, data: Any) -> onp.ndarray:
        if isinstance(data, onp.ndarray):  # what a program hands on from its forward to its backward
            return data
        if not isinstance(data, self._buffer):  # an NDArray
            return data.asnumpy()
        if data.array is None:
            return onp.empty(data.shape, data.dtype)
        return data.array.asnumpy().reshape(data.shape)

    def from_host(self, array: onp.ndarray) -> Any:
        """A buffer of this device, or, of the backend that shares NumPy's memory, an NDArray with a copy.

        Raises BackendUnsupportedError for a dtype MXNet has not: it never downcasts.
        """
        from .capi import DLPACK, copy_in
        from .lowering import refuse

        array = onp.asarray(array)
        if array.dtype.name not in DLPACK or not array.dtype.isnative:
            raise refuse(f"MXNet has no {array.dtype}")
        data = None
        if array.size:  # MXNet's arrays have at least one axis and one element
            data = self.mx.nd.empty(array.shape or (1,), self.context, array.dtype)
            copy_in(data.handle, onp.require(array, None, "CA"))
        return data if self.shares_host else self._buffer(data, array.shape, array.dtype)

    def meta(self, data: Any) -> tuple[tuple[int, ...], onp.dtype]:
        return data.shape, onp.dtype(data.dtype)


def gpus(mx: Any) -> int:
    """How many GPUs this build of MXNet finds."""
    try:
        return mx.context.num_gpus()
    except mx.MXNetError:  # built with CUDA, on a machine without its driver
        return 0


def context(mx: Any, device: Any) -> Any:
    """ "gpu(1)", "cpu" or a Context as a Context."""
    if not isinstance(device, str):
        return device
    kind, _, number = device.rstrip(")").partition("(")
    return mx.Context(kind, int(number or 0))
