"""check_grads: derivatives against central differences, to any order, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .core.arrays.array import ARRAY_TYPES, array_of, read, unwrap
from .core.jit.jit import leaf_names
from .core.rows.primitive import CONSTANT, Primitive
from .core.rows.pytree import tree_flatten, tree_leaves
from .core.rows.value import Buffer, concrete
from .core.transforms.grad import LEAVES, vjp
from .core.transforms.jvp import jvp
from .errors import MinnpError, NotDifferentiableError

# Central differences of step e err by about e**2 |f'''| / 6 and by u |f| / e: at 6e-6 the latter is 4e-11 |f|.
# So a part of 5e-6 of the derivative, and 1e-8 of the function's own size, leave room for functions less simple.
STEP, RTOL, ATOL = 6e-6, 5e-6, 1e-8


def check_grads(
    f: Callable,
    args: Sequence[Any] | None = None,
    order: int = 2,
    modes: Sequence[str] = ("rev", "fwd"),
    rtol: float = RTOL,
    atol: float = ATOL,
    step: float = STEP,
    seed: int = 0,
) -> Any:
    """Raise AssertionError unless f's derivatives agree with central differences along random directions.

    step   of the differences, to each side
    seed   of the random directions

    The error says which derivative, of which order, for which argument, both numbers and where they differ most; and,
    where one of the rows that f calls is to blame, which one, on what line, and both numbers for its own rule.

    check_grads(f, args, ...) checks now; check_grads(f, order=..., modes=...) returns a function of f's arguments that
    does.
    order   each order checks the derivative of the one before
    modes   "rev": pullbacks; "fwd": tangents
    rtol    of the derivative: an error of 1e-4 in any one rule is found
    atol    of the function's own size, which is what rounding disturbs in a difference
    Each argument is moved by itself, so that no small derivative hides behind a large one of another argument.
    Arguments and results are float64 (or complex128) arrays or numbers, or trees of them: with less precision
    differences mean nothing. Each leaf counts as an argument.

    Raises TypeError for arguments of less precision, ValueError for other modes or an order below 1.

    >>> from minnp.testing import check_grads
    >>> check_grads(lambda x: np.sum(np.sin(x)), (np.ones(3),))    # or AssertionError
    """
    if args is None:
        return lambda *a: check_grads(f, a, order, modes, rtol, atol, step, seed)
    if not callable(f):
        raise TypeError(f"check_grads takes a function, got {f!r:.60}: check_grads(f, (x,))")
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"order is a whole number from 1, got {order!r}")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"check_grads takes a tuple of f's arguments: check_grads(f, (x,)); got {args!r:.60}")
    leaves, rebuild = tree_flatten(tuple(args))
    points = [onp.asarray(a) for a in leaves]
    for p in points:
        if p.dtype not in (onp.float64, onp.complex128):
            raise TypeError(f"check_grads wants float64 or complex128 arguments, got {p.dtype}")
    unknown = set(modes) - {"rev", "fwd"}
    if unknown:
        raise ValueError(f"unknown modes {sorted(unknown)}; known: 'rev', 'fwd'")
    names = leaf_names(f, tuple(args), {})
    labels = [f"argument {i} ({n}: {_kind(p)})" for i, (n, p) in enumerate(zip(names, points, strict=True))]
    check = _Check(order, tuple(modes), rtol, atol, step, seed)
    flat = lambda *xs: f(*rebuild(list(xs)))
    try:
        check(flat, points, getattr(f, "__name__", type(f).__name__), labels)
    except _Disagreement as wrong:
        raise AssertionError(f"{wrong}{_row_to_blame(flat, points, names, check)}") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # of a rule, or of f itself
        if note := _row_to_blame(flat, points, names, check):
            error.add_note(note.strip())
        raise


class _Disagreement(Exception):
    """A derivative and a difference that are not the same; the message says which and where."""


class _Check:
    """check_grads' settings; called with a function of arrays, raises _Disagreement.

    labels   how messages call the function's arguments
    reached  the order that is being checked
    """

    def __init__(self, order: int, modes: tuple, rtol: float, atol: float, step: float, seed: int) -> None:
        self.order, self.modes, self.rtol, self.atol, self.step, self.seed = order, modes, rtol, atol, step, seed

    def __call__(self, f: Callable, points: list, name: str, labels: Sequence[str]) -> None:
        self.rng, self.labels = onp.random.default_rng(self.seed), labels
        self.check(f, points, 1, self.rtol, self.atol, name)

    def check(self, f: Callable, points: list, order: int, rtol: float, atol: float, name: str) -> None:
        """Check f's derivative, which is of this order, and those of its derivatives."""
        if order > self.order:
            return
        self.reached = order
        along = [_direction(self.rng, p.shape, p.dtype) for p in points]
        pullback = weights = None
        for i, d in enumerate(along):
            want, size = self.difference(f, points, i, d)
            noise = atol * size
            what = f"of {name} for {self.labels[i]}, order {order},"
            if "fwd" in self.modes:
                tangents = [d if k == i else onp.zeros_like(t) for k, t in enumerate(along)]
                _, slopes = jvp(f, tuple(map(array_of, points)), tuple(tangents))
                for got, w in zip(_numbers(slopes), want, strict=True):
                    limit = noise + rtol * (onp.abs(w) + 0.1 * onp.max(onp.abs(w), initial=0.0))
                    if _differ(got, w, limit):
                        raise _Disagreement(f"the forward derivative {what} is {_worst(got, w, 'result')}")
            if "rev" in self.modes:
                if pullback is None:
                    _, pullback = vjp(f, *map(array_of, points))
                    weights = [_direction(self.rng, w.shape, w.dtype) for w in want]
                # Once along random weights, and once along those with which nothing cancels.
                for ws in (weights, [onp.abs(c) * _phase(w) for c, w in zip(weights, want, strict=True)]):
                    g = _numbers(pullback(ws)[i])[0]
                    if g.shape != points[i].shape:
                        raise _Disagreement(f"the gradient {what} has shape {g.shape}, its argument {points[i].shape}")
                    got = _dot(g, d)
                    expected = sum(_dot(c, w) for c, w in zip(ws, want, strict=True))
                    limit = sum(float(onp.sum(onp.abs(c) * (noise + rtol * onp.abs(w)))) for c, w in zip(ws, want))
                    if _differ(got, expected, limit):
                        raise _Disagreement(
                            f"the gradient {what} is {got:.8g} along a random direction where central differences give "
                            f"{expected:.8g}{self.elements(f, points, i, ws, g)}"
                        )
        if "fwd" in self.modes:

            def slope(*xs: Any) -> Any:
                return jvp(f, xs, tuple(along))[1]

            self.check(slope, points, order + 1, 10 * rtol, 10 * atol, f"jvp({name})")
        if "rev" in self.modes:

            def pulled(*xs: Any) -> Any:
                _, pullback = vjp(f, *xs)
                return pullback(weights)

            self.check(pulled, points, order + 1, 10 * rtol, 10 * atol, f"grad({name})")

    def difference(self, f: Callable, points: list, i: int, d: Any) -> tuple[list, float]:
        """(the central difference of every result of f as argument i moves along d, the size of the largest result)."""
        moved = lambda e: [p + e * d if k == i else p for k, p in enumerate(points)]
        up, down = (_numbers(f(*map(array_of, moved(e)))) for e in (self.step, -self.step))
        want = [(u - v) / (2 * self.step) for u, v in zip(up, down, strict=True)]
        return want, max([1.0, *(float(onp.max(onp.abs(u), initial=0.0)) for u in up)])

    def elements(self, f: Callable, points: list, i: int, ws: list, g: onp.ndarray) -> str:
        """Where the gradient g is farthest from differences taken element by element; empty for a large argument."""
        x = points[i]
        if x.size > ELEMENTS:
            return ""
        along = lambda unit: sum(_dot(c, w) for c, w in zip(ws, self.difference(f, points, i, unit)[0], strict=True))
        want = onp.zeros(x.shape, x.dtype)
        for at in onp.ndindex(x.shape):
            unit = onp.zeros(x.shape, x.dtype)
            for part in (1, 1j) if x.dtype.kind == "c" else (1,):
                unit[at] = part
                want[at] += along(unit) / part
        return f"; it is {_worst(g, want, 'argument')}"


