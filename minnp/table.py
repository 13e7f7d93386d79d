"""The table of functions: what every public name is made of; for `python -m minnp table`, the docs and the tests."""

from __future__ import annotations

import importlib.util
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as onp

from . import backends, npx
from . import numpy as np
from .core.rows.dispatch import DEFINITIONS
from .core.rows.primitive import CONSTANT, TABLE, Primitive
from .core.rows.value import BINARY, COMPARISON, UNARY
from .numpy.undifferentiated import why_not, why_not_through_parts


class Line(NamedTuple):
    """One public name.

    name      as users write it after np.: "exp", "linalg.svd"; "npx.conv" for what NumPy lacks
    made      "row" (an operator of its own), "composition" (of other functions), "fallback" (NumPy alone), or,
              if it is no function of arrays, "numpy's own" (a setting, say), "class", "module", "value"
    gradient  "yes", "arguments 0, 2", "constant" (no gradient flows), "through its parts", or "no: raises"; the
              last two words with a reason where the function is no row
    kernels   for each backend, whether it has a verified kernel for the row
    shape     whether the shape of the result is known without running it
    flops     whether floating point operations are counted
    """

    name: str
    made: str
    gradient: str = ""
    kernels: dict[str, bool] | None = None
    shape: bool = False
    flops: bool = False


def table(kernels: bool = False, scipy: bool = False) -> list[Line]:
    """A line for every public name of minnp.numpy, its submodules, and minnp.npx, in alphabetical order.

    kernels   also ask every installed backend for its verified kernels (imports them)
    scipy     also what minnp.scipy differentiates, where SciPy is installed
    """
    loaded = [backends.get(name) for name in backends.installed()] if kernels else []
    lines = {name: _line(name, x, loaded) for name, x in _walk(np, "")}
    lines |= {name: _line(name, x, loaded) for name, x in _walk(npx, "npx.")}
    if scipy and importlib.util.find_spec("scipy") is not None:
        lines |= {name: _line(name, x, loaded) for name, x in _of_scipy()}
    return [lines[name] for name in sorted(lines)]


def _of_scipy() -> Iterator[tuple[str, Any]]:
    """SciPy's functions and the methods of its distributions that are expressed in rows, with gradients."""
    from .scipy import DEFINITIONS as MODULES
    from .scipy import special, stats

    for path in MODULES:
        module = importlib.import_module(f"minnp.{path}")
        for name in module.__all__:
            x = getattr(module, name)
            if getattr(x, "__wrapped__", None) in DEFINITIONS:
                yield f"{path}.{name}", x

    distributions = {f"stats.{n}.": x for n in stats.__all__ if isinstance(x := getattr(stats, n), stats.Distribution)}
    for prefix, holder in [("special.", special), ("stats.", stats), *distributions.items()]:
        for name in getattr(holder, "__all__", METHODS):
            x = getattr(holder, name, None)
            if getattr(x, "__wrapped__", None) in DEFINITIONS:
                yield f"scipy.{prefix}{name}", x


METHODS = ("pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "median", "interval", "mean",
           "var", "std", "entropy")  # fmt: skip


def _walk(module: types.ModuleType, prefix: str) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None) or [n for n in vars(module) if callable(getattr(module, n))]
    for name in (n for n in names if not n.startswith("_")):
        with warnings.catch_warnings():  # a name that NumPy is about to remove has a line, too
            warnings.simplefilter("ignore", DeprecationWarning)
            x = getattr(module, name)
        yield prefix + name, x
        # those with a file are ours; others are made of NumPy's (core/api/submodules.py)
        if isinstance(x, types.ModuleType) and x.__name__ == f"{module.__name__}.{name}" and "__file__" in vars(x):
            yield from _walk(x, f"{prefix}{name}.")


def _line(name: str, x: Any, loaded: list) -> Line:
    if isinstance(x, types.ModuleType):
        return Line(name, "module")
    if isinstance(x, type):
        return Line(name, "class")
    if not callable(x):
        return Line(name, "value")
    row, made = made_of(name, x)
    if row is None:
        words = {
            "composition": why_not_through_parts(name) or "through its parts",
            "fallback": why_not(name) or "no: raises",
        }
        return Line(name, made, words.get(made, ""))
    found = {backend.name: backend.kernel(row) is not None for backend in loaded}
    return Line(name, made, gradient_of(row), found, row.shape is not None, row.flops is not None)


