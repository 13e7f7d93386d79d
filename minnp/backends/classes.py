"""Other libraries on our arrays, where they look at an array's class before they ask for the array.

Nearly everywhere they take what NumPy's asarray takes, and call NumPy's functions, which are ours for our arrays.
The modules below, NumPy's own among them, branch on `isinstance(x, numpy.ndarray)`, which is made true of our arrays as
well (the columns of a box plot, a grid of parameters, `polyval` under NumPy's address) or is given NumPy's (a mask on a
DataFrame, `random_state=np.random`). SciPy's optimisers hand what the user's functions return to compiled code that
wants NumPy's own class: they make NumPy's arrays of it. Functions in C that take no other class are given NumPy's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, reduce, wraps
from types import ModuleType
from typing import Any

import numpy as onp

from ..core.arrays import array, hooks
from ..core.compiled import FUNCTION, quick
from ..core.rows import pytree  # unfinished, where the other library was imported before us
from .helping import telling

SPARSE = "COOTensor CSRMatrix CSCMatrix CSFTensor"
POLYNOMIALS = "polynomial chebyshev legendre laguerre hermite hermite_e"
BRANCHING = {
    *("scipy.sparse.linalg._interface", "matplotlib.cbook", "sklearn.model_selection._search"),
    *(f"numpy.polynomial.{name}" for name in POLYNOMIALS.split()),
}
# pandas stores what such a branch is given, and NumPy's own asserts compare whole what is not NumPy's: what these take
# is made NumPy's
TAKING = {
    "pandas.core.frame": "DataFrame.__init__ DataFrame.__getitem__ DataFrame.__setitem__ DataFrame.set_index "
    "DataFrame.groupby DataFrame.from_records DataFrame._align_for_op",
    "pandas.core.series": "Series.__init__ Series.__getitem__ Series.__setitem__ Series.groupby",
    "pandas.core.generic": "NDFrame.where NDFrame.mask",
    "pandas.core.indexing": "_LocationIndexer.__getitem__ _LocationIndexer.__setitem__",
    "pandas.core.algorithms": "factorize unique",
    "pandas.core.arrays.numeric": "NumericArray.__init__",
    "pandas.core.arrays.boolean": "BooleanArray.__init__",
    "pandas.core.arrays.numpy_": "NumpyExtensionArray.__init__",
    "pandas.core.arrays.categorical": "Categorical.__init__",
    "pandas.core.util.hashing": "hash_array",
    "numpy.testing": "assert_equal assert_almost_equal",
    "numpy.lib.recfunctions": "merge_arrays stack_arrays",
    **dict.fromkeys(("numpy.char", "numpy.core.defchararray", "numpy._core.defchararray"), "array asarray"),
    "networkx.convert": "to_networkx_graph",
    "sklearn.utils.validation": "check_random_state",
    "scipy._lib._util": "check_random_state",
    "scipy.linalg._matfuncs": "diag",  # of what a user's function made of a diagonal
    "torch": "from_numpy asarray",  # the latter reads any other class's buffer as float32, whatever is in it
    "torch.utils.data._utils.collate": "default_collate default_convert",
    "cv2": "*",  # all that is in C
    "h5py._hl.dataset": "Dataset.read_direct Dataset.write_direct",
    "tables.flavor": "flavor_of array_as_internal",
    "netCDF4._netCDF4": "Variable.__setitem__ Variable.__getitem__",
    "numexpr.interpreter": "NumExpr.__call__ NumExpr.run",
    "pyarrow.lib": "array Array.from_pandas Tensor.from_numpy "
    + " ".join(f"Sparse{x}.from_numpy Sparse{x}.from_dense_numpy" for x in SPARSE.split()),
    "pyarrow._compute": "Function.call",
    "polars.series.series": "Series.__init__",
    "polars.dataframe.frame": "DataFrame.__init__",
    "polars.convert.general": "from_numpy",
    "polars.functions.lit": "lit",
    "lightgbm.basic": "Dataset.__init__ Dataset.set_label Dataset.set_weight Booster.predict",
    # numba compiles for NumPy's arrays, and for functions and modules that it finds among a jitted function's globals
    "numba.core.dispatcher": "Dispatcher.__call__",
    "numba.np.ufunc.dufunc": "DUFunc.__call__",
    "numba.np.ufunc.gufunc": "GUFunc.__call__",
    "numba.stencils.stencil": "StencilFunc.__call__",
    "numba.core.typing.context": "BaseContext.resolve_value_type",
}
COMPILED = {"builtin_function_or_method", "cython_function_or_method", "method_descriptor"}
HEAP = 1 << 9  # of a class whose attributes may be set
# what these return solves for NumPy's arrays only, and is an object of C
FACTORING = dict.fromkeys(
    ("scipy.sparse.linalg", "scipy.sparse.linalg._dsolve", "scipy.sparse.linalg._dsolve.linsolve"), "splu spilu"
)


@cache
def _exchanged() -> frozenset:
    """The types of the arguments that `_theirs` does not give back as they are."""
    return frozenset((array.ndarray, dict, tuple, list, ModuleType, FUNCTION))


def _theirs(x: Any) -> Any:
    """An argument with NumPy's arrays in the place of ours, in a container too; NumPy's module or function for ours."""
    t = type(x)
    if t is array.ndarray:
        return onp.asarray(x)
    if t in pytree.CONTAINERS:
        return pytree.replaced(x, _theirs)
    if t is ModuleType and x.__name__.startswith("minnp.numpy"):
        return sys.modules[x.__name__.removeprefix("minnp.")]
    return hooks.theirs(x) if t is FUNCTION else x


def _taking(function: Callable) -> Callable:
    """The function, which is given NumPy's arrays in the place of ours."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and _exchanged().isdisjoint(map(type, args)):
            return function(*args)
        return function(*map(_theirs, args), **{k: _theirs(v) for k, v in kwargs.items()})

    return call


