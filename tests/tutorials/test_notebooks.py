"""The tutorials as scripts and as notebooks: at a small size each runs, and asserts what it says of itself."""

import os
import runpy

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

from notebooks import FOLDER, SCRIPTS, execute, is_exercise, read

pytestmark = pytest.mark.either("whole programs, of functions that other tests call both ways")
PROGRAMS = [script for script in SCRIPTS if not is_exercise(script)]
# Those that test_digits.py runs, with their options; those that take long even at a small size.
ELSEWHERE = {"two_layer_net", "convnet_symbol"}
LONG = {"char_lstm", "policy_gradient", "spinn"}


def cells(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@pytest.mark.host("the notebooks are text")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_its_script(script):
    there = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(there)
    assert cells(there) == cells(read(script)), f"./run notebooks {script.stem} writes it anew"


@pytest.mark.host("the notebooks are text")
@pytest.mark.parametrize("script", PROGRAMS, ids=lambda script: script.stem)
def test_a_notebook_was_run_to_its_end_and_has_pictures(script):
    there = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    code = [cell for cell in there.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output.output_type == "error"]
    assert script.with_suffix(".ipynb").stat().st_size < 100_000


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.delenv("DISPLAY", raising=False)


@pytest.mark.long
@pytest.mark.dealt
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=script.stem, marks=[pytest.mark.slow] * (script.stem in LONG))
        for script in PROGRAMS
        if script.stem not in ELSEWHERE
    ],
)
def test_a_script_runs(script, small, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.syspath_prepend(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
        assert pyplot.get_fignums()
    finally:
        pyplot.close("all")


@pytest.mark.exhaustive
def test_the_transformer_adds_when_it_has_seen_enough(small, monkeypatch):
    monkeypatch.setenv("QUICK", "")
    assert runpy.run_path(str(FOLDER / "dynamic" / "addition.py"), run_name="__main__")["right"] > 0.97


@pytest.mark.slow
def test_the_short_ones_run_in_jupyter(small, monkeypatch):
    """One after the other in one kernel, since most of the time is its start."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("MPLBACKEND")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]))
    short = [read(script) for script in PROGRAMS if script.stem not in ELSEWHERE | LONG]
    together = nbformat.v4.new_notebook()
    for notebook in short:
        together.cells += [*notebook.cells, nbformat.v4.new_code_cell("%reset -f")]
    execute(together, FOLDER)
    outputs = [output for cell in together.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= len(short) >= 9
