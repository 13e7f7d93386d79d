"""Which backend's kernels a call may use: policies and the current backend.

auto            the default: a verified kernel, where the row says it is worth leaving NumPy at this size
prefer_NAME     every verified kernel of that backend, else NumPy (recorded)
only_NAME       that backend; a call it has no kernel for raises FallbackError
only_numpy      NumPy alone
only_split      auto, but what has no rule for arrays that are split over a mesh raises instead of gathering them
"""

from __future__ import annotations

import contextlib
import difflib
import functools
from contextvars import ContextVar
from typing import Any

from ... import backends
from .primitive import Primitive
from .report import show_op_stat as show_op_stat  # MinPy writes np.policy.show_op_stat()
from .state import state


class Policy:
    """A policy by name; also a context manager and a decorator: `with minnp.policy("only_numpy"): ...`.

    name   "auto", "only_numpy", "only_split", or "prefer_" and "only_" with a backend; ValueError for another

    Subclass it to decide call by call: give `__init__` the name of a policy with a backend ("prefer_torch"), and
    override `candidates`.

    >>> with minnp.policy("only_numpy") as policy:
    ...     print(np.ones(2))
    [1. 1.]
    """

    def __init__(self, name: str) -> None:
        mode, _, backend = str(name).partition("_")
        plain = ["auto", "only_numpy", "only_split"]
        if not (name in plain or (mode in ("prefer", "only") and backend in ("numpy", *backends.names()))):
            known = [*plain, *(f"{m}_{b}" for b in backends.names() for m in ("prefer", "only"))]
            meant = f"; do you mean 'prefer_{name}'?" if f"prefer_{name}" in known else ""
            raise ValueError(f"unknown policy {name!r}; known: {', '.join(known)}{meant}")
        self.name, self.only = name, mode == "only" and backend != "split"
        self.backend = backend if backend not in ("", "numpy", "split") else None
        self.plain = self.backend is None
        self.on_host = self.plain and type(self) is Policy  # calls of NumPy's functions on its memory need not ask it

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def candidates(self, row: Primitive, values: Any, params: dict, device: Any) -> list:
        """The backends to ask for a kernel, best first; none of them, or one that refuses, is NumPy.

        row      the operator: row.name is "exp", "linalg.svd", "npx.softmax", ...
        values   its arrays (shape, dtype, size) and numbers, params its other arguments
        device   where they live, or None for NumPy's memory; it must be asked for values that live on it
        """
        if self.keeps(device) or (device is not None and self.plain):
            return [device]
        if self.backend is not None:
            return [] if device is not None and device.spans else [backends.get(self.backend)]
        if self.only or row.worth is None:
            return []
        return [backends.get(name) for name in backends.installed() if row.worth(name, values, params)]

    def keeps(self, device: Any) -> bool:
        """Whether a call on buffers of this device may stay there: under `auto`, if it is the policy's backend, or
        where the device spans processes and another backend is preferred, not demanded."""
        if device is None or self is AUTO or self.name == "only_split":
            return device is not None
        return self.backend == device.name or (device.spans and not (self.only and self.backend))

    def __enter__(self) -> Policy:
        if self.backend is not None:
            backends.get(self.backend)  # fails here, with how to install it, rather than at the first call
        state.busy += 1
        state.on_host += self.on_host
        chosen.set((self, chosen.get()))
        return self

    def __exit__(self, *exc: Any) -> None:
        _, outer = chosen.get()
        chosen.set(outer)
        state.on_host -= self.on_host
        state.busy -= 1

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def under_policy(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return under_policy


AUTO = Policy("auto")
# (policy, what was in force around it): kept here, not in the policy, which several threads may be inside of
chosen: ContextVar[tuple | None] = ContextVar("minnp.policy", default=None)
state.policy = AUTO


def current() -> Policy:
    """The policy in force here: the innermost `with`, else the global one."""
    inner = chosen.get()
    return state.policy if inner is None else inner[0]


def policy(name: str | Policy) -> Policy:
    """A policy object from its name (or itself). Raises ValueError for an unknown name.

    >>> with policy("only_numpy"):
    ...     y = np.exp(np.ones(3))
    """
    return name if isinstance(name, Policy) else Policy(name)


def on_host(asked: bool) -> Any:
    """A context in which, if `asked`, NumPy's kernels compute on the host, whatever backend is preferred."""
    return AUTO if asked and not current().plain else contextlib.nullcontext()


def set_global_policy(name: str | Policy) -> None:
    """Set the policy for every thread without one of its own.

    >>> set_global_policy("auto")
    """
    new = policy(name)
    if new.backend is not None:
        backends.get(new.backend)
    state.busy += (not new.plain) - (not state.policy.plain)
    state.policy = new


def get_global_policy() -> Policy:
    """The policy of every thread without one of its own.

    >>> get_global_policy().name
    'auto'
    """
    return state.policy


def wrap_policy(name: str | Policy) -> Any:
    """Decorator: run the function under this policy (MinPy's name).

    >>> wrap_policy("only_numpy")(lambda: get_global_policy().name)()
    'auto'
    """
    return policy(name)


def set_backend(name: str) -> None:
    """Compute on a backend from now on.

    name   "numpy" alone, "auto" for the default choice, else every verified kernel of that backend ("mxnet", "torch")
           and NumPy for the rest. The environment variable MINNP_BACKEND says the same

    Raises ValueError for an unknown name, BackendMissingError (with the install line) where its library is absent.

    >>> set_backend("auto")
    """
    if name not in ("auto", "numpy", *backends.names()):
        known = ["auto", "numpy", *backends.names()]
        near = difflib.get_close_matches(str(name), known, 1)
        meant = f"; do you mean {near[0]!r}?" if near else ""
        if name in ("cpu", "cuda", "gpu"):
            meant = f"; {name} is a device: with minnp.Context({name!r}): ..."
        raise ValueError(f"unknown backend {name!r}; known: {', '.join(known)}{meant}")
    set_global_policy({"auto": "auto", "numpy": "only_numpy"}.get(name, f"prefer_{name}"))
