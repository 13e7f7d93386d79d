"""Reverse mode: a linear list of nodes, walked backwards once.

A node is (row, params, parents, arrays, y, shape, dtype): `parents` are node numbers, -1 for arguments that are not
traced; `arrays` and `y` are what the row's rules read (its `saves`); an unsaved array is None or a Meta.
Un-broadcasting, dtype restore and accumulation are done here, once, for every row.
"""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..arrays.saved import EXPOSED, kept_params, safe, unseen
from ..arrays.writing import WRITE_VIEW
from ..cpu import combine
from ..rows.dispatch import bind
from ..rows.primitive import CONSTANT, Joint, Meta, Primitive, primitive
from ..rows.state import state
from ..rows.value import NUMBERS, Buffer, Host, Tracer, concrete, overlapping, owner
from .cotangents import (
    INEXACT,
    accumulate,
    all_followed,
    buffer_of_parts,
    followed,
    no_rule,
    numbers_only,
    part_added,
    private,
    restore,
    split_write,
    unbroadcast,
    whole,
    zeros_of,
)
from .trace import LEVELS, Trace

new = object.__new__
OUTPUT = Primitive("output", tuple.__getitem__)  # one of the several results of a row


class GradTrace(Trace):
    """One reverse-mode transformation.

    saved   for `release`: which nodes hold which memory, by id of its owner, for the first `indexed` nodes
    """

    __slots__ = ("indexed", "nodes", "saved")

    def __init__(self) -> None:
        self.level, self.alive, self.busy = next(LEVELS), True, False
        self.lent: list = []
        self.hidden = {}
        self.nodes: list = []
        self.saved: dict[int, list[int]] | None = None
        self.indexed = 0

    # -------------------------------------------------------------- forward
    def start(self, value: Any) -> Tracer:
        """The tracer of an input."""
        nodes = self.nodes
        if (type(value) is not Host or EXPOSED or value.base is not None) and unseen(value):
            given, value = value, onp.array(value) if type(value) is Host else safe(value)
            if type(given) is Host and not given.flags.writeable:
                value.flags.writeable = False  # the function may not write to it
        self.lent.append(value)
        t = new(Tracer)
        t.trace, t.value, t.node, t.view = self, value, len(nodes), None
        nodes.append((None, None, (), None, None, value.shape, value.dtype))
        return t

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        raw, parents, plain = [], [], state.busy == state.written and row.worth is None
        for v in values:
            if type(v) is Tracer:
                if v.trace is self:
                    parents.append(v.node)
                    v = v.value
                    raw.append(v)
                    if type(v) is Host:
                        continue
                else:
                    parents.append(-1)
                    raw.append(v)
                if type(v) is Tracer or type(v) is Buffer:
                    plain = False
            else:
                parents.append(-1)
                raw.append(v)
                if type(v) is Buffer:
                    plain = False
        if plain:
            row.calls += 1
            y = combine(row.fast, *raw) if row.elementwise and not params else row.fast(*raw, **params)
        else:
            y = bind(row, raw, params)
        return self.recorded(row, values, kept_params(params) if params else params, parents, raw, y)

    def recorded(self, row: Primitive, values: Any, params: dict, parents: Any, raw: Any, y: Any) -> Any:
        """What row(values) is on this tape, which holds the values `raw` of them at the nodes `parents`, and gave y."""
        nodes = self.nodes
        if type(y) is not Host:
            if type(y) in (tuple, list):
                return y if row.vjp is CONSTANT else self._several(row, params, parents, raw, y)
            if not hasattr(y, "dtype") and not hasattr(y := followed(row, y), "dtype"):
                return y
        dtype = y.dtype
        if row.vjp is CONSTANT:
            return y
        if self._is_constant(dtype, parents):
            return y
        if row is WRITE_VIEW:
            params = {k: v for k, v in params.items() if k != "donate"}
            if params["index"] is ... and not params["steps"]:
                parents[0] = -1  # all of it was overwritten: nothing flows to what was there
        saves = row.saves
        if saves == "in" or saves == "both":
            kept = [v if p >= 0 else safe(v) for v, p in zip(raw, parents)] if -1 in parents else raw
            nodes.append((row, params, parents, kept, y if saves == "both" else None, y.shape, dtype))
        else:
            kept = self._metas(raw, parents) if -1 in parents else None
            nodes.append((row, params, parents, kept, y if saves == "out" else None, y.shape, dtype))
        view = None
        if row.view:
            source = values[0]
            if type(source) is Tracer and overlapping(y, source):
                view = (source, row, params)
        t = new(Tracer)
        t.trace, t.value, t.node, t.view = self, y, len(nodes) - 1, view
        return t

    def _is_constant(self, dtype: onp.dtype, parents: Any) -> bool:
        """Whether a result of this dtype is locally constant in the inexact ones among its traced arguments."""
        if dtype.kind in "fcOVSU":  # texts tell numbers, too
            return False
        nodes = self.nodes
        return any(p >= 0 and nodes[p][6].kind in INEXACT for p in parents)

    def _metas(self, raw: list, parents: list) -> list:
        """Unsaved arguments: None for a traced one (its node knows its shape), a Meta for an array, or the number."""
        return [
            None if p >= 0 else Meta(v.shape, v.dtype) if isinstance(v, (Host, Buffer, Tracer)) else v
            for v, p in zip(raw, parents, strict=True)
        ]

    def _several(self, row: Primitive, params: dict, parents: list, raw: list, ys: Any) -> Any:
        """A row with several results: one node for the row (shape None), then one OUTPUT node for each result."""
        nodes = self.nodes
        first = len(nodes)
        saves = row.saves
        ys, follows = all_followed(row, ys, [p >= 0 for p in parents])
        if saves in ("in", "both"):
            arrays = [v if p >= 0 else safe(v) for v, p in zip(raw, parents)]
        else:
            arrays = self._metas(raw, parents)
        metas = tuple(Meta(y.shape, y.dtype) if hasattr(y, "dtype") else y for y in ys)
        nodes.append((row, params, parents, arrays, ys if saves in ("out", "both") else metas, None, None))
        out = []
        for k, y in enumerate(ys):
            if not follows[k]:
                out.append(y)
                continue
            nodes.append((OUTPUT, k, (first,), None, None, y.shape, y.dtype))
            out.append(Tracer(self, y, len(nodes) - 1))
        return type(ys)(out)

    # -------------------------------------------------------------- what writes ask
    def release(self, memory: Any) -> None:
        """Copy whatever this tape saved of `memory`, which is about to be written."""
        nodes, saved = self.nodes, self.saved
        if saved is None:
            saved = self.saved = {}
        index_kept(nodes, self.indexed, saved)
        self.indexed = len(nodes)
        copies: dict[int, tuple] = {}
        for n in saved.pop(id(memory), ()):
            row, params, parents, arrays, y, shape, dtype = nodes[n]
            arrays, y = private(arrays, memory, copies), private(y, memory, copies)
            if type(params) is dict:
                params = {k: private(v, memory, copies) for k, v in params.items()}
            nodes[n] = (row, params, parents, arrays, y, shape, dtype)

    # -------------------------------------------------------------- backward
    def backward(self, seeds: list[tuple[int, Any]], inputs: int, stops: Any = ()) -> list:
        """Cotangents of the first `inputs` nodes (None where nothing flowed), given (node, cotangent) seeds.

        stops   (node, function) from the last node down: the function is called with all cotangents once the walk has
                passed that node
        A cotangent in `owned` is a buffer made here that nothing else holds: it is added to in place.
        """
        nodes = self.nodes
        grads: list = [None] * len(nodes)
        owned: set[int] = set()
        made: set[int] = set()  # as `owned`, of cotangents that an outer tape follows
        last = -1
        for n, g in seeds:
            grads[n] = g if grads[n] is None else grads[n] + g
            if n > last:
                last = n
        for n in _downwards(nodes, grads, owned, last, inputs, stops):
            g = grads[n]
            if g is None:
                continue
            grads[n] = None
            row, params, parents, arrays, y, shape, _ = nodes[n]
            if row is OUTPUT:
                results = grads[parents[0]]
                if results is None:
                    results = grads[parents[0]] = {}
                results[params] = g
                continue
            arrays, y = whole(nodes, n)
            if shape is None:
                joint = type(row.vjp) is Joint
                g = tuple(g[k] if k in g else None if joint else zeros_of(o) for k, o in enumerate(y))
            rules = row.vjp
            in_place = row.accumulate
            parts = in_place is not None or row is WRITE_VIEW
            on_host = parts and (type(g) is Host or type(g) in NUMBERS) and numbers_only(arrays, params)
            if row is WRITE_VIEW and on_host and type(g) is Host and parents[0] >= 0 and grads[parents[0]] is None:
                # The old array's cotangent is g with the written part cleared: take g over, so T writes cost O(T).
                g, kept = split_write(g, n in owned, **params)
                grads[parents[0]] = kept
                owned.add(parents[0])
                rules, parents = [None, lambda g, y, *arrays, **params: g], [-1, parents[1]]
            elif type(rules) is Joint:
                parts = rules.rule([p >= 0 for p in parents], g, y, *arrays, **params)
                rules = lambda i, *_, parts=parts, **__: parts[i]
            for i, p in enumerate(parents):
                if p < 0:
                    continue
                _, _, _, _, _, pshape, pdtype = nodes[p]
                old = grads[p]
                if in_place is not None and i == 0 and g.dtype == pdtype:
                    if on_host and not isinstance(old, (Tracer, Buffer)):
                        in_place(buffer_of_parts(nodes, grads, owned, p), g, *arrays, **params)
                        continue
                    if len(arrays) == 1 and part_added(nodes, grads, owned, made, p, g, row, params):
                        continue
                if type(rules) is list:
                    rule = rules[i] if i < len(rules) else None
                    if rule is None:
                        raise no_rule(row, i, pshape, pdtype)
                    if rule is CONSTANT:
                        continue
                    gp = rule(g, y, *arrays, **params)
                elif rules is None:
                    raise no_rule(row, i, pshape, pdtype)
                else:
                    gp = rules(i, g, y, *arrays, **params)
                    if gp is None:
                        continue
                if gp.shape != pshape:
                    gp = unbroadcast(gp, pshape)
                if gp.dtype is not pdtype and gp.dtype != pdtype:
                    gp = restore(gp, pdtype, row, i)
                if old is None:
                    grads[p] = gp
                else:
                    accumulate(grads, p, gp, owned)
        return grads[:inputs]


