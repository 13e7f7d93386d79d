"""Operators that act element by element: functions of one array, arithmetic with arrays and numbers, comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import Shape, operator


def like(y: Any, x: Any) -> Any:
    """y in x's dtype: MXNet's results have that of the first input."""
    return y if y.dtype == x.dtype else y.astype(x.dtype)


# ------------------------------------------------------------------ of one array
def rint(data: Any) -> Any:
    """The nearest whole number; of two, the lower one, as MXNet has it."""
    return np.ceil(data - 0.5)


def round_(data: Any) -> Any:
    """The nearest whole number; of two, the one farther from 0."""
    return np.sign(data) * np.floor(np.abs(data) + 0.5)


def rsqrt(data: Any) -> Any:
    """1 / sqrt(data)."""
    return 1 / np.sqrt(data)


def rcbrt(data: Any) -> Any:
    """1 / cbrt(data)."""
    return 1 / np.cbrt(data)


def gamma(data: Any) -> Any:
    """The gamma function (SciPy's)."""
    from minnp.scipy import special

    return special.gamma(data)


def gammaln(data: Any) -> Any:
    """The logarithm of the gamma function's magnitude (SciPy's)."""
    from minnp.scipy import special

    return special.gammaln(data)


def softsign(data: Any) -> Any:
    """data / (1 + |data|)."""
    return npx.activation(data, "softsign")


def hard_sigmoid(data: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """alpha data + beta, between 0 and 1."""
    return np.clip(data * alpha + beta, 0.0, 1.0)


def logical_not(data: Any) -> Any:
    """1 where data is 0, else 0."""
    return np.equal(data, 0).astype(data.dtype)


def copy(data: Any) -> Any:
    """data."""
    return data


UNARY: dict[str, Callable] = {
    **{
        n: getattr(np, n)
        for n in [
            *(
                [
                    "abs",
                    "arccos",
                    "arccosh",
                    "arcsin",
                    "arcsinh",
                    "arctan",
                    "arctanh",
                    "cbrt",
                    "ceil",
                    "cos",
                    "cosh",
                    "degrees",
                    "exp",
                    "expm1",
                    "fix",
                    "floor",
                ]
            ),
            *(
                [
                    "log",
                    "log10",
                    "log1p",
                    "log2",
                    "negative",
                    "radians",
                    "reciprocal",
                    "sign",
                    "sin",
                    "sinh",
                    "sqrt",
                    "square",
                    "tan",
                    "tanh",
                    "trunc",
                ]
            ),
            *("zeros_like", "ones_like"),
        ]
    },
    "relu": npx.relu,
    "sigmoid": npx.sigmoid,
    "erf": npx.erf,
    "erfinv": npx.erfinv,
    "softsign": softsign,
    "rint": rint,
    "round": round_,
    "rsqrt": rsqrt,
    "rcbrt": rcbrt,
    "gamma": gamma,
    "gammaln": gammaln,
    "logical_not": logical_not,
    "_copy": copy,
    "BlockGrad": stop_gradient,
}
ALIASES = {"_copy": ("identity", "_copyto", "_CrossDeviceCopy"), "BlockGrad": ("stop_gradient",)}
for _name, _function in UNARY.items():
    operator(_name, _function, aliases=ALIASES.get(_name, ()), same=True)
operator("hard_sigmoid", hard_sigmoid, ("data",), "alpha:float=0.2 beta:float=0.5", same=True)
operator("smooth_l1", npx.smooth_l1, ("data",), "scalar:float=1.0", same=True)


def clip(data: Any, a_min: float, a_max: float) -> Any:
    """data between a_min and a_max."""
    return np.clip(data, a_min, a_max)


def cast(data: Any, dtype: Any) -> Any:
    """data in another dtype; floats lose what is behind the point."""
    return data.astype(dtype)


def _cast_types(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p["dtype"]]


operator("clip", clip, ("data",), "a_min:float a_max:float", same=True)
operator("Cast", cast, ("data",), "dtype:dtype", aliases=("cast",), same=True, dtypes=_cast_types)
operator("amp_cast", cast, ("data",), "dtype:dtype", same=True, dtypes=_cast_types)


# ------------------------------------------------------------------ of two arrays, or an array and a number
def _turned(function: Callable) -> Callable:
    """The function with its two arguments the other way round."""

    @functools.wraps(function)
    def turned(x: Any, scalar: float) -> Any:
        return like(function(scalar, x), x)

    return turned


def _with_number(function: Callable) -> Callable:
    @functools.wraps(function)
    def scaled(x: Any, scalar: float) -> Any:
        return like(function(x, scalar), x)

    return scaled


def _as_number(function: Callable) -> Callable:
    """A comparison whose result has the dtype of what is compared."""

    @functools.wraps(function)
    def compared(x: Any, y: Any) -> Any:
        return function(x, y).astype(x.dtype)

    return compared


def _logical(function: Callable) -> Callable:
    @functools.wraps(function)
    def combined(x: Any, y: Any) -> Any:
        return function(np.not_equal(x, 0), y != 0).astype(x.dtype)

    return combined


def _broadcast(p: dict, *shapes: Shape) -> list[Shape]:
    return [onp.broadcast_shapes(*shapes)]


def maximum(x: Any, y: Any) -> Any:
    """The larger; of two equal ones the first has the gradient."""
    return np.where(np.greater_equal(x, y), x, y)


def minimum(x: Any, y: Any) -> Any:
    """The smaller; of two equal ones the first has the gradient."""
    return np.where(np.less_equal(x, y), x, y)


# name -> (function, the pair's name and aliases, the names that broadcasting has, scalar's name, reversed scalar's)
PAIRS: dict[Callable, tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]] = {
    np.add: (("elemwise_add", "_add", "_plus", "_Plus"), ("broadcast_add", "broadcast_plus"),
             ("_plus_scalar", "_PlusScalar", "_scatter_plus_scalar"), ()),
    np.subtract: (("elemwise_sub", "_sub", "_minus", "_Minus"), ("broadcast_sub", "broadcast_minus"),
                  ("_minus_scalar", "_MinusScalar", "_scatter_minus_scalar"), ("_rminus_scalar", "_RMinusScalar")),
    np.multiply: (("elemwise_mul", "_mul", "_Mul"), ("broadcast_mul",), ("_mul_scalar", "_MulScalar"), ()),
    np.divide: (("elemwise_div", "_div", "_Div", "_scatter_elemwise_div"), ("broadcast_div",),
                ("_div_scalar", "_DivScalar"), ("_rdiv_scalar", "_RDivScalar")),
    np.mod: (("_mod", "_Mod"), ("broadcast_mod",), ("_mod_scalar", "_ModScalar"), ("_rmod_scalar", "_RModScalar")),
    np.power: (("_power", "_Power"), ("broadcast_power",), ("_power_scalar", "_PowerScalar"),
               ("_rpower_scalar", "_RPowerScalar")),
    maximum: (("_maximum", "_Maximum"), ("broadcast_maximum",), ("_maximum_scalar", "_MaximumScalar"), ()),
    minimum: (("_minimum", "_Minimum"), ("broadcast_minimum",), ("_minimum_scalar", "_MinimumScalar"), ()),
    np.hypot: (("_hypot", "_Hypot"), ("broadcast_hypot",), ("_hypot_scalar", "_HypotScalar"), ()),
    **{
        make(getattr(np, function)): (
            (f"_{name}", f"_{title}"), (f"broadcast_{name}",),
            (f"_{name}_scalar", f"_{title.replace('_', '')}Scalar"), ()
        )
        for name, function, title, make in [
            ("equal", "equal", "Equal", _as_number), ("not_equal", "not_equal", "Not_Equal", _as_number),
            ("greater", "greater", "Greater", _as_number), ("lesser", "less", "Lesser", _as_number),
            ("greater_equal", "greater_equal", "Greater_Equal", _as_number),
            ("lesser_equal", "less_equal", "Lesser_Equal", _as_number),
            ("logical_and", "logical_and", "Logical_And", _logical),
            ("logical_or", "logical_or", "Logical_Or", _logical),
            ("logical_xor", "logical_xor", "Logical_Xor", _logical),
        ]
    },
}  # fmt: skip
SCALAR = "scalar:float=1 is_int:~bool=1"
for _function, (_pair, _wide, _scalar, _reverse) in PAIRS.items():
    _both = ("lhs", "rhs")
    operator(_pair[0], _function, _both, aliases=_pair[1:], same=True)
    operator(_wide[0], _function, _both, aliases=_wide[1:], result=_broadcast)
    operator(_scalar[0], _with_number(_function), ("data",), SCALAR, aliases=_scalar[1:], same=True)
    if _reverse:
        operator(_reverse[0], _turned(_function), ("data",), SCALAR, aliases=_reverse[1:], same=True)
operator("_grad_add", np.add, ("lhs", "rhs"), same=True)


def add_n(*args: Any) -> Any:
    """The sum of arrays of one shape."""
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


operator("add_n", add_n, None, "num_args:~int", aliases=("ElementWiseSum",), same=True, count="num_args")


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where condition is not 0, else y; a vector chooses among the first axis' places."""
    if condition.shape != x.shape:
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - 1))
    return np.where(np.not_equal(condition, 0), x, y)


