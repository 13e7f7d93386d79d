"""The pytest plugin: `numpy` in NumPy's test files means another namespace, and every outcome is written as it happens.

MINNP_SUITE_PLAN names a JSON file: the namespace, the log of outcomes, the tests already done by a run that died,
those that are asked for (null: all), and of how many parts of a test with over a thousand cases one is run.
Imports are rewritten in the syntax tree, so only the test files see the other namespace; NumPy's internals keep the
real one.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

PLAN = json.loads(Path(os.environ["MINNP_SUITE_PLAN"]).read_text())
NAMESPACE = PLAN["namespace"]
SECONDS_PER_TEST = 120


# ------------------------------------------------------------------ what an import means
def meaning(module: str, name: str | None = None) -> Any:
    """What `import module` (or `from module import name`) gives inside a test file.

    The public namespace is ours, and lacks what ours lacks. NumPy's internals stay NumPy's, except for the public
    functions and classes found in them under another address: those are ours too.
    """
    if name is None:
        return ours(module) or Translated(importlib.import_module(module))
    source = ours(module)
    if source is not None and hasattr(source, name):
        return getattr(source, name)
    real = importlib.import_module(module)
    return getattr(Translated(real), name) if hasattr(real, name) else meaning(f"{module}.{name}")


@cache
def ours(module: str) -> ModuleType | None:
    """Our module for NumPy's `module`, or None where only NumPy has it: those made of NumPy's when they are imported
    (core/api/submodules.py) give nothing that `exchange` does not."""
    own = NAMESPACE + module.removeprefix("numpy")
    if own == NAMESPACE or find(own):
        return importlib.import_module(own)
    parent, _, last = module.rpartition(".")
    found = getattr(ours(parent) if parent else None, last, None)
    return (
        found
        if isinstance(found, ModuleType) and found is not sys.modules.get(module) and written(found.__spec__)
        else None
    )


def find(module: str) -> bool:
    if "._" in module:  # none is written here; and to look for one is to import its parent, made of NumPy's
        return False
    try:
        return written(importlib.util.find_spec(module))
    except ModuleNotFoundError:  # a parent that is no package
        return False


def written(spec: Any) -> bool:
    return spec is not None and type(spec.loader).__name__ != "Submodules"


class Translated(ModuleType):
    """One of NumPy's internal modules, its public functions and classes exchanged for ours."""

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        ours_for = exchange()
        facts = {name: ours_for.get(id(x), x) for name, x in vars(real).items() if not isinstance(x, ModuleType)}
        self.__dict__.update(facts, __real__=real)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__real__, name)
        return meaning(found.__name__) if isinstance(found, ModuleType) and "numpy." in found.__name__ else found


@cache
def exchange() -> dict[int, Any]:
    """id of NumPy's public function or class -> ours of the same name."""
    table = {}
    for module in (
        "numpy",
        "numpy.linalg",
        "numpy.fft",
        "numpy.random",
        "numpy.lib",
        "numpy.lib.stride_tricks",
        "numpy.ma",
    ):
        real, own = importlib.import_module(module), ours(module)
        if own is None:
            continue
        for name in dir(real):
            found = getattr(real, name, None) if not name.startswith("_") else None
            if callable(found) and callable(getattr(own, name, None)):
                table.setdefault(id(found), getattr(own, name))
    return table


# ------------------------------------------------------------------ loading a test file
class Redirect(ast.NodeTransformer):
    """`import numpy.x as y` becomes `y = meaning("numpy.x")`, and likewise every form of import of NumPy."""

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        lines = []
        for alias in node.names:
            if alias.name.split(".")[0] != "numpy":
                lines.append(ast.Import([alias]))
            elif alias.asname:
                lines.append(bind(alias.asname, alias.name))
            else:
                lines.append(bind("numpy", "numpy"))
        return [ast.copy_location(line, node) for line in lines]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        if node.level or node.module.split(".")[0] != "numpy":
            return node
        return [ast.copy_location(bind(a.asname or a.name, node.module, a.name), node) for a in node.names]


def bind(target: str, *address: str) -> ast.stmt:
    return ast.parse(f"{target} = __import__({__name__!r}, fromlist=['meaning']).meaning(*{address!r})").body[0]


class Loader(importlib.machinery.SourceFileLoader):
    def path_stats(self, path: str) -> dict:
        raise OSError("no cached bytecode: it would be taken for NumPy's own")

    def source_to_code(self, data: bytes, path: str, fullname: str | None = None, *, _optimize: int = -1) -> Any:
        tree = ast.fix_missing_locations(Redirect().visit(ast.parse(data)))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)


class Finder:
    """Finds NumPy's test files, under whatever module name pytest or another test file asks for them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.rpartition(".")[2].startswith("test_"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not spec.origin or not Path(spec.origin).is_relative_to(numpy.__path__[0]):
            return None
        return importlib.util.spec_from_file_location(name, spec.origin, loader=Loader(name, spec.origin))


def pytest_configure(config: pytest.Config) -> None:
    if NAMESPACE != "numpy":
        sys.meta_path.insert(0, Finder)  # before pytest's own, which rewrites asserts
        core = "core" if numpy.__version__ < "2" else "_core"  # which NumPy 1.26 may have too, for pickles of NumPy 2
        vars(importlib.import_module(NAMESPACE))[core] = meaning(f"numpy.{core}")  # np._core.umath.tanh is np.tanh


# ------------------------------------------------------------------ outcomes
@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hardly anything that the collection makes is garbage, and all lives to the end: tests collect garbage often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what an earlier run of this file (one that died) has already done, and what is not asked for."""
    done, only = set(PLAN["done"]), PLAN["only"]
    wanted = None if only is None else set(only)
    cases, asked = Counter(item.originalname for item in items), []
    for item in items:
        if (test := test_id(item.nodeid)) in done or (wanted is not None and test not in wanted):
            continue
        if cases[item.originalname] > 1000 and zlib.crc32(item.nodeid.encode()) % PLAN["parts"]:
            write("left out", test, "")
        else:
            asked.append(item)
    items[:] = asked


def test_id(nodeid: str) -> str:
    return nodeid.partition("::")[2].replace(NAMESPACE, "numpy") or "collection"  # a module may name a parameter


LOG = os.open(PLAN["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)  # written without a buffer: the process may die


def write(*fields: str) -> None:
    os.write(LOG, f"{json.dumps(fields)}\n".encode())


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        write("failed", test_id(report.nodeid), last_line(report))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    write("died", test_id(item.nodeid), "the process died in this test")  # the real outcome, if it comes, replaces it
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS_PER_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Garbage of earlier tests stays until this one ends: some compare reference counts before and after."""
    gc.disable()
    try:
        return (yield)
    except Exception as failure:
        failure.__cause__ = failure.__context__ = None  # pytest would print all of a recursion, each with all below it
        raise
    finally:
        gc.enable()


def too_long(*_: Any) -> None:
    raise TimeoutError(f"longer than {SECONDS_PER_TEST} s")


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus() -> tuple[str, str, str]:
    """No letter for each of the thousands of tests: nobody reads them, and to print one takes as long as a test."""
    return "", "", ""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        outcome = "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome
        write(outcome, test_id(report.nodeid), "" if report.passed else last_line(report))


def last_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return (lines[0] if crash else lines[-1])[:300]
