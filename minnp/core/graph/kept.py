"""What a captured function keeps in objects outside: attributes, globals, lists, caches, the exception that it raises.

While it runs, tracers and `Live` numbers stand for what it computes. Those that something still refers to after the
call are exchanged, wherever they are held, for what the function would have kept there uncaptured. Whether there are
any is known from the trace itself, which nobody refers to but them; who refers to them the garbage collector knows.
"""

from __future__ import annotations

import ctypes
import gc
import operator
import sys
import traceback
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from types import (
    AsyncGeneratorType,
    CellType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as onp

from ...backends import Backend
from ..arrays.array import ARRAY_TYPES, VirtualArray, array_of, as_host_arrays, read, replay, wrap
from ..rows.pytree import named
from ..rows.references import COUNTED, references
from ..rows.value import Host, Tracer
from .graph import Graph
from .node import Node
from .outputs import inside
from .scalars import Live, causes

SUSPENDED = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}
OURS = (*ARRAY_TYPES, Tracer, Live, Node, FrameType)  # what holds a stand-in and is no state of the program's
NEAR = 4000  # so many objects are looked at before the whole process is searched


class Kept:
    """The arguments of one call as the caller has them, and as the function that is captured was given them.

    inputs      (a weak reference to the array it was given, the leaf) of each argument that is an array
    containers  (where, the copy it was given, ...) of each list, dict and dataclass
    arguments   the caller's own, or None where nobody has them
    roots       what the function reaches: itself, its arguments, what holds its variables and what they hold
    """

    def __init__(
        self, inputs: Sequence[Any], leaves: Sequence[Any], containers: list, arguments: Any, roots: Sequence[Any] = ()
    ) -> None:
        self.inputs = {id(h): (weakref.ref(h), leaf) for h, leaf in zip(inputs, leaves) if type(h) is VirtualArray}
        self.arguments, self.roots = arguments, roots
        self.copies = [] if arguments is None else [c for _, c, _ in containers]
        self.places = [where for where, *_ in containers]
        self.counts = self._counts()
        self.escaped: list[tuple] = []  # (copy, where) of those that somebody else refers to
        self.arrays: list[weakref.ref] = []  # that may have dropped their tracers
        self.objects: list[Host] = []  # NumPy's arrays of objects, of which the garbage collector knows nothing

    def _counts(self) -> list[int]:
        return [references(operator.getitem, self.copies, i) if COUNTED else 0 for i in range(len(self.copies))]

    def count(self) -> None:
        """Look who refers to the copies, as long as the call does."""
        now = self._counts()
        self.escaped = [(c, w) for c, w, a, b in zip(self.copies, self.places, self.counts, now) if b > a]
        self.copies.clear()

    def watch(self, arrays: Iterable[Any]) -> None:
        """Look at the end whether somebody still refers to these arrays, or to what they are views of."""
        for h in arrays:
            if type(h) is VirtualArray:
                self.arrays += map(weakref.ref, (h,) if type(h._root) is not VirtualArray else (h, h._root))

    def exchange(self, trace: weakref.ref, error: BaseException | None = None) -> bool:
        """Exchange what is still referred to, once the call is over; whether something was.

        error   what was raised, which refers to the function's variables"""
        if not self.escaped and not self._left(trace):
            return False
        near = self._near(trace, error)
        cycles = (1, 2) if near is None and not self.escaped and error is None else ()  # who calls itself is one
        for generation in cycles:
            gc.collect(generation)
            if not self._left(trace):
                return False
        referrers = _referrers if near is None else near.referrers
        watched = self._watched()
        if (live := trace()) is not None:
            _, arrays, numbers = _following(live, referrers)
            watched += arrays + numbers
        found = list({id(x): x for x in watched}.values())
        new = {id(x): r for x in found if (r := self._real(x)) is not x}
        new |= {id(c): inside(self.arguments, where) for c, where in self.escaped}
        put = [_put_objects(a, new) for a in self.objects]
        return any(put) | _exchanged(
            [x for x in (*found, *(c for c, _ in self.escaped)) if id(x) in new], new, referrers
        )

    def _watched(self) -> list:
        return [x for x in (r() for r in self.arrays) if x is not None]

    def _near(self, trace: weakref.ref, error: BaseException | None) -> Near | None:
        near = Near(self.roots if error is None else (error, *self.roots), trace, self._watched(), self.escaped)
        return near if near.all else None

    def _left(self, trace: weakref.ref) -> bool:
        return trace() is not None or any(r() is not None for r in self.arrays)

    def _real(self, x: Any) -> Any:
        """What a stand-in would have been, had nobody captured the function."""
        if type(x) is Live:
            return x.value
        own, leaf = self.inputs.get(id(x), (None, None))
        if own is not None and own() is x:
            return leaf
        value = read(x)
        if isinstance(value, onp.generic):
            return value
        own, leaf = self.inputs.get(id(x._root), (None, None))
        if own is not None and own() is x._root and isinstance(leaf, (*ARRAY_TYPES, Host)):
            root = array_of(leaf)
            return wrap(replay(read(root), x._steps), [root])
        return x if type(value) is Tracer else as_host_arrays(x)  # an outer trace has it


