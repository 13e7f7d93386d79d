"""The C part (_quick.c), if it was built for this interpreter, and what calls are counted in: a number of C's there."""

from __future__ import annotations

import contextlib
import os
import types
import warnings
import zlib
from typing import Any

quick: types.ModuleType | None = None
if os.environ.get("MINNP_COMPILED", "1").lower() not in ("0", "off", "false", "no"):
    with contextlib.suppress(ImportError):  # not built, or for another interpreter
        from . import _quick as quick


def stale(library: types.ModuleType, source: str) -> bool:
    """Whether the library was built from other code than the source, which a clone keeps beside it."""
    try:
        with open(source, "rb") as file:
            return getattr(library, "SOURCE", None) != zlib.crc32(file.read())
    except FileNotFoundError:
        return False


if quick is not None and stale(quick, os.path.join(os.path.dirname(__file__), "_quick.c")):
    warnings.warn(
        "minnp's C part was built from other code than the clone holds, so Python does its work: install it again",
        RuntimeWarning,
        stacklevel=2,
    )
    quick = None


class PythonCounter:
    """`calls`: how often something was called."""

    __slots__ = ("calls",)


Counter: Any = PythonCounter if quick is None else quick.Counter
