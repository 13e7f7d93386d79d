"""Backends: sets of kernels, and on a GPU devices. Looked up by name, imported when first asked for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors


class Backend:
    """What core asks of a backend.

    name          as in policies: "mxnet", "torch"
    shares_host   its kernels take and return NumPy arrays (a set of kernels); otherwise it is a device, whose kernels
                  take and return its own buffers
    refuses       its kernels refuse what they cannot take, so `supports` need not be asked before every call
    device        ("cpu" or "gpu", number): where the memory of a device is
    spans         its arrays lie in several processes: no other backend has the whole of one
    """

    name = ""
    shares_host = True
    refuses = False
    device = ("cpu", 0)
    spans = False
    slots: dict
    makers: dict  # by NumPy's name, what makes its array out of no arrays here, for NumPy's arguments; or raises

    def __new__(cls, *args: Any, **kwargs: Any) -> Backend:
        self = super().__new__(cls)
        self.makers = {}
        self.slots = {}  # row -> what core.rows.on_device keeps for it: its kernel, how often it ran, ...
        return self

    def kernel(self, row: Any) -> Callable | None:
        """The verified kernel for a row, kernel(*data, **params), or None.

        A kernel may offer, as attributes, what spares a device some of its steps:
        plan        plan(*data), the function it would run for operands of these dtypes (and Python's types of numbers)
        short       the same, for the fast path: calls in which `axis` is a number or a tuple of some, or not given
        prepared    a dict where those functions are kept
        exact       whether the dtypes alone decide, also where they differ
        basic       for getitem, a function (data, index) where the index is made of integers, slices that step
                    forwards, None and ...; for other views, a function (data, *numbers); for those that join a list of
                    arrays, which `short` gives where they are alike, a function (list, axis)
        shows       for views, shows(data): whether it shows memory of other data; or True
        ordered     True where the kernel itself gives its results NumPy's memory order, and what it offers does so only
                    for operands in C order
        """
        raise NotImplementedError

    def whole(self, name: str) -> Callable | None:
        """What does the work of NumPy's function of this name with the device's library alone: f(*data and numbers), or
        lists of them. It raises for anything but the usual call, and shares no memory with its arguments; of a function
        that writes to the first of them it gives what that is then."""
        return None

    def supports(self, row: Any, values: Any, params: dict) -> str:
        """Empty if the kernel can take these arguments, else the reason in words."""
        return ""

    def compile(self, graph: Any, constants: dict, compiler: str = "auto") -> Callable | None:
        """A captured graph as a function of values that live here, or None: core's own executor runs it. compiler: as
        jit was told; where it is this backend's name, compiling may take seconds."""
        return None

    def program(self, symbol: Any) -> Any:
        """A symbol of this backend's library as a program of arrays (see minnp.core.graph.embedding)."""
        raise NotImplementedError

    def device_at(self, device_type: str, device_id: int) -> tuple[Backend | None, str]:
        """(a backend whose buffers live on that device, ""), or (None, why there is none)."""
        return None, f"it has no memory on {device_type}({device_id})"

    def context_of(self, data: Any) -> Any:
        """The context in which a buffer with this data lives, where `device` does not say it all; else None."""
        return None

    def adopted(self, data: Any) -> Any:
        """What the data of a buffer elsewhere is here, where it need not pass the host; else None."""
        return None

    def lent(self, data: Any) -> bool:
        """Whether somebody holds the data's memory and may write to it: then no copy of it is kept."""
        return False

    def is_view(self, row: Any, source: Any, result: Any, params: dict) -> bool | None:
        """Whether NumPy's result of a view row would be a view of its argument, given this device's own two.

        None: they do not tell, ask NumPy.
        """
        return None

    def order(self, data: Any) -> Sequence[int] | None:
        """The axes of a buffer in the order in which its memory has them, outermost first; None: C order."""
        return None

    def holders(self, data: Any) -> int:
        """How many buffers' data, this one's own included, lie in its memory: where it is alone, a write may go there.
        0: nobody knows. `views_refer`: whether data that lies in other data's memory counts as a reference to that."""
        return 0

    views_refer = False

    def creates(self) -> list[str]:
        """The names of the functions that `create` makes arrays for."""
        return sorted(self.makers)

    def composed(self) -> list[str]:
        """The functions, and methods ("ndarray.dot"), that were found to run wholly on this backend's kernels."""
        return []

    def create(self, name: str, args: tuple, kwargs: dict) -> Any:
        """The buffer NumPy's function of this name would make out of no arrays, made at this device; None: not here."""
        make = self.makers.get(name)
        try:
            return None if make is None else make(*args, **kwargs)
        except (
            errors.BackendUnsupportedError,
            TypeError,
            RuntimeError,
        ):  # what NumPy alone knows how to take or refuse
            return None

    def generator(self) -> Any:
        """The stream of the draws made here, with get_state and set_state, or None."""
        return None

    def seed(self, seed: Any) -> None:
        """Start the stream of random numbers drawn at this device anew."""

    def adam(self, data: Sequence[Any], numbers: Sequence[float]) -> bool:
        """Adam's step on the data of (gradient, weight, mean, variance), the last three in place, in one call.

        numbers   (beta1, beta2, learning rate, epsilon), corrections of bias included; False: there is none here
        """
        return False

    def synchronize(self) -> None:
        """Wait until every kernel has finished."""

    def to_host(self, data: Any) -> Any:
        """A NumPy array of a buffer's elements; the caller will not write to it."""
        raise NotImplementedError

    def number(self, data: Any) -> Any:
        """The only element of a buffer as Python's number."""
        return self.to_host(data).item()

    def exported(self, data: Any) -> Any:
        """A buffer's elements in memory of their own, as an object that DLPack takes: values are immutable."""
        return self.to_host(data).copy()

    def from_host(self, array: Any) -> Any:
        """A buffer with a NumPy array's elements."""
        raise NotImplementedError

    def meta(self, data: Any) -> tuple[tuple[int, ...], Any]:
        """(shape, NumPy dtype) of a buffer."""
        raise NotImplementedError

    def shares(self, a: Any, b: Any) -> bool:
        """Whether two buffers show the same memory."""
        return a is b

    def strides(self, data: Any) -> Any:
        """The steps between a buffer's elements in memory, counted in elements; None: all buffers lie in C order."""
        return None


# name -> (module, class, library to look for, how to install it), in the order `auto` prefers them
_REGISTRY = {
    "mxnet": ("minnp.backends.mxnet", "MXNetBackend", "mxnet", "pip install mxnet==1.9.1"),
    "torch": ("minnp.backends.torch", "TorchBackend", "torch", "pip install torch"),
}
_LOADED: dict[str, Any] = {}
_INSTALLED: list[str] | None = None
SEED: Any = None  # what np.random.seed was last given: devices that are made later start from it


def seed(value: Any) -> None:
    """Seed the random numbers drawn on every device."""
    global SEED
    SEED = value
    for backend in _LOADED.values():
        backend.seed(value)


def names() -> tuple[str, ...]:
    return tuple(_REGISTRY)


def installed() -> list[str]:
    """Names of the backends whose library can be imported (looked up once, nothing is imported)."""
    global _INSTALLED
    if _INSTALLED is None:
        _INSTALLED = [n for n, (_, _, library, _) in _REGISTRY.items() if importlib.util.find_spec(library)]
    return _INSTALLED


def hide(name: str) -> None:
    """Do as if a library that no backend was made of yet were not installed: for measurements and tests."""
    installed().remove(name)


def loaded() -> bool:
    """Whether a backend was made: before that no library computes anything."""
    return bool(_LOADED)


def get(name: str) -> Backend:
    """The backend of this name, imported on first use.

    Raises ValueError for an unknown name, BackendMissingError (with the install line) where its library is absent.
    """
    if name in _LOADED:
        return _LOADED[name]
    if name not in _REGISTRY:
        raise ValueError(f"unknown backend {name!r}; known: numpy, {', '.join(_REGISTRY)}")
    module, cls, library, how = _REGISTRY[name]
    if name not in installed():
        raise errors.BackendMissingError(f"the {name} backend needs {library}, which is not installed: {how}")
    _LOADED[name] = backend = getattr(importlib.import_module(module), cls)()
    return backend


def of_library(thing: Any) -> Backend:
    """The backend of the library that a symbol comes from. Raises TypeError where it is of none."""
    origins = [getattr(thing, "__module__", None) or "", *(base.__module__ for base in type(thing).__mro__)]
    libraries = {origin.partition(".")[0] for origin in origins}
    for name, (_, _, known, _) in _REGISTRY.items():
        if known in libraries:
            return get(name)
    raise TypeError(
        f"expected a symbol of one of {', '.join(_REGISTRY)}, got a {type(thing).__name__}: {thing!r:.60}; "
        "a function of torch's tensors takes library='torch', and one of arrays needs no Function"
    )


class _MXNetFinder:
    """The entry of sys.meta_path that lets a program import MXNet after minnp: MXNet's source is older than any NumPy
    it would meet today (loader.py). It knows no other library."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name.partition(".")[0] != "mxnet":
            return None
        return importlib.import_module("minnp.backends.mxnet.loader").find_spec(name, path, target)


sys.meta_path.insert(0, _MXNetFinder)
