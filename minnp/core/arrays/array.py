"""ndarray and VirtualArray, the mutable arrays that users hold, and how values are read from them and wrapped.

Writing has its own: writing.py.

An array holds an immutable value. `_host is not None` is the whole test of the fast path; see docs/architecture.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import operator
import sys
import weakref
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as onp

from ... import errors
from ..compiled import fastpath
from ..rows import primitive as _primitive
from ..rows.dispatch import bind
from ..rows.primitive import TABLE, Primitive
from ..rows.pytree import CONTAINERS, LEAVES, named, replaced, tree_flatten
from ..rows.state import capture, state
from ..rows.value import STAND_INS, Buffer, Host, Tracer, base_of, lower, owner
from . import guard
from .hooks import translate_hooks, unread
from .saved import expose

new = object.__new__


class _ArrayType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        if type(x) is VirtualArray:  # what NumPy has a scalar for is no array
            return cls is ndarray and x.__class__ is VirtualArray
        # Libraries hand out real NumPy arrays: to a drop-in they are arrays too.
        return type.__instancecheck__(cls, x) or (cls is ndarray and isinstance(x, Host))

    def __subclasscheck__(cls, c: Any) -> bool:
        return type.__subclasscheck__(cls, c) or (cls is ndarray and issubclass(c, (Host, VirtualArray)))


def _memory(h: Array, flags: int) -> onp.ndarray:
    """The NumPy array whose buffer an array exports: one that stays when the array comes to show other memory."""
    return memory(h, "the buffer protocol")


def memory(h: Array, way: str) -> onp.ndarray:
    """The host array whose memory is handed out."""
    while type(value := read(h)) is Tracer:
        value.trace.hands_out(value, way)  # raises, or the trace is over
    return value.host() if type(value) is Buffer else value


# ------------------------------------------------------------------ the buffer protocol
# A class can export a buffer since PEP 688 (Python 3.12). Before, only a type made in C can: PyType_FromSpec, reached
# through ctypes, makes one whose only slot passes the request on to the NumPy array underneath. No exception can leave
# that slot, so where NumPy refuses, Python 3.11 reports a SystemError; the compiled part reports NumPy's own error.
_BF_GETBUFFER = 1  # Py_bf_getbuffer
_DEFAULT, _BASETYPE = 1 << 18, 1 << 10  # Py_TPFLAGS_DEFAULT (its version tag bit), Py_TPFLAGS_BASETYPE


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_GET_BUFFER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_ALIVE: list = []  # what the C side points to


def exporter(memory: Callable[[Any, int], Any]) -> type:
    """A base class whose instances export the buffer of `memory(instance, what is asked for)`."""
    if sys.version_info >= (3, 12):
        give = lambda x, flags: memory(x, flags).__buffer__(flags)
        return type("Exporter", (), {"__slots__": (), "__buffer__": give})
    get_buffer = _GET_BUFFER(("PyObject_GetBuffer", ctypes.pythonapi))

    def export(x: Any, view: int, flags: int) -> int:
        status = -1
        with contextlib.suppress(BaseException):  # an exception ends here: C code called us
            status = get_buffer(memory(x, flags), view, flags)
        if status < 0:  # as the protocol has it: view->obj is NULL, for there is nothing to release
            ctypes.c_void_p.from_address(view + ctypes.sizeof(ctypes.c_void_p)).value = None
        return status

    function = _GET_BUFFER(export)
    slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, ctypes.cast(function, ctypes.c_void_p)), _Slot(0, None))
    spec = _Spec(b"minnp.core.arrays.array.Exporter", 0, 0, _DEFAULT | _BASETYPE, slots)
    _ALIVE.extend((function, slots, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))
    return make(spec)


_Exporter = exporter(_memory)


class Array:
    """What every array of ours has: operators and methods, installed from tables in minnp.core.api.functions.

    An array holds an immutable value. `_host is not None` is the whole test of the fast path.

    _host    NumPy's own array, where the value is one, else None
    _value   the tracer or buffer elsewhere; NumPy's scalar, of a trace that had one and is over
    _root    the array of whose memory this one is a view; None for one that owns its memory
    _steps    of a view: the steps, (row, params), from what the root holds; where that is on the host, it is found out
    _seen    of a view: what the root held when `_value` was computed
    """

    __slots__ = ()
    __array_priority__ = 100.0


class _BaseClass:
    """The class of which a masked array of ours is one; a class that derives from MaskedArray too sets its own."""

    def __get__(self, x: Any, owner: Any = None) -> type:
        return onp.ndarray if x is None or type(x) is ndarray else type(x)


class ndarray(Array, _Exporter, onp.ndarray, metaclass=_ArrayType):
    """An array with NumPy's behaviour; `ndarray(shape, dtype=float, buffer=None, offset=0, strides=None, order=None)`.

    It is a numpy.ndarray on the memory of `_host` and, as long as a trace follows it, a guard (guard.py).
    An instance of a user's subclass has no `_host`: NumPy does with it what it does with subclasses of its own.
    """

    __slots__ = ("_array", "_root", "_seen", "_steps", "_value", "_views")
    _baseclass = _BaseClass()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # by its own NumPy knows a class that has none
        for name in ("__array_ufunc__", "__array_function__", "__array_priority__"):
            if getattr(cls, name) is getattr(ndarray, name):
                setattr(cls, name, getattr(onp.ndarray, name))
        translate_hooks(cls)

    def __getattr__(self, name: str) -> Any:
        if name in ("_array", "_root"):
            take_over(self)
            return getattr(self, name)
        if name == "_value" and type(self) is not ndarray:
            return self
        return object.__getattribute__(self, name)  # the error

    @property
    def _host(self) -> onp.ndarray | None:
        return self._array

    @_host.setter
    def _host(self, a: onp.ndarray | None) -> None:
        before, self._array = self._array, a
        if a is None and before is not None:
            guard.hide(self, before)
            for view in views_of(self):
                guard.hide(view, view._array)
        elif a is not before:
            guard.show(self, a)
            if before is None:
                for view in views_of(self):
                    guard.show(view, view._array)


class VirtualArray(Array, _Exporter):
    """An array without memory of NumPy's: on a device, or a value that a trace follows.

    Where NumPy has a scalar, isinstance finds that scalar's class, too: np.float64 is a float."""

    __slots__ = ("__weakref__", "_host", "_root", "_seen", "_steps", "_value")

    def _class(self) -> type:
        at = self._value
        while type(at) is Tracer:  # as value.example, without its call: every isinstance comes here
            at = at.trace.example(at) if at.trace.batched else at.value
        return type(at) if isinstance(at, onp.generic) else VirtualArray

    __class__ = property(_class)  # type: ignore[assignment]

    def __conform__(self, protocol: Any) -> Any:
        """What sqlite3 stores of a float64: the number, of which it would take the bytes."""
        return float(self) if isinstance(self, float) else None  # type: ignore[unreachable]


