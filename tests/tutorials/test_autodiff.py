"""The programs of tutorials/autodiff, at a small size: each compares itself with a closed form or another library."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.either("whole programs, of functions that other tests call both ways")
FOLDER = Path(__file__).parents[2] / "tutorials" / "autodiff"


def program(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_program_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in FOLDER.glob("*.py")} <= tested


def test_logistic_regression():
    result = program("logistic_regression").main()
    assert result["accuracy"] > 0.97 and result["slope"] < 1e-5
    assert result["difference"] < 1e-5


def test_gaussian_mixture():
    result = program("gaussian_mixture").main(n=300, steps=300)
    assert result["ours"] == pytest.approx(result["theirs"], abs=0.01)


def test_vae(tmp_path):
    result = program("vae").main(epochs=12, hidden=64, picture=tmp_path / "digits.png")
    assert result["bound"] < result["baseline"]
    assert result["kl"] == pytest.approx(result["sampled_kl"], rel=0.02)
    assert (tmp_path / "digits.png").stat().st_size > 1000


def test_hidden_markov():
    result = program("hidden_markov").main(length=60, steps=60)
    assert result["difference"] < 1e-9
    assert result["gradient"] > result["em"] - 1.0  # either may end in a local optimum, EM does here


def test_black_scholes():
    result = program("black_scholes").main()
    assert result["worst"] < 1e-9
    assert result["implied"] == pytest.approx(result["volatility"], abs=1e-9)


def test_pendulum(tmp_path):
    result = program("pendulum").main(steps=50, iterations=150, picture=tmp_path / "swing.png")
    assert result["slope"] == pytest.approx(result["difference"], rel=1e-5)
    assert abs(result["angle"] - 180) < 15 and abs(result["checked"] - 180) < 25
    assert (tmp_path / "swing.png").exists()


def test_hamiltonian_monte_carlo():
    result = program("hamiltonian_monte_carlo").main(chains=200, rounds=60)
    assert result["accepted"] > 0.8
    assert result["mean_error"] < 0.1 and result["covariance_error"] < 0.15


def test_gaussian_process(tmp_path):
    result = program("gaussian_process").main(n=30, picture=tmp_path / "fit.png")
    assert result["likelihood"] == pytest.approx(result["their_likelihood"], abs=1e-6)
    assert result["settings_error"] < 1e-3 and result["mean_error"] < 1e-3 and result["deviation_error"] < 1e-3
