"""The programs of tutorials/processes: alone, and on two processes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once("whole programs, in processes of their own")
FOLDER = Path(__file__).parents[2] / "tutorials" / "processes"
ALONE = [sys.executable]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def run(*command):
    """What a program prints; torchrun comes with torch."""
    if "torch.distributed.run" in command:
        pytest.importorskip("torch")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_is_tested():
    assert {path.stem for path in FOLDER.glob("*.py")} == {"digits", "heat"}


@pytest.mark.exhaustive
def test_digits_with_a_process_killed_on_the_way(tmp_path):
    """Epochs, loss and accuracy are those of one process that nobody stopped."""
    program, options = FOLDER / "digits.py", ["--epochs", "3"]
    alone = run(*ALONE, program, *options)
    killed = ["--kill", "1", "--checkpoint", str(tmp_path / "digits")]
    together = run(*TWO, "--max-restarts", "1", program, *options, *killed)
    assert together.startswith("2 processes, after a restart: 3 epochs, loss ")
    assert together.partition(": ")[2] == alone.partition(": ")[2]
    assert float(re.search(r"test accuracy ([\d.]+)%", together)[1]) > 94


@pytest.mark.long
def test_heat(job):
    """The start is found, and the numbers are those of one process."""
    command = [FOLDER / "heat.py", "--size", "31", "--time", "6", "--steps", "12"]
    together = job(2, command)
    assert [code for code, _, _ in together] == [0, 0], together
    alone, together = run(*ALONE, *command), "".join(text for _, text, _ in together)
    assert "[31]" in alone and "[16, 15]" in together
    assert alone.partition("\n")[2] == together.partition("\n")[2]
    before, after = map(float, re.search(r"error ([\d.e-]+) -> ([\d.e-]+)", alone).groups())
    assert after < before / 1000
