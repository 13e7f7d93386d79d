"""grad and its relatives: a function in, a function that also (or only) gives derivatives out."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from types import MethodType
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

import numpy as onp

from ..arrays.array import ARRAY_TYPES, array_of, array_value, as_host_arrays, ndarray, on_host, read, virtual
from ..arrays.saved import expose
from ..rows.dispatch import bind, describe
from ..rows.primitive import TABLE
from ..rows.pytree import tree_flatten, tree_leaves
from ..rows.state import capture, recording, state
from ..rows.value import STAND_INS, Buffer, Host, Tracer, concrete
from .tape import INEXACT, GradTrace

F = TypeVar("F", bound=Callable)
P = ParamSpec("P")

# (function, capture or None) -> the function with its loops compiled; set by core.loops, which imports this module
staging: Any = None
compiling: ContextVar[bool] = ContextVar("minnp.compiling", default=False)  # whether jit runs a function, uncaptured
LEAVES = (ndarray, Host, int, float, complex, onp.generic)


def staged(f: Callable) -> Callable:
    """A function of the user's that a transformation runs: with its loops compiled where jit runs it."""
    if compiling.get():
        return staging(f, None)
    if state.busy and staging is not None and (watching := capture.get()) is not None and not watching.symbolic:
        return staging(f, watching)
    return f


def argument_value(x: Any, what: str = "argument") -> Any:
    """The value of a differentiable argument; Python and integer scalars become floats. Raises TypeError for others."""
    t = type(x)
    if t in ARRAY_TYPES:
        return read(x)
    if t is Host:
        expose(x)
        return x
    if t is int or t is float:
        return onp.float64(x)  # a scalar, as NumPy has it: `x += 1` makes another one
    if t in STAND_INS:
        return x.scalar()
    if isinstance(x, (complex, onp.generic)):
        return onp.asarray(x)[()]
    if hasattr(t, "holding"):  # a model
        instead = "differentiate with respect to its parameters, net.tree(), inside `with net.holding(tree)`"
    elif hasattr(t, "__array__") or hasattr(t, "asnumpy"):
        instead = "write np.asarray(x)"
    else:
        instead = "not an array, a number, or a tuple, list, dict, namedtuple or dataclass of them"
    shown = " ".join(f"{x!r:.60}".split())
    raise TypeError(f"cannot differentiate with respect to {what}: {shown} is a {t.__name__}, {instead}")


def has_slope(value: Any, who: str) -> Any:
    """The value of an argument that `who` moves. Raises TypeError for integers and truth values, which have no
    neighbours: what depends on them would have a derivative of zero."""
    if value.dtype.kind not in INEXACT:
        raise TypeError(
            f"{who} moves an argument that is {describe(value)}: only floats and complex numbers have derivatives. "
            "Pass x.astype(float), or let the function take what stays as it is from outside"
        )
    return value


class Pullback:
    """What `vjp` returns beside the value: cotangents of the result in, cotangents of the arguments out."""

    def __init__(
        self, trace: GradTrace, nodes: list, rebuild_out: Callable, starts: list, rebuild_args: Callable
    ) -> None:
        self.trace, self.nodes, self.rebuild_out, self.starts, self.rebuild_args = (
            trace,
            nodes,
            rebuild_out,
            starts,
            rebuild_args,
        )
        # The tape must see writes to what it saved for as long as it may be walked.
        weakref.finalize(self, state.tapes.pop, id(trace), None)

    def __call__(self, cotangent: Any) -> Any:
        gs = tree_leaves(cotangent)
        return self.rebuild_args(collect(self.values(gs), self.starts, gs))

    def values(self, gs: Sequence[Any]) -> list:
        """The cotangents of the arguments, None where none flowed, in memory that others may have, too."""
        if len(gs) != len(self.nodes):
            wanted = "1 cotangent" if len(self.nodes) == 1 else f"{len(self.nodes)} cotangents, one per result"
            raise ValueError(f"the pullback wants {wanted}; got {len(gs)}")
        seeds = [
            (n, _seed(read(g) if type(g) in ARRAY_TYPES else onp.asarray(g), meta))
            for (n, meta), g in zip(self.nodes, gs, strict=True)
            if n is not None
        ]
        return self.trace.backward(seeds, len(self.starts))


