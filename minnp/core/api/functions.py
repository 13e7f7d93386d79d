"""Public functions, operators and methods: NumPy's own callables on the host, definitions in rows elsewhere.

An Entry is one public callable. Untraced host arguments go straight to NumPy, whatever the name; an argument that is
traced or on a device takes the definition; without one the call falls back to NumPy on concrete values, and a gradient
that reaches it raises.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import operator
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as onp

from ... import errors
from ..arrays import array as _array
from ..arrays import devices
from ..arrays.array import (
    ARRAY_TYPES,
    Array,
    array_of,
    ends_capture,
    leave_to_subclasses,
    ndarray,
    read,
    taken,
    unwrap,
    wrap,
)
from ..arrays.hooks import for_us, ours, unread
from ..arrays.saved import FIXED, expose, note
from ..arrays.writing import copy_alike, release, shared_root, warn_of_sharing, write
from ..compiled import Counter
from ..cpu import run as run_host
from ..rows import policy, report
from ..rows.dispatch import DEFINITIONS, Out, fact
from ..rows.primitive import NO_PARAMS, TABLE
from ..rows.pytree import CONTAINERS, inside, replaced
from ..rows.state import capture, state
from ..rows.value import STAND_INS, Buffer, Host, Tracer, Value, example, is_scalar, owner
from .fallback import fallback, writes_traced

# Arguments that are their own value: no array can hide in them.
STATIC = {int, float, complex, bool, str, bytes, type(None), slice, type(...), type, Host, range}
STATIC |= {t for t in vars(onp).values() if isinstance(t, type) and issubclass(t, onp.generic)}
STATIC |= {type(onp.dtype(t)) for t in "?bhilqBHILQefdgFDGSUOMm"} | {onp.dtype}
KNOWN = {*ARRAY_TYPES, *STATIC} - {Host}  # the classes that definitions know; of NumPy's arrays a note is taken
OPERANDS = KNOWN - {range}
PLAIN = {*KNOWN, *CONTAINERS, Host}
MISSING = object()
NOWHERE = 1 << 30  # the position of an argument that a function has not, however many it takes


class Entry(Counter):
    """One public callable: its name, NumPy's callable, its definition (or None), the positions it writes, its count.

    row        NumPy's callable as a row without rules, once it was needed (see fallback.py)
    keywords   the names of the arguments it takes, once they were needed; None where it does not tell them
    scratch    how many positional arguments come before overwrite_input, overwrite_a or the like, once it was needed"""

    __slots__ = ("definition", "host", "keywords", "name", "nin", "row", "scratch", "writes")

    def __init__(self, name: str, host: Callable, definition: Callable | None = None, writes: tuple = ()) -> None:
        self.name, self.host, self.definition, self.writes = name, host, definition, writes
        self.calls, self.row, self.keywords, self.scratch = 0, None, MISSING, MISSING
        self.nin = host.nin if isinstance(host, onp.ufunc) else None


# the search itself warns, or refuses what the function would take
SEARCHING = {vars(onp).get(name) for name in ("alltrue", "cumproduct", "product", "round_", "sometrue")}
SEARCHING |= {onp.vstack, onp.hstack, onp.dstack, onp.column_stack, onp.stack}  # NumPy's words for what is no sequence
SEARCHING |= {onp.roots, onp.poly, onp.histogramdd, onp.ravel_multi_index, onp.choose}


def kernel(host: Callable) -> Callable:
    """NumPy's function without its search for __array_function__, for arguments that are arrays of its own."""
    return host if host in SEARCHING else getattr(host, "_implementation", host)


LATE: dict[str, str] = {}  # a library that may not be there: our module that defines its functions in rows
ENTRIES: dict[Any, Entry] = {}  # by NumPy's callable: what NEP 13 and NEP 18 look up
PUBLIC: dict[Any, Callable] = {}  # by NumPy's callable: our public function


def entry(name: str, host: Callable, writes: tuple = ()) -> Entry:
    """The entry of a NumPy callable, made on first use."""
    found = ENTRIES.get(host)
    if found is None:
        found = ENTRIES[host] = Entry(
            name, host, DEFINITIONS.get(host) or ufunc_definition(host), writes or fact(host, "writes", ())
        )
        report.HOST_CALLS[name] = found
    return found


def foreign_entry(name: str, host: Callable) -> Entry:
    """The entry of a callable that may not be NumPy's own, such as frompyfunc's; of each name, the last is kept."""
    found = ENTRIES.get(host)
    if found is None:
        found = report.HOST_CALLS.get(name)
        if found is None or found.host is not host:
            definition = DEFINITIONS.get(host) or ufunc_definition(host)
            found = report.HOST_CALLS[name] = Entry(name, host, definition, fact(host, "writes", ()))
    return found


# ------------------------------------------------------------------ what a call means
OF_OBJECTS = {onp.array, onp.asarray, onp.asanyarray}


