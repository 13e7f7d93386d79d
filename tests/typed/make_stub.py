"""Writes minnp/numpy/{__init__,linalg,fft,random}.pyi: what editors and type checkers know of the namespace.

    python -m tests.typed.make_stub      with NumPy >= 2.4, whose callables all carry their signature; then ruff format

NumPy's own stubs cannot serve: what they return is a `numpy.ndarray`, which has no `asnumpy()` or `context`. So every
function is declared with NumPy's parameters and our array as its result; types, constants and the rest are NumPy's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import numpy

import minnp.numpy

STUBS = Path(__file__).parents[2] / "minnp" / "numpy"
OURS = ("linalg", "fft", "random")  # submodules with a stub of their own

HEAD = '''\
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
'''

ARRAYS = """
    a b x y v u p z m q f w val arr ary ar ar1 ar2 a1 a2 aweights c condition element filt fweights g ind
    indices keys mask new obj object prototype sample sorter test_elements weights xp fp array args arys xi
    values vals bins prepend append fill_value element arys seq_of_zeros to_end to_begin repeats
    indices_or_sections number choices x1 x2 A
"""
PARAMETERS = {
    **dict.fromkeys(ARRAYS.split(), "ArrayLike"),
    **dict.fromkeys(("shape", "new_shape", "newshape"), "_Shape"),
    **dict.fromkeys(("axis", "axes", "source", "destination", "shift"), "_Axis"),
    **dict.fromkeys(("axis1", "axis2", "k", "n", "N", "num", "decimals", "ddof", "offset", "count"), "SupportsIndex"),
    **dict.fromkeys(("keepdims", "endpoint", "assume_unique", "equal_nan", "subok", "rowvar", "copy"), "_bool"),
    **dict.fromkeys(("arrays", "tup"), "Sequence[ArrayLike] | ArrayLike"),
    "dtype": "DTypeLike",
    "out": "_Out",
    "order": "_Order",
    "where": "ArrayLike",
    "rtol": "ArrayLike",
    "atol": "ArrayLike",
}
# parameters whose name says something else in these functions
OTHERWISE = {
    ("einsum", "operands"): "Any",
    ("tensordot", "axes"): "Any",
    ("frompyfunc", "args"): "Any",
    ("cross", "axis"): "SupportsIndex",
    ("concatenate", "arrays"): "Sequence[ArrayLike] | ArrayLike",
    ("sort", "order"): "str | Sequence[str]",
    ("argsort", "order"): "str | Sequence[str]",
    ("partition", "order"): "str | Sequence[str]",
    ("argpartition", "order"): "str | Sequence[str]",
    ("histogram", "bins"): "ArrayLike | str",
    ("linspace", "num"): "SupportsIndex",
    ("gradient", "varargs"): "ArrayLike",
    ("piecewise", "args"): "Any",
    ("apply_along_axis", "args"): "Any",
    ("printoptions", "args"): "Any",
    ("savez", "args"): "ArrayLike",
    ("ravel_multi_index", "order"): "Literal['C', 'F']",
    ("genfromtxt", "dtype"): "DTypeLike | None",
    **dict.fromkeys([("gamma", "shape"), ("standard_gamma", "shape")], "ArrayLike"),
    **dict.fromkeys([("array", "object"), ("asarray", "a"), ("asanyarray", "a")], "Any"),  # whatever it is, as NumPy
}
RESULTS = {
    "_bool": """
        allclose array_equal array_equiv iscomplexobj isrealobj isfortran isscalar issubdtype can_cast iterable
        isdtype may_share_memory shares_memory
    """,
    "int": "ndim size getbufsize setbufsize",
    "str": """
        array_repr array_str array2string base_repr binary_repr format_float_positional format_float_scientific
        typename mintypecode get_include
    """,
    "tuple[Array, ...]": """
        nonzero ix_ meshgrid broadcast_arrays diag_indices diag_indices_from tril_indices tril_indices_from
        triu_indices triu_indices_from mask_indices unravel_index unstack polydiv modf frexp divmod histogram2d
    """,
    "list[Array]": "split array_split hsplit vsplit dsplit",
    "tuple[Array, Array]": "histogram",
    "tuple[Array, list[Array]]": "histogramdd",
    "tuple[int, ...]": "shape broadcast_shapes",
    "_np.dtype[Any]": "promote_types result_type min_scalar_type",
    "None": """
        copyto put place putmask fill_diagonal put_along_axis save savez savez_compressed savetxt
        set_printoptions info show_runtime show_config
    """,
    # a number or an array, by the arguments
    "Any": """
        sum prod mean std var min max amin amax ptp all any median average quantile percentile argmin argmax
        trace dot vdot inner matmul nansum nanprod nanmean nanstd nanvar nanmin nanmax nanmedian nanquantile
        nanpercentile nanargmin nanargmax count_nonzero einsum einsum_path interp load loadtxt genfromtxt
        polyval polyfit round around unique unique_all unique_counts unique_inverse intersect1d common_type
        frompyfunc geterr seterr geterrcall seterrcall errstate get_printoptions printoptions datetime_data
        nested_iters test take choose trapezoid gradient apply_along_axis searchsorted bmat asmatrix real imag
        angle atleast_1d atleast_2d atleast_3d busday_count busday_offset is_busday datetime_as_string
        ravel_multi_index digitize i0 sinc real_if_close nan_to_num clip fix isclose isreal iscomplex isposinf
        isneginf linspace
    """,
}
# result has the dtype that was asked for
TYPED = """
    zeros ones empty full eye identity arange zeros_like ones_like empty_like full_like array asarray asanyarray
    ascontiguousarray asfortranarray require frombuffer fromiter astype tri
