"""What every fast path looks at, and what is per thread and context."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any

# Whether Python's bytecode and reference counts are those that jit was written for. Where they are not, it takes all
# names in a function's code for those it reads, and every array for one that somebody holds.
CODE_IS_KNOWN = sys.version_info < (3, 16)


class State:
    """`busy`: how many reasons there are, in any thread, to leave the fast path (a capture, a policy other than the
    default, an array written under a live trace). `written`: how many of them are only such arrays, whose views must
    look at them, and which do not matter to a value or to any other array. `on_host`: these, and policies of NumPy
    alone, which do not matter to NumPy's functions on NumPy's memory. `raising`: whether a context ever wanted
    floating-point errors raised, or itself told of them; whether this one does, `raises` says. `tapes`: the live tapes,
    which a write must ask first. `variables`: what records expressions of Variables, once there is one. `policy`,
    `device`: the policy, and the device where new arrays live, of threads without their own."""

    __slots__ = ("busy", "device", "on_host", "policy", "raising", "tapes", "variables", "written")

    def __init__(self) -> None:
        self.device: Any = None
        self.variables: Any = None
        self.busy = self.written = self.on_host = 0
        self.raising = False
        self.tapes: dict[int, Any] = {}


state = State()

# The innermost capture of this context: it sees every call, traced arguments or not.
capture: ContextVar[Any] = ContextVar("minnp.capture", default=None)
# Whether floating-point errors are to be raised, called, printed or logged here: np.errstate and np.seterr say so.
raises: ContextVar[bool] = ContextVar("minnp.raises", default=False)
# The share of a batch that this process computes on, which has others on other processes (distributed.share).
share: ContextVar[Any] = ContextVar("minnp.share", default=None)


def watched() -> bool:
    """Whether a capture sees every call of this context."""
    return bool(state.busy) and capture.get() is not None


def recording() -> Any:
    """The symbolic trace that watches this context, if one does."""
    watching = capture.get() if state.busy else None
    return watching if watching is not None and watching.symbolic else None