def invoke(e: Entry, args: tuple, kwargs: dict) -> Any:
    """Call a public function with any arguments."""
    try:
        if state.tapes and (e.writes or "out" in kwargs or not before_out(e, len(args))):
            shared = [root for w in written(e, args, kwargs) if (root := shared_root(w)) is not None]
            out = _invoke(e, args, kwargs)
            for root in shared:
                warn_of_sharing(root)
            return out
        return _invoke(e, args, kwargs)
    except (errors.TracedValueError, ValueError) as error:
        again = opened_after(error, (args, kwargs))
        if again is None:
            raise
    return invoke(e, *again)


def _invoke(e: Entry, args: tuple, kwargs: dict) -> Any:
    if "mxnet" in sys.modules:
        args, kwargs = readable(e, args, kwargs)
    if state.busy and (watching := capture.get()) is not None:
        if watching.symbolic:
            return watching.public(e, args, kwargs)
        leave_to_subclasses((args, kwargs))
        if any(type(args[i]) is Host for i in e.writes if i < len(args)) and any(map(_is_virtual, args)):
            watching.ends(f"np.{e.name} writes to an array of plain NumPy")
    if state.variables is not None and state.variables.among(args, kwargs):
        return state.variables.public(e, args, kwargs)
    if kwargs and "device" in kwargs and fact(e.host, "device"):
        return devices.on_device(lambda **rest: invoke(e, args, rest), **kwargs)
    if kwargs and "like" in kwargs:
        known = names_of(e)
        made = NotImplemented  # NumPy says which keywords it does not know
        if known is None or known >= {*kwargs}:
            made = liked(PUBLIC.get(e.host), args, kwargs)
        if made is not NotImplemented:
            return made
    if kwargs and kwargs.get("dtype") is object and e.host in OF_OBJECTS and type(args[0]) in (list, tuple):
        return wrap(e.host(*args, **kwargs))  # the arrays in the list are objects as they are
    virtual = any(map(_is_virtual, args))
    known = KNOWN if state.busy else PLAIN if virtual else None
    if known and not known.issuperset(map(type, args)) and any(map(asked_first, (*args, *kwargs.values()))):
        result = offered(*_called(e, args), kwargs)
        if result is not NotImplemented:
            return result
        if virtual and any(map(has_ufuncs, args)):
            ends_capture(f"np.{e.name} is that of a class that takes NumPy's arrays alone")
            return _invoke(e, tuple([_handed_out(a) if _is_virtual(a) else a for a in args]), kwargs)
    if virtual and "out" not in kwargs:
        result = defined(e, args, kwargs)
        if result is not NotImplemented:
            return result
    sources: list = []
    values = [unwrap(a, sources) if type(a) not in STATIC else a for a in args]
    options = {k: unwrap(v, sources) if type(v) not in STATIC else v for k, v in kwargs.items()} if kwargs else kwargs
    if state.busy and not sources and (device := devices.default_device()) is not None:
        return devices.made(device, e.name, args, kwargs, lambda: _run(e, args, kwargs, sources, values, options))
    return _run(e, args, kwargs, sources, values, options)


def opened_after(error: Exception, arguments: Any) -> Any:
    """Arguments that NumPy could not read, for traced arrays in objects and sequences, as arrays and lists; None where
    that was not the reason of an exception."""
    if isinstance(error, errors.TracedValueError) or _NO_ARRAY in str(error):
        found = replaced(arguments, opened)
        return None if found is arguments else found
    return None


_NO_ARRAY = "__array__ method not producing an array"


def opened(x: Any) -> Any:
    """What NumPy reads in an argument that holds arrays of ours, which NumPy itself does not look for there: an array
    that the object's __array__ returns, or a sequence of another class (a deque, a list's subclass) as a list, or a
    tuple."""
    t = type(x)
    if t in STATIC or t in CONTAINERS or isinstance(x, (Value, Array, Host, onp.generic)):
        return x
    if isinstance(getattr(t, "__array__", None), FunctionType) and t not in _array.TAKEN:
        shown = x.__array__()
        return shown if type(shown) in ARRAY_TYPES else x
    if not is_sequence(t) or hasattr(t, "__array_function__"):
        return x
    elements = [replaced(e, opened) for e in x]
    if not any(type(e) in ARRAY_TYPES for e in inside(elements)):
        return x
    return tuple(elements) if isinstance(x, tuple) else elements


def is_sequence(t: type) -> bool:
    """Whether NumPy reads instances of a class element by element. (An Enum has a length, its members none.)"""
    return all(any(name in vars(c) for c in t.__mro__) for name in ("__len__", "__getitem__"))


def _made(cls: type, *args: Any, **kwargs: Any) -> Any:
    if cls is ndarray and capture.get() is not None and len(args) <= 2 and kwargs.keys() <= {"shape", "dtype"}:
        return invoke(entry("empty", onp.empty), args, kwargs)  # captured code makes one at each call
    sources: list = []
    args, kwargs = unwrap(args, sources), unwrap(kwargs, sources)
    return wrap(onp.ndarray.__new__(Host if cls is ndarray else cls, *args, **kwargs), sources)


