"""The notebooks of assignment 2: every layer against differences, and the fast ones against the naive ones."""

import numpy as np

from . import layers as L
from .gradient_check import eval_numerical_gradient, eval_numerical_gradient_array, grad_check_sparse, rel_error


def compared(forward, backward, *inputs):
    """(output, gradients by hand), checked against differences in every input."""
    out, cache = forward(*inputs)
    dout = np.random.randn(*out.shape)
    grads = backward(dout, cache)
    grads = grads if isinstance(grads, tuple) else (grads,)
    for i, (x, grad) in enumerate(zip(inputs, grads)):
        f = lambda x: forward(*inputs[:i], x, *inputs[i + 1 :])[0]
        numeric = eval_numerical_gradient_array(f, x, dout)
        assert rel_error(numeric, grad) < 1e-4, (forward.__name__, i)
    return out, grads


def main():
    np.random.seed(231)
    results = {}
    x, w, b = np.random.randn(4, 2, 3), np.random.randn(6, 5), np.random.randn(5)
    results["affine"] = compared(L.affine_forward, L.affine_backward, x, w, b)
    shape = (2, 3, 4)
    affine = L.affine_forward(
        np.linspace(-0.1, 0.5, num=2 * np.prod(shape)).reshape(2, *shape),
        np.linspace(-0.2, 0.3, num=np.prod(shape) * 3).reshape(np.prod(shape), 3),
        np.linspace(-0.3, 0.1, num=3),
    )
    results["affine, as printed in the notebook"] = affine[0]
    results["relu"] = compared(L.relu_forward, L.relu_backward, np.random.randn(5, 4))

    x, gamma, beta = 5 * np.random.randn(4, 5) + 12, np.random.randn(5), np.random.randn(5)
    for name, backward in (("", L.batchnorm_backward), (" alt", L.batchnorm_backward_alt)):
        forward = lambda x, gamma, beta: L.batchnorm_forward(x, gamma, beta, {"mode": "train"})
        results["batchnorm" + name] = compared(forward, backward, x, gamma, beta)
    bn_param = {"mode": "train"}
    for t in range(50):
        L.batchnorm_forward(np.random.randn(20, 5) * 2 + 1, gamma, beta, bn_param)
    bn_param["mode"] = "test"
    results["batchnorm at test time"] = L.batchnorm_forward(x, gamma, beta, bn_param)[0], bn_param
    results["layernorm"] = compared(
        lambda x, gamma, beta: L.layernorm_forward(x, gamma, beta, {}), L.layernorm_backward, x, gamma, beta
    )
    dropped = lambda x: L.dropout_forward(x, {"mode": "train", "p": 0.2, "seed": 123})
    results["dropout"] = compared(dropped, L.dropout_backward, np.random.randn(6, 6) + 10)

    x, w, b = np.random.randn(2, 3, 5, 5), np.random.randn(2, 3, 3, 3), np.random.randn(2)
    for stride, pad in ((1, 1), (2, 1), (2, 0)):
        param = {"stride": stride, "pad": pad}
        naive = lambda x, w, b: L.conv_forward_naive(x, w, b, param)
        out, grads = results[f"conv {stride} {pad}"] = compared(naive, L.conv_backward_naive, x, w, b)
        fast, cache = L.conv_forward_im2col(x, w, b, param)
        strided, _ = L.conv_forward_strides(x, w, b, param)
        assert rel_error(out, fast) < 1e-6 and rel_error(out, strided) < 1e-6
        results[f"fast conv {stride} {pad}"] = fast, strided, L.conv_backward_im2col(fast, cache)

    x = np.random.randn(2, 3, 4, 6)
    pool_param = {"pool_width": 2, "pool_height": 2, "stride": 2}
    pools = (
        (L.max_pool_forward_naive, L.max_pool_backward_naive),
        (
            L.max_pool_forward_reshape,
            L.max_pool_backward_reshape,
        ),
    )
    for forward, backward in pools:
        results[forward.__name__] = compared(lambda x: forward(x, pool_param), backward, x)

    gamma, beta = np.random.randn(3), np.random.randn(3)
    results["spatial batchnorm"] = compared(
        lambda x, gamma, beta: L.spatial_batchnorm_forward(x, gamma, beta, {"mode": "train"}),
        L.spatial_batchnorm_backward, x, gamma, beta,
    )  # fmt: skip
    x, gamma, beta = np.random.randn(2, 6, 3, 2), np.random.randn(1, 6, 1, 1), np.random.randn(1, 6, 1, 1)
    results["groupnorm"] = compared(
        lambda x, gamma, beta: L.spatial_groupnorm_forward(x, gamma, beta, 2, {}),
        L.spatial_groupnorm_backward, x, gamma, beta,
    )  # fmt: skip

    scores, y = 0.001 * np.random.randn(50, 10), np.random.randint(10, size=50)
    for loss in (L.svm_loss, L.softmax_loss):
        value, dx = results[loss.__name__] = loss(scores, y)
        numeric = eval_numerical_gradient(lambda x: loss(x, y)[0], scores, verbose=False)
        assert rel_error(numeric, dx) < 1e-4
        grad_check_sparse(lambda x: loss(x, y)[0], scores, dx)
    return results
