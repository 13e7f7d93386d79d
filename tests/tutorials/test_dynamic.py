"""The programs of tutorials/dynamic, at a small size: each must learn what it says it learns."""

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


def test_every_program_is_tested():
    tested = {name.removeprefix("test_").split("_with_")[0] for name in globals() if name.startswith("test_")}
    assert {path.stem for path in FOLDER.glob("*.py")} <= tested


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


@pytest.mark.slow
def test_spinn_with_a_bag_of_words_to_compare(program):
    result = program("spinn").main(epochs=4)
    assert result["spinn"] > 0.9 > 0.75 > result["bag"]


@pytest.mark.slow
def test_char_lstm(program):
    result = program("char_lstm").main(limit=20_000, epochs=15, hidden=64)
    assert result["bits"] < result["baseline"] - 0.5
    assert result["text"].startswith("def ") and len(result["text"]) == 204


@pytest.mark.slow
def test_policy_gradient(program):
    result = program("policy_gradient").main()
    assert result["recent"] >= 195 > 60 > result["first"]


def test_addition(program):
    result = program("addition").main(epochs=2, fraction=0.3)
    assert result["loss"][-1] < 0.8 * result["loss"][0]


@pytest.mark.slow
def test_addition_with_enough_examples(program):
    assert program("addition").main(epochs=20)["right"] > 0.97
