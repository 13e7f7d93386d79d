"""mypy reads user programs through minnp/numpy/__init__.pyi: good ones pass, every marked mistake is found."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import minnp.numpy

from .make_stub import STUB

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NAMES_OF_THE_STUB = tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 4)


def check(program: str, cache: Path) -> list[tuple[str, int]]:
    """(file name, line) of everything mypy reports for one program."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--strict-equality", "--no-error-summary"]
    command += ["--follow-imports", "silent"]  # an editable install is source too: only the programs are judged
    done = subprocess.run(
        [*command, str(HERE / "programs" / program)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr, done.stderr
    found = re.findall(r"^(\S+?):(\d+): error: .*", done.stdout, re.MULTILINE)
    return [(Path(file).name, int(line)) for file, line in found]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not NAMES_OF_THE_STUB:
        pytest.skip("the stub declares the names of NumPy >= 2.4")
    return tmp_path_factory.mktemp("mypy")


def test_numpy_programs_have_no_errors(cache: Path) -> None:
    assert check("good.py", cache) == []


def test_mistakes_are_found(cache: Path) -> None:
    lines = (HERE / "programs" / "bad.py").read_text().splitlines()
    marked = {("bad.py", i) for i, line in enumerate(lines, 1) if line.endswith("# E")}
    assert set(check("bad.py", cache)) == marked


def test_the_stub_has_the_namespaces_names() -> None:
    """Editors complete what exists: every public name of NumPy >= 2.4, and nothing else."""
    declared = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module == "numpy":
            declared |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            declared.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            declared.add(node.name)
    private = {"Array", "ArrayOf", "_Unary", "_Binary"} | {name for name in declared if name.startswith("_")}
    if NAMES_OF_THE_STUB:
        assert set(minnp.numpy.__all__) - declared == set()
        assert {name for name in declared - private if not hasattr(minnp.numpy, name)} == set()
