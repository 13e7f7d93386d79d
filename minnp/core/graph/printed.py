"""What a function does while it is captured that no graph would do again: whether it prints, logs, warns or writes to
files, and which errors it may catch."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
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


def unwatched() -> Any:
    """Look at outputs no more. Returns what did, for sys.setprofile, if anything of ours did."""
    look = sys.getprofile()
    if getattr(look, "__module__", "") != __name__:
        return None
    sys.setprofile(None)
    return look


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Around code of ours that compiles, each call of which would take longer if outputs were looked at meanwhile. The
    garbage collector rests, too."""
    look = unwatched()
    try:
        with collector_at_rest():
            yield
    finally:
        if look is not None:
            sys.setprofile(look)


RESTING = 1 << 30  # gc's first threshold while anybody compiles: no number of objects starts a collection
_compilers: set[object] = set()
_threshold = gc.get_threshold()[0]  # what it is else


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """No garbage collection begins by itself meanwhile, in any thread. Compiling makes many objects, few of them are
    garbage, and looking through all that there are again and again is a tenth of the time of a function's first call.

    It is the threshold that changes, and it comes back when the last thread is through, unless somebody else has set
    it: whether the collector is enabled is the program's own to ask and to change at any time.
    """
    me = object()
    try:
        _compilers.add(me)
        _rest()
        yield
    finally:
        _compilers.discard(me)
        _wake()


def _rest() -> None:
    global _threshold
    if (now := gc.get_threshold()[0]) != RESTING:
        _threshold = now
        gc.set_threshold(RESTING)


def _wake() -> None:
    # no lock: a thread that begins to compile between these two lines has its collections, and nothing else is lost
    if not _compilers and gc.get_threshold()[0] == RESTING:
        gc.set_threshold(_threshold)


def _forked() -> None:
    """In the child of a process that forks, the other threads compile no more."""
    _compilers.clear()
    _wake()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _ours(frame: FrameType | None) -> bool:
    """Whether code of this package writes, or has a library do it: a warning, machine code."""
    while frame is not None and frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen")):
        if frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False