"""
METHODS = """
    reshape transpose astype copy ravel flatten squeeze swapaxes conj conjugate cumsum cumprod repeat
    diagonal argsort compress byteswap
"""
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
COMPARE = "lt le gt ge eq ne"

NDARRAY = """
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
"""


UFUNCS = """
class _Unary(_np.ufunc):
    @overload
    def __call__(self, x: complex | _np.generic, /, out: None = None, *, {options}) -> Any: ...
    @overload
    def __call__(self, x: ArrayLike, /, out: _Out | None = None, *, {options}) -> Array: ...

class _Binary(_np.ufunc):
    @overload
    def __call__(self, x: complex | _np.generic, y: complex | _np.generic, /, *, {options}) -> Any: ...
    @overload
    def __call__(self, x: ArrayLike, y: ArrayLike, /, out: _Out | None = None, *, {options}) -> Array: ...
""".format(
    options="where: ArrayLike | None = True, casting: str = ..., order: _Order = ..., dtype: DTypeLike | None = None, "
    "subok: _bool = ..., signature: Any = ..., axes: Any = ..., axis: Any = ..., keepdims: _bool = ..."
)


SUBMODULE = '''\
"""Types of minnp.numpy.{name}. Written by tests/typed/make_stub.py; do not edit."""

# ruff: noqa
# mypy: disable-error-code="override, misc"

from builtins import bool as _bool, bytes as _bytes
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex, overload

import numpy as _np
from numpy.typing import ArrayLike, DTypeLike

from minnp.numpy import Array, _Axis, _Order, _Out, _Shape
'''
LINALG = """
from numpy.linalg import LinAlgError as LinAlgError

class _EigResult(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array

class _QRResult(NamedTuple):
    Q: Array
    R: Array

class _SlogdetResult(NamedTuple):
    sign: Any
    logabsdet: Any

class _SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array

@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = ...) -> _QRResult: ...
@overload
def qr(a: ArrayLike, mode: str = ...) -> Any: ...
@overload
def svd(
    a: ArrayLike, full_matrices: _bool = ..., compute_uv: Literal[True] = ..., hermitian: _bool = ...
) -> _SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: _bool = ..., *, compute_uv: Literal[False], hermitian: _bool = ...) -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: _bool, compute_uv: Literal[False], hermitian: _bool = ...) -> Array: ...
"""
LINALG_RESULTS = {
    "Any": "det norm cond matrix_rank trace vector_norm matrix_norm vecdot matmul multi_dot",
    "_EigResult": "eig eigh",
    "_SlogdetResult": "slogdet",
    "tuple[Array, Array, Any, Array]": "lstsq",
}
RANDOM = """
from numpy.random import MT19937 as MT19937
from numpy.random import PCG64 as PCG64
from numpy.random import PCG64DXSM as PCG64DXSM
from numpy.random import SFC64 as SFC64
from numpy.random import BitGenerator as BitGenerator
from numpy.random import Philox as Philox
from numpy.random import SeedSequence as SeedSequence