def _referrers(objects: list) -> list:
    """What refers to one of some objects, but for the tuple that gc is asked with, which CPython 3.14.10 also finds."""
    asked = tuple(objects)
    return [x for x in gc.get_referrers(*asked) if x is not asked]


def _following(trace: Any, referrers: Callable) -> tuple[list, list, list]:
    """The tracers of a trace, the arrays that hold them, and its numbers."""
    found = [x for x in referrers([trace]) if type(x) in (Tracer, Live) and x.trace is trace]
    tracers = [x for x in found if type(x) is Tracer]
    arrays = [x for x in referrers(tracers) if type(x) is VirtualArray]
    return tracers, arrays, [x for x in found if type(x) is Live]


class Near:
    """What some objects refer to, directly or not: the function's own variables and those of the functions that an
    exception went through.

    all   whether nothing else refers to what stands for what the trace computes, to the trace, and to what is watched
          or escaped: then the process need not be searched, which takes 0.2 s where there are a million objects
    """

    def __init__(self, roots: Sequence[Any], trace: weakref.ref, watched: list, escaped: list[tuple]) -> None:
        self.met: list = list({id(x): x for x in roots}.values())
        self.places: dict[int, list[int]] = {}  # by id: the places in `met` of what refers to it, once each time
        met = set(map(id, self.met))
        for i, x in enumerate(self.met):  # which grows
            shared = _of_a_module(x)
            for r in () if x is trace() else _parts(x):
                self.places.setdefault(id(r), []).append(i)
                if not shared and id(r) not in met and gc.is_tracked(r):
                    met.add(id(r))
                    self.met.append(r)
            if len(self.met) > NEAR:
                break
        live = [t for t in (trace(),) if t is not None]
        following = _following(live[0], self.referrers) if live else ([], [], [])
        copies = [c for c, _ in escaped]
        followed = [*live, *chain.from_iterable(following), *watched, *copies]
        lists = (roots, self.met, live, *following, followed, watched, copies, copies)  # `escaped` has them, too
        own = Counter(map(id, chain.from_iterable(lists)))
        x = r = None  # no variable here refers to them, too
        self.all = len(self.met) <= NEAR and all(
            references(operator.getitem, followed, i) == len(self.places.get(k, ())) + own[k]
            for i, k in enumerate(map(id, followed))
        )

    def referrers(self, objects: list) -> list:
        """As `_referrers`, among what was met."""
        places = {i for x in objects for i in self.places.get(id(x), ())}
        return [self.met[i] for i in sorted(places)]


def _of_a_module(x: Any) -> bool:
    return type(x) is dict and ("__builtins__" in x or "__spec__" in x)


def _parts(x: Any) -> list:
    """What an object refers to, but for graphs, what classes and backends share with the whole program, and what jit
    keeps."""
    if isinstance(x, (type, ModuleType, Node, Graph, Backend)):
        return []
    if type(x).__module__.startswith("minnp.core.jit.") and hasattr(x, "__wrapped__"):
        return [x.__wrapped__]
    return gc.get_referents(x)


def forget(error: BaseException | None) -> None:
    """Let go of the variables of the functions that an exception went through."""
    for e in causes(error):
        traceback.clear_frames(e.__traceback__)


# ------------------------------------------------------------------ exchanging
def _exchanged(old: list, new: dict[int, Any], referrers: Callable) -> bool:
    """Put new[id(x)] in the place of each x of `old`, whoever of the `referrers` holds it; whether somebody did."""
    found, met = False, [old]  # tuples whose ids are keys stay alive
    while met[-1]:
        mine = {id(met), *map(id, met)}  # no variable of a function within may hold what is looked for
        tuples: list = []
        for holder in referrers(met[-1]):
            if id(holder) in mine or id(holder) in new or type(holder) in OURS:
                continue
            if not isinstance(holder, (tuple, frozenset)):
                found |= _put(holder, new)
            elif _renewed(holder, new) is not holder:
                tuples.append(holder)
        met.append(tuples)
    return found


