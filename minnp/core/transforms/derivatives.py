"""Transformations built on reverse and forward mode: jacobian, hessian, hvp, ggnvp, checkpoint, custom rules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as onp

from ... import errors
from ..arrays.array import ARRAY_TYPES, Array, array_of, ndarray, read, wrap
from ..rows.dispatch import bind
from ..rows.primitive import TABLE, Joint, Primitive
from ..rows.pytree import tree_flatten, tree_leaves
from ..rows.state import recording, state
from ..rows.value import Host, Tracer
from . import rematerialisation
from .grad import (
    LEAVES,
    Derived,
    absent,
    argument_value,
    function_of,
    grad,
    has_slope,
    position,
    staged,
    vjp,
    with_slope,
)
from .jvp import jvp

P = ParamSpec("P")
R = TypeVar("R")


@overload  # type checkers would take the first of a ufunc's own signatures alone
def elementwise_grad(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def elementwise_grad(f: Callable[P, Any], argnum: Any = 0) -> Callable[P, Any]: ...
def elementwise_grad(f: Callable, argnum: Any = 0) -> Callable:
    """A function that returns dy_i/dx_i for a function that acts element by element (the gradient of its sum).

    f        a function whose result i depends on element i of its argument alone
    argnum   which argument, as in grad

    >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return grad(f, argnum)


def _basis(x: ndarray) -> list[onp.ndarray]:
    """The unit vectors of x's space, in C order."""
    n = x.size
    out = []
    for i in range(n):
        e = onp.zeros(n, x.dtype)
        e[i] = 1
        out.append(e.reshape(x.shape))
    return out


