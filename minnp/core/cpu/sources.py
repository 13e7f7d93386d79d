"""Sources of generated code, which tracebacks and debuggers show as long as what was made of them lives."""

from __future__ import annotations

import contextlib
import linecache
import weakref
from typing import Any

# Files whose code is gone. They leave `linecache` at the next call, not when garbage is collected: that may be while
# CPython before 3.14 looks for each of the files that it has listed, to print a traceback.
_GONE: list[str] = []


def keep_source(file: str, source: str, made: Any) -> None:
    """Let `linecache` show a source under its file's name until `made`, a function or the code of one, is gone."""
    with contextlib.suppress(IndexError):
        while True:
            linecache.cache.pop(_GONE.pop(), None)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    weakref.finalize(made, _GONE.append, file).atexit = False
