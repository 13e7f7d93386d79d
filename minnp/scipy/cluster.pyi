"""SciPy's names, which core/api/submodules.py finds."""

from typing import Any

def __getattr__(name: str) -> Any: ...
