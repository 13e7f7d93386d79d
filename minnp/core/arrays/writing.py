"""Writing: the one way memory changes, and the operator that says so to traces.

Untraced, a write goes straight into the buffer, after live tapes took copies of what they saved of it. Traced, it is
`write_view`: the root's new value after part of a view of it was written.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
import weakref
from typing import Any

import numpy as onp

from ... import errors
from ..cpu import run as run_host
from ..cpu.memory import Lease
from ..cpu.threads import user_level
from ..rows import references as counting
from ..rows.dispatch import bind
from ..rows.on_device import device_of_index, hosted, run_on_device
from ..rows.primitive import TABLE, primitive
from ..rows.references import references
from ..rows.state import capture, state
from ..rows.strides import alike
from ..rows.value import (
    FIXED,
    OBJECTS,
    STAND_INS,
    Buffer,
    Host,
    Tracer,
    Value,
    base_of,
    concrete,
    example,
    holds_objects,
    is_scalar,
    owner,
)
from .array import (
    ARRAY_TYPES,
    Array,
    leave_to_subclasses,
    ndarray,
    read,
    replay,
    root_of,
    same_numbers,
    stack_nested,
    steps_of,
    unwrap,
    views_of,
)
from .devices import at_index, index_on_host
from .saved import note

SHARED = "a write to an argument that shares memory with another one"


def layout_of(a: Any) -> tuple[int, ...] | None:
    """The axis order in which a host array is C-contiguous; None for C order itself (and for device values)."""
    if type(a) is not Host or a.flags.c_contiguous:
        return None
    return tuple(sorted(range(a.ndim), key=lambda i: -abs(a.strides[i])))


def copy_in_layout(a: onp.ndarray, layout: tuple[int, ...] | None) -> onp.ndarray:
    """A dense copy whose memory order is `layout`, so that the paths of views taken of it are views again."""
    if layout is None:
        return a.copy(order="C")
    return a.transpose(layout).copy(order="C").transpose(onp.argsort(layout))


def copy_alike(a: onp.ndarray) -> onp.ndarray:
    copy = alike(a, a.dtype)
    copy[...] = a
    return copy


def _write_kernel(
    old: onp.ndarray, new: Any, steps: tuple = (), index: Any = ..., layout: Any = None, donate: bool = False
) -> onp.ndarray:
    given = old
    if not (donate or steps) and index is ... and type(old) is Host:
        old = alike(old, old.dtype)  # all of it is written
    elif not donate or type(old) is not Host:
        given = onp.asarray(old)
        old = copy_alike(given) if not steps or layout_of(given) == layout else copy_in_layout(given, layout)
    view = shown(old, steps)
    if steps and not onp.may_share_memory(view, old):
        # One of the steps is a view in the layout that was captured, and a copy in this one (a gradient's, say; a
        # batch has gaps where an example has none).
        old = copy_in_layout(onp.asarray(given), layout)
        view = shown(old, steps)
    view[index] = new
    return old


def shown(array: onp.ndarray, steps: tuple) -> onp.ndarray:
    """The view of an array after these steps."""
    for row, params in steps:
        array = row.numpy(array, **params)
    return array


def _write_vjp(
    i: int, g: Any, y: Any, old: Any, new: Any, steps: tuple = (), index: Any = ..., layout: Any = None
) -> Any:
    g = at_index(g, index)
    if i == 0:
        return WRITE_VIEW(g, 0, steps=steps, index=index, layout=layout)
    names = {row.name for row, _ in steps}
    bytes_ = "view" in names  # complex numbers as pairs of real ones, or the reverse
    at = replay(TABLE["conjugate"](g) if bytes_ else g, steps)
    if not same_numbers(at.dtype, g.dtype):
        raise errors.NotDifferentiableError(
            f"a gradient flowed into {new.dtype} numbers that were written into the bytes of a {g.dtype} array; "
            "write into the array itself"
        )
    part = TABLE["last_write"](at, index=index) if repeats(index) else TABLE["getitem"](at, index=index)
    if bytes_:
        return TABLE["conjugate"](part)
    # a cotangent pairs with z without a conjugate: with i v, which v became where it was written to z.imag, as -g.imag
    return -part if "imag" in names else part


def repeats(index: Any) -> bool:
    """Whether an index may name an element twice (the last write wins, and only it receives a gradient): one that
    holds integers may, unless they are seen to ascend. What a capture sees of them tells nothing: compiled code meets
    others, in arguments and in arrays made outside alike."""
    return holds_integers(index) and (capture.get() is not None or not ascends(index))


def holds_integers(index: Any) -> bool:
    """Whether an index has an array or a sequence of integers; a range is none, for it names nothing twice."""
    return any(map(_integers, index)) if type(index) is tuple else _integers(index)


def _integers(part: Any) -> bool:
    if isinstance(part, (list, tuple)):
        one = lambda p: isinstance(p, (int, onp.integer)) and not isinstance(p, bool)
        return any(one(p) or _integers(p) for p in part)
    if part is None or part is Ellipsis or isinstance(part, (slice, int, range, onp.integer, onp.bool_)):
        return False
    return (part.dtype if hasattr(part, "dtype") else onp.asarray(part).dtype).kind != "b"


def ascends(index: Any) -> bool:
    """Whether x[index] takes no element twice because one of its arrays only grows: one row for each example, say."""
    parts = index if isinstance(index, tuple) else (index,)
    length = 1
    for p in parts:
        if type(p) is Host and p.dtype.kind in "iu" and p.ndim == 1:
            length = max(length, p.size)
        elif type(p) is not int:
            return False
    return any(type(p) is Host and p.size == length and p[0] >= 0 and bool((p[1:] > p[:-1]).all()) for p in parts)


def _last_write(x: Any, index: Any) -> Any:
    """x[index], zero where a later element of the index names the same place."""
    at = onp.array(x[index])
    if at.ndim and repeats(index):
        place, order = onp.full(x.shape, -1), onp.arange(at.size).reshape(at.shape)
        place[index] = order
        at = onp.where(place[index] == order, at, at.dtype.type(0))
    return at


# The whole of in-place semantics for traces: the value of a root after `index` of one of its views was written.
# `donate`: the kernel may write into `old` itself (raw memory is NumPy's); traces drop it from what they record.
WRITE_VIEW = primitive(
    "write_view",
    _write_kernel,
    vjp=_write_vjp,
    jvp="linear",
    saves="",
    shape=lambda metas, params: metas[0],
    scalar=False,
    batch="write",
    samples=lambda: [
        ((onp.arange(6.0).reshape(2, 3), onp.array([7.0, 8.0, 9.0])), {"index": 1}),
        ((onp.arange(6.0).reshape(2, 3), onp.array([7.0, 8.0])), {"index": (slice(None), 0)}),
        ((onp.arange(4.0), onp.array([1.5, 2.5, 3.5])), {"index": ([0, 2, 0],)}),
    ],
)
primitive(
    "last_write",
    _last_write,
    # What the last write keeps is exactly what an assignment keeps.
    vjp=[lambda g, y, x, index: WRITE_VIEW(onp.zeros(x.shape, x.dtype), g, index=index)],
    jvp="linear",
    saves="",
    dynamic="shape",
    samples=lambda: [((onp.arange(4.0),), {"index": ([0, 2, 0],)})],
)


def release(array: onp.ndarray) -> None:
    """Before memory is written in place: let every live tape that saved it take a private copy."""
    memory = owner(array)
    for tape in list(state.tapes.values()):
        tape.release(memory)


def traced(index: Any) -> bool:
    """Whether an index holds a tracer."""
    return type(index) is Tracer or (type(index) in (tuple, list) and any(map(traced, index)))


def indexed(index: Any) -> Any:
    """An index as rows take it: lists that hold values are arrays, and so are a capture's numbers that change; traces
    that batch one of these are notified, and no gradient is followed through one."""
    return tuple(map(_part, index)) if type(index) is tuple else _part(index)


def _part(index: Any) -> Any:
    if type(index) in (list, tuple) and holds_value(index):
        index = read(stack_nested(index))
    if type(index) in STAND_INS:
        return index.index()
    x, moves = index, False
    while type(x) is Tracer:
        if x.trace.batched:
            x.trace.index()
        else:
            moves |= x.trace.differentiable and x.trace.alive
        x = x.value
    return bind(TABLE["stop_gradient"], (index,), {}) if moves else index


def lent(value: Any) -> bool:
    """Whether the memory under a traced value belongs to the caller of a transformation."""
    memory = owner(concrete(value))
    while type(value) is Tracer:
        if any(isinstance(base := concrete(v), Host) and owner(base) is memory for v in value.trace.lent):
            return True
        value = value.value
    return False


def write(h: ndarray, index: Any, value: Any, fresh: bool = False) -> None:
    """h[index] = value: every write goes through here. `fresh`: nobody else has the array `value`."""
    if type(h) is Host:
        raise errors.TracedValueError(
            f"a traced or device value was about to be written to a plain numpy.ndarray ({h.dtype}{list(h.shape)}), "
            "where its gradient would be lost: make that array with minnp.numpy"
        )
    leave_to_subclasses((index, value))
    sources: list = []
    given, said = value, (index, value)
    index, value = indexed(unwrap(index, sources)), unwrap(value, sources)
    current = read(h)
    if type(current) is Buffer and not isinstance(value, Tracer) and capture.get() is None:
        dtype = current.dtype
        del current
        if type(value) in (list, tuple):  # numbers become the array's, or NumPy says why not
            value = read(stack_nested(value)) if holds_value(value) else onp.array(value, dtype)
        return write_on_device(h, index, value)
    watching = capture.get() if state.busy else None
    if type(value) in (list, tuple) and any(isinstance(read(s), (Tracer, Buffer)) for s in sources):
        names = current.dtype.names
        if names and type(value) is tuple and not is_scalar(current) and not _names_fields(index):
            if len(names) != len(value):
                raise ValueError(
                    f"could not assign tuple of length {len(value)} to structure with {len(names)} fields."
                )
            for name, field in zip(names, said[1]):
                write(h[name], index, field)
            return
        if names and watching is not None and not watching.symbolic:
            watching.ends("records are written that hold traced numbers")
            return write(h, *said, fresh)
        value = read(stack_nested(value))
    if type(concrete(current)) is Host and device_of_index(index) is not None:
        index = index_on_host(index)
    if type(current) is Host and watching is None:  # memory that views show stays where it is
        value = value.host() if type(value) is Buffer else value
    if type(current) is Host and not isinstance(value, (Tracer, Buffer)) and watching is None and not traced(index):
        if not current.flags.writeable:
            raise ValueError("assignment destination is read-only")
        if state.tapes:
            release(current)
        # an array of objects keeps the arrays it is given
        run_host(operator.setitem, (current, index, given if current.dtype.char == "O" else value), {})
        return
    if isinstance(current, onp.generic):
        current[index] = value  # NumPy's exception, unless it is a record
        return
    note((index, given))
    root = root_of(h)
    steps, old = steps_of(h), read(root)
    base = concrete(old)
    if isinstance(base, onp.void):  # NumPy's record shows the array it was taken from
        raise errors.TracedValueError(
            "one record of a traced array is written; name the field first: x['name'][i] = v, not x[i]['name'] = v"
        )
    if any(row.name == "strided_view" for row, _ in steps) and (last := _written_last(root.shape, steps, index)):
        where, part, shape = last
        if getattr(value, "ndim", 0) or isinstance(value, (list, tuple)):
            value = value if isinstance(value, (Value, Host)) else onp.asarray(value)
            value = bind(TABLE["broadcast_to"], (value,), {"shape": shape})
            value = bind(TABLE["reshape"], (value,), {"shape": (-1,)})
            value = bind(TABLE["getitem"], (value,), {"index": part})
        return write(root, where, value)
    if watching is not None and type(old) in (Host, Buffer):
        watching.ends(f"captured code writes to an array made outside it ({old.dtype}{list(old.shape)})")
        return write(h, *said, fresh)
    if watching is not None and old.dtype.char == "O" and (holds_objects(base) or not _is_fixed(given)):
        watching.ends(OBJECTS)
        return write(h, *said, fresh)
    mine = watching is not None and not watching.symbolic and type(old) is Tracer and old.trace is watching
    if mine and type(base) is Host and old.node.op == "placeholder" and watching.shares(base):
        ended = watching.ended
        watching.ends(SHARED)
        watching.ended = ended  # other arguments may not
        return write(h, *said, fresh)
    if type(value) is Tracer and may_be_refused(value, h.dtype):
        if watching is not None and not watching.symbolic:
            watching.ends(f"a number of {value.dtype} is written into an array of {h.dtype}, which refuses some")
            return write(h, *said, fresh)
        refuse(concrete(value), h.dtype)
    lies, own = example(old), example(current)
    broadcast = type(lies) is Buffer and not all(row.writes for row, _ in steps)
    if broadcast or (type(lies) is Host and not (lies.flags.writeable and own.flags.writeable)):
        if watching is not None:
            watching.looked("flags")
        raise ValueError("assignment destination is read-only")
    donate = type(base) is Host and not lent(old)
    if donate:
        release(base)
        if type(value) is Tracer and overlapping_memory(base, concrete(value)):
            value = bind(TABLE["copy"], (value,), {})
    unseen = type(h) is not ndarray and h._root is None and h._host is None  # no view of NumPy's shows its memory
    if watching is None and index is ... and steps and basic(steps[-1]):  # x[i] += y writes to x[i] itself
        steps, index = steps[:-1], steps[-1][1]["index"]
    if fresh and unseen and index is ... and lies_as(example(value), lies):
        result = value  # all of it is written: the array need not be copied
    else:
        params = {"steps": steps, "index": index, "layout": layout_of(lies) if steps else None, "donate": donate}
        result = bind(WRITE_VIEW, (old, value), params)
    _tell_batches(result, root, old)
    if root._host is not None:  # views of a host array must look at their root until the trace ends
        root._seen = root._host
    if type(root) is ndarray or root._host is not None:
        _watch(result, root)
    root._host, root._value = None, result


def _written_last(shape: tuple, steps: tuple, index: Any) -> tuple | None:
    """(the elements of an array that a write to a view of it changes, which of the numbers written each has in the end,
    the shape of what is written), where the view shows some elements more than once; else None."""
    if traced(index) or any(row.name == "view" for row, _ in steps):  # of which the last shows parts of elements
        return None
    numbers = onp.full(shape, -1)
    view, index = shown(numbers, steps), hosted(index)
    like = view[index]
    view[index] = onp.arange(like.size).reshape(like.shape)
    written = numbers >= 0
    where = onp.nonzero(written) if shape else ()
    return (where, numbers[where], like.shape) if onp.count_nonzero(written) < like.size else None


def _is_fixed(element: Any) -> bool:
    return is_scalar(read(element)) if type(element) in ARRAY_TYPES else isinstance(element, (*STAND_INS, *FIXED))


def _names_fields(index: Any) -> bool:
    return type(index) is str or (type(index) is list and any(type(i) is str for i in index))


def may_be_refused(value: Tracer, dtype: onp.dtype) -> bool:
    """Whether NumPy raises for some numbers of a scalar's dtype as an element of integers: NaN, or out of range."""
    if dtype.kind not in "iu" or not is_scalar(value):
        return False
    return value.dtype.kind == "f" or (value.dtype.kind in "iu" and not onp.can_cast(value.dtype, dtype))