ndarray.__module__ = VirtualArray.__module__ = "minnp.numpy"
ARRAY_TYPES = frozenset({ndarray, VirtualArray})
ARRAYS = (Array, Host)  # of ours or NumPy's; of ndarray, no traced number is an instance
TRACEABLE = (*ARRAY_TYPES, Host, onp.memmap)  # the classes whose arrays a tracer may stand for
LEAVES.update(ARRAY_TYPES)


def take_over(h: ndarray) -> None:
    """Give an array of ours that NumPy's C code made, a copy or a view of another one, what the others have. At its
    first use, for NumPy sets some of its fields after it has made it."""
    if type(h) is not ndarray:
        h._array = h._root = None
        return
    base = base_of(h)
    a, h._root = guard.taken_over(h), None
    h._array = a
    if type(base) is ndarray and not guard.guards(a):  # of a guard it keeps the guard: nobody knows which part it shows
        root = h._root = root_of(base)
        link(h, root)
        if root._host is None:
            guard.hide(h, a)


if fastpath is not None:
    fastpath.bind_arrays()


def show_again(h: Array) -> None:
    """After NumPy's array under a host array got another shape, dtype, flags or memory: the host array shows it."""
    if type(h) is ndarray and h._host is not None:
        guard.show(h, h._array)


