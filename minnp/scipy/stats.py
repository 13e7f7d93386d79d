"""scipy.stats on our arrays: distributions and summaries of samples with gradients, all else with SciPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from scipy import stats as _scipy
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        f"{__name__} needs scipy, which is not installed: pip install scipy", name="scipy"
    ) from _error

from ..core.api.namespace import lazy as _lazy
from ..core.api.public import function as _function
from . import counts as _counts  # noqa: F401  (definitions)
from . import multivariate as _multivariate  # noqa: F401
from . import summaries as _summaries  # noqa: F401
from . import univariate as _univariate  # noqa: F401


class Distribution:
    """One of scipy.stats' distributions; its methods take our arrays. Calling it freezes parameters, as in SciPy."""

    def __init__(self, name: str) -> None:
        self._name, self._scipy = name, getattr(_scipy, name)
        self.__doc__ = self._scipy.__doc__

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._scipy, name)
        if callable(value) and not name.startswith("_"):
            value = _function(f"scipy.stats.{self._name}.{name}", value)
        self.__dict__[name] = value
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        return Frozen(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<minnp.scipy.stats.{self._name}>"


class Frozen:
    """A distribution with its parameters."""

    def __init__(self, distribution: Distribution, args: tuple, kwargs: dict) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwargs

    def __getattr__(self, name: str) -> Callable:
        method = getattr(self.dist, name)
        if name == "rvs":
            return lambda size=1, random_state=None: method(
                *self.args, **self.kwds, size=size, random_state=random_state
            )
        # what a method asks for besides the parameters comes before them: x, q, an order, a confidence
        return lambda *args, **kwargs: method(*args, *self.args, **self.kwds, **kwargs)


_KINDS = (_scipy.rv_continuous, _scipy.rv_discrete, type(_scipy.dirichlet).__bases__[0])
OBJECTS = {name: Distribution(name) for name, x in vars(_scipy).items() if isinstance(x, _KINDS)}
__getattr__, __dir__, __all__ = _lazy(__name__, _scipy, "scipy.stats", dict(OBJECTS))
__path__: list[str] = []  # its objects may be imported as modules: core/api/submodules.py