def refuse(numbers: Any, dtype: onp.dtype) -> None:
    """Raise what NumPy raises for the first of these numbers, one of each example, that is no element of a dtype."""
    if isinstance(numbers, (Host, onp.generic)):
        within, element = onp.iinfo(dtype), onp.empty(1, dtype)
        for number in onp.atleast_1d(numbers[~((numbers > within.min) & (numbers < within.max))]):
            element[0] = number  # which NumPy may take


def basic(step: tuple) -> bool:
    """Whether a step from an array to a view of it is an index of numbers and slices."""
    row, params = step
    index = params.get("index", "")
    parts = index if type(index) is tuple else (index,)
    return row is TABLE["getitem"] and all(type(p) in (int, slice, type(None), type(...)) for p in parts)


# ------------------------------------------------------------------ memory that others refer to as well
def shared_root(h: Any) -> ndarray | None:
    """The root of a host array, if NumPy or another library refers to its memory: by a view, a memoryview, or the array
    that it was made from. Called before a write, while nothing of ours refers to `h._host`; else None."""
    root = root_of(h) if type(h) is ndarray and counting.COUNTED else None
    if type(root) is not ndarray or root._host is None:
        return None
    if any(getattr(tape, "batched", False) for tape in state.tapes.values()):  # their views hold it as well
        return None
    if state.tapes:
        release(root._host)
    if references(getattr, root, "_array") > _known(root, root._array):
        return root
    array = root._array
    while (memory := base_of(array)) is not None and type(memory) is not Lease:  # and the name here
        if references(base_of, array) > _known(root, memory) + 1 + (array is not root._array):
            return root
        if not isinstance(memory, Host):
            of_buffer = type(memory) is memoryview and references(getattr, memory, "obj") > 1
            return root if of_buffer else None
        array = memory
    return None


