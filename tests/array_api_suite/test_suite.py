"""A part of the tests that SciPy and scikit-learn have of their array API mode: none fails that is not on the list."""

from __future__ import annotations

import pytest

from . import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.host("SciPy and scikit-learn compute on the host"),
]
PARTS = {"scipy": 80, "sklearn": 20}  # one of so many: a few seconds of tests, and the time to collect all


@pytest.mark.parametrize("package", ["scipy", pytest.param("sklearn", marks=pytest.mark.exhaustive)])
def test_no_failure_outside_the_list(package: str) -> None:
    if run.known()[0] != run.versions():
        pytest.skip(f"the list is of {run.known()[0]}: python -m tests.array_api_suite -v")
    found = run.outcomes([name for name in run.files() if name.startswith(package)], parts=PARTS[package])
    failures = {test: why for test, (outcome, why) in found.items() if outcome == "failed" and run.reason(test) is None}
    assert not failures, "\n".join(f"{test}: {why}" for test, why in failures.items())
    assert sum(outcome == "passed" for outcome, _ in found.values()) > 10


def test_the_list_explains_every_failure() -> None:
    for pattern, why in run.known()[1].items():
        assert pattern.strip("*") and why