def default_rng(seed: Any = ...) -> Generator: ...
"""
RANDOM_RESULTS = {
    "Array": "permutation permuted dirichlet multinomial multivariate_normal multivariate_hypergeometric",
    "None": "shuffle seed set_state",
    "_bytes": "bytes",
    "list[Generator]": "spawn",
}


def result(kinds: dict[str, str], name: str, otherwise: str) -> str:
    return next((kind for kind, names in kinds.items() if name in names.split()), otherwise)


def linalg() -> list[str]:
    lines = [LINALG]
    for name in sorted(set(numpy.linalg.__all__) - {"qr", "svd", "LinAlgError"}):
        lines += declare(name, getattr(numpy.linalg, name), result(LINALG_RESULTS, name, "Array"))
    return lines


def fft() -> list[str]:
    return [
        line for name in sorted(numpy.fft.__all__) for line in declare(name, getattr(minnp.numpy.fft, name), "Array")
    ]


def random() -> list[str]:
    lines = [RANDOM]
    for cls in (numpy.random.Generator, numpy.random.RandomState):
        lines.append(f"class {cls.__name__}(_np.random.{cls.__name__}):")
        for name in sorted(vars(cls)):
            if not name.startswith("_") and callable(getattr(cls, name)):
                lines += ["    " + line for line in draw(name, getattr(cls, name), True)]
        lines.append("")
    for name in sorted(numpy.random.__all__):
        found = getattr(numpy.random, name)
        if not isinstance(found, type) and name != "default_rng":
            lines += draw(name, found, False)
    return lines


def draw(name: str, found: Callable, method: bool) -> list[str]:
    """A distribution: an array where a size is given, by place or by name; else what its parameters make of it."""
    if name in ("rand", "randn"):
        self = "self, " if method else ""
        return [
            *("@overload", f"def {name}({self[:4]}) -> Any: ..."),
            *("@overload", f"def {name}({self}d0: SupportsIndex, /, *more: SupportsIndex) -> Array: ..."),
        ]
    parameters = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    names = [p.name for p in parameters]
    kind = result(RANDOM_RESULTS, name, "Any")
    if kind != "Any" or "size" not in names:
        return declare(name, found, kind, method)
    empty, at = inspect.Parameter.empty, names.index("size")
    placed = [p.replace(default=empty) if i <= at else p for i, p in enumerate(parameters)]
    named = [p.replace(default=empty) if i == at else p for i, p in enumerate(parameters)]
    return [
        *("@overload", f"def {name}({listing(name, placed, method, ('size', '_Shape'))}) -> Array: ..."),
        *("@overload", f"def {name}({listing(name, named, method, ('size', '_Shape'))}) -> Array: ..."),
        *("@overload", f"def {name}({listing(name, parameters, method)}) -> Any: ..."),
    ]


def stubs() -> dict[str, str]:
    """The text of each stub, by the module's name, for the installed NumPy."""
    texts = {"__init__": stub()}
    for name, lines in {"linalg": linalg(), "fft": fft(), "random": random()}.items():
        texts[name] = SUBMODULE.format(name=name) + "\n".join(lines) + "\n"
    return texts


