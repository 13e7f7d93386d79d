"""Solutions of CS231n's assignments, as students write them, give NumPy's numbers once their import line is swapped.

Each file of `solutions` is a program on `import numpy as np`. Here it also runs with that line, and nothing else,
changed; on NumPy's kernels both runs give the same bits. And what students derive by hand, `vjp` of their forward
functions confirms.
"""

import importlib
import random
import sys
from pathlib import Path

import numpy as onp
import pytest

import minnp.numpy as np
from benchmarks.programs.compare import difference
from minnp import grad, vjp

FOLDER = Path(__file__).parent / "solutions"
PROGRAMS = ["classifiers", "check_layers", "nets", "captioning", "pictures", "notes"]


def load(name, library, folder, monkeypatch):
    """The solution `name` with its import line, and that of the files it imports, naming `library`."""
    package = folder / f"solutions_on_{library.replace('.', '_')}"
    package.mkdir()
    for path in FOLDER.glob("*.py"):
        before, line, after = path.read_text().partition("\nimport numpy as np\n")
        assert line and "numpy as np" not in after
        (package / path.name).write_text(f"{before}\nimport {library} as np\n{after}")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for module in [m for m in sys.modules if m.startswith(package.name)]:
        del sys.modules[module]  # of an earlier test
    return importlib.import_module(f"{package.name}.{name}")


def test_every_solution_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*PROGRAMS, "layers", "gradient_check"}


@pytest.mark.long
@pytest.mark.host("NumPy's bits: steps of training multiply a difference in the last place tenfold and tenfold again")
@pytest.mark.parametrize("name", PROGRAMS)
def test_solution_gives_numpys_bits(name, tmp_path, monkeypatch):
    results = []
    for library in ("minnp.numpy", "numpy"):
        random.seed(0)
        results.append(load(name, library, tmp_path, monkeypatch).main())
    assert difference(*results) is None


# ------------------------------------------------------------------ what is derived by hand, grad confirms
def draw(*shapes):
    rng = np.random.default_rng(7)
    return [rng.standard_normal(shape) for shape in shapes]