def _known(root: ndarray, memory: Any) -> int:
    """The references to an array, or to what it shows the memory of, from an array of ours and its views."""
    handles = (root, *views_of(root))
    return (getattr(root, "_seen", None) is memory) + sum(
        (h._array is memory) + (base_of(h._array) is memory) + (base_of(h) is memory) for h in handles
    )


def warn_of_sharing(root: ndarray) -> None:
    """Warn if an array whose memory others refer to was just written with values that have derivatives."""
    value = root._value if root._host is None else None
    while type(value) is Tracer and not (value.trace.differentiable and value.dtype.kind in "fc"):
        value = value.value
    if type(value) is Tracer:
        warnings.warn(
            f"a {root.dtype}{list(root.shape)} array was written with traced values while NumPy, or another library, "
            "holds its memory (numpy.asarray(x), memoryview(x), or the array that np.asarray was given): there the "
            "numbers have no gradient. Take views with minnp and inside the function, or write into x.copy()",
            errors.LostGradientWarning,
            stacklevel=user_level(),
        )


def holds_value(x: Any) -> bool:
    """Whether a list, or one in it, has an element that is traced or on a device."""
    return any(isinstance(e, (Tracer, Buffer)) or (type(e) in (list, tuple) and holds_value(e)) for e in x)


