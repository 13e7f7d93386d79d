"""Fused rows: one NumPy kernel forward, one backward, and a definition in rows, from which all else follows.

A loop over time steps or a normalisation costs far more as a chain of rows than as one kernel; but its second
derivative is seldom asked for, and then correctness is all that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.rows.primitive import Joint, Primitive, primitive
from ..core.rows.value import Tracer
from ..core.transforms.tape import GradTrace


def pulled(f: Callable, values: Sequence[Any], wanted: Sequence[bool], cotangents: Sequence[Any]) -> list:
    """The cotangents of `values` under f(*values) -> several values, f written in rows; None where nothing flows.

    cotangents   one for each result of f, or None
    """
    trace = GradTrace()
    inputs = [trace.start(v) if w else v for v, w in zip(values, wanted, strict=True)]
    try:
        results = f(*inputs)
    finally:
        trace.finish()
    seeds = [
        (y.node, g)
        for y, g in zip(results, cotangents, strict=True)
        if g is not None and type(y) is Tracer and y.trace is trace
    ]
    grads = iter(trace.backward(seeds, sum(wanted)))
    return [next(grads) if w else None for w in wanted]


def fused(
    name: str,
    forward: Callable,
    backward: Callable,
    definition: Callable,
    main: int,
    worth_back: Callable | None = None,
    **facts: Any,
) -> Primitive:
    """The row `name`, whose gradient is a fused row too.

    forward      (*arrays, **params) -> a tuple: `main` results, then others that the backward kernel wants kept
    backward     (wanted, g, y, *arrays, **params) -> a tuple with a cotangent for each array, None where not wanted;
                 g has the cotangents of the main results (None where nothing flowed), y all that forward returned
    definition   (*arrays, **params) -> all that forward returns, written in rows
    worth_back   the gradient's `worth`: given the arguments of `forward`
    """

    def first(wanted: Sequence[bool], g: Sequence[Any], y: Sequence[Any], *arrays: Any, **params: Any) -> Sequence:
        if any(cotangent is not None for cotangent in g[main:]):  # someone uses what was kept
            return pulled(partial(definition, **params), arrays, wanted, g)
        given = [cotangent for cotangent in g[:main] if cotangent is not None]
        flows = tuple(cotangent is not None for cotangent in g[:main])
        return back(*given, *y, *arrays, layout=(flows, len(y), tuple(wanted)), **params)

    def split(values: Sequence[Any], layout: tuple) -> tuple[list, Sequence, Sequence]:
        """(cotangents of the main results, results, arrays) among the arguments of `back`."""
        flows, results, _ = layout
        given = iter(values[: sum(flows)])
        g = [next(given) if flow else None for flow in flows]
        return g, values[sum(flows) : sum(flows) + results], values[sum(flows) + results :]

    def kernel(*values: Any, layout: tuple, **params: Any) -> tuple:
        g, y, arrays = split(values, layout)
        return tuple(backward(layout[2], g, y, *arrays, **params))

    def second(asked: Sequence[bool], h: Sequence[Any], _: Any, *values: Any, layout: tuple, **params: Any) -> list:
        # The results are functions of the arrays: the gradient is differentiated as one of g and the arrays alone.
        flows, results, wanted = layout
        start = sum(flows)
        own = [i for i in range(len(values)) if not start <= i < start + results]

        def gradient(*given: Any) -> list:
            g, _, arrays = split([*given[:start], *[None] * results, *given[start:]], layout)
            return pulled(partial(definition, **params), arrays, wanted, [*g, *[None] * (results - len(g))])

        grads = pulled(gradient, [values[i] for i in own], [asked[i] for i in own], h)
        places = dict(zip(own, grads, strict=True))
        return [places.get(i) for i in range(len(values))]

    back = Primitive(f"{name}_back", kernel, vjp=Joint(second))
    if worth_back is not None:
        back.worth = lambda backend, values, params: worth_back(backend, split(values, params["layout"])[2], params)
        back.kernels = {"torch": back.name}  # it is not in the table, where kernels are looked up by name
    return primitive(name, numpy=forward, vjp=Joint(first), **facts)
