"""numpy.random on our arrays: NumPy's own streams, bit for bit, with our arrays as results.

Gradients flow through what a draw does to its arguments: the parameters of location-scale families (normal, uniform,
laplace, ...), and the elements that choice, permutation and shuffle select.
"""

from __future__ import annotations

import builtins as _builtins
import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as _onp

from ..core.api import install
from ..core.api.fallback import fallback
from ..core.api.functions import entry, invoke
from ..core.api.namespace import lazy as _lazy
from ..core.api.public import function as _function
from ..core.arrays import devices
from ..core.arrays.array import ARRAY_TYPES, ARRAYS, concretize, ends_capture, read, wrap
from ..core.arrays.writing import write
from ..core.rows.dispatch import DEFINITIONS, knows
from ..core.rows.primitive import Meta
from ..core.rows.state import capture, watched
from ..core.rows.value import Tracer, concrete
from ..core.transforms.trace import Constant
from .arguments import as_array, plain

_SETTINGS = ("get_state", "set_state", "seed", "bytes", "spawn")  # no arrays in, none out

# Families whose draw is loc + scale * (the draw at 0, 1), and those that are scale * (the draw at 1).
_LOCATED = ("normal", "laplace", "logistic", "gumbel")
_SCALED = ("exponential", "rayleigh")
_LEGACY = _onp.random.RandomState


# ------------------------------------------------------------------ definitions, where an argument is traced
def _shape(size: Any, *parameters: Any) -> Any:
    return size if size is not None else _onp.broadcast_shapes(*map(_onp.shape, parameters))


def _whole(value: Any) -> Any:
    """A value that Python may ask about: under vmap, that of all examples."""
    whole = at = value
    while type(at) is Tracer:
        whole, at = (at.value if at.trace.batched else whole), at.value
    return whole


def _refused(base: type, name: str, width: Any, *parameters: Any) -> None:
    """Raise what NumPy raises where the width of a distribution is negative or infinite: a draw at 0 and 1 does not see
    that."""
    width, *parameters = [_whole(read(p)) if type(p) in ARRAY_TYPES else p for p in (width, *parameters)]
    if isinstance(concrete(width), Meta):  # of which no value is known
        return
    width = wrap(width)
    if (_onp.signbit(width) | ~_onp.isfinite(width)).any():
        stream = base(0) if base is _LEGACY else base(_onp.random.PCG64(0))
        getattr(stream, name)(*[_onp.asarray(concretize(p, Constant)) for p in parameters])


def _numpys(*parameters: Any) -> bool:
    """Whether NumPy draws with these parameters itself: numbers that stay what they are, of which it gives a number of
    Python's, or complex ones, of which it warns, or which it refuses."""
    if all(type(p) in (int, float) for p in parameters):
        return True
    return any(isinstance(p, complex) or getattr(getattr(p, "dtype", None), "kind", "") == "c" for p in parameters)


def _population(x: Any) -> Any:
    """What NumPy draws from: the items of a sequence, or a number, which stands for those below it."""
    if isinstance(x, (list, tuple)):
        return x
    return list(x) if isinstance(x, Sequence) and not isinstance(x, (str, _builtins.bytes)) else int(x)


