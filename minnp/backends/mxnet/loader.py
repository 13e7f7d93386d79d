"""Import MXNet 1.9.1 under any NumPy from 1.24 to 2.x, without changing the user's NumPy.

MXNet's source says `numpy.bool`, `numpy.PZERO` and other names NumPy has since removed: a plain `import mxnet` fails.
Every import statement looks up `__import__` in its module's own builtins. So the modules of the one package `mxnet` get
builtins of their own (the finder is in minnp.backends), in which `import numpy` binds a stand-in: the real NumPy plus
the names it has lost. Nothing outside the package can see the stand-in, whichever thread imports what at the time.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import os
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

from minnp.errors import BackendMissingError

INSTALL = "pip install mxnet==1.9.1"

# Read once, when the library starts: no banner for every fused graph, and idle OpenMP threads sleep instead of
# spinning (on a busy machine a spinning pool makes small calls ten times slower).
ENVIRONMENT = {"MXNET_SUBGRAPH_VERBOSE": "0", "OMP_WAIT_POLICY": "passive"}

# The modules that turn operator parameters into text with str(): NumPy 2 prints `(np.int64(2),)`, which the C++ side
# cannot parse.
FORMATS_PARAMETERS = ("mxnet._ctypes.ndarray", "mxnet._ctypes.symbol")


def load() -> types.ModuleType:
    """The mxnet module, imported on the first call.

    Raises BackendMissingError where it is not installed, or installed and unable to start.
    """
    if "mxnet" in sys.modules:
        return sys.modules["mxnet"]
    try:
        return importlib.import_module("mxnet")
    except (ImportError, OSError) as error:  # OSError: libmxnet.so lacks a system library, or is built for another CPU
        raise BackendMissingError(
            f"the mxnet backend needs the package mxnet, which cannot be imported here ({error}); {INSTALL}"
        ) from error


def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
    """The spec of mxnet or one of its modules where Python would find it, with a loader that gives it the stand-in."""
    spec = importlib.machinery.PathFinder.find_spec(name, path, target)
    if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        spec.loader = MXNetLoader(spec.loader.name, spec.loader.path)
    return spec


class MXNetLoader(importlib.machinery.SourceFileLoader):
    """Runs a module of mxnet with builtins whose `__import__` knows the stand-in for NumPy."""

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_for_mxnet}
        if module.__name__ != "mxnet":
            super().exec_module(module)
        else:
            self.start(module)
        if module.__name__ in FORMATS_PARAMETERS:
            module.str = parameter_text

    def start(self, module: types.ModuleType) -> None:
        for variable, value in ENVIRONMENT.items():
            os.environ.setdefault(variable, value)
        for name in [name for name in sys.modules if name.startswith("mxnet.")]:
            del sys.modules[name]  # left by an import that failed before minnp was there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its source is older than the Python that compiles it
            super().exec_module(module)


def import_for_mxnet(name: str, scope=None, local=None, names=(), level: int = 0) -> types.ModuleType:
    """`__import__` inside mxnet."""
    if level == 0:
        if name == "distutils.version":  # gone since Python 3.12, deprecated before
            return VERSION if names else DISTUTILS
        if name == "numpy" or (name.startswith("numpy.") and not names):
            builtins.__import__(name)
            return numpy_with_lost_names()
    return builtins.__import__(name, scope, local, names, level)


# ------------------------------------------------------------------ stand-ins
class OldNumPy(types.ModuleType):
    """The real NumPy, with the names that mxnet still uses."""

    def __init__(self, numpy: types.ModuleType) -> None:
        super().__init__("numpy", numpy.__doc__)
        self.__dict__.update(lost_names(numpy), _numpy=numpy)
        for name in ("__path__", "__spec__", "__file__", "__version__"):
            self.__dict__[name] = getattr(numpy, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._numpy), *self.__dict__})


def lost_names(numpy: types.ModuleType) -> dict[str, Any]:
    """What mxnet 1.9.1 reads from NumPy that this NumPy may no longer have."""
    names = {
        # removed in NumPy 1.24
        "bool": numpy.bool_,
        "int": int,
        "float": float,
        "object": object,
        # removed in NumPy 2.0 and later
        "PZERO": 0.0,
        "NZERO": -0.0,
        "NINF": -numpy.inf,
        "PINF": numpy.inf,
        "NAN": numpy.nan,
        "NaN": numpy.nan,
        "Inf": numpy.inf,
        "alltrue": numpy.all,
        "sometrue": numpy.any,
        "product": numpy.prod,
        "cumproduct": numpy.cumprod,
        "round_": numpy.round,
        "row_stack": numpy.vstack,
        "msort": lambda a: numpy.sort(a, axis=0),
        "in1d": lambda a, b, *args, **kwargs: numpy.isin(numpy.ravel(a), numpy.ravel(b), *args, **kwargs),
        "trapz": getattr(numpy, "trapezoid", None) or numpy.trapz,
        "compat": types.SimpleNamespace(basestring=str),
    }
    # the financial functions, removed in 1.20: mxnet lists them, and fails only where one is called
    names.update({name: gone(name) for name in ("mirr", "npv", "pmt", "ppmt", "pv", "rate")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: value for name, value in names.items() if not hasattr(numpy, name)}


def gone(name: str) -> Any:
    def removed(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"numpy.{name} was removed from NumPy")

    removed.__name__ = name
    return removed


def numpy_with_lost_names() -> types.ModuleType:
    global _old_numpy
    if _old_numpy is None:
        _old_numpy = OldNumPy(sys.modules["numpy"])
    return _old_numpy


_old_numpy: types.ModuleType | None = None


class Version(tuple):
    """What mxnet needs of distutils' StrictVersion and LooseVersion: versions that compare."""

    def __new__(cls, text: str) -> Version:
        return super().__new__(cls, (int(part) if part.isdigit() else 0 for part in text.split(".")))


VERSION = types.ModuleType("distutils.version")
VERSION.StrictVersion = VERSION.LooseVersion = Version
DISTUTILS = types.ModuleType("distutils")
DISTUTILS.version = VERSION


def parameter_text(value: Any) -> str:
    """str(value), with NumPy's scalars written as Python's, inside sequences too."""
    return str(plain(value)) if isinstance(value, (tuple, list)) else str(value)


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(plain(item) for item in value)
    return value.item() if isinstance(value, sys.modules["numpy"].number) else value
