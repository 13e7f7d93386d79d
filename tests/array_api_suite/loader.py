"""The pytest plugin: tests that are given a namespace are given another one, and each outcome is written as it comes.

MINNP_SUITE_PLAN names a JSON file: the namespace, the log of outcomes, and of how many parts of the tests one is run.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PLAN = json.loads(Path(os.environ["MINNP_SUITE_PLAN"]).read_text())
NAMESPACE = importlib.import_module(PLAN["namespace"])


class Alike(ModuleType):
    """The namespace, equal to the one that scikit-learn knows a NumPy array by."""

    def __getattr__(self, name: str) -> Any:
        return getattr(NAMESPACE, name)

    def __eq__(self, other: object) -> bool:
        from sklearn.externals.array_api_compat import numpy

        return other is self or other is numpy

    def __hash__(self) -> int:
        return hash(self.__name__)


def pytest_configure() -> None:
    """Both libraries take a host array, a numpy.ndarray, for one of NumPy's namespace. So their tests, which find the
    namespace by an array, are told it, and do not ask whether results are of another than NumPy's."""
    import scipy._lib._array_api
    import scipy.conftest
    import sklearn.utils._array_api
    import sklearn.utils._testing

    if PLAN["namespace"] == "numpy":
        sklearn.utils._array_api.yield_namespaces = lambda *_, **__: iter(["numpy"])
        return
    of_array = scipy.conftest.array_namespace
    scipy.conftest.array_namespace = lambda x: NAMESPACE if type(x) is NAMESPACE.ndarray else of_array(x)
    scipy._lib._array_api._assert_matching_namespace = lambda *_: None
    alike = Alike("sklearn.externals.array_api_compat.numpy")
    sklearn.utils._array_api.yield_namespaces = lambda *_, **__: iter([PLAN["namespace"]])
    sklearn.utils._testing._array_api_for_tests = lambda *_, **__: (alike, None)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture in metafunc._arg2fixturedefs.get("xp", ()):
        fixture.params = [pytest.param(NAMESPACE, id="xp", marks=pytest.mark.array_api_backends)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hardly anything that the collection makes is garbage, and to look for some takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests that are given the namespace, of this part."""
    of_scipy = lambda item: item.get_closest_marker("array_api_backends") or "xp" in getattr(item, "fixturenames", ())
    given = lambda item: PLAN["namespace"] in item.name if item.nodeid.startswith("sklearn") else of_scipy(item)
    items[:] = [i for i in items if zlib.crc32(i.nodeid.encode()) % PLAN["parts"] == 0 and given(i)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or not report.passed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr or "")
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        with open(PLAN["log"], "a") as file:
            file.write(json.dumps((outcome, report.nodeid, text.partition("\n")[0][:300])) + "\n")
