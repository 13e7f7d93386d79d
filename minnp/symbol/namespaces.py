"""sym.np and sym.npx: functions of symbols with NumPy's names and arguments, as mx.sym.np and mx.sym.npx have them.

They make the operators `_np_`, `_npi_` and `_npx_`, whose results are symbols with NumPy's operators, indexing and
methods (NumpySymbol). `Symbol.as_np_ndarray` and `as_nd_ndarray` turn one kind into the other.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .operator import OPERATORS
from .symbol import Symbol, function

words = str.split


class NumpySymbol(Symbol):
    """A symbol whose operators, indexing and methods are NumPy's: x[1:, 0], x - 1, x.mean(axis=0).

    >>> x = sym.Variable("x").as_np_ndarray()
    >>> (x[0] + 1).infer_shape(x=(2, 3))[1]
    [(3,)]
    """

    __slots__ = ()

    def as_np_ndarray(self) -> NumpySymbol:
        """This symbol."""
        return self

    def as_nd_ndarray(self) -> Symbol:
        """The same with MXNet's older operators."""
        return Symbol(self._heads)

    def __getitem__(self, key: Any) -> Any:
        """A part, or of several results one or some. Raises IndexError for other than ints and slices."""
        if len(self._heads) > 1 or isinstance(key, str):
            found = super().__getitem__(key + len(self._heads) if isinstance(key, int) and key < 0 else key)
            return NumpySymbol(found._heads)
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, (int, onp.integer, slice)) for k in keys):
            raise IndexError(f"a symbol is indexed by ints, slices and tuples of them, not by {key!r:.60}")
        if not keys:
            return self
        if any(isinstance(k, slice) and k.step == 0 for k in keys):
            raise ValueError("slice step cannot be zero")
        parts = [k if isinstance(k, slice) else slice(int(k), int(k) + (1 if k >= 0 else -1), 1 if k >= 0 else -1)
                 for k in keys]  # fmt: skip
        cut = called("_npi_slice", self, begin=[p.start for p in parts], end=[p.stop for p in parts],
                     step=[p.step for p in parts])  # fmt: skip
        codes = [-2 if isinstance(k, slice) else -3 for k in keys]
        return cut if isinstance(key, slice) else called("_npx_reshape", cut, newshape=(*codes, -4))

    def __iter__(self) -> Any:
        if len(self._heads) == 1:
            raise TypeError("a symbol of one result has no length that is known: index it")
        return (NumpySymbol([head]) for head in self._heads)

    @property
    def T(self) -> NumpySymbol:
        """Its axes in reverse order."""
        return self.transpose()

    def astype(self, dtype: Any, **kwargs: Any) -> NumpySymbol:
        """As another dtype."""
        return called("_npi_cast", self, dtype=dtype)

    def reshape(self, *shape: Any, order: str = "C", **kwargs: Any) -> NumpySymbol:
        """reshape(2, 3) or reshape((2, 3))."""
        (shape,) = shape if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else (shape,)
        return called("_np_reshape", self, newshape=kwargs.pop("newshape", shape), order=order)

    def transpose(self, *axes: Any, **kwargs: Any) -> NumpySymbol:
        """transpose(), transpose(1, 0) or transpose((1, 0))."""
        (axes,) = axes if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else (axes,)
        return called("_np_transpose", self, **({"axes": axes} if axes else {}))

    def flatten(self, order: str = "C") -> NumpySymbol:
        """As one axis."""
        return self.reshape(-1, order=order)


def called(name: str, /, *inputs: Any, **parameters: Any) -> NumpySymbol:
    """The symbol of an operator, whose parameters that are None are left out."""
    given = {n: v for n, v in parameters.items() if v is not None}
    short = name
    for prefix in ("_npi_", "_npx_", "_np_", "_image_"):
        short = short.removeprefix(prefix)
    return NumpySymbol(function(name, called=short)(*inputs, **given)._heads)


