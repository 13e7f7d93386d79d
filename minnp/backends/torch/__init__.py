"""The PyTorch backend: verified kernels over NumPy's memory on the CPU, and arrays on every device torch drives.

Without a device it is a set of kernels: NumPy's arrays are handed to torch and back without a copy. With one
("cuda:0", "mps", also "cpu") it is a device: its arrays are tensors and stay there. torch's autograd is never used.
Which kernels run, and for which dtypes, stands in verified.json, renewed by the differential test. Importing this
package does not import torch; making a backend does.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as onp

from ... import backends
from ...core import cpu
from ...core.rows.primitive import TABLE
from ...core.rows.value import is_scalar
from ...errors import BackendUnsupportedError
from .. import Backend

MINIMUM = (2, 4)
COMPOSED_FILE = Path(__file__).with_name("composed.json")  # written by tests/backends/torch_composed.py
SYNCHRONOUS = "MINNP_SYNCHRONOUS"  # set in the environment: wait for the device after every kernel, to find an error
# rows that stay NumPy's where the memory is NumPy's (as those that look at memory another way do): they write to it, or
# their results are partly free (the order inside partitions, the phases of eigenvectors) and a program may rely on them
NUMPYS_OWN = str.split(
    "write_view copy partition argpartition linalg.svd linalg.eigh linalg.eig linalg.qr linalg.lstsq linalg.eigvals "
    "astype npx.quantize npx.dequantize"  # one pass over the memory; what becomes of -1.5 as a uint8 is the compiler's
)


class TorchBackend(Backend):
    """Kernels over NumPy's memory, or, given a torch device, one whose arrays are tensors on it."""

    name = "torch"
    refuses = True

    def __init__(self, device: Any = None) -> None:
        import torch

        from . import creation, draws, dtypes, kernels, layout, packed, registry

        version = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
        if version < MINIMUM:
            raise ImportError(f"the torch backend needs torch 2.4 or newer, and this is {torch.__version__}")
        self.torch, self._dtypes, self._table = torch, dtypes, kernels.KERNELS
        self._packed, self._layout, self._order_of = packed.HOST, layout.layout, layout.order_of
        self._verified, self._otherwise, self._ordered = registry.VERIFIED, layout.OTHERWISE, layout.ordered
        self.shares_host = device is None
        cpu.products.crowded |= self.shares_host
        self.where = torch.device(device or "cpu")
        self.device = ("cpu" if self.where.type == "cpu" else "gpu", self.where.index or 0, "torch")
        self._kernels: dict[str, Callable | None] = {}
        self._devices: dict[Any, TorchBackend] = {}
        self._generator: Any = None
        self._uses = torch._C._storage_Use_Count
        whole = torch.empty(2)
        self._asking = self._uses(whole.untyped_storage()._cdata) - 1  # whether who asks counts too
        part = whole[:1]
        of_whole, of_part = [sys.getrefcount(t) for t in (whole, part)]  # one instruction, which adds the same to both
        self.views_refer = of_whole > of_part
        self.makers = creation.creators(self.where) | {n: self._drawing(draw) for n, draw in draws.DRAWS.items()}

    def __repr__(self) -> str:
        return f"TorchBackend({'' if self.shares_host else repr(str(self.where))})"

    # -------------------------------------------------------------- kernels
    def kernel(self, row: Any) -> Callable | None:
        given = row.kernels.get(self.name)
        if callable(given):  # a Function's
            return given(self)
        try:
            # a fallback's row is named as the function it calls, and takes it frozen: no kernel of that name serves it
            own = TABLE.get(row.name) is row or row.name.startswith("npx.")
            return self._kernels[row.name] if own else None
        except KeyError:
            return self._kernels.setdefault(row.name, self._find(row))

    def _find(self, row: Any) -> Callable | None:
        name = row.kernels.get(self.name, row.name)
        if self.shares_host and (name in NUMPYS_OWN or (row.view and name != "sum_to")):
            return row.numpy
        found = self._table.get(name)
        if found is None or name not in self._verified:
            return None
        if self.shares_host:
            return self._packed.get(name) or self._dtypes.over_host(found, self._layout(name))
        if name in self._otherwise:
            found = self._ordered(name, found)
        return self._waiting(found) if SYNCHRONOUS in os.environ else found

    def whole(self, name: str) -> Callable | None:
        from .statistics import WHOLE

        found = WHOLE.get(name)
        return self._waiting(found) if found is not None and SYNCHRONOUS in os.environ else found

    def on_tensors(self, row: Any) -> Callable | None:
        """The verified kernel for a row as a function of tensors, also where `kernel` has one of NumPy's arrays."""
        if callable(row.kernels.get(self.name)):
            return None
        name = row.kernels.get(self.name, row.name)
        if not self.shares_host or (name in NUMPYS_OWN and name not in ("write_view", "copy", "astype")):
            kernel = None if self.shares_host else self.kernel(row)
            return self._table[name] if kernel is not None and name in self._otherwise else kernel  # no order counts
        known = TABLE.get(row.name) is row or row.name.startswith("npx.")
        return self._table.get(name) if known and name in self._verified else None

    def compile(self, graph: Any, constants: dict, compiler: str = "auto") -> Callable:
        from ...core.graph.streams import drawn_at
        from .candidates import candidates
        from .executor import TorchExecutor

        draws = any(drawn_at(n) is self for n in graph.nodes)
        stream = self.generator() if draws else None
        return TorchExecutor(graph, constants, self, candidates(self, graph, compiler, stream), stream)

    def _waiting(self, kernel: Callable) -> Callable:
        """The kernel, and then a wait: what the device refuses is raised at the line that asked for it."""

        def call(*values: Any, **params: Any) -> Any:
            out = kernel(*values, **params)
            self.synchronize()
            return out

        return call

    def supports(self, row: Any, values: Any, params: dict) -> str:
        """Whether the operands' dtypes are verified; what only shows in shapes and params the kernel itself refuses."""
        plan = getattr(self._table.get(row.kernels.get(self.name, row.name)), "plan", None)
        if plan is None or self.kernel(row) is row.numpy:
            return ""
        try:
            plan(*[self._dtypes.stand_in(v) for v in values], **params)
        except BackendUnsupportedError as refusal:
            return str(refusal)
        return ""

    def verified(self) -> dict[str, set[str]]:
        """Row name -> the operand dtypes for which its kernel was found to agree with NumPy."""
        return self._verified

    def is_view(self, row: Any, source: Any, result: Any, params: dict) -> bool | None:
        if row.name == "getitem":
            index = params["index"]
            parts = index if type(index) is tuple else (index,)
            number = not result.ndim and not any(p is Ellipsis for p in parts)
            return not number and (type(index) in (int, slice) or is_basic(index))
        if row.name == "flip":
            return True  # torch copies where NumPy steps backwards
        if result is source or row.name == "sum_to":
            return result is source
        if self.shares(result, source):  # torch calls what shows a copy a view, too
            return True
        return None if row.name == "strided_view" else False  # which torch copies where steps are negative or gaps lie

    def strides(self, data: Any) -> Any:
        return data.stride()

    def shares(self, a: Any, b: Any) -> bool:
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

    def order(self, data: Any) -> list[int] | None:
        if data.is_contiguous():
            return None
        return self._order_of([[s if n != 1 else None for s, n in zip(data.stride(), data.shape, strict=True)]])

    def holders(self, data: Any) -> int:
        return self._uses(data.untyped_storage()._cdata) - self._asking

    def program(self, symbol: Any) -> Any:
        from .block import Program

        return Program(symbol, None if self.shares_host else self.where)

    # -------------------------------------------------------------- devices
    def device_at(self, device_type: str = "gpu", device_id: int = 0) -> tuple[Any, str]:
        """(the backend on that device, ""), or (None, why there is none)."""
        torch = self.torch
        if device_type == "cpu":
            device = torch.device("cpu")
        else:
            kind = accelerator(torch)
            if kind is None:
                return None, "torch sees no GPU here"
            if device_id >= count(torch, kind):
                return None, f"torch sees {count(torch, kind)} GPU(s), so there is no number {device_id}"
            device = torch.device(kind, device_id)
        if device not in self._devices:
            self._devices[device] = TorchBackend(device)
        return self._devices[device], ""

    def devices(self) -> list[str]:
        """Every device torch can place arrays on, as `to_device` takes them."""
        kind = accelerator(self.torch)
        return ["cpu", *(f"{kind}:{i}" for i in range(count(self.torch, kind) if kind else 0))]

    def adam(self, data: Sequence[Any], numbers: Sequence[float]) -> bool:
        torch, (grad, weight, mean, var) = self.torch, data
        if {x.dtype for x in data} not in ({torch.float32}, {torch.float64}) or not all(
            x.is_contiguous() for x in data
        ):
            return False
        beta1, beta2, rate, epsilon = map(float, numbers)
        many = [self._dtypes.scalar(math.inf, torch.float32, self.where)]  # steps, after which no bias is corrected
        settings = {"weight_decay": 0.0, "amsgrad": False, "maximize": False}
        torch._fused_adam_(
            [weight], [grad], [mean], [var], [], many, lr=rate, beta1=beta1, beta2=beta2, eps=epsilon, **settings
        )
        return True

    def synchronize(self) -> None:
        self._dtypes.wait_for(self.where)

    # -------------------------------------------------------------- new arrays
    def _drawing(self, draw: Callable) -> Callable:
        return lambda *args, **kwargs: draw(self.generator(), *args, **kwargs)

    def composed(self) -> list[str]:
        return list(json.loads(COMPOSED_FILE.read_text()))

    def generator(self) -> Any:
        if self._generator is None:
            self._generator = self.torch.Generator(self.where)
            self.seed(backends.SEED)
        return self._generator

    def seed(self, seed: Any) -> None:
        """Start the stream of draws made here anew; None: from where nobody knows."""
        for device in self._devices.values():
            device.seed(seed)
        if self._generator is not None:
            state = None if seed is None else int(onp.random.SeedSequence(seed).generate_state(1, "u8")[0]) >> 1
            self._generator.seed() if state is None else self._generator.manual_seed(state)

    # -------------------------------------------------------------- memory
    def from_host(self, array: Any) -> Any:
        """A tensor here with a NumPy array's elements. Raises BackendUnsupportedError for a dtype torch or the device
        has not: nothing is downcast."""
        if self.where.type == "mps" and onp.asarray(array).dtype.itemsize >= 8 and array.dtype.kind in "fc":
            raise BackendUnsupportedError(f"this device has no {array.dtype}")
        return self._dtypes.from_host(onp.asarray(array), self.where)

    def to_host(self, data: Any) -> onp.ndarray:
        return self._dtypes.to_host(data)

    def number(self, data: Any) -> Any:
        return data.item()

    def exported(self, data: Any) -> Any:
        return data.clone()

    def meta(self, data: Any) -> tuple[tuple[int, ...], onp.dtype]:
        return tuple(data.shape), self._dtypes.TO_NUMPY[data.dtype]


def is_basic(index: Any) -> bool:
    """Whether NumPy answers x[index] with a view: no array among the indices. Numbers that lie here are none."""
    parts = index if type(index) is tuple else (index,)
    number = lambda p: type(p) is int or (is_scalar(p) and p.dtype.kind in "iu")
    return all(p is None or p is Ellipsis or type(p) is slice or number(p) for p in parts)


def accelerator(torch: Any) -> str | None:
    """torch's name for the kind of GPU in this machine: CUDA's where there is one, else what else drives torch."""
    for kind, here in (("cuda", torch.cuda), ("mps", torch.backends.mps), ("xpu", getattr(torch, "xpu", None))):
        if here is not None and here.is_available():
            return kind
    if hasattr(torch, "accelerator") and torch.accelerator.is_available():  # another maker's, registered with torch
        return torch.accelerator.current_accelerator().type
    return None


def count(torch: Any, kind: str) -> int:
    return 1 if kind == "mps" else getattr(torch, kind).device_count()
