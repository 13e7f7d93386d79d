"""What a trace keeps of a call for later, where the program could change it meanwhile.

Arrays of ours are protected by `GradTrace.release`: each write to one goes through `writing`, and tapes take their
copies first. Lists, and arrays that the program also holds as NumPy's own, are changed by code that we never see. So
what a trace keeps of them is a copy, of the arrays that rules read (`safe`) as of parameters: indices, masks, axes,
shapes (`kept_params`). `expose` notes memory that came from the program.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..cpu.memory import Lease
from ..rows.pytree import CONTAINERS, LEAVES, inside, replaced
from ..rows.state import capture, state
from ..rows.value import Host, Tracer, concrete, owner

# Types whose instances cannot change; of others that are no array or container, nothing is known, and they are kept.
FIXED = {int, float, complex, bool, str, bytes, type(None), type(...), type, range, slice}
FIXED |= {t for t in vars(onp).values() if isinstance(t, type) and issubclass(t, onp.generic)}
FIXED |= {type(onp.dtype(t)) for t in "?bhilqBHILQefdgFDGSUOMm"} | {onp.dtype}
SMALL = 1 << 12  # bytes: a parameter of fewer is copied at once, which costs less than to watch over it

EXPOSED: dict[int, list] = {}  # id of an owner of memory -> weak references to those as which the program holds it
_copies: dict[int, tuple] = {}  # id of a large array -> (weak reference to it, to its copy); of its copy -> (that,)


def kept_params(params: dict) -> dict:
    """A row's parameters as a trace may keep them."""
    for v in params.values():
        if type(v) not in FIXED or type(v) is slice:
            return {k: kept(v, k == "index") for k, v in params.items()}
    return params


def kept(x: Any, read: bool = False) -> Any:
    """x, with copies of the arrays and lists in it. `read`: an array that a capture reads by reference becomes its
    tracer; other parameters it has read, and guards them."""
    t = type(x)
    if t is slice:
        if type(x.start) in FIXED and type(x.stop) in FIXED and type(x.step) in FIXED:
            return x
        return slice(kept(x.start, read), kept(x.stop, read), kept(x.step, read))
    if t in FIXED:
        return x
    if t in CONTAINERS:
        if t is tuple and FIXED.issuperset(map(type, x)) and slice not in map(type, x):
            return x
        return replaced(x, lambda e: kept(e, read), copies=True)
    if t is Tracer:
        value = kept(x.value)
        return x if value is x.value else Tracer(x.trace, value, x.node, x.view)
    if isinstance(x, Host) and t not in LEAVES:
        mine = x if x.nbytes >= SMALL and not unseen(x) else snapshot(x)
        watching = capture.get() if read and state.busy else None
        if watching is not None and not watching.symbolic:
            return Tracer(watching, mine, watching.constant(x))
        return mine
    return x


def snapshot(a: onp.ndarray) -> onp.ndarray:
    """A copy of an array as it is now; of a large one, the copy that others have, if it is still equal."""
    if a.dtype.hasobject or a.nbytes < SMALL:
        return a.copy(order="K")
    known = _copies.get(id(a))
    if known is not None and known[0]() is a:
        if len(known) == 1:
            return a  # a copy itself
        copy = known[1]()
        if copy is not None and same_bytes(copy, a):
            return copy
    copy = a.copy(order="K")  # not read-only: NumPy's take copies read-only indices
    _copies[id(copy)] = (weakref.ref(copy, _leaving(_copies, copy)),)
    _copies[id(a)] = weakref.ref(a, _leaving(_copies, a)), weakref.ref(copy)
    return copy


def _leaving(known: dict[int, Any], a: Any) -> Callable:
    """What takes an array out of a dict by id when it dies."""
    key = id(a)
    return lambda _: known.pop(key, None)


def same_bytes(a: onp.ndarray, b: onp.ndarray) -> bool:
    """Whether two arrays are equal to the bit, NaN included."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    if a.dtype.hasobject:
        return a.dtype.kind == "O" and all(map(operator.is_, a.ravel().tolist(), b.ravel().tolist()))
    order = sorted(range(a.ndim), key=lambda i: -abs(b.strides[i]))
    a, b = onp.ascontiguousarray(a.transpose(order)), onp.ascontiguousarray(b.transpose(order))
    word = "u8" if a.nbytes % 8 == 0 else "u1"
    return bool((a.reshape(-1).view(word) == b.reshape(-1).view(word)).all())


# ------------------------------------------------------------------ memory that the program holds as NumPy's
def expose(a: onp.ndarray) -> None:
    """Note that the program holds this memory as an array of NumPy's own, which it may write to unseen."""
    memory = owner(a)
    if type(memory) is Host and id(memory) not in EXPOSED:
        _register(memory, id(memory))


class _Holder(weakref.ref):
    """A weak reference to an array that shows the memory of the owner with this id."""

    __slots__ = ("key",)


def _register(holder: Any, key: int) -> None:
    reference = _Holder(holder, _unregister)
    reference.key = key
    EXPOSED.setdefault(key, []).append(reference)


def _unregister(reference: Any, known: dict[int, list] = EXPOSED) -> None:  # the name is gone when the interpreter ends
    holders = known[reference.key]
    holders.remove(reference)
    if not holders:
        del known[reference.key]


def unseen(a: Any) -> bool:
    """Whether the memory of a value may be written by what is not ours."""
    a = concrete(a)
    if not isinstance(a, Host):
        return False
    memory = owner(a)
    return id(memory) in EXPOSED or (type(memory) is not Host and type(memory) is not Lease)


def note(x: Any) -> None:
    """Note the memory of all arrays of NumPy's own in an argument."""
    if type(x) is Host:
        expose(x)
    elif type(x) in CONTAINERS:
        for e in inside(x):
            note(e)


def safe(v: Any) -> Any:
    """A value as a trace may keep it: a copy of what the program may write to unseen."""
    if not unseen(v):
        return v
    if type(v) is Tracer:
        return Tracer(v.trace, safe(v.value), v.node, v.view)
    return snapshot(v)
