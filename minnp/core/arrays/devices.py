"""Contexts: where new arrays live. `with minnp.gpu(0): x = np.ones(3)`; without one, in NumPy's memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as onp

from ... import backends, errors
from ..rows.dispatch import bind
from ..rows.on_device import device_of_index, free, move_value
from ..rows.policy import current as current_policy
from ..rows.primitive import primitive
from ..rows.state import state
from ..rows.value import Buffer, Host, concrete
from .array import ARRAY_TYPES, Array, array_of, ndarray, read


class Context:
    """A device, which arrays live on; also a context manager, in which new arrays are made there.

    device_type   "cpu" or "gpu", or both in one with a number: "gpu:1"; "cuda:0" is torch's
    device_id     its number; the first is 0
    backend       whose memory holds the arrays there; by default NumPy's on a cpu, and on a gpu the current backend's,
                  else that of the first installed backend that reaches it

    Raises ValueError for another type, a negative number, or a number that is given twice.

    >>> with Context("cpu"):
    ...     x = np.zeros(3)
    """

    def __init__(self, device_type: str | Context, device_id: int = 0, backend: str | None = None) -> None:
        if isinstance(device_type, Context):
            device_type, device_id, backend = device_type.device_type, device_type.device_id, device_type.backend
        elif (said := _parsed(device_type)) is not None:
            device_type, number, own = said
            if number and device_id:
                raise ValueError(f"Context({device_type + number!r}, {device_id}) has two numbers; give one of them")
            device_id, backend = int(number[1:]) if number else device_id, backend or own
        if device_type not in ("cpu", "gpu"):
            raise ValueError(
                f"unknown device type {device_type!r}; known: cpu, gpu, cuda (torch's), also with a number: gpu:1"
            )
        if not isinstance(device_id, int) or device_id < 0:
            raise ValueError(f"device number {device_id!r}: the first is 0")
        if backend not in (None, *backends.names()):
            raise ValueError(f"unknown backend {backend!r} of a device; known: {', '.join(backends.names())}")
        self.device_type, self.device_id, self.backend = device_type, device_id, backend

    @staticmethod
    def of(device: Any) -> Context:
        """The context of a backend with memory of its own."""
        said = device.device  # what a Context takes, or one of a class of its own (a mesh)
        return said[0] if isinstance(said[0], Context) else Context(*said)

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id}{', ' + repr(self.backend) if self.backend else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context) or (self.device_type, self.device_id) != (other.device_type, other.device_id):
            return False
        # minnp.gpu(0) is that device whosever memory is used there; minnp.cpu() is NumPy's memory
        any_backend = self.device_type == "gpu" and None in (self.backend, other.backend)
        return any_backend or self.backend == other.backend

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    @property
    def device(self) -> Any:
        """The device (a Backend with memory of its own) where arrays live in this context; None: NumPy's memory."""
        if self.device_type == "cpu" and self.backend is None:
            return None
        preferred = self.backend or current_policy().backend
        names = [preferred] if preferred else backends.installed()
        refusals = []
        for name in names:
            device, why = backends.get(name).device_at(self.device_type, self.device_id)
            if device is not None:
                return device
            refusals.append(f"{name}: {why}")
        way_out = "Install one that does (pip install torch)"
        if "torch" in backends.installed():
            way_out = "For torch it takes a GPU, its driver and a torch built for it"
        why = "; ".join(refusals) or "none is installed"
        raise errors.BackendMissingError(f"no backend reaches {self!r}: {why}. {way_out}, or stay on minnp.cpu()")

    def admitted(self, x: Any) -> Any:
        """An array that somebody asks to live here; ValueError where it cannot."""
        return x

    def __enter__(self) -> Context:
        device = self.device  # fails here, rather than at the first array
        in_force.set((self, device, in_force.get()))
        state.busy += device is not None
        return self

    def __exit__(self, *exc: Any) -> None:
        _, device, outer = in_force.get()
        in_force.set(outer)
        state.busy -= device is not None


