"""A part of the tests that SciPy and scikit-learn have of their array API mode: none fails that is not on the list."""

from __future__ import annotations

import pytest

from . import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.host("SciPy and scikit-learn compute on the host"),
]
# Of how many files one is read, and of how many of its tests one is run: to collect all takes half a minute.
PARTS = {"scipy": (4, 20), "sklearn": (1, 20)}


@pytest.mark.parametrize("package", ["scipy", pytest.param("sklearn", marks=pytest.mark.exhaustive)])
def test_no_failure_outside_the_list(package: str) -> None:
    if run.known()[0] != run.versions():
        pytest.skip(f"the list is of {run.known()[0]}: python -m tests.array_api_suite -v")
    files, tests = PARTS[package]
    found = run.outcomes([name for name in run.files() if name.startswith(package)][::files], parts=tests)
    failures = {test: why for test, (outcome, why) in found.items() if outcome == "failed" and run.reason(test) is None}
    assert not failures, "\n".join(f"{test}: {why}" for test, why in failures.items())
    assert sum(outcome == "passed" for outcome, _ in found.values()) > 10


def test_the_list_explains_every_failure() -> None:
    for pattern, why in run.known()[1].items():
        assert pattern.strip("*") and why