def write_on_device(h: ndarray, index: Any, value: Any) -> None:
    """h[index] = value for an array on a device: into the buffer itself where nothing else shows its memory or holds it
    (another array, a tape, a graph, NumPy), else into a copy, which the root holds from then on."""
    root = root_of(h)
    params = {"steps": steps_of(h), "index": index, "layout": None}
    read(root)
    if not all(row.writes for row, _ in params["steps"]):
        raise ValueError("assignment destination is read-only")
    if h is not root:
        h._value = h._seen = None  # read anew when next asked for: its own tensor shows the root's memory
    device = root._value.backend
    if h is root and index is ... and type(value) is Buffer and value.view is None and _alike(value, root._value):
        root._value = Buffer(value.data, device)  # all of it is replaced: values are immutable, so it need not move
        return
    try:
        if references(getattr, root, "_value") == 1 and _alone(root._value):
            with contextlib.suppress(errors.BackendUnsupportedError):  # raised before anything is written
                root._value = run_on_device(device, WRITE_VIEW, (root._value, value), {**params, "donate": True})
                return
        lies = device.context_of(root._value.data) if device.spans else None
        result = bind(WRITE_VIEW, (root._value, value), params)
        if lies is not None and type(result) is Buffer:  # a write leaves every process its part
            result = Buffer(lies.device.adopted(result.data), lies.device)
        root._value = result
    except (TypeError, ValueError, OverflowError):
        like = onp.zeros(value.shape, value.dtype) if type(value) is Buffer else value
        onp.zeros(h.shape, h.dtype)[hosted(index)] = like  # NumPy looks at index and value in an order of its own
        raise