ndarray.__new__ = _made  # type: ignore[method-assign, assignment]


def _is_virtual(a: Any) -> bool:
    """Whether an argument is an array that is traced or lives on a device."""
    return type(a) in ARRAY_TYPES and a._host is None and isinstance(read(a), (Tracer, Buffer))


def defined(e: Entry, args: tuple, kwargs: dict = NO_PARAMS) -> Any:
    """The user's form of what a definition returns; NotImplemented where there is none, or `out` among `args`."""
    if not before_out(e, len(args)):
        return NotImplemented
    if kwargs:
        check_keywords(e, [read(a) if type(a) in ARRAY_TYPES else a for a in args], None, kwargs)
    result = _defined(e, args, kwargs)
    return result if type(result) in ARRAY_TYPES or result is NotImplemented else wrap(result)


def _defined(e: Entry, args: tuple, kwargs: dict) -> Any:
    """What a call's definition returns, with NumPy's exceptions; NotImplemented where there is none."""
    if e.definition is None:
        e.definition = DEFINITIONS.get(e.host) or late_definition(e.host)
    if e.definition is None:
        return NotImplemented
    if e.writes and e.name != "ndarray.byteswap":  # which may make an array
        for a in [args[i] for i in e.writes if i < len(args)]:
            if _is_number(a) or isinstance(a, onp.generic):
                return _writes_to_a_number(e, args, kwargs)
    if "axis" in kwargs and isinstance(axis := kwargs["axis"], (ndarray, Host)) and not axis.ndim:
        kwargs = {**kwargs, "axis": operator.index(axis)}
    if not KNOWN.issuperset(map(type, args)):
        note(args := taken(args))
    if not KNOWN.issuperset(map(type, kwargs.values())):
        note(kwargs := taken(kwargs))
    try:
        return e.definition(*args, **kwargs)
    except REFUSALS as error:
        raise numpys(e, args, kwargs, error) from None


def readable(e: Entry, args: tuple, kwargs: dict) -> tuple:
    """The arguments of a call, with copies in the place of arrays that NumPy cannot read.

    Raises TypeError where the call would write to one of those."""
    values, options = _array.numpys_own(args), _array.numpys_own(kwargs)
    if values is not args or options is not kwargs:
        for w in written(e, args, kwargs):
            if unread(t := type(w)):
                raise TypeError(f"np.{e.name} cannot write to {t.__module__}.{t.__name__}, only to minnp's and NumPy's")
    return values, options


def before_out(e: Entry, count: int) -> bool:
    """Whether none of so many positional arguments is `out`, which a definition has not."""
    return count <= (e.nin or 1) or (e.nin is None and count <= out_position(e.name)[0])


def _leaves_to_numpy(e: Entry, values: list, options: dict) -> bool:
    """Whether the policy has nothing to say of a call on untraced host values: one that makes or writes arrays, say."""
    if e.writes or policy.current().plain or fact(e.host, "creates"):
        return True
    return any(map(overrides, values)) or any(map(overrides, options.values()))


def _run(e: Entry, args: tuple, kwargs: dict, sources: list, values: list, options: dict) -> Any:
    special = state.busy and (capture.get() is not None or not _leaves_to_numpy(e, values, options))
    if not special:
        for s in sources:
            if s._host is None or (s._root is not None and s._root._host is None and state.busy):
                special = True
                break
    if special:
        return _special(e, args, kwargs, values, options)
    e.calls += 1
    if state.tapes:
        for w in [*written(e, values, options), *overwritten(e, values, options)]:
            if isinstance(w, Host):
                release(w)
    try:
        result = run_host(e.host, values, options)
    except TypeError as error:
        numbers = [v.value if type(v) in STAND_INS and not v.trace.alive else v for v in values]
        if any(map(operator.is_not, numbers, values)):  # they stand for nothing once the capture is over
            return _run(e, args, kwargs, sources, numbers, options)
        result = offered(*_called(e, args), kwargs) if refused(error) else NotImplemented
        if result is NotImplemented:
            raise
    if len(sources) < len(values):
        note_exposed(args, result)
    for w in [values[i] for i in e.writes if i < len(values)]:
        if type(w) is Host and w.dtype is _array.OBJECT:
            _array.hold_arrays(w, sources)
    return wrap(result, sources)


def _called(e: Entry, args: tuple) -> tuple:
    """NumPy's function and its arguments, where an operator calls it, too."""
    named = getattr(onp, e.name, None)
    if isinstance(e.host, onp.ufunc) or not isinstance(named, onp.ufunc):
        return e.host, args
    return named, args[::-1] if hasattr(e.host, "reflects") else args


def asked_first(x: Any) -> bool:
    """Whether a class of the program's says what functions mean for an argument, or for an element of it."""
    t = type(x)
    if t in CONTAINERS:
        return any(map(asked_first, inside(x)))
    if t in STATIC or t in STAND_INS or isinstance(x, (Value, Array, Host, onp.generic)):
        return False
    hooks = (getattr(t, "__array_ufunc__", None), getattr(t, "__array_function__", None))
    return any(isinstance(hook, FunctionType) for hook in hooks)


