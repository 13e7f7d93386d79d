"""The C part (fastpath.cpp and team.c), if it was built for this interpreter, and what calls are counted in.

May import: nothing.
"""

from __future__ import annotations

import atexit
import importlib
import os
import types
import warnings
import zlib
from typing import TYPE_CHECKING, Any


def stale(library: types.ModuleType, folder: str) -> bool:
    """Whether the library was built from other code than the sources in the folder, which only a clone has."""
    sources = sorted(name for name in os.listdir(folder) if name.endswith((".c", ".h", ".cpp", ".hpp")))
    if not sources:
        return False
    checksum = 0
    for name in sources:
        with open(os.path.join(folder, name), "rb") as file:
            checksum = zlib.crc32(file.read(), checksum)
    return getattr(library, "SOURCE", None) != checksum


def built(name: str) -> types.ModuleType | None:
    """The extension module of this name; None if it was not built, or for another interpreter, or from other code."""
    if os.environ.get("MINNP_COMPILED", "1").lower() in ("0", "off", "false", "no"):
        return None
    try:
        library = importlib.import_module(f"minnp.core.compiled.{name}")
    except ImportError:
        return None
    if not stale(library, os.path.dirname(__file__)):
        return library
    warnings.warn(
        "minnp's C part was built from other code than the clone holds, so Python does its work: install it again",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


fastpath, team = built("_fastpath"), built("_team")
if fastpath is not None:
    atexit.register(fastpath.end)
FUNCTION = types.MethodType if fastpath is None else fastpath.Function  # what public functions are


class PythonCounter:
    """`calls`: how often something was called."""

    __slots__ = ("calls",)


Counter: Any = PythonCounter if fastpath is None else fastpath.Counter


class PythonDispatch:
    """What jit makes, as dispatch.hpp has it: a call that no entry serves goes to `general`; here all do."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.general(args, kwargs)  # type: ignore[attr-defined]

    def remember(self, structure: tuple, guards: list, paths: list) -> None:
        """Let calls whose arguments have this structure, and whose leaves meet the guards, run the first path."""

    def forget(self) -> None:
        """Let go of every entry."""


if TYPE_CHECKING:  # a class whose base is Any passes for a ufunc, of which grad and vmap know no signature
    Dispatch = PythonDispatch
else:
    Dispatch = PythonDispatch if fastpath is None else fastpath.Dispatch
