"""Types of minnp.numpy. Written by tests/typed/make_stub.py; do not edit."""

# ruff: noqa
# mypy: disable-error-code="override, misc"
# An array of ours is given where NumPy's would be: every override narrows a result on purpose.

from collections.abc import Callable, Iterable, Iterator, Sequence
from builtins import bool as _bool
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as _np
from numpy.typing import ArrayLike, DTypeLike

_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Order: TypeAlias = Literal["K", "A", "C", "F"] | None
_Out: TypeAlias = _np.ndarray[Any, Any] | tuple[_np.ndarray[Any, Any] | None, ...]
_Index: TypeAlias = slice | list[Any] | _np.ndarray[Any, Any] | None
_S = TypeVar("_S", bound=tuple[int, ...], covariant=True)
_D = TypeVar("_D", bound=_np.dtype[Any], covariant=True)
_T = TypeVar("_T", bound=_np.generic)
_A = TypeVar("_A", bound=_np.ndarray[Any, Any])
_Typed: TypeAlias = type[_T] | _np.dtype[_T]
Array: TypeAlias = ndarray[Any, _np.dtype[Any]]
ArrayOf: TypeAlias = ndarray[Any, _np.dtype[_T]]

from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
from numpy import __array_namespace_info__ as __array_namespace_info__
from numpy import __version__ as __version__
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast as broadcast
from numpy import busdaycalendar as busdaycalendar
from numpy import byte as byte
from numpy import bytes_ as bytes_
from numpy import c_ as c_
from numpy import cdouble as cdouble
from numpy import char as char
from numpy import character as character
from numpy import clongdouble as clongdouble
from numpy import complex128 as complex128
from numpy import complex256 as complex256
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
from numpy import core as core
from numpy import csingle as csingle
from numpy import ctypeslib as ctypeslib
from numpy import datetime64 as datetime64
from numpy import double as double
from numpy import dtype as dtype
from numpy import dtypes as dtypes
from numpy import e as e
from numpy import emath as emath
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import exceptions as exceptions
from numpy import f2py as f2py
from . import fft as fft
from numpy import finfo as finfo
from numpy import flatiter as flatiter
from numpy import flexible as flexible
from numpy import float128 as float128
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import generic as generic
from numpy import half as half
from numpy import iinfo as iinfo
from numpy import index_exp as index_exp
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import lib as lib
from . import linalg as linalg
from numpy import little_endian as little_endian
from numpy import long as long
from numpy import longdouble as longdouble
from numpy import longlong as longlong
from numpy import ma as ma
from numpy import matrix as matrix
from numpy import memmap as memmap
from numpy import mgrid as mgrid
from numpy import nan as nan
from numpy import ndenumerate as ndenumerate
from numpy import ndindex as ndindex
from numpy import nditer as nditer
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import object_ as object_
from numpy import ogrid as ogrid
from numpy import pi as pi
from numpy import poly1d as poly1d
from numpy import polynomial as polynomial
from numpy import r_ as r_
from . import random as random
from numpy import rec as rec
from numpy import recarray as recarray
from numpy import record as record
from numpy import s_ as s_
from numpy import sctypeDict as sctypeDict
from numpy import short as short
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import str_ as str_
from numpy import strings as strings
from numpy import testing as testing
from numpy import timedelta64 as timedelta64
from numpy import typecodes as typecodes
from numpy import typing as typing
from numpy import ubyte as ubyte
from numpy import ufunc as ufunc
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort
from numpy import vectorize as vectorize
from numpy import void as void

class ndarray(_np.ndarray[_S, _D]):
    def __buffer__(self, flags: int, /) -> memoryview: ...  # NumPy's stub has it from Python 3.12 on
    def asnumpy(self) -> _np.ndarray[_S, _D]: ...
    def wait_to_read(self) -> None: ...
    @property
    def context(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray[_S, _D]: ...
    @overload
    def view(self, dtype: type[_A], type: None = ...) -> _A: ...
    @overload
    def view(self, dtype: Any = ..., *, type: type[_A]) -> _A: ...
    @overload
    def view(self, dtype: DTypeLike | None = ..., type: None = ...) -> Array: ...
    @property
    def T(self) -> ndarray[Any, _D]: ...
    @property
    def mT(self) -> ndarray[Any, _D]: ...
    @property
    def real(self) -> Array: ...
    @property
    def imag(self) -> Array: ...
    def __iter__(self) -> Iterator[Any]: ...
    @overload
    def __getitem__(self, index: _Index | tuple[_Index, ...], /) -> ndarray[Any, _D]: ...
    @overload
    def __getitem__(self, index: Any, /) -> Any: ...
    def __neg__(self) -> ndarray[_S, _D]: ...
    def __pos__(self) -> ndarray[_S, _D]: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> ndarray[_S, _D]: ...
    def __add__(self, other: ArrayLike, /) -> Array: ...
    def __radd__(self, other: ArrayLike, /) -> Array: ...
    def __sub__(self, other: ArrayLike, /) -> Array: ...
    def __rsub__(self, other: ArrayLike, /) -> Array: ...
    def __mul__(self, other: ArrayLike, /) -> Array: ...
    def __rmul__(self, other: ArrayLike, /) -> Array: ...
    def __truediv__(self, other: ArrayLike, /) -> Array: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
    def __floordiv__(self, other: ArrayLike, /) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
    def __mod__(self, other: ArrayLike, /) -> Array: ...
    def __rmod__(self, other: ArrayLike, /) -> Array: ...
    def __pow__(self, other: ArrayLike, /) -> Array: ...
    def __rpow__(self, other: ArrayLike, /) -> Array: ...
    def __matmul__(self, other: ArrayLike, /) -> Any: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Any: ...
    def __and__(self, other: ArrayLike, /) -> Array: ...
    def __rand__(self, other: ArrayLike, /) -> Array: ...
    def __or__(self, other: ArrayLike, /) -> Array: ...
    def __ror__(self, other: ArrayLike, /) -> Array: ...
    def __xor__(self, other: ArrayLike, /) -> Array: ...
    def __rxor__(self, other: ArrayLike, /) -> Array: ...
    def __lshift__(self, other: ArrayLike, /) -> Array: ...
    def __rlshift__(self, other: ArrayLike, /) -> Array: ...
    def __rshift__(self, other: ArrayLike, /) -> Array: ...
    def __rrshift__(self, other: ArrayLike, /) -> Array: ...
    def __lt__(self, other: Any, /) -> Array: ...
    def __le__(self, other: Any, /) -> Array: ...
    def __gt__(self, other: Any, /) -> Array: ...
    def __ge__(self, other: Any, /) -> Array: ...
    def __eq__(self, other: Any, /) -> Array: ...
    def __ne__(self, other: Any, /) -> Array: ...
    def reshape(self, *shape: _Shape, order: _Order = ..., copy: _bool | None = ...) -> Array: ...
    def transpose(self, *axes: _Axis) -> Array: ...
    @overload
    def astype(
        self, dtype: _Typed[_T], order: _Order = ..., casting: Any = ..., subok: _bool = ..., copy: _bool = ...
    ) -> ArrayOf[_T]: ...
    @overload
    def astype(
        self, dtype: DTypeLike, order: _Order = ..., casting: Any = ..., subok: _bool = ..., copy: _bool = ...
    ) -> Array: ...
    def copy(self, order: _Order = ...) -> Array: ...
    def ravel(self, order: _Order = ...) -> Array: ...
    def flatten(self, order: _Order = ...) -> Array: ...
    def squeeze(self, axis: _Axis | None = ...) -> Array: ...
    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex, /) -> Array: ...
    def conj(self) -> Array: ...
    def conjugate(self) -> Array: ...
    def cumsum(self, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...) -> Array: ...
    def cumprod(self, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...) -> Array: ...
    def repeat(self, repeats: ArrayLike, /, axis: _Axis | None = ...) -> Array: ...
    def diagonal(
        self, offset: SupportsIndex = ..., axis1: SupportsIndex = ..., axis2: SupportsIndex = ...
    ) -> Array: ...
    def argsort(
        self, axis: _Axis = ..., kind: Any = ..., order: str | Sequence[str] | None = ..., *, stable: Any = ...
    ) -> Array: ...
    def compress(self, condition: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ...) -> Array: ...
    def byteswap(self, inplace: Any = ...) -> Array: ...

