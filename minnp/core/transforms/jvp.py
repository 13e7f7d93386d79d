"""Forward mode: a tracer carries its tangent. jvp, and the derivatives built on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..arrays import devices
from ..arrays.array import ARRAY_TYPES, array_of, array_value, as_host_arrays, ndarray, read
from ..arrays.saved import kept_params
from ..rows.dispatch import bind
from ..rows.primitive import CONSTANT, TABLE, Joint, Primitive
from ..rows.pytree import tree_flatten, tree_map
from ..rows.state import recording, state
from ..rows.value import Buffer, Host, Tracer, overlapping
from .cotangents import INEXACT, all_followed, followed, no_rule, restore, unbroadcast
from .grad import argument_value, has_slope, staged
from .tape import GradTrace
from .trace import Trace


class JvpTrace(Trace):
    """One forward-mode transformation: `node` of its tracers is the tangent (a value of the same shape)."""

    __slots__ = ()

    def process(self, row: Primitive, values: Any, params: dict) -> Any:
        primals, tangents = [], []
        for v in values:
            mine = type(v) is Tracer and v.trace is self
            primals.append(v.value if mine else v)
            tangents.append(v.node if mine else None)
        y = bind(row, primals, params)
        if row.vjp is CONSTANT:
            return y
        if "donate" in params:
            params = {k: v for k, v in params.items() if k != "donate"}
        several = type(y) in (tuple, list)
        if several:
            y, follows = all_followed(row, y, [t is not None for t in tangents])
        elif not hasattr(y, "dtype"):
            y = followed(row, y)
        kinds = [getattr(o, "dtype", INT).kind for o in (y if several else (y,))]
        if not (any(follows) if several else kinds[0] in INEXACT):
            moving = [i for i, t in enumerate(tangents) if t is not None]
            if moving and any(kind in "OVSU" for kind in kinds):  # numbers in a form that has no tangents
                raise no_rule(row, moving[0], primals[moving[0]].shape, primals[moving[0]].dtype)
            return y
        t = tangent(row, y, primals, tangents, params)
        if several:
            moves = zip(y, t, follows, strict=True)
            return type(y)(Tracer(self, o, fit(d, o)) if follow else o for o, d, follow in moves)
        view = None
        if row.view and type(values[0]) is Tracer and overlapping(y, values[0]):
            view = (values[0], row, kept_params(params))
        return Tracer(self, y, fit(t, y), view)


INT = onp.dtype(int)


def fit(t: Any, y: Any) -> Any:
    """A tangent in the shape and dtype of what it belongs to."""
    if t.shape != y.shape:
        t = unbroadcast(t, y.shape)
    return t if t.dtype == y.dtype else restore(t, y.dtype, TABLE["add"], 0)


def tangent(row: Primitive, y: Any, primals: list, tangents: list, params: dict) -> Any:
    """The tangent of y = row(*primals) along `tangents` (None: constant)."""
    rule = row.jvp
    if type(rule) is Joint:
        return rule.rule(tangents, y, *primals, **params)
    if rule == "linear":
        return bind(row, [zeros(p) if t is None else t for p, t in zip(primals, tangents, strict=True)], params)
    if rule == "multilinear":
        terms = [
            bind(row, [*primals[:i], t, *primals[i + 1 :]], params) for i, t in enumerate(tangents) if t is not None
        ]
        return _total(terms)
    if rule is None:
        return _transposed(row, y, primals, tangents, params)
    rules = row.vjp if rule == "elementwise" else rule
    terms = []
    for i, t in enumerate(tangents):
        if t is None or (type(rules) is list and i < len(rules) and rules[i] is CONSTANT):
            continue
        each = rules[i] if type(rules) is list and i < len(rules) else None
        if each is None:
            return _transposed(row, y, primals, tangents, params)
        terms.append(each(t, y, *primals, **params))
    if not terms:  # all that moves are arguments of which the result is locally constant
        return zeros(y)
    return _total(terms)


def _total(terms: list) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = tuple(a + b for a, b in zip(total, term, strict=True)) if type(total) is tuple else total + term
    return total


def zeros(x: Any) -> Any:
    """Zeros like a value, or like each of several; a number's zero is a number."""
    if type(x) in (tuple, list):
        return type(x)(map(zeros, x))
    if isinstance(x, (Tracer, Buffer)):
        return bind(TABLE["zeros_like"], (x,), {})
    if isinstance(x, (Host, onp.generic)):
        return onp.zeros(x.shape, x.dtype)
    return 0 if isinstance(x, (int, float, complex)) else x


