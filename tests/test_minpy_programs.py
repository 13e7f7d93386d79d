"""MinPy user programs, as its documentation and tests write them, with `minpy` read as `minnp`."""

import os
import re
import subprocess
import sys
import threading

import numpy
import pytest

import minnp
import minnp.dispatch.policy as policy
import minnp.numpy as np
import minnp.numpy.random as random
from minnp.backends import installed
from minnp.context import Context, cpu, current_context, gpu, set_context
from minnp.core import convert_args, grad, grad_and_loss, minpy_to_numpy, numpy_to_minpy, return_numpy
from minnp.errors import BackendMissingError, NotDifferentiableError
from minnp.primitive import customop
from minnp.utils import minprof as minprof_module
from minnp.utils.gradient_checker import quick_grad_check
from minnp.utils.minprof import Profiler, minprof


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2) + 1)


def logistic_regression():
    """MinPy's logistic regression: (data, targets, start weights, loss)."""
    random.seed(0)
    inputs = random.rand(64, 20) - 0.5
    targets = np.zeros((64, 5))
    targets[np.arange(64), random.randint(0, 5, 64)] = 1
    weights = random.rand(20, 5) - 0.5

    def training_loss(weights, inputs):
        preds = sigmoid(np.dot(inputs, weights))
        label_probabilities = preds * targets + (1 - preds) * (1 - targets)
        return -np.sum(np.log(label_probabilities))

    return inputs, weights, training_loss


def test_logistic_regression_trains_in_place():
    inputs, weights, training_loss = logistic_regression()
    gradient = grad(training_loss)
    alias, before = weights, training_loss(weights, inputs)
    for _ in range(30):
        weights -= gradient(weights, inputs) * 0.1
    assert alias is weights
    assert training_loss(weights, inputs) < 0.8 * before


def test_logistic_regression_gradient_checks():
    inputs, weights, training_loss = logistic_regression()
    assert quick_grad_check(lambda w: training_loss(w, inputs), weights, rs=numpy.random.RandomState(0))


def test_gradient_check_tells_a_wrong_gradient(capsys):
    wrong = customop("numpy")(lambda x: x**2)
    wrong.def_grad(lambda y, x: lambda g: g * x)
    assert not quick_grad_check(lambda x: wrong(x), np.arange(1.0, 4.0), rs=numpy.random.RandomState(0))
    assert "DISAGREES" in capsys.readouterr().out
    assert quick_grad_check(lambda x: x * x, 3.0, verbose=False)
    assert capsys.readouterr().out == ""


def test_one_index_gives_a_bare_gradient_and_several_a_list():
    def f(x, y):
        return x * y

    assert float(grad(f)(2.0, 3.0)) == 3.0
    assert float(grad(f, argnum=[0])(2.0, 3.0)) == 3.0
    assert isinstance(grad(f, [0, 1])(2.0, 3.0), list)
    (dx, dy), loss = grad_and_loss(f, argnum=range(2))(2.0, 3.0)
    assert (float(dx), float(dy), float(loss)) == (3.0, 2.0, 6.0)


@pytest.mark.parametrize("wrapped", [lambda f: f, minnp.jit])
def test_a_tuple_of_indices_gives_a_tuple_as_in_autograd_and_jax(wrapped):
    def f(x, y):
        return x * y

    for options in ({"argnum": (0,)}, {"argnums": (0,)}, {"argnums": [0]}, {"argnum": range(1)}):
        assert wrapped(grad(f, **options))(2.0, 3.0) == (3.0,)
        assert wrapped(minnp.value_and_grad(f, **options))(2.0, 3.0) == (6.0, (3.0,))
    assert wrapped(grad(f, (1, 0)))(2.0, 3.0) == (2.0, 3.0)
    program = minnp.fx.symbolic_trace(lambda x, y: grad(f, (1,))(x, y)[0] * 2)
    assert program(2.0, 3.0) == 4.0


@pytest.mark.host("counts what NumPy runs")
def test_op_statistics_say_what_ran_where(capsys):
    inputs, weights, training_loss = logistic_regression()
    np.record_op_stat()
    for _ in range(3):
        grad(training_loss)(weights, inputs)
    np.show_op_stat()
    out = capsys.readouterr().out
    assert re.search(r"^numpy: 100.0% of \d+ calls$", out, re.MULTILINE)
    assert re.search(r"^  log: 3$", out, re.MULTILINE)
    np.record_op_stat()
    np.policy.show_op_stat()
    assert "log" not in capsys.readouterr().out