class Namespace:
    """Functions by name: those entered here, and the operators whose names begin with one of the prefixes."""

    def __init__(self, name: str, *prefixes: str) -> None:
        self.__name__, self._prefixes = name, prefixes
        self._own: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        for prefix in self._prefixes:
            if not name.startswith("_") and prefix + name in OPERATORS:
                self._own[name] = _operator(prefix + name)
                return self._own[name]
        raise AttributeError(f"minnp.symbol.{self.__name__} has no {name!r}")

    def __dir__(self) -> list[str]:
        found = {n.removeprefix(p) for p in self._prefixes for n in OPERATORS if n.startswith(p)}
        return sorted({*self._own, *(n for n in found if not n.startswith("_"))})

    def __repr__(self) -> str:
        return f"<functions of minnp.symbol.{self.__name__}>"

    def enter(self, f: Callable) -> Callable:
        """Enter a function under its name."""
        self._own[f.__name__.rstrip("_")] = f
        return f


def _operator(name: str) -> Callable:
    def make(*inputs: Any, out: Any = None, **parameters: Any) -> NumpySymbol:
        no_out(out, name)
        return called(name, *inputs, **parameters)

    make.__name__ = name.split("_", 2)[2]
    make.__doc__ = f"MXNet's operator {name}."
    return make


np = Namespace("np", "_np_", "_npi_")
npx = Namespace("npx", "_npx_")
linalg = Namespace("np.linalg", "_npi_")
np._own["linalg"] = linalg


# ------------------------------------------------------------------ of one symbol, or of two, or numbers
def no_out(out: Any, name: str) -> None:
    if out is not None:
        raise TypeError(f"{name}: a symbol has no out=")


def _unary(one: str, short: str = "") -> Callable:
    """A function of a symbol or a number; `short`: what its symbols' names are made of, where not of its own."""

    def unary(x: Any, out: Any = None) -> Any:
        no_out(out, one)
        made = function(f"_npi_{one}", called=short or one)
        return NumpySymbol(made(x)._heads) if isinstance(x, Symbol) else getattr(onp, one)(x)

    unary.__name__ = one
    unary.__doc__ = f"numpy.{one} of a symbol or a number."
    return unary


_ALSO = {"abs": "absolute", "fabs": "absolute", "invert": "bitwise_not", "rad2deg": "degrees", "deg2rad": "radians"}
for _name in words(
    "absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_not cbrt ceil cos cosh degrees exp expm1 fix floor "
    "isfinite isinf isnan isneginf isposinf log log10 log1p log2 logical_not negative radians reciprocal rint sign sin "
    "sinh sqrt square tan tanh trunc"
) + list(_ALSO):  # fmt: skip
    np._own[_name] = _unary(_ALSO.get(_name, _name), "abs" if _name in ("abs", "fabs") else "")

_TURNED = "subtract mod power true_divide copysign arctan2 ldexp"
_MIRRORED = {"greater": "less", "less": "greater", "greater_equal": "less_equal", "less_equal": "greater_equal"}
_OTHER = {"divide": "true_divide", "remainder": "mod"}


def _both(one: str) -> Callable:
    """A function of two symbols, or of a symbol and a number."""

    def binary(x1: Any, x2: Any, out: Any = None) -> Any:
        no_out(out, one)
        left, right = isinstance(x1, Symbol), isinstance(x2, Symbol)
        if left and right:
            return called(f"_npi_{one}", x1, x2)
        x, number = (x1, x2) if left else (x2, x1)
        if not (left or right) or not isinstance(number, (numbers.Number, onp.generic)):
            if left or right:
                raise TypeError(f"{one} of a symbol and {number!r:.60}: expected a symbol or a number")
            return getattr(onp, one)(x1, x2)
        name = one if left else _MIRRORED.get(one, f"r{one}" if one in words(_TURNED) else one)
        whole = {"is_int": isinstance(number, (int, onp.integer))}
        known = OPERATORS[f"_npi_{name}_scalar"].parameters
        return called(f"_npi_{name}_scalar", x, scalar=float(number), **(whole if "is_int" in known else {}))

    binary.__name__ = one
    binary.__doc__ = f"numpy.{one} of symbols and numbers."
    return binary


