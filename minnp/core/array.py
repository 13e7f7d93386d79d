"""ndarray: the mutable handle users hold, and the choke points for reading, writing and wrapping.

A handle holds an immutable value. `_host is not None` is the whole test of the fast path; see docs/architecture.md.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as onp

from .. import errors
from . import primitive as _primitive
from .dispatch import bind
from .primitive import TABLE, Primitive, primitive
from .state import capture, state
from .value import Buffer, Host, Tracer, concrete, owner

new = object.__new__


class Subclass(onp.ndarray):
    """What a user's subclass of our ndarray derives from: NumPy's array, whose hooks (__array_finalize__, ...) it uses.

    `_host` and `_root` are a handle's: they send it to the general path, which leaves it to NumPy.
    """

    _host = _root = None

    def view(self, *args: Any, **kwargs: Any) -> Any:
        return wrap(super().view(*[Host if a is ndarray else a for a in args], **kwargs))


class _ArrayType(type):
    def __new__(meta, name: str, bases: tuple, namespace: dict, **options: Any) -> type:
        if not any(type(base) is meta for base in bases):
            return super().__new__(meta, name, bases, namespace, **options)
        bases = tuple(Subclass if base is ndarray else base for base in bases)
        return types.new_class(name, bases, options, lambda body: body.update(namespace))

    def __instancecheck__(cls, x: Any) -> bool:
        # Libraries hand out real NumPy arrays: to a drop-in they are arrays too.
        return type.__instancecheck__(cls, x) or (cls is ndarray and isinstance(x, Host))

    def __subclasscheck__(cls, c: Any) -> bool:
        return type.__subclasscheck__(cls, c) or (cls is ndarray and issubclass(c, Host))


class ndarray(metaclass=_ArrayType):
    """An array with NumPy's behaviour; `ndarray(shape, dtype=float, buffer=None, offset=0, strides=None, order=None)`.

    Its operators and methods are installed from tables in minnp.core.public.
    """

    __slots__ = ("__weakref__", "_host", "_path", "_root", "_seen", "_value")
    __array_priority__ = 100.0

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        sources: list = []
        args, kwargs = unwrap(args, sources), unwrap(kwargs, sources)
        return wrap(onp.ndarray.__new__(Host if cls is ndarray else cls, *args, **kwargs), sources)


ndarray.__module__ = "minnp.numpy"


def handle(value: Any) -> ndarray:
    """A new root handle on a value."""
    h = new(ndarray)
    h._root = None
    if type(value) is Host:
        h._host = value
    elif isinstance(value, (Tracer, Buffer)):
        h._host, h._value = None, value
    else:
        h._host = onp.asarray(value)
    return h


# ------------------------------------------------------------------ reading
def read(h: ndarray) -> Any:
    """The value a handle holds now; a view of a root that was written under a trace is read anew."""
    host, root = h._host, h._root
    if host is not None:
        if root is None or not state.busy or root._host is not None:
            return host
        base = read(root)
        return _replay(base, path_of(h)) if isinstance(base, (Tracer, Buffer)) else host
    value = h._value
    if root is not None:
        base = read(root)
        if h._seen is not base:
            value, h._seen = _replay(base, h._path), base
    while type(value) is Tracer and not value.trace.alive:
        value = value.value
    if isinstance(value, (Tracer, Buffer)):
        h._value = value
        return value
    h._host, h._value = onp.asarray(value), None
    return h._host


def _replay(value: Any, path: tuple) -> Any:
    for row, params in path:
        value = bind(row, (value,), params)
    return value


def path_of(h: ndarray) -> tuple:
    """The (row, params) steps that lead from a view's root to the view; () for a root."""
    if h._root is None:
        return ()
    return _window(concrete(read(h._root)), h._host) if h._host is not None else h._path


def _address(a: onp.ndarray) -> int:
    return a.__array_interface__["data"][0]


