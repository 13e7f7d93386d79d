"""Sources of generated code, which tracebacks and debuggers show as long as what was made of them lives."""

from __future__ import annotations

import linecache
import weakref
from typing import Any


def keep_source(file: str, source: str, made: Any) -> None:
    """Let `linecache` show a source under its file's name until `made`, a function or the code of one, is gone."""
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    weakref.finalize(made, linecache.cache.pop, file, None).atexit = False
