"""A symbol run on NumPy arrays: bound once per shape, with one executor for every call that is still alive.

An executor is one live call: its next forward overwrites the results and what the backward needs. So a call takes an
executor for its shapes from a pool, and gives it back when nobody can ask for its gradients any more. Arguments are
copied into the executor's own arrays: MXNet re-lays them as it likes (in inference mode, convolution weights in place).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as onp

from ...errors import SymbolError
from .capi import address, copy_in, runtime

Shapes = dict[str, tuple[int, ...]]
MOST_IDLE = 16  # combinations of shapes whose executors are kept for the next call


class Program:
    """A symbol as a function of NumPy arrays.

    arguments   names of its inputs and parameters, in order
    auxiliary   names of its states, which training updates (BatchNorm's moving averages)
    outputs     names of its results
    keeps       whether calls outside training have gradients too: MXNet keeps nothing of them
    trains      whether a gradient alone means training
    again       whether gradients have gradients

    Arrays are NumPy's, or, on a device, `device_array(NDArray, shape, dtype)`.
    """

    keeps, trains, again = False, True, False

    def __init__(self, symbol: Any, context: Any, device_array: Any = None) -> None:
        self.symbol, self.context, self.device_array = symbol, context, device_array
        self.arguments: list[str] = symbol.list_arguments()
        self.auxiliary: list[str] = symbol.list_auxiliary_states()
        self.outputs: list[str] = symbol.list_outputs()
        self.idle: OrderedDict[tuple, list[Executor]] = OrderedDict()
        self.calls: dict[int, Executor] = {}  # by ticket, those whose gradients may still be asked for
        self.tickets = itertools.count(1)

    def shapes(self, given: Shapes, partial: bool = False) -> tuple[Shapes, Shapes, Shapes]:
        """Shapes of (arguments, results, states) that follow from those given; partial: () for what does not follow.

        Raises SymbolError with MXNet's own reason.
        """
        mx = runtime().mx
        try:
            found = self.symbol._infer_shape_impl(partial, **given)  # infer_shape prints before it raises
        except mx.MXNetError as error:
            raise SymbolError(reason(error)) from None
        if found[0] is None:
            raise SymbolError("the shapes given do not determine the others")
        names = (self.arguments, self.outputs, self.auxiliary)
        return tuple(dict(zip(n, map(tuple, s), strict=True)) for n, s in zip(names, found, strict=True))

    # -------------------------------------------------------------- running
    def forward(
        self, arrays: Sequence[Any], dtype: Any, states: Sequence[onp.ndarray], training: bool, wanted: Sequence[bool]
    ) -> tuple[Any, ...]:
        """The results, and a ticket: while it lives, `backward` can compute the gradients of this call.

        arrays   one for each argument
        dtype    to compute in
        wanted   the arguments whose gradients `backward` will be asked for
        """
        key = (tuple(a.shape for a in arrays), dtype, training, tuple(wanted))
        try:
            executor = self.idle[key].pop()
        except (KeyError, IndexError):
            executor = Executor(self, arrays, states, key)
        try:
            results = executor.forward(arrays, states)
        except runtime().mx.MXNetError as error:
            raise SymbolError(reason(error)) from error
        number = next(self.tickets)
        ticket = onp.array(number)
        self.calls[number] = executor
        weakref.finalize(ticket, self.release, number)
        return (*results, ticket)

    def backward(
        self, ticket: onp.ndarray, heads: Sequence[Any], states: list[onp.ndarray], wanted: Sequence[int]
    ) -> tuple[list[Any], onp.ndarray]:
        """(gradients of the arguments, None where they were not wanted; the ticket), given the results' cotangents.

        states   the current ones; on the first backward of a call they are updated in place, as MXNet does there
        """
        executor = self.calls[int(ticket)]
        try:
            return executor.backward(heads, states), ticket
        except runtime().mx.MXNetError as error:
            raise SymbolError(reason(error)) from error

    def release(self, number: int) -> None:
        executor = self.calls.pop(number)
        self.idle.setdefault(executor.key, []).append(executor)
        self.idle.move_to_end(executor.key)
        while len(self.idle) > MOST_IDLE:
            self.idle.popitem(last=False)


class Executor:
    """One bound executor and the arrays it works on."""

    def __init__(
        self, program: Program, arrays: Sequence[onp.ndarray], states: Sequence[onp.ndarray], key: Any
    ) -> None:
        mx, names, context = runtime().mx, program.arguments, program.context
        self.key, self.program = key, weakref.proxy(program)
        _, dtype, self.training, self.wanted = key
        program.shapes({n: a.shape for n, a in zip(names, arrays, strict=True)})  # says what is wrong in MXNet's words
        self.arguments = [mx.nd.empty(a.shape, context, dtype) for a in arrays]
        _, _, types = program.symbol.infer_type(**dict.fromkeys(names, dtype))
        self.states = [mx.nd.empty(a.shape, context, t) for a, t in zip(states, types, strict=True)]
        self.gradients = {
            name: mx.nd.zeros(a.shape, context, dtype)
            for name, a, w in zip(names, arrays, self.wanted, strict=True)
            if w and self.training
        }
        requests = {n: "write" if n in self.gradients else "null" for n in names}
        try:
            with no_fused_operators():
                self.bound = program.symbol.bind(context, self.arguments, self.gradients or None, requests, self.states)
        except mx.MXNetError as error:
            raise SymbolError(reason(error)) from None
        self.heads: list[Any] | None = None
        self.fresh = False

    def forward(self, arrays: Sequence[Any], states: Sequence[onp.ndarray]) -> list[Any]:
        for target, array in zip(self.arguments, arrays, strict=True):
            fill(target, array)
        for target, array in zip(self.states, states, strict=True):
            fill(target, array)
        self.fresh = True
        return [self.take(result) for result in self.bound.forward(is_train=self.training)]

    def take(self, source: Any) -> Any:
        device_array = self.program.device_array
        if device_array is None:
            return taken(source)
        return device_array(source.copy(), source.shape, onp.dtype(source.dtype))

    def backward(self, heads: Sequence[Any], states: list[onp.ndarray]) -> list[Any]:
        if self.heads is None:
            self.heads = [nothing(result) for result in self.bound.outputs]
        for target, head in zip(self.heads, heads, strict=True):
            if head is None:
                target[:] = 0
            else:
                fill(target, head)
        for target, array in zip(self.states, states, strict=True):
            fill(target, array)  # other calls may have moved them since
        self.bound.backward(self.heads)
        gradients = [
            self.take(self.gradients[name]) if name in self.gradients else None for name in self.program.arguments
        ]
        if self.fresh:
            self.fresh = False
            for array, state in zip(states, self.states, strict=True):
                array[...] = taken(state)
        return gradients


@contextlib.contextmanager
def no_fused_operators() -> Iterator[None]:
    """Bind without MXNet's fusion for inference: a fused convolution keeps the first weight it is given for ever."""
    before = os.environ.get("MXNET_SUBGRAPH_BACKEND")
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "default"  # the one that fuses nothing; "NONE" prints a line
    try:
        yield
    finally:
        if before is None:
            del os.environ["MXNET_SUBGRAPH_BACKEND"]
        else:
            os.environ["MXNET_SUBGRAPH_BACKEND"] = before


def nothing(result: Any) -> Any:
    return runtime().mx.nd.empty(result.shape, result.context, result.dtype)


def fill(target: Any, array: Any) -> None:
    """Copy elements into an NDArray, after whatever still reads it.

    By an operator: copying from outside does not notice that a convolution has re-laid its weight in place.
    """
    if isinstance(array, onp.ndarray):
        if array.dtype != target.dtype or not (array.flags.c_contiguous and array.flags.aligned):
            array = onp.require(array, target.dtype, "CA")
        copy_in(target.handle, array)
    else:  # of a device
        array.array.reshape(target.shape).astype(target.dtype, copy=False).copyto(target)


def taken(source: Any) -> onp.ndarray:
    """A copy of an NDArray's elements, after whatever still writes them."""
    array = onp.empty(source.shape, source.dtype)
    runtime().must("MXNDArraySyncCopyToCPU", source.handle, address(array), array.size)
    return array


def reason(error: Exception) -> str:
    """What an error of MXNet says, without its stack."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if "Error" in line or "Check failed" in line]
    return (said or lines or [""])[0].removeprefix("MXNetError: ")