class _Factors:
    """SciPy's SuperLU, which is given NumPy's arrays in the place of ours."""

    def __init__(self, factors: Any) -> None:
        self._factors = factors
        self.solve = _taking(factors.solve)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._factors, name)

    def __repr__(self) -> str:
        return repr(self._factors)


def _factoring(function: Callable) -> Callable:
    if getattr(function, "gives", None) is _Factors:  # told in another of its modules
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> _Factors:
        return _Factors(function(*args, **kwargs))

    call.gives = _Factors  # type: ignore[attr-defined]
    return call


def _numpy(**changed: Any) -> ModuleType:
    """NumPy as a module sees it: `ndarray` is ours, of which NumPy's arrays are instances too."""
    seen = ModuleType("numpy")
    vars(seen).update(vars(onp), **changed)
    del seen.ndarray
    vars(seen)["__getattr__"] = lambda name: getattr(array if name == "ndarray" else onp, name)
    return seen


_BRANCHING = _numpy()
_OPTIMISING = _numpy(atleast_1d=_taking(onp.atleast_1d), atleast_2d=_taking(onp.atleast_2d))


def _told(numpy: ModuleType) -> Callable[[ModuleType], None]:
    def tell(module: ModuleType) -> None:
        if getattr(module, "np", None) is onp:
            module.np = numpy  # type: ignore[attr-defined]

    return tell


def _compiled(home: Any) -> Iterator[str]:
    """The names of a module's functions in C, of those in its modules and of its classes' methods, which can be set."""
    for name, found in list(vars(home).items()):
        if type(found).__name__ in COMPILED and not name.startswith("__"):
            yield name
        elif type(home) is ModuleType and isinstance(found, (type, ModuleType)) and not name.startswith("_"):
            its = found.__name__ if isinstance(found, ModuleType) else found.__module__
            if its.startswith(home.__name__) and getattr(found, "__flags__", HEAP) & HEAP:
                yield from (f"{name}.{x}" for x in _compiled(found) if "." not in x)


def _told_to(wrapped: Callable, names: str) -> Callable[[ModuleType], None]:
    def tell(module: ModuleType) -> None:
        for name in _compiled(module) if names == "*" else names.split():
            *holder, last = name.split(".")
            home = reduce(getattr, holder, module)
            found = vars(home).get(last)
            if found is None and type(home) is not ModuleType:
                found = getattr(home, last, None)
            if found is None:  # another version's, or what a module looks up elsewhere, perhaps with a warning
                continue
            kind = type(found) if isinstance(found, (classmethod, staticmethod)) else None
            made = wrapped(found) if kind is None else kind(wrapped(found.__func__))
            if type(home) is ModuleType or home.__flags__ & HEAP:
                setattr(home, last, made)
            elif quick is not None:
                quick.tell(home, last, made)

    return tell


def _what(name: str) -> Callable | None:
    if (names := "*" if name.startswith("skimage.") else TAKING.get(name)) is not None:
        return _told_to(_taking, names)
    if name in FACTORING:
        return _told_to(_factoring, FACTORING[name])
    if name.startswith("scipy.optimize."):
        return _told(_OPTIMISING)
    return _told(_BRANCHING) if name in BRANCHING or name.startswith("gymnasium.spaces.") else None


find_spec = telling(_what)
