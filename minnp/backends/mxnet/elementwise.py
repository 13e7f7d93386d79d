"""Lowerings of the elementwise functions, reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .lowering import (
    MOST_AXES,
    Argument,
    Lowered,
    Lowering,
    Meta,
    finite,
    folded,
    merged,
    normal_axes,
    only,
    reduced,
    refuse,
    text,
)

TABLE: dict[str, Lowering] = {}


# ------------------------------------------------------------------ elementwise
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


def with_attributes(
    operator: str, *fixed: tuple[str, str], guarded: bool = False, **names: tuple[str, Any]
) -> Lowering:
    """An elementwise function with parameters: row's name = (MXNet's name, default)."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        values = only(params, **{name: default for name, (_, default) in names.items()})
        if not all(v is None or type(v) in (int, float) for v in values):
            raise refuse("a parameter that is no plain number")
        given = {theirs: text(v) for (theirs, _), v in zip(names.values(), values, strict=True) if v is not None}
        lowered = elementwise(operator, **dict(fixed), **given)(metas, {})
        return lowered._replace(guard=finite) if guarded else lowered

    return lower


TABLE.update(
    {
        "round": with_attributes("_npi_around", decimals=("decimals", 0)),
        "nan_to_num": with_attributes(
            "_npi_nan_to_num", nan=("nan", 0.0), posinf=("posinf", None), neginf=("neginf", None)
        ),
        "npx.leaky_relu": with_attributes("LeakyReLU", ("act_type", "leaky"), slope=("slope", 0.25)),
        "npx.elu": with_attributes("LeakyReLU", ("act_type", "elu"), alpha=("slope", 1.0)),
        "npx.gelu": with_attributes("LeakyReLU", ("act_type", "gelu"), guarded=True),
        "npx.softplus": with_attributes("Activation", ("act_type", "softrelu")),
        "npx.smooth_l1": with_attributes("smooth_l1", scalar=("scalar", 1.0)),
    }
)


def _where(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    only(params)
    if metas[0].dtype != "bool":
        raise refuse(f"the condition is {metas[0].dtype}, not bool")
    return elementwise("_npi_where")(metas, params)


TABLE["where"] = _where


def _strong(operator: str) -> Lowering:
    """A product or quotient in which a zero beside what is infinite or NaN is not NaN: NumPy computes those."""
    return lambda metas, params: elementwise(operator)(metas, params)._replace(checked=True)


TABLE.update(
    {
        "npx.strong_multiply": _strong("_npi_multiply"),
        "npx.strong_product": _strong("_npi_multiply"),
        "npx.strong_divide": _strong("_npi_true_divide"),
    }
)


# ------------------------------------------------------------------ reductions and scans
SUMS = {"_np_sum", "_npi_mean"}  # whose compensation for rounding makes NaN of infinities and of what overflows


def reduction(operator: str, counts: bool = False) -> Lowering:
    """A reduction over axes; `counts`: with ddof, what the number of elements is lessened by."""

    def lower(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
        axis, keepdims, *ddof = only(params, axis=None, keepdims=False, **({"ddof": 0} if counts else {}))
        shape = metas[0].shape
        axes = normal_axes(axis, len(shape))
        sizes, across = folded(shape, axes)
        if not across or len(sizes) > MOST_AXES:  # sum(x, axis=()): nothing to add up
            raise refuse("no axis to reduce, or too many")
        # keepdims, because the operator has no results of shape ()
        texts = {"keepdims": "True", **({"ddof": text(ddof[0])} if counts else {})}
        if len(sizes) > 1:  # each attribute costs 2 us a call, and the default is every axis
            texts["axis"] = text(across)
        arguments = (Argument(0, sizes, metas[0].dtype),)
        guard = finite if counts else None
        return Lowered(
            operator, texts, arguments, reduced(shape, axes, keepdims), guard=guard, checked=operator in SUMS
        )

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
        return Lowered("_copy", {}, (Argument(0, shape or (1,), metas[0].dtype),), target, scalar=False)
    return reduction("_np_sum")(metas, {"axis": axes})._replace(shape=target)


def _diff(metas: Sequence[Meta], params: dict[str, Any]) -> Lowered:
    n, axis = only(params, n=1, axis=-1)
    shape = metas[0].shape
    (axis,) = normal_axes(int(axis), len(shape))
    if not 0 < n < shape[axis]:
        raise refuse(f"{n} differences of {shape[axis]} elements")
    return Lowered("_npi_diff", {"n": text(n), "axis": text(axis)}, (Argument(0, shape, metas[0].dtype),))


TABLE.update(
    {
        "var": reduction("_npi_var", counts=True),
        "std": reduction("_npi_std", counts=True),
        "diff": _diff,
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
