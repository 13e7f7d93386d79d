"""einops on our arrays: einops asks its own backend classes whose array a tensor is, so ours is told to it.

Traced arrays go through it as well: einops computes with reshape, transpose and reductions only.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any


def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
    """The spec of einops' module of backends, with a loader that adds ours; None for its other modules."""
    if name != "einops._backends":
        return None
    spec = importlib.machinery.PathFinder.find_spec(name, path, target)
    if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
    return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        add_backend(module)


def add_backend(module: types.ModuleType) -> None:
    """Tell einops' module of backends whose arrays ours are. einops finds a backend among the subclasses of its own."""

    class MinnpBackend(module.NumpyBackend):
        framework_name = "minnp.numpy"

        def __init__(self) -> None:
            self.np = importlib.import_module("minnp.numpy")

        def is_appropriate_type(self, tensor: Any) -> bool:
            return type(tensor) is self.np.ndarray

        def from_numpy(self, x: Any) -> Any:
            return self.np.asarray(x)

        def to_numpy(self, x: Any) -> Any:
            return x.__array__()

    module.MinnpBackend = MinnpBackend  # a class that nobody holds would be forgotten


if "einops._backends" in sys.modules:  # imported before us
    add_backend(sys.modules["einops._backends"])