def has_ufuncs(x: Any) -> bool:
    """Whether an object is no array, nor shows one, and its class says what ufuncs are of it: no row is given it."""
    t = type(x)
    if isinstance(x, (Array, Host)) or hasattr(t, "__array__"):
        return False
    return isinstance(getattr(t, "__array_ufunc__", None), FunctionType)


def _handed_out(a: Array) -> Any:
    """A traced or device array as one of the host; raises where a gradient would be lost."""
    return array_of(onp.asarray(_array.concretize(read(a), Host)))


def note_exposed(args: tuple, result: Any) -> None:
    """Note the memory of NumPy's own arrays, and of objects that show some, among the arguments that a result shows."""
    for a in args:
        t = type(a)
        if t is Host:
            for r in result if type(result) in (tuple, list) else (result,):
                if type(r) is Host and (r is a or r.base is not None) and owner(r) is owner(a):
                    expose(a)
        elif t not in FIXED and t not in ARRAY_TYPES and t not in CONTAINERS and not isinstance(a, type):
            shows = _array.shows_an_array(a)
            for r in result if type(result) in (tuple, list) else (result,):
                if type(r) is Host and (shows or r.base is not None):
                    expose(r)


def written(e: Entry, values: Any, options: dict) -> list:
    """The arguments that a call writes to, and None where one was not given."""
    found = [values[i] for i in e.writes if i < len(values)]
    out = options.get("out")
    found += out if type(out) is tuple else (out,)
    place = out_position(e.name)[0] if e.nin is None else e.nin
    found += values[place : place + 1] if e.nin is None else values[place:]
    return found


def overwritten(e: Entry, values: list, options: dict) -> list:
    """The arguments that a call may use as scratch memory: all, where overwrite_input or the like is said."""
    named = any(v is not False and k.startswith("overwrite") for k, v in options.items())
    return values if named or len(values) > scratch_position(e) else []


def scratch_position(e: Entry) -> int:
    if e.scratch is MISSING:
        try:
            names = () if e.nin is not None else [*inspect.signature(e.host).parameters]
        except (TypeError, ValueError):  # compiled, without a signature
            names = ()
        e.scratch = next((i for i, name in enumerate(names) if name.startswith("overwrite")), NOWHERE)
    return e.scratch


def only_reads(e: Entry) -> int:
    """With how many positional arguments, at most, a call that names none of these writes to no argument."""
    return 0 if e.writes else min(out_position(e.name)[0], scratch_position(e))


def _special(e: Entry, args: tuple, kwargs: dict, values: list, options: dict) -> Any:
    said, out = (args, kwargs), None
    if "out" in kwargs:
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        if out is None and getattr(e.host, "nout", 1) > 1:
            raise TypeError("'out' must be a tuple of arrays")
    elif e.nin is not None and len(args) > e.nin:
        if len(args) > (most := e.nin + e.host.nout):
            said = f"takes from {e.nin} to {most} positional arguments but {len(args)} were given"
            raise TypeError(f"{last_of(e.name)}() {said}")
        args, out = args[: e.nin], (*args[e.nin :], *(None,) * (most - len(args)))
    else:
        place, after = out_position(e.name)
        if len(args) > place:
            out, kwargs = args[place], {**kwargs, **dict(zip(after, args[place + 1 :], strict=False))}
            args = args[:place]
    out = None if e.nin is not None and type(out) is tuple and all(o is None for o in out) else out
    if out is not None and any(map(_is_number, out if type(out) is tuple else (out,))) and not _asked_by_numpy():
        return _writes_to_a_number(e, values, options)
    if kwargs or options or (out is not None and e.nin is not None):
        check_keywords(e, values, out, options if e.nin is None else kwargs)
    counts, rule = type(out) in ARRAY_TYPES and not e.name.startswith("logical_"), out_rule(e.name)  # results are bools
    computes = counts and e.nin is None and rule.sums != "all"  # in the dtype of `out`, each in its own way
    if counts and kwargs.get("dtype") is None and sums_in(out, rule, values[0]):
        at = 3 if last_of(e.name) == "reduceat" else 2  # where the dtype stands among the positional arguments
        if len(args) <= at or args[at] is None:
            dtype = onp.result_type(out.dtype, getattr(values[0], "dtype", out.dtype))
            args, kwargs = args[:at], {**kwargs, "dtype": dtype}
    result = _defined(e, args, kwargs)
    if computes and result is not NotImplemented:
        natural = getattr(values[0] if "dtype" in kwargs and rule.sums else result, "dtype", None)
        if natural is not None and natural != out.dtype and ends_capture(f"np.{e.name} computes in the dtype of `out`"):
            return _invoke(e, *said)
    if result is NotImplemented:
        if writes_traced(e, values, options) and ends_capture(f"np.{e.name} writes to an array, as no row does"):
            return _invoke(e, *said)
        outs = out if type(out) is tuple else (out,)
        result = wrap(fallback(e, values, options), [o for o in outs if type(o) in ARRAY_TYPES])
        if (
            isinstance(result, tuple)
            and getattr(result, "__dict__", None)
            and ends_capture(f"{type(result).__name__} remembers more than its fields")
        ):
            return _invoke(e, *said)
        out = None  # the fallback row gave `out` to NumPy
    else:  # its rows count themselves
        result = result if type(result) in ARRAY_TYPES else wrap(result)
    if out is ...:  # NumPy 2: an array, where it would return a scalar
        return tuple(map(_as_array, result)) if type(result) is tuple else _as_array(result)
    if out is None:
        return result
    where = kwargs.get("where", True)
    if where is not True and (e.nin is not None or last_of(e.name) == "clip"):
        result = _masked(operand(where), result, out, kwargs.get("casting", "same_kind"))
    if e.nin is not None:
        return write_out(e.name, out, result, kwargs.get("casting", "same_kind"))
    if not _fits(out, result):
        ask(e, values, options)
    if type(out) is tuple and all(o is None for o in out):
        return result
    if rule.scans and result.ndim > 1:
        out = out[0] if type(out) is tuple else out
        return accumulated(e.name, out, result, args[1] if len(args) > 1 else kwargs.get("axis", 0))
    return write_out(e.name, out, result, "unsafe")


