"""What benchmarks/training.py compares is the same model: minnp's and autograd's losses and gradients agree."""

import sys
from pathlib import Path

import numpy as onp
import pytest

autograd = pytest.importorskip("autograd")
pytest.importorskip("torch")  # benchmarks.training needs it
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import training


@pytest.mark.parametrize("name", training.MODELS)
def test_the_model_for_autograd_is_the_tutorials(name):
    model, data, labels, loss = training.for_autograd(name)
    model.init(0)
    tree = {key: onp.asarray(value) for key, value in model.tree().items()}
    theirs, their_grads = autograd.value_and_grad(loss)({k: v.astype("d") for k, v in tree.items()})
    solver = training.solver_of(model, data, labels)
    (ours, _), our_grads = solver._compute(model.tree(), model.aux_tree(), *training.batch_of(solver))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
    for key, theirs in their_grads.items():
        onp.testing.assert_allclose(onp.asarray(our_grads[key]), theirs, rtol=1e-3, atol=1e-5, err_msg=key)
