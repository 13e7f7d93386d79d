"""What every transformation is: a Trace, and the tracers it wraps around values."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as onp

from ... import errors
from ..arrays.array import ARRAY_TYPES, Array, concretize, ndarray, read
from ..rows.primitive import Primitive
from ..rows.pytree import CONTAINERS, replaced
from ..rows.state import capture, state
from ..rows.value import STAND_INS, Host, Tracer, concrete
from .cotangents import carries

LEVELS = itertools.count(1)


class Constant:
    """The kind of answer (see `concretize`) in which derivatives do not matter: positions, counts, shapes, masks."""


class Trace:
    """One live transformation. `process(row, values, params)` is the whole of its meaning; `bind` calls the highest.

    level   later transformations are higher
    alive   False once the transformed function has returned: its tracers then decay to the values they wrap
    lent    the caller's arguments: writes copy their memory first
    hidden  weak references to the host arrays that were written under it, by id
    """

    batched = False  # whether its values have a batch axis, first, that its tracers do not show
    differentiable = True  # whether its tracers carry derivatives, which a plain NumPy array would lose
    __slots__ = ("__weakref__", "alive", "busy", "hidden", "lent", "level")

    def __init__(self) -> None:
        self.level, self.alive, self.busy = next(LEVELS), True, False
        self.lent: list = []
        self.hidden: dict[int, weakref.ref] = {}

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        raise NotImplementedError

    def looked(self, name: str) -> None:
        """The function asked for an attribute that says how an array lies in memory, or for its text."""

    def hands_out(self, value: Tracer, way: str) -> None:
        """Somebody asked for an array's memory: nothing leaves while a gradient or a graph watches it."""
        inner = concrete(value)
        raise errors.TracedValueError(
            f"a traced array ({inner.dtype}{list(inner.shape)}) was about to leave minnp by {way}, where the gradient "
            "would be lost. Use minnp.numpy functions on it, or np.stop_gradient(x) to cut the gradient on purpose"
        )

    def dropped(self, h: Array) -> None:
        """An array of ours no longer holds one of this trace's tracers, but what that stood for."""

    def lifted(self, values: Any) -> Any:
        """The values that a trace above works with, as the trace that records everything wants them."""
        return values

    def leave(self, name: str, made: Any) -> None:
        """A call made an array of a subclass of NumPy's: no tracer has its operators, so none stands for it."""
        raise errors.NotDifferentiableError(
            f"np.{name} makes a {type(made).__name__} of a traced array, whose operators no gradient follows; "
            "stop the gradient with np.stop_gradient, or give this step a rule with minnp.custom_vjp"
        )

    def keep_busy(self, root: ndarray | None = None) -> None:
        """A host array was written under this trace: until it ends, views must look at their root, and other libraries
        see none of its memory."""
        if root is not None and id(root) not in self.hidden:
            self.hidden[id(root)] = weakref.ref(root)
        if not self.busy and self.alive:
            self.busy = True
            state.busy += 1  # first, and last below: another thread never finds `written` to be all of it too early
            state.on_host += 1
            state.written += 1

    def finish(self) -> None:
        """End the transformed function: tracers decay to the values they wrap."""
        self.alive = False
        if self.busy:
            self.busy = False
            state.written -= 1
            state.on_host -= 1
            state.busy -= 1
        for root in self.hidden.values():
            if (h := root()) is not None:
                read(h)
        self.hidden.clear()

    def concretize(self, value: Tracer, kind: Any) -> Any:
        """The value below, when Python asks a tracer for a bool, an int, a float (or a list, an array) of numbers.

        A bool and an int are locally constant: branches, and range(int(n)). A float that carries a derivative would
        lose it without a word, so that raises. Who asks for a Constant knows that no gradient flows.
        """
        if self.differentiable and kind in LEAVING and (value.dtype.kind in "fc" or _objects_with_numbers(value)):
            inner = f"{value.dtype}[{', '.join(map(str, value.shape))}]"
            raise errors.TracedValueError(
                f"a traced array ({inner}) was about to leave minnp: {LEAVING[kind]}, where the gradient would be "
                "lost. Use minnp.numpy functions on it (np.exp for math.exp, x.astype(np.float32) for np.float32(x)), "
                "np.stop_gradient(x) to cut the gradient on purpose, or minnp.custom_vjp to give this step a rule"
            )
        return value.value


def _objects_with_numbers(value: Tracer) -> bool:
    base = concrete(value) if value.dtype.kind == "O" else None
    return type(base) is Host and any(map(carries, base.ravel().tolist()))


LEAVING = {
    hash: "something hashed it, for a key of a dict or an element of a set",
    float: "something asked for it as a Python float",
    complex: "something asked for it as a Python complex number",
    list: "something asked for its elements as Python numbers",
    onp.ndarray: "something asked for its data as a numpy.ndarray",
}


def plain(x: Any) -> Any:
    """Any argument with its arrays as NumPy arrays: for positions, counts, shapes, through which no gradient flows."""
    if type(x) in CONTAINERS:
        return replaced(x, plain)
    if type(x) in STAND_INS:
        return x.fixed()
    if type(x) in ARRAY_TYPES:
        x = concretize(read(x), Constant)
    if type(x) is Host and x.size:  # made outside a capture: what becomes of the answer holds for its elements alone
        watching = capture.get() if state.busy else None
        if watching is not None and not watching.symbolic:
            watching.depends_on(x)
    return x
