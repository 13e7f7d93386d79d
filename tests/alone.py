"""Runs a program in a process of its own, as a user would: what this process has imported does not help it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run_alone(program, *arguments, cwd=None, timeout=300):
    """What a program prints: a file, or its text. A warning is an error, and so is a failure."""
    command = [str(program)] if isinstance(program, Path) else ["-c", program]
    done = subprocess.run(
        [sys.executable, "-W", "error", *command, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    name = program.name if isinstance(program, Path) else program
    assert done.returncode == 0, f"{name} {arguments}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout
