"""How a row is said as one MXNet operator: TABLE maps row names to lowerings.

A lowering sees shapes, dtypes and parameters, never data, and answers with a Lowered; where the operator cannot do what
NumPy does, it raises BackendUnsupportedError with the reason. Axes that an operator treats alike are merged first, so
neither MXNet's limit on the number of axes nor its dislike of shape () is visible outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as onp

from ...errors import BackendUnsupportedError

Shape = tuple[int, ...]
MOST_AXES = 5  # of a broadcasting operator, after merging


class Argument(NamedTuple):
    """One argument of the operator: which value (None: zeros, where nothing depends on it), as which shape and dtype."""

    value: int | None
    shape: Shape
    dtype: str


class Lowered(NamedTuple):
    """One MXNet operator that computes a row.

    operator    MXNet's name
    attributes  its parameters, as texts
    arguments   where its inputs come from
    shape       NumPy's shape of the result, or a tuple of shapes, or None: the operator's own
    training    it must run in training mode
    blocked     its results may come in a blocked layout
    results     (shape, dtype) of every result, for operators that cannot infer them
    scalar      a result of shape () is a NumPy scalar, as from a ufunc, and not an array
    derivative  not the operator f(x, w) but its gradient for w; the arguments are x, w and the cotangent
    """

    operator: str
    attributes: dict[str, str]
    arguments: tuple[Argument, ...]
    shape: Any = None
    training: bool = False
    blocked: bool = False
    results: tuple | None = None
    derivative: bool = False
    scalar: bool = True


class Meta(NamedTuple):
    shape: Shape
    dtype: str


Lowering = Callable[[Sequence[Meta], dict[str, Any]], Lowered]
TABLE: dict[str, Lowering] = {}


def refuse(reason: str) -> BackendUnsupportedError:
    return BackendUnsupportedError(reason)


def only(params: dict[str, Any], **known: Any) -> tuple:
    """The values of the known parameters, with their defaults; refuses any other that is not None."""
    for name, value in params.items():
        if name not in known and value is not None:
            raise refuse(f"MXNet's operator has no {name}=")
    return tuple(params.get(name, default) for name, default in known.items())


def text(value: Any) -> str:
    """A parameter as MXNet reads it."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    return str(value.item() if isinstance(value, onp.generic) else value)


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """axis as sorted non-negative integers; None is every axis."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    try:
        axes = tuple(sorted(range(ndim)[a] for a in axes))
    except (IndexError, TypeError):
        raise refuse(f"axis {axis} is not one of {ndim} axes") from None  # NumPy raises its own error
    if len({*axes}) < len(axes):
        raise refuse(f"axis {axis} repeats")
    return axes


# ------------------------------------------------------------------ elementwise
def merged(shapes: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """NumPy's broadcast shape, and the shapes with neighbouring axes that broadcast alike merged into one."""
    try:
        result = onp.broadcast_shapes(*shapes)
    except ValueError:
        raise refuse(f"shapes {', '.join(map(str, shapes))} do not broadcast") from None
    padded = [(1,) * (len(result) - len(shape)) + shape for shape in shapes]
    out: list[list[int]] = [[] for _ in shapes]
    previous = None
    for axis, size in enumerate(result):
        if size == 1:
            continue
        here = tuple(shape[axis] == 1 for shape in padded)
        for sizes, single in zip(out, here, strict=True):
            if here == previous:
                sizes[-1] *= 1 if single else size
            else:
                sizes.append(1 if single else size)
        previous = here
    if len(out[0]) > MOST_AXES:
        raise refuse(f"broadcasting over more than {MOST_AXES} axes")
    return result, [tuple(sizes) or (1,) for sizes in out]


def elementwise(operator: str, **attributes: str) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        only(params)
        shape, shapes = merged([meta.shape for meta in metas])
        arguments = tuple(Argument(i, s, meta.dtype) for i, (s, meta) in enumerate(zip(shapes, metas, strict=True)))
        return Lowered(operator, attributes, arguments, shape)

    return lower