# ------------------------------------------------------------------ making
def _on_host(a: onp.ndarray, root: Any = None) -> ndarray:
    """An array of ours on NumPy's: a view of the array `root`, or one that owns its memory."""
    h = Host.view(a, ndarray)
    h._array, h._root = a, root
    if type(root) is ndarray:
        link(h, root)
    return h


def _link(h: ndarray, root: ndarray) -> None:
    """Note a view among those of its root."""
    views = [v for v in getattr(root, "_views", ()) if v() is not None]
    root._views = [*views, weakref.ref(h)]


def _views_of(root: ndarray) -> list[ndarray]:
    """The views of an array of ours that are alive, host arrays all."""
    return [h for v in getattr(root, "_views", ()) if (h := v()) is not None and h._array is not None]


on_host: Any = _on_host if fastpath is None else fastpath.on_host
views_of: Any = _views_of if fastpath is None else fastpath.views_of
link: Any = _link if fastpath is None else fastpath.link


def virtual(value: Any) -> VirtualArray:
    """An array of ours on a tracer or a buffer, which is no view."""
    h = new(VirtualArray)
    h._host, h._root, h._value = None, None, value
    return h


def array_of(value: Any) -> Array:
    """An array of ours on a value; itself where it is one."""
    if type(value) is Host:
        return on_host(value)
    if isinstance(value, (Tracer, Buffer)):
        return virtual(value)
    if type(value) in ARRAY_TYPES:
        return value
    return on_host(host_of(value))


def host_of(x: Any, dtype: Any = None) -> onp.ndarray:
    """NumPy's array of an argument that holds nothing of ours; that it lies in memory which the program may write to
    unseen is noted, where x is NumPy's array itself or an object that shows one."""
    if type(x) in CONTAINERS:  # NumPy would ask each stand-in for an array, and not refuse what the dtype has not
        x = replaced(x, lambda e: e.fixed() if type(e) in STAND_INS else e)
    a = onp.asarray(x, dtype)
    if type(x) is Host or shows_an_array(x):
        expose(a)
    return a


def shows_an_array(x: Any) -> bool:
    """Whether x is an object of the program's, or of another library, that shows an array and may change it."""
    t = type(x)
    if t in ATOMS or not hasattr(t, "__array__") or isinstance(x, (Host, onp.generic)):
        return False
    return t.__module__.partition(".")[0] != "minnp"  # values, and what stands for them


def as_host_arrays(tree: Any) -> Any:
    """What a function returned, once the transformation that ran it is over: of arrays whose values are on the host by
    then, host arrays. The tree itself where nothing changes."""
    if type(tree) in ARRAY_TYPES:
        return _as_host_array(tree)
    leaves, rebuild = tree_flatten(tree)
    new = [_as_host_array(x) if type(x) is VirtualArray else x for x in leaves]
    return tree if all(map(operator.is_, leaves, new)) else rebuild(new)


def array_value(value: Any) -> Any:
    """A value as that of an array, as transformations return numbers: no scalar of NumPy's."""
    if isinstance(value, onp.generic):
        return onp.asarray(value)
    if type(value) is Tracer and (inner := array_value(value.value)) is not value.value:
        return Tracer(value.trace, inner, value.node)
    return value


def _as_host_array(h: Array) -> Array:
    if type(h) is ndarray:
        return h
    if type(value := read(h)) is not Host:
        if h._root is None and not value.shape and (array := array_value(value)) is not value:
            return array_of(array)
        return h
    if type(h._value) is not ndarray:  # one object, however often it is returned
        h._value = on_host(h._host, None if h._root is None else _as_host_array(h._root))
    return h._value


