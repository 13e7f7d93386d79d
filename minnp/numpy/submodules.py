"""NumPy's submodules that have no file here, such as `ma`, `matlib` or `lib.recfunctions`, as modules of ours.

`import minnp.numpy.ma as ma` and `from minnp.numpy.lib.recfunctions import append_fields` find NumPy's names: functions
are public functions of ours, classes NumPy's own, but those that we have.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy

from ..core.namespace import lazy

_PACKAGE = "minnp.numpy."


class Submodules(MetaPathFinder, Loader):
    """Finds `minnp.numpy.X` wherever the installed NumPy has `numpy.X`, after Python's own finders."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(_PACKAGE):
            return None
        theirs = importlib.util.find_spec(_source(fullname))
        if theirs is None:
            return None
        return ModuleSpec(fullname, self, is_package=theirs.submodule_search_locations is not None)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        source = importlib.import_module(_source(name))
        found, listed, public = lazy(name, source, name.removeprefix(_PACKAGE), {})
        vars(module).update(__doc__=source.__doc__, __dir__=listed, __all__=public)

        def named(attribute: str) -> Any:
            theirs = getattr(source, attribute, None)
            for namespace in (numpy, numpy.random):  # a class of ours under another of its names: `core.ndarray`
                if isinstance(theirs, type) and vars(namespace).get(attribute) is theirs:
                    return getattr(importlib.import_module(f"minnp.{namespace.__name__}"), attribute)
            return found(attribute)

        vars(module)["__getattr__"] = named


def _source(name: str) -> str:
    return name.removeprefix("minnp.")


sys.meta_path.append(Submodules())
