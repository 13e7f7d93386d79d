"""np.errstate and np.seterr: NumPy's own; where they ask to be asked of floating point errors, NumPy's kernels compute.

A library's kernels report none. The default, a warning, is not asked for: it would leave no kernel to a library.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as onp

from ... import backends
from .policy import Policy, chosen, current
from .primitive import Primitive
from .state import raises, state


class _Reporting(Policy):
    """NumPy's kernels, also for what lives on a device: the results go back there."""

    def candidates(self, row: Primitive, values: Any, params: dict, device: Any) -> list:
        return []


REPORTING = _Reporting("only_numpy")


def asked() -> bool:
    """Whether floating point errors are to be raised, called, printed or logged here."""
    return not {"ignore", "warn"}.issuperset(onp.geterr().values())


def follow() -> None:
    """Have NumPy compute from here on if floating point errors are to be raised, called, printed or logged here; the
    policy that was in force before, if they no longer are. only_torch stays: it says that nothing else may compute."""
    raises.set(asks := asked())
    state.raising = state.raising or asks
    reported = backends.loaded() and asks
    now = current()
    if reported and now is not REPORTING and (now.plain or not now.only):
        REPORTING.__enter__()
    elif now is REPORTING and not reported:
        at = chosen.get()
        while at is not None and at[0] is REPORTING:
            at = at[1]
        (state.policy if at is None else at[0]).__enter__()


def _entered(at: tuple | None) -> list[Policy]:
    return [] if at is None else [at[0], *_entered(at[1])]


class errstate(onp.errstate):
    __doc__ = onp.errstate.__doc__

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.how = how

    def __enter__(self) -> None:
        super().__enter__()
        self.outer = chosen.get()
        follow()

    def __exit__(self, *exc: Any) -> None:
        left, again = _entered(chosen.get()), _entered(self.outer)
        chosen.set(self.outer)
        state.on_host -= sum(p.on_host for p in left) - sum(p.on_host for p in again)
        state.busy -= len(left) - len(again)
        super().__exit__(*exc)
        raises.set(asked())

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def under(*args: Any, **kwargs: Any) -> Any:
            with type(self)(**self.how):
                return function(*args, **kwargs)

        return under


@functools.wraps(onp.seterr)
def seterr(*args: Any, **kwargs: Any) -> dict[str, str]:
    old = onp.seterr(*args, **kwargs)
    if current() is REPORTING:
        REPORTING.__exit__()
    follow()
    return old


seterr.__signature__ = inspect.signature(onp.seterr)
del seterr.__wrapped__  # a setting, not a public function that stands for NumPy's
errstate.__module__ = onp.errstate.__module__