# ------------------------------------------------------------------ reading
def read(h: ndarray) -> Any:
    """The value an array holds now; a view of a root that was written under a trace is read anew."""
    host, root = h._host, h._root
    if host is not None:
        if root is None or not state.busy or root._host is not None:
            return host
        base = read(root)
        return replay(base, steps_of(h)) if isinstance(base, (Tracer, Buffer)) else host
    value = h._value
    if root is not None:
        base = read(root)
        if h._seen is not base:
            if type(value) is Tracer:
                value.trace.dropped(h)
            value, h._seen = replay(base, h._steps), base
            if type(value) is Host:  # the replay may have ended the trace: h shows memory, and so does its root
                read(root)
    while type(value) is Tracer and not value.trace.alive:
        value.trace.dropped(h)
        value = value.value
    if isinstance(value, (Tracer, Buffer)):
        h._value = value
        if type(value) is Buffer and state.busy and (watching := capture.get()) is not None and not watching.symbolic:
            watching.origins[id(value)] = value, h
        return value
    if value is h:  # of a class of the user's
        return onp.ndarray.view(value, Host)
    if isinstance(value, onp.generic):  # a trace that is over had NumPy's scalar: nobody may write to it
        h._value = value
        return value
    h._host, h._value = onp.asarray(value), None
    return h._host


def replay(value: Any, steps: tuple) -> Any:
    for row, params in steps:
        if "index" in params:
            params = {"index": _living(params["index"])}
        value = bind(row, (value,), params)
    return value


def _living(index: Any) -> Any:
    """An index without the tracers of finished traces: views may outlive the trace that found them."""
    return tuple(map(_living, index)) if type(index) is tuple else lower(index)


def root_of(h: ndarray) -> ndarray:
    """The array that owns the memory h shows: h itself, unless it is a view."""
    return h if h._root is None else h._root


def steps_of(h: ndarray) -> tuple:
    """The (row, params) steps that lead from a view's root to the view; () for a root."""
    if h._root is None:
        return ()
    if h._host is None:
        return h._steps
    root = h._root  # written under a trace, it keeps the array it was, of which h is a view, in `_seen`
    return _window(root._host if root._host is not None else root._seen, h._host)


def _address(a: onp.ndarray) -> int:
    return a.__array_interface__["data"][0]


def same_numbers(a: onp.dtype, b: onp.dtype) -> bool:
    """Whether memory holds the same floating point numbers in both dtypes: complex ones are pairs of real ones."""
    return a.kind in "fc" and b.kind in "fc" and a.char.lower() == b.char.lower() and a.isnative == b.isnative


