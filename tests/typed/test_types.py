"""mypy and pyright read user programs through minnp's stubs: good ones pass, every marked mistake is found."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import minnp.numpy

from .make_stub import STUBS, stubs

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
reads_text = pytest.mark.once("mypy reads the programs: no setting changes what it says")
LINES = (HERE / "programs" / "bad.py").read_text().splitlines()
MARKED = {("bad.py", i) for i, line in enumerate(LINES, 1) if line.endswith("# E")}
NAMES_OF_THE_STUB = tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 4)


@pytest.mark.long
@reads_text
@pytest.mark.skipif(not NAMES_OF_THE_STUB, reason="the stub declares the names of NumPy >= 2.4")
def test_mypy_finds_the_marked_mistakes_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", HERE / "mypy.ini", "--cache-dir", tmp_path]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [*map(str, command), str(HERE / "programs")], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert not done.stderr, done.stderr
    found = re.findall(r"^(\S+?):(\d+): error: .*", done.stdout, re.MULTILINE)
    assert {(Path(file).name, int(line)) for file, line in found} == MARKED, done.stdout


def declared(module: str) -> set[str]:
    names = set()
    for node in ast.parse((STUBS / f"{module}.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ("numpy", "None"):
            names |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return {name for name in names if name and not name.startswith("_")} | (names & set(minnp.numpy.__all__))


@pytest.mark.skipif(not NAMES_OF_THE_STUB, reason="the stub declares the names of NumPy >= 2.4")
def test_the_stubs_have_the_namespaces_names() -> None:
    """Editors complete what exists: every public name of NumPy >= 2.4, and nothing else."""
    private = {"Array", "ArrayOf", "row_stack"}  # NumPy 2.5 has no row_stack
    for module, home in {"__init__": numpy, "linalg": numpy.linalg, "fft": numpy.fft, "random": numpy.random}.items():
        ours = minnp.numpy if home is numpy else getattr(minnp.numpy, module)
        public = set(minnp.numpy.__all__ if home is numpy else home.__all__)
        assert public - declared(module) == set()
        assert {name for name in declared(module) - private if not hasattr(ours, name)} == set()


def test_the_stubs_are_what_their_script_writes() -> None:
    if tuple(map(int, numpy.__version__.split(".")[:2])) != (2, 4):
        pytest.skip("the stubs are written with NumPy 2.4")
    for name, text in stubs().items():
        assert ast.dump(ast.parse((STUBS / f"{name}.pyi").read_text())) == ast.dump(ast.parse(text)), name


@pytest.mark.slow
@pytest.mark.skipif(not NAMES_OF_THE_STUB, reason="the stub declares the names of NumPy >= 2.4")
def test_pyright_finds_the_marked_mistakes_and_nothing_else(tmp_path: Path) -> None:
    """In its standard mode, of which basedpyright's own is stricter."""
    pytest.importorskip("basedpyright", reason="pip install basedpyright")
    shutil.copytree(HERE / "programs", tmp_path / "programs")  # it reads nothing outside the configuration's folder
    config: dict = {"typeCheckingMode": "standard", "include": ["programs"]}
    config |= {"reportUnusedExpression": "none", "reportMissingModuleSource": "none"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path)]
    command += ["--pythonpath", sys.executable]
    # As a library of the interpreter's, and not as part of the program, of which nothing is private.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout)["generalDiagnostics"]
    found = {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in told if d["severity"] == "error"}
    assert found == MARKED, told


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_users_programs_run() -> None:
    spec = importlib.util.spec_from_file_location("users", HERE / "programs" / "users.py")
    assert spec is not None and spec.loader is not None
    users = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(users)
    assert len(users.PROGRAMS) == 67
    for program in users.PROGRAMS:
        assert program() is not None, program


@pytest.mark.slow
@pytest.mark.skipif(not NAMES_OF_THE_STUB, reason="the stub declares the names of NumPy >= 2.4")
def test_the_stubs_are_what_runs(tmp_path: Path) -> None:
    """stubtest, but for what stubtest.allowlist names with its reason."""
    config = tmp_path / "mypy.ini"
    more = f"ignore_errors = True\ncache_dir = {tmp_path / 'cache'}"
    config.write_text((HERE / "mypy.ini").read_text().replace("[mypy]", f"[mypy]\n{more}"))
    command = [sys.executable, "-m", "mypy.stubtest", "minnp.numpy", "--concise", "--ignore-missing-stub"]
    command += ["--mypy-config-file", config, "--allowlist", HERE / "stubtest.allowlist", "--ignore-unused-allowlist"]
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*map(str, command)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
