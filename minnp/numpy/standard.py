"""The Array API standard, 2024.12: the names and arguments NumPy 1.26 lacks, and those every NumPy lacks.

Each is written with public functions of ours, so it takes traced arrays and arrays on a device.
https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..core.api.functions import entry
from ..core.api.install import wider
from ..core.api.namespace import wrapped
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, ARRAYS
from ..errors import BackendMissingError
from .facts import NUMPY_2

ALIASES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "concat": "concatenate",
    "bitwise_right_shift": "right_shift", "permute_dims": "transpose", "pow": "power", "bool": "bool_",
}  # fmt: skip


class Names(dict):
    """Functions by name, for the namespace of that module."""

    def __init__(self, module: str) -> None:
        self.module = module


STANDARD = Names("minnp.numpy")


def ours(name: str, module: Any = onp, prefix: str = "") -> Any:
    """Our public function of NumPy's name."""
    return wrapped(prefix, name, getattr(module, name))


def lacking(table: Names, present: bool = NUMPY_2) -> Callable:
    """Register a function in `table` unless the installed NumPy has it."""

    def register(function: Callable) -> Callable:
        if not present:
            function.__module__ = table.module
            table[function.__name__] = function
        return function

    return register


def also(table: Names, base: Callable, present: bool = NUMPY_2, least: int = 1) -> Callable:
    """Register a function that stands for NumPy's `base` of the same name and adds arguments to it.

    least   positional arguments that NumPy's must have"""

    def register(function: Callable) -> Callable:
        function.__doc__, function.__wrapped__ = base.__doc__, base
        function.__signature__ = inspect.signature(function, follow_wrapped=False)
        function = lacking(table, present)(function)
        if not present:
            name = f"{table.module}.{function.__name__}".removeprefix("minnp.numpy.")
            function = table[function.__name__] = wider(function, entry(name, base), least)
        return function

    return register


# ------------------------------------------------------------------ sorting: `descending` and `stable`
def _order(kind: Any, stable: Any, descending: bool) -> Any:
    if stable is not None and kind is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time. Use only one of them.")
    return "stable" if stable or (descending and kind is None) else kind


DESCENDING = "descending" in inspect.signature(onp.sort).parameters  # NumPy 2.5
NOT_GIVEN = onp._NoValue if DESCENDING else False


def _numpys(a: Any, descending: Any, stable: Any) -> dict[str, Any] | None:
    """The keywords for NumPy's own function where it takes them: an array on the host, or of a class of the user's."""
    if not DESCENDING or not isinstance(a, onp.ndarray) or (type(a) in ARRAY_TYPES and a._host is None):
        return None
    return {"stable": stable} if descending is NOT_GIVEN else {"stable": stable, "descending": descending}


def _nans_last(found: Any, values: Any, axis: int) -> Any:
    """What belongs to descending values, with that of the NaNs, which come first in them, behind the others."""
    if values.dtype.kind not in "fcmM":
        return found
    behind = ours("argsort")(ours("isnan")(values), axis=axis, kind="stable")
    return ours("take_along_axis")(found, behind, axis)


@also(STANDARD, onp.sort, present=False)
def sort(a, axis=-1, kind=None, order=None, *, descending=NOT_GIVEN, stable=None):
    base = ours("sort")
    if (given := _numpys(a, descending, stable)) is not None:
        return base(a, axis, kind, order, **given)
    if descending is NOT_GIVEN or not descending:
        return base(a, axis, _order(kind, stable, False), order)
    values = ours("flip")(base(a, axis, _order(kind, stable, True), order), axis=axis)
    return _nans_last(values, values, -1 if axis is None else axis)


@also(STANDARD, onp.argsort, present=False)
def argsort(a, axis=-1, kind=None, order=None, *, descending=NOT_GIVEN, stable=None):
    base, flip = ours("argsort"), ours("flip")
    if (given := _numpys(a, descending, stable)) is not None:
        return base(a, axis, kind, order, **given)
    if descending is NOT_GIVEN or not descending:
        return base(a, axis, _order(kind, stable, False), order)
    a, axis = (ours("ravel")(a), -1) if axis is None else (ours("asarray")(a), axis)
    # the last of equals first in the flipped array, so that it is the first of them again when flipped back
    found = flip(a.shape[axis] - 1 - base(flip(a, axis=axis), axis, _order(kind, stable, True), order), axis=axis)
    return _nans_last(found, ours("take_along_axis")(a, found, axis), axis)