def is_alone(h: Any) -> bool:
    """Whether nothing but this array holds or shows its memory on a device."""
    own = h._host is None and h._root is None and type(h._value) is Buffer
    return own and references(getattr, h, "_value") == 1 and _alone(h._value)


def _alone(x: Buffer) -> bool:
    """Whether nothing but this buffer, of which no copy for the host is kept, holds or shows its memory."""
    own = x.view is None and not hasattr(x, "_host") and references(getattr, x, "data") == 1
    return own and x.backend.holders(x.data) == 1


def _alike(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers have elements of one dtype in one place, and processes one part each of both."""
    lies = lambda x: x.backend.context_of(x.data) if x.backend.spans else None
    return (a.backend, a.shape, a.dtype, lies(a)) == (b.backend, b.shape, b.dtype, lies(b))


def lies_as(a: Any, b: Any) -> bool:
    """Whether two host arrays are alike, memory layout included."""
    return type(a) is type(b) is Host and (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)


def overlapping_memory(a: Any, b: Any) -> bool:
    return isinstance(b, Host) and onp.may_share_memory(a, b)


def _tell_batches(result: Any, root: ndarray, old: Any) -> None:
    """Let each vmap that batched an array by a write know what the array was, for it may be one from outside."""
    before = set()
    while type(old) is Tracer:
        before.add(id(old.trace))
        old = old.value
    while type(result) is Tracer:
        if result.trace.batched and id(result.trace) not in before:
            result.trace.written.append(
                (weakref.ref(root), root._host, None if root._host is not None else root._value)
            )
        result = result.value


def _watch(value: Any, root: Array) -> None:
    while type(value) is Tracer:
        value.trace.keep_busy(root)
        value = value.value