def made_of(name: str, function: Any) -> tuple[Primitive | None, str]:
    """(its row or None, what it is made of) of a public function."""
    host = getattr(function, "__wrapped__", None)
    definition = function if isinstance(function, Primitive) else DEFINITIONS.get(host)
    if isinstance(definition, Primitive):
        return definition, "row"
    module, _, _ = name.removeprefix("npx.").rpartition(".")
    alias = ".".join(filter(None, [module, getattr(host, "__name__", "")]))  # true_divide is divide
    row = TABLE.get(name) or TABLE.get(alias)
    if row is not None:
        return row, "row"
    if host is None and (getattr(function, "__module__", None) or "numpy").startswith("numpy"):
        return None, "numpy's own"
    return None, "fallback" if definition is None and host is not None else "composition"


def gradient_of(row: Primitive) -> str:
    """What a row's rules differentiate, in words."""
    if row.vjp is CONSTANT:
        return "constant"
    if row.vjp is None:
        return "no: raises"
    if callable(row.vjp) or all(callable(rule) for rule in row.vjp):
        return "yes"
    return "arguments " + ", ".join(str(i) for i, rule in enumerate(row.vjp) if callable(rule))


def own_kernels(backend: str) -> dict[str, list[str]]:
    """The public names that run on a backend's own kernels, by kind, each found to agree with NumPy there.

    functions (operators of the table), creation (of arrays out of none, random ones among them), methods (with the row
    of such a function, or one of theirs), composed (expressed in those, and nothing of them left to the host),
    operators (Python's; reflected and in-place ones are methods of their own)
    """
    target = backends.get(backend)
    lines = table(kernels=True)
    functions = [line.name for line in lines if line.kernels and line.kernels.get(backend)]
    known = {*functions, *(name for name, row in TABLE.items() if target.kernel(row) is not None)}
    methods = [m for m in vars(onp.ndarray) if callable(getattr(onp.ndarray, m)) and m in known]
    operators = []
    for table_ in (BINARY, COMPARISON, UNARY):
        for op, name in table_.items():
            if name in known:
                ways = (op, "r" + op, "i" + op) if table_ is BINARY else (op,)
                operators += [f"__{way}__" for way in ways if hasattr(np.ndarray, f"__{way}__")]
    there = {f"ndarray.{m}" for m in vars(onp.ndarray)} | {line.name for line in lines}
    said = [n for n in target.composed() if n not in functions and n in there]
    composed = [n for n in said if not n.startswith("ndarray.")]
    methods += [m for n in said if (m := n.removeprefix("ndarray.")) != n and m not in methods]
    kinds = {"functions": functions, "creation": target.creates(), "methods": sorted(methods), "composed": composed}
    return kinds | {"operators": operators}


HEAD = ("name", "made as", "gradient", "kernels", "shape", "flops")


def cells(line: Line) -> tuple[str, ...]:
    """A line as words, in the order of HEAD."""
    kernels = ["numpy"] + [name for name, has in (line.kernels or {}).items() if has] if line.gradient else []
    shape = "formula" if line.shape else "by running" if line.made == "row" else ""
    return line.name, line.made, line.gradient, ", ".join(kernels), shape, "counted" if line.flops else ""


def summary(lines: list[Line]) -> str:
    """How many names of each kind there are, in one sentence."""
    count: dict[str, int] = {}
    for line in lines:
        count[line.made] = count.get(line.made, 0) + 1
    parts = ", ".join(f"{n} {made}" for made, n in sorted(count.items(), key=lambda item: -item[1]))
    return f"{len(lines)} public names with NumPy {onp.__version__}: {parts}"


def text(lines: list[Line]) -> str:
    """The table in columns."""
    rows = [HEAD, *map(cells, lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    shown = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([shown[0], "-" * max(map(len, shown)), *shown[1:], "", summary(lines)])


def markdown(lines: list[Line]) -> str:
    """The table as a page of documentation."""
    rows = ["| " + " | ".join(row) + " |" for row in [HEAD, ("---",) * len(HEAD), *map(cells, lines)]]
    return "\n".join([summary(lines) + ".", "", *rows])
