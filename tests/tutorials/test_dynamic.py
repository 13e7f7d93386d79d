"""Parts of the programs of tutorials/dynamic."""

import importlib
from pathlib import Path

import numpy as onp
import pytest

pytestmark = pytest.mark.either("whole programs, of functions that other tests call both ways")
FOLDER = Path(__file__).parents[2] / "tutorials" / "dynamic"


@pytest.fixture
def program(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def test_entailment(program):
    entailment = program("entailment")
    tree = ("the", ("small", "dog")), ("chases", ("the", "cat"))
    assert " ".join(entailment.words(tree)) == "the small dog chases the cat"
    assert entailment.transitions(tree) == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    (words, moves, *_), labels = entailment.dataset(300, seed=1)
    words, moves, labels = onp.asarray(words), onp.asarray(moves), onp.asarray(labels)
    length = (words != 0).sum(1)
    assert ((moves == entailment.REDUCE).sum(1) == length - 1).all()
    assert onp.bincount(labels).min() > 70
    again, _ = entailment.dataset(300, seed=1)
    assert onp.array_equal(words, onp.asarray(again[0]))


def test_spinn(program):
    """The stack of a batch gives what composing each tree alone gives."""
    spinn, entailment = program("spinn"), program("entailment")
    model = spinn.Spinn(hidden=8, tracking=4).init(0)
    (words, moves, *_), _ = entailment.dataset(6, seed=2, length=14)
    together, _ = model.encode(words, moves)
    for i in range(6):
        alone, _ = model.encode(words[i : i + 1], moves[i : i + 1])
        onp.testing.assert_allclose(onp.asarray(together)[i], onp.asarray(alone)[0], rtol=1e-4, atol=1e-5)