def _window(root: onp.ndarray, view: onp.ndarray) -> tuple:
    """The steps from a root's array to a view of its memory, as a strided window over the root in C order."""
    order = sorted(range(root.ndim), key=lambda i: -abs(root.strides[i]) if root.shape[i] != 1 else 0)
    flat = root.transpose(order)
    if view.dtype != root.dtype or not flat.flags.c_contiguous:
        raise errors.TracedValueError(
            f"a traced value was written into {root.dtype}{list(root.shape)}, of which this array is a view "
            f"({view.dtype}{list(view.shape)}) that cannot be expressed on it; make the view inside the traced function"
        )
    size = root.itemsize
    window = {
        "offset": (_address(view) - _address(root)) // size,
        "shape": view.shape,
        "strides": tuple(s // size for s in view.strides),
    }
    step = (TABLE["strided_view"], window)
    return (
        (step,)
        if flat is root or order == list(range(root.ndim))
        else ((TABLE["transpose"], {"axes": tuple(order)}), step)
    )


# ------------------------------------------------------------------ wrapping
def wrap(out: Any, sources: Any = ()) -> Any:
    """The user's form of a result: handles for arrays, in whatever container; views linked to their source's root."""
    t = type(out)
    if t is Host:
        base = out.base
        if base is not None:
            for s in sources:
                a = s._host
                if a is not None:
                    if out is a:
                        return s
                    if base is a or base is a.base or (type(base) is not Host and owner(out) is owner(a)):
                        h = new(ndarray)
                        h._host, h._root = out, s if s._root is None else s._root
                        return h
        else:
            for s in sources:
                if out is s._host:
                    return s
        h = new(ndarray)
        h._host, h._root = out, None
        return h
    if t is Tracer or t is Buffer:
        return _wrap_value(out, sources)
    if t is tuple or t is list:
        return t([wrap(o, sources) for o in out])
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return t(*[wrap(o, sources) for o in out])
    return out


def _wrap_value(out: Any, sources: Any) -> ndarray:
    h = new(ndarray)
    h._host, h._root, h._value = None, None, out
    if type(out) is Tracer and out.view is not None:
        steps, at = [], out
        while type(at) is Tracer and at.view is not None:
            source, row, params = at.view
            steps.append((row, params))
            at = source
            for s in sources:
                root = s if s._root is None else s._root
                if root._host is None and root._value is at:
                    h._root, h._path, h._seen = root, tuple(reversed(steps)), at
                    return h
    return h


ATOMS = {int, float, complex, bool, str, type(None), slice, type(...)}


def unwrap(x: Any, sources: list) -> Any:
    """The values in an argument, containers included; every handle met is appended to `sources`."""
    t = type(x)
    if t is ndarray:
        sources.append(x)
        return read(x)
    if t is list or t is tuple:
        for e in x:
            if type(e) not in ATOMS:
                return t([unwrap(e, sources) for e in x])
        return x
    if t is dict:
        return {k: unwrap(e, sources) for k, e in x.items()}
    return Host if x is ndarray else x


def _call(row: Primitive, args: tuple, params: dict) -> Any:
    """A row called on handles returns handles; on values, values."""
    for a in args:
        if type(a) is ndarray:
            sources = [a for a in args if type(a) is ndarray]
            return wrap(bind(row, [read(a) if type(a) is ndarray else a for a in args], params), sources)
    return bind(row, args, params)


_primitive.call = _call


def on_value(row: Primitive, a: ndarray) -> Any:
    """A row of one traced or placed handle: the short path of operators and ufuncs."""
    x = a._value
    if a._root is not None or type(x) is not Tracer or not x.trace.alive:
        x = read(a)
    if type(x) is Tracer and row.elementwise:
        out = x.trace.unary(row, x)
    else:
        out = bind(row, (x,), NO_PARAMS)
    if type(out) is Tracer:
        h = new(ndarray)
        h._host, h._root, h._value = None, None, out
        return h
    return wrap(out)


def on_values(row: Primitive, a: Any, b: Any) -> Any:
    """A row of two operands (handles, host arrays or numbers), one of them traced or placed: the short path."""
    x, y = a, b
    if type(a) is ndarray:
        x = a._host
        if x is None:
            x = a._value
            if a._root is not None or type(x) is not Tracer or not x.trace.alive:
                x = read(a)
    if type(b) is ndarray:
        y = b._host
        if y is None:
            y = b._value
            if b._root is not None or type(y) is not Tracer or not y.trace.alive:
                y = read(b)
    if row.elementwise and type(x) is Tracer and (type(y) is not Tracer or y.trace is x.trace):
        out = x.trace.binary(row, x, y)
    elif row.elementwise and type(y) is Tracer and type(x) is not Tracer:
        out = y.trace.binary(row, x, y)
    else:
        out = bind(row, (x, y), NO_PARAMS)
    if type(out) is Tracer:
        h = new(ndarray)
        h._host, h._root, h._value = None, None, out
        return h
    return wrap(out)


NO_PARAMS: dict = {}


# ------------------------------------------------------------------ writing
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


def _write_kernel(
    old: onp.ndarray, new: Any, path: tuple = (), index: Any = ..., layout: Any = None, donate: bool = False
) -> onp.ndarray:
    out = view = old if donate else copy_in_layout(onp.asarray(old), layout)
    for row, params in path:
        view = row.numpy(view, **params)
    view[index] = new
    return out


def _write_vjp(
    i: int, g: Any, y: Any, old: Any, new: Any, path: tuple = (), index: Any = ..., layout: Any = None
) -> Any:
    if i == 0:
        return WRITE_VIEW(g, 0, path=path, index=index, layout=layout)
    at = _replay(g, path)
    return TABLE["last_write"](at, index=index) if repeats(index) else TABLE["getitem"](at, index=index)


def repeats(index: Any) -> bool:
    """Whether an index may name an element twice (the last write wins, and only it receives a gradient)."""
    parts = index if type(index) is tuple else (index,)
    return any(isinstance(p, (Host, list)) and onp.asarray(p).dtype != bool for p in parts)


def _last_write(x: Any, index: Any) -> Any:
    """x[index], zero where a later element of the index names the same place."""
    at = onp.array(x[index])
    if at.ndim:
        place, order = onp.full(x.shape, -1), onp.arange(at.size).reshape(at.shape)
        place[index] = order
        at = at * (place[index] == order)
    return at


# The whole of in-place semantics for traces: a root's new value after `index` of the view at `path` was written.
# `donate`: the kernel may write into `old` itself (raw memory is NumPy's); traces drop it from what they record.
WRITE_VIEW = primitive(
    "write_view",
    _write_kernel,
    vjp=_write_vjp,
    jvp="linear",
    saves="",
    shape=lambda metas, params: metas[0],
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
    samples=lambda: [((onp.arange(4.0),), {"index": ([0, 2, 0],)})],
)


def release(array: onp.ndarray) -> None:
    """Before memory is written in place: let every live tape that saved it take a private copy."""
    memory = owner(array)
    for tape in list(state.tapes.values()):
        tape.release(memory)


def lent(value: Any) -> bool:
    """Whether the memory under a traced value belongs to the caller of a transformation."""
    memory = owner(concrete(value))
    while type(value) is Tracer:
        if memory is not None and id(memory) in value.trace.lent:
            return True
        value = value.value
    return False


def write(h: ndarray, index: Any, value: Any) -> None:
    """h[index] = value: every write goes through here."""
    sources: list = []
    index, value = unwrap(index, sources), unwrap(value, sources)
    current = read(h)
    if type(value) in (list, tuple) and any(type(read(s)) is not Host for s in sources):
        value = read(stack_nested(value))
    watching = capture.get() if state.busy else None
    if type(current) is Host and not isinstance(value, (Tracer, Buffer)) and watching is None:
        if not current.flags.writeable:
            raise ValueError("assignment destination is read-only")
        if state.tapes:
            release(current)
        current[index] = value
        return
    root = h if h._root is None else h._root
    path, old = path_of(h), read(root)
    base = concrete(old)
    if watching is not None and type(old) is Host:
        raise errors.CaptureError(
            f"captured code writes to an array made outside it ({old.dtype}{list(old.shape)}); "
            "pass the array in and return it, or make it inside the function"
        )
    if type(base) is Host and not base.flags.writeable and not lent(old):
        raise ValueError("assignment destination is read-only")
    donate = type(base) is Host and not lent(old)
    if donate:
        release(base)
        if type(value) is Tracer and overlapping_memory(base, concrete(value)):
            value = bind(TABLE["copy"], (value,), {})
    params = {"path": path, "index": index, "layout": layout_of(base) if path else None, "donate": donate}
    result = bind(WRITE_VIEW, (old, value), params)
    if root._host is not None:  # views of a host array must look at their root until the trace ends
        _watch(result)
    root._host, root._value = None, result


def overlapping_memory(a: Any, b: Any) -> bool:
    return isinstance(b, Host) and onp.may_share_memory(a, b)


def _watch(value: Any) -> None:
    while type(value) is Tracer:
        value.trace.keep_busy()
        value = value.value


def stack_nested(x: Any) -> Any:
    """A traced array from nested lists that hold traced values, as np.array would make it."""
    if type(x) in (list, tuple):
        return TABLE["stack"](*[handle(v) if not isinstance(v, ndarray) else v for v in map(stack_nested, x)], axis=0)
    return x if isinstance(x, ndarray) else handle(x)


def concretize(value: Any, kind: type) -> Any:
    """What Python's bool(), int(), float() see of a value: under reverse mode the number itself (no gradient flows
    through a Python number), under capture the recorded number, guarded."""
    while type(value) is Tracer:
        value = value.trace.concretize(value, kind)
    return value.host() if type(value) is Buffer else value
