"""checkpoint: a function's rows are recorded without their results, and run again when a gradient wants those.

Its Python runs once. While it does, the tapes above everything else are taken off its arguments, and a `Recording`
takes their place: a list of rows, of which it keeps the constants (arrays from outside, masks, indices, random draws)
as a tape keeps them, but no result that depends on what is differentiated. So what the function reads may change later,
and draws are not drawn anew. Afterwards every tape has one node for all of it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ... import errors
from ..arrays.array import ARRAY_TYPES, read, root_of
from ..arrays.saved import kept_params, safe
from ..arrays.writing import release
from ..rows.dispatch import bind
from ..rows.primitive import CONSTANT, TABLE, Joint, Primitive
from ..rows.pytree import tree_leaves
from ..rows.state import state
from ..rows.value import Host, Tracer, concrete, overlapping, owner
from .cotangents import all_followed, followed
from .tape import OUTPUT, GradTrace


class Recording(GradTrace):
    """The rows of one call, in turn; `nodes` are a tape's, with constants alone among their arrays.

    tapes     those that were taken off the values, by level
    entered   id of a value with a tape -> (the value, its tracer here)
    tracers   those of its rows' results that live, as long as the function runs; looked through at so many as `room`
    results   the numbers of the nodes whose values live on
    leaves    those of the values with tapes, which the results need
    needed    the numbers of all nodes that the results need
    """

    __slots__ = ("entered", "leaves", "needed", "results", "room", "tapes", "tracers")

    def __init__(self, tapes: dict[int, GradTrace]) -> None:
        super().__init__()
        self.tapes, self.entered = tapes, {}
        self.tracers: list[Tracer] = []
        self.room = 16
        self.results: list[int] = []
        self.leaves: list[int] = []
        self.needed: set[int] = set()

    def enter(self, value: Any) -> Tracer:
        """The tracer here of a value that comes with tapes."""
        if id(value) not in self.entered:
            below = without(value, self.tapes)
            self.lent.append(below)
            self.nodes.append((None, None, (), (value,), None, value.shape, value.dtype))
            t = Tracer(self, below, len(self.nodes) - 1)
            self.entered[id(value)] = value, t
        return self.entered[id(value)][1]

    def watched(self, value: Any) -> bool:
        """Whether a tape of ours watches a value. One that was not known yet becomes ours."""
        lowest, ours = min(self.tapes), False
        while type(value) is Tracer:
            trace = value.trace
            if trace.alive and trace.level >= lowest:
                if not isinstance(trace, GradTrace):
                    raise errors.TracedValueError(
                        "a function under checkpoint reads a traced array from outside its arguments that belongs to "
                        f"another transformation ({type(trace).__name__}): pass it in as an argument"
                    )
                self.tapes[trace.level] = trace
                ours = True
            value = value.value
        return ours

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        mine = [type(v) is Tracer and v.trace is self for v in values]
        if any(type(v) is Tracer and not m and self.watched(v) for v, m in zip(values, mine, strict=True)):
            values = [self.enter(v) if not m and self.watched(v) else v for v, m in zip(values, mine, strict=True)]
            mine = [type(v) is Tracer and v.trace is self for v in values]
        raw = [v.value if m else v for v, m in zip(values, mine, strict=True)]
        kept, again = [None if m else v for v, m in zip(values, mine, strict=True)], params
        if params.get("donate") and not mine[0]:  # the kernel writes into the constant itself
            kept[0], again = copied(values[0]), {**params, "donate": False}
        y = bind(row, raw, params)
        if row.vjp is CONSTANT:
            return y
        if row.view and mine == [True] and self.nodes[values[0].node][0] is None and overlapping(y, raw[0]):
            # a part of what was there before is read for itself, so that its cotangent is no larger than it
            shown = bind(row, self.nodes[values[0].node][3], params)
            if type(shown) is Tracer:
                t = self.enter(shown)
                t.view = (values[0], row, kept_params(params))
                return t
        parents = [v.node if m else -1 for v, m in zip(values, mine, strict=True)]
        return self.recorded(row, values, kept_params(again), parents, kept, y)

    def recorded(self, row: Primitive, values: Any, params: dict, parents: Any, raw: Any, y: Any) -> Any:
        nodes, kept = self.nodes, [v if v is None else safe(v) for v in raw]
        if type(y) in (tuple, list):
            nodes.append((row, params, parents, kept, None, None, None))
            first, out = len(nodes) - 1, []
            for k, (o, follow) in enumerate(zip(*all_followed(row, y, [p >= 0 for p in parents]), strict=True)):
                if follow:
                    o = self._made((OUTPUT, k, (first,), None, None, o.shape, o.dtype), o)
                out.append(o)
            return type(y)(out)
        if not hasattr(y, "dtype") and not hasattr(y := followed(row, y), "dtype"):
            return y
        if self._is_constant(y.dtype, parents):
            return y
        view = None
        if row.view and type(values[0]) is Tracer and values[0].trace is self and overlapping(y, values[0].value):
            view = (values[0], row, params)
        return self._made((row, params, parents, kept, None, y.shape, y.dtype), y, view)

    def _made(self, node: tuple, y: Any, view: Any = None) -> Tracer:
        self.nodes.append(node)
        t = Tracer(self, y, len(self.nodes) - 1, view)
        if len(self.tracers) >= self.room:
            self.tracers = self.living()
            self.room = 2 * len(self.tracers) + 16
        self.tracers.append(t)
        return t

    def living(self) -> list[Tracer]:
        """The tracers that somebody else holds too, and with them those they are views of."""
        living, tracers, alone = [], self.tracers, 0
        tracers.append(Tracer(self, None, 0))
        while tracers:  # the last first: a view holds what it is of
            t = tracers.pop()
            count = sys.getrefcount(t)  # first of one that nobody holds, by the same instruction
            if alone and count > alone:
                living.append(t)
            alone = alone or count
        living.reverse()
        return living

    # -------------------------------------------------------------- the end
    def close(self) -> None:
        """The function has ended: what lives on of its values gets a node on each tape."""
        roots = [h for root in self.hidden.values() if (h := root()) is not None]
        for tape in self.tapes.values() if self.busy else ():  # which watch what was written here, from now on
            for h in (None, *roots):
                tape.keep_busy(h)
        self.hidden.clear()
        self.finish()
        nodes, inputs = self.nodes, [t for _, t in self.entered.values()]
        living, self.tracers, self.entered = self.living(), [], {}
        self.results = [t.node for t in living]
        needed = self.needed = set(self.results)
        for n in range(len(nodes) - 1, -1, -1):
            if n in needed:
                needed.update(p for p in nodes[n][2] if p >= 0)
        self.leaves = [n for n, node in enumerate(nodes) if node[0] is None and n in needed]
        values = [nodes[n][3][0] for n in self.leaves]
        for t in inputs:
            t.value, t.view = nodes[t.node][3][0], None
        for n, node in enumerate(nodes):
            if node[0] is None or n not in needed:
                nodes[n] = (None, None, (), None, None, node[5], node[6])
        for t, y in zip(living, attached(self, values, [t.value for t in living], self.tapes), strict=True):
            t.value, t.view = y, None
        for h in roots:
            read(h)
        self.lent, self.tapes = [], {}

    def replay(self, leaves: Sequence[Any]) -> list:
        """The results, from the values of `leaves`."""
        last = {p: n for n, node in enumerate(self.nodes) for p in node[2]}
        for n in self.results:
            last[n] = len(self.nodes)
        made, given = dict(zip(self.leaves, leaves, strict=True)), set(self.leaves)
        written = any(isinstance(params, dict) and params.get("donate") for _, params, *_ in self.nodes)
        sharing: dict[int, list[int]] = {}  # where memory is written, the values that may lie in it
        for n, v in made.items() if written else ():
            sharing.setdefault(_memory(v), []).append(n)
        for n, (row, params, parents, arrays, _, _, _) in enumerate(self.nodes):
            if row is None:
                continue
            if row is OUTPUT:
                made[n] = made[parents[0]][params]
            else:
                values = [made[p] if p >= 0 else v for p, v in zip(parents, arrays, strict=True)]
                for p in set(parents):
                    if p >= 0 and last[p] == n:
                        del made[p]
                if params.get("donate") and type(base := concrete(values[0])) is Host:
                    release(base)
                    for p in sharing.pop(_memory(base), ()):
                        if p in made:  # it is read again, as it was before the write
                            made[p] = copied(made[p])
                    if parents[0] in given:
                        values[0] = copied(values[0])
                made[n] = rerun(params["record"], values) if row is CHECKPOINT else bind(row, values, params)
                if written:
                    sharing.setdefault(_memory(made[n]), []).append(n)
                del values
        return [made[n] for n in self.results]


def _memory(value: Any) -> int:
    """A name of the memory that a value is in, or 0."""
    base = concrete(value) if hasattr(value, "dtype") else None
    return id(owner(base)) if type(base) is Host else 0


def copied(value: Any) -> Any:
    """A copy of a constant that is about to be written."""
    if type(value) is Tracer:
        return Tracer(value.trace, copied(value.value), value.node)
    return value.copy(order="K") if isinstance(value, Host) else value


def without(value: Any, tapes: dict[int, GradTrace]) -> Any:
    """A value without the tracers of these tapes, which are above all others."""
    while type(value) is Tracer and (value.trace.level in tapes or not value.trace.alive):
        value = value.value
    return value


def tapes_of(values: Sequence[Any]) -> dict[int, GradTrace]:
    """The tapes that watch values above every other transformation, by level."""
    found: dict[int, Any] = {}
    for v in values:
        while type(v) is Tracer:
            if v.trace.alive:
                found[v.trace.level] = v.trace
            v = v.value
    others = max((level for level, trace in found.items() if not isinstance(trace, GradTrace)), default=0)
    return {level: trace for level, trace in found.items() if level > others}


def attached(record: Recording, leaves: Sequence[Any], ys: list, tapes: dict[int, GradTrace]) -> list:
    """The results of a recording as these tapes see them: on each, one node makes them all of its leaves."""
    for level in sorted(tapes):
        tape = tapes[level]
        values = [without(v, {k: t for k, t in tapes.items() if k > level}) for v in leaves]
        mine = [type(v) is Tracer and v.trace is tape for v in values]
        if any(mine) and ys and tape.alive:
            parents = [v.node if m else -1 for v, m in zip(values, mine, strict=True)]
            kept = type(tape) is not Recording
            raw = [v if not m else v.value if kept else None for v, m in zip(values, mine, strict=True)]
            ys = list(tape.recorded(CHECKPOINT, values, {"record": record}, parents, raw, tuple(ys)))
    return ys


def rerun(record: Recording, leaves: Sequence[Any]) -> list:
    """The results of a recording once more, of leaves that may have tapes; these keep nothing of what is between."""
    tapes = tapes_of(leaves)
    return attached(record, leaves, record.replay([without(v, tapes) for v in leaves]), tapes)


def _pull(wanted: Sequence[bool], g: Any, y: Any, *leaves: Any, record: Recording) -> list:
    """Cotangents of a recording's leaves: its rows run again, on a tape."""
    tape, values, starts = GradTrace(), list(leaves), []
    for i, (leaf, want) in enumerate(zip(leaves, wanted, strict=True)):
        if want:
            values[i] = tape.start(leaf)
            starts.append(i)
    state.tapes[id(tape)] = tape
    try:
        outs = record.replay(values)
        del values
        seeds = [(o.node, c) for o, c in zip(outs, g) if c is not None and type(o) is Tracer and o.trace is tape]
        del outs
        tape.finish()
        grads = iter(tape.backward(seeds, len(starts)))
    finally:
        tape.finish()
        del state.tapes[id(tape)]
    cotangents = [next(grads) if i in starts else None for i in range(len(leaves))]
    return [zeros(leaf) if want and d is None else d for leaf, want, d in zip(leaves, wanted, cotangents)]


def zeros(x: Any) -> Any:
    return bind(TABLE["zeros_like"], (x,), {})


CHECKPOINT = Primitive("checkpoint", lambda *leaves, record: tuple(record.replay(leaves)), vjp=Joint(_pull), saves="in")


def run(f: Callable, args: tuple, kwargs: dict) -> Any:
    """f(*args, **kwargs), recorded for the tapes that watch the arguments."""
    roots = [root_of(x) for x in tree_leaves((args, kwargs)) if type(x) in ARRAY_TYPES]
    tapes = tapes_of([read(h) for h in roots])
    if not tapes:
        return f(*args, **kwargs)
    record = Recording(tapes)
    for h in roots:
        value = read(h)
        if type(value) is Tracer and value.trace is not record and record.watched(value):
            h._value = record.enter(value)
        del value
    state.tapes[id(record)] = weakref.proxy(record)  # writes ask it as long as a tape has it
    weakref.finalize(record, state.tapes.pop, id(record), None)
    try:
        return f(*args, **kwargs)
    finally:
        record.close()
