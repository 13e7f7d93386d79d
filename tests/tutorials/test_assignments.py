"""The assignments: run with the solutions filled in, at a small size; blanks and wrong answers get helpful messages."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest
from alone import run_forked

pytestmark = pytest.mark.once("whole programs, in processes of their own")
FOLDER = Path(__file__).parents[2] / "tutorials" / "assignments"
spec = importlib.util.spec_from_file_location("course", FOLDER / "course.py")
course = importlib.util.module_from_spec(spec)
spec.loader.exec_module(course)

NOTEBOOKS = sorted(path.name for path in (FOLDER / "solutions").glob("*.py"))
PAPERS = {"course.py", "captions.py"}


def run(notebook, *options, **environment):
    """(exit status, output) of `course.py run notebook`, as a learner would run it."""
    return subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "course.py", "run", notebook, *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "QUICK": "1", "PYTHONPATH": str(FOLDER.parents[1]), **environment},
    )


def solve(notebook, **environment):
    """What the notebook with its solutions prints, in a child of a process that has imported what all of them do."""
    modules = ("minnp.nn", "sklearn.datasets")
    return run_forked(FOLDER / "course.py", "run", notebook, "--solved", modules=modules, QUICK="1", **environment)


def test_every_notebook_has_solutions_for_every_exercise():
    assert {path.name for path in FOLDER.glob("*.py")} == {*NOTEBOOKS, *PAPERS}
    for notebook in NOTEBOOKS:
        blanks = course.exercises((FOLDER / notebook).read_text())
        answers = course.exercises((FOLDER / "solutions" / notebook).read_text())
        assert set(blanks) == set(answers)
        for name, blank in blanks.items():
            assert "todo()" in blank and "todo()" not in answers[name]
            # the answer keeps the blank's signature and docstring
            assert blank.split("todo()")[0].rstrip().removesuffix("return").strip() in answers[name], name


def test_the_readme_lists_every_notebook():
    text = (FOLDER / "README.md").read_text()
    assert [name for name in NOTEBOOKS if f"`{name}`" not in text] == []


SLOW = ("convnet.py", "gan.py", "lstm_captioning.py", "rnn_captioning.py", "saliency_and_style.py")


@pytest.mark.long
@pytest.mark.parametrize("notebook", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in NOTEBOOKS])
def test_solved(notebook):
    solve(notebook)


@pytest.mark.long
def test_a_blank_says_what_to_do():
    done = run("knn.py")
    assert done.returncode == 1
    assert done.stderr.strip() == "this exercise is not done yet: replace todo() with your code"


WRONG = [
    ("svm.py", "- 1.0 + reg", "+ reg", "svm_loss: 1 of 1 numbers differ", "their own margin of 1 must not count"),
    (
        "svm.py",
        "+ 2 * reg * w",
        "",
        "svm_gradient: 650 of 650 numbers differ",
        "[N, C] of 1 where the margin is positive",
    ),
    ("two_layer_net.py", " * (h > 0)", "", "backward: b1: ", "through the ReLU only where it was open"),
    (
        "batch_norm.py",
        " - n * (dn * n).mean(axis=0)",
        "",
        "dx: 24 of 24 numbers differ",
        "all means are over the examples",
    ),
    ("dropout.py", " / (1 - p)", "", "what is left: 1 of 2 numbers differ", "divide what is kept by 1 - p"),
    ("knn.py", "+ np.sum(train**2, axis=1)", "+ np.sum(train**2)", "distances", "Hint: |a - b|^2"),
    (
        "rnn_captioning.py",
        "np.stack(hs, axis=1)",
        "np.stack(hs, axis=0)",
        "shape (5, 2, 4), expected (2, 5, 4)",
        "np.stack",
    ),
    ("softmax.py", "s = s - s.max(axis=1, keepdims=True)", "pass", "numbers are inf or nan", "take the log before"),
    ("gan.py", "np.logaddexp(0, -fake)", "-np.logaddexp(0, fake)", "generator_loss", "must not vanish"),
]


@pytest.mark.parametrize(
    ("notebook", "right", "wrong", "fact", "hint"), WRONG, ids=[f"{w[0]}-{i}" for i, w in enumerate(WRONG)]
)
def test_a_wrong_answer_is_explained(notebook, right, wrong, fact, hint, monkeypatch, capsys):
    text = course.solved(notebook)
    assert right in text
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.setitem(sys.modules, "course", course)
    with pytest.raises(course.Wrong) as error, onp.errstate(all="ignore"):
        course.run(text.replace(right, wrong), notebook)
    assert fact in str(error.value) and hint in str(error.value)


def test_a_missing_return_is_explained():
    with pytest.raises(course.Wrong, match="returned None; does it end with a return"):
        course.check("f", None, 1.0)


def test_notebooks_are_notebooks():
    jupytext = pytest.importorskip("jupytext")
    for notebook in NOTEBOOKS:
        cells = jupytext.read(FOLDER / notebook).cells
        assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
        assert sum(cell.cell_type == "code" for cell in cells) >= 4


@pytest.mark.long
def test_convnet_trains_on_cifar_files(tmp_path):
    rng = onp.random.default_rng(0)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        records = [bytes([rng.integers(10)]) + rng.integers(0, 256, 3072, dtype=onp.uint8).tobytes() for _ in range(20)]
        (tmp_path / name).write_bytes(b"".join(records))
    assert "test accuracy" in solve("convnet.py", CIFAR10=str(tmp_path), EPOCHS="1")


@pytest.mark.exhaustive
def test_the_convnet_at_full_size():
    """Its own last check asks for a test accuracy of 0.985 on the digits."""
    done = run("convnet.py", "--solved", QUICK="")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "at least 0.985 as it should be" in done.stdout