def _transposed(row: Primitive, y: Any, primals: list, tangents: list, params: dict) -> Any:
    """A tangent from the reverse rules alone: u -> <vjp(u), t> is linear in u, and its gradient is the tangent of y."""
    trace = GradTrace()
    several = type(y) in (tuple, list)
    ys = y if several else (y,)
    us = [zeros(o) if getattr(o, "dtype", INT).kind in INEXACT else None for o in ys]
    boxed = [None if u is None else trace.start(u) for u in us]
    g = tuple(boxed) if several else boxed[0]
    wanted = [t is not None for t in tangents]
    every = row.vjp.rule(wanted, g, y, *primals, **params) if type(row.vjp) is Joint else None
    total = None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        if every is not None:
            cotangent = every[i]
        else:
            rule = row.rule(i)
            if rule is None:
                raise no_rule(row, i, primals[i].shape, primals[i].dtype)
            cotangent = rule(g, y, *primals, **params) if rule is not CONSTANT else None
        if cotangent is None:
            continue
        if cotangent.shape != t.shape:
            cotangent = unbroadcast(cotangent, t.shape)
        part = bind(TABLE["sum"], (cotangent * t,), {})
        total = part if total is None else total + part
    trace.finish()
    if not (type(total) is Tracer and total.trace is trace):
        grads = [None] * len(us)
    else:
        grads = trace.backward([(total.node, onp.ones((), total.dtype))], sum(u is not None for u in us))
    flowed = iter(grads)
    out = []
    for o, u in zip(ys, us, strict=True):
        d = next(flowed) if u is not None else None
        out.append(zeros(o) if d is None and u is not None else d)
    return type(y)(out) if several else out[0]


# ------------------------------------------------------------------ public
def jvp(f: Callable, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """(f(*primals), its directional derivative along `tangents`), in one forward pass.

    primals, tangents   tuples of the same structure: numbers, arrays or trees of them; Python's integers are floats

    Raises ValueError where a tangent's shape is not its primal's, TypeError for arguments that are no numbers, or are
    arrays of integers or truth values.

    >>> jvp(np.sin, (0.0,), (2.0,))
    (array(0.), array(2.))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp(f, primals, tangents) takes a tuple of arguments and one of tangents: jvp(f, (x,), (v,))")
    if len(primals) != len(tangents):
        raise ValueError(f"jvp wants a tangent for each of the {len(primals)} arguments; got {len(tangents)}")
    if state.busy and (tracer := recording()) is not None:
        return tracer.transformed("jvp", f, {}, (primals, tangents), {}, direct=True)
    trace = JvpTrace()

    def box(x: Any, t: Any) -> ndarray:
        value = has_slope(argument_value(x), "jvp")
        t = read(t) if type(t) in ARRAY_TYPES else onp.asarray(t)
        if t.shape != value.shape:
            raise ValueError(f"tangent of shape {t.shape} for an argument of shape {value.shape}")
        trace.lent.append(value)
        return array_of(Tracer(trace, value, fit(devices.alongside(t, value), value)))

    boxed = tree_map(box, tuple(primals), tuple(tangents))
    f = staged(f)
    try:
        out = f(*boxed)
        leaves, rebuild = tree_flatten(out)
        values = [read(o) if type(o) in ARRAY_TYPES else onp.asarray(o) for o in leaves]
    finally:
        trace.finish()
    slopes = [v.node if type(v) is Tracer and v.trace is trace else zeros(v) for v in values]
    return as_host_arrays(out), rebuild([array_of(array_value(s)) for s in slopes])