for _name in words(
    "add subtract multiply mod power true_divide copysign arctan2 ldexp bitwise_and bitwise_or bitwise_xor lcm hypot "
    "maximum minimum equal not_equal greater greater_equal less less_equal"
) + list(_OTHER):  # fmt: skip
    np._own[_name] = _both(_OTHER.get(_name, _name))

for _name, _function in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "mod": "mod", "pow": "power",
    "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal",
}.items():  # fmt: skip
    setattr(NumpySymbol, f"__{_name}__", lambda self, other, _f=np._own[_function]: _f(self, other))
    if _name in ("add", "sub", "mul", "truediv", "mod", "pow"):
        setattr(NumpySymbol, f"__r{_name}__", lambda self, other, _f=np._own[_function]: _f(other, self))
NumpySymbol.__neg__ = lambda self: self * -1.0
NumpySymbol.__abs__ = lambda self: np.abs(self)
NumpySymbol.__hash__ = Symbol.__hash__


# ------------------------------------------------------------------ of lists of symbols
def _joining(name: str, **options: Any) -> Callable:
    def join(arrays: Sequence[Any], axis: int | None = options.get("axis"), out: Any = None) -> NumpySymbol:
        no_out(out, name)
        more = {} if axis is None else {"axis": axis}
        return called(f"_npi_{name}", *arrays, num_args=len(arrays), **more)

    join.__doc__ = f"numpy.{name} of a list of symbols."
    return join


for _name, _options in {"concatenate": {"axis": 0}, "stack": {"axis": 0}, "vstack": {}, "hstack": {}, "dstack": {},
                        "column_stack": {}}.items():  # fmt: skip
    np._own[_name] = _joining(_name, **_options)
np._own["row_stack"] = np._own["vstack"]


def _split(name: str, axis: int) -> Callable:
    def split(ary: Any, indices_or_sections: Any, axis: int = axis) -> NumpySymbol:
        if isinstance(indices_or_sections, int):
            return called(name, ary, indices=(), axis=axis, sections=indices_or_sections)
        return called(name, ary, indices=(0, *indices_or_sections), axis=axis)

    split.__doc__ = "Parts of a symbol: equal ones, or cut before each of the indices."
    return split


for _name, _called, _axis in (("split", "_npi_split", 0), ("vsplit", "_npi_split", 0), ("hsplit", "_npi_hsplit", 1),
                              ("dsplit", "_npi_dsplit", 2)):  # fmt: skip
    np._own[_name] = _split(_called, _axis)


# ------------------------------------------------------------------ with other arguments than the operator's
@np.enter
def where(condition: Any, x: Any, y: Any) -> NumpySymbol:
    """numpy.where of symbols, or of numbers in the place of x or y."""
    symbols = [s for s in (x, y) if isinstance(s, Symbol)]
    if len(symbols) == 2:
        return called("_npi_where", condition, x, y)
    if not symbols:
        return called("_npi_where_scalar2", condition, x=float(x), y=float(y))
    name, number = ("lscalar", x) if symbols[0] is y else ("rscalar", y)
    return called(f"_npi_where_{name}", condition, *symbols, scalar=float(number))


@np.enter
def append(arr: Any, values: Any, axis: int | None = None) -> NumpySymbol:
    """numpy.append."""
    return called("_npi_concatenate", arr, values, num_args=2, axis="None" if axis is None else axis)


@np.enter
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
               interpolation: str = "linear", keepdims: bool = False) -> NumpySymbol:  # fmt: skip
    """numpy.percentile, of a number or a symbol q."""
    no_out(out, "percentile")
    if overwrite_input is not None:
        raise TypeError("percentile: a symbol's input is not overwritten, leave out overwrite_input=")
    q, scalar = ((q,), None) if isinstance(q, Symbol) else ((), q)
    return called("_npi_percentile", a, *q, axis=axis, interpolation=interpolation, keepdims=keepdims, q_scalar=scalar)