def _window(root: onp.ndarray, view: onp.ndarray) -> tuple:
    """The steps from a root's array to a view of its memory, as a strided window over the root in C order; or the field
    of records that it is."""
    for name in root.dtype.names or ():
        field, same = root[name], lambda a: (a.dtype, a.shape, a.strides, _address(a))
        if same(field) == same(view):
            return ((TABLE["getitem"], {"index": name}),)
    order = sorted(range(root.ndim), key=lambda i: -abs(root.strides[i]) if root.shape[i] != 1 else 0)
    flat = root.transpose(order)
    size, offset = view.itemsize, _address(view) - _address(root)
    pairs = same_numbers(view.dtype, root.dtype) and not any(n % size for n in (root.nbytes, offset, *view.strides))
    if not flat.flags.c_contiguous or not (view.dtype == root.dtype or pairs):
        raise errors.TracedValueError(
            f"a traced value was written into {root.dtype}{list(root.shape)}, of which this array is a view "
            f"({view.dtype}{list(view.shape)}) that cannot be expressed on it; make the view inside the traced function"
        )
    steps = [] if order == list(range(root.ndim)) else [(TABLE["transpose"], {"axes": tuple(order)})]
    if view.dtype != root.dtype:
        steps += [(TABLE["reshape"], {"shape": (-1,)}), (TABLE["view"], {"dtype": view.dtype})]
    window = {"offset": offset // size, "shape": view.shape, "strides": tuple(s // size for s in view.strides)}
    return (*steps, (TABLE["strided_view"], window))


# ------------------------------------------------------------------ wrapping
def wrap(out: Any, sources: Any = ()) -> Any:
    """The user's form of a result: arrays for values, in whatever container; views linked to their source's root."""
    t = type(out)
    if t is Host:
        for s in sources:
            if out is s._host:
                return s
        base = out.base
        if base is not None:
            for s in sources:
                if (a := s._host) is None:
                    continue
                if base is a or base is a.base or (type(base) is not Host and owner(out) is owner(a)):
                    return on_host(out, root_of(s))
        elif sources and out.dtype is OBJECT:
            hold_arrays(out, sources)
        return on_host(out)
    if t is Tracer or t is Buffer:
        return _wrap_value(out, sources)
    if t is tuple or t is list:  # itself where it holds no array: it may be an element of an array of objects
        return replaced(out, lambda e: wrap(e, sources))
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return named(out, [wrap(o, sources) for o in out])
    if isinstance(out, dict) and not any(s.dtype is OBJECT for s in sources):  # SciPy's OptimizeResult is one
        for key, value in out.items():
            if (ours := wrap(value, sources)) is not value:
                out[key] = ours
        return out
    return OURS[t](out) if t in OURS else out


OBJECT = onp.dtype(object)


def hold_arrays(made: onp.ndarray, sources: Any) -> None:
    """Put the arrays themselves into an array of objects that NumPy filled with what they hold, or views of that."""
    of_ours = {id(s._host) for s in sources if s._host is not None}
    flat = made.reshape(-1, order="A") if made.flags.forc else ()
    for i, e in enumerate(flat):
        if type(e) is Host and (id(e) in of_ours or id(e.base) in of_ours):
            flat[i] = wrap(e, sources)


OURS: dict[type, Any] = {}  # a class of NumPy's that has a form of ours: how an instance is turned into it


def _wrap_value(out: Any, sources: Any) -> VirtualArray:
    h = virtual(out)
    if out.view is not None:
        steps, at = [], out
        while type(at) is type(out) and at.view is not None:
            source, row, params = at.view
            steps.append((row, params))
            at = source
            for s in sources:
                root = root_of(s)
                if root._host is None and root._value is at:
                    h._root, h._steps, h._seen = root, tuple(reversed(steps)), at
                    return h
                # part of NumPy's memory that a batched index shows, or a capture of an array made outside
                if (s._value if s._host is None else s._host) is at and at is not None and root._host is not None:
                    h._root, h._steps, h._seen = root, (*steps_of(s), *reversed(steps)), root._host
                    while type(out) is Tracer:
                        if out.trace.batched:
                            out.trace.shown.append(weakref.ref(h))
                        out = out.value
                    return h
    return h


TAKEN: dict[type, Any] = {}  # a class of ours that NumPy takes for an array: how a traced instance becomes one
ATOMS = {int, float, complex, bool, str, type(None), slice, type(...)}


def unwrap(x: Any, sources: list) -> Any:
    """The values in an argument, containers included; every array met is appended to `sources`.

    A container without anything of ours is handed on as it is."""
    t = type(x)
    if t in ARRAY_TYPES:
        value = read(x)
        if not isinstance(value, onp.generic):
            sources.append(x)
        return value
    if t in CONTAINERS:
        if ATOMS.issuperset(map(type, x.values() if t is dict else x)):
            return x
        return replaced(x, lambda e: e if type(e) in ATOMS else unwrap(e, sources))
    if isinstance(x, (list, tuple)):  # of a class of the user's, a sequence to NumPy as any other
        elements = list(x) if isinstance(x, list) else tuple(x)
        values = unwrap(elements, sources)
        return x if values is elements else values
    if t is Host:
        return x
    if t in TAKEN and (array := TAKEN[t](x)) is not x:
        return unwrap(array, sources)
    return Host if x is ndarray else numpys_own(x)


EXACT = (Fraction, Decimal)


def of_subclass(x: Any) -> bool:
    """Whether an array is a masked array, a matrix or of a class of the user's, whose operators are its own."""
    return isinstance(x, Host) and type(x) not in TRACEABLE


def leave_to_subclasses(arguments: Any) -> None:
    """End a capture that meets an array of a subclass, for which no tracer stands, or a number whose operators make
    others than arrays': the rest runs as it is."""
    if not state.busy or capture.get() is None:
        return
    found: list = []
    replaced(arguments, lambda e: ((of_subclass(e) or isinstance(e, EXACT)) and found.append(e)) or e)
    if found:
        ends_capture(f"the function computes with a {type(found[0]).__name__}, whose operators are its own")


def ends_capture(why: str) -> bool:
    """Whether a capture was active: it ends, and the rest of what it watched runs as it is."""
    watching = capture.get() if state.busy else None
    if watching is None or watching.symbolic:
        return False
    watching.ends(why)
    return True


def numpys_own(x: Any) -> Any:
    """An argument with NumPy's arrays in the place of those of a library that NumPy cannot read: copies, which compiled
    code would not see change."""
    t = type(x)
    if t in ARRAY_TYPES or t is Host or t in ATOMS:
        return x
    if t in CONTAINERS:
        return replaced(x, numpys_own)
    if not unread(t):
        return x
    watching = capture.get() if state.busy else None
    if watching is not None and not watching.symbolic:
        watching.left = f"the function reads an array of {t.__module__}, whose elements may change unseen"
    return x.asnumpy()


def taken(x: Any) -> Any:
    """The arguments of a traced call, with arrays in the place of what NumPy takes for one."""
    return replaced(x, lambda e: TAKEN[type(e)](e) if type(e) in TAKEN else e)


def _call(row: Primitive, args: tuple, params: dict) -> Any:
    """A row called on arrays returns arrays; on values, values."""
    for a in args:
        if type(a) in ARRAY_TYPES:
            break
    else:
        return bind(row, args, params)
    values = []
    for a in args:
        if type(a) in ARRAY_TYPES:
            a = read(a)
        elif type(a) is Host:
            expose(a)
        elif shows_an_array(a):
            a = host_of(a)  # once: it may show something else when a gradient asks again
        values.append(a)
    if "index" in params:
        params = {**params, "index": _value_of(params["index"])}
    out = bind(row, values, params)
    if type(out) is Tracer and out.view is None:
        return virtual(out)
    return wrap(out, [a for a in args if type(a) in ARRAY_TYPES])


def _value_of(x: Any) -> Any:
    """An index with values in the place of arrays: it may be one, and hold some."""
    t = type(x)
    return read(x) if t in ARRAY_TYPES else replaced(x, _value_of) if t is tuple or t is list else x


_primitive.call = _call


def stack_nested(x: Any, dtype: Any = None) -> Any:
    """A traced array from nested lists that hold traced values, as np.array would make it."""
    if isinstance(x, (list, tuple)):
        return TABLE["stack"](*[stack_nested(v, dtype) for v in x], axis=0)
    if isinstance(x, (Tracer, Buffer)):  # an index has values
        x = array_of(x)
    if not isinstance(x, ARRAYS):
        return array_of(host_of(x, dtype))
    return x if dtype is None or x.dtype == dtype else TABLE["astype"](array_of(x), dtype=onp.dtype(dtype))


def asked(a: Any, kind: Any) -> Any:
    """What Python's bool(), int(), float() see of an array: a capture looks again whether one from outside still has
    these numbers."""
    value, watching = read(a), capture.get() if state.busy else None
    if type(value) is Host and watching is not None and not watching.symbolic:
        (value,) = watching.lifted([value])
    return concretize(value, kind)


def concretize(value: Any, kind: Any) -> Any:
    """What Python's bool(), int(), float() see of a value; a trace that the answer would escape raises (trace.py)."""
    while type(value) is Tracer:
        value = value.trace.concretize(value, kind)
    return value.host() if type(value) is Buffer else value