# ------------------------------------------------------------------ defaults and dtypes
def _has_default(function: Callable, name: str) -> bool:
    return inspect.signature(function).parameters[name].default is not inspect.Parameter.empty


@also(STANDARD, onp.take_along_axis, present=_has_default(onp.take_along_axis, "axis"), least=3)
def take_along_axis(arr, indices, axis=-1):
    return ours("take_along_axis")(arr, indices, axis)


# ------------------------------------------------------------------ NumPy 1.26
@lacking(STANDARD)
def astype(x, dtype, /, *, copy=True, device=None):
    """x as `dtype`: a copy, unless copy=False and x has that dtype already."""
    if not isinstance(x, ARRAYS):
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    if device not in (None, "cpu", x.device):
        return x.to_device(device).astype(dtype, copy=copy)
    return x.astype(dtype, copy=copy)


_KINDS = {
    "bool": (onp.bool_,),
    "signed integer": (onp.signedinteger,),
    "unsigned integer": (onp.unsignedinteger,),
    "integral": (onp.integer,),
    "real floating": (onp.floating,),
    "complex floating": (onp.complexfloating,),
    "numeric": (onp.number,),
}


@lacking(STANDARD)
def isdtype(dtype, kind):
    """Whether a dtype is of a kind: 'bool', 'signed integer', ..., a dtype, or a tuple of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    dtype = onp.dtype(dtype)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not a known kind name; known: {', '.join(_KINDS)}")
        return issubclass(dtype.type, _KINDS[kind]) and dtype.type is not onp.timedelta64
    return dtype == kind


@lacking(STANDARD)
def unstack(x, /, *, axis=0):
    """The arrays that `axis` numbers, as a tuple."""
    x = ours("asarray")(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(ours("moveaxis")(x, axis, 0))


def transposed(x):
    x = ours("asarray")(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return x.swapaxes(-1, -2)


@lacking(STANDARD)
def matrix_transpose(x, /):
    """The transposes of the matrices in the last two axes."""
    return transposed(x)


@lacking(STANDARD)
def vecdot(x1, x2, /, *, axis=-1):
    """sum(conj(x1) * x2) along `axis`, counted before broadcasting."""
    move = ours("moveaxis")
    x1, x2 = (move(ours("asarray")(x), axis, -1) for x in (x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: the vectors have lengths {x1.shape[-1]} and {x2.shape[-1]}")
    return ours("matmul")(x1.conj()[..., None, :], x2[..., :, None])[..., 0, 0]


def _cumulative(scan: str, start: int) -> Callable:
    def call(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        x = ours("atleast_1d")(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        if not include_initial:
            return ours(scan)(x, axis=axis, dtype=dtype, out=out)
        result = ours(scan)(x, axis=axis, dtype=dtype)
        shape = tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape))
        return ours("concatenate")([ours("full")(shape, start, dtype=result.dtype), result], axis=axis, out=out)

    call.__name__ = call.__qualname__ = "cumulative_" + scan.removeprefix("cum")
    call.__doc__ = f"np.{scan}, with one axis, and on request with the empty {scan.removeprefix('cum')} in front."
    return call


lacking(STANDARD)(_cumulative("cumsum", 0))
lacking(STANDARD)(_cumulative("cumprod", 1))

UniqueAllResult = namedtuple("UniqueAllResult", "values indices inverse_indices counts")
UniqueCountsResult = namedtuple("UniqueCountsResult", "values counts")
UniqueInverseResult = namedtuple("UniqueInverseResult", "values inverse_indices")


@lacking(STANDARD)
def unique_all(x):
    """Values, first indices, inverse (of x's shape) and counts; every nan is a value of its own."""
    x = ours("asarray")(x)
    values, indices, inverse, counts = ours("unique")(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAllResult(values, indices, inverse.reshape(x.shape), counts)


@lacking(STANDARD)
def unique_counts(x):
    """Values and counts."""
    return UniqueCountsResult(*ours("unique")(x, return_counts=True, equal_nan=False))


@lacking(STANDARD)
def unique_inverse(x):
    """Values, and for each element of x the index of its value."""
    x = ours("asarray")(x)
    values, inverse = ours("unique")(x, return_inverse=True, equal_nan=False)
    return UniqueInverseResult(values, inverse.reshape(x.shape))


@lacking(STANDARD)
def unique_values(x):
    """The values."""
    return ours("unique")(x, equal_nan=False)


# ------------------------------------------------------------------ NumPy 1.26: arguments its functions lack
if not NUMPY_2:
    _asarray = ours("asarray")


@also(STANDARD, onp.asarray)
def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    if dtype is order is device is copy is like is None:
        return _asarray(a)
    options = {} if device is None else {"device": device}
    if copy:
        return ours("array")(a, dtype, copy=True, order=order or "K", **options)
    if copy is False:
        if not isinstance(a, (ARRAYS, onp.generic)) and not hasattr(a, "__array__") and not hasattr(a, "__dlpack__"):
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        if dtype is not None and onp.dtype(dtype) != a.dtype:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
    return ours("asarray")(a, dtype, order, **options) if like is None else ours("asarray")(a, dtype, order, like=like)


@also(STANDARD, onp.reshape, least=2)
def reshape(a, /, shape=None, order="C", *, newshape=None, copy=None):
    shape = newshape if shape is None else shape
    result = ours("reshape")(a, shape, order)
    if copy is False and result.size and not onp.shares_memory(onp.asarray(a), onp.asarray(result)):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return result.copy() if copy else result


@also(STANDARD, onp.clip, least=3)
def clip(a, a_min=onp._NoValue, a_max=onp._NoValue, out=None, *, min=onp._NoValue, max=onp._NoValue, **kwargs):
    if a_min is onp._NoValue and a_max is onp._NoValue:
        a_min = None if min is onp._NoValue else min
        a_max = None if max is onp._NoValue else max
        if a_min is None and a_max is None:
            return ours("positive")(a, out=out, **kwargs)
    for name, bound in (("a_min", a_min), ("a_max", a_max)):
        if bound is onp._NoValue:
            raise TypeError(f"clip() missing 1 required positional argument: {name!r}")
    return ours("clip")(a, a_min, a_max, out=out, **kwargs)


@also(STANDARD, onp.from_dlpack)
def from_dlpack(x, /, *, device=None, copy=None):
    result = ours("from_dlpack")(x)
    result = result if device in (None, "cpu") else result.to_device(device)
    return result.copy() if copy else result


def _corrected(name: str) -> Callable:
    def call(
        a,
        axis=None,
        dtype=None,
        out=None,
        ddof=0,
        keepdims=onp._NoValue,
        *,
        where=onp._NoValue,
        correction=onp._NoValue,
    ):
        if correction is not onp._NoValue:
            if ddof != 0:
                raise ValueError("ddof and correction can't be provided simultaneously.")
            ddof = correction
        return ours(name)(a, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, where=where)

    call.__name__ = call.__qualname__ = name
    return call


for _name in ("std", "var"):
    also(STANDARD, getattr(onp, _name))(_corrected(_name))


if not NUMPY_2:
    STANDARD |= {name: ours(old) for name, old in ALIASES.items()}


# ------------------------------------------------------------------ the namespace about itself
class _HostInfo:
    """What NumPy's `__array_namespace_info__()` returns from NumPy 2 on; its five methods are the standard's."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, onp.dtype]:
        real, whole = onp.dtype(float), onp.dtype(onp.intp)
        return {"real floating": real, "complex floating": onp.dtype(complex), "integral": whole, "indexing": whole}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, onp.dtype]:
        if device not in (None, "cpu"):
            raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
        names = ["bool", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)), "float32", "float64"]
        every = {n: onp.dtype(n) for n in (*names, "complex64", "complex128")}
        return every if kind is None else {n: d for n, d in every.items() if isdtype(d, kind)}


class Info(onp.__array_namespace_info__ if NUMPY_2 else _HostInfo):
    """What `__array_namespace_info__()` returns: NumPy's, which every device of ours answers to as well."""

    def default_device(self) -> str:
        return devices.name_of(devices.current_context())

    def devices(self) -> Any:
        found = super().devices()  # a tuple since NumPy 2.5
        return type(found)(dict.fromkeys([*found, self.default_device()]))

    def default_dtypes(self, *, device: Any = None) -> dict[str, onp.dtype]:
        return super().default_dtypes(device=self._host(device))

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, onp.dtype]:
        return super().dtypes(device=self._host(device), kind=kind)

    @staticmethod
    def _host(device: Any) -> str | None:
        """The host, whose dtypes those of a device are; what a device cannot hold, a function that needs it says."""
        if device is None:
            return None
        try:
            with devices.target(device):  # raises where nothing reaches it
                return "cpu"
        except BackendMissingError as error:
            raise ValueError(f"Device not understood: {error}") from error


Info.__name__ = Info.__qualname__ = "__array_namespace_info__"
Info.__module__ = STANDARD.module
STANDARD["__array_namespace_info__"] = Info
if not NUMPY_2:
    STANDARD["__array_api_version__"] = "2024.12"