ELEMENTS = 1000  # of an argument of which each is moved by itself, to say where a gradient is wrong


def _row_to_blame(f: Callable, points: list, names: list, check: _Check) -> str:
    """What to say of the first row that f calls at these points whose own derivatives are wrong; empty for none."""
    from .core.graph.capture import capture_call  # only a wrong gradient needs them
    from .core.graph.interpreter import Interpreter

    class Rows(Interpreter):
        said = ""

        def run_node(self, node: Any) -> Any:
            if isinstance(node.target, Primitive) and not self.said:
                args, kwargs = self.fetch_args_kwargs_from_env(node)
                self.said = _wrong_row(node, args, {k: unwrap(v, []) for k, v in kwargs.items()}, check)
            return super().run_node(node)

    try:
        captured, *_ = capture_call(f, points, lambda xs: (xs, {}), names)
        rows = Rows(captured.graph)
        rows.run(*map(array_of, points))
    except REFUSED:  # f itself raises, or does what no graph holds: nothing more is known
        return ""
    return rows.said


REFUSED = (MinnpError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _wrong_row(node: Any, args: tuple, params: dict, check: _Check) -> str:
    """What is wrong with the derivatives of a graph's row at these arguments, or nothing."""
    row, where = node.target, node.meta.get("where", "")
    values = [concrete(read(x)) if type(x) in ARRAY_TYPES else x for x in args]
    moves = [i for i, v in enumerate(values) if isinstance(v, onp.ndarray) and v.dtype.char in "dD"]
    if not moves or row.vjp is CONSTANT:
        return ""

    def alone(*xs: Any) -> Any:
        new = list(args)
        for i, x in zip(moves, xs, strict=True):
            new[i] = x
        return row(*new, **params)

    said = ""
    try:
        check(alone, [values[i] for i in moves], row.name, [f"argument {i} ({_kind(values[i])})" for i in moves])
    except _Disagreement as wrong:
        said = str(wrong)
    except NotDifferentiableError:
        return ""
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        said = f"its derivative of order {check.reached} raises {type(error).__name__}: {error}"
    if not said:
        return ""
    said = f"\nthe row to blame is {row.name}{f', called at {where}' if where else ''}: {said}"
    for i in moves:
        if (shape := _shape_of_rule(row, i, values, params)) is not None:
            return f"{said}\nits rule for argument {i} ({_kind(values[i])}) gives an array of shape {shape}"
    return said


def _shape_of_rule(row: Primitive, i: int, values: list, params: dict) -> tuple | None:
    """The shape of what a row's reverse rule gives for argument i, if neither the argument nor the result has it."""
    rule = row.rule(i)
    if not callable(rule):
        return None
    try:
        y = row.numpy(*values, **params)
        if not isinstance(y, onp.ndarray):
            return None
        shape = onp.shape(rule(onp.ones(y.shape, y.dtype), y, *values, **params))
    except REFUSED:
        return None
    return None if shape in (values[i].shape, y.shape) else shape


def _direction(rng: Any, shape: tuple, dtype: Any) -> onp.ndarray:
    d = rng.standard_normal(shape)
    return onp.asarray(d + 1j * rng.standard_normal(shape) if dtype.kind == "c" else d)


def _dot(a: onp.ndarray, b: onp.ndarray) -> float:
    """Re(sum(a * b)): cotangents pair with tangents without a conjugate (autograd's convention)."""
    return float(onp.real(onp.sum(a * b)))


def _numbers(tree: Any) -> list[onp.ndarray]:
    values = [concrete(read(x)) if type(x) in ARRAY_TYPES else x for x in tree_leaves(tree) if isinstance(x, LEAVES)]
    return [onp.asarray(v.host() if type(v) is Buffer else v) for v in values]


def _phase(w: onp.ndarray) -> onp.ndarray:
    """What turns w into its absolute value."""
    size = onp.abs(w)
    return onp.where(size > 0, onp.conj(w), 1) / onp.where(size > 0, size, 1)


def _differ(got: Any, want: Any, limit: Any) -> bool:
    return onp.shape(got) != onp.shape(want) or not onp.all(onp.abs(got - want) <= limit)  # NaN differs too


def _worst(got: onp.ndarray, want: onp.ndarray, whose: str) -> str:
    """Both numbers where they differ most, and where that is in the argument or the result."""
    if got.shape != want.shape:
        return f"of shape {got.shape} where central differences give {want.shape}"
    if not got.shape:
        return f"{got[()]:.8g} where central differences give {want[()]:.8g}"
    at = onp.unravel_index(onp.nanargmax(onp.where(onp.isnan(got - want), onp.inf, onp.abs(got - want))), got.shape)
    return f"{got[at]:.8g} where central differences give {want[at]:.8g} at {list(map(int, at))} of the {whose}"


def _kind(x: onp.ndarray) -> str:
    return f"{x.dtype}[{', '.join(map(str, x.shape))}]"