def _parsed(device: Any) -> tuple[str, str, str | None] | None:
    """(type, ":number" or nothing, whose backend) of a device's name; None for what is none."""
    found = re.fullmatch(r"(cpu|gpu|cuda)(:[0-9]+)?", device) if isinstance(device, str) else None
    if found is None:
        return None
    kind, number = found[1], found[2] or ""
    return ("gpu", number, "torch") if kind == "cuda" else (kind, number, None)


seed = backends.seed  # the random numbers drawn on devices


def cpu(device_id: int = 0) -> Context:
    """The host.

    device_id   as of a gpu; there is one host, whatever the number

    >>> cpu()
    cpu(0)
    """
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU, by number.

    device_id   its number; the first is 0

    Entering it raises BackendMissingError where no installed backend reaches it.

    >>> gpu(1)
    gpu(1)
    """
    return Context("gpu", device_id)


def beside(args: tuple) -> Context | None:
    """Where new arrays live beside these: on the device of the first array among them, unless that is given already."""
    for a in args:
        if type(a) is list or type(a) is tuple:
            a = a[0] if a else None
        if (
            type(a) in ARRAY_TYPES
            and a._host is None
            and type(value := concrete(a._value)) is Buffer
            and default_device() is None
        ):
            return _whereabouts(value)
    return None


# (context, its device, what was in force around it)
in_force: ContextVar[tuple | None] = ContextVar("minnp.context", default=None)
_global: tuple = (cpu(), None)


def current_context() -> Context:
    """The context in force here: the innermost `with`, else the global one.

    >>> current_context()
    cpu(0)
    """
    return (in_force.get() or _global)[0]


def default_device() -> Any:
    """The device where new arrays live; None: NumPy's memory."""
    return (in_force.get() or _global)[1]


def set_context(context: Context) -> None:
    """Set the context for every thread without one of its own.

    Raises TypeError for what is no Context.

    >>> set_context(cpu())
    """
    global _global
    if not isinstance(context, Context):
        raise TypeError(f"set_context takes a Context, such as minnp.gpu(0); got {context!r}")
    new = (context, context.device)
    state.busy += (new[1] is not None) - (_global[1] is not None)
    _global, state.device = new, new[1]


def made(device: Any, name: str, args: tuple, kwargs: dict, run: Callable) -> Any:
    """What NumPy's function of this name makes of no arrays of ours, on a device: made there, or `run` and moved."""
    data = device.create(name, args, kwargs) if free(device) else None
    return move_result(run(), device) if data is None else array_of(Buffer(data, device))