@np.enter
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = None,
             interpolation: str = "linear", keepdims: bool = False) -> NumpySymbol:  # fmt: skip
    """numpy.quantile, of a number or a symbol q."""
    return percentile(a, q * 100, axis, out, overwrite_input, interpolation, keepdims)


@np.enter
def histogram(a: Any, bins: Any = 10, range: Any = None) -> NumpySymbol:
    """numpy.histogram, (counts, edges): of a number of bins between two numbers, or of a symbol of their edges."""
    made = function("_histogram", called="histogram")
    if isinstance(bins, Symbol):
        return NumpySymbol(made(a, bins)._heads)
    if range is None or not isinstance(bins, (int, onp.integer)):
        raise TypeError(f"histogram: bins={bins!r:.60}: expected a number with range=, or a symbol of the edges")
    return NumpySymbol(made(a, bin_cnt=bins, range=range)._heads)


@np.enter
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, out: Any = None) -> NumpySymbol:
    """numpy.average."""
    no_out(out, "average")
    given = () if weights is None else (weights,)
    return called("_npi_average", a, *given, axis=axis, returned=returned, weighted=weights is not None)


@np.enter
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> NumpySymbol:
    """numpy.bincount."""
    given = () if weights is None else (weights,)
    return called("_npi_bincount", x, *given, minlength=minlength, has_weights=weights is not None)


@np.enter
def delete(arr: Any, obj: Any, axis: int | None = None) -> NumpySymbol:
    """numpy.delete of an int, a slice, or a symbol of indices."""
    if isinstance(obj, slice):
        step = 1 if obj.step is None else obj.step
        return called("_npi_delete", arr, start=obj.start, stop=obj.stop, step=step, axis=axis)
    if isinstance(obj, Symbol):
        return called("_npi_delete", arr, obj, axis=axis)
    return called("_npi_delete", arr, int_ind=int(obj), axis=axis)


@np.enter
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> NumpySymbol:
    """numpy.ediff1d, of numbers or symbols besides."""
    given = {"to_begin": to_begin, "to_end": to_end}
    inputs = [v for v in given.values() if isinstance(v, Symbol)]
    options = {f"{n}_arr_given": isinstance(v, Symbol) for n, v in given.items()}
    options |= {f"{n}_scalar": v for n, v in given.items() if not isinstance(v, Symbol)}
    return called("_npi_ediff1d", ary, *inputs, **options)


@np.enter
def flip(m: Any, axis: Any = None, out: Any = None) -> NumpySymbol:
    """numpy.flip."""
    no_out(out, "flip")
    return called("_npi_flip", m, axis=(axis,) if isinstance(axis, int) else axis)


@np.enter
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> NumpySymbol:
    """numpy.rot90; MXNet runs none without axes."""
    return called("_npi_rot90", m, k=k, axes=axes)


@np.enter
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0, **options: Any) -> NumpySymbol:
    """numpy.pad by pairs, one for each axis; MXNet's function forgets constant_values."""
    if mode == "constant":
        options["constant_value"] = constant_values
    return called("_npi_pad", x, pad_width=pad_width, mode=mode, **options)


@np.enter
def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, ctx: Any = None) -> Any:  # fmt: skip
    """numpy.linspace, float32 unless a dtype is given; with retstep and the step."""
    made = called("_npi_linspace", start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype or "float32")
    return (made, (stop - start) / max(num - endpoint, 1)) if retstep else made


@linalg.enter
def pinv(a: Any, rcond: Any = 1e-15, hermitian: bool = False) -> NumpySymbol:
    """numpy.linalg.pinv; rcond is a number or a symbol."""
    if isinstance(rcond, Symbol):
        return called("_npi_pinv", a, rcond, hermitian=hermitian)
    return called("_npi_pinv_scalar_rcond", a, rcond=rcond, hermitian=hermitian)


@np.enter
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> NumpySymbol:
    """numpy.array_split."""
    return np.split(ary, indices_or_sections, axis)