@overload
def jacobian(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def jacobian(f: Callable[P, Any], argnum: int | str = 0, mode: str = "reverse") -> Callable[P, Any]: ...
def jacobian(f: Callable, argnum: int | str = 0, mode: str = "reverse") -> Callable:
    """A function that returns the Jacobian of f with respect to one argument: shape [*out, *in].

    argnum   which argument, by place or name, however it is given: a number, an array or a tree of these
    mode     "reverse": one backward pass per element of the result; "forward": one forward pass per element of the
             argument (cheaper where the argument is the smaller). Both give the same numbers.
    A result that is a tree of arrays gives a tree of Jacobians, and so does each of its leaves where the argument is a
    tree; a complex result of a real argument a complex one.

    Raises TypeError for an argument that is, or holds, no array or number, or an array of integers, and for several
    argnums, ValueError for another mode, or forward mode of an empty argument.

    >>> jacobian(np.cumsum)(np.ones(2)).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    function_of("jacobian", f)
    if mode not in ("reverse", "forward"):
        raise ValueError(f"jacobian mode must be 'reverse' or 'forward', got {mode!r}")

    @functools.wraps(f, updated=())
    def jac(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed("jacobian", f, {"argnum": argnum, "mode": mode}, args, kwargs)
        if not isinstance(argnum, (int, str)):
            what = f"jacobian and hessian are with respect to one argument, got argnum={argnum!r}"
            raise TypeError(f"{what}: for several, write lambda p: f(*p) and give it a tuple")
        at = argnum if isinstance(argnum, int) or argnum in kwargs else position(f, argnum, args)
        try:
            x = kwargs[at] if isinstance(at, str) else args[at]
        except (IndexError, KeyError):
            raise TypeError(absent("jacobian", f, argnum, args, kwargs)) from None
        given, of_tree = tree_flatten(x)
        for leaf in given:
            if not isinstance(leaf, LEAVES):
                raise TypeError(f"jacobian wants numbers and arrays, alone or in a tree, got {type(leaf).__name__}")
        given = [leaf if type(leaf) in ARRAY_TYPES else array_of(argument_value(leaf)) for leaf in given]
        for leaf in given:
            has_slope(leaf, "jacobian")
        x = of_tree(given)
        inner = staged(f)

        def of_x(x: Any) -> Any:
            if isinstance(at, str):
                return inner(*args, **{**kwargs, at: x})
            return inner(*args[:at], x, *args[at + 1 :], **kwargs)

        stack = TABLE["stack"]
        reshape = TABLE["reshape"]
        if mode == "forward":
            made: list[list] = []  # of each leaf of the argument the parts, one for each leaf of the result
            for j, leaf in enumerate(given):
                columns = []
                for e in _basis(leaf):
                    along = [onp.zeros(o.shape, o.dtype) for o in given]
                    along[j] = e
                    column, rebuild = tree_flatten(jvp(of_x, (x,), (of_tree(along),))[1])
                    columns.append(column)
                if not columns:
                    raise ValueError("jacobian of an empty argument in forward mode; use mode='reverse'")
                parts = zip(*columns, strict=True)
                made.append([reshape(stack(*p, axis=-1), shape=(*p[0].shape, *leaf.shape)) for p in parts])
            return rebuild([of_tree(list(of_leaf)) for of_leaf in zip(*made, strict=True)])
        out, pullback = vjp(of_x, x)
        leaves, rebuild = tree_flatten(out)
        leaves = [o if type(o) in ARRAY_TYPES else array_of(onp.asarray(o)) for o in leaves]
        with_slope([read(o) for o in leaves], out)
        pulled = lambda seeds: tree_flatten(pullback(rebuild(seeds))[0])[0]
        jacobians = []
        for k, leaf in enumerate(leaves):
            rows = []
            for e in _basis(leaf):
                seeds = [onp.zeros(o.shape, o.dtype) for o in leaves]
                seeds[k] = e
                row = pulled(seeds)
                if leaf.dtype.kind == "c" and any(r.dtype.kind != "c" for r in row):
                    seeds[k] = -1j * e  # the imaginary part comes with another cotangent
                    row = [r if r.dtype.kind == "c" else r + 1j * i for r, i in zip(row, pulled(seeds), strict=True)]
                rows.append(row)
            jacobians.append(
                of_tree(
                    [
                        reshape(stack(*[row[j] for row in rows], axis=0), shape=(*leaf.shape, *a.shape))
                        if rows
                        else array_of(onp.zeros((*leaf.shape, *a.shape), a.dtype))
                        for j, a in enumerate(given)
                    ]
                )
            )
        return rebuild(jacobians)

    return Derived(jac, jacobian, f, argnum=argnum, mode=mode)


@overload
def hessian(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def hessian(f: Callable[P, Any], argnum: int | str = 0) -> Callable[P, Any]: ...
def hessian(f: Callable, argnum: int | str = 0) -> Callable:
    """A function that returns the Hessian of a scalar f with respect to one argument: shape [*in, *in].

    argnum   which argument, by place or name, however it is given: a number, an array, or a tree of these, for which
             there is a Hessian for each two leaves: h["a"]["b"]

    The gradient is recorded once and walked back once for each of its elements.

    >>> hessian(lambda x: x[0] * x[1])(np.ones(2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return Derived(jacobian(grad(f, argnum), argnum), hessian, f, argnum=argnum)


def hvp(f: Callable, argnum: int = 0) -> Callable:
    """A function (*args, v) -> Hessian of f times v, forward over reverse: about twice the cost of the gradient.

    argnum   which argument, by place; v has its shape

    Raises TypeError where f is no function, or the vector is missing.

    >>> hvp(lambda x: np.sum(x**3))(np.ones(2), np.array([1.0, 2.0]))
    array([ 6., 12.])
    """

    function_of("hvp", f)

    def product(*args: Any) -> Any:
        if len(args) < argnum + 2:
            raise TypeError(
                f"hvp(f)(*args, v) takes f's arguments and then the vector v; it was called with {len(args)}"
            )
        *args, v = args
        g = grad(f, argnum)
        return jvp(lambda x: g(*args[:argnum], x, *args[argnum + 1 :]), (args[argnum],), (v,))[1]

    return Derived(product, hvp, f, argnum=argnum)


def make_ggnvp(f: Callable, g: Callable | None = None, f_argnum: int = 0) -> Callable:
    """A function of f's arguments that returns v -> J^T H J v, the generalised Gauss-Newton product of g(f(x)).

    f_argnum   which argument of f is x

    J is f's Jacobian, H the Hessian of g at f(x); without g, half the squared norm, H is the identity.
    Source: Schraudolph, Fast curvature matrix-vector products, 2002, section 3.

    >>> make_ggnvp(lambda x: 3 * x)(np.ones(2))(np.array([1.0, 2.0]))
    array([ 9., 18.])
    """

    def make(*args: Any, **kwargs: Any) -> Callable:
        inner = staged(f)

        def of_x(x: Any) -> Any:
            return inner(*args[:f_argnum], x, *args[f_argnum + 1 :], **kwargs)

        x = args[f_argnum]
        y, pullback = vjp(of_x, x)

        def ggnvp(v: Any) -> Any:
            jv = jvp(of_x, (x,), (v,))[1]
            return pullback(jv if g is None else hvp(g)(y, jv))[0]

        return ggnvp

    return make


# ------------------------------------------------------------------ functions as operators
class _Spec:
    """The frozen part of a call.

    rebuild  its arguments from array leaves
    result   its result from array leaves, once the function has run
    watched  whether a transformation watches its arguments
    """

    __slots__ = ("rebuild", "result", "watched")

    def __init__(self, rebuild: Callable, watched: bool) -> None:
        self.rebuild, self.watched = rebuild, watched
        self.result: Any = None

    def __repr__(self) -> str:
        return "..."


def _split(args: tuple, kwargs: dict) -> tuple[list, Callable]:
    """(array leaves, rebuild) of a call; other leaves stay where they are."""
    leaves, rebuild = tree_flatten((args, kwargs))
    where = [i for i, x in enumerate(leaves) if isinstance(x, (Array, Host, float, complex, onp.generic))]

    def again(arrays: Any) -> tuple:
        new = list(leaves)
        for i, a in zip(where, arrays, strict=True):
            new[i] = a
        return rebuild(new)

    values = [leaves[i] for i in where]
    return [read(v) if type(v) in ARRAY_TYPES else onp.asarray(v) for v in values], again


def _outputs(out: Any) -> tuple[tuple, Callable]:
    leaves, rebuild = tree_flatten(out)
    return tuple(read(o) if type(o) in ARRAY_TYPES else onp.asarray(o) for o in leaves), rebuild


class _Call:
    """One function as one operator: calls it on arrays, remembers the structure of its result."""

    def __init__(self, name: str, **facts: Any) -> None:
        # what goes by a row's name, as a graph's code does, may not take it for NumPy's function of that name
        self.row = Primitive(f"{name} of the user's" if name in TABLE else name, self.kernel, **facts)

    def kernel(self, *leaves: Any, function: Callable, spec: _Spec) -> tuple:
        args, kwargs = spec.rebuild([array_of(v) for v in leaves])
        values, spec.result = _outputs(function(*args, **kwargs))
        if spec.watched and any(type(v) is Tracer for v in values):
            raise errors.TracedValueError(
                f"{getattr(function, '__name__', function)!s}, under {self.row.name}, reads a traced array from "
                "outside its arguments, which would get no gradient: pass it in as an argument, or use np.stop_gradient"
            )
        return values

    def __call__(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        leaves, again = _split(args, kwargs)
        spec = _Spec(again, any(type(v) is Tracer for v in leaves))
        out = bind(self.row, leaves, {"function": function, "spec": spec})
        return spec.result([wrap(o) for o in out])


def _seeds(g: Any, y: Any) -> tuple:
    """A cotangent for every result: zeros where nothing flows."""
    return tuple(array_of(onp.zeros(o.shape, o.dtype) if c is None else c) for c, o in zip(g, y, strict=True))


@overload
def checkpoint(f: onp.ufunc, *args: Any, **options: Any) -> Callable[..., Any]: ...
@overload
def checkpoint(f: Callable[P, R]) -> Callable[P, R]: ...
def checkpoint(f: Callable) -> Callable:
    """f, whose intermediate results are not kept for the gradient but computed again when it is needed.

    Memory for one more forward pass: checkpoint every sqrt(n)-th of n layers to keep O(sqrt(n)) of them
    (Chen et al., Training deep nets with sublinear memory cost, 2016). Values and gradients are those of f: its Python
    runs once, and what it computes is recorded, with the constants it meets (arrays from outside, masks, draws). Under
    grad(vmap(...)) everything is kept: write checkpoint(vmap(f)) there.

    >>> grad(checkpoint(lambda x: np.sin(x) ** 2))(0.0)
    array(0.)
    """
    function_of("checkpoint", f)

    @functools.wraps(f)
    def rematerialised(*args: Any, **kwargs: Any) -> Any:
        if state.busy and (tracer := recording()) is not None:
            return tracer.transformed("checkpoint", f, {}, args, kwargs)
        return rematerialisation.run(f, args, kwargs)

    return Derived(rematerialised, checkpoint, f)


class custom_vjp(Generic[P, R]):
    """A function with a reverse rule of its own.

        @custom_vjp
        def clip_gradient(x): return x
        clip_gradient.defvjp(forward=lambda x: (x, None), backward=lambda saved, g: (np.clip(g, -1, 1),))

    forward    (*args) -> (result, saved): run instead of the function when a gradient is wanted
    backward   (saved, g) -> one cotangent per positional argument (None: nothing flows), in minnp.numpy or plain NumPy
    """

    def __init__(self, function: Callable[P, R]) -> None:
        function_of("custom_vjp", function)
        functools.update_wrapper(self, function)
        self.function = function
        self.forward: Callable | None = None
        self.backward: Callable | None = None
        self._call = _Call(getattr(function, "__name__", "custom_vjp"), vjp=Joint(self._pullback), saves="both")

    def __reduce__(self) -> str:
        return self.__qualname__  # as functions, whose copies they are themselves

    def defvjp(self, forward: Callable, backward: Callable) -> custom_vjp[P, R]:
        """Set the rule; returns the function. Raises TypeError for what is no function."""
        for part, rule in (("forward", forward), ("backward", backward)):
            if not callable(rule):
                raise TypeError(f"the {part} rule of {self.function.__name__} is a function, got {rule!r:.60}")
        self.forward, self.backward = forward, backward
        return self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.backward is None or self.forward is None:
            name = self.function.__name__
            raise TypeError(f"{name} has no rule yet: call {name}.defvjp(forward, backward)")
        if state.busy and (tracer := recording()) is not None:
            return tracer.create_proxy("call_function", self, args, kwargs)
        return self._call(self.function, _positional(self.function, args, kwargs), {})

    def _pullback(self, wanted: Any, g: Any, y: Any, *leaves: Any, function: Callable, spec: _Spec) -> list:
        args, _ = spec.rebuild([array_of(v) for v in leaves])
        result = self.forward(*args)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"the forward rule of {self.function.__name__} returns (result, saved), what the backward rule needs; "
                f"it returned {result!r:.60}"
            )
        saved = result[1]
        cotangents = self.backward(saved, spec.result(_seeds(g, y)))
        if not isinstance(cotangents, (tuple, list)):
            cotangents = (cotangents,)
        if len(cotangents) != len(args):
            raise TypeError(
                f"the backward rule of {self.function.__name__} returned {len(cotangents)} cotangents "
                f"for {len(args)} arguments"
            )
        out: list = []
        for a, c in zip(args, cotangents, strict=True):
            moves = [isinstance(x, (Array, Host, float, complex, onp.generic)) for x in tree_leaves(a)]
            parts = [None] * len(moves) if c is None else tree_leaves(c)
            if len(parts) == len(moves):  # what is said of an integer, or another object, has nowhere to go
                parts = [p for p, m in zip(parts, moves) if m]
            elif len(parts) != sum(moves):
                raise TypeError(
                    f"the backward rule of {self.function.__name__} returned {len(parts)} cotangents for an argument "
                    f"that holds {sum(moves)} arrays and numbers"
                )
            out += [p if p is None else read(p) if type(p) in ARRAY_TYPES else onp.asarray(p) for p in parts]
        for p, leaf in zip(out, leaves):
            if p is not None and p.shape != leaf.shape and not _fits(p.shape, leaf.shape):
                raise ValueError(
                    f"the backward rule of {self.function.__name__} returned a cotangent of shape {p.shape} for an "
                    f"argument of shape {leaf.shape}, to which it cannot be broadcast"
                )
        return out


def _fits(g: tuple, x: tuple) -> bool:
    """Whether a cotangent of shape g can be broadcast against an argument of shape x, and so be summed down to it."""
    try:
        onp.broadcast_shapes(g, x)
    except ValueError:
        return False
    return True


def _positional(function: Callable, args: tuple, kwargs: dict) -> tuple:
    """The arguments of a call by position, as rules take them; those that were left out too, if any has a name."""
    if not kwargs:
        return args
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


class custom_jvp(Generic[P, R]):
    """A function with a forward rule of its own, from which its reverse rule is transposed too.

        @custom_jvp
        def f(x): ...
        f.defjvp(lambda primals, tangents: (f(*primals), derivative(*primals) * tangents[0]))

    The rule must be linear in the tangents and written with minnp.numpy.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        function_of("custom_jvp", function)
        functools.update_wrapper(self, function)
        self.function = function
        self.rule: Callable | None = None

    def __reduce__(self) -> str:
        return self.__qualname__

    def defjvp(self, rule: Callable) -> custom_jvp[P, R]:
        """Set the rule (primals, tangents) -> (result, its tangent); returns the function."""
        self.rule = rule
        return self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.rule is None:
            raise TypeError(f"{self.function.__name__} has no rule yet: call {self.function.__name__}.defjvp(rule)")
        if state.busy and (tracer := recording()) is not None:
            return tracer.create_proxy("call_function", self, args, kwargs)
        call = _Call(self.function.__name__, jvp=None, vjp=Joint(self._pullback), saves="in")
        return call(self.function, _positional(self.function, args, kwargs), {})

    def _pullback(self, wanted: Any, g: Any, y: Any, *leaves: Any, function: Callable, spec: _Spec) -> list:
        """The transpose of the linear map tangents -> tangent of the result."""
        args, _ = spec.rebuild([array_of(v) for v in leaves])

        def slopes(*tangents: Any) -> Any:
            return tuple(tree_leaves(self.rule(args, spec.rebuild(tangents)[0])[1]))

        zeros = [bind(TABLE["zeros_like"], (v,), {}) for v in leaves]
        _, pullback = vjp(slopes, *[array_of(z) for z in zeros])
        return [read(d) for d in pullback(_seeds(g, y))]