def _as_array(result: Any) -> Any:
    a = array_of(result)
    return TABLE["copy"](a) if is_scalar(read(a)) else a


# Keywords of which NumPy refuses some values that a definition might take
ODD = {"where": lambda v: True, "keepdims": lambda v: not isinstance(v, int) and v is not onp._NoValue}
ODD |= {
    "dtype": lambda v: isinstance(v, Array | Host),
    "copy": lambda v: v is False or isinstance(v, str),
    "axis": lambda v: isinstance(v, str),
}


def _fits(out: Any, result: Any) -> bool:
    """Whether every function takes `out` for a result."""
    if type(out) not in ARRAY_TYPES or type(result) is tuple or out.dtype != result.dtype:
        return False
    lies = example(read(out))
    return out.shape == result.shape and (type(lies) is not Host or lies.flags.c_contiguous)


def ask(e: Entry, values: list, options: dict) -> None:
    """Raise what NumPy's function raises for arrays of these shapes and dtypes, copies where it would write to them."""
    outs = written(e, values, options)

    def like(x: Any) -> Any:
        x = read(x) if type(x) in ARRAY_TYPES else x
        if any(x is o for o in outs) and type(lies := example(x)) is Host:
            copy = copy_alike(lies)
            copy.flags.writeable = lies.flags.writeable
            return copy
        return x.value if type(x) in STAND_INS else _zeros(x)

    with warnings.catch_warnings(), onp.errstate(all="ignore"), _undrawn(e, values):
        warnings.simplefilter("ignore")
        with contextlib.suppress(onp.linalg.LinAlgError):
            run_host(e.host, [replaced(v, like) for v in values], {k: replaced(v, like) for k, v in options.items()})


def _is_number(x: Any) -> bool:
    return type(x) in ARRAY_TYPES and is_scalar(read(x))


def _asked_by_numpy() -> bool:
    """Whether NumPy's own code calls, on our functions: there traced numbers are arrays (numpy/rebound.py)."""
    frame, of = sys._getframe(2), "minnp"
    while frame is not None and of == "minnp":
        of, frame = (frame.f_globals.get("__name__") or "").partition(".")[0], frame.f_back
    return of == "numpy"


def _writes_to_a_number(e: Entry, values: Any, options: dict) -> Any:
    """What NumPy does with a number in the place of an array that is written: it raises, or nothing happens."""

    def like(x: Any) -> Any:
        x = read(x) if type(x) in ARRAY_TYPES else x
        if is_scalar(x):
            return onp.zeros((), x.dtype)[()]
        return x.value if type(x) in STAND_INS else _zeros(x)

    values, options = [replaced(v, like) for v in values], {k: replaced(v, like) for k, v in options.items()}
    if e.name.startswith("ndarray."):
        return getattr(values[0], last_of(e.name))(*values[1:], **options)
    return e.host(*values, **options)


def accumulated(name: str, out: Any, result: Any, axis: int) -> Any:
    """An accumulation into `out`: NumPy broadcasts it, but writes no more places along the axis than it adds up."""
    part = out
    if out.ndim == result.ndim:
        part = out[(slice(None),) * (axis % out.ndim) + (slice(1),)] if result.shape[axis] == 1 else out
        result = wrap(TABLE["broadcast_to"](operand(result), shape=part.shape))
    write_out(name, part, result, "unsafe")
    return out


REFUSALS = (TypeError, ValueError, IndexError)


