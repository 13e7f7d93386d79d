"""What benchmarks/training.py compares is the same model: minnp's and autograd's losses and gradients agree."""

import sys
from pathlib import Path

import numpy as onp
import pytest

import minnp.numpy as np

autograd = pytest.importorskip("autograd")
torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import adversarial, training


@pytest.mark.long
@pytest.mark.parametrize("name", training.NETS)
def test_the_model_for_autograd_is_the_tutorials(name):
    model, data, labels, loss = training.for_autograd(name)
    model.init(0)
    tree = {key: onp.asarray(value) for key, value in model.tree().items()}
    onp.random.seed(0)  # dropout draws the same
    theirs, their_grads = autograd.value_and_grad(loss)({k: v.astype("d") for k, v in tree.items()})
    solver = training.solver_of(model, data, labels)
    np.random.seed(0)
    (ours, _), our_grads = solver._compute(model.tree(), model.aux_tree(), *training.batch_of(solver))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5, abs=1e-7)  # a policy's is the mean of what cancels
    for key, theirs in their_grads.items():
        onp.testing.assert_allclose(onp.asarray(our_grads[key]), theirs, rtol=1e-3, atol=1e-5, err_msg=key)


def test_the_adversarial_nets_learn_the_same_in_all():
    steps = adversarial.steps()
    rounds = {name: [steps[name]() for _ in range(4)] for name in ("minnp", "jit", "autograd")}
    for name in ("jit", "autograd"):
        onp.testing.assert_allclose(rounds[name], rounds["minnp"], rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in training.NETS if name not in ("dropout", "transformer", "lstm")])
def test_torchs_loss_of_the_same_parameters_is_the_same(name):
    model, data, labels = training.NETS[name]()
    net, loss = training.torch_models.LOSSES[name](data, labels)
    given = {key: torch.tensor(onp.asarray(value)) for key, value in model.init(0).tree().items()}
    values = iter(given.items())
    for place, parameter in net.named_parameters():
        if "bias_hh" in place:
            parameter.data.zero_()
            continue
        key, value = next(values)
        if "lstm." in key and name == "lstm_captions":  # i, f, o, g; torch's are i, f, g, o
            i, f, o, g = value.chunk(4, -1)
            value = torch.cat([i, f, g, o], -1)
        parameter.data.copy_(value.T if value.ndim == 2 and "embedding" not in key else value)
    assert next(values, None) is None
    solver = training.solver_of(model, data, labels)
    (ours, _), _ = solver._compute(model.tree(), model.aux_tree(), *training.batch_of(solver))
    assert float(ours) == pytest.approx(loss().item(), rel=1e-5)