class _Unary(_np.ufunc):
    @overload
    def __call__(
        self,
        x: complex | _np.generic,
        /,
        out: None = None,
        *,
        where: ArrayLike | None = True,
        casting: str = ...,
        order: _Order = ...,
        dtype: DTypeLike | None = None,
        subok: _bool = ...,
        signature: Any = ...,
        axes: Any = ...,
        axis: Any = ...,
        keepdims: _bool = ...,
    ) -> Any: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        /,
        out: _Out | None = None,
        *,
        where: ArrayLike | None = True,
        casting: str = ...,
        order: _Order = ...,
        dtype: DTypeLike | None = None,
        subok: _bool = ...,
        signature: Any = ...,
        axes: Any = ...,
        axis: Any = ...,
        keepdims: _bool = ...,
    ) -> Array: ...

class _Binary(_np.ufunc):
    @overload
    def __call__(
        self,
        x: complex | _np.generic,
        y: complex | _np.generic,
        /,
        *,
        where: ArrayLike | None = True,
        casting: str = ...,
        order: _Order = ...,
        dtype: DTypeLike | None = None,
        subok: _bool = ...,
        signature: Any = ...,
        axes: Any = ...,
        axis: Any = ...,
        keepdims: _bool = ...,
    ) -> Any: ...
    @overload
    def __call__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        /,
        out: _Out | None = None,
        *,
        where: ArrayLike | None = True,
        casting: str = ...,
        order: _Order = ...,
        dtype: DTypeLike | None = None,
        subok: _bool = ...,
        signature: Any = ...,
        axes: Any = ...,
        axis: Any = ...,
        keepdims: _bool = ...,
    ) -> Array: ...

abs: _Unary
absolute: _Unary
acos: _Unary
acosh: _Unary
add: _Binary