def drawn(device: Any, name: str, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """The value of a draw on a device, in compiled code."""
    return read(made(device, name, args, kwargs, lambda: function(*args, **kwargs)))


def move_result(result: Any, device: Any) -> Any:
    """A result that came from no array of ours, its arrays moved to a device; what that cannot hold stays here."""
    if type(result) in ARRAY_TYPES:
        value = read(result)
        if type(value) is not Host:
            return result
        try:
            return array_of(Buffer(device.from_host(value), device))
        except errors.BackendUnsupportedError:
            return result
    if type(result) in (tuple, list):
        return type(result)([move_result(r, device) for r in result])
    return result


# ------------------------------------------------------------------ the Array API's word for it: device
def on_device(create: Any, device: Any = None, **options: Any) -> Any:
    """create(**options), its result on `device`."""
    result = create(**options)
    return result if device is None or type(result) not in ARRAY_TYPES else result.to_device(device)


def context_of(self: ndarray) -> Context:
    """The context in which this array lives."""
    return _whereabouts(read(self))


Array.context = property(context_of)


# ------------------------------------------------------------------ moving arrays
class DeviceName(str):
    """What `x.device` says of a device, and its Context, by which functions with `device=` find the device again."""

    __slots__ = ("context",)

    def __new__(cls, context: Context) -> DeviceName:
        self = super().__new__(cls, repr(context))
        self.context = context
        return self

    def __reduce__(self) -> tuple:
        return DeviceName, (self.context,)


def target(device: Any) -> Context:
    """The context of a device given by name: a Context, "cpu", "gpu", "gpu:1", torch's own name, "cuda:1", or what
    `x.device` says."""
    if isinstance(device, (Context, DeviceName)):
        return getattr(device, "context", device)
    said = _parsed(str(device))
    if said is None:
        raise ValueError(
            f'Device not understood. Only "cpu" is allowed, but received: {device} ("gpu:0" and contexts are too)'
        )
    kind, number, backend = said
    return cpu() if kind == "cpu" else Context(kind, int(number[1:] or 0), backend)


def _moved(x: Any, context: Context) -> Any:
    """A value's elements where the context says; itself where it lives there already."""
    device = context.device
    if type(x) is Buffer:
        if device is not None and (data := device.adopted(x.data)) is not None:
            return x if data is x.data else Buffer(data, device)
        if x.backend is device:
            return x
        x = x.host()
    return x if device is None else Buffer(device.from_host(onp.asarray(x)), device)


TO_DEVICE = primitive(
    "to_device",
    _moved,
    vjp=[lambda g, y, x, context: TO_DEVICE(g, context=_whereabouts(x))],
    jvp="linear",
    saves="in",
    anywhere=True,
    samples=lambda: [((onp.arange(3.0),), {"context": cpu()})],
)


def _whereabouts(value: Any) -> Context:
    value = concrete(value)
    if type(value) is not Buffer:
        return cpu()
    return value.backend.context_of(value.data) or Context.of(value.backend)


def at_index(x: Any, index: Any) -> Any:
    """An array or number, traced ones too, on the device where an index that is used on it lives; itself otherwise."""
    device = device_of_index(index)
    if device is None or type(value := concrete(read(x) if type(x) in ARRAY_TYPES else x)) is Buffer:
        return x
    if type(move_value(onp.empty(0, onp.asarray(value).dtype), device)) is not Buffer:  # no such dtype there
        return x
    return TO_DEVICE(x, context=Context.of(device))


def together(x: Any, index: Any) -> tuple[Any, Any]:
    """(an array, an index) that is used on it, in one memory: where the index is, if that has the array's dtype."""
    if device_of_index(index) is not None:
        x = at_index(x, index)
        index = index if type(concrete(read(x) if type(x) in ARRAY_TYPES else x)) is Buffer else index_on_host(index)
    return x, index


def alongside(x: Any, value: Any) -> Any:
    """A value, traced ones too, in the memory of another."""
    if type(concrete(x)) is not Buffer and type(concrete(value)) is not Buffer:
        return x
    return bind(TO_DEVICE, (x,), {"context": _whereabouts(value)})


def index_on_host(index: Any) -> Any:
    """An index whose arrays, traced ones too, are in NumPy's memory."""
    if type(index) is tuple:
        return tuple(map(index_on_host, index))
    return bind(TO_DEVICE, (index,), {"context": cpu()}) if type(concrete(index)) is Buffer else index


def to_device(self: ndarray, device: Any, /, *, stream: Any = None) -> ndarray:
    """The array on another device: a Context such as minnp.gpu(0), or "cpu", "gpu:1", "cuda:1". Gradients flow back.

    Raises BackendMissingError where no installed backend reaches the device.
    """
    if stream is not None:
        raise ValueError("The stream argument in to_device() is not supported")
    if isinstance(device, (list, Array, Host)):
        raise TypeError(f"to_device() takes a device's name or a Context, not {type(device).__name__}")
    to = target(device)
    return self if to == _whereabouts(read(self)) else TO_DEVICE(to.admitted(self), context=to)


def device(self: ndarray) -> str:
    """Where the array lives, in words: "cpu" for NumPy's memory."""
    return name_of(_whereabouts(read(self)))


def name_of(context: Context) -> str:
    """The device of a context, as `x.device` says it."""
    return "cpu" if context == cpu() else DeviceName(context)


def device_is_fixed(self: ndarray, value: Any) -> None:
    raise AttributeError("attribute 'device' of 'numpy.ndarray' objects is not writable; use x.to_device(...)")