UNARY = {
    "negative": "_npi_negative", "absolute": "_npi_absolute", "fabs": "_npi_absolute", "sign": "_npi_sign",
    "square": "_npi_square", "sqrt": "_npi_sqrt", "cbrt": "_npi_cbrt", "reciprocal": "_npi_reciprocal",
    "exp": "_npi_exp", "expm1": "_npi_expm1", "log": "_npi_log", "log2": "_npi_log2", "log10": "_npi_log10",
    "log1p": "_npi_log1p", "sin": "_npi_sin", "cos": "_npi_cos", "tan": "_npi_tan", "arcsin": "_npi_arcsin",
    "arccos": "_npi_arccos", "arctan": "_npi_arctan", "sinh": "_npi_sinh", "cosh": "_npi_cosh", "tanh": "_npi_tanh",
    "arcsinh": "_npi_arcsinh", "arccosh": "_npi_arccosh", "arctanh": "_npi_arctanh", "degrees": "_npi_degrees",
    "rad2deg": "_npi_degrees", "radians": "_npi_radians", "deg2rad": "_npi_radians", "floor": "_npi_floor",
    "ceil": "_npi_ceil", "trunc": "_npi_trunc", "rint": "_npi_rint", "fix": "_npi_fix", "isnan": "_npi_isnan",
    "isinf": "_npi_isinf", "isfinite": "_npi_isfinite", "logical_not": "_npi_logical_not",
    "invert": "_npi_bitwise_not", "positive": "_copy",
    "npx.relu": "_npx_relu", "npx.sigmoid": "_npx_sigmoid", "npx.erf": "erf", "npx.softsign": "softsign",
    "npx.gamma": "gamma", "npx.gammaln": "gammaln",
}  # fmt: skip
BINARY = {
    "add": "_npi_add", "subtract": "_npi_subtract", "multiply": "_npi_multiply", "divide": "_npi_true_divide",
    "remainder": "_npi_mod", "power": "_npi_power", "float_power": "_npi_power", "maximum": "_npi_maximum",
    "minimum": "_npi_minimum", "hypot": "_npi_hypot",
    "arctan2": "_npi_arctan2", "copysign": "_npi_copysign", "equal": "_npi_equal",
    "not_equal": "_npi_not_equal", "less": "_npi_less", "less_equal": "_npi_less_equal",
    "greater": "_npi_greater", "greater_equal": "_npi_greater_equal", "bitwise_and": "_npi_bitwise_and",
    "bitwise_or": "_npi_bitwise_or", "bitwise_xor": "_npi_bitwise_xor",
}  # fmt: skip
TABLE.update({name: elementwise(operator) for name, operator in {**UNARY, **BINARY}.items()})


def _where(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params)
    if metas[0].dtype != "bool":
        raise refuse(f"the condition is {metas[0].dtype}, not bool")
    return elementwise("_npi_where")(metas, params)


TABLE["where"] = _where


# ------------------------------------------------------------------ reductions and scans
def folded(shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, tuple[int, ...]]:
    """shape with neighbouring axes merged where all of them, or none, are in `axes`; and the merged axes."""
    sizes: list[int] = []
    kept: list[bool] = []
    for axis, size in enumerate(shape):
        if kept and kept[-1] == (axis not in axes):
            sizes[-1] *= size
        else:
            sizes.append(size)
            kept.append(axis not in axes)
    if not sizes:
        return (1,), (0,)
    return tuple(sizes), tuple(i for i, keep in enumerate(kept) if not keep)


def reduced(shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)


def reduction(operator: str, **attributes: str) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        axis, keepdims = only(params, axis=None, keepdims=False)
        shape = metas[0].shape
        axes = normal_axes(axis, len(shape))
        sizes, across = folded(shape, axes)
        if not across:  # sum(x, axis=()): nothing to add up
            raise refuse("no axis to reduce")
        # keepdims, because the operator has no results of shape ()
        texts = {**attributes, "axis": text(across), "keepdims": "True"}
        return Lowered(operator, texts, (Argument(0, sizes, metas[0].dtype),), reduced(shape, axes, keepdims))

    return lower