def _definitions(draw: Callable, base: type) -> dict[str, Callable]:
    """The definitions over one source of draws: draw(name, ...) is NumPy's own method or function of that name; `base`
    is NumPy's class of such streams."""

    def located(name: str) -> Callable:
        def definition(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
            if _numpys(loc, scale):
                return draw(name, loc, scale, size)
            _refused(base, name, scale, loc, scale)
            return loc + scale * draw(name, 0.0, 1.0, _shape(size, loc, scale))

        return definition

    def scaled(name: str) -> Callable:
        def definition(scale: Any = 1.0, size: Any = None) -> Any:
            if _numpys(scale):
                return draw(name, scale, size)
            _refused(base, name, scale, scale)
            return scale * draw(name, 1.0, _shape(size, scale))

        return definition

    def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        low, high = (as_array(v) if isinstance(v, (list, tuple)) else v for v in (low, high))
        if _numpys(low, high):
            return draw("uniform", low, high, size)
        _refused(base, "uniform", high - low, low, high)
        return low + (high - low) * draw("uniform", 0.0, 1.0, _shape(size, low, high))

    def choice(a: Any, size: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(a, ARRAYS) or a.ndim == 0:
            return draw("choice", _population(a), size, *args, **kwargs)
        if a.ndim > 1 and base is _LEGACY:
            raise ValueError("a must be 1-dimensional")
        axis = kwargs.pop("axis", 0)
        return a.take(draw("choice", a.shape[axis], size, *args, **kwargs), axis)

    def permutation(x: Any, axis: int = 0) -> Any:
        if not isinstance(x, ARRAYS) or x.ndim == 0:
            return draw("permutation", _population(x))
        return x.take(draw("permutation", x.shape[axis]), axis)

    def shuffle(x: Any, axis: int = 0) -> None:
        write(x, ..., read(permutation(x, axis)))

    families = {name: located(name) for name in _LOCATED} | {name: scaled(name) for name in _SCALED}
    return {**families, "uniform": uniform, "choice": choice, "permutation": permutation, "shuffle": shuffle}


def _drawn(name: str, host: Callable, args: tuple, kwargs: dict) -> Any:
    """A draw by NumPy itself, or where new arrays live; a capture records it, for every call draws anew."""
    if watched():
        return wrap(fallback(entry(f"random.{name}", host), list(args), kwargs))
    device = devices.default_device()
    if device is None:
        return host(*args, **kwargs)
    return devices.made(device, f"random.{name}", args, kwargs, lambda: wrap(host(*args, **kwargs)))


for _name, _definition in _definitions(
    lambda name, *args, **kwargs: _drawn(name, getattr(_onp.random, name), args, kwargs), _LEGACY
).items():
    DEFINITIONS[getattr(_onp.random, _name)] = _definition
knows(_onp.random.shuffle, writes=(0,))


# ------------------------------------------------------------------ the two classes of generators
# Methods that NumPy says with another method of `self`, which here is ours and gives our arrays.
_BY_ANOTHER: dict[str, Callable] = {
    "rand": lambda self, *shape: _LEGACY.random_sample(self, shape or None),
    "randn": lambda self, *shape: _LEGACY.standard_normal(self, shape or None),
    "random": lambda self, size=None: _LEGACY.random_sample(self, size),
}


class _Normals(_LEGACY):
    """NumPy's RandomState on another's bits, and on its normal numbers: of a pair one may be left."""

    def standard_normal(self, size: Any = None) -> Any:
        return _LEGACY.standard_normal(self.of, size)


def _twin(of: Any) -> Any:
    """A generator that draws what `of` would, with NumPy's own methods."""
    if isinstance(of, _LEGACY):
        of._twin = _Normals(of._bit_generator)
        of._twin.of = of
    else:
        of._twin = _onp.random.Generator(of.bit_generator)
    return of._twin


@functools.cache
def _host(base: type, name: str) -> Callable:
    """NumPy's method, which gives NumPy's arrays whatever methods of ours it would meet on the way."""
    host = getattr(base, name)
    if name in ("choice", "permutation", "multivariate_normal"):  # they call other methods of `self`

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return host(self._twin or _twin(self), *args, **kwargs)

    elif base is _LEGACY and name in _BY_ANOTHER:
        method = _BY_ANOTHER[name]
    else:
        return host
    method.__name__, method.__doc__ = name, host.__doc__
    return method


def _method(base: type, name: str) -> Callable:
    """A method of NumPy's generator class whose arrays are ours."""
    host = _host(base, name)
    made = entry(f"random.{base.__name__}.{name}", host, (1,) if name == "shuffle" else ())

    def definition(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not watched() and not any(type(a) in ARRAY_TYPES and a._host is None for a in (*args, *kwargs.values())):
            return host(self, *map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        draw = lambda n, *a, **k: _drawn(base.__name__ + "." + n, _host(base, n), (self, *a), k)
        return _definitions(draw, base)[name](*args, **kwargs)

    if name in _definitions(lambda *args: None, base):
        made.definition = definition

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "shuffle" and args and isinstance(args[0], list):
            return host(self, *args, **kwargs)  # the caller's own list, whose elements change places
        return invoke(made, (self, *args), kwargs)

    method.__name__, method.__doc__ = name, host.__doc__
    method.__qualname__ = f"{base.__name__}.{name}"
    method.__wrapped__ = getattr(base, name)  # type: ignore[attr-defined]  # whose signature is shown
    return install.drawn(method, made)


def _recorded(made: Any, function: Callable, *args: Any, **kwargs: Any) -> Any:
    """A random stream; a capture records that function(*args, **kwargs) made it."""
    if watched():
        capture.get().made(made, function, args, kwargs)
    return made


def _methods(base: type) -> dict[str, Callable]:
    names = (n for n in dir(base) if not n.startswith("_") and n not in _SETTINGS)
    return {n: _method(base, n) for n in names if callable(getattr(base, n))}


class _Stream(type):
    """One of NumPy's classes, as ours: what NumPy made is an instance too."""

    def __instancecheck__(cls, x: Any) -> bool:
        base = cls.__mro__[1]
        return type.__instancecheck__(cls, x) or (base.__module__.startswith("numpy.") and isinstance(x, base))


class Generator(_onp.random.Generator, metaclass=_Stream):
    """numpy.random.Generator whose draws are minnp arrays."""

    locals().update(_methods(_onp.random.Generator))
    _twin = None

    def __init__(self, bit_generator: Any) -> None:
        super().__init__(bit_generator)
        self._twin = None
        _recorded(self, Generator, bit_generator)

    def __reduce__(self) -> tuple:
        ends_capture("a stream of random numbers is copied")
        return Generator, (self.bit_generator,)


class RandomState(_onp.random.RandomState, metaclass=_Stream):
    """numpy.random.RandomState whose draws are minnp arrays."""

    locals().update(_methods(_onp.random.RandomState))
    _twin = None

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed)
        self._twin = None
        _recorded(self, RandomState, seed)

    def seed(self, *args: Any, **kwargs: Any) -> None:
        ends_capture("a RandomState is seeded")
        super().seed(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})

    seed.__doc__ = _onp.random.RandomState.seed.__doc__

    def __reduce__(self) -> tuple:
        ends_capture("a stream of random numbers is copied")
        return _restored, (self.get_state(legacy=False),)


def _restored(state: dict) -> RandomState:
    new = RandomState()
    new.set_state(state)
    return new


def _seeded(base: type) -> type:
    """NumPy's class of bit generators or of seeds, whose seed may be one of our arrays."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self, *map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        _recorded(self, type(self), *args, **kwargs)

    with contextlib.suppress(ValueError):  # NumPy 1.26 shows none
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        shown = inspect.signature(base)
        __init__.__signature__ = shown.replace(parameters=[own, *shown.parameters.values()])  # type: ignore[attr-defined]
    members = {"__init__": __init__, "__doc__": base.__doc__, "__module__": "minnp.numpy.random", "__slots__": ()}
    return _Stream(base.__name__, (base,), members)


def default_rng(seed: Any = None) -> Generator:
    """A Generator with NumPy's stream for this seed; a Generator of ours is returned as it is."""
    if issubclass(type(seed), Generator):
        return seed
    made = Generator.__new__(Generator)
    _onp.random.Generator.__init__(made, _onp.random.default_rng(plain(seed)).bit_generator)
    return _recorded(made, default_rng, seed)


def seed(seed: Any = None) -> None:
    """numpy.random.seed; random arrays made on a device start anew too."""
    seed = seed.asnumpy() if isinstance(seed, ARRAYS) else seed
    _drawn("seed", _seed_all, (seed,), {})


def _seed_all(seed: Any) -> None:
    _onp.random.seed(seed)
    devices.seed(seed)


def bytes(length: int) -> _builtins.bytes:
    """numpy.random.bytes."""
    ends_capture("np.random.bytes draws what is no array")
    return _onp.random.bytes(length)


_shuffle_array = _function("random.shuffle", _onp.random.shuffle)


def shuffle(x: Any) -> None:
    """numpy.random.shuffle; of a list the elements themselves change places, so it is NumPy that must see the list."""
    return _onp.random.shuffle(x) if isinstance(x, list) else _shuffle_array(x)


_EXTRA: dict[str, Any] = {
    "bytes": bytes,
    "seed": seed,
    "shuffle": shuffle,
    "Generator": Generator,
    "RandomState": RandomState,
    "default_rng": default_rng,
}
for _name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence"):
    _EXTRA[_name] = _seeded(getattr(_onp.random, _name))
for _name in _onp.random.__all__:
    _x = getattr(_onp.random, _name)
    if _name not in _EXTRA and callable(_x) and not isinstance(_x, type):
        _EXTRA[_name] = _x if _name in _SETTINGS else _function(f"random.{_name}", _x)
__getattr__, __dir__, __all__ = _lazy(__name__, _onp.random, "random", _EXTRA)
__path__: list[str] = []  # it has submodules: core/api/submodules.py
