"""Modules of other libraries that are told of our arrays when they are imported."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _Telling:
    """Loads a module, then tells it."""

    tell: Callable[[ModuleType], None]

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)  # type: ignore[misc]
        self.tell(module)


_KINDS = importlib.machinery.SourceFileLoader, importlib.machinery.ExtensionFileLoader
_LOADERS = {kind: type(kind.__name__, (_Telling, kind), {}) for kind in _KINDS}


def telling(what: Callable[[str], Callable[[ModuleType], None] | None]) -> Callable:
    """A find_spec for modules that are told something: what(name) says how. Those imported before us are told now."""

    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        tell = what(name)
        spec = None if tell is None else importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and (loader := _LOADERS.get(type(spec.loader))) is not None:
            spec.loader = loader(spec.loader.name, spec.loader.path)
            spec.loader.tell = tell
        return spec

    for name, module in list(sys.modules.items()):
        if (tell := what(name)) is not None:
            tell(module)
    return find_spec
