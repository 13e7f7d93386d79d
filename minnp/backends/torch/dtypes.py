"""NumPy's dtypes and promotion, answered for torch tensors.

torch promotes differently (int / int is float32, a 0-d tensor never widens), so no kernel lets torch promote: the dtype
NumPy would compute in is asked of NumPy itself, once per combination of dtypes, and operands are cast to it first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as onp
import torch

from ...core.rows import report
from ...errors import BackendUnsupportedError

Tensor = torch.Tensor
words = str.split
NAMES = words("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128")
TO_TORCH: dict[onp.dtype, torch.dtype] = {onp.dtype(n): getattr(torch, n) for n in NAMES}
# a second C type of the same size ("long long" beside "long") is a dtype of its own to a dictionary
TO_TORCH |= {onp.dtype(c): TO_TORCH[onp.dtype(f"{onp.dtype(c).kind}{onp.dtype(c).itemsize}")] for c in "lLqQ"}
CLASSES: dict[type, torch.dtype] = {kind: TO_TORCH[onp.dtype(kind)] for kind in (bool, int, float, complex)}
CLASSES |= {n.type: t for n, t in TO_TORCH.items()}
TO_NUMPY: dict[torch.dtype, onp.dtype] = {t: n for n, t in reversed(TO_TORCH.items())}
TOKEN: dict[torch.dtype, str] = {t: n.kind + str(n.itemsize) for n, t in TO_TORCH.items()}
# NumPy 1 looks at the values of scalars and 0-d arrays when it promotes; NumPy 2 (NEP 50) only at their types.
LEGACY = onp.result_type(onp.zeros(1, onp.float32), onp.float64(1)) == onp.float32
PYTHON = (int, float, complex)
WEAK = (int, float, complex, bool)

FLOATS = (torch.float16, torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
REAL_OF = {torch.complex64: torch.float32, torch.complex128: torch.float64}
SIGNED = {torch.uint8: torch.int8, torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
WIDER = {torch.uint16: torch.int64, torch.uint32: torch.int64}  # torch computes in few unsigned types


def refuse(reason: str) -> Any:
    raise BackendUnsupportedError(reason)


def to_torch(dtype: Any) -> torch.dtype:
    """The torch dtype of a NumPy dtype; refuses what torch cannot hold (never a narrower type instead)."""
    if type(dtype) is type and dtype in CLASSES:
        return CLASSES[dtype]
    found = TO_TORCH.get(onp.dtype(dtype))
    return found if found is not None else refuse(f"torch has no dtype {onp.dtype(dtype)}")


def is_scalar(v: Any) -> bool:
    return isinstance(v, (bool, int, float, complex, onp.generic))


def known(x: Tensor) -> Any:
    """A tensor's one element as Python's, for which a device must be waited for: a copy to the host, and counted."""
    report.copied("copy to host", "torch", x.element_size())
    return x.item()


def like_numpy(v: Any) -> Any:
    """What NumPy's promotion should see in place of v: v itself for scalars, else an empty array with v's dtype."""
    if type(v) is not Tensor:
        return v
    if v.ndim or not LEGACY:
        return EMPTY[v.dtype]
    # NumPy 1 promotes a 0-d array by its value. No device is waited for to learn that of a float, which decides only
    # where it is beyond the range of the arrays beside it: a training step would wait at each norm, loss or rate.
    value = v.item() if v.device.type == "cpu" else 1.0 if v.dtype.is_floating_point else known(v)
    return onp.array(value, TO_NUMPY[v.dtype])


def weak_in_numpy_1(v: Any) -> bool:
    """Whether a Python scalar is so small that NumPy 1, by its value, promotes as NumPy 2 does by its type."""
    return (type(v) is int and 0 <= v <= 127) or (type(v) is float and not 6e4 <= abs(v) < math.inf)


EMPTY = {t: onp.empty((0,), n) for t, n in TO_NUMPY.items()}
_promoted: dict[tuple, torch.dtype] = {}


def promote(*values: Any) -> torch.dtype:
    """The torch dtype of onp.result_type(*values)."""
    key = tuple([type(v) if type(v) in WEAK else v.dtype for v in values])
    first = key[0]
    if type(first) is torch.dtype and all(k is first for k in key):
        return first
    if LEGACY and not all(v.ndim if type(v) is Tensor else weak_in_numpy_1(v) for v in values):
        return to_torch(onp.result_type(*map(like_numpy, values)))
    found = _promoted.get(key)
    if found is None:
        # a weak Python scalar promotes by its type alone
        found = _promoted[key] = to_torch(onp.result_type(*[1 if type(v) is int else like_numpy(v) for v in values]))
    return found


_scalars: dict[tuple, Tensor] = {}


def scalar(v: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """v as a 0-d tensor. Small ints and floats are kept: a tensor operand costs torch half of a Python one."""
    if type(v) is onp.ndarray:
        v = v[()]
    key = (type(v), v, dtype, device) if v else (type(v), str(v), dtype, device)  # 0.0 == -0.0
    found = _scalars.get(key)
    if found is None:
        if dtype in SIGNED or dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            check_range(v, dtype)
        # through NumPy, whose rounding and wrapping is the reference
        found = torch.from_numpy(onp.array(v).astype(TO_NUMPY[dtype]).reshape(())).to(device)
        if len(_scalars) > 4096:
            _scalars.clear()
        _scalars[key] = found
    return found


def kept_scalars() -> tuple[Tensor, ...]:
    """Those that are kept now: a recording of kernels that read them keeps them longer."""
    return tuple(_scalars.values())


def check_range(v: Any, dtype: torch.dtype) -> None:
    info = onp.iinfo(TO_NUMPY[dtype])
    if isinstance(v, int) and not info.min <= v <= info.max:
        refuse(f"the Python integer {v} does not fit {TO_NUMPY[dtype]}")


def cast(v: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """v as a tensor of that dtype: tensors are converted as NumPy converts, scalars become 0-d tensors."""
    if type(v) is Tensor:
        return v if v.dtype is dtype else v.to(dtype)
    return scalar(v, dtype, device)


def wait_for(device: torch.device) -> None:
    """Return when the device has done what it was given; the processor has by now."""
    if device.type != "cpu":  # of one device of several, where there can be several
        getattr(torch, device.type).synchronize(*(() if device.type == "mps" else (device,)))


def device_of(values: Any) -> torch.device:
    for v in values:
        if type(v) is Tensor:
            return v.device
    return torch.device("cpu")


def meta(v: Tensor) -> tuple[tuple[int, ...], onp.dtype]:
    return tuple(v.shape), TO_NUMPY[v.dtype]


def from_host(array: onp.ndarray, device: torch.device) -> Tensor:
    """A tensor with a NumPy array's elements, in memory of its own."""
    dtype = to_torch(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # a copy: the host's buffer may be written later, a value may not, and torch knows no negative strides
    copy = onp.array(array, order="C" if 0 in array.strides else "K", copy=True)
    return torch.from_numpy(copy.view(TO_NUMPY[dtype]) if copy.dtype.char in "qQ" else copy).to(device)


def to_host(x: Tensor) -> onp.ndarray:
    """A tensor's elements as a NumPy array; on the CPU it shows the same memory."""
    return x.detach().cpu().numpy()


# ------------------------------------------------------------------ kernels over NumPy's own memory
def borrowed(v: Any) -> Any:
    """A NumPy array as a tensor on the same memory, for the length of one call; other values as they are."""
    if type(v) is not onp.ndarray or not v.ndim:
        return v
    if v.dtype not in TO_TORCH:
        refuse(f"torch has no dtype {v.dtype}")
    if not v.flags.writeable or not v.dtype.isnative or any(s < 0 or s % v.itemsize for s in v.strides):
        # torch has no read-only tensors, and counts strides in elements, never backwards; in the order of v's memory,
        # which results will have
        v = onp.array(v, v.dtype.newbyteorder("="), order="K")
    return torch.from_numpy(v.view(TO_NUMPY[TO_TORCH[v.dtype]]) if v.dtype.char in "qQ" else v)


def over_host(kernel: Any, layout: Any = None) -> Any:
    """A kernel that takes and returns NumPy arrays. layout: see layout.py."""

    def call(*values: Any, **params: Any) -> Any:
        data, arrays, in_c = [], [], True
        for v in values:
            if type(v) is onp.ndarray and v.ndim:
                arrays.append(v)
                in_c = in_c and v.flags.c_contiguous
                v = borrowed(v)
            data.append(v)
        if not data:
            raise BackendUnsupportedError("no arguments")  # NumPy says what is missing
        if not arrays:  # numbers only
            data[0] = from_host(onp.asarray(values[0]), CPU)
        out = kernel(*data, **params)
        if type(out) is Tensor:
            y = returned(out, data)
            return y if in_c or layout is None or type(y) is not onp.ndarray else layout(y, arrays, params)
        results = [y if y is None else returned(y, data) for y in out]
        if not in_c and layout is not None:
            results = [layout(y, arrays, params) if type(y) is onp.ndarray else y for y in results]
        return tuple(results)

    return call


def returned(y: Tensor, arguments: Any = ()) -> Any:
    """A result as NumPy would return it: a scalar for no dimensions, else memory of its own. (To a kernel, values are
    immutable: it may return its argument, or look at it. Here the memory is the user's, who may write to it.)"""
    if not y.ndim:
        return y.numpy()[()]
    return (y.clone() if shows(y, arguments) else y).numpy()


def shows(y: Tensor, arguments: Any) -> bool:
    """Whether a result is one of the arguments, or looks at the memory of one."""
    if not y._is_view():
        return any(y is a for a in arguments)
    memory = y.untyped_storage().data_ptr()
    return any(type(a) is Tensor and a.untyped_storage().data_ptr() == memory for a in arguments)


def stand_in(v: Any) -> Any:
    """What a kernel's plan looks at: an empty tensor of the dtype; numbers themselves."""
    if type(v) is onp.ndarray:
        if not v.ndim:
            return v
        return NOTHING[v.dtype] if v.dtype in NOTHING else refuse(f"torch has no dtype {v.dtype}")
    data = getattr(v, "data", None)
    return data if type(data) is Tensor else v


CPU = torch.device("cpu")
NOTHING = {n: torch.empty((0,), dtype=t) for n, t in TO_TORCH.items()}