@np.enter
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> NumpySymbol:
    """numpy.insert before an int, the ints of a slice, or of a symbol; of a number or a symbol."""
    inputs, options = ([arr, values], {}) if isinstance(values, Symbol) else ([arr], {"val": float(values)})
    if isinstance(obj, Symbol):
        return called("_npi_insert_tensor", *inputs, obj, axis=axis, **options)
    if isinstance(obj, slice):
        part = {"start": obj.start, "stop": obj.stop, "step": 1 if obj.step is None else obj.step}
        return called("_npi_insert_slice", *inputs, **part, axis=axis, **options)
    return called("_npi_insert_scalar", *inputs, int_ind=int(obj), axis=axis, **options)


@np.enter
def inner(a: Any, b: Any) -> NumpySymbol:
    """numpy.inner."""
    return tensordot(a, b, (-1, -1))


@np.enter
def outer(a: Any, b: Any) -> NumpySymbol:
    """numpy.outer."""
    return tensordot(a.flatten(), b.flatten(), 0)


@np.enter
def vdot(a: Any, b: Any) -> NumpySymbol:
    """numpy.vdot of floats."""
    return tensordot(a.flatten(), b.flatten(), 1)


@np.enter
def fliplr(m: Any) -> NumpySymbol:
    """numpy.fliplr."""
    return np.flip(m, axis=1)


@np.enter
def flipud(m: Any) -> NumpySymbol:
    """numpy.flipud."""
    return np.flip(m, axis=0)


