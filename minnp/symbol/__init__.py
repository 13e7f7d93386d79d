"""MXNet's symbols without MXNet: `import minnp.symbol as sym`, then sym.Variable, sym.FullyConnected, ...

Every operator of the table is a function here, made when it is first asked for: sym.Convolution, sym.broadcast_add.
"""

from difflib import get_close_matches
from typing import Any

from . import contrib, operators
from .checkpoint import load_checkpoint, save_checkpoint
from .executor import Executor
from .graphs import from_mxnet, to_mxnet
from .model import Model, load_mxnet
from .namespaces import np, npx
from .naming import AttrScope, NameManager, Prefix
from .operator import OPERATORS
from .operators.custom import CustomOp, CustomOpProp, register
from .params import load_params, save_params
from .saving import fromjson, load, load_json
from .symbol import FLUENT, Group, Symbol, Variable, combined, function, var

_MADE: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in OPERATORS:
        near = get_close_matches(name, [n for n in OPERATORS if not n.startswith("_")], 1, 0.8)
        meant = f"; do you mean {near[0]!r}?" if near and not name.startswith("_") else ""
        raise AttributeError(f"module 'minnp.symbol' has no attribute {name!r}{meant}")
    if name not in _MADE:
        _MADE[name] = function(name)
    return _MADE[name]


class Operators:
    """Some operators under shorter names, of which those of their symbols are made: linalg.gemm2 is _linalg_gemm2."""

    shortened = True

    def __init__(self, *prefixes: str) -> None:
        self._prefixes = prefixes

    def __getattr__(self, name: str) -> Any:
        for prefix in self._prefixes:
            if prefix + name in OPERATORS:
                return function(prefix + name, called=name if self.shortened else prefix + name)
        raise AttributeError(f"minnp.symbol has no operator {self._prefixes[0]}{name}")

    def __dir__(self) -> list[str]:
        return sorted(n.removeprefix(p) for p in self._prefixes for n in OPERATORS if n.startswith(p))


numpy, numpy_extension = np, npx
linalg = Operators("_linalg_")
op = _internal = sparse = Operators("")
image = Operators("_image_")


class Random(Operators):
    """Random numbers: random.uniform(0, 1, shape=(2,)); with symbols as parameters, some for each element."""

    shortened = False

    def randn(self, *shape: int, loc: Any = 0.0, scale: Any = 1.0, **kwargs: Any) -> Symbol:
        """Normal ones of a shape: randn(2, 3)."""
        return self.normal(loc, scale, shape=shape or (1,), **kwargs)

    def __getattr__(self, name: str) -> Any:
        numbers = super().__getattr__(name)
        row = OPERATORS.get(f"_sample_{name}")
        names = list(OPERATORS[f"_random_{name}"].parameters) if f"_random_{name}" in OPERATORS else []

        def draw(*args: Any, **kwargs: Any) -> Symbol:
            kwargs |= dict(zip(names, args, strict=False))
            if row is None or not any(isinstance(v, Symbol) for v in kwargs.values()):
                return numbers(**{n: v for n, v in kwargs.items() if v is not None})
            given = [kwargs.pop(n) for n in names if n in kwargs and n not in ("shape", "ctx", "dtype")]
            return function(row.name)(*given, **{n: v for n, v in kwargs.items() if v is not None})

        return draw if names else numbers


random = Random("_random_", "_sample_", "_")


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in OPERATORS if not n.startswith("_"))})


# ------------------------------------------------------------------ functions of symbols or numbers
def _either(name: str, title: str, reversed_scalar: str, plain: Any) -> Any:
    def apply(left: Any, right: Any) -> Any:
        for a, b, scalar in ((left, right, f"_{title}Scalar"), (right, left, reversed_scalar)):
            if isinstance(a, Symbol):
                made = combined(a, b, f"_{title}", scalar)
                if made is not NotImplemented:
                    return made
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return plain(left, right)
        raise TypeError(f"{name} of {left!r} and {right!r}: expected symbols and numbers")

    apply.__name__ = name
    apply.__doc__ = f"{name} of two symbols, a symbol and a number, or two numbers."
    return apply


power = pow = _either("power", "Power", "_RPowerScalar", lambda a, b: a**b)
maximum = _either("maximum", "Maximum", "_MaximumScalar", max)
minimum = _either("minimum", "Minimum", "_MinimumScalar", min)
hypot = _either("hypot", "Hypot", "_HypotScalar", lambda a, b: (a * a + b * b) ** 0.5)


# ------------------------------------------------------------------ symbols without inputs
def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """An array of zeros."""
    return function("_zeros")(shape=shape, dtype=dtype or "float32", **kwargs)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """An array of ones."""
    return function("_ones")(shape=shape, dtype=dtype or "float32", **kwargs)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """An array of one number."""
    return function("_full")(shape=shape, value=float(val), dtype=dtype or "float32", **kwargs)


def arange(start: float, stop: Any = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           name: Any = None, dtype: Any = None) -> Symbol:  # fmt: skip
    """Numbers from start to stop, each `repeat` times; without a stop, from 0 to start."""
    options = {"start": start, "stop": stop, "step": step, "repeat": repeat, "name": name}
    return function("_arange")(**options, dtype=dtype or "float32")


def linspace(start: float, stop: float, num: int, endpoint: bool = True, name: Any = None, dtype: Any = None) -> Symbol:
    """`num` numbers from start to stop."""
    options = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "name": name}
    return function("_linspace")(**options, dtype=dtype or "float32")


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A matrix with ones on a diagonal."""
    return function("_eye")(N=N, M=M, k=k, dtype=dtype or "float32", **kwargs)


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Parts of a symbol along an axis: equal ones, if a number is given, or cut before each of the indices."""
    options = {"axis": axis, "squeeze_axis": squeeze_axis}
    if isinstance(indices_or_sections, int):
        return function("_split_v2")(ary, indices=(), sections=indices_or_sections, **options)
    return function("_split_v2")(ary, indices=(0, *indices_or_sections), **options)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **kwargs: Any) -> Symbol:
    """(counts, edges): of a number of bins between the two numbers of range, or of a symbol of their edges."""
    if isinstance(bins, Symbol):
        return function("_histogram")(a, bins, **kwargs)
    if range is None:
        raise ValueError(f"histogram of {bins!r:.60} bins wants range=: a symbol's values are not known")
    return function("_histogram")(a, bin_cnt=bins, range=range, **kwargs)


__all__ = [
    "OPERATORS", "AttrScope", "CustomOp", "CustomOpProp", "Executor", "Group", "Model", "NameManager", "Prefix",
    "Symbol", "Variable", "arange", "contrib", "eye", "from_mxnet", "fromjson", "full", "histogram", "hypot", "image",
    "linalg", "linspace", "load", "load_checkpoint", "load_json", "load_mxnet", "load_params", "maximum", "minimum",
    "np", "npx", "ones", "pow", "power", "random", "register", "save_checkpoint", "save_params", "sparse", "split_v2",
    "to_mxnet", "var", "zeros",
]  # fmt: skip