def _seed(g: Any, meta: Any) -> Any:
    if g.shape != meta.shape:
        if g.dtype.kind in "OSU":
            raise TypeError(f"a cotangent is a number or an array of numbers, got {g!r:.60}")
        raise ValueError(f"cotangent of shape {g.shape} for a result of shape {meta.shape}")
    if g.dtype != meta.dtype:
        g = bind(TABLE["astype"], (g,), {"dtype": meta.dtype})
    return g


def collect(grads: list, starts: list, foreign: Sequence[Any] = ()) -> list:
    """The gradients as arrays, each with memory of its own; zeros like the argument where none flowed."""
    out, seen = [], {id(a) for a in map(_host_of, foreign) if a is not None} if foreign else set()
    for g, x in zip(grads, starts):
        if g is None:
            g = bind(TABLE["zeros_like"], (x,), {}) if isinstance(x, (Tracer, Buffer)) else onp.zeros(x.shape, x.dtype)
        if type(g) is Host:
            flags = g.flags
            if not flags.owndata or id(g) in seen or not flags.writeable:
                g = g.copy()
            seen.add(id(g))
            out.append(on_host(g))
        else:
            # captured code writes to its gradients, and gives them back, as any other
            lies = concrete(g) if capture.get() is not None else None
            if type(lies) is Host and (id(lies) in seen or not lies.flags.writeable):
                g = bind(TABLE["copy"], (g,), {})
            seen.add(id(lies))
            out.append(array_of(array_value(g)))
    return out


def _host_of(x: Any) -> Any:
    return x if type(x) is Host else x._host if type(x) in ARRAY_TYPES else None


class Run:
    """One run of a function under a new tape: the boxed arguments, then the function's result, and, with has_aux, what
    it returned beside it."""

    __slots__ = ("aux", "out", "rebuilds", "starts", "trace", "values")

    def __init__(
        self, f: Callable, argnums: Sequence[int | str], args: tuple, kwargs: dict, has_aux: bool = False
    ) -> None:
        trace = self.trace = GradTrace()
        boxed, kwargs, starts, rebuilds = list(args), kwargs and dict(kwargs), [], []
        self.starts, self.rebuilds, met = starts, rebuilds, set()
        for k in argnums:
            k = k if type(k) is int or k in kwargs else position(f, k, args)
            if len(argnums) > 1:
                if (at := k % (len(args) or 1) if type(k) is int else k) in met:
                    raise ValueError(f"grad is asked for the gradient of argument {k!r} twice: {tuple(argnums)}")
                met.add(at)
            where: Any = kwargs if type(k) is str else boxed
            try:
                x = where[k]
            except (IndexError, KeyError):
                raise TypeError(absent("grad", f, k, args, kwargs)) from None
            if type(x) in ARRAY_TYPES or isinstance(x, LEAVES):
                value = x._host if type(x) in ARRAY_TYPES else None
                if value is None or state.busy:
                    value = argument_value(x)
                starts.append(value)
                h = virtual(trace.start(value))
                where[k] = h
                rebuilds.append(None)
            else:
                if x is None and len(argnums) == 1:  # an empty tree, of which nobody asks for a gradient
                    argument_value(x, f"argument {k!r}")
                leaves, rebuild = tree_flatten(x)
                values = [argument_value(leaf, f"argument {k!r}") for leaf in leaves]
                starts += values
                where[k] = rebuild([array_of(trace.start(v)) for v in values])
                rebuilds.append((len(leaves), rebuild))
        state.tapes[id(trace)] = trace
        f = staged(f)
        try:
            out, self.aux = f(*boxed, **kwargs), None
            if has_aux:
                out, self.aux = _with_aux(out)
            self.out = out
            self.values = [read(out)] if type(out) in ARRAY_TYPES else _values(out)
        except BaseException:
            self.forget()
            raise
        finally:
            trace.finish()

    def forget(self) -> None:
        """The tape will not be walked again: writes need not ask it any more, and what outlives it keeps none of it."""
        del state.tapes[id(self.trace)]
        self.trace.nodes = []

    def rebuild_args(self, grads: list) -> Any:
        """Gradients in the structure of the arguments, a list with one entry per argnum."""
        if not any(self.rebuilds):
            return grads
        out, at = [], 0
        for r in self.rebuilds:
            if r is None:
                out.append(grads[at])
                at += 1
            else:
                n, rebuild = r
                out.append(rebuild(grads[at : at + n]))
                at += n
        return out

    def node(self, value: Any) -> int | None:
        return value.node if type(value) is Tracer and value.trace is self.trace else None