def all(
    a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., keepdims: _bool = ..., *, where: ArrayLike = ...
) -> Any: ...
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = ..., atol: ArrayLike = ..., equal_nan: _bool = ...
) -> _bool: ...
def amax(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def amin(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def angle(z: ArrayLike, deg: Any = ...) -> Any: ...
def any(
    a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., keepdims: _bool = ..., *, where: ArrayLike = ...
) -> Any: ...
def append(arr: ArrayLike, values: ArrayLike, axis: _Axis | None = ...) -> Array: ...
def apply_along_axis(func1d: Any, axis: _Axis, arr: ArrayLike, *args: Any, **kwargs: Any) -> Any: ...
def apply_over_axes(func: Any, a: ArrayLike, axes: _Axis) -> Array: ...
@overload
def arange(
    start_or_stop: Any, /, stop: Any = ..., step: Any = ..., *, dtype: _Typed[_T], device: Any = ..., like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def arange(
    start_or_stop: Any,
    /,
    stop: Any = ...,
    step: Any = ...,
    *,
    dtype: DTypeLike | None = ...,
    device: Any = ...,
    like: Any = ...,
) -> Array: ...

arccos: _Unary
arccosh: _Unary
arcsin: _Unary
arcsinh: _Unary
arctan: _Unary
arctan2: _Binary
arctanh: _Unary

def argmax(a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., *, keepdims: _bool = ...) -> Any: ...
def argmin(a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., *, keepdims: _bool = ...) -> Any: ...
def argpartition(
    a: ArrayLike, kth: Any, axis: _Axis = ..., kind: Any = ..., order: str | Sequence[str] | None = ...
) -> Array: ...
def argsort(
    a: ArrayLike,
    axis: _Axis = ...,
    kind: Any = ...,
    order: str | Sequence[str] | None = ...,
    *,
    descending: Any = ...,
    stable: Any = ...,
) -> Array: ...
def argwhere(a: ArrayLike) -> Array: ...
def around(a: ArrayLike, decimals: SupportsIndex = ..., out: _Out | None = ...) -> Any: ...
@overload
def array(
    object: Any,
    dtype: _Typed[_T],
    *,
    copy: _bool = ...,
    order: _Order = ...,
    subok: _bool = ...,
    ndmin: Any = ...,
    ndmax: Any = ...,
    like: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def array(
    object: Any,
    dtype: DTypeLike | None = ...,
    *,
    copy: _bool = ...,
    order: _Order = ...,
    subok: _bool = ...,
    ndmin: Any = ...,
    ndmax: Any = ...,
    like: Any = ...,
) -> Array: ...
def array2string(
    a: ArrayLike,
    max_line_width: Any = ...,
    precision: Any = ...,
    suppress_small: Any = ...,
    separator: Any = ...,
    prefix: Any = ...,
    *,
    formatter: Any = ...,
    threshold: Any = ...,
    edgeitems: Any = ...,
    sign: Any = ...,
    floatmode: Any = ...,
    suffix: Any = ...,
    legacy: Any = ...,
) -> str: ...
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: _bool = ...) -> _bool: ...
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> _bool: ...
def array_repr(arr: ArrayLike, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> str: ...
def array_split(ary: ArrayLike, indices_or_sections: ArrayLike, axis: _Axis = ...) -> list[Array]: ...
def array_str(a: ArrayLike, max_line_width: Any = ..., precision: Any = ..., suppress_small: Any = ...) -> str: ...
@overload
def asanyarray(
    a: Any,
    dtype: _Typed[_T],
    order: _Order | None = ...,
    *,
    device: Any = ...,
    copy: _bool | None = ...,
    like: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def asanyarray(
    a: Any,
    dtype: DTypeLike | None = ...,
    order: _Order | None = ...,
    *,
    device: Any = ...,
    copy: _bool | None = ...,
    like: Any = ...,
) -> Array: ...
@overload
def asarray(
    a: Any,
    dtype: _Typed[_T],
    order: _Order | None = ...,
    *,
    device: Any = ...,
    copy: _bool | None = ...,
    like: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def asarray(
    a: Any,
    dtype: DTypeLike | None = ...,
    order: _Order | None = ...,
    *,
    device: Any = ...,
    copy: _bool | None = ...,
    like: Any = ...,
) -> Array: ...
def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike | None = ..., order: _Order | None = ...) -> Array: ...
@overload
def ascontiguousarray(a: ArrayLike, dtype: _Typed[_T], *, like: Any = ...) -> ArrayOf[_T]: ...
@overload
def ascontiguousarray(a: ArrayLike, dtype: DTypeLike | None = ..., *, like: Any = ...) -> Array: ...
@overload
def asfortranarray(a: ArrayLike, dtype: _Typed[_T], *, like: Any = ...) -> ArrayOf[_T]: ...
@overload
def asfortranarray(a: ArrayLike, dtype: DTypeLike | None = ..., *, like: Any = ...) -> Array: ...

asin: _Unary
asinh: _Unary

def asmatrix(data: Any, dtype: DTypeLike | None = ...) -> Any: ...
@overload
def astype(x: ArrayLike, dtype: _Typed[_T], /, *, copy: _bool = ..., device: Any = ...) -> ArrayOf[_T]: ...
@overload
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: _bool = ..., device: Any = ...) -> Array: ...

atan: _Unary
atan2: _Binary
atanh: _Unary

def atleast_1d(*arys: ArrayLike) -> Any: ...
def atleast_2d(*arys: ArrayLike) -> Any: ...
def atleast_3d(*arys: ArrayLike) -> Any: ...
def average(
    a: ArrayLike,
    axis: _Axis | None = ...,
    weights: ArrayLike | None = ...,
    returned: Any = ...,
    *,
    keepdims: _bool = ...,
) -> Any: ...
def bartlett(M: Any) -> Array: ...
def base_repr(number: ArrayLike, base: Any = ..., padding: Any = ...) -> str: ...
def binary_repr(num: SupportsIndex, width: Any = ...) -> str: ...
def bincount(x: ArrayLike, /, weights: ArrayLike | None = ..., minlength: Any = ...) -> Array: ...

bitwise_and: _Binary
bitwise_count: _Unary
bitwise_invert: _Unary
bitwise_left_shift: _Binary
bitwise_not: _Unary
bitwise_or: _Binary
bitwise_right_shift: _Binary
bitwise_xor: _Binary

def blackman(M: Any) -> Array: ...
def block(arrays: Sequence[ArrayLike] | ArrayLike) -> Array: ...
def bmat(obj: ArrayLike, ldict: Any = ..., gdict: Any = ...) -> Any: ...
def broadcast_arrays(*args: ArrayLike, subok: _bool = ...) -> tuple[Array, ...]: ...
def broadcast_shapes(*args: ArrayLike) -> tuple[int, ...]: ...
def broadcast_to(array: ArrayLike, shape: _Shape, subok: _bool = ...) -> Array: ...
def busday_count(
    begindates: Any,
    enddates: Any,
    weekmask: Any = ...,
    holidays: Any = ...,
    busdaycal: Any = ...,
    out: _Out | None = ...,
) -> Any: ...
def busday_offset(
    dates: Any,
    offsets: Any,
    roll: Any = ...,
    weekmask: Any = ...,
    holidays: Any = ...,
    busdaycal: Any = ...,
    out: _Out | None = ...,
) -> Any: ...
def can_cast(from_: Any, to: Any, casting: Any = ...) -> _bool: ...

cbrt: _Unary
ceil: _Unary

def choose(a: ArrayLike, choices: ArrayLike, out: _Out | None = ..., mode: Any = ...) -> Any: ...
def clip(
    a: ArrayLike,
    a_min: Any = ...,
    a_max: Any = ...,
    out: _Out | None = ...,
    *,
    min: Any = ...,
    max: Any = ...,
    **kwargs: Any,
) -> Any: ...
def column_stack(tup: Sequence[ArrayLike] | ArrayLike) -> Array: ...
def common_type(*arrays: Sequence[ArrayLike] | ArrayLike) -> Any: ...
def compress(condition: ArrayLike, a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ...) -> Array: ...
def concat(
    arrays: Sequence[ArrayLike] | ArrayLike,
    /,
    axis: _Axis = ...,
    out: _Out | None = ...,
    *,
    dtype: DTypeLike | None = ...,
    casting: Any = ...,
) -> Array: ...
def concatenate(
    arrays: Sequence[ArrayLike] | ArrayLike,
    /,
    axis: _Axis = ...,
    out: _Out | None = ...,
    *,
    dtype: DTypeLike | None = ...,
    casting: Any = ...,
) -> Array: ...

conj: _Unary
conjugate: _Unary

def convolve(a: ArrayLike, v: ArrayLike, mode: Any = ...) -> Array: ...
def copy(a: ArrayLike, order: _Order = ..., subok: _bool = ...) -> Array: ...

copysign: _Binary

def copyto(dst: Any, src: Any, casting: Any = ..., where: ArrayLike = ...) -> None: ...
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = ..., rowvar: _bool = ..., *, dtype: DTypeLike | None = ...
) -> Array: ...
def correlate(a: ArrayLike, v: ArrayLike, mode: Any = ...) -> Array: ...

cos: _Unary
cosh: _Unary

def count_nonzero(a: ArrayLike, axis: _Axis | None = ..., *, keepdims: _bool = ...) -> Any: ...
def cov(
    m: ArrayLike,
    y: ArrayLike | None = ...,
    rowvar: _bool = ...,
    bias: Any = ...,
    ddof: SupportsIndex | None = ...,
    fweights: ArrayLike | None = ...,
    aweights: ArrayLike | None = ...,
    *,
    dtype: DTypeLike | None = ...,
) -> Array: ...
def cross(
    a: ArrayLike, b: ArrayLike, axisa: Any = ..., axisb: Any = ..., axisc: Any = ..., axis: SupportsIndex | None = ...
) -> Array: ...
def cumprod(a: ArrayLike, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...) -> Array: ...
def cumsum(a: ArrayLike, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...) -> Array: ...
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    include_initial: Any = ...,
) -> Array: ...
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    include_initial: Any = ...,
) -> Array: ...
def datetime_as_string(arr: ArrayLike, unit: Any = ..., timezone: Any = ..., casting: Any = ...) -> Any: ...
def datetime_data(dtype: DTypeLike, /) -> Any: ...

deg2rad: _Unary
degrees: _Unary

def delete(arr: ArrayLike, obj: ArrayLike, axis: _Axis | None = ...) -> Array: ...
def diag(v: ArrayLike, k: SupportsIndex = ...) -> Array: ...
def diag_indices(n: SupportsIndex, ndim: Any = ...) -> tuple[Array, ...]: ...
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]: ...
def diagflat(v: ArrayLike, k: SupportsIndex = ...) -> Array: ...
def diagonal(
    a: ArrayLike, offset: SupportsIndex = ..., axis1: SupportsIndex = ..., axis2: SupportsIndex = ...
) -> Array: ...
def diff(
    a: ArrayLike, n: SupportsIndex = ..., axis: _Axis = ..., prepend: ArrayLike = ..., append: ArrayLike = ...
) -> Array: ...
def digitize(x: ArrayLike, bins: ArrayLike, right: Any = ...) -> Any: ...

