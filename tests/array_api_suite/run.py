"""Runs the tests that SciPy and scikit-learn have of their array API mode, with minnp.numpy as the namespace, and keeps
the list of those that fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import scipy

from tests.numpy_suite.run import matches

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PACKAGES = Path(scipy.__path__[0]).parent
USES = re.compile(r"\bxp\b|array_api")
SECONDS_PER_FILE = 1200


def files() -> list[str]:
    """The installed test files that use a namespace they are given, from the folder of packages on."""
    found = [p for package in ("scipy", "sklearn") for p in sorted((PACKAGES / package).rglob("test_*.py"))]
    return [p.relative_to(PACKAGES).as_posix() for p in found if USES.search(p.read_text())]


def outcomes(names: list[str], namespace: str = "minnp.numpy", parts: int = 1) -> dict[str, tuple[str, str]]:
    """test id -> (outcome, why) of the tests in these files that are given a namespace, or of one part of them."""
    with tempfile.TemporaryDirectory() as scratch:
        plan, log = Path(scratch, "plan.json"), Path(scratch, "log")
        plan.write_text(json.dumps({"namespace": namespace, "log": str(log), "parts": parts}))
        command = [sys.executable, "-m", "pytest", *[str(PACKAGES / name) for name in names]]
        command += ["-c", str(HERE.parent / "numpy_suite" / "suite.ini"), "--rootdir", str(PACKAGES), "-W", "ignore"]
        command += ["-q", "--tb=line", "-p", "tests.array_api_suite.loader", "-p", "no:cacheprovider", "-p", "no:xdist"]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "MINNP_SUITE_PLAN": str(plan), "PYTHONPATH": path, "SCIPY_ARRAY_API": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=SECONDS_PER_FILE
        )
        if done.returncode not in (0, 1, 5):  # 5: none of this part
            raise RuntimeError(f"pytest could not run {names}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        lines = map(json.loads, log.read_text().splitlines()) if log.exists() else []
        return {test: (outcome, why) for outcome, test, why in lines}


def versions() -> str:
    return f"SciPy {scipy.__version__}, scikit-learn {version('scikit-learn')}"


def known() -> tuple[str, dict[str, str]]:
    """The versions that the list of known failures is of, and pattern -> reason. Lines: `test id with * | reason`."""
    first, *lines = (HERE / "known_failures.txt").read_text().splitlines()
    return first.removeprefix("# "), dict(line.rsplit(" | ", 1) for line in lines if line and line[0] != "#")


def reason(test: str) -> str | None:
    """Why a test is known to fail; None where it is not."""
    return next((why for pattern, why in known()[1].items() if matches(pattern, test)), None)