def _values(out: Any) -> list:
    """The values of a function's results, in tree order."""
    return [read(o) if type(o) in ARRAY_TYPES else onp.asarray(o) for o in tree_leaves(out)]


def _ones(value: Any) -> Any:
    if type(value) in ONE:
        return ONE[type(value)]
    if type(concrete(value)) is Buffer:  # the cotangents live where the result does
        return bind(TABLE["ones_like"], (value,), {})
    if value.shape == ():
        return value.dtype.type(1)
    ones = onp.empty(value.shape, value.dtype)  # what onp.ones does, in half the time
    ones.fill(1)
    return ones


ONE = {t: t(1) for t in (onp.float32, onp.float64)}


def differentiate(
    f: Callable, argnums: Sequence[int | str], args: tuple, kwargs: dict, has_aux: bool, walk: Callable | None = None
) -> tuple:
    """(gradients per argnum, result, aux): the gradient of the sum of the result's elements.

    The result is as the function made it: see `as_host_arrays`.

    walk   (run, seeds) -> gradients of run.starts, instead of the walk over the tape alone
    """
    run = Run(f, argnums, args, kwargs, has_aux)
    aux = as_host_arrays(run.aux) if has_aux else None
    trace, starts, seeds = run.trace, run.starts, []
    try:
        for v in run.values:
            traced = type(v) is Tracer and v.trace is trace
            kind = (v.value if traced else v).dtype.kind
            if traced and kind in INEXACT:
                seeds.append((v.node, _ones(v.value)))
            if kind == "c":
                complex_of_real(v, starts)
        if not seeds:
            with_slope(run.values, run.out)
        elif len(seeds) > 1:
            raise several(run.values)
        grads = collect(trace.backward(seeds, len(starts)), starts) if walk is None else walk(run, seeds)
    finally:
        run.forget()
    return run.rebuild_args(grads), run.out, aux


def several(values: Sequence[Any]) -> TypeError:
    """The error of a function that returned a tree: of (loss, predictions) nobody wants the gradient of the sum."""
    return TypeError(
        f"the function returned {len(values)} results ({', '.join(map(describe, values[:4]))}), and a gradient is of "
        "one: has_aux=True is for a function that returns (result, something else); jacobian and vjp give a derivative "
        "of each; return the sum if its gradient is meant"
    )


def with_slope(values: Sequence[Any], out: Any) -> None:
    """Raise TypeError where none of a function's results, which are `out`, is of floats or complex numbers."""
    if not any(v.dtype.kind in INEXACT for v in values):
        returned = ", ".join(map(describe, values)) or f"{out!r} (is a return missing?)"
        raise TypeError(
            f"the function returned {returned}: only a float or complex result has a gradient. Integers and truth "
            "values have none: give the function floats, x.astype(float), or make its result one"
        )


def complex_of_real(z: Any, starts: list) -> None:
    """Raise TypeError for a complex result of real arguments: a real gradient has no place for its imaginary part."""
    if (x := next((x for x in starts if x.dtype.kind != "c"), None)) is not None:
        raise TypeError(
            f"the function returned {describe(z)} for an argument {describe(x)}: a real gradient would lose the "
            "imaginary part. Return np.real(y), np.imag(y) or np.abs(y), differentiate with respect to complex "
            "numbers, x.astype(complex), or take jacobian or jvp, which are complex there"
        )


def _with_aux(result: Any) -> tuple | list:
    """What a function with has_aux returned. Raises TypeError for anything but a pair."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"has_aux=True is for a function that returns (result, aux); it returned {result!r:.60}")
    return result


def function_of(name: str, f: Any) -> None:
    """Raise TypeError for what is no function: grad(f)(x) is easily written grad(f(x))."""
    if not callable(f):
        raise TypeError(
            f"{name} takes a function, got {f!r:.60} ({type(f).__name__}): it is {name}(f)(x), not {name}(f(x))"
        )


def position(f: Any, name: int | str, args: Sequence) -> int | str:
    """Where f's parameter of this name is among the arguments given by place; the name where it is none of them."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # of a function in C
        return name
    for k, p in enumerate(parameters[: len(args)]):
        if p.kind is p.VAR_POSITIONAL:
            break
        if p.name == name:
            return k
    return name


