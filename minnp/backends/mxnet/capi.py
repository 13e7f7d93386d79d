"""Calls of MXNet operators over NumPy's memory, through the C interface.

MXNet's own front end costs 10 to 20 us a call, most of it in making arrays and texts anew. A `Call` prepares everything
that does not change with the data (operator, attributes, shapes), so that running it is one hand-over for each buffer
(a DLPack record, 1 us) and the invocation.

What MXNet does to memory, and the answer here:
- it works asynchronously: a call waits for its results before it returns, so nothing of ours is read or written later;
- convolutions leave results in a blocked layout of their own: MXNDArrayGetData on each result puts them in C order;
- in inference mode a convolution re-lays its weight inside the caller's buffer (and crashes if that is read-only):
  such operators run in training mode, which does not;
- an NDArray over our memory is freed before the call returns, so none outlives the buffer it shows.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_int64, c_void_p, memmove
from typing import Any

import numpy as onp

from ...errors import BackendUnsupportedError
from .loader import load

# NumPy name of a dtype -> (DLPack type code, bits), and MXNet's number for it
DLPACK = {
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "int8": (0, 8),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "bool": (1, 1),
}
SMALL = 4096  # bytes that are copied rather than handed over
NUMBERED = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool"}


class Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor. Without a deleter: nothing of ours is released through MXNet."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int),
        ("device_id", c_int),
        ("ndim", c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", c_void_p),
        ("deleter", c_void_p),
    )


# Those that never wait keep Python's lock, which costs less than giving it up and asking for it again.
QUICK = ("MXNDArrayFromDLPackEx", "MXNDArrayFree", "MXAutogradSetIsTraining", "MXAutogradSetIsRecording")
SIGNATURES = {
    "NNGetOpHandle": (c_char_p, c_void_p),
    "MXNDArrayFromDLPackEx": (c_void_p, ctypes.c_bool, c_void_p),
    "MXNDArrayFree": (c_void_p,),
    "MXNDArrayWaitToRead": (c_void_p,),
    "MXNDArrayWaitAll": (),
    "MXNDArrayGetData": (c_void_p, c_void_p),
    "MXNDArraySyncCopyToCPU": (c_void_p, c_void_p, ctypes.c_size_t),
    "MXNDArrayGetShapeEx": (c_void_p, c_void_p, c_void_p),
    "MXNDArrayGetDType": (c_void_p, c_void_p),
    "MXAutogradSetIsTraining": (c_int, c_void_p),
    "MXAutogradSetIsRecording": (c_int, c_void_p),
    "MXAutogradMarkVariables": (c_int, c_void_p, c_void_p, c_void_p),
    "MXAutogradBackwardEx": (
        c_int,
        c_void_p,
        c_void_p,
        c_int,
        c_void_p,
        c_int,
        c_int,
        c_int,
        c_void_p,
        c_void_p,
    ),
    "MXImperativeInvokeEx": (c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_void_p),
}


class Runtime:
    """The loaded library: typed C functions and operator handles."""

    def __init__(self) -> None:
        self.mx = load()
        # A library object of our own: the argument types set here do not change the front end's functions.
        name = self.mx.base._LIB._name
        library, locked = ctypes.CDLL(name), ctypes.PyDLL(name)
        for name, types in SIGNATURES.items():
            function = getattr(locked if name in QUICK else library, name)
            function.argtypes, function.restype = types, c_int
            setattr(self, name, function)
        library.MXGetLastError.restype = c_char_p
        self._last_error = library.MXGetLastError
        self.operator = functools.cache(self._operator)

    def _operator(self, name: str) -> int:
        handle = c_void_p()
        if self.NNGetOpHandle(name.encode(), ctypes.byref(handle)):
            raise BackendUnsupportedError(f"this MXNet has no operator {name}")
        return handle.value

    def must(self, function: str, *arguments: Any) -> None:
        if getattr(self, function)(*arguments):
            raise self.refusal()

    def refusal(self) -> BackendUnsupportedError:
        """The library's last error. Whatever it had begun went to results nobody has seen."""
        lines = [line.strip() for line in self._last_error().decode(errors="replace").splitlines()]
        said = next((line for line in lines if "Error" in line or "Check failed" in line), lines[0] if lines else "")
        return BackendUnsupportedError(f"MXNet: {said}")


runtime = functools.cache(Runtime)


def _address_in_header(array: onp.ndarray) -> int:
    # The data pointer is the first field after the object header; `array.ctypes.data` reads the same in 1 us.
    return c_void_p.from_address(id(array) + object.__basicsize__).value


def _address(array: onp.ndarray) -> int:
    return array.ctypes.data


_probe = onp.zeros(1)
address = _address_in_header if _address_in_header(_probe) == _probe.ctypes.data else _address