def along(operator: str, reduces: bool) -> Lowering:
    """A function of one axis; None is the flattened array."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        axis, keepdims = only(params, axis=None, keepdims=False)
        shape = metas[0].shape
        if axis is None:
            sizes, axes, across = (prod(shape),), tuple(range(len(shape))), (0,)
        else:
            axes = normal_axes(int(axis), len(shape))
            sizes, across = folded(shape, axes)
        if reduces:
            texts, result = {"axis": text(across[0]), "keepdims": "True"}, reduced(shape, axes, keepdims)
        else:
            texts, result = {"axis": text(across[0])}, shape if axis is not None else sizes
        return Lowered(operator, texts, (Argument(0, sizes, metas[0].dtype),), result)

    return lower


def _sum_to(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    shape, target = metas[0].shape, tuple(params["shape"])
    extra = len(shape) - len(target)
    axes = (*range(extra), *(i + extra for i, n in enumerate(target) if n == 1 and shape[i + extra] != 1))
    if not axes:
        return _shaped("_copy", {}, metas[0], target)
    return reduction("_np_sum")(metas, {"axis": axes})._replace(shape=target)


TABLE.update(
    {
        "sum": reduction("_np_sum"),
        "mean": reduction("_npi_mean"),
        "prod": reduction("_np_prod"),
        "max": reduction("_np_max"),
        "min": reduction("_np_min"),
        "any": reduction("_np_any"),
        "all": reduction("_np_all"),
        "argmax": along("_npi_argmax", reduces=True),
        "argmin": along("_npi_argmin", reduces=True),
        "cumsum": along("_np_cumsum", reduces=False),
        "sum_to": _sum_to,
    }
)


# ------------------------------------------------------------------ shapes
def _shaped(operator: str, attributes: dict[str, str], meta: Meta, result: Shape) -> Lowered:
    """An operator that moves elements: NumPy answers with an array, even of shape ()."""
    return Lowered(operator, attributes, (Argument(0, meta.shape or (1,), meta.dtype),), result, scalar=False)


def _copy(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params, order="K")
    return _shaped("_copy", {}, metas[0], metas[0].shape)


def _reshape(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    shape, order = only(params, shape=(), order="C")
    if order != "C":
        raise refuse(f"reshape in order {order!r}")
    size = prod(metas[0].shape)
    wanted = (shape,) if isinstance(shape, (int, onp.integer)) else tuple(shape)
    known = prod(n for n in wanted if n != -1)
    if wanted.count(-1) > 1 or not known or (size % known if -1 in wanted else size != known):
        raise refuse(f"shape {metas[0].shape} does not reshape to {wanted}")
    return _shaped("_copy", {}, metas[0], tuple(size // known if n == -1 else n for n in wanted))


def _transpose(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axes,) = only(params, axes=None)
    shape = metas[0].shape
    order = tuple(range(len(shape)))[::-1] if axes is None else tuple(axes)
    if len(shape) < 2:
        return _shaped("_copy", {}, metas[0], shape)
    if normal_axes(order, len(shape)) != tuple(range(len(shape))) or len(shape) > MOST_AXES:
        raise refuse(f"transpose of {len(shape)} axes to {order}")
    order = tuple(a % len(shape) for a in order)
    return _shaped("transpose", {"axes": text(order)}, metas[0], tuple(shape[a] for a in order))


def _swapaxes(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    first, second = only(params, axis1=0, axis2=1)
    order = list(range(len(metas[0].shape)))
    (first,), (second,) = normal_axes(first, len(order)), normal_axes(second, len(order))
    order[first], order[second] = order[second], order[first]
    return _transpose(metas, {"axes": tuple(order)})


def _expand_dims(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = normal_axes(tuple(axis) if isinstance(axis, list) else axis, len(shape) + count)
    sizes = iter(shape)
    result = tuple(1 if i in axes else next(sizes) for i in range(len(shape) + count))
    return _shaped("_copy", {}, metas[0], result)


def _squeeze(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    axes = normal_axes(axis, len(shape)) if axis is not None else tuple(i for i, n in enumerate(shape) if n == 1)
    if any(shape[a] != 1 for a in axes):
        raise refuse(f"squeeze of axis {axis} of {shape}")
    return _shaped("_copy", {}, metas[0], tuple(n for i, n in enumerate(shape) if i not in axes))


def _broadcast_to(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (shape,) = only(params, shape=())
    target = (shape,) if isinstance(shape, int) else tuple(shape)
    result, (sizes, full) = merged([metas[0].shape, target])
    if result != target:
        raise refuse(f"shape {metas[0].shape} does not broadcast to {target}")
    return Lowered("broadcast_to", {"shape": text(full)}, (Argument(0, sizes, metas[0].dtype),), target, scalar=False)


def _flip(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (axis,) = only(params, axis=None)
    shape = metas[0].shape
    axes = normal_axes(axis, len(shape))
    if not axes:
        return _shaped("_copy", {}, metas[0], shape)
    return _shaped("reverse", {"axis": text(axes)}, metas[0], shape)


def joining(operator: str, key: str) -> Lowering:
    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        (axis,) = only(params, axis=0)
        ndim = len(metas[0].shape)
        if not ndim or axis is None:
            raise refuse("joining arrays of shape ()")
        others = [normal_axes(axis, ndim + (operator == "stack"))[0]]
        for meta in metas:
            same = [n == m for i, (n, m) in enumerate(zip(meta.shape, metas[0].shape)) if [i] != others or operator == "stack"]
            if len(meta.shape) != ndim or not all(same):
                raise refuse("the shapes differ beside the axis")
        arguments = tuple(Argument(i, meta.shape, meta.dtype) for i, meta in enumerate(metas))
        return Lowered(operator, {key: text(others[0]), "num_args": str(len(metas))}, arguments)

    return lower


def _repeat(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    repeats, axis = only(params, repeats=None, axis=None)
    shape = metas[0].shape
    if not isinstance(repeats, int) or repeats < 1:
        raise refuse("a different number of repeats for every element")
    if axis is None:
        arguments = (Argument(0, (prod(shape),), metas[0].dtype),)
        return Lowered("repeat", {"repeats": text(repeats), "axis": "0"}, arguments)
    (axis,) = normal_axes(int(axis), len(shape))
    return Lowered("repeat", {"repeats": text(repeats), "axis": text(axis)}, (Argument(0, shape, metas[0].dtype),))


def _roll(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    shift, axis = only(params, shift=0, axis=None)
    shape = metas[0].shape
    if not isinstance(shift, (int, tuple)) or not shape:
        raise refuse(f"roll by {shift} of an array with {len(shape)} axes")
    if axis is None:
        arguments = (Argument(0, (prod(shape),), metas[0].dtype),)
        if not isinstance(shift, int):
            raise refuse("several shifts without axes")
        return Lowered("_np_roll", {"shift": text((shift,)), "axis": "(0,)"}, arguments, shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes) or len({*normal_axes(axes, len(shape))}) != len(axes):
        raise refuse(f"roll by {shift} over axes {axis}")
    return _shaped("_np_roll", {"shift": text(shifts), "axis": text(axes)}, metas[0], shape)


def _tril(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (k,) = only(params, k=0)
    if len(metas[0].shape) < 2:
        raise refuse("tril of fewer than two axes")
    return _shaped("_npi_tril", {"k": text(k)}, metas[0], metas[0].shape)


def _astype(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    (dtype,) = only(params, dtype=None)
    target = onp.dtype(dtype)
    if metas[0].dtype.startswith("float") and target.kind != "f":
        raise refuse("casts of floats to integers: NumPy's own for what does not fit")
    if not target.isnative or target.name not in ("float32", "float64"):
        raise refuse(f"casts to {target.name}")
    return _shaped("Cast", {"dtype": target.name}, metas[0], metas[0].shape)


TABLE.update(
    {
        "copy": _copy,
        "reshape": _reshape,
        "transpose": _transpose,
        "swapaxes": _swapaxes,
        "expand_dims": _expand_dims,
        "squeeze": _squeeze,
        "broadcast_to": _broadcast_to,
        "flip": _flip,
        "concatenate": joining("Concat", "dim"),
        "stack": joining("stack", "axis"),
        "repeat": _repeat,
        "roll": _roll,
        "tril": _tril,
        "astype": _astype,
    }
)


# ------------------------------------------------------------------ products and linear algebra
def _matmul(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params)
    (a, b) = (meta.shape for meta in metas)
    if not a or not b:
        raise refuse("matmul of shape ()")
    left = a if len(a) > 1 else (1, *a)
    right = b if len(b) > 1 else (*b, 1)
    if left[-1] != right[-2]:
        raise refuse(f"matmul of {a} and {b}")
    batch, _ = merged([left[:-2], right[:-2]])
    if len(batch) > MOST_AXES - 2:
        raise refuse(f"matmul over more than {MOST_AXES - 2} batch axes")
    result = (*batch, *left[-2:-1][: len(a) > 1], *right[-1:][: len(b) > 1])
    arguments = (Argument(0, left, metas[0].dtype), Argument(1, right, metas[1].dtype))
    if len(left) == len(right) == 2:
        return Lowered("dot", {}, arguments, result)
    return Lowered("_npi_matmul", {}, arguments, result)


def of_matrix(operator: str, vector: bool = False, **attributes: str) -> Lowering:
    """A function of the square matrices in the last two axes."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        only(params)
        shape = metas[0].shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise refuse(f"the last two axes of {shape} are not a square matrix")
        result = shape[:-2] if vector else shape
        return Lowered(operator, attributes, (Argument(0, shape, metas[0].dtype),), result)

    return lower


TABLE.update(
    {
        "matmul": _matmul,
        "linalg.inv": of_matrix("_linalg_inverse"),
        "linalg.det": of_matrix("_linalg_det", vector=True),
        "linalg.cholesky": of_matrix("_linalg_potrf"),
    }
)