def numpys(e: Entry, args: tuple, kwargs: dict, error: Exception) -> Exception:
    """What NumPy, which looks at arguments in an order of its own, raises for such shapes and dtypes; `error` itself
    where it is ours, or about elements, or NumPy raises nothing."""
    if isinstance(error, (errors.MinnpError, onp.linalg.LinAlgError)) or e.writes:
        return error
    args, kwargs = unwrap(args, []), unwrap(kwargs, [])
    with warnings.catch_warnings(), onp.errstate(all="ignore"), _undrawn(e, args):
        warnings.simplefilter("ignore")
        try:
            e.host(*_zeros(args), **{k: _zeros(v) for k, v in kwargs.items()})
        except REFUSALS as theirs:
            return error if isinstance(theirs, onp.linalg.LinAlgError) else theirs
    return error


@contextlib.contextmanager
def _undrawn(e: Entry, args: tuple) -> Iterator[None]:
    """The random stream of a call is afterwards where it was."""
    if not e.name.startswith("random."):
        yield
    elif args and isinstance(args[0], onp.random.Generator):
        bits = args[0].bit_generator
        was = bits.state
        yield
        bits.state = was
    else:
        stream = args[0] if args and isinstance(args[0], onp.random.RandomState) else onp.random
        was = stream.get_state(legacy=False)
        yield
        stream.set_state(was)


def _zeros(x: Any) -> Any:
    """An argument with NumPy's zeros in the place of values."""
    if type(x) in CONTAINERS:
        return replaced(x, _zeros)
    return onp.zeros(x.shape, x.dtype) if isinstance(x, Value) else x


# The arguments of functions whose signature NumPy does not show, or not in every version.
SIGNATURES: dict[str, tuple[str, ...]] = {
    "dot": ("a", "b", "out"),
    "concatenate": ("arrays", "axis", "out", "dtype", "casting"),
    "reduce": ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    "accumulate": ("array", "axis", "dtype", "out"),
    "reduceat": ("array", "indices", "axis", "dtype", "out"),
    "random": ("self", "size", "dtype", "out"),
    "zeta": ("x", "q", "out"),
    "standard_normal": ("self", "size", "dtype", "out"),
    "standard_exponential": ("self", "size", "dtype", "method", "out"),
    "standard_gamma": ("self", "shape", "size", "dtype", "out"),
}


@functools.cache
def out_rule(name: str) -> Out:
    """What a function, a method of that name or a ufunc's method does with `out=`."""
    last = last_of(name)
    if last in ("reduce", "accumulate", "reduceat"):
        return Out(sums="all", scans=last == "accumulate")
    return fact(getattr(onp, last, None), "out", Out())


def sums_in(out: ndarray, rule: Out, a: Any) -> bool:
    """Whether NumPy adds up in the dtype of `out`, as far as that is wider than the array's."""
    floats = out.dtype.kind in "fc" and getattr(a, "dtype", out.dtype).kind in "fc"
    return rule.sums == "all" or (rule.sums == "floats" and floats)


def last_of(name: str) -> str:
    """The function's own name in that of a method: "sum" in "ndarray.sum", "reduce" in "add.reduce"."""
    return name.rpartition(".")[2]


