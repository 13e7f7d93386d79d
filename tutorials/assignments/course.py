"""What the assignments share: blanks, checks that explain, and filling in the solutions.

python course.py run NOTEBOOK [--solved]
python course.py solve NOTEBOOK
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp

from minnp import grad

FOLDER = Path(__file__).parent
QUICK = bool(os.environ.get("QUICK"))


class NotDone(NotImplementedError):
    """An exercise still has its blank."""


class Wrong(AssertionError):
    """An answer is not right; the message says how, and gives a hint."""


def todo() -> Any:
    """The blank: replace it with your code."""
    raise NotDone("this exercise is not done yet: replace todo() with your code")


def check(name: str, yours: Any, expected: Any, hint: str = "", tolerance: float = 1e-6) -> None:
    """Is your answer the expected number or array? Says which part is not."""
    advice = f"\nHint: {hint}" if hint else ""
    if yours is None:
        raise Wrong(f"{name}: your function returned None; does it end with a return?{advice}")
    yours, expected = onp.asarray(yours), onp.asarray(expected)
    if expected.dtype == bool:
        expected = expected.astype(int)
    if yours.shape != expected.shape:
        raise Wrong(f"{name}: your answer has shape {yours.shape}, expected {expected.shape}{advice}")
    if not onp.all(onp.isfinite(yours)):
        raise Wrong(f"{name}: {int((~onp.isfinite(yours)).sum())} of your {yours.size} numbers are inf or nan{advice}")
    if yours.dtype == bool:
        yours = yours.astype(int)
    error = abs(yours - expected)
    bad = error > tolerance * (1 + abs(expected))
    if bad.any():
        where = onp.unravel_index(error.argmax(), error.shape)
        at = f" at {tuple(int(i) for i in where)}" if where else ""
        raise Wrong(
            f"{name}: {int(bad.sum())} of {bad.size} numbers differ; the largest difference is{at}: "
            f"yours {yours[where]:.6g}, expected {expected[where]:.6g}{advice}"
        )
    print(f"{name}: right")


def check_gradient(name: str, yours: Any, loss: Callable, at: Any, hint: str = "", tolerance: float = 1e-6) -> None:
    """Is your gradient, derived by hand, what `grad` finds for the loss?"""
    check(name, yours, grad(loss)(at), hint, tolerance)


def check_at_least(name: str, yours: float, least: float, hint: str = "") -> None:
    """Has a measurement, such as an accuracy, reached what a right solution reaches?"""
    if not yours >= least:
        advice = f"\nHint: {hint}" if hint else ""
        raise Wrong(f"{name}: {yours:.4g}, a right solution reaches {least:.4g}{advice}")
    print(f"{name}: {yours:.4g}, at least {least:.4g} as it should be")


# ------------------------------------------------------------------ notebooks
CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)
EXERCISE = re.compile(r"exercise: (\w+)")


def cells(text: str) -> list[tuple[str, str]]:
    """(what stands after # %%, the rest) of each cell; the text before the first cell comes first, under ""."""
    parts = CELL.split(text)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2])]


def exercises(text: str) -> dict[str, str]:
    """{name: code} of the cells headed `# %% exercise: name`."""
    return {m[1]: body for head, body in cells(text) if (m := EXERCISE.search(head))}


def solved(notebook: str | Path) -> str:
    """The notebook's text with every exercise replaced by its solution."""
    notebook = FOLDER / notebook
    answers = exercises((FOLDER / "solutions" / notebook.name).read_text())
    text = ""
    for head, body in cells(notebook.read_text()):
        found = EXERCISE.search(head)
        text += (f"# %%{head}" if text else "") + (answers[found[1]] if found else body)
    return text


def run(text: str, name: str) -> dict[str, Any]:
    """Execute a notebook's text as a program; its names."""
    sys.path.insert(0, str(FOLDER))
    scope: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(text, name, "exec"), scope)
    finally:
        sys.path.remove(str(FOLDER))
    return scope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "solve"])
    parser.add_argument("notebook")
    parser.add_argument("--solved", action="store_true", help="with the solutions filled in")
    options = parser.parse_args()
    text = solved(options.notebook) if options.solved or options.command == "solve" else None
    if options.command == "solve":
        print(text, end="")
        return
    try:
        run(text or (FOLDER / options.notebook).read_text(), options.notebook)
    except (NotImplementedError, AssertionError) as error:
        sys.exit(f"\n{error}")


if __name__ == "__main__":
    main()
