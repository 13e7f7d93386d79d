"""bind: the one way a row is run. Live traces first, else a backend's kernel, else NumPy."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as onp

from ... import backends, errors
from . import policy as policies
from . import primitive as _primitive
from . import report
from .on_device import device_data, hosted, move_value, numpy_views, run_on_device
from .primitive import TABLE, Primitive
from .state import capture, state
from .value import STAND_INS, Buffer, Host, Tracer, lower

# A public NumPy function expressed in rows, by the NumPy function object; used when an argument is traced or lives on
# a backend. A definition works on arrays and has NumPy's signature, less `out`.
DEFINITIONS: dict[Any, Callable] = {}
# What else is known of a NumPy function, by the NumPy function object: see `knows`.
FACTS: dict[Any, dict[str, Any]] = {}


class Out(NamedTuple):
    """What a NumPy function does with `out=`, where that differs from a ufunc.

    sums     it adds up in the wider of the dtypes of its argument and of `out`: "all" dtypes, "floats" alone, or ""
    scans    it accumulates along an axis
    """

    sums: str = ""
    scans: bool = False


def knows(*functions: Any, **facts: Any) -> None:
    """Register facts of NumPy's and our functions.

    writes   the positions of the arguments that it writes to
    takes    how the fast path on devices calls it, if it is not a row: (form, names of rows), see api/install.py
    out      what it does with `out=`, an Out
    creates  the memory of its result: "dense" (new, in C order), "new", or "converted" (possibly its argument's)
    view     whether its result is a view of its argument, if not what the row of its name says: "always", "perhaps" (as
             memory lies), the (row name, params) that gives it, or a function of (arguments after the array, keywords)
             that returns these, or None where no row does
    device   whether it takes the Array API's `device=`
    pure     whether it neither draws random numbers nor writes to its arguments (functions of npx)
    dynamic  "shape": the shape of its result depends on the elements of its arguments
    """
    for function in functions:
        FACTS.setdefault(function, {}).update(facts)


def fact(function: Any, name: str, default: Any = None) -> Any:
    """A fact of a NumPy function (see `knows`)."""
    return FACTS.get(function, {}).get(name, default)


def defines(*functions: Any, **facts: Any) -> Callable:
    """Register the decorated definition for these NumPy functions (a row with NumPy's signature is one too).

    A definition that returns NotImplemented leaves the call to the function itself: values, and no gradient.
    facts   what else is known of the functions: see `knows`
    """
    knows(*functions, **facts)

    def register(definition: Callable) -> Callable:
        for function in functions:
            DEFINITIONS[function] = definition
        return definition

    return register


def bind(row: Primitive, values: Any, params: dict) -> Any:
    """Run a row on values: the highest live trace among them processes it, else its kernel runs.

    values    NumPy arrays, scalars, Buffers, tracers
    returns   a value, or a tuple of them for rows with several outputs
    """
    top = device = None
    for v in values:
        t = type(v)
        if t is Tracer:
            trace = v.trace
            if not trace.alive:
                return bind(row, [lower(v) for v in values], params)
            if top is None or trace.level > top.level:
                top = trace
        elif t is Buffer:
            device = v.backend
    if state.busy != state.written:
        watching = capture.get()
        if watching is not None and top is not None and top.level > watching.level:
            values = watching.lifted(values)  # rules compute with them, and what they compute is recorded
        elif watching is not None:
            top = watching
        elif params:
            params = concrete_params(params)
        if (batch := indexing(params)) is not None and (top is None or batch.level > top.level):
            top = batch
        if top is None and (device is None or policies.current().only or not policies.current().keeps(device)):
            return _choose(row, values, params)
    if top is not None:
        return top.process(row, values, params)
    if device is not None and not device.shares_host and not row.anywhere:
        try:
            return run_on_device(device, row, values, params)
        except errors.BackendUnsupportedError as refusal:
            return fall_back(row, numbers(values), params, device, str(refusal))
    if row.worth is not None and any(row.worth(name, values, params) for name in backends.installed()):
        return _choose(row, values, params)
    row.calls += 1
    return row.fast(*values, **params)


def indexing(x: Any) -> Any:
    """The highest live trace that batches an index in a row's parameters; None if none does."""
    t = type(x)
    if t is Tracer:
        x = lower(x)
        found = None
        while type(x) is Tracer:
            if x.trace.batched and (found is None or x.trace.level > found.level):
                found = x.trace
            x = lower(x.value)
        return found
    if t is dict:
        x = x.values()
    elif t is not tuple and t is not list:
        return None
    found = [trace for trace in map(indexing, x) if trace is not None]
    return max(found, key=lambda trace: trace.level) if found else None


def concrete_params(x: Any) -> Any:
    """A row's parameters with the values themselves where those of a capture that has ended stand for them: what a tape
    recorded while it lasted."""
    t = type(x)
    if t is Tracer:
        return lower(x)
    if t in STAND_INS:
        return x.value
    if t is tuple or t is list:
        new = [concrete_params(v) for v in x]
        return x if all(a is b for a, b in zip(x, new)) else t(new)
    if t is dict:
        named = {k: concrete_params(v) for k, v in x.items()}
        return x if all(x[k] is v for k, v in named.items()) else named
    if t is slice:
        return slice(concrete_params(x.start), concrete_params(x.stop), concrete_params(x.step))
    return x


def numbers(values: Any) -> Any:
    """Values with the numbers themselves where numbers of a capture that has ended stand for them."""
    if STAND_INS.isdisjoint(map(type, values)):
        return values
    return [v.value if type(v) in STAND_INS else v for v in values]


def _choose(row: Primitive, values: Any, params: dict) -> Any:
    """Run a row on plain values with the best kernel the policy allows, and record which."""
    if row.anywhere:
        return row.numpy(*values, **params)
    values = numbers(values)
    device = next((v.backend for v in values if type(v) is Buffer), None)
    if device is None and values and not any(type(v) is Host and v.ndim for v in values):
        return fall_back(row, values, params, None, "")  # numbers alone: nothing for a backend to gain
    policy = policies.current()
    why = ""
    for backend in policy.candidates(row, values, params, device):
        # Only operators of the table have kernels, and those that bring one: a fallback shares its name at most.
        listed = TABLE.get(row.name) is row or backend.name in row.kernels
        kernel = backend.kernel(row) if listed else None
        why = f"{backend.name} has no verified kernel" if kernel is None else ""
        if not (why or backend.refuses):
            why = backend.supports(row, values, params)
        if not why:
            start = perf_counter()
            try:
                out = run_on(backend, row, kernel, values, params, device)
            except errors.BackendUnsupportedError as refusal:
                why = str(refusal)
                continue
            ran = "numpy" if kernel is row.numpy else backend.name
            report.record(row.name, ran, perf_counter() - start, values, "")
            return out
    if policy.only and policy.backend is not None and (values or not row.view):  # making an array is no fallback
        raise errors.FallbackError(
            f"np.{row.name}({', '.join(map(describe, values))}) under policy {policy.name!r}: {why or 'no backend'}; "
            f"use 'prefer_{policy.backend}' to let NumPy run it"
        )
    return fall_back(row, values, params, device, why)


def fall_back(row: Primitive, values: Any, params: dict, device: Any, why: str) -> Any:
    """Run a row's NumPy kernel on host copies of the values, and record why; the result goes back `device`."""
    start = perf_counter()
    if device is None:
        out = row.numpy(*values, **params)
    else:
        out = move_value(row.numpy(*[v.host() if type(v) is Buffer else v for v in values], **hosted(params)), device)
        # a call without a row is not asked whether it shows its argument: asking would run it again, draws included
        known = row.view and len(values) == 1 and TABLE.get(row.name) is row
        if known and type(out) is Buffer and type(values[0]) is Buffer and numpy_views(row, values[0], params):
            out.view = (values[0], row, params)
    moved = sum(v.nbytes for v in values if type(v) is Buffer)
    report.record(row.name, "numpy", perf_counter() - start, values, why, moved)
    return out


def run_on(backend: Any, row: Primitive, kernel: Callable, values: Any, params: dict, device: Any) -> Any:
    """Call a backend's kernel: on NumPy arrays where it shares the host's memory, else on its own buffers."""
    if backend.shares_host:
        out = kernel(*[v.host() if type(v) is Buffer else v for v in values], **(hosted(params) if device else params))
        return onp.asarray(out) if row.scalar is False and isinstance(out, onp.generic) else out
    if device is backend:
        return run_on_device(device, row, values, params)
    data = [v.data if type(v) is Buffer else device_data(v, backend) for v in values]
    out = kernel(*data, **params)
    wrap = (lambda d: Buffer(d, backend)) if device is not None else backend.to_host
    return tuple(map(wrap, out)) if isinstance(out, (tuple, list)) else wrap(out)


def describe(value: Any) -> str:
    """A value in an error message: float32[3, 4], or the Python value itself."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."


def _call_values(row: Primitive, args: tuple, params: dict) -> Any:
    """A row called on values; core.array replaces this with one that also takes arrays."""
    return bind(row, args, params)


_primitive.call = _call_values