# ------------------------------------------------------------------ policies
def test_a_function_runs_under_its_policy_and_leaves_the_global_one():
    before = minnp.get_global_policy()

    @minnp.wrap_policy(policy.OnlyNumPyPolicy())
    def foo(a, b):
        assert np.policy.current() == minnp.policy("only_numpy")
        return np.log(a + b)

    assert float(np.sum(foo(np.ones((2, 2)), np.zeros((2, 2))))) == 0.0
    assert minnp.get_global_policy() == before
    with minnp.OnlyNumPyPolicy():
        assert np.policy.current().name == "only_numpy"


def test_the_global_policy_by_name_or_object():
    before = minnp.get_global_policy()
    try:
        minnp.set_global_policy("only_numpy")
        assert minnp.get_global_policy().name == "only_numpy"
        np.set_policy(policy.AutoPolicy())
        assert minnp.get_global_policy().name == "auto"
        minnp.set_backend("numpy")
        assert minnp.get_global_policy().name == "only_numpy"
    finally:
        minnp.set_global_policy(before)


@pytest.mark.parametrize("ask", [minnp.set_global_policy, minnp.policy, minnp.set_backend])
def test_an_unknown_policy_or_backend_lists_the_known_ones(ask):
    with pytest.raises(ValueError, match=r"unknown (policy|backend) 'prefer_cafe'.*known: .*mxnet"):
        ask("prefer_cafe")


@pytest.mark.parametrize("manager", [minnp.policy("only_numpy"), cpu(3)], ids=repr)
def test_two_threads_may_be_inside_one_policy_or_context(manager):
    def force():
        return np.policy.current(), current_context()

    outside = force()
    inside, left = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)
    seen = []

    def first():
        with manager:
            inside.wait()
            left.wait()
            seen.append(force())
        seen.append(force())

    thread = threading.Thread(target=first)
    thread.start()
    with manager:
        inside.wait()
    assert force() == outside
    left.wait()
    thread.join()
    assert seen[1] == outside
    assert manager in seen[0]


def test_the_environment_names_the_backend():
    def policy_with(backend):
        environment = {**os.environ, "MINNP_BACKEND": backend}
        code = "import minnp; print(minnp.get_global_policy().name)"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
        )

    assert policy_with("numpy").stdout.strip() == "only_numpy"
    assert "unknown backend 'caffe'" in policy_with("caffe").stderr
    mxnet = policy_with("mxnet")
    if "mxnet" in installed():
        assert mxnet.stdout.strip() == "prefer_mxnet"
    else:
        assert "pip install mxnet==1.9.1" in mxnet.stderr


# ------------------------------------------------------------------ contexts
def test_contexts_nest_and_restore():
    assert current_context() == cpu()
    with Context(cpu(1)) as outer:
        assert current_context() == outer == cpu(1)
        with cpu():
            assert current_context() == cpu()
            assert np.ones(3).context == cpu()
        assert current_context() == cpu(1)
    set_context(cpu(2))
    assert repr(current_context()) == "cpu(2)"
    set_context(cpu())
    assert current_context() == cpu() != gpu()


def test_a_device_nobody_reaches_is_an_error_where_it_is_asked_for():
    with pytest.raises(BackendMissingError, match=r"no backend reaches gpu\(77\)"), gpu(77):
        raise AssertionError("the context was entered")
    assert current_context() == cpu()
    with pytest.raises(ValueError, match="unknown device type 'tpu'"):
        Context("tpu")


# ------------------------------------------------------------------ conversions
def test_conversions_reach_into_containers():
    a = numpy.arange(3.0)
    ours = numpy_to_minpy({"a": a, "b": [a, 2.0]})
    assert type(ours["a"]) is np.ndarray is type(ours["b"][0])
    assert ours["b"][1] == 2.0
    ours["a"][0] = 7.0
    assert a[0] == 7.0
    back = minpy_to_numpy(ours)
    assert type(back["a"]) is numpy.ndarray is type(back["b"][0])


def test_convert_args_and_return_numpy():
    @return_numpy
    @convert_args
    def simple_add(a, b):
        assert type(a) is np.ndarray is type(b)
        return a + b

    total = simple_add(numpy.ones((2, 2)), b=numpy.zeros((2, 2)))
    assert type(total) is numpy.ndarray
    assert total.sum() == 4.0


def test_asnumpy_and_wait_to_read():
    x = np.ones((2, 3))
    x.wait_to_read()
    assert type(x.asnumpy()) is numpy.ndarray
    assert x.context == cpu()


# ------------------------------------------------------------------ MXNet's two functions in MinPy's namespace
def test_onehot_encode_writes_and_returns_its_second_argument():
    out = np.ones((2, 3))
    assert np.onehot_encode(np.array([2.0, 0.0]), out) is out
    assert out.tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(ValueError, match="onehot_encode"):
        np.onehot_encode(np.array([1]), out)