divide: _Binary
divmod: _np.ufunc

def dot(a: ArrayLike, b: ArrayLike, out: _Out | None = ...) -> Any: ...
def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Array]: ...
def dstack(tup: Sequence[ArrayLike] | ArrayLike) -> Array: ...
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = ..., to_begin: ArrayLike | None = ...) -> Array: ...
def einsum(*operands: Any, out: _Out | None = ..., optimize: Any = ..., **kwargs: Any) -> Any: ...
def einsum_path(*operands: Any, optimize: Any = ..., einsum_call: Any = ...) -> Any: ...
@overload
def empty(
    shape: _Shape, dtype: _Typed[_T], order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def empty(
    shape: _Shape, dtype: DTypeLike | None = ..., order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> Array: ...
@overload
def empty_like(
    prototype: ArrayLike,
    /,
    dtype: _Typed[_T],
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def empty_like(
    prototype: ArrayLike,
    /,
    dtype: DTypeLike | None = ...,
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> Array: ...

equal: _Binary
exp: _Unary
exp2: _Unary

def expand_dims(a: ArrayLike, axis: _Axis) -> Array: ...

expm1: _Unary

def extract(condition: ArrayLike, arr: ArrayLike) -> Array: ...
@overload
def eye(
    N: SupportsIndex,
    M: Any = ...,
    k: SupportsIndex = ...,
    *,
    dtype: _Typed[_T],
    order: _Order = ...,
    device: Any = ...,
    like: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def eye(
    N: SupportsIndex,
    M: Any = ...,
    k: SupportsIndex = ...,
    dtype: DTypeLike = ...,
    order: _Order = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> Array: ...

fabs: _Unary

def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: Any = ...) -> None: ...
def fix(x: ArrayLike, out: _Out | None = ...) -> Any: ...
def flatnonzero(a: ArrayLike) -> Array: ...
def flip(m: ArrayLike, axis: _Axis | None = ...) -> Array: ...
def fliplr(m: ArrayLike) -> Array: ...
def flipud(m: ArrayLike) -> Array: ...

float_power: _Binary
floor: _Unary
floor_divide: _Binary
fmax: _Binary
fmin: _Binary
fmod: _Binary

def format_float_positional(
    x: ArrayLike,
    precision: Any = ...,
    unique: Any = ...,
    fractional: Any = ...,
    trim: Any = ...,
    sign: Any = ...,
    pad_left: Any = ...,
    pad_right: Any = ...,
    min_digits: Any = ...,
) -> str: ...
def format_float_scientific(
    x: ArrayLike,
    precision: Any = ...,
    unique: Any = ...,
    trim: Any = ...,
    sign: Any = ...,
    pad_left: Any = ...,
    exp_digits: Any = ...,
    min_digits: Any = ...,
) -> str: ...

frexp: _np.ufunc

def from_dlpack(x: ArrayLike, /, *, device: Any = ..., copy: _bool | None = ...) -> Array: ...
@overload
def frombuffer(
    buffer: Any, dtype: _Typed[_T], count: SupportsIndex = ..., offset: SupportsIndex = ..., *, like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def frombuffer(
    buffer: Any,
    dtype: DTypeLike | None = ...,
    count: SupportsIndex = ...,
    offset: SupportsIndex = ...,
    *,
    like: Any = ...,
) -> Array: ...
def fromfile(
    file: Any,
    dtype: DTypeLike | None = ...,
    count: SupportsIndex = ...,
    sep: Any = ...,
    offset: SupportsIndex = ...,
    *,
    like: Any = ...,
) -> Array: ...
def fromfunction(function: Any, shape: _Shape, *, dtype: DTypeLike = ..., like: Any = ..., **kwargs: Any) -> Array: ...
@overload
def fromiter(iter: Any, dtype: _Typed[_T], count: SupportsIndex = ..., *, like: Any = ...) -> ArrayOf[_T]: ...
@overload
def fromiter(iter: Any, dtype: DTypeLike, count: SupportsIndex = ..., *, like: Any = ...) -> Array: ...
def frompyfunc(func: Any, /, nin: Any, nout: Any, **kwargs: Any) -> Any: ...
def fromregex(file: Any, regexp: Any, dtype: DTypeLike, encoding: Any = ...) -> Array: ...
def fromstring(*args: Any, **kwargs: Any) -> Array: ...
@overload
def full(
    shape: _Shape, fill_value: ArrayLike, dtype: _Typed[_T], order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def full(
    shape: _Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = ...,
    order: _Order = ...,
    *,
    device: Any = ...,
    like: Any = ...,
) -> Array: ...
@overload
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: _Typed[_T],
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = ...,
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> Array: ...

gcd: _Binary

def genfromtxt(
    fname: Any,
    dtype: DTypeLike | None = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    skip_header: Any = ...,
    skip_footer: Any = ...,
    converters: Any = ...,
    missing_values: Any = ...,
    filling_values: Any = ...,
    usecols: Any = ...,
    names: Any = ...,
    excludelist: Any = ...,
    deletechars: Any = ...,
    replace_space: Any = ...,
    autostrip: Any = ...,
    case_sensitive: Any = ...,
    defaultfmt: Any = ...,
    unpack: Any = ...,
    usemask: Any = ...,
    loose: Any = ...,
    invalid_raise: Any = ...,
    max_rows: Any = ...,
    encoding: Any = ...,
    *,
    ndmin: Any = ...,
    like: Any = ...,
) -> Any: ...
def geomspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = ...,
    endpoint: _bool = ...,
    dtype: DTypeLike | None = ...,
    axis: _Axis = ...,
) -> Array: ...
def get_include() -> str: ...
def get_printoptions() -> Any: ...
def getbufsize() -> int: ...
def geterr() -> Any: ...
def geterrcall() -> Any: ...
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: _Axis | None = ..., edge_order: Any = ...) -> Any: ...

greater: _Binary
greater_equal: _Binary

def hamming(M: Any) -> Array: ...
def hanning(M: Any) -> Array: ...

heaviside: _Binary

def histogram(
    a: ArrayLike, bins: ArrayLike | str = ..., range: Any = ..., density: Any = ..., weights: ArrayLike | None = ...
) -> tuple[Array, Array]: ...
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike = ...,
    range: Any = ...,
    density: Any = ...,
    weights: ArrayLike | None = ...,
) -> tuple[Array, ...]: ...
def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = ..., range: Any = ..., weights: ArrayLike | None = ...
) -> Array: ...
def histogramdd(
    sample: ArrayLike, bins: ArrayLike = ..., range: Any = ..., density: Any = ..., weights: ArrayLike | None = ...
) -> tuple[Array, list[Array]]: ...
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Array]: ...
def hstack(tup: Sequence[ArrayLike] | ArrayLike, *, dtype: DTypeLike | None = ..., casting: Any = ...) -> Array: ...

hypot: _Binary

def i0(x: ArrayLike) -> Any: ...
@overload
def identity(n: SupportsIndex, dtype: _Typed[_T], *, like: Any = ...) -> ArrayOf[_T]: ...
@overload
def identity(n: SupportsIndex, dtype: DTypeLike | None = ..., *, like: Any = ...) -> Array: ...
def imag(val: ArrayLike) -> Any: ...
def indices(dimensions: Any, dtype: DTypeLike = ..., sparse: Any = ...) -> Array: ...
def info(object: ArrayLike | None = ..., maxwidth: Any = ..., output: Any = ..., toplevel: Any = ...) -> None: ...
def inner(a: ArrayLike, b: ArrayLike, /) -> Any: ...
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: _Axis | None = ...) -> Array: ...
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: Any = ..., right: Any = ..., period: Any = ...) -> Any: ...
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = ..., return_indices: Any = ...) -> Any: ...