def _where_fill(p: dict, shapes: list) -> list:
    condition, x, y = shapes
    return [condition or x or y, x or y, y or x]


operator("where", where, ("condition", "x", "y"), fill=_where_fill, result=lambda p, c, x, y: [x])


# ------------------------------------------------------------------ what mixed precision and sparse arrays need
def amp_multicast(*data: Any, num_outputs: int, cast_narrow: bool = False) -> tuple:
    """Arrays in the widest of their dtypes, or the narrowest."""
    types = sorted({x.dtype for x in data}, key=lambda t: t.itemsize)
    return tuple(x.astype(types[0 if cast_narrow else -1]) for x in data)


def _one_type(p: dict, ins: list) -> tuple[list, list]:
    known = sorted({t for t in ins if t is not None}, key=lambda t: t.itemsize)
    wanted = known[0 if p["cast_narrow"] else -1] if known else None
    return ins, [wanted] * p["num_outputs"]


def all_finite(*data: Any, **hints: Any) -> Any:
    """1 where all numbers of all arrays are finite, else 0: [1]."""
    found = [np.all(np.isfinite(stop_gradient(x))) for x in data]
    return np.reshape(np.all(np.stack(found)), (1,)).astype(onp.float32)


def sums_of_squares(*data: Any) -> Any:
    """Of each array the sum of its squares: [number of arrays]."""
    return np.stack([np.sum(np.square(stop_gradient(x))) for x in data])


def _flag(p: dict, ins: list) -> tuple[list, list]:
    return ins, [onp.dtype("float32")]


operator("cast_storage", copy, ("data",), "stype:~default|row_sparse|csr", same=True)
operator("_identity_with_attr_like_rhs", lambda lhs, rhs: lhs, ("lhs", "rhs"), same=True)
operator("amp_multicast", amp_multicast, None, "num_outputs:int cast_narrow:bool=0", count="num_outputs",
         outputs=lambda p: [f"output{i}" for i in range(p["num_outputs"])], dtypes=_one_type,
         result=lambda p, *shapes: list(shapes))  # fmt: skip
operator("all_finite", all_finite, ("data",), "init_output:~bool=1", result=lambda p, *s: [(1,)], dtypes=_flag)
operator("multi_all_finite", all_finite, None, "num_arrays:~int=1 init_output:~bool=1", count="num_arrays",
         result=lambda p, *s: [(1,)], dtypes=_flag)  # fmt: skip
operator("multi_sum_sq", sums_of_squares, None, "num_arrays:~int", count="num_arrays",
         result=lambda p, *s: [(len(s),)])  # fmt: skip
