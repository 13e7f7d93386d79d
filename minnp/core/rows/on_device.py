"""Rows on buffers: they run where their arguments live, and results go there."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ... import errors
from . import policy, report
from .primitive import Primitive
from .state import capture
from .strides import in_steps, narrowed
from .value import Buffer, Host, concrete, is_scalar


def free(device: Any) -> bool:
    """Whether nothing watches or redirects calls on a device, although something, somewhere, keeps minnp busy."""
    return capture.get() is None and kept(device)


def kept(device: Any) -> bool:
    """Whether the policy leaves a device what is computed there."""
    now = policy.current()
    return now is policy.AUTO or (now.keeps(device) and not now.only)


def run_on_device(device: Any, row: Primitive, values: Any, params: dict) -> Any:
    """A row on values of which at least one is a buffer of this device: its kernel there, if it takes them.

    Raises BackendUnsupportedError, before anything is written, if it does not.
    """
    slots = device.slots
    slot = slots[row] if row in slots else slot_of(device, row)
    kernel = slot[0]
    if kernel is None:
        raise errors.BackendUnsupportedError(f"{device.name} has no verified kernel")
    out = kernel(*[v.data if type(v) is Buffer else device_data(v, device) for v in values], **params)
    slot[1] += 1
    if type(out) is tuple or type(out) is list:
        return tuple([None if o is None else Buffer(o, device, computed=True) for o in out])
    if row.view and len(values) == 1 and type(values[0]) is Buffer and shows(row, values[0], out, params):
        return Buffer(out, device, (values[0], row, params))
    return Buffer(out, device, computed=row.scalar is True)


def shows(row: Primitive, source: Buffer, out: Any, params: dict) -> bool:
    """Whether what a view row made of a buffer shows its memory, to NumPy, in which a number has none."""
    if is_scalar(source):
        return False
    linked = source.backend.is_view(row, source.data, out, params)
    # where NumPy steps backwards a device may hold a copy, of which another shape is no copy to it
    if linked is None or (linked and source.view is not None and row.name == "reshape"):
        return numpy_views(row, source, params)
    return linked


def numpy_views(row: Primitive, source: Buffer, params: dict) -> bool:
    """Whether NumPy's result of a view row would share memory with its argument, had NumPy made that too."""
    like = laid_out(source)
    with onp.errstate(all="ignore"):  # a row that sums does so with whatever the memory held
        return not like.size or onp.may_share_memory(row.numpy(like, **hosted(params)), like)  # nothing shows nothing


def laid_out(buffer: Buffer) -> onp.ndarray:
    """An array without meaningful elements, in the memory order in which NumPy would hold this buffer."""
    if buffer.view is None:
        order = buffer.backend.order(buffer.data)
        if order is None:
            return onp.empty(buffer.shape, buffer.dtype)
        dense = onp.empty([buffer.shape[i] for i in order], buffer.dtype).transpose(onp.argsort(order))
        steps = narrowed(buffer.shape, buffer.backend.strides(buffer.data))
        lies = [s * buffer.dtype.itemsize if n > 1 else d for n, s, d in zip(buffer.shape, steps or (), dense.strides)]
        return dense if steps is None or lies == [*dense.strides] else in_steps(dense, buffer.dtype, steps)
    source, row, params = buffer.view
    return row.numpy(laid_out(source), **hosted(params))


def slot_of(device: Any, row: Primitive) -> list:
    """What a device keeps for a row, made on first use; what a kernel offers is described in backends.Backend.kernel:
    [its verified kernel or None, how often it ran, the functions prepared so far, short, exact, basic, shows, into,
    ordered, whether its results are numbers where they have no axes]."""
    if device not in report.DEVICES:
        report.DEVICES.append(device)
    kernel = device.kernel(row) if isinstance(row, Primitive) else device.whole(row.name)
    scalar = getattr(kernel, "scalar", getattr(row, "scalar", True)) is True
    slot = [kernel, 0, *[getattr(kernel, fact, None) for fact in OFFERED], scalar]
    if hasattr(getattr(row, "numpy", None), "host"):  # of a call that falls back, which may be for a function made anew
        return slot
    return device.slots.setdefault(row, slot)


# What says no to a call in the fast path: a kernel, or a function of the device's library that it calls directly. A
# TypeError does where the call itself is refused; what a kernel raises once it runs is an error, and comes out.
REFUSALS = (errors.BackendUnsupportedError, RuntimeError, IndexError)
NO_REFUSALS = (RecursionError, errors.MeshError)  # a second call would hide what these say
OFFERED = ("prepared", "short", "exact", "basic", "shows", "into", "ordered")


def device_data(v: Any, device: Any) -> Any:
    """A host array as a device's own data; numbers, 0-d arrays among them, stay as they are."""
    if type(v) is not Host or not v.ndim:
        return v
    report.copied("copy to device", device.name, v.nbytes)
    return device.from_host(v)


def number(buffer: Buffer) -> Any:
    """The one element of a buffer as Python's number."""
    report.copied("copy to host", buffer.backend.name, buffer.dtype.itemsize)
    return buffer.backend.number(buffer.data)


def device_of_index(index: Any) -> Any:
    """The device where an index, or an array in it, traced ones too, lives; None where there is none."""
    for part in index if type(index) is tuple else (index,):
        if type(part := concrete(part)) is Buffer:
            return part.backend
    return None


def hosted(x: Any) -> Any:
    """Params for NumPy: buffers among them (index arrays) as host arrays, or numbers."""
    if type(x) is Buffer:
        return x.host()[()] if is_scalar(x) else x.host()
    if type(x) in (tuple, list):
        return type(x)([hosted(v) for v in x])
    return {k: hosted(v) for k, v in x.items()} if type(x) is dict else x


def move_value(out: Any, device: Any) -> Any:
    """NumPy's result brought to the device its arguments came from; a dtype that has not stays on the host."""
    if isinstance(out, (tuple, list)):
        return tuple([move_value(o, device) for o in out])
    if type(out) is not Host and not isinstance(out, onp.generic):  # masked arrays and matrices stay what they are
        return out
    try:
        return Buffer(device.from_host(onp.asarray(out)), device, computed=isinstance(out, onp.generic))
    except errors.BackendUnsupportedError:
        return out