def absent(name: str, f: Any, k: int | str, args: Sequence, kwargs: dict) -> str:
    """Says that f was called without the argument k, which a transformation asks for."""
    return (
        f"{name} asks for argument {k!r} of {getattr(f, '__name__', f)!s}, which was called with {len(args)} "
        f"positional arguments and {', '.join(sorted(kwargs)) or 'none'} by name"
    )


def without(**elsewhere: str) -> Callable[[F], F]:
    """A decorator: TypeError for arguments that other libraries have and the function has not, with what is meant here.

    elsewhere: {another library's name of an argument: what to write}
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for name in options.keys() & elsewhere.keys():
                raise TypeError(f"{function.__name__} has no argument {name!r}; {elsewhere[name]}")
            return function(*args, **options)

        return cast(F, call)

    return decorate


class Derived(functools.partial):
    """What grad(f) and its like return: a function with f's name and text, which can be pickled where f can.

    run   what it does, a function inside the transformation `by`, which makes it of (f, **options)

    A partial function of no arguments, because Python calls that in C.
    """

    def __new__(cls, run: Callable, by: Callable, f: Callable, **options: Any) -> Derived:
        self = functools.update_wrapper(super().__new__(cls, run), run)
        self.made = by, f, options
        return self

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return by_name(self) or (_again, self.made)

    def __repr__(self) -> str:
        by, f, _ = self.made
        return f"<{by.__name__} of {repr(f)[1:-1] if isinstance(f, Derived) else getattr(f, '__qualname__', f)}>"


def _again(by: Callable, f: Callable, options: dict) -> Any:
    return by(f, **options)


def by_name(x: Any) -> str | None:
    """The name by which pickle finds what was made of a function: that of the function, if it stands in its place."""
    module, name = (getattr(x, fact, None) for fact in ("__module__", "__qualname__"))
    parts = name.split(".") if isinstance(name, str) else []
    found = functools.reduce(lambda at, part: getattr(at, part, None), parts, sys.modules.get(module or ""))
    return name if found is x else None


def argument_numbers(argnum: Any, argnums: Any = None) -> tuple[tuple, Callable[[list], Any]]:
    """(argument numbers or names, what makes of the list of their gradients what the user gets)."""
    given = argnum if argnums is None else argnums
    if isinstance(given, (int, str)):
        return (given,), operator.itemgetter(0)
    numbers = tuple(given) if isinstance(given, Iterable) and getattr(given, "shape", None) != () else ()
    if not numbers or not all(isinstance(k, (int, str)) for k in numbers):
        raise TypeError(
            f"argnum must be an int, a name, or a list, tuple or range of them; got {given!r:.60}. For the gradient at "
            "a point it is grad(f)(x), not grad(f, x)"
        )
    if argnums is not None or not isinstance(given, list):
        return numbers, tuple
    return numbers, operator.itemgetter(0) if len(numbers) == 1 else list


@overload  # type checkers would take the first of a ufunc's own signatures alone
def grad(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def grad(f: Callable[P, Any], argnum: Any = 0, *, argnums: Any = None, has_aux: bool = False) -> Callable[P, Any]: ...
def grad(f: Callable, argnum: Any = 0, *, argnums: Any = None, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of f with respect to its argument(s).

    argnum    an int or a name, for a bare gradient; a tuple or range of them, for a tuple of gradients, as JAX
              and autograd give it; or a list, for a list, as MinPy gives it: of one index ([0]) a bare gradient. An
              argument may be a number, an array, or nested tuples, lists, dicts, namedtuples and dataclasses of them
    argnums   the same as JAX spells it: of several, or of one in a list or a tuple, always a tuple of gradients
    has_aux   f returns (result, aux), and so does the new function: (gradient, aux)

    A result that is an array is differentiated as the sum of its elements; of several results only one may depend on
    the arguments. A gradient has its argument's shape and dtype; an argument that does not matter has zeros. Raises
    NotDifferentiableError where a gradient meets an operator without a rule, TypeError for arguments and results that
    are not float or complex, for several results, and for complex results of real arguments.

    >>> grad(lambda x: x**2)(3.0)
    array(6.)
    """
    function_of("grad", f)
    numbers, form = argument_numbers(argnum, argnums)

    @functools.wraps(f, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed(
                "grad", f, {"argnum": argnum, "argnums": argnums, "has_aux": has_aux}, args, kwargs
            )
        grads, _, aux = differentiate(f, numbers, args, kwargs, has_aux)
        return (form(grads), aux) if has_aux else form(grads)

    return Derived(gradient, grad, f, argnum=argnum, argnums=argnums, has_aux=has_aux)


def grad_and_loss(f: Callable[P, Any], argnum: Any = 0) -> Callable[P, tuple[Any, Any]]:
    """A function that returns (gradients, result of f); see grad.

    As in MinPy, f may read the arrays it is given from elsewhere, `self.params["w"]`: they are the same arrays.

    >>> grad_and_loss(lambda x: x**2)(3.0)
    (array(6.), array(9.))
    """
    function_of("grad_and_loss", f)
    numbers, form = argument_numbers(argnum)

    @functools.wraps(f, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed("grad_and_loss", f, {"argnum": argnum}, args, kwargs)

        def lent(*boxed: Any, **named: Any) -> Any:
            pairs = [(kwargs[k], named[k]) if isinstance(k, str) else (args[k], boxed[k]) for k in numbers]
            given = [(a, b._value) for a, b in pairs if type(a) in ARRAY_TYPES]
            before = [(a._host, a._value if a._host is None else None, a._root) for a, _ in given]
            try:
                for a, tracer in given:
                    a._host, a._value, a._root = None, tracer, None
                return f(*boxed, **named)
            finally:
                for (a, _), held in zip(given, before, strict=True):
                    a._host, a._value, a._root = held

        with _LENDING:
            grads, out, _ = differentiate(lent, numbers, args, kwargs, False)
        return form(grads), as_host_arrays(out)

    return Derived(gradient, grad_and_loss, f, argnum=argnum)


# One thread at a time: while a function runs, the caller's own arrays hold its tracers.
_LENDING = threading.RLock()


@overload
def value_and_grad(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def value_and_grad(
    f: Callable[P, Any], argnum: Any = 0, *, argnums: Any = None, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
def value_and_grad(f: Callable, argnum: Any = 0, *, argnums: Any = None, has_aux: bool = False) -> Callable:
    """A function that returns (result of f, gradients), or ((result, aux), gradients) with has_aux; see grad.

    argnum, argnums   which arguments, as in grad

    >>> value_and_grad(lambda x: x**2)(3.0)
    (array(9.), array(6.))
    """
    function_of("value_and_grad", f)
    numbers, form = argument_numbers(argnum, argnums)

    @functools.wraps(f, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            options = {"argnum": argnum, "argnums": argnums, "has_aux": has_aux}
            return tracer.transformed("value_and_grad", f, options, args, kwargs)
        grads, out, aux = differentiate(f, numbers, args, kwargs, has_aux)
        out = as_host_arrays(out)
        if isinstance(out, onp.generic):  # an array, whatever it depends on
            out = array_of(out)
        return (out, aux) if has_aux else out, form(grads)

    return Derived(gradient, value_and_grad, f, argnum=argnum, argnums=argnums, has_aux=has_aux)


@overload
def vjp(f: Callable, *args: Any, has_aux: Literal[False] = False) -> tuple[Any, Callable]: ...
@overload
def vjp(f: Callable, *args: Any, has_aux: Literal[True]) -> tuple[Any, Callable, Any]: ...
def vjp(f: Callable, *args: Any, has_aux: bool = False) -> tuple:
    """(f(*args), pullback): pullback(cotangent of the result) is a tuple of cotangents, one per argument.

    has_aux   f returns (result, aux), and vjp (result, pullback, aux)

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pullback(1.0)
    (array(3.), array(2.))
    """
    run = Run(f, range(len(args)), args, {}, has_aux)
    nodes = [(run.node(v), v.value if run.node(v) is not None else v) for v in run.values]
    pullback = Pullback(run.trace, nodes, lambda g: g, run.starts, lambda grads: tuple(run.rebuild_args(grads)))
    out = as_host_arrays(run.out)
    return (out, pullback, as_host_arrays(run.aux)) if has_aux else (out, pullback)


def stop_gradient(x: Any) -> Any:
    """x as a constant: the same numbers, through which no gradient flows.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    array(3.)
    """
    return TABLE["stop_gradient"](x)
