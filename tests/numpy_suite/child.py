"""Runs each of NumPy's test files in a child of one process, which has imported what all of them do."""

import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[0] = str(ROOT)

import pytest

from tests.alone import serve


def work(plan: str, scratch: str, arguments: list[str]) -> int:
    os.chdir(scratch)
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ.update(MINNP_SUITE_PLAN=plan, NPY_AVAILABLE_MEM="2G", PYTHONPATH=str(ROOT))
    return pytest.main(arguments)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for module in ("minnp.numpy", "minnp.numpy.testing", "numpy.testing", "hypothesis"):
        importlib.import_module(module)
    sys.exit(serve(work, timeout=1200))