def stub() -> str:
    """The text of the namespace's stub."""
    lines = [HEAD, *types(), NDARRAY.rstrip("\n")]
    for op in BINARY.split():
        for reflected in ("", "r"):
            lines.append(
                f"    def __{reflected}{op}__(self, other: ArrayLike, /) -> {'Any' if op == 'matmul' else 'Array'}: ..."
            )
    lines += [f"    def __{op}__(self, other: Any, /) -> Array: ..." for op in COMPARE.split()]
    lines += [
        "    " + line for name in METHODS.split() for line in declare(name, getattr(numpy.ndarray, name), "Array", True)
    ]
    lines.append(UFUNCS)
    for name in sorted(numpy.__all__):
        found = getattr(minnp.numpy if name in ("argsort", "sort") else numpy, name)  # ours takes more
        if isinstance(found, numpy.ufunc):
            kind = {(1, 1): "_Unary", (2, 1): "_Binary"}.get((found.nin, found.nout), "_np.ufunc")
            lines.append(f"{name}: {kind}")
        elif callable(found) and not isinstance(found, type):
            lines += declare(name, found, result(RESULTS, name, "Array"))
    for name in sorted(set(minnp.numpy.__all__) - set(numpy.__all__)):  # what NumPy does not have
        found = getattr(minnp.numpy, name)
        lines += declare(name, found, "Any") if callable(found) else [f"{name}: Any"]
    return "\n".join(lines) + "\n"


def types() -> list[str]:
    """Re-exports of what is NumPy's own: dtypes and other classes, constants, submodules."""
    lines = []
    for name in sorted(numpy.__all__):
        found = getattr(numpy, name)
        if name in OURS:
            lines.append(f"from . import {name} as {name}")
        elif isinstance(found, ModuleType) or (isinstance(found, type) and name != "ndarray") or not callable(found):
            lines.append(f"from numpy import {name} as {name}")
    return lines


def declare(name: str, found: Callable, result: str, method: bool = False) -> list[str]:
    """The `def` lines of a callable: NumPy's parameters, our result; two where the result has the dtype asked for."""
    try:
        parameters = list(inspect.signature(found).parameters.values())
    except ValueError:  # a builtin without a signature
        return [f"def {name}(*args: Any, **kwargs: Any) -> {result}: ..."]
    parameters = [p for p in parameters if p.name != "self"]
    if name not in TYPED.split() and not (method and name == "astype"):
        return [f"def {name}({listing(name, parameters, method)}) -> {result}: ..."]
    asked = [p.replace(default=inspect.Parameter.empty) if p.name == "dtype" else p for p in parameters]
    return [
        "@overload",
        f"def {name}({listing(name, asked, method, ('dtype', '_Typed[_T]'))}) -> ArrayOf[_T]: ...",
        "@overload",
        f"def {name}({listing(name, parameters, method)}) -> {result}: ...",
    ]


def listing(
    name: str, parameters: Iterable[inspect.Parameter], method: bool = False, asked: tuple[str, str] = ("", "")
) -> str:
    """The parameter list as it is written; `asked`: a parameter that is required, and its type.

    A default before a required parameter would be illegal: that one is then by keyword, and so is what follows it.
    """
    parameters, texts = list(parameters), ["self"] if method else []
    required = next((p for p in parameters if p.name == asked[0]), None)
    if required and any(p.default is not p.empty for p in parameters[: parameters.index(required)]):
        at = parameters.index(required)
        required = required.replace(kind=required.KEYWORD_ONLY)
        by_name = [
            p.replace(kind=p.KEYWORD_ONLY) if p.kind is p.POSITIONAL_OR_KEYWORD else p for p in parameters[at + 1 :]
        ]
        parameters[at:] = [required, *by_name]
    kinds = [p.kind for p in parameters]
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and (i == 0 or kinds[i - 1] not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)):
            texts.append("*")
        annotation = asked[1] if p is required else OTHERWISE.get((name, p.name)) or PARAMETERS.get(p.name, "Any")
        if p.default is None and annotation != "Any":
            annotation += " | None"
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty or star else " = ..."
        texts.append(f"{star}{p.name}: {annotation}{default}")
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(kinds) or kinds[i + 1] is not p.kind):
            texts.append("/")
    return ", ".join(texts)


if __name__ == "__main__":
    for module, text in stubs().items():
        (STUBS / f"{module}.pyi").write_text(text)
