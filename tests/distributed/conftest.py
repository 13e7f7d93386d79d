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


def ask(launcher, **what):
    """The launcher's answer: for each rank None, or the error's text."""
    launcher.stdin.write(json.dumps(what) + "\n")
    launcher.stdin.flush()
    line = launcher.stdout.readline()
    assert line, "the launcher died"
    return json.loads(line)


@pytest.fixture
def on_ranks(launcher):
    """on_ranks(size, "module.case"): runs tests/distributed/cases/module.py's case(mesh) on each of `size` ranks."""

    def run(size, case):
        for rank, error in enumerate(ask(launcher, size=size, case=case, fresh=False)):
            assert error is None, f"rank {rank} of {size}:\n{error}"

    return run


@pytest.fixture
def faulty(launcher):
    """faulty(size, "module.case"): the same on processes of their own; {rank: what went wrong} of those that failed."""

    def run(size, case):
        return {r: e for r, e in enumerate(ask(launcher, size=size, case=case, fresh=True)) if e is not None}

    return run


@pytest.fixture
def job(launcher, tmp_path):
    """job(size, [program, arguments], kill=(rank, seconds), within=60): (exit status, stdout, stderr) of each rank of
    a program that runs in tmp_path."""

    def run(size, program, kill=None, within=120):
        program = list(map(str, program))
        return ask(launcher, size=size, program=program, folder=str(tmp_path), kill=kill, within=within)

    return run
