"""What a function does while it is captured that no graph would do again: whether it prints, logs, warns or writes to
files, and which errors it may catch."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ..rows.report import PACKAGE
from .closures import LIBRARIES, OUTPUTS

LOGS = logging.Logger.handle.__code__


@contextlib.contextmanager
def outputs_seen(told: Callable[[], None]) -> Iterator[None]:
    """Call `told` at each output of the code that runs in this thread meanwhile. Where a profiler runs already, which
    would lose its place, once at the end instead."""
    if sys.getprofile() is not None:
        yield
        told()
        return

    def look(frame: FrameType, event: str, arg: Any) -> None:
        written = event == "c_call" and getattr(arg, "__name__", "") in OUTPUTS
        if (written or (event == "call" and frame.f_code is LOGS)) and not _ours(frame):
            told()

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def errors_seen(told: Callable[[BaseException], None]) -> Iterator[None]:
    """Call told(error) for each exception that reaches the user's code in this thread meanwhile, which may catch it.
    Where a debugger runs already, nothing is looked at."""
    if sys.gettrace() is not None:
        yield
        return

    def look(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception":
            told(arg[1])
        frame.f_trace_lines = False
        return None if frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen")) else look

    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Look at no output meanwhile: of code that compiles, each call of which would take longer."""
    look = sys.getprofile()
    if getattr(look, "__module__", "") != __name__:
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(look)


def _ours(frame: FrameType | None) -> bool:
    """Whether code of this package writes, or has a library do it: a warning, machine code."""
    while frame is not None and frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen")):
        if frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False