class Scratch:
    """The C records of one running call: a tensor and a handle for every buffer."""

    __slots__ = ("base", "count", "handles", "kinds", "outputs", "pairs", "results", "shapes", "tensors")

    def __init__(self, buffers: Sequence[tuple[tuple[int, ...], str]], results: int) -> None:
        self.shapes = [(c_int64 * len(shape))(*shape) for shape, _ in buffers]
        self.tensors = (Tensor * len(buffers))()
        for tensor, shape, (_, dtype) in zip(self.tensors, self.shapes, buffers, strict=True):
            code, bits = DLPACK[dtype]
            tensor.device_type, tensor.ndim, tensor.shape = 1, len(shape), ctypes.addressof(shape)
            tensor.code, tensor.bits, tensor.lanes = code, bits, 1
        self.handles = (c_void_p * len(buffers))()
        self.base = ctypes.addressof(self.handles)
        # (record, where it is, where its handle goes) of every buffer
        self.pairs = [(t, ctypes.addressof(t), self.base + 8 * i) for i, t in enumerate(self.tensors)]
        self.count, self.kinds = c_int(results), c_void_p()
        self.results = c_void_p(self.base + (len(buffers) - results) * 8)
        self.outputs = [ctypes.addressof(c) for c in (self.count, self.results, self.kinds)]


class Stage(Scratch):
    """The C records of one running call on few bytes, with arrays of its own for them.

    Copying 4 KB in and out costs a quarter of handing the memory over. Kept, like the plan it belongs to, for good.
    """

    __slots__ = ("sinks", "sources")

    def __init__(self, buffers: Sequence[tuple[tuple[int, ...], str]], results: int) -> None:
        super().__init__(buffers, results)
        arrays = [onp.empty(shape, dtype) for shape, dtype in buffers]
        for array, (tensor, pointer, place) in zip(arrays, self.pairs, strict=True):
            tensor.data = array.ctypes.data
            runtime().must("MXNDArrayFromDLPackEx", pointer, True, place)
        first = len(arrays) - results
        self.sources = [(array.ctypes.data, array.nbytes, array) for array in arrays[:first]]
        self.sinks = list(zip(self.handles[first:], arrays[first:], strict=True))


class Call:
    """An MXNet operator with its attributes, for arguments of fixed shapes and dtypes.

    operator    name of the operator
    attributes  its parameters, as texts
    arguments   (shape, dtype name) of every argument, as MXNet is to see them
    training    run in training mode (see the module's docstring)
    blocked     the results may come in a blocked layout
    results     (shape, dtype name) of every result, for operators that cannot infer them; else found by the first run
    """

    def __init__(
        self,
        operator: str,
        attributes: dict[str, str],
        arguments: Sequence[tuple[tuple[int, ...], str]],
        training: bool = False,
        blocked: bool = False,
        results: Sequence[tuple[tuple[int, ...], str]] | None = None,
    ) -> None:
        self.runtime = runtime()
        self.arguments = list(arguments)
        self.training, self.blocked = training, blocked
        self.keys = (c_char_p * len(attributes))(*(key.encode() for key in attributes))
        self.texts = (c_char_p * len(attributes))(*(text.encode() for text in attributes.values()))
        self.length = len(attributes)
        self.handle = self.runtime.operator(operator)
        self.results = results
        self.spare: list[Any] = []  # records: one for each thread that has run the call at the same time
        self.small = False

    def __call__(self, arrays: Sequence[onp.ndarray]) -> list[onp.ndarray]:
        """Run on C-contiguous arrays of the declared sizes and dtypes; returns new arrays."""
        if self.small:
            return self._copied(arrays)
        if self.results is None:
            return self._first(arrays)
        outputs = [onp.empty(shape, dtype) for shape, dtype in self.results]
        try:
            scratch = self.spare.pop()
        except IndexError:
            scratch = Scratch([*self.arguments, *self.results], len(outputs))
        self._run(scratch, [*arrays, *outputs], len(arrays))
        self.spare.append(scratch)
        return outputs

    def _first(self, arrays: Sequence[onp.ndarray]) -> list[onp.ndarray]:
        """Run with results in MXNet's memory, to learn their shapes and dtypes, and copy them out."""
        scratch = Scratch(self.arguments, 0)
        scratch.results.value = None
        outputs: list[onp.ndarray] = []
        self._run(scratch, arrays, len(arrays), outputs)
        self.results = [(array.shape, array.dtype.name) for array in outputs]
        # What may be laid anew in its memory must not be kept.
        plain = not (self.training or self.blocked)
        self.small = plain and sum(array.nbytes for array in (*arrays, *outputs)) <= SMALL
        return outputs

    def _copied(self, arrays: Sequence[onp.ndarray]) -> list[onp.ndarray]:
        """Run on copies of the arrays."""
        try:
            stage = self.spare.pop()
        except IndexError:
            stage = Stage([*self.arguments, *self.results], len(self.results))
        for array, (place, nbytes, _) in zip(arrays, stage.sources):
            memmove(place, address(array), nbytes)
        try:
            self._invoke(stage, stage.base, len(arrays))
            for handle, _ in stage.sinks:
                if self.runtime.MXNDArrayWaitToRead(handle):
                    raise self.runtime.refusal()
        except BaseException:
            self.runtime.MXNDArrayWaitAll()
            raise
        outputs = [array.copy() for _, array in stage.sinks]
        self.spare.append(stage)
        return outputs

    def _run(self, scratch: Scratch, arrays: Sequence[onp.ndarray], inputs: int, copies: list | None = None) -> None:
        rt, handles = self.runtime, scratch.handles
        made = 0
        try:
            for array, (tensor, pointer, place) in zip(arrays, scratch.pairs):
                tensor.data = address(array)
                if rt.MXNDArrayFromDLPackEx(pointer, True, place):
                    raise rt.refusal()
                made += 1
            if self.training:
                before = c_int()
                rt.MXAutogradSetIsTraining(1, ctypes.byref(before))
                try:
                    self._invoke(scratch, scratch.base, inputs)
                finally:
                    rt.MXAutogradSetIsTraining(before.value, ctypes.byref(before))
            else:
                self._invoke(scratch, scratch.base, inputs)
            if copies is None:
                for i in range(inputs, made):
                    if rt.MXNDArrayWaitToRead(handles[i]):
                        raise rt.refusal()
                    if self.blocked:
                        rt.MXNDArrayGetData(handles[i], scratch.outputs[2])
            else:
                self._take(scratch, copies)
        except BaseException:  # KeyboardInterrupt too: nothing may work on this memory when the caller frees it
            rt.MXNDArrayWaitAll()
            raise
        finally:
            for handle in handles[:made]:
                rt.MXNDArrayFree(handle)

    def _invoke(self, scratch: Scratch, inputs: int, count: int) -> None:
        outputs, results, kinds = scratch.outputs
        if self.runtime.MXImperativeInvokeEx(
            self.handle, count, inputs, outputs, results, self.length, self.keys, self.texts, kinds
        ):
            raise self.runtime.refusal()

    def _take(self, scratch: Scratch, copies: list) -> None:
        """Copy results that MXNet allocated, and free them."""
        rt = self.runtime
        results = [c_void_p.from_address(scratch.results.value + 8 * i).value for i in range(scratch.count.value)]
        try:
            for handle in results:
                ndim, sizes, number, data = c_int(), ctypes.POINTER(c_int)(), c_int(), c_void_p()
                if rt.MXNDArrayWaitToRead(handle):
                    raise rt.refusal()
                rt.MXNDArrayGetShapeEx(handle, ctypes.byref(ndim), ctypes.byref(sizes))
                rt.MXNDArrayGetDType(handle, ctypes.byref(number))
                rt.MXNDArrayGetData(handle, ctypes.byref(data))
                array = onp.empty(sizes[: ndim.value], NUMBERED[number.value])
                memmove(array.ctypes.data, data.value, array.nbytes)
                copies.append(array)
        finally:
            for handle in results:
                rt.MXNDArrayFree(handle)