def index_kept(nodes: list, start: int, by_owner: dict[int, list[int]]) -> None:
    """Add to a dict, id of an owner -> list, the numbers of the nodes from `start` on that keep some of its memory."""
    for n in range(start, len(nodes)):
        _, params, _, arrays, y, _, _ = nodes[n]
        _index(arrays, n, by_owner)
        _index(y, n, by_owner)
        for v in params.values() if type(params) is dict else ():
            _index(v, n, by_owner)


def _index(x: Any, n: int, by_owner: dict[int, list[int]]) -> None:
    if type(x) in (tuple, list):
        for v in x:
            _index(v, n, by_owner)
    elif isinstance(base := concrete(x), Host):
        by_owner.setdefault(id(owner(base)), []).append(n)


# (nodes, grads, owned, n, least) -> n, in C: does the nodes from n down that have one result; see install.py
sweep: Any = None


def _downwards(nodes: list, grads: list, owned: set, last: int, least: int, stops: Any) -> Any:
    """The numbers of the nodes that `backward` does, from `last` down to `least`, with its stops in between."""
    for stop, passed in (*stops, (least, None)):
        while last >= stop and (sweep is None or (last := sweep(nodes, grads, owned, last, stop)) >= stop):
            yield last
            last -= 1
        if passed is not None:
            passed(grads)


# The identity that a tape does not see through. A copy: a later write to x must not show in the constant.
primitive(
    "stop_gradient",
    lambda x: onp.array(x),
    vjp=CONSTANT,
    saves="",
    shape=lambda metas, params: metas[0],
    batch="alike",
    samples=lambda: [((onp.arange(3.0),), {})],
)