invert: _Unary

def is_busday(
    dates: Any, weekmask: Any = ..., holidays: Any = ..., busdaycal: Any = ..., out: _Out | None = ...
) -> Any: ...
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = ..., atol: ArrayLike = ..., equal_nan: _bool = ...
) -> Any: ...
def iscomplex(x: ArrayLike) -> Any: ...
def iscomplexobj(x: ArrayLike) -> _bool: ...
def isdtype(dtype: DTypeLike, kind: Any) -> _bool: ...

isfinite: _Unary

def isfortran(a: ArrayLike) -> _bool: ...
def isin(
    element: ArrayLike, test_elements: ArrayLike, assume_unique: _bool = ..., invert: Any = ..., *, kind: Any = ...
) -> Array: ...

isinf: _Unary
isnan: _Unary
isnat: _Unary

def isneginf(x: ArrayLike, out: _Out | None = ...) -> Any: ...
def isposinf(x: ArrayLike, out: _Out | None = ...) -> Any: ...
def isreal(x: ArrayLike) -> Any: ...
def isrealobj(x: ArrayLike) -> _bool: ...
def isscalar(element: ArrayLike) -> _bool: ...
def issubdtype(arg1: Any, arg2: Any) -> _bool: ...
def iterable(y: ArrayLike) -> _bool: ...
def ix_(*args: ArrayLike) -> tuple[Array, ...]: ...
def kaiser(M: Any, beta: Any) -> Array: ...
def kron(a: ArrayLike, b: ArrayLike) -> Array: ...

