"""The four programs of MinPy's announcement, as printed there, with `minpy` read as `minnp`."""

import pytest

import minnp.numpy as np
from minnp.core import grad


def test_imperative_programming():
    a = np.ones(10)
    b = np.ones(10) * 2
    c = b * a
    d = c + 1
    assert np.array_equal(d, np.full(10, 3.0))


def test_gradient_through_a_branch(capsys):
    def foo(x):
        if x >= 0:
            return x
        else:
            return 2 * x

    foo_grad = grad(foo)
    print(foo_grad(3))
    print(foo_grad(-1))
    assert capsys.readouterr().out.split() == ["1.0", "2.0"]


@pytest.mark.parametrize("policy", ["auto", "prefer_mxnet"])
def test_a_function_without_a_kernel_falls_back(policy):
    import minnp

    if policy == "prefer_mxnet":
        pytest.importorskip("mxnet", reason="mxnet is not installed: pip install mxnet==1.9.1")
    with minnp.policy(policy):
        minnp.reset_report()
        x = np.zeros((2, 3))
        y = np.ones((2, 3))
        z = np.logaddexp(x, y)
    assert np.allclose(z, 1.3132616875182228)
    entry = next(r for r in minnp.report() if r["function"] == "logaddexp")
    assert (entry["backend"], entry["calls"]) == ("numpy", 1)
    if policy == "prefer_mxnet":
        assert "mxnet" in entry["why"]


def test_a_symbol_in_a_numpy_program():
    from minnp.backends import installed

    if "mxnet" not in installed():
        pytest.skip("mxnet is not installed: pip install mxnet==1.9.1")
    import mxnet as mx

    from minnp.core import Function

    net = mx.sym.Variable("x")
    net = mx.sym.Convolution(net, name="conv", kernel=(3, 3), num_filter=32, no_bias=True)
    conv = Function(net, input_shapes={"x": (8, 3, 10, 10)})

    y = np.exp(conv(x=np.zeros((8, 3, 10, 10)), conv_weight=np.ones((32, 3, 3, 3))))
    assert y.shape == (8, 32, 8, 8)
    assert np.array_equal(y, np.ones(y.shape))
    weight_gradient = grad(lambda w: np.sum(conv(x=np.ones((8, 3, 10, 10)), conv_weight=w)))(np.ones((32, 3, 3, 3)))
    assert np.array_equal(weight_gradient, np.full((32, 3, 3, 3), 8.0 * 64))