def _renewed(x: Any, new: dict[int, Any]) -> Any:
    """What takes the place of x: another tuple, if x is one that holds what is exchanged."""
    if id(x) in new or not isinstance(x, (tuple, frozenset)):
        return new.get(id(x), x)
    parts = []
    for e in x:
        parts.append(_renewed(e, new))
    if all(map(operator.is_, parts, x)):
        return x
    made = named(x, parts) if isinstance(x, tuple) else type(x)(parts)
    new[id(x)] = made
    return made


def _put(holder: Any, new: dict[int, Any]) -> bool:
    """Exchange what an object holds, by the base class's own methods: those of the user's see nothing of it."""
    if isinstance(holder, dict):
        return _put_items(holder, new)
    if isinstance(holder, (list, deque)):
        places = [i for i, v in enumerate(holder) if id(v) in new]
        for i in places:
            (list if isinstance(holder, list) else deque).__setitem__(holder, i, new[id(holder[i])])
        return bool(places)
    if isinstance(holder, set):
        elements = [v for v in holder if id(v) in new]
        for v in elements:
            set.discard(holder, v)
            set.add(holder, new[id(v)])
        return bool(elements)
    if type(holder) is CellType:
        holder.cell_contents = new[id(holder.cell_contents)]
        return True
    if type(holder) in SUSPENDED:
        return _put_locals(getattr(holder, SUSPENDED[type(holder)]), new)
    if type(holder) is FunctionType and (defaults := _renewed(holder.__defaults__, new)) is not holder.__defaults__:
        holder.__defaults__ = defaults
        return True
    if isinstance(holder, partial) and (args := _renewed(holder.args, new)) is not holder.args:
        holder.__setstate__((holder.func, args, holder.keywords, vars(holder)))
        return True
    if isinstance(holder, BaseException) and (args := _renewed(holder.args, new)) is not holder.args:
        holder.args = args
    found = False
    for c in type(holder).__mro__:
        for member in [m for m in vars(c).values() if type(m) is MemberDescriptorType]:
            try:
                value = member.__get__(holder)
                if id(value) in new:
                    member.__set__(holder, new[id(value)])
                    found = True
            except (AttributeError, TypeError):  # empty, or read-only
                continue
    attributes = getattr(holder, "__dict__", None)  # which the interpreter makes only when it is asked for
    return found | (type(attributes) is dict and _put_items(attributes, new))


def _put_objects(array: Host, new: dict[int, Any]) -> bool:
    """Exchange the elements of an array of objects, and what containers among them are exchanged for."""
    elements = array.reshape(-1) if array.flags.c_contiguous else array.flat
    places = [(i, r) for i, x in enumerate(elements) if (r := _renewed(x, new)) is not x]
    for i, r in places:
        elements[i] = r
    return bool(places)


def _put_items(holder: dict, new: dict[int, Any]) -> bool:
    if any(id(k) in new for k in holder):
        base = OrderedDict if isinstance(holder, OrderedDict) else dict
        items = [(new.get(id(k), k), new.get(id(v), v)) for k, v in holder.items()]
        base.clear(holder)
        base.update(holder, items)
        return True
    changed = {k: new[id(v)] for k, v in holder.items() if id(v) in new}
    classes = gc.get_referrers(holder) if changed and "__module__" in holder else ()  # it may be a class's
    for c in [c for c in classes if isinstance(c, type) and all(vars(c).get(k) is holder[k] for k in changed)]:
        for k, v in changed.items():
            type.__setattr__(c, k, v)  # which remembers what it looked up
        return True
    for k, v in changed.items():
        dict.__setitem__(holder, k, v)
    return bool(changed)


def _put_locals(frame: FrameType | None, new: dict[int, Any]) -> bool:
    """Exchange the variables of a generator that waits."""
    if frame is None:
        return False
    variables = frame.f_locals
    names = [k for k, v in variables.items() if id(v) in new]
    for k in names:
        variables[k] = new[id(variables[k])]
    if names and sys.version_info < (3, 13):  # where it is a copy (PEP 667)
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return bool(names)
