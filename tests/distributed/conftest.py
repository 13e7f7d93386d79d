"""The fixture that runs a case on every rank of a mesh."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def launcher():
    pytest.importorskip("torch", reason="a mesh of several processes needs torch.distributed")
    variables = os.environ | {"PYTHONPATH": f"{HERE.parent.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    program = [sys.executable, "-W", "error", str(HERE / "launcher.py")]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables)
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait(60)


def ask(launcher, size, case, fresh=False):
    """What went wrong on each rank: None, or the error's text."""
    launcher.stdin.write(json.dumps({"size": size, "case": case, "fresh": fresh}) + "\n")
    launcher.stdin.flush()
    line = launcher.stdout.readline()
    assert line, "the launcher died"
    return json.loads(line)


@pytest.fixture
def on_ranks(launcher):
    """on_ranks(size, "module.case"): runs tests/distributed/cases/module.py's case(mesh) on each of `size` ranks."""

    def run(size, case):
        for rank, error in enumerate(ask(launcher, size, case)):
            assert error is None, f"rank {rank} of {size}:\n{error}"

    return run


@pytest.fixture
def faulty(launcher):
    """faulty(size, "module.case"): the same on processes of their own; {rank: what went wrong} of those that failed."""
    return lambda size, case: {r: e for r, e in enumerate(ask(launcher, size, case, fresh=True)) if e is not None}
