"""The C part (_quick.c and _team.c), if it was built for this interpreter, and what calls are counted in."""

from __future__ import annotations

import importlib
import os
import types
import warnings
import zlib
from typing import Any


def stale(library: types.ModuleType, source: str) -> bool:
    """Whether the library was built from other code than the source, which a clone keeps beside it."""
    try:
        with open(source, "rb") as file:
            return getattr(library, "SOURCE", None) != zlib.crc32(file.read())
    except FileNotFoundError:
        return False


def built(name: str) -> types.ModuleType | None:
    """The extension module of this name; None if it was not built, or for another interpreter, or from other code."""
    if os.environ.get("MINNP_COMPILED", "1").lower() in ("0", "off", "false", "no"):
        return None
    try:
        library = importlib.import_module(f"minnp.core.{name}")
    except ImportError:
        return None
    if not stale(library, os.path.join(os.path.dirname(__file__), f"{name}.c")):
        return library
    warnings.warn(
        "minnp's C part was built from other code than the clone holds, so Python does its work: install it again",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


quick, team = built("_quick"), built("_team")


class PythonCounter:
    """`calls`: how often something was called."""

    __slots__ = ("calls",)


Counter: Any = PythonCounter if quick is None else quick.Counter
