"""A library's submodules that have no file here, such as numpy.ma or scipy.linalg, as modules of ours.

`import minnp.numpy.ma as ma` and `from minnp.numpy.lib.recfunctions import append_fields` find NumPy's names: functions
are public functions of ours, classes NumPy's own, but those that we have.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy

from ..arrays.hooks import CLASSES
from .namespace import lazy


class Submodules:
    """Finds `minnp.X.y` wherever the installed library X has `X.y`, after Python's own finders.

    What is no module in the library, but an object of ours, is found as well: autograd has modules where SciPy has
    distributions, `import minnp.scipy.stats.norm as norm`. It has the methods of a finder and of a loader without their
    base classes: to import importlib.abc takes half as long as all of minnp.
    """

    def __init__(self, package: str, definitions: dict[str, str] | None = None) -> None:
        """definitions: the modules of the package that define a submodule's functions in rows, by its name."""
        self.package, self.definitions = package, definitions or {}
        sys.meta_path.append(self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(f"{self.package}."):
            return None
        try:
            theirs = importlib.util.find_spec(_source(fullname))
        except ModuleNotFoundError as error:  # of the library itself
            library = self.package.removeprefix("minnp.")
            if error.name != library:
                raise
            said = f"{fullname} needs {library}, which is not installed: pip install {library}"
            raise ModuleNotFoundError(said, name=library) from None
        if theirs is not None:
            return ModuleSpec(fullname, self, is_package=theirs.submodule_search_locations is not None)
        parent, _, name = fullname.rpartition(".")
        return ModuleSpec(fullname, self) if name in getattr(sys.modules[parent], "OBJECTS", ()) else None

    def create_module(self, spec: ModuleSpec) -> Any:
        parent, _, name = spec.name.rpartition(".")
        return getattr(sys.modules[parent], "OBJECTS", {}).get(name)

    def exec_module(self, module: ModuleType) -> None:
        if not isinstance(module, ModuleType):
            return
        name = module.__name__
        source = importlib.import_module(_source(name))
        if source.__name__ in self.definitions:
            importlib.import_module(f"{self.package}.{self.definitions[source.__name__]}")
        found, listed, public = lazy(name, source, name.removeprefix("minnp.").removeprefix("numpy."), {}, stacklevel=3)
        vars(module).update(__doc__=source.__doc__, __dir__=listed, __all__=public)

        def named(attribute: str) -> Any:
            value = vars(source).get(attribute)
            if isinstance(value, type) and value in CLASSES:
                return CLASSES[value]
            for namespace in (numpy, numpy.random):  # a class of ours under another of its names: `core.ndarray`
                theirs = vars(namespace).get(attribute)
                if isinstance(theirs, type) and value is theirs:
                    return getattr(importlib.import_module(f"minnp.{namespace.__name__}"), attribute)
            return found(attribute)

        vars(module)["__getattr__"] = named


def _source(name: str) -> str:
    return name.removeprefix("minnp.")
