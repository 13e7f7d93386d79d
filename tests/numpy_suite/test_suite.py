"""In CI: no test outside the list of known failures fails. The files that must keep 95 % run on both NumPys, the others
on one of them."""

from __future__ import annotations

import pytest

from . import run
from .__main__ import TO_EXPLAIN

pytestmark = [
    pytest.mark.long,
    pytest.mark.host("the lists of known failures are of NumPy's own kernels"),
    pytest.mark.either("minutes, nearly all in NumPy's code; test_compiled compares the first lines of ours"),
]


def each_file(name: str) -> pytest.param:
    return pytest.param(name, marks=pytest.mark.dealt(each=name in run.REQUIRED))


@pytest.mark.parametrize("name", [*map(each_file, run.files())])
def test_no_failure_outside_the_list(name: str, request: pytest.FixtureRequest) -> None:
    """With --dealt a sixteenth of what there are over a thousand cases of: sorts of each length up to 512, say, which
    are NumPy's code whatever the length."""
    option = request.config.getoption
    failures = run.unexpected(name, parts=16 if option("--dealt") and not option("--exhaustive") else 1)
    assert not failures, "\n".join(f"{test}: {why}" for test, why in failures.items())


def test_the_list_explains_every_failure() -> None:
    for name, section in run.known().items():
        for test, reason in section.reasons.items():
            assert reason and TO_EXPLAIN not in reason, f"{name}: {test} has no reason"
            assert test.strip("*"), f"{name}: a pattern must name a test"
