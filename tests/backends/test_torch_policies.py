"""Where `auto` leaves NumPy for torch: by size, by dtype and by the number of channels."""

import numpy as onp
import pytest

torch = pytest.importorskip("torch", reason="the torch backend needs torch: pip install 'minnp[torch]'")

import minnp
import minnp.numpy as np
from minnp import npx


def arrays(batch, channels, dtype):
    draw = onp.random.default_rng(0).standard_normal
    return [np.array(draw(s).astype(dtype)) for s in ((batch, channels, 16, 16), (32, channels, 3, 3))]


def gradients(x, w, argnums):
    """The gradients under auto, and the backends that each row ran on."""
    minnp.reset_report()
    with minnp.policy("auto"):
        found = minnp.grad(lambda *a: np.sum(np.sin(npx.convolution(*a, pad=(1, 1)))), argnums)(x, w)
    return found, {r["function"]: r["backend"] for r in minnp.report() if r["function"].startswith("npx.conv")}


@pytest.mark.parametrize(
    "batch, dtype, backend", [(32, "f4", "torch"), (1, "f4", "numpy"), (32, "f8", "numpy"), (32, "f2", "numpy")]
)
def test_weights_gradients_of_pictures_go_to_torch_in_single_precision(batch, dtype, backend):
    x, w = arrays(batch, 3, dtype)
    found, ran = gradients(x, w, 1)
    assert ran["npx.conv_weight_grad"] == backend
    exact, _ = gradients(x.astype("f8"), w.astype("f8"), 1)
    rounding = {"f2": 1e-2, "f4": 1e-5, "f8": 1e-12}[dtype] * float(np.max(np.abs(exact)))
    onp.testing.assert_allclose(found, exact, rtol=0, atol=rounding)


@pytest.mark.parametrize(
    "channels, dtype, backend", [(3, "f4", "numpy"), (8, "f4", "torch"), (3, "f8", "torch"), (8, "f2", "numpy")]
)
def test_gradients_of_data_go_to_torch_where_channels_are_many_or_precision_is_double(channels, dtype, backend):
    x, w = arrays(32, channels, dtype)
    _, ran = gradients(x, w, 0)
    # MXNet, which comes first where it is installed, takes the larger of these
    assert ran["npx.conv_transpose"] in {backend, "mxnet"} - ({"mxnet"} if dtype == "f2" else set())