lcm: _Binary
ldexp: _Binary
left_shift: _Binary
less: _Binary
less_equal: _Binary

def lexsort(keys: ArrayLike, axis: _Axis = ...) -> Array: ...
def linspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = ...,
    endpoint: _bool = ...,
    retstep: Any = ...,
    dtype: DTypeLike | None = ...,
    axis: _Axis = ...,
    *,
    device: Any = ...,
) -> Any: ...
def load(
    file: Any,
    mmap_mode: Any = ...,
    allow_pickle: Any = ...,
    fix_imports: Any = ...,
    encoding: Any = ...,
    *,
    max_header_size: Any = ...,
) -> Any: ...
def loadtxt(
    fname: Any,
    dtype: DTypeLike = ...,
    comments: Any = ...,
    delimiter: Any = ...,
    converters: Any = ...,
    skiprows: Any = ...,
    usecols: Any = ...,
    unpack: Any = ...,
    ndmin: Any = ...,
    encoding: Any = ...,
    max_rows: Any = ...,
    *,
    quotechar: Any = ...,
    like: Any = ...,
) -> Any: ...

log: _Unary
log10: _Unary
log1p: _Unary
log2: _Unary
logaddexp: _Binary
logaddexp2: _Binary
logical_and: _Binary
logical_not: _Unary
logical_or: _Binary
logical_xor: _Binary

def logspace(
    start: Any,
    stop: Any,
    num: SupportsIndex = ...,
    endpoint: _bool = ...,
    base: Any = ...,
    dtype: DTypeLike | None = ...,
    axis: _Axis = ...,
) -> Array: ...
def mask_indices(n: SupportsIndex, mask_func: Any, k: SupportsIndex = ...) -> tuple[Array, ...]: ...

matmul: _Binary

def matrix_transpose(x: ArrayLike, /) -> Array: ...

matvec: _Binary