def test_slice_axis_is_a_view_along_one_axis():
    x = np.arange(6.0).reshape(2, 3)
    part = np.slice_axis(x, axis=-1, begin=1, end=None)
    part[...] = 0
    assert x.tolist() == [[0, 0, 0], [3, 0, 0]]
    assert np.slice_axis([[1, 2], [3, 4]], axis=0, begin=0, end=-1).tolist() == [[1, 2]]
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        np.slice_axis(x, axis=2, begin=0, end=1)


@pytest.mark.parametrize("label", [[0, 2], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
def test_softmax_output_is_a_loss_layer(label):
    x = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
    y = np.softmax_output(x, np.array(label))
    assert np.allclose(y.sum(axis=1), 1)
    expected = y.asnumpy() - [[1, 0, 0], [0, 0, 1]]
    assert np.allclose(grad(lambda x: np.softmax_output(x, np.array(label)))(x), expected)
    assert np.allclose(grad(lambda x: 100 * np.softmax_output(x, np.array(label)))(x), expected)


# ------------------------------------------------------------------ customop
@customop("numpy")
def softmax_loss(x, y):
    probs = numpy.exp(x - numpy.max(x, axis=1, keepdims=True))
    probs /= numpy.sum(probs, axis=1, keepdims=True)
    return -numpy.sum(numpy.log(probs[numpy.arange(len(y)), y])) / len(y)


def softmax_loss_gradient(ans, x, y):
    def gradient(g):
        probs = numpy.exp(x - numpy.max(x, axis=1, keepdims=True))
        probs /= numpy.sum(probs, axis=1, keepdims=True)
        probs[numpy.arange(len(y)), y] -= 1
        return g * probs / len(y)

    return gradient


softmax_loss.def_grad(softmax_loss_gradient)


def test_customop_inside_a_minpy_program():
    x, y = np.array([[0.2, 1.9, 2.3], [0.3, 1.6, 1.2]]), np.array([2, 0])

    def plain(x):
        return -np.mean((x - np.log(np.sum(np.exp(x), axis=1, keepdims=True)))[np.arange(2), y])

    assert np.allclose(softmax_loss(x, y), plain(x))
    assert np.allclose(grad(lambda x: softmax_loss(2 * x, y))(x), grad(lambda x: plain(2 * x))(x))
    assert softmax_loss.__name__ == "softmax_loss"


def test_customop_derivatives_by_position_keyword_and_together():
    f = customop("numpy")(lambda a, b, c, k=1.0: a * b + c * k)
    f.def_multiple_grad(lambda y, a, b, c, k=1.0: lambda g: (g * b, g * a), (0, 1))
    f.def_grad_zero(2).def_grad_kw(lambda y, a, b, c, k=1.0: lambda g: g * c, "k")
    assert [float(g) for g in grad(f, argnum=[0, 1, 2])(2.0, 3.0, 4.0)] == [3.0, 2.0, 0.0]
    assert float(grad(lambda k: f(2.0, 3.0, 4.0, k=k))(1.0)) == 4.0
    with pytest.raises(ValueError, match="same argument twice"):
        f.def_multiple_grad(None, (1, 1))


def test_customop_without_a_derivative_says_how_to_give_one():
    f = customop("numpy")(lambda a, k=1.0: a * k)
    with pytest.raises(NotDifferentiableError, match=r"argument 0; .*def_grad\(rule, argnum=0\)"):
        grad(f)(1.0)
    with pytest.raises(NotDifferentiableError, match=r"argument 'k'; .*def_grad_kw\(rule, 'k'\)"):
        grad(lambda k: f(1.0, k=k))(1.0)
    f.def_grad(lambda y, a, k=1.0: lambda g: g * k)
    with pytest.raises(NotDifferentiableError, match="derivative has no gradient"):
        grad(grad(f))(1.0)
    with pytest.raises(ValueError, match="customop"):
        customop("caffe")


# ------------------------------------------------------------------ minprof
def test_minprof_counts_functions_and_blocks(capsys, tmp_path):
    profile = Profiler()

    @profile
    def recursive(i):
        return i if i == 0 else recursive(i - 1)

    recursive(9)
    with profile("a block"), profile():
        pass
    stats = {name: calls for (_, _, name), (calls, _) in profile.get_stats().items()}
    assert [n for name, n in stats.items() if name.endswith("recursive")] == [10]
    assert stats["a block"] == stats["block"] == 1
    assert all(seconds >= 0 for _, seconds in profile.get_stats().values())
    profile.print_stats()
    assert "a block" in capsys.readouterr().out
    profile.dump_stats(tmp_path / "times")
    assert (tmp_path / "times").stat().st_size
    profile.clear()
    assert profile.get_stats() == {}


def test_minprof_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(minprof_module, "ENABLED", False)
    assert minprof(abs) is abs
    with minprof("nothing"):
        pass
    assert "nothing" not in {name for _, _, name in minprof.get_stats()}
