"""The operators behind mx.np and mx.npx: `_np_`, `_npi_` and `_npx_` names, with NumPy's meaning.

Symbols that gluon exports from such models say them. What MXNet registers as another name of an older operator
(`_npx_convolution`) is that operator here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import Shape, operator
from .algebra import potrf

words = str.split
FLOAT, DOUBLE, BOOL, INT = map(onp.dtype, ("float32", "float64", "bool", "int64"))
DTYPE = "dtype:dtype=None"


def floating(x: Any) -> Any:
    """x, whole numbers as float32, in which MXNet computes with them."""
    return x if x.dtype.kind == "f" else x.astype(FLOAT)


def _as_floats(p: dict, ins: list) -> tuple[list, list]:
    return ins, [None if ins[0] is None else ins[0] if ins[0].kind == "f" else FLOAT]


def _gives(dtype: onp.dtype, count: int = 1) -> Callable:
    return lambda p, ins: (ins, [dtype] * count)


def _wide(p: dict, *shapes: Shape) -> list[Shape]:
    return [onp.broadcast_shapes(*shapes)]


def _common(x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays in one dtype: that of the floats, where one has whole numbers."""
    kinds = x.dtype.kind == "f", y.dtype.kind == "f"
    if kinds == (True, False):
        return x, y.astype(x.dtype)
    return (x.astype(y.dtype), y) if kinds == (False, True) else (x, y)


def _common_type(p: dict, ins: list) -> tuple[list, list]:
    if None in ins:
        return ins, [None]
    floats = [t for t in ins if t.kind == "f"]
    return ins, [onp.result_type(*(floats or ins))]


# ------------------------------------------------------------------ of one array
def _of_floats(function: Callable) -> Callable:
    """The function in x's dtype: MXNet rounds what it finds for whole numbers."""
    return lambda x: function(floating(x)).astype(x.dtype)


for _name in words(
    "arccos arccosh arcsin arcsinh arctan arctanh cbrt cos cosh degrees exp expm1 log log10 log1p log2 radians sin sinh"
    " sqrt tan tanh"
):
    operator(f"_npi_{_name}", _of_floats(getattr(np, _name)), ("x",), same=True)
for _name in words("absolute ceil fix floor negative reciprocal sign square trunc"):
    operator(f"_npi_{_name}", getattr(np, _name), ("x",), same=True)
operator("_npi_rint", np.rint, ("x",), same=True)
operator("_npi_around", np.around, ("x",), "decimals:int=0", same=True)
operator("_npi_bitwise_not", np.invert, ("x",), same=True)
for _name in words("isfinite isinf isnan isneginf isposinf logical_not"):
    operator(f"_npi_{_name}", getattr(np, _name), ("x",), same=True, dtypes=_gives(BOOL), loss=True)
operator("_npx_relu", _of_floats(npx.relu), same=True)
operator("_npx_sigmoid", _of_floats(npx.sigmoid), same=True)
operator("_np_copy", lambda a: a, ("a",), same=True)