def max(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...

maximum: _Binary

def may_share_memory(a: ArrayLike, b: ArrayLike, /, max_work: Any = ...) -> _bool: ...
def mean(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
) -> Any: ...
def median(
    a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., overwrite_input: Any = ..., keepdims: _bool = ...
) -> Any: ...
def meshgrid(*xi: ArrayLike, copy: _bool = ..., sparse: Any = ..., indexing: Any = ...) -> tuple[Array, ...]: ...
def min(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def min_scalar_type(a: ArrayLike, /) -> _np.dtype[Any]: ...

minimum: _Binary

def mintypecode(typechars: Any, typeset: Any = ..., default: Any = ...) -> str: ...

mod: _Binary
modf: _np.ufunc

def moveaxis(a: ArrayLike, source: _Axis, destination: _Axis) -> Array: ...

multiply: _Binary

def nan_to_num(x: ArrayLike, copy: _bool = ..., nan: Any = ..., posinf: Any = ..., neginf: Any = ...) -> Any: ...
def nanargmax(a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., *, keepdims: _bool = ...) -> Any: ...
def nanargmin(a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., *, keepdims: _bool = ...) -> Any: ...
def nancumprod(
    a: ArrayLike, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...
) -> Array: ...
def nancumsum(
    a: ArrayLike, axis: _Axis | None = ..., dtype: DTypeLike | None = ..., out: _Out | None = ...
) -> Array: ...
def nanmax(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def nanmean(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
) -> Any: ...
def nanmedian(
    a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., overwrite_input: Any = ..., keepdims: _bool = ...
) -> Any: ...
def nanmin(
    a: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: _bool = ...,
    *,
    weights: ArrayLike | None = ...,
) -> Any: ...
def nanprod(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: _bool = ...,
    *,
    weights: ArrayLike | None = ...,
) -> Any: ...
def nanstd(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    ddof: SupportsIndex = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...
def nansum(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def nanvar(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    ddof: SupportsIndex = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...
def ndim(a: ArrayLike) -> int: ...

negative: _Unary

def nested_iters(
    op: Any,
    axes: _Axis,
    flags: Any = ...,
    op_flags: Any = ...,
    op_dtypes: Any = ...,
    order: _Order = ...,
    casting: Any = ...,
    buffersize: Any = ...,
) -> Any: ...

nextafter: _Binary

def nonzero(a: ArrayLike) -> tuple[Array, ...]: ...

not_equal: _Binary

@overload
def ones(
    shape: _Shape, dtype: _Typed[_T], order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def ones(
    shape: _Shape, dtype: DTypeLike | None = ..., order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> Array: ...
@overload
def ones_like(
    a: ArrayLike,
    dtype: _Typed[_T],
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = ...,
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> Array: ...
def outer(a: ArrayLike, b: ArrayLike, out: _Out | None = ...) -> Array: ...
def packbits(a: ArrayLike, /, axis: _Axis | None = ..., bitorder: Any = ...) -> Array: ...
def pad(array: ArrayLike, pad_width: Any, mode: Any = ..., **kwargs: Any) -> Array: ...
def partition(
    a: ArrayLike, kth: Any, axis: _Axis = ..., kind: Any = ..., order: str | Sequence[str] | None = ...
) -> Array: ...
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: _bool = ...,
    *,
    weights: ArrayLike | None = ...,
) -> Any: ...
def permute_dims(a: ArrayLike, axes: _Axis | None = ...) -> Array: ...
def piecewise(x: ArrayLike, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array: ...
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike) -> None: ...
def poly(seq_of_zeros: ArrayLike) -> Array: ...
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array: ...
def polyder(p: ArrayLike, m: ArrayLike = ...) -> Array: ...
def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Array, ...]: ...
def polyfit(
    x: ArrayLike, y: ArrayLike, deg: Any, rcond: Any = ..., full: Any = ..., w: ArrayLike | None = ..., cov: Any = ...
) -> Any: ...
def polyint(p: ArrayLike, m: ArrayLike = ..., k: SupportsIndex | None = ...) -> Array: ...
def polymul(a1: ArrayLike, a2: ArrayLike) -> Array: ...
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array: ...
def polyval(p: ArrayLike, x: ArrayLike) -> Any: ...

positive: _Unary
pow: _Binary
power: _Binary

def printoptions(*args: Any, **kwargs: Any) -> Any: ...
def prod(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def promote_types(type1: Any, type2: Any, /) -> _np.dtype[Any]: ...
def ptp(a: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., keepdims: _bool = ...) -> Any: ...
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: Any = ...) -> None: ...
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: _Axis) -> None: ...
def putmask(a: ArrayLike, /, mask: ArrayLike, values: ArrayLike) -> None: ...
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis | None = ...,
    out: _Out | None = ...,
    overwrite_input: Any = ...,
    method: Any = ...,
    keepdims: _bool = ...,
    *,
    weights: ArrayLike | None = ...,
) -> Any: ...

rad2deg: _Unary
radians: _Unary

def ravel(a: ArrayLike, order: _Order = ...) -> Array: ...
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = ..., order: Literal["C", "F"] = ...) -> Any: ...
def real(val: ArrayLike) -> Any: ...
def real_if_close(a: ArrayLike, tol: Any = ...) -> Any: ...

reciprocal: _Unary
remainder: _Binary

def repeat(a: ArrayLike, repeats: ArrayLike, axis: _Axis | None = ...) -> Array: ...
@overload
def require(a: ArrayLike, dtype: _Typed[_T], requirements: Any = ..., *, like: Any = ...) -> ArrayOf[_T]: ...
@overload
def require(a: ArrayLike, dtype: DTypeLike | None = ..., requirements: Any = ..., *, like: Any = ...) -> Array: ...
def reshape(a: ArrayLike, /, shape: _Shape, order: _Order = ..., *, copy: _bool | None = ...) -> Array: ...
def resize(a: ArrayLike, new_shape: _Shape) -> Array: ...
def result_type(*arrays_and_dtypes: Any) -> _np.dtype[Any]: ...

right_shift: _Binary
rint: _Unary

def roll(a: ArrayLike, shift: _Axis, axis: _Axis | None = ...) -> Array: ...
def rollaxis(a: ArrayLike, axis: _Axis, start: Any = ...) -> Array: ...
def roots(p: ArrayLike) -> Array: ...
def rot90(m: ArrayLike, k: SupportsIndex = ..., axes: _Axis = ...) -> Array: ...
def round(a: ArrayLike, decimals: SupportsIndex = ..., out: _Out | None = ...) -> Any: ...
def row_stack(tup: Sequence[ArrayLike] | ArrayLike, *, dtype: DTypeLike | None = ..., casting: Any = ...) -> Array: ...
def save(file: Any, arr: ArrayLike, allow_pickle: Any = ...) -> None: ...
def savetxt(
    fname: Any,
    X: Any,
    fmt: Any = ...,
    delimiter: Any = ...,
    newline: Any = ...,
    header: Any = ...,
    footer: Any = ...,
    comments: Any = ...,
    encoding: Any = ...,
) -> None: ...
def savez(file: Any, *args: ArrayLike, allow_pickle: Any = ..., **kwds: Any) -> None: ...
def savez_compressed(file: Any, *args: ArrayLike, allow_pickle: Any = ..., **kwds: Any) -> None: ...
def searchsorted(a: ArrayLike, v: ArrayLike, side: Any = ..., sorter: ArrayLike | None = ...) -> Any: ...
def select(condlist: Any, choicelist: Any, default: Any = ...) -> Array: ...
def set_printoptions(
    precision: Any = ...,
    threshold: Any = ...,
    edgeitems: Any = ...,
    linewidth: Any = ...,
    suppress: Any = ...,
    nanstr: Any = ...,
    infstr: Any = ...,
    formatter: Any = ...,
    sign: Any = ...,
    floatmode: Any = ...,
    *,
    legacy: Any = ...,
    override_repr: Any = ...,
) -> None: ...
def setbufsize(size: Any) -> int: ...
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = ...) -> Array: ...
def seterr(all: Any = ..., divide: Any = ..., over: Any = ..., under: Any = ..., invalid: Any = ...) -> Any: ...
def seterrcall(func: Any) -> Any: ...
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: _bool = ...) -> Array: ...
def shape(a: ArrayLike) -> tuple[int, ...]: ...
def shares_memory(a: ArrayLike, b: ArrayLike, /, max_work: Any = ...) -> _bool: ...
def show_config(mode: Any = ...) -> None: ...
def show_runtime() -> None: ...

sign: _Unary
signbit: _Unary
sin: _Unary

def sinc(x: ArrayLike) -> Any: ...

sinh: _Unary

def size(a: ArrayLike, axis: _Axis | None = ...) -> int: ...
def sort(
    a: ArrayLike,
    axis: _Axis = ...,
    kind: Any = ...,
    order: str | Sequence[str] | None = ...,
    *,
    descending: Any = ...,
    stable: Any = ...,
) -> Array: ...
def sort_complex(a: ArrayLike) -> Array: ...

spacing: _Unary

def split(ary: ArrayLike, indices_or_sections: ArrayLike, axis: _Axis = ...) -> list[Array]: ...

sqrt: _Unary
square: _Unary

def squeeze(a: ArrayLike, axis: _Axis | None = ...) -> Array: ...
def stack(
    arrays: Sequence[ArrayLike] | ArrayLike,
    axis: _Axis = ...,
    out: _Out | None = ...,
    *,
    dtype: DTypeLike | None = ...,
    casting: Any = ...,
) -> Array: ...
def std(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    ddof: SupportsIndex = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...

subtract: _Binary

def sum(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    keepdims: _bool = ...,
    initial: Any = ...,
    where: ArrayLike = ...,
) -> Any: ...
def swapaxes(a: ArrayLike, axis1: SupportsIndex, axis2: SupportsIndex) -> Array: ...
def take(
    a: ArrayLike, indices: ArrayLike, axis: _Axis | None = ..., out: _Out | None = ..., mode: Any = ...
) -> Any: ...
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: _Axis = ...) -> Array: ...

tan: _Unary
tanh: _Unary

def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = ...) -> Array: ...
def test(
    label: Any = ...,
    verbose: Any = ...,
    extra_argv: Any = ...,
    doctests: Any = ...,
    coverage: Any = ...,
    durations: Any = ...,
    tests: Any = ...,
) -> Any: ...
def tile(A: ArrayLike, reps: Any) -> Array: ...
def trace(
    a: ArrayLike,
    offset: SupportsIndex = ...,
    axis1: SupportsIndex = ...,
    axis2: SupportsIndex = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
) -> Any: ...
def transpose(a: ArrayLike, axes: _Axis | None = ...) -> Array: ...
def trapezoid(y: ArrayLike, x: ArrayLike | None = ..., dx: Any = ..., axis: _Axis = ...) -> Any: ...
@overload
def tri(
    N: SupportsIndex, M: Any = ..., k: SupportsIndex = ..., *, dtype: _Typed[_T], like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def tri(
    N: SupportsIndex, M: Any = ..., k: SupportsIndex = ..., dtype: DTypeLike = ..., *, like: Any = ...
) -> Array: ...
def tril(m: ArrayLike, k: SupportsIndex = ...) -> Array: ...
def tril_indices(n: SupportsIndex, k: SupportsIndex = ..., m: ArrayLike | None = ...) -> tuple[Array, ...]: ...
def tril_indices_from(arr: ArrayLike, k: SupportsIndex = ...) -> tuple[Array, ...]: ...
def trim_zeros(filt: ArrayLike, trim: Any = ..., axis: _Axis | None = ...) -> Array: ...
def triu(m: ArrayLike, k: SupportsIndex = ...) -> Array: ...
def triu_indices(n: SupportsIndex, k: SupportsIndex = ..., m: ArrayLike | None = ...) -> tuple[Array, ...]: ...
def triu_indices_from(arr: ArrayLike, k: SupportsIndex = ...) -> tuple[Array, ...]: ...

true_divide: _Binary
trunc: _Unary

def typename(char: Any) -> str: ...
def union1d(ar1: ArrayLike, ar2: ArrayLike) -> Array: ...
def unique(
    ar: ArrayLike,
    return_index: Any = ...,
    return_inverse: Any = ...,
    return_counts: Any = ...,
    axis: _Axis | None = ...,
    *,
    equal_nan: _bool = ...,
    sorted: Any = ...,
) -> Any: ...
def unique_all(x: ArrayLike) -> Any: ...
def unique_counts(x: ArrayLike) -> Any: ...
def unique_inverse(x: ArrayLike) -> Any: ...
def unique_values(x: ArrayLike) -> Array: ...
def unpackbits(
    a: ArrayLike, /, axis: _Axis | None = ..., count: SupportsIndex | None = ..., bitorder: Any = ...
) -> Array: ...
def unravel_index(indices: ArrayLike, shape: _Shape, order: _Order = ...) -> tuple[Array, ...]: ...
def unstack(x: ArrayLike, /, *, axis: _Axis = ...) -> tuple[Array, ...]: ...
def unwrap(p: ArrayLike, discont: Any = ..., axis: _Axis = ..., *, period: Any = ...) -> Array: ...
def vander(x: ArrayLike, N: SupportsIndex | None = ..., increasing: Any = ...) -> Array: ...
def var(
    a: ArrayLike,
    axis: _Axis | None = ...,
    dtype: DTypeLike | None = ...,
    out: _Out | None = ...,
    ddof: SupportsIndex = ...,
    keepdims: _bool = ...,
    *,
    where: ArrayLike = ...,
    mean: Any = ...,
    correction: Any = ...,
) -> Any: ...
def vdot(a: ArrayLike, b: ArrayLike, /) -> Any: ...

vecdot: _Binary
vecmat: _Binary

def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike) -> list[Array]: ...
def vstack(tup: Sequence[ArrayLike] | ArrayLike, *, dtype: DTypeLike | None = ..., casting: Any = ...) -> Array: ...
def where(condition: ArrayLike, x: ArrayLike | None = ..., y: ArrayLike | None = ..., /) -> Array: ...
@overload
def zeros(
    shape: _Shape, dtype: _Typed[_T], order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> ArrayOf[_T]: ...
@overload
def zeros(
    shape: _Shape, dtype: DTypeLike | None = ..., order: _Order = ..., *, device: Any = ..., like: Any = ...
) -> Array: ...
@overload
def zeros_like(
    a: ArrayLike,
    dtype: _Typed[_T],
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> ArrayOf[_T]: ...
@overload
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = ...,
    order: _Order = ...,
    subok: _bool = ...,
    shape: _Shape | None = ...,
    *,
    device: Any = ...,
) -> Array: ...
def onehot_encode(indices: ArrayLike, out: _Out) -> Any: ...

policy: Any

def record_op_stat() -> Any: ...
def set_policy(name: Any) -> Any: ...
def show_op_stat() -> Any: ...
def slice_axis(data: Any, axis: _Axis, begin: Any, end: Any) -> Any: ...
def softmax_output(data: Any, label: Any) -> Any: ...
def stop_gradient(x: ArrayLike) -> Any: ...