class Derivative(Call):
    """The gradient of a linear operator f(x, w) with respect to w alone: a call on (x, w, cotangent of f(x, w)).

    MXNet's own derivative operators compute the gradients of all arguments; its autograd leaves out those that nobody
    asked for, which for a convolution is worth a forward run.
    """

    def _invoke(self, scratch: Scratch, inputs: int, count: int) -> None:
        rt, recording, ignored = self.runtime, c_int(), c_int()
        write, value = c_int(1), c_void_p()
        result = Scratch((), 0)
        result.results.value = None
        rt.must("MXAutogradMarkVariables", 1, inputs + 8, ctypes.byref(write), scratch.results)
        rt.MXAutogradSetIsRecording(1, ctypes.byref(recording))
        try:
            super()._invoke(result, inputs, count - 1)
        finally:
            rt.MXAutogradSetIsRecording(recording.value, ctypes.byref(ignored))
        value = c_void_p(c_void_p.from_address(result.results.value).value)
        try:
            rt.must(
                "MXAutogradBackwardEx", 1, ctypes.byref(value), inputs + 8 * (count - 1), 0, None, 0, 0, 1, None, None
            )
        finally:
            rt.MXNDArrayFree(value)


def copy_in(target: c_void_p, array: onp.ndarray) -> None:
    """Copy a C-contiguous array into an NDArray (a handle) of its shape and dtype, by an operator."""
    rt = runtime()
    scratch = Scratch([(array.shape or (1,), array.dtype.name)], 0)
    scratch.tensors[0].data = address(array)
    source = ctypes.addressof(scratch.handles)
    rt.must("MXNDArrayFromDLPackEx", scratch.pairs[0][1], True, source)
    try:
        results, count = c_void_p(ctypes.addressof(target)), c_int(1)
        rt.must(
            "MXImperativeInvokeEx", rt.operator("_copyto"), 1, source, ctypes.byref(count), ctypes.byref(results),
            0, None, None, ctypes.byref(c_void_p()),
        )  # fmt: skip
        rt.must("MXNDArrayWaitToRead", target)  # the source may change as soon as this returns
    finally:
        rt.MXNDArrayFree(scratch.handles[0])