CONV = {"stride": 2, "pad": 1}
POOL = {"pool_height": 2, "pool_width": 2, "stride": 2}
LAYERS = {
    "affine": ("affine_forward", "affine_backward", [(4, 2, 3), (6, 5), (5,)], ()),
    "relu": ("relu_forward", "relu_backward", [(5, 4)], ()),
    "batchnorm": ("batchnorm_forward", "batchnorm_backward", [(6, 4), (4,), (4,)], ({"mode": "train"},)),
    "batchnorm alt": ("batchnorm_forward", "batchnorm_backward_alt", [(6, 4), (4,), (4,)], ({"mode": "train"},)),
    "layernorm": ("layernorm_forward", "layernorm_backward", [(6, 4), (4,), (4,)], ({},)),
    "dropout": ("dropout_forward", "dropout_backward", [(6, 4)], ({"mode": "train", "p": 0.6, "seed": 3},)),
    "conv": ("conv_forward_naive", "conv_backward_naive", [(2, 3, 5, 5), (2, 3, 3, 3), (2,)], (CONV,)),
    "conv im2col": ("conv_forward_im2col", "conv_backward_im2col", [(2, 3, 5, 5), (2, 3, 3, 3), (2,)], (CONV,)),
    "conv strides": ("conv_forward_strides", "conv_backward_naive", [(2, 3, 5, 5), (2, 3, 3, 3), (2,)], (CONV,)),
    "max pool": ("max_pool_forward_naive", "max_pool_backward_naive", [(2, 3, 4, 4)], (POOL,)),
    "max pool reshape": ("max_pool_forward_reshape", "max_pool_backward_reshape", [(2, 3, 4, 4)], (POOL,)),
    "spatial batchnorm": (
        "spatial_batchnorm_forward", "spatial_batchnorm_backward", [(2, 3, 4, 4), (3,), (3,)], ({"mode": "train"},),
    ),
    "groupnorm": (
        "spatial_groupnorm_forward", "spatial_groupnorm_backward", [(2, 4, 3, 3), (1, 4, 1, 1), (1, 4, 1, 1)], (2, {}),
    ),
    "rnn": ("rnn_forward", "rnn_backward", [(2, 4, 3), (2, 5), (3, 5), (5, 5), (5,)], ()),
    "lstm": ("lstm_forward", "lstm_backward", [(2, 4, 3), (2, 5), (3, 20), (5, 20), (20,)], ()),
    "temporal affine": ("temporal_affine_forward", "temporal_affine_backward", [(2, 4, 3), (3, 5), (5,)], ()),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_gradients_by_hand_are_those_of_vjp(layer, tmp_path, monkeypatch):
    forward, backward, shapes, options = LAYERS[layer]
    module = "captioning" if layer in ("rnn", "lstm", "temporal affine") else "layers"
    solution = load(module, "minnp.numpy", tmp_path, monkeypatch)
    inputs = draw(*shapes)
    out, cache = getattr(solution, forward)(*inputs, *options)
    (dout,) = draw(out.shape)
    by_hand = getattr(solution, backward)(dout, cache)
    same, pull = vjp(lambda *inputs: getattr(solution, forward)(*inputs, *options)[0], *inputs)
    assert difference(same, onp.asarray(out)) is None
    by_hand = by_hand if isinstance(by_hand, tuple) else (by_hand,)
    found = pull(dout)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(by_hand) == len(inputs)
    for ours, theirs in zip(found, by_hand):
        onp.testing.assert_allclose(onp.asarray(ours), onp.asarray(theirs), rtol=1e-9, atol=1e-9)


LOSSES = {
    "svm, naive": ("classifiers", "svm_loss_naive"),
    "svm": ("classifiers", "svm_loss_vectorized"),
    "svm, masked": ("classifiers", "svm_loss_masked"),
    "softmax, naive": ("classifiers", "softmax_loss_naive"),
    "softmax": ("classifiers", "softmax_loss_vectorized"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_return_their_own_gradient(loss, tmp_path, monkeypatch):
    module, name = LOSSES[loss]
    function = getattr(load(module, "minnp.numpy", tmp_path, monkeypatch), name)
    W, X = draw((5, 4), (8, 5))
    y = np.array([0, 3, 1, 1, 2, 0, 3, 2])
    _, by_hand = function(W, X, y, 0.1)
    found = grad(lambda W: function(W, X, y, 0.1)[0])(W)
    onp.testing.assert_allclose(onp.asarray(found), onp.asarray(by_hand), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["svm_loss", "softmax_loss"])
def test_losses_of_scores_return_their_own_gradient(name, tmp_path, monkeypatch):
    function = getattr(load("layers", "minnp.numpy", tmp_path, monkeypatch), name)
    (x,), y = draw((6, 4)), np.array([0, 3, 1, 1, 2, 0])
    _, by_hand = function(x, y)
    found = grad(lambda x: function(x, y)[0])(x)
    onp.testing.assert_allclose(onp.asarray(found), onp.asarray(by_hand), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_the_whole_captioning_loss_has_its_gradients_by_hand(cell, tmp_path, monkeypatch):
    solution = load("captioning", "minnp.numpy", tmp_path, monkeypatch)
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2, "cat": 3, "dog": 4}
    np.random.seed(0)
    model = solution.CaptioningRNN(words, 6, 4, 5, cell, np.float64)
    features, captions = np.random.randn(3, 6), np.random.randint(0, 5, (3, 6))
    _, by_hand = model.loss(features, captions)

    def of_params(params):
        model.params = params
        return model.loss(features, captions)[0]

    found = grad(of_params)(dict(model.params))
    assert by_hand.keys() == found.keys()
    for name, ours in found.items():
        onp.testing.assert_allclose(onp.asarray(ours), onp.asarray(by_hand[name]), rtol=1e-8, atol=1e-10)