@functools.cache
def out_position(name: str) -> tuple[int, tuple]:
    """(position of `out`, names of the arguments after it); methods have it where the function of that name does."""
    last = last_of(name)
    names = SIGNATURES.get(last)
    if names is None:
        if name.startswith("scipy."):  # whose `mean` of a distribution has other arguments
            return NOWHERE, ()
        try:
            parameters = inspect.signature(getattr(onp, last)).parameters.values()
        except (AttributeError, TypeError, ValueError):  # no function of that name, or one that shows no signature
            return NOWHERE, ()
        names = tuple([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
    place = names.index("out") if "out" in names else NOWHERE
    return place, names[place + 1 :]


def late_definition(host: Callable) -> Callable | None:
    """The definition in a module of ours that waits for a library to be loaded."""
    for library in [name for name in LATE if name in sys.modules]:
        importlib.import_module(LATE.pop(library))
    return DEFINITIONS.get(host)


def check_keywords(e: Entry, values: list, out: Any, kwargs: dict) -> None:
    """Raise NumPy's exception for a keyword that a function does not have, so that no definition need look; for what a
    ufunc's keywords say, too."""
    if e.nin is not None:
        return check_call(e.host, values[: e.nin], None if out is ... else out, kwargs)
    if e.keywords is MISSING:
        e.keywords = names_of(e)
    if e.keywords is not None and not e.keywords.issuperset(kwargs):
        wrong = next(k for k in kwargs if k not in e.keywords)
        raise TypeError(f"{last_of(e.name)}() got an unexpected keyword argument {wrong!r}")
    if any(k in ODD and ODD[k](v) for k, v in kwargs.items()):
        ask(e, values, kwargs)


def names_of(e: Entry) -> set[str] | None:
    """The names of the arguments of NumPy's callable; None where it shows none, or takes any."""
    if isinstance(getattr(e.host, "__self__", None), onp.ufunc):
        shown = SIGNATURES.get(last_of(e.name))
        return None if shown is None else set(shown)
    try:
        parameters = inspect.signature(e.host).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}


def check_call(ufunc: onp.ufunc, values: list, out: Any, kwargs: dict) -> None:
    """Raise NumPy's exception for keywords of a ufunc, and for results that cannot be cast to `out`: it looks at these,
    and at dtypes, before shapes. It is called with arrays of the same dtypes that have no elements."""
    if ufunc.signature and ufunc is not onp.matmul and out is not None:
        return
    dims = lambda n: (1,) * n if ufunc.signature and out is None else (0,) * (min(n, 1) + bool(ufunc.signature))
    empty = lambda v: onp.zeros(dims(v.ndim), v.dtype) if getattr(v, "ndim", 0) else plain_number(v)
    options = {k: v for k, v in kwargs.items() if k != "out" and v is not onp._NoValue}
    if options.get("where", True) is not True:
        options["where"] = empty(_like(options["where"]))
    options["out"] = (None,) * ufunc.nout  # NumPy warns where `where=` has none
    if out is not None:
        outs = out if type(out) is tuple else (out,)
        options["out"] = tuple([onp.empty(dims(1), o.dtype) if hasattr(o, "dtype") else o for o in outs])
        for like, o in zip(options["out"], outs):
            if isinstance(memory := getattr(o, "_host", o), Host) and not memory.flags.writeable:
                like.flags.writeable = False
    with onp.errstate(all="ignore"):
        ufunc(*[empty(_like(v)) for v in values], **options)


def _like(x: Any) -> Any:
    """A number, or what has the dtype and the axes of an argument."""
    if type(x) in STAND_INS:
        return x.value
    x = read(x) if type(x) in ARRAY_TYPES else x
    return onp.asarray(_zeros(unwrap(x, []))) if type(x) in (list, tuple) else x


def plain_number(v: Any) -> Any:
    """A number as NumPy's promotion should see it: NumPy 1 looks at the value, where it is known."""
    return onp.zeros((), v.dtype) if isinstance(v, Value) else v


def write_out(name: str, out: Any, result: Any, casting: str = "same_kind", fresh: bool = False) -> Any:
    """Write results into `out` (an array, or a tuple of arrays) with NumPy's checks; returns it. `fresh` as `write`
    has it."""
    outs, results = (out, result) if type(out) is tuple else ((out,), (result,))
    if type(results) is not tuple:
        results = (results,)
    if any(type(o) is Host for o in outs):
        ends_capture(f"np.{name} writes to an array of plain NumPy")
    given = [read(r) if type(r) in ARRAY_TYPES else r for r in results]  # NumPy's own arrays may receive host data
    outs = [array_of(o) if isinstance(o, Host) and not isinstance(r, Value) else o for o, r in zip(outs, given)]
    for o, r in zip(outs, results, strict=False):
        if o is None:
            continue
        if type(o) not in ARRAY_TYPES:
            if not isinstance(o, (Host, *ARRAY_TYPES)):
                raise TypeError(f"return arrays must be of ArrayType, got {type(o).__name__} as out= of np.{name}")
            raise errors.TracedValueError(
                f"np.{name}(..., out=) got a plain numpy.ndarray for a traced or device array; pass one of minnp.numpy"
            )
        ufunc = getattr(onp, name, None)
        if not onp.can_cast(r.dtype, o.dtype, casting):
            if isinstance(ufunc, onp.ufunc):  # NumPy's own exception, which is a TypeError of its own class
                ufunc(*[onp.empty(0, r.dtype)] * ufunc.nin, out=onp.empty(0, o.dtype))
            raise TypeError(
                f"Cannot cast ufunc '{name}' output from {r.dtype!r} to {o.dtype!r} with casting rule {casting!r}"
            )
        broadcasts = True
        if isinstance(ufunc, onp.ufunc):  # but for the axes that its signature gives a result, such as a product's
            core = min(r.ndim, len(re.findall(r"\w+", (ufunc.signature or "").partition("->")[2])))
            broadcasts = o.ndim >= core and r.shape[r.ndim - core :] == o.shape[o.ndim - core :]
        shape = onp.broadcast_shapes(o.shape, r.shape) if broadcasts else r.shape
        if shape != o.shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {o.shape} doesn't match the broadcast shape {shape}"
            )
        write(o, ..., r if r.dtype == o.dtype else TABLE["astype"](r, dtype=o.dtype), fresh)
    if len(results) == 1:
        return outs[0]
    wide = onp.broadcast_shapes(*[o.shape for o in outs if o is not None])  # of one output, which all of them have
    fitting = [r if r.shape == wide else TABLE["copy"](TABLE["broadcast_to"](r, shape=wide)) for r in results]
    return tuple([r if o is None else o for o, r in itertools.zip_longest(outs, fitting)])