@np.enter
def round_(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """numpy.round of a symbol or a number."""
    no_out(out, "round")
    return called("_npi_around", x, decimals=decimals) if isinstance(x, Symbol) else onp.around(x, decimals)


np._own["round_"] = round_


@np.enter
def expand_dims(a: Any, axis: int) -> NumpySymbol:
    """numpy.expand_dims."""
    return called("_npi_expand_dims", a, axis=axis)


@np.enter
def swapaxes(a: Any, axis1: int, axis2: int) -> NumpySymbol:
    """numpy.swapaxes."""
    return called("_npi_swapaxes", a, dim1=axis1, dim2=axis2)


@np.enter
def clip(a: Any, a_min: Any, a_max: Any, out: Any = None) -> NumpySymbol:
    """numpy.clip between numbers, either of which may be None."""
    low, high = (-onp.inf if a_min is None else a_min), (onp.inf if a_max is None else a_max)
    return called("_npi_clip", a, a_min=low, a_max=high)


@np.enter
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise", out: Any = None) -> NumpySymbol:
    """numpy.take; without an axis, of the elements in their order."""
    return called("_npi_take", ravel(a) if axis is None else a, indices, axis=axis or 0, mode=mode)


@np.enter
def ravel(x: Any, order: str = "C") -> NumpySymbol:
    """numpy.ravel."""
    return called("_npx_reshape", x, newshape=(-1,))


def _custom(name: str, *inputs: Any, **parameters: Any) -> NumpySymbol:
    """The symbol of a Custom operator of MXNet's own."""
    return NumpySymbol(function("Custom")(*inputs, op_type=f"{name}_fallback", **parameters)._heads)


@np.enter
def resize(a: Any, new_shape: Any) -> NumpySymbol:
    """numpy.resize, without a gradient."""
    return _custom("resize", a, new_shape=new_shape)


@np.enter
def unravel_index(indices: Any, shape: Any, order: str = "C") -> NumpySymbol:
    """numpy.unravel_index, as one array [dimensions, *indices' shape]. Raises ValueError for other orders than C."""
    if order != "C":
        raise ValueError(f"unravel_index: order={order!r}: expected 'C'")
    return _custom("unravel_index", indices, shape=shape)


@np.enter
def empty_like(prototype: Any, dtype: Any = None, order: str = "C", subok: bool = False, shape: Any = None) -> Any:
    """numpy.empty_like: zeros here."""
    kind = "None" if dtype is None else onp.dtype(dtype).name
    return _custom("empty_like", prototype, dtype=kind, order=order, subok=subok, shape=str(shape))


@np.enter
def tensordot(a: Any, b: Any, axes: Any = 2) -> NumpySymbol:
    """numpy.tensordot."""
    if isinstance(axes, int):
        return called("_npi_tensordot_int_axes", a, b, axes=axes)
    first, second = ((n,) if isinstance(n, int) else tuple(n) for n in axes)
    return called("_npi_tensordot", a, b, a_axes_summed=first, b_axes_summed=second)


@np.enter
def einsum(subscripts: str, *operands: Any, optimize: Any = False, out: Any = None) -> NumpySymbol:
    """numpy.einsum."""
    return called("_npi_einsum", *operands, num_args=len(operands), subscripts=subscripts, optimize=int(bool(optimize)))


@np.enter
def argsort(a: Any, axis: int = -1, kind: Any = None, order: Any = None) -> NumpySymbol:
    """numpy.argsort, int64."""
    return called("_npi_argsort", a, axis=axis, is_ascend=True, dtype="int64")


@np.enter
def sort(a: Any, axis: int = -1, kind: Any = None, order: Any = None) -> NumpySymbol:
    """numpy.sort."""
    return called("_npi_sort", a, axis=axis, is_ascend=True)


@np.enter
def zeros_like(a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> NumpySymbol:
    """numpy.zeros_like."""
    return called("_npi_full_like", a, fill_value=0, dtype=dtype)


@np.enter
def ones_like(a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None) -> NumpySymbol:
    """numpy.ones_like."""
    return called("_npi_full_like", a, fill_value=1, dtype=dtype)


@np.enter
def full(shape: Any, fill_value: float, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.full, float32 unless a dtype is given."""
    shape = (shape,) if isinstance(shape, int) else shape
    return called("_npi_full", shape=shape, value=fill_value, dtype=dtype or "float32")


@np.enter
def arange(start: float, stop: Any = None, step: float = 1, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.arange, float32 unless a dtype is given."""
    start, stop = (0, start) if stop is None else (start, stop)
    return called("_npi_arange", start=start, stop=stop, step=step, dtype=dtype or "float32")


@np.enter
def identity(n: int, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.identity, float32 unless a dtype is given."""
    return called("_npi_identity", shape=(n, n), dtype=dtype or "float32")


@linalg.enter
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> NumpySymbol:
    """numpy.linalg.norm of all elements, or along one axis of a number as order."""
    axes = (axis,) if isinstance(axis, int) else axis
    if ord in (None, "fro"):
        return called("_npi_norm", x, axis=axes, keepdims=keepdims, flag=-2 if axes is None else 1)
    if ord == "nuc":
        return called("_npi_norm", x, axis=axes, keepdims=keepdims, flag=2)
    return called("_npi_norm", x, ord=ord, axis=axes, keepdims=keepdims, flag=-1)


# ------------------------------------------------------------------ random numbers
_USUAL = {"loc": 0.0, "scale": 1.0, "low": 0.0, "high": 1.0}


def _drawing(name: str) -> Callable:
    names = [n for n in OPERATORS[name].parameters if n not in ("size", "ctx", "dtype")]

    def draw(*args: Any, size: Any = None, dtype: Any = None, ctx: Any = None, **kwargs: Any) -> NumpySymbol:
        given = {n: v for n, v in _USUAL.items() if n in names} | dict(zip((*names, "size"), args)) | kwargs
        size = given.pop("size", size)
        size = (size,) if isinstance(size, int) else size
        inputs = [given[n] for n in names if isinstance(given.get(n), Symbol)]
        values = {n: None if isinstance(v, Symbol) else v for n, v in given.items()}
        made = function(name, called=name.removeprefix("_npi_"))
        return NumpySymbol(made(*inputs, **values, size=size, dtype=dtype or "float32")._heads)

    draw.__doc__ = f"Random numbers of MXNet's {name}, of numbers or symbols as parameters."
    return draw


random = Namespace("np.random", "_npi_")
for _name in words("normal uniform gamma exponential gumbel logistic pareto rayleigh weibull"):
    random._own[_name] = _drawing(f"_npi_{_name}")
np._own["random"] = random


@random.enter
def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.random.randint."""
    low, high = (0, low) if high is None else (low, high)
    size = (size,) if isinstance(size, int) else size or ()
    return called("_npi_random_randint", low=low, high=high, shape=size, dtype=dtype or "int")


@random.enter
def rand(*size: int, **options: Any) -> NumpySymbol:
    """numpy.random.rand."""
    return random.uniform(0, 1, size=size, **options)


@random.enter
def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """numpy.random.choice of the numbers below a, or of a symbol's elements; p: a symbol of their probabilities."""
    no_out(out, "choice")
    inputs = [s for s in (a, p) if isinstance(s, Symbol)]
    size = (size,) if isinstance(size, int) else size or None
    made = function("_npi_choice", called="choice")
    number = None if isinstance(a, Symbol) else a
    drawn = NumpySymbol(made(*inputs, a=number, size=size, replace=replace, weighted=p is not None)._heads)
    return called("_npi_take", a, drawn) if isinstance(a, Symbol) else drawn


@random.enter
def power(a: Any, size: Any = None) -> NumpySymbol:
    """numpy.random.power, of a number or a symbol."""
    inputs, number = ((a,), None) if isinstance(a, Symbol) else ((), a)
    size = (size,) if isinstance(size, int) else size or None
    return NumpySymbol(function("_npi_powerd", called="powerd")(*inputs, a=number, size=size)._heads)


@random.enter
def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.random.lognormal."""
    return np.exp(random.normal(mean, sigma, size=size, dtype=dtype))


@random.enter
def chisquare(df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.random.chisquare, as MXNet draws it: gamma(df / 2, 1 / 2)."""
    return random.gamma(df / 2, 1 / 2, size=size, dtype=dtype)


@random.enter
def beta(a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """numpy.random.beta."""
    x, y = (random.gamma(n, 1, size=size, dtype="float64") for n in (a, b))
    return (x / (x + y)).astype(dtype or "float32")


@random.enter
def multivariate_normal(mean: Any, cov: Any, size: Any = None) -> NumpySymbol:
    """numpy.random.multivariate_normal of symbols, also of several means and matrices."""
    return _custom("mvn", mean, cov, **({} if size is None else {"size": size}))


# ------------------------------------------------------------------ npx.random and npx.image
def _drawing_each(name: str) -> Callable:
    draw = _drawing(name)

    def draw_each(*parameters: Any, batch_shape: Any = None, dtype: Any = None, ctx: Any = None, **named: Any) -> Any:
        return draw(*parameters, size=batch_shape, dtype=dtype, **named)

    draw_each.__doc__ = f"Random numbers of MXNet's {name}: batch_shape of them for each of the parameters' elements."
    return draw_each


npx._own["image"] = Namespace("npx.image", "_npx__image_")
npx._own["random"] = Namespace("npx.random")
npx.random._own |= {name: _drawing_each(f"_npi_{name}") for name in ("normal_n", "uniform_n")}


@npx.random.enter
def bernoulli(prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None) -> NumpySymbol:
    """1 with the probability prob, or sigmoid(logit), one of which is given, as a number or a symbol; else 0."""
    if (prob is None) == (logit is None):
        raise ValueError(f"bernoulli: prob={prob!r}, logit={logit!r}: expected one of both")
    given = logit if prob is None else prob
    size = (size,) if isinstance(size, int) else size or None
    inputs = [given] if isinstance(given, Symbol) else []
    options = {"prob": None if inputs else prob, "logit": None if inputs else logit, "is_logit": prob is None}
    made = function("_npi_bernoulli", called="bernoulli")
    return NumpySymbol(made(*inputs, **options, size=size, dtype=dtype or "float32")._heads)


# ------------------------------------------------------------------ methods
def _method(name: str) -> Callable:
    def method(self: NumpySymbol, *args: Any, **kwargs: Any) -> NumpySymbol:
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"minnp.symbol.np.{name} of this symbol."
    return method


for _name in words("dot sum prod mean std var max min argmax argmin argsort repeat swapaxes take clip cumsum squeeze"):
    setattr(NumpySymbol, _name, _method(_name))
