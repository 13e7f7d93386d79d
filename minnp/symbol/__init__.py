"""MXNet's symbols without MXNet: `import minnp.symbol as sym`, then sym.Variable, sym.FullyConnected, ...

Every operator of the table is a function here, made when it is first asked for: sym.Convolution, sym.broadcast_add.
"""

from typing import Any

from . import operators
from .executor import Executor
from .naming import AttrScope, NameManager, Prefix
from .operator import OPERATORS
from .saving import fromjson, load, load_json
from .symbol import FLUENT, Group, Symbol, Variable, combined, function, var

_MADE: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in OPERATORS:
        raise AttributeError(f"module 'minnp.symbol' has no attribute {name!r}")
    if name not in _MADE:
        _MADE[name] = function(name)
    return _MADE[name]


def __dir__() -> list[str]:
    return sorted({*OWN, *(n for n in OPERATORS if not n.startswith("_"))})


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


OWN = (
    *("AttrScope Executor Group NameManager Prefix Symbol Variable arange eye fromjson full hypot linspace load load_json".split()),
    *("maximum minimum ones pow power split_v2 var zeros".split()),
)