def ufunc_definition(host: Any) -> Callable | None:
    """The definition of a ufunc: its row, with `where`, `dtype` and `casting` expressed in other rows."""
    row = TABLE.get(host.__name__) if isinstance(host, onp.ufunc) else None
    if row is None:
        return None

    def definition(*args: Any, where: Any = True, dtype: Any = None, **options: Any) -> Any:
        args = [operand(a) for a in args]
        if dtype is not None:
            kinds = host.resolve_dtypes(
                (*(a.dtype if hasattr(a, "dtype") else a.__class__ for a in args), None),
                signature=(None,) * host.nin + (onp.dtype(dtype),),
            )
            args = [
                TABLE["astype"](a, dtype=k) if hasattr(a, "dtype") and a.dtype != k else a
                for a, k in zip(args, kinds, strict=False)
            ]
        result = row(*args)
        return result if where is True else _masked(operand(where), result, None)

    return definition


def _masked(where: Any, result: Any, out: Any, casting: str = "same_kind") -> Any:
    """A result, or each of several, where `where` holds; elsewhere what `out` has there, or zeros without one."""
    if type(result) is tuple:
        outs = out if type(out) is tuple else ()
        return tuple([_masked(where, r, o, casting) for r, o in itertools.zip_longest(result, outs)])
    out = out[0] if type(out) is tuple else out
    if out is not None and out.dtype != result.dtype and onp.can_cast(result.dtype, out.dtype, casting):
        result = TABLE["astype"](result, dtype=out.dtype)  # what `out` has passes no other dtype
    return TABLE["where"](where, result, onp.zeros((), result.dtype) if out is None else out)


def operand(x: Any) -> Any:
    """An argument of a row: arrays, values and numbers as they are; lists, and other sequences, as arrays, traced
    elements included."""
    if type(x) in OPERANDS:
        return x
    if not isinstance(x, (list, tuple)):
        if isinstance(x, (Value, Array, Host, onp.generic)) or not is_sequence(type(x)):
            return x
        if not isinstance(x := opened(x), (list, tuple)):
            return x if isinstance(x, Array) else onp.asarray(x)
    sources: list = []
    value = unwrap(x, sources)
    return _array.stack_nested(x) if any(type(read(s)) is not Host for s in sources) else onp.asarray(value)


# ------------------------------------------------------------------ foreign classes among the arguments
# How NumPy begins where every class that has a say declined (NEP 18 and NEP 13)
_DECLINED = ("no implementation found for", "operand type(s) all returned NotImplemented from __array_ufunc__")


def overrides(x: Any) -> bool:
    """Whether NumPy asks the argument's class what a function means, or to wrap its result: a Series, a Quantity."""
    t = type(x)
    if t in CONTAINERS:
        return any(map(overrides, inside(x)))
    if t in STATIC or t in STAND_INS or isinstance(x, Value):
        return False
    return hasattr(t, "__array_ufunc__") or hasattr(t, "__array_wrap__")


def refused(error: TypeError) -> bool:
    """Whether NumPy's functions found no class among the arguments that knows them."""
    return bool(error.args) and str(error.args[0]).startswith(_DECLINED)


def liked(function: Any, args: tuple, kwargs: dict) -> Any:
    """What the class of `like=` makes of our function, where it is one of a program written for us; NotImplemented
    where it is not."""
    like = kwargs["like"]
    hook = getattr(type(like), "__array_function__", None)
    if function is None or isinstance(like, onp.ndarray) or not isinstance(hook, FunctionType) or not for_us(hook):
        return NotImplemented
    out = hook(like, function, (type(like),), args, {k: v for k, v in kwargs.items() if k != "like"})
    if out is NotImplemented:
        name = function.__name__
        raise TypeError(f"{_DECLINED[0]} {name!r} on types that implement __array_function__: [{type(like)}]")
    return out


def offered(host: Any, args: tuple, kwargs: dict) -> Any:
    """What a class among the arguments makes of our function, where it does not know NumPy's: a class of a program
    written for us has ours in its table. NotImplemented where none does. Of a ufunc only classes whose module imports
    us are asked twice."""
    method = host.__name__ if isinstance(getattr(host, "__self__", None), onp.ufunc) else "__call__"
    ufunc = host if method == "__call__" else host.__self__
    function = ours(ufunc)  # also where nobody has asked for its name yet
    if isinstance(ufunc, onp.ufunc):
        for x in args:
            hook = getattr(type(x), "__array_ufunc__", None)
            if not isinstance(hook, FunctionType) or isinstance(x, Array):
                continue
            knows_ours = for_us(inspect.unwrap(hook))
            if knows_ours or has_ufuncs(x):
                out = hook(x, function if knows_ours else ufunc, method, *args, **kwargs)
                if out is not NotImplemented:
                    return out
        return NotImplemented
    members = [e for a in (*args, *kwargs.values()) if isinstance(a, (list, tuple)) for e in a]
    asked = [x for x in (*args, *kwargs.values(), *members) if not isinstance(x, (Array, onp.ndarray))]
    asked = [x for x in asked if getattr(type(x), "__array_function__", None) is not None]
    for x in asked if function is not ufunc else ():
        out = x.__array_function__(function, tuple({type(x) for x in asked}), args, kwargs)
        if out is not NotImplemented:
            return out
    return NotImplemented
