"""The short ways of operators and functions on traced and placed handles: ten elements deserve few calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import errors
from ..arrays.array import HANDLES, ndarray, read, virtual, wrap
from ..rows import on_device
from ..rows.dispatch import bind
from ..rows.primitive import NO_PARAMS, TABLE, Primitive
from ..rows.state import state
from ..rows.value import Buffer, Tracer


def on_value(row: Primitive, a: ndarray) -> Any:
    """A row of one traced or placed handle: the short path of operators and ufuncs."""
    x = a._value
    if type(x) is Tracer:
        return x.trace.unary(row, a)
    if a._root is not None:
        x = read(a)
    return _on_buffers(row, x) if type(x) is Buffer else wrap(bind(row, (x,), NO_PARAMS))


def on_values(row: Primitive, a: Any, b: Any) -> Any:
    """A row of two operands (handles, host arrays or numbers), one of them traced or placed: the short path."""
    x, y = a, b
    if type(a) in HANDLES:
        x = a._host
        if x is None:
            x = a._value
            if type(x) is Tracer:
                return x.trace.binary(row, a, b)
            if a._root is not None:
                x = read(a)
    if type(b) in HANDLES:
        y = b._host
        if y is None:
            y = b._value
            if type(y) is Tracer:
                return y.trace.binary(row, a, b)
            if b._root is not None:
                y = read(b)
    if type(x) is Buffer or type(y) is Buffer:
        return _on_buffers(row, x, y)
    return wrap(bind(row, (x, y), NO_PARAMS))


def _on_buffers(row: Primitive, x: Any, y: Any = None) -> Any:
    """The handle of a row of one or two values of which at least one is a buffer. In one frame: what is added here to
    a call of the device's library is added ten thousand times."""
    device = x.backend if type(x) is Buffer else y.backend
    slot = device.slots.get(row)
    if slot is None or slot[0] is None or row.view:
        return wrap(bind(row, (x,) if y is None else (x, y), NO_PARAMS))
    try:
        if y is None:
            out = slot[0](x.data)
        else:
            out = slot[0](
                x.data if type(x) is Buffer else x if type(x) in on_device.NUMBERS else on_device.arrived(x, device),
                y.data if type(y) is Buffer else y if type(y) in on_device.NUMBERS else on_device.arrived(y, device),
            )
    except errors.BackendUnsupportedError:
        return wrap(bind(row, (x,) if y is None else (x, y), NO_PARAMS))  # which falls back, and says why
    slot[1] += 1
    if type(out) is tuple:
        return tuple([wrap(Buffer(o, device, computed=True)) for o in out])
    return virtual(Buffer(out, device, computed=True))


def row_on_device(name: str, args: Any, params: dict) -> ndarray | None:
    """A row of arrays on a device, and numbers, as NumPy's function of its name takes them; None: not this simply."""
    device, data = None, []
    for a in args:
        if type(a) in HANDLES:
            v = a._value if a._host is None and a._root is None else read(a)
            if type(v) is not Buffer:
                return None
            device = v.backend
            data.append(v.data)
        elif type(a) in on_device.NUMBERS:
            data.append(a)
        else:
            return None
    if device is None or (state.busy and not on_device.free(device)):
        return None
    slot = device.slots.get(TABLE[name])
    if slot is None or slot[0] is None:
        return None
    try:
        out = slot[0](*data, **params)
    except errors.BackendUnsupportedError:
        return None
    slot[1] += 1
    return virtual(Buffer(out, device, computed=slot[-1]))


def on_view(name: str, h: ndarray, params: dict) -> ndarray | None:
    """A row that may look at its argument's memory (getitem, reshape) on a traced or placed handle: the short path."""
    x = h._value if h._root is None else read(h)
    if type(x) is Tracer and state.busy == state.written and x.trace.alive:
        return wrap(x.trace.process(TABLE[name], (x,), params), (h,))
    if type(x) is not Buffer or (state.busy and not on_device.free(x.backend)):
        return None
    row, device = TABLE[name], x.backend
    slot = device.slots.get(row)
    if slot is None or slot[0] is None:
        return None
    try:
        out = slot[0](x.data, **params)
    except errors.BackendUnsupportedError:
        return None
    slot[1] += 1
    buffer = Buffer(out, device, computed=True)
    view = virtual(buffer)
    if on_device.shows(row, x, out, params):
        buffer.view = (x, row, params)
        view._root, view._path = (h, ((row, params),)) if h._root is None else (h._root, (*h._path, (row, params)))
        view._seen = view._root._value
    return view


def quickly(name: str) -> Callable | None:
    """The short way of a function on a device, (args, kwargs) -> handle or None; None where it has none."""
    if name in on_device.REDUCTIONS:

        def quick(args: tuple, kwargs: dict) -> Any:
            x = args[0]
            if type(x) not in HANDLES or x._host is not None:
                return None
            params = on_device.params_of(name, args[1:], kwargs)
            return None if params is None else row_on_device(name, (x,), params)

        return quick
    if name in on_device.LISTS:

        def quick(args: tuple, kwargs: dict) -> Any:
            x = args[0]
            if (type(x) is not list and type(x) is not tuple) or not x or type(x[0]) not in HANDLES:
                return None
            params = {"axis": args[1]} if len(args) == 2 and not kwargs else {"axis": 0, **kwargs}
            if x[0]._host is not None or len(args) > 2 or len(params) > 1 or type(params["axis"]) is not int:
                return None
            return row_on_device(name, x, params)

        return quick
    if name in on_device.DIRECT:
        count = on_device.DIRECT[name]
        return lambda args, kwargs: None if kwargs or len(args) != count else row_on_device(name, args, kwargs)
    return None