def nan_to_num(data: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """numpy.nan_to_num."""
    return np.nan_to_num(data, nan=nan, posinf=posinf, neginf=neginf)


operator("_npi_nan_to_num", nan_to_num, ("data",), "copy:bool=1 nan:float=0 posinf:float=None neginf:float=None",
         same=True)  # fmt: skip


# ------------------------------------------------------------------ of two arrays, or an array and a number
def true_divide(x: Any, y: Any) -> Any:
    """numpy.true_divide; of whole numbers, float32."""
    x, y = _common(x, y)
    return np.true_divide(floating(x), floating(y))


def _pair(function: Callable) -> Callable:
    return lambda x, y: function(*_common(x, y))


def _floats(function: Callable) -> Callable:
    return lambda x, y: function(*map(floating, _common(x, y)))


def _with_number(function: Callable, turned: bool = False, wide: onp.dtype = DOUBLE) -> Callable:
    """The function of an array and a number, which is a float unless `is_int` says that the program wrote an int; of
    whole numbers and a float in the dtype `wide`."""

    def scaled(data: Any, scalar: float = 1.0, is_int: bool = True) -> Any:
        number: float = int(scalar) if is_int and data.dtype.kind != "f" else float(scalar)
        x = data if isinstance(number, int) or data.dtype.kind == "f" else data.astype(wide)
        y = onp.asarray(number, x.dtype if x.dtype.kind != "b" else INT)
        return function(y, x) if turned else function(x, y)

    return scaled


def _number_type(p: dict, ins: list) -> tuple[list, list]:
    kept = ins[0] is None or ins[0].kind == "f" or p["is_int"]
    return ins, [ins[0] if kept else DOUBLE]


def _float_types(p: dict, ins: list) -> tuple[list, list]:
    found = _common_type(p, ins)[1][0]
    return ins, [FLOAT if found is not None and found.kind != "f" else found]


def ldexp(x: Any, y: Any) -> Any:
    """x 2**y, of floats, as MXNet has it."""
    return x * np.exp2(y)


SCALAR = "scalar:float=1 is_int:bool=1"
for _name, _function, _kind in (
    ("add", np.add, ""), ("subtract", np.subtract, "r"), ("multiply", np.multiply, ""), ("mod", np.mod, "r"),
    ("power", np.power, "r"), ("true_divide", true_divide, "rf"), ("copysign", np.copysign, "rf"),
    ("arctan2", np.arctan2, "rf"), ("ldexp", ldexp, "rf"), ("bitwise_and", np.bitwise_and, ""),
    ("bitwise_or", np.bitwise_or, ""), ("bitwise_xor", np.bitwise_xor, ""), ("lcm", np.lcm, ""),
):  # fmt: skip
    _two = ("x1", "x2") if _name == "arctan2" else ("lhs", "rhs")
    _run, _types, _one = _pair, _common_type, _number_type
    if "f" in _kind:
        _run, _types, _one = _floats, _float_types, _as_floats
    operator(f"_npi_{_name}", _run(_function), _two, result=_wide, dtypes=_types)
    _scaled, _in = (_floats(_function), FLOAT) if "f" in _kind else (_function, DOUBLE)
    operator(f"_npi_{_name}_scalar", _with_number(_scaled, wide=_in), ("data",), SCALAR, same=True, dtypes=_one)
    if "r" in _kind:
        operator(f"_npi_r{_name}_scalar", _with_number(_scaled, True, _in), ("data",), SCALAR, same=True, dtypes=_one)
operator("_npi_hypot", _floats(np.hypot), ("x1", "x2"), result=_wide, dtypes=_float_types)
for _name in words("equal not_equal greater greater_equal less less_equal"):
    _function = getattr(np, _name)
    operator(f"_npi_{_name}", _pair(_function), ("lhs", "rhs"), result=_wide, dtypes=_gives(BOOL), loss=True)
    operator(f"_npi_{_name}_scalar", _with_number(_function), ("data",), SCALAR, same=True, dtypes=_gives(BOOL),
             loss=True)  # fmt: skip


# ------------------------------------------------------------------ choosing
def _chosen_type(p: dict, ins: list) -> tuple[list, list]:
    one = next((t for t in ins[1:] if t is not None), None)
    return [ins[0], *(t or one for t in ins[1:])], [one]


def where(condition: Any, x: Any, y: Any) -> Any:
    """numpy.where."""
    return np.where(np.not_equal(condition, 0), x, y)


operator("_npi_where", where, ("condition", "x", "y"), result=_wide, dtypes=_chosen_type)
operator("_npi_where_lscalar", lambda condition, x, scalar: where(condition, onp.asarray(scalar, x.dtype), x),
         ("condition", "x"), "scalar:float=0", result=_wide, dtypes=_chosen_type)  # fmt: skip
operator("_npi_where_rscalar", lambda condition, y, scalar: where(condition, y, onp.asarray(scalar, y.dtype)),
         ("condition", "y"), "scalar:float=0", result=_wide, dtypes=_chosen_type)  # fmt: skip
operator("_npi_where_scalar2", lambda condition, x, y: where(condition, FLOAT.type(x), FLOAT.type(y)),
         ("condition",), "x:float=0 y:float=0", same=True, dtypes=_gives(FLOAT))  # fmt: skip


# ------------------------------------------------------------------ reductions
def _reduced(p: dict, data: Shape) -> list[Shape]:
    axis = p["axis"]
    over = range(len(data)) if axis is None else [a % len(data) for a in ((axis,) if type(axis) is int else axis)]
    if p.get("keepdims"):
        return [tuple(1 if i in over else n for i, n in enumerate(data))]
    return [tuple(n for i, n in enumerate(data) if i not in over)]


def _reduction(function: Callable) -> Callable:
    def reduced(a: Any, axis: Shape | None = None, keepdims: bool = False, **options: Any) -> Any:
        given = {n: v for n, v in options.items() if v is not None}
        return function(a, axis=axis, keepdims=keepdims, **given)

    return reduced


def _mean(a: Any, dtype: Any = None, **options: Any) -> Any:
    return np.mean(floating(a) if dtype is None else a, **options, **({} if dtype is None else {"dtype": dtype}))


def _spread(function: Callable) -> Callable:
    def spread(a: Any, dtype: Any = None, **options: Any) -> Any:
        return function(floating(a) if dtype is None else a.astype(dtype), **options)

    return spread


def _summed_type(p: dict, ins: list) -> tuple[list, list]:
    of_bools = ins[0] is not None and ins[0].kind == "b"
    return ins, [p["dtype"] or (INT if of_bools else ins[0])]


def _mean_type(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p["dtype"]] if p["dtype"] is not None else _as_floats(p, ins)[1]


def _total(function: Callable) -> Callable:
    """A sum or product in the dtype of what is added up, as MXNet's are; bools are counted."""

    def total(a: Any, dtype: Any = None, **options: Any) -> Any:
        return function(a, dtype=dtype or (INT if a.dtype.kind == "b" else a.dtype), **options)

    return total


_AXES = "axis:shape=None"
for _name, _also in (("sum", ()), ("prod", ("_np_product",))):
    operator(f"_np_{_name}", _reduction(_total(getattr(np, _name))), ("a",),
             f"{_AXES} {DTYPE} keepdims:bool=0 initial:float=None", aliases=_also, result=_reduced,
             dtypes=_summed_type)  # fmt: skip
for _name in ("max", "min"):
    operator(f"_np_{_name}", _reduction(getattr(np, _name)), ("a",), f"{_AXES} keepdims:bool=0 initial:float=None",
             aliases=(f"_np_a{_name}",), result=_reduced)  # fmt: skip
operator("_npi_mean", _reduction(_mean), ("a",), f"{_AXES} {DTYPE} keepdims:bool=0 initial:~float=None",
         result=_reduced, dtypes=_mean_type)  # fmt: skip
for _name in ("std", "var"):
    operator(f"_npi_{_name}", _reduction(_spread(getattr(np, _name))), ("a",),
             f"{_AXES} {DTYPE} ddof:int=0 keepdims:bool=0", outputs=(_name,), result=_reduced,
             dtypes=_mean_type)  # fmt: skip
for _name, _also in (("all", ()), ("any", ("_np_sometrue",))):
    operator(f"_np_{_name}", _reduction(getattr(np, _name)), ("data",), f"{_AXES} keepdims:bool=0", aliases=_also,
             result=_reduced, dtypes=_gives(BOOL), loss=True)  # fmt: skip
for _name in ("argmax", "argmin"):
    operator(f"_npi_{_name}", _reduction(getattr(np, _name)), ("data",), "axis:int=None keepdims:bool=0",
             result=_reduced, dtypes=_gives(INT), loss=True)  # fmt: skip


def average(a: Any, weights: Any = None, axis: Shape | None = None, returned: bool = False,
            weighted: bool = True) -> Any:  # fmt: skip
    """numpy.average, in floats; the sum of weights along one axis is a number."""
    found = np.average(floating(a), axis[0] if axis and len(axis) == 1 else axis, weights, returned)
    if returned and weights is not None and weights.ndim < a.ndim:
        return found[0], np.sum(weights)
    return found


def _averaged(p: dict, a: Shape, weights: Shape | None = None) -> list[Shape]:
    (y,) = _reduced(p, a)
    return [y, y if weights is None or len(weights) == len(a) else ()][: 1 + p["returned"]]


operator("_npi_average", average, lambda p: ("a", "weights") if p["weighted"] else ("a",),
         f"{_AXES} returned:bool=0 weighted:bool=1", result=_averaged,
         outputs=lambda p: ("output0", "output1") if p["returned"] else ("output0",),
         dtypes=lambda p, ins: (ins, _as_floats(p, ins)[1] * (1 + p["returned"])))  # fmt: skip


def percentile(a: Any, q: Any = None, axis: Shape | None = None, interpolation: str = "linear",
               keepdims: bool = False, q_scalar: float | None = None) -> Any:  # fmt: skip
    """numpy.percentile, in floats."""
    a, q = floating(a), q if q_scalar is None else q_scalar
    return np.percentile(a, q, axis=axis, method=interpolation, keepdims=keepdims).astype(a.dtype)


operator("_npi_percentile", percentile, lambda p: ("a", "q") if p["q_scalar"] in (None,) else ("a",),
         f"{_AXES} interpolation:linear|lower|higher|midpoint|nearest=linear keepdims:bool=0 q_scalar:float=None",
         result=lambda p, a, q=(): [(*q, *_reduced(p, a)[0])], dtypes=_as_floats)  # fmt: skip


# ------------------------------------------------------------------ shapes
def reshape(a: Any, newshape: Shape, order: str = "C") -> Any:
    """numpy.reshape."""
    return np.reshape(a, newshape)


operator("_np_reshape", reshape, ("a",), "newshape:shape order:C=C")
operator("_np_transpose", lambda a, axes=None: np.transpose(a, axes or None), ("a",), "axes:shape=None",
         result=lambda p, a: [tuple(a[i] for i in p["axes"]) if p["axes"] else a[::-1]])  # fmt: skip
operator("_np_squeeze", lambda a, axis=None: np.squeeze(a, axis), ("a",), "axis:shape=None")
operator("_np_moveaxis", np.moveaxis, ("a",), "source:shape destination:shape")
operator("_np_roll", lambda data, shift, axis=None: np.roll(data, shift if axis or len(shift) > 1 else shift[0], axis),
         ("data",), "shift:shape=None axis:shape=None", same=True)  # fmt: skip
operator("_npi_flip", np.flip, ("data",), "axis:shape=None", same=True)
operator("_npi_rot90", lambda data, k=1, axes=None: np.rot90(data, k, axes or (0, 1)), ("data",),
         "k:int=1 axes:shape=None")  # fmt: skip
operator("_npi_tril", np.tril, ("data",), "k:int=0", same=True)
operator("_np_diag", np.diag, ("data",), "k:int=0")
operator("_np_diagflat", np.diagflat, ("data",), "k:int=0")
operator("_np_diagonal", np.diagonal, ("data",), "offset:int=0 axis1:int=0 axis2:int=1")
operator("_np_trace", np.trace, ("data",), "offset:int=0 axis1:int=0 axis2:int=1")
operator("_npi_diff", np.diff, ("a",), "n:int=1 axis:int=-1")


def ediff1d(x: Any, *ends: Any, to_begin_arr_given: bool = False, to_end_arr_given: bool = False,
            to_begin_scalar: float | None = None, to_end_scalar: float | None = None) -> Any:  # fmt: skip
    """numpy.ediff1d, with what comes before and after as arrays or numbers."""
    begin = ends[0] if to_begin_arr_given else to_begin_scalar
    end = ends[-1] if to_end_arr_given else to_end_scalar
    begin, end = (e if e is None else np.ravel(np.asarray(e, x.dtype)) for e in (begin, end))
    return np.concatenate([part for part in (begin, np.diff(np.ravel(x)), end) if part is not None])


operator("_npi_ediff1d", ediff1d,
         lambda p: ("input1", "input2", "input3")[: 1 + bool(p["to_begin_arr_given"]) + bool(p["to_end_arr_given"])],
         "to_begin_arr_given:bool=0 to_end_arr_given:bool=0 to_begin_scalar:float=None "
         "to_end_scalar:float=None")  # fmt: skip


def pad(
    data: Any, pad_width: Any, mode: str = "constant", constant_value: float = 0, reflect_type: str = "even"
) -> Any:
    """numpy.pad."""
    options = {"constant": {"constant_values": constant_value}, "reflect": {"reflect_type": reflect_type}}
    return np.pad(data, pad_width, mode, **options.get(mode, {}))


operator("_npi_pad", pad, ("data",),
         "pad_width:pairs mode:constant|edge|maximum|minimum|reflect|symmetric=constant constant_value:float=0 "
         "reflect_type:even|odd=even",
         result=lambda p, a: [tuple(m + n + k for n, (m, k) in zip(a, p["pad_width"], strict=True))])  # fmt: skip
operator("_npi_diag_indices_from", lambda data: np.stack(np.diag_indices_from(data)), ("data",), dtypes=_gives(INT),
         loss=True)  # fmt: skip


def broadcast_to(array: Any, shape: Shape) -> Any:
    """numpy.broadcast_to."""
    return np.broadcast_to(array, shape)


operator("_npi_broadcast_to", broadcast_to, ("array",), "shape:shape=()", result=lambda p, a: [p["shape"]])
operator("_npi_stack", lambda *data, axis=0: np.stack(data, axis), None, "axis:int=0 num_args:~int", count="num_args")


def _of_several(function: Callable) -> Callable:
    return lambda *data: function(data)


def _each(function: Callable) -> Callable:
    return lambda *arys: tuple(map(function, arys))


for _name in ("hstack", "dstack", "vstack", "column_stack"):
    _more, _called = (" dim:~int=1", "out") if _name in ("hstack", "dstack") else ("", "output")
    operator(f"_npi_{_name}", _of_several(getattr(np, _name)), None, f"num_args:~int{_more}",
             outputs=(_called,), count="num_args")  # fmt: skip
operator("_npi_concatenate", lambda *data, axis=0: np.concatenate(data, axis), None, "num_args:~int axis:int=0",
         outputs=("out",), count="num_args")  # fmt: skip
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    operator(f"_np_{_name}", _each(getattr(np, _name)), None, "num_args:~int",
             count="num_args", outputs=lambda p: [f"output{i}" for i in range(p["num_args"])]
             if p["num_args"] > 1 else ["output"])  # fmt: skip


def npx_reshape(a: Any, newshape: Shape, reverse: bool = False, order: str = "C") -> Any:
    """numpy.reshape with codes in newshape.

    -2: this axis as it is; -3: leave out this axis of length 1; -4: all the other axes; -5: the product of the next
    two; -6, m, n: this axis as two. `reverse` reads both from the end, so n, m, -6.
    """
    size, codes = list(a.shape), list(newshape)
    if reverse:
        size, codes = size[::-1], codes[::-1]
    out: list[int] = []
    at = k = 0
    while k < len(codes):
        code = codes[k]
        if code == -2:
            out.append(size[at])
            at += 1
        elif code == -3:
            if size[at] != 1:
                raise ValueError(f"-3 in newshape={newshape} leaves out axis {at} of {a.shape}, whose length is not 1")
            at += 1
        elif code == -4:
            left = len(codes) - k - 1
            end = len(size) - left
            out += size[at:end]
            at = end
        elif code == -5:
            out.append(size[at] * size[at + 1])
            at += 2
        elif code == -6:
            first, second = codes[k + 1 : k + 3]
            first, second = (
                (size[at] // second if first == -1 else first),
                (size[at] // first if second == -1 else second),
            )
            out += [first, second]
            at, k = at + 1, k + 2
        else:
            out.append(code)
            at += 1
        k += 1
    return np.reshape(a, tuple(out[::-1] if reverse else out))


operator("_npx_reshape", npx_reshape, ("a",), "newshape:shape reverse:bool=0 order:C=C")


def split(data: Any, indices: Shape = (), axis: int = 1, squeeze_axis: bool = False, sections: int = 0) -> tuple:
    """numpy.split in equal parts, or before each of the indices after the first, which is 0."""
    parts = np.split(data, sections if sections else list(indices[1:]), axis)
    return tuple(np.squeeze(part, axis) if squeeze_axis else part for part in parts)


for _name, _axis in (("hsplit", 1), ("dsplit", 2)):
    operator(f"_npi_{_name}",
             lambda data, _axis=_axis, axis=None, **p: split(data, axis=0 if data.ndim == 1 else _axis, **p),
             ("data",), "indices:shape axis:~int=1 squeeze_axis:bool=0 sections:int=0",
             outputs=lambda p: [f"output{i}" for i in range(p["sections"] or len(p["indices"]))])  # fmt: skip


# ------------------------------------------------------------------ products
operator("_np_dot", np.dot, ("a", "b"))
operator("_npi_matmul", np.matmul, ("a", "b"), outputs=("out",))
operator("_npi_tensordot",
         lambda a, b, a_axes_summed, b_axes_summed: np.tensordot(a, b, (a_axes_summed, b_axes_summed)),
         ("a", "b"), "a_axes_summed:shape b_axes_summed:shape")  # fmt: skip
operator("_npi_tensordot_int_axes", lambda a, b, axes: np.tensordot(a, b, axes), ("a", "b"), "axes:int")
operator("_npi_einsum", lambda *data, subscripts="": np.einsum(subscripts, *data), None,
         "num_args:~int subscripts:str= optimize:~int=0", count="num_args")  # fmt: skip
operator("_npi_polyval", np.polyval, ("p", "x"), result=lambda p, c, x: [x])


# ------------------------------------------------------------------ linear algebra
operator("_npi_cholesky", potrf, ("A",), same=True)


def _solved(p: dict, a: Shape, b: Shape) -> list[Shape]:
    gone = [i % len(a) for i in p["a_axes"]]
    return [tuple([*(a[i] for i in range(len(a)) if i not in gone), *(a[i] for i in gone)][len(b) :])]


operator("_npi_solve", np.linalg.solve, ("A", "B"), result=lambda p, a, b: [b])
operator("_npi_pinv_scalar_rcond", lambda A, rcond=1e-15, hermitian=False: np.linalg.pinv(A, rcond, hermitian), ("A",),
         "rcond:float=1e-15 hermitian:bool=0")  # fmt: skip
operator("_npi_tensorinv", np.linalg.tensorinv, ("a",), "ind:int=2",
         result=lambda p, a: [(*a[p["ind"] :], *a[: p["ind"]])])  # fmt: skip
operator("_npi_tensorsolve", lambda a, b, a_axes=(): np.linalg.tensorsolve(a, b, a_axes or None), ("a", "b"),
         "a_axes:shape=()", result=_solved)  # fmt: skip


def norm(data: Any, ord: float = 2, axis: Shape | None = None, keepdims: bool = False, flag: int = -1) -> Any:
    """numpy.linalg.norm.

    flag   -2, 1: the root of the sum of squares; 2: the sum of singular values; 0, -1: of order `ord`
    """
    axes = axis[0] if axis and len(axis) == 1 else axis
    return np.linalg.norm(data, {-2: None, 1: None, 2: "nuc"}.get(flag, ord), axes, keepdims)


operator("_npi_norm", norm, ("data",), "ord:float=2 axis:shape=None keepdims:bool=0 flag:int=-1", outputs=("output0",),
         result=_reduced)  # fmt: skip
operator("_npi_pinv", lambda A, rcond, hermitian=False: np.linalg.pinv(A, stop_gradient(rcond), hermitian),
         ("A", "rcond"), "hermitian:bool=0", result=lambda p, a, rcond: [(*a[:-2], a[-1], a[-2])])  # fmt: skip
operator("_npi_svd", lambda A: tuple(np.linalg.svd(A, full_matrices=False)), ("A",),
         outputs=("output0", "output1", "output2"), dtypes=lambda p, ins: (ins, ins * 3))  # fmt: skip
operator("_npi_eigh", lambda A, UPLO="L": tuple(np.linalg.eigh(A, UPLO)), ("A",), "UPLO:L|U=L",
         outputs=("output0", "output1"), result=lambda p, a: [a[:-1], a],
         dtypes=lambda p, ins: (ins, ins * 2))  # fmt: skip
operator("_npi_det", np.linalg.det, ("A",), outputs=("output0",), result=lambda p, a: [a[:-2]])
operator("_npi_slogdet", lambda A: tuple(np.linalg.slogdet(A)), ("A",), outputs=("output0", "output1"),
         result=lambda p, a: [a[:-2]] * 2, dtypes=lambda p, ins: (ins, ins * 2))  # fmt: skip


def eig(A: Any) -> tuple:
    """numpy.linalg.eig. Raises ValueError for eigenvalues that are no real numbers, which MXNet lacks."""
    w, v = np.linalg.eig(A)
    if (w.imag != 0).any():
        raise ValueError("a matrix has complex eigenvalues, and MXNet's arrays have real numbers")
    return w.real, v.real  # NumPy 2.5 gives complex numbers for all


operator("_npi_eig", eig, ("A",), outputs=("output0", "output1"), result=lambda p, a: [a[:-1], a],
         dtypes=lambda p, ins: (ins, ins * 2))  # fmt: skip
operator("_npi_eigvals", lambda A: eig(A)[0], ("A",), result=lambda p, a: [a[:-1]])
operator("_npi_eigvalsh", lambda A, UPLO="L": np.linalg.eigvalsh(A, UPLO), ("A",), "UPLO:L|U=L")


# ------------------------------------------------------------------ of shapes that depend on data
def unique(data: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None) -> Any:  # fmt: skip
    """numpy.unique."""
    return np.unique(stop_gradient(data), return_index, return_inverse, return_counts, axis)


def _asked(p: dict) -> int:
    return p["return_index"] + p["return_inverse"] + p["return_counts"]


operator("_npi_unique", unique, ("data",),
         "return_index:bool=0 return_inverse:bool=0 return_counts:bool=0 axis:int=None",
         outputs=lambda p: [f"output{i}" for i in range(1 + _asked(p))] if _asked(p) else ["output"],
         result=lambda p, a: [None] * (1 + _asked(p)), dtypes=lambda p, ins: (ins, ins + [INT] * _asked(p)),
         loss=True)  # fmt: skip
operator("_npx_nonzero", lambda x: np.argwhere(stop_gradient(x)), ("x",), aliases=("_npi_nonzero",),
         result=lambda p, a: [None], dtypes=_gives(INT), loss=True)  # fmt: skip


def bincount(data: Any, weights: Any = None, minlength: int = 0, has_weights: bool = False) -> Any:
    """numpy.bincount, in the dtype of the weights."""
    data, weights = (a if a is None else stop_gradient(a) for a in (data, weights))
    return np.bincount(data, weights, minlength).astype(data.dtype if weights is None else weights.dtype)


operator("_npi_bincount", bincount, lambda p: ("data", "weights") if p["has_weights"] else ("data",),
         "minlength:int=0 has_weights:bool=0", result=lambda p, *s: [None], dtypes=lambda p, ins: (ins, ins[-1:]),
         loss=True)  # fmt: skip


# ------------------------------------------------------------------ writing
def _placed(int_ind: int | None, start: int | None, stop: int | None, step: int | None, obj: Any, **rest: Any) -> Any:
    """Where something is inserted or deleted: a number, a slice, or the numbers in an array."""
    if obj is not None:
        return stop_gradient(obj).astype(INT)
    return slice(start, stop, step) if int_ind is None else int_ind


def _insert(of_tensor: bool) -> Callable:
    def insert(arr: Any, *rest: Any, val: float | None = None, axis: int | None = None, **where: Any) -> Any:
        values = arr.dtype.type(val) if val is not None else rest[0].astype(arr.dtype)
        return np.insert(arr, _placed(obj=rest[-1] if of_tensor else None, **where), values, axis)

    return insert


def delete(arr: Any, obj: Any = None, axis: int | None = None, **where: Any) -> Any:
    """numpy.delete."""
    return np.delete(arr, _placed(obj=obj, **where), axis)


_WHERE = "start:int=None stop:int=None step:int=None int_ind:int=None axis:int=None"
for _name in ("scalar", "slice", "tensor"):
    operator(f"_npi_insert_{_name}", _insert(_name == "tensor"),
             lambda p, _last=("obj",) * (_name == "tensor"): ("arr", *(("values",) * (p["val"] in (None,))), *_last),
             f"val:float=None {_WHERE}", dtypes=lambda p, ins: (ins, ins[:1]))  # fmt: skip


def _shortened(p: dict, arr: Shape, *obj: Shape) -> list:
    return [None if obj else onp.delete(onp.broadcast_to(0, arr), _placed(**p | {"obj": None}), p["axis"]).shape]


operator("_npi_delete", delete, lambda p: ("arr", *(("obj",) * (p["step"] in (None,) and p["int_ind"] in (None,)))),
         _WHERE, result=_shortened, dtypes=lambda p, ins: (ins, ins[:1]))  # fmt: skip


def _over(mask: Any, data: Any, start_axis: int) -> Any:
    """The mask of whole elements of data, whose axes from start_axis on it has."""
    rest = data.ndim - start_axis - mask.ndim
    return np.reshape(np.not_equal(mask, 0), (1,) * start_axis + mask.shape + (1,) * rest)


def mask_assign(data: Any, mask: Any, value: Any, start_axis: int = 0) -> Any:
    """data after data[:, mask] = value, with as many axes before the mask as start_axis says."""
    if value.size != 1 and value.ndim:
        out = np.array(data)
        out[(slice(None),) * start_axis + (np.not_equal(stop_gradient(mask), 0),)] = value
        return out
    return np.where(_over(mask, data, start_axis), np.reshape(value, ()).astype(data.dtype), data)


operator("_npi_boolean_mask_assign_scalar",
         lambda data, mask, value=0.0, start_axis=0: mask_assign(data, mask, onp.asarray(value), start_axis),
         ("data", "mask"), "value:float=0 start_axis:int=0", result=lambda p, data, mask: [data],
         dtypes=lambda p, ins: (ins, ins[:1]))  # fmt: skip
operator("_npi_boolean_mask_assign_tensor", mask_assign, ("data", "mask", "value"), "start_axis:int=0",
         result=lambda p, data, mask, value: [data], dtypes=lambda p, ins: (ins, ins[:1]))  # fmt: skip


def scatter_set_nd(lhs: Any, rhs: Any, indices: Any, shape: Shape) -> Any:
    """lhs after lhs[tuple(indices)] = rhs."""
    out = np.array(lhs)
    out[tuple(stop_gradient(indices).astype(INT))] = rhs
    return out


operator("_scatter_set_nd", scatter_set_nd, ("lhs", "rhs", "indices"), "shape:shape", aliases=("_npi_scatter_set_nd",),
         result=lambda p, lhs, rhs, indices: [p["shape"]], dtypes=lambda p, ins: (ins, ins[:1]))  # fmt: skip


def constraint_check(input: Any, msg: str = "Constraint violated.") -> Any:
    """True. Raises ValueError, with msg, where not all is true."""
    if not bool(np.all(input)):
        raise ValueError(msg)
    return np.ones((), BOOL)


operator("_npx_constraint_check", constraint_check, ("input",), "msg:str=Constraint_violated.", loss=True,
         result=lambda p, s: [()], dtypes=_gives(BOOL))  # fmt: skip


# ------------------------------------------------------------------ new arrays
def _made(function: Callable) -> Callable:
    return lambda dtype=None, ctx="", **p: function(**p).astype(dtype or FLOAT)


def _made_type(p: dict, ins: list) -> tuple[list, list]:
    return ins, [p["dtype"] or FLOAT]


_NEW = "ctx:~str= dtype:dtype=float32"
for _name in ("zeros", "ones"):
    operator(f"_npi_{_name}", _made(getattr(np, _name)), (), f"shape:shape=() {_NEW}",
             result=lambda p: [p["shape"]], dtypes=_made_type)  # fmt: skip
operator("_npi_identity", _made(lambda shape: np.eye(*shape)), (), f"shape:shape=() {_NEW}",
         result=lambda p: [p["shape"]], dtypes=_made_type)  # fmt: skip
operator("_npi_eye", _made(lambda N, M=None, k=0: np.eye(N, M, k)), (), f"N:int M:int=None k:int=0 {_NEW}",
         dtypes=_made_type)  # fmt: skip
operator("_npi_arange", _made(lambda start, stop=None, step=1.0: np.arange(start, stop, step)), (),
         f"start:float stop:float=None step:float=1 repeat:~int=1 infer_range:~bool=0 {_NEW}",
         dtypes=_made_type)  # fmt: skip
operator("_npi_logspace",
         _made(lambda start, stop, num, endpoint=True, base=10.0: np.logspace(start, stop, num, endpoint, base)), (),
         f"start:float stop:float num:int endpoint:bool=1 base:float=10 {_NEW}", dtypes=_made_type)  # fmt: skip
operator("_npi_indices", _made(lambda dimensions: np.indices(dimensions)), (),
         "dimensions:shape dtype:dtype=int32 ctx:~str=", dtypes=_made_type)  # fmt: skip
for _name in ("blackman", "hamming", "hanning"):
    operator(f"_npi_{_name}", _made(getattr(np, _name)), (), f"M:int=None {_NEW}",
             dtypes=_made_type)  # fmt: skip
operator("_npi_full_like", lambda a, fill_value, dtype=None: np.full_like(a, fill_value, dtype or a.dtype), ("a",),
         "fill_value:float ctx:~str= dtype:dtype=None", same=True, loss=True,
         dtypes=lambda p, ins: (ins, [p["dtype"] or ins[0]]))  # fmt: skip

# ------------------------------------------------------------------ other names of older operators
# Under npx.set_np() an older operator has another shape where it gives a number.
UNDER_NP = {"_linalg_det": "_npi_det", "_linalg_slogdet": "_npi_slogdet"}
OTHER_NAMES = {
    "_np_repeat": "repeat", "_npi_Custom": "Custom", "_npi_abs": "_npi_absolute", "_npi_argsort": "argsort",
    "_npi_boolean_mask": "_contrib_boolean_mask", "_npi_cast": "Cast", "_npi_clip": "clip", "_npi_copyto": "_copyto",
    "_npi_expand_dims": "expand_dims", "_npi_full": "_full", "_npi_gather_nd": "gather_nd",
    "_npi_histogram": "_histogram", "_npi_hypot_scalar": "_hypot_scalar", "_npi_inv": "_linalg_inverse",
    "_npi_linspace": "_linspace", "_npi_maximum": "broadcast_maximum", "_npi_maximum_scalar": "_maximum_scalar",
    "_npi_minimum": "broadcast_minimum", "_npi_minimum_scalar": "_minimum_scalar",
    "_npi_random_randint": "_random_randint", "_npi_reshape": "_npx_reshape",
    "_npi_rnn_param_concat": "_rnn_param_concat", "_npi_shuffle": "_shuffle", "_npi_slice": "slice",
    "_npi_slice_assign": "_slice_assign", "_npi_slice_assign_scalar": "_slice_assign_scalar",
    "_npi_sort": "sort", "_npi_split": "_split_v2", "_npi_swapaxes": "SwapAxis",
    "_npi_take": "take", "_npi_tile": "tile", "_npx_activation": "Activation",
    "_npx_arange_like": "_contrib_arange_like", "_npx_batch_dot": "batch_dot", "_npx_batch_flatten": "Flatten",
    "_npx_batch_norm": "BatchNorm", "_npx_cast": "Cast", "_npx_convolution": "Convolution",
    "_npx_deconvolution": "Deconvolution", "_npx_dropout": "Dropout", "_npx_embedding": "Embedding", "_npx_erf": "erf",
    "_npx_erfinv": "erfinv", "_npx_fully_connected": "FullyConnected", "_npx_gamma": "gamma",
    "_npx_gammaln": "gammaln", "_npx_gather_nd": "gather_nd", "_npx_layer_norm": "LayerNorm",
    "_npx_leaky_relu": "LeakyReLU", "_npx_log_softmax": "log_softmax",
    "_npx_multibox_detection": "_contrib_MultiBoxDetection", "_npx_multibox_prior": "_contrib_MultiBoxPrior",
    "_npx_multibox_target": "_contrib_MultiBoxTarget", "_npx_one_hot": "one_hot", "_npx_pick": "pick",
    "_npx_pooling": "Pooling", "_npx_reshape_like": "reshape_like", "_npx_rnn": "RNN", "_npx_roi_pooling": "ROIPooling",
    "_npx_sequence_mask": "SequenceMask", "_npx_shape_array": "shape_array", "_npx_slice": "slice",
    "_npx_smooth_l1": "smooth_l1", "_npx_softmax": "softmax", "_npx_topk": "topk",
    **{f"_npx__image_{n}": f"_image_{n}" for n in ("adjust_lighting", "crop", "flip_left_right", "flip_top_bottom",
       "normalize", "resize", "to_tensor", *(f"random_{n}" for n in ("brightness", "color_jitter", "contrast",
       "flip_left_right", "flip_top_bottom", "hue", "lighting", "saturation")))},
}  # fmt: skip
