"""Function: real MXNet symbols inside NumPy programs."""

import subprocess
import sys
import threading

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
from minnp import Function, backends, errors, fx, grad, npx

if "mxnet" not in backends.installed():
    pytest.skip("mxnet is not installed", allow_module_level=True)

import mxnet as mx

SHAPE = (2, 3, 6, 6)


def random(*shape, seed=0, dtype="f8"):
    return onp.random.default_rng(seed).normal(size=shape).astype(dtype)


def conv_symbol(filters=32):
    return mx.sym.Convolution(mx.sym.Variable("x"), name="conv", kernel=(3, 3), num_filter=filters, no_bias=True)


def reference(x, w):
    return npx.convolution(x, w, kernel=(3, 3), num_filter=w.shape[0], no_bias=True)


def test_the_announcements_program_runs_as_printed():
    program = """
import minnp.numpy as np
import mxnet as mx
from minnp.core import Function
net = mx.sym.Variable('x')
net = mx.sym.Convolution(net, name='conv', kernel=(3, 3), num_filter=32, no_bias=True)
conv = Function(net, input_shapes={'x': (8, 3, 10, 10)})
y = np.exp(conv(x=np.zeros((8, 3, 10, 10)), conv_weight=np.ones((32, 3, 3, 3))))
print(y.shape, y.min(), y.max())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(8, 32, 8, 8) 1.0 1.0", done.stderr


# ------------------------------------------------------------------ values
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_and_dtype_are_numpys(dtype):
    conv = Function(conv_symbol())
    x, w = random(*SHAPE, dtype=dtype), random(32, 3, 3, 3, seed=1, dtype=dtype)
    y = conv(x=x, conv_weight=w)
    assert type(y) is np.ndarray and y.dtype == dtype
    onp.testing.assert_allclose(onp.asarray(y), reference(x, w), rtol=1e-4, atol=1e-5)


def test_a_new_weight_counts_at_every_call():
    """MXNet's fused and re-laid weights would be those of the first call."""
    conv = Function(conv_symbol(16))
    for seed in range(4):
        x, w = random(*SHAPE, seed=seed, dtype="f4"), random(16, 3, 3, 3, seed=seed + 9, dtype="f4")
        for _ in range(2):
            onp.testing.assert_allclose(onp.asarray(conv(x=x, conv_weight=w)), reference(x, w), rtol=1e-4, atol=1e-4)


def test_arguments_are_read_and_never_written_to():
    conv = Function(conv_symbol())
    x, w = random(*SHAPE, dtype="f4"), random(32, 3, 3, 3, dtype="f4")
    before = x.copy(), w.copy()
    x.flags.writeable = w.flags.writeable = False
    for is_train in (False, True):
        conv(x=x, conv_weight=w, is_train=is_train)
    assert (x == before[0]).all() and (w == before[1]).all()


def test_lists_numbers_views_and_integers_are_arguments_too():
    add = Function(mx.sym.broadcast_add(mx.sym.Variable("a"), mx.sym.Variable("b")))
    assert add(a=[[1, 2, 3]], b=[[0.5]]).tolist() == [[1.5, 2.5, 3.5]]
    assert add(a=np.arange(6.0).reshape(2, 3).T[::-1], b=np.ones((1, 1), int)).tolist() == [[3, 6], [2, 5], [1, 4]]


def test_a_result_is_not_overwritten_by_the_next_call():
    double = Function(mx.sym.Variable("x") * 2)
    first = double(x=np.ones(3))
    double(x=np.zeros(3))
    assert first.tolist() == [2, 2, 2]


def test_another_batch_size_is_bound_anew_and_both_are_kept():
    conv = Function(conv_symbol(), input_shapes={"x": (8, 3, 10, 10)})
    w = random(32, 3, 3, 3)
    for batch in (8, 4, 8, 4):
        assert conv(x=np.zeros((batch, 3, 10, 10)), conv_weight=w).shape == (batch, 32, 8, 8)
    assert [len(executors) for executors in conv._program.idle.values()] == [1, 1]


def test_several_results_come_as_a_tuple():
    x = mx.sym.Variable("x")
    pair = Function(mx.sym.Group([mx.sym.exp(x), mx.sym.sum(x, axis=1)]), input_shapes={"x": (2, 3)}, name="pair")
    e, s = pair(x=np.ones((2, 3)))
    assert e.shape == (2, 3) and s.tolist() == [3, 3]
    assert [*pair.get_output_shapes().values()] == [(2, 3), (2,)]
    g = grad(lambda x: np.sum(pair(x=x)[1] * np.array([1.0, 10.0])))(np.ones((2, 3)))
    assert g.tolist() == [[1, 1, 1], [10, 10, 10]]
    with pytest.raises(errors.SymbolError, match="pair has 2 results"):
        pair.get_one_output_shape()


# ------------------------------------------------------------------ gradients
def test_gradients_for_every_input():
    conv = Function(conv_symbol(4))
    x, w = random(*SHAPE), random(4, 3, 3, 3, seed=1)
    ours = grad(lambda x, w: np.sum(np.tanh(conv(x=x, conv_weight=w))), argnum=(0, 1))(x, w)
    rows = grad(lambda x, w: np.sum(np.tanh(reference(x, w))), argnum=(0, 1))(x, w)
    for a, b in zip(ours, rows):
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), atol=1e-10)


def test_any_number_of_calls_before_one_backward():
    cell = Function(
        mx.sym.tanh(mx.sym.FullyConnected(mx.sym.Variable("h"), name="fc", num_hidden=4, no_bias=True)), name="cell"
    )
    h, w = random(2, 4), random(4, 4, seed=1)

    def symbolic(h, w):
        for _ in range(5):
            h = cell(h=h, fc_weight=w)
        return np.sum(h)

    def plain(h, w):
        for _ in range(5):
            h = np.tanh(h @ w.T)
        return np.sum(h)

    for a, b in zip(grad(symbolic, argnum=(0, 1))(h, w), grad(plain, argnum=(0, 1))(h, w)):
        onp.testing.assert_allclose(onp.asarray(a), onp.asarray(b), atol=1e-12)
    assert not cell._program.calls  # every executor is back in the pool
    (executors,) = [e for key, e in cell._program.idle.items() if key[2]]
    assert len(executors) <= 5


def test_a_pullback_may_be_asked_twice_and_in_any_order():
    square = Function(mx.sym.Variable("x") ** 2)
    f = lambda x: square(x=x)
    _, back1 = minnp.vjp(f, np.array([1.0, 2.0]))
    _, back2 = minnp.vjp(f, np.array([5.0, 7.0]))
    for back, expected in ((back1, [2, 4]), (back2, [10, 14]), (back1, [2, 4])):
        g = back(np.ones(2))
        g = g[0] if isinstance(g, tuple) else g
        assert g.tolist() == expected


def test_a_write_to_an_argument_after_the_call_does_not_change_its_gradient():
    square = Function(mx.sym.Variable("x") ** 2)

    def f(x):
        y = x * 1.0
        z = square(x=y)
        y[:] = 100.0
        return np.sum(z)

    assert grad(f)(np.array([1.0, 2.0])).tolist() == [2, 4]


def test_an_exception_between_the_calls_gives_the_executor_back():
    square = Function(mx.sym.Variable("x") ** 2)

    def f(x):
        square(x=x)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        grad(f)(np.ones(2))
    assert grad(lambda x: np.sum(square(x=x)))(np.ones(2)).tolist() == [2, 2]


def test_an_integer_argument_has_no_gradient_and_stops_none():
    pick = Function(mx.sym.pick(mx.sym.Variable("x"), mx.sym.Variable("i"), axis=1))
    g = grad(lambda x: np.sum(pick(x=x, i=np.array([0, 2]))))(np.ones((2, 3)))
    assert g.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_a_second_derivative_says_that_there_is_none():
    square = Function(mx.sym.Variable("x") ** 2, name="square")
    inner = grad(lambda x: np.sum(square(x=x)))
    with pytest.raises(
        errors.NotDifferentiableError, match=r"square has no second derivative.*fx\.from_mxnet\(symbol\)"
    ):
        grad(lambda x: np.sum(inner(x) ** 2))(np.ones(2))


def test_a_symbol_converted_as_that_error_says_has_second_derivatives():
    symbol = mx.sym.FullyConnected(mx.sym.Variable("x") ** 3, name="fc", num_hidden=2, no_bias=True)
    once, often = Function(symbol), fx.GraphModule({}, fx.from_mxnet(symbol))
    x, w = np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 0.5, 2.0], [0.0, 1.0, 1.0]])
    slopes = [grad(lambda x: np.sum(f(x=x, fc_weight=w)))(x) for f in (once, often)]  # noqa: B023
    onp.testing.assert_allclose(*map(onp.asarray, slopes), rtol=1e-12)
    inner = grad(lambda x: np.sum(often(x=x, fc_weight=w)))
    onp.testing.assert_allclose(onp.asarray(grad(lambda x: np.sum(inner(x)))(x)), [[6.0, 18.0, 54.0]], rtol=1e-12)


def test_a_gradient_through_inference_says_what_to_do():
    square = Function(mx.sym.Variable("x") ** 2, name="square")
    with pytest.raises(errors.NotDifferentiableError, match="is_train=True"):
        grad(lambda x: np.sum(square(x=x, is_train=False)))(np.ones(2))


# ------------------------------------------------------------------ training and inference
def test_states_are_updated_in_training_and_used_in_inference():
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn", fix_gamma=False, momentum=0.5, eps=1e-3)
    norm = Function(net, input_shapes={"x": (8, 3)})
    one, zero = np.ones(3), np.zeros(3)
    x = random(8, 3) * 3 + 1
    states = norm.get_aux_states()
    assert [s.tolist() for s in states.values()] == [[0, 0, 0], [1, 1, 1]]
    onp.testing.assert_allclose(onp.asarray(norm(x=x, bn_gamma=one, bn_beta=zero)), x / onp.sqrt(1.001), rtol=1e-6)

    loss = lambda gamma: np.sum(norm(x=x, bn_gamma=gamma, bn_beta=zero) ** 2)
    for step in range(1, 4):
        grad(loss)(one)
        kept = 0.5**step
        onp.testing.assert_allclose(
            onp.asarray(norm.get_aux_states()["bn_moving_mean"]), (1 - kept) * x.mean(axis=0), rtol=1e-4
        )
    states = norm.get_aux_states()
    mean, var = (onp.asarray(s) for s in states.values())
    expected = (x - mean) / onp.sqrt(var + 1e-3)
    onp.testing.assert_allclose(onp.asarray(norm(x=x, bn_gamma=one, bn_beta=zero)), expected, rtol=1e-5)

    states["bn_moving_mean"][:] = 0.0  # the arrays in use
    states["bn_moving_var"][:] = 1.0
    onp.testing.assert_allclose(onp.asarray(norm(x=x, bn_gamma=one, bn_beta=zero)), x / onp.sqrt(1.001), rtol=1e-6)


def test_is_train_decides_what_dropout_does():
    drop = Function(mx.sym.Dropout(mx.sym.Variable("x"), p=0.5))
    x = np.ones(1000)
    assert (drop(x=x) == 1).all()
    assert (drop(x=x, is_train=True) == 0).any()
    g = grad(lambda x: np.sum(drop(x=x)))(x)  # a gradient is being taken: training
    assert set(g.tolist()) == {0.0, 2.0}


def test_a_loss_layer_brings_its_own_gradient():
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("x"), mx.sym.Variable("label"), name="softmax")
    loss = Function(net)
    x, label = random(4, 3), np.array([0, 1, 2, 0])
    g = grad(lambda x: np.sum(loss(x=x, label=label)))(x)
    p = onp.exp(x) / onp.exp(x).sum(axis=1, keepdims=True)
    onp.testing.assert_allclose(onp.asarray(g), p - onp.eye(3)[[0, 1, 2, 0]], atol=1e-6)


# ------------------------------------------------------------------ what it says
def test_shapes_are_known_before_the_first_call():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5)
    layer = Function(net, input_shapes={"x": (2, 3)}, name="layer")
    assert layer.get_params() == {"fc_weight": {"shape": (5, 3)}, "fc_bias": {"shape": (5,)}}
    assert layer.get_output_shapes() == {"fc_output": (2, 5)}
    assert layer.get_one_output_shape() == (2, 5)
    assert repr(layer) == "Function('layer': x, fc_weight, fc_bias -> fc_output)"


def test_without_input_shapes_the_first_call_tells_them():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5, no_bias=True)
    layer = Function(net, name="layer")
    with pytest.raises(errors.SymbolError, match=r"layer knows no shapes yet.*'x'"):
        layer.get_params()
    layer(x=np.ones((2, 3)), fc_weight=np.ones((5, 3)))
    assert layer.get_one_output_shape() == (2, 5)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": (2, 3)}, r"layer lacks 'fc_weight'; it expects x \(2, 3\), fc_weight \(5, 3\)"),
        ({"x": (2, 3), "weight": (5, 3)}, r"has no argument 'weight' and lacks 'fc_weight'.*fc_weight \(5, 3\)"),
        ({"x": (2, 3), "fc_weight": (5, 4)}, r"cannot run on x \(2, 3\), fc_weight \(5, 4\).*expects.*\(5, 3\)"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_wrong_names_and_shapes_list_what_is_expected(inputs, message, known, capfd):
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5, no_bias=True)
    layer = Function(net, input_shapes={"x": (2, 3)} if known else None, name="layer")
    with pytest.raises(errors.SymbolError, match=message):
        layer(**{name: np.ones(shape) for name, shape in inputs.items()})
    assert capfd.readouterr().out == ""


def test_parameters_of_the_rest_of_a_model_may_be_given_too():
    """As MinPy's examples call a symbol: conv(X=x, **self.params)."""
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5, no_bias=True)
    layer = Function(net, input_shapes={"x": (2, 3)})
    params = {"fc_weight": np.ones((5, 3)), "w1": np.ones((5, 4))}
    assert layer(x=np.ones((2, 3)), **params).tolist() == [[3.0] * 5] * 2
    slopes = grad(lambda p: np.sum(layer(x=np.ones((2, 3)), **p)))(params)
    assert slopes["fc_weight"].tolist() == [[2.0] * 3] * 5 and not slopes["w1"].any()
    with pytest.raises(errors.SymbolError, match="has no argument 'is_trian'"):
        layer(x=np.ones((2, 3)), is_trian=True, **params)
    with pytest.raises(errors.SymbolError, match="has no argument 'fc_weigth', 'w1' and lacks 'fc_weight'"):
        layer(x=np.ones((2, 3)), fc_weigth=np.ones((5, 3)), w1=params["w1"])


def test_arguments_may_be_given_by_position():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5, no_bias=True)
    layer = Function(net, input_shapes={"x": (2, 3)}, name="layer")
    x, w = np.ones((2, 3)), np.full((5, 3), 2.0)
    assert layer(x, w).tolist() == layer(x, fc_weight=w).tolist() == layer(x=x, fc_weight=w).tolist() == [[6.0] * 5] * 2
    assert grad(lambda x, w: np.sum(layer(x, w)), 1)(x, w).tolist() == [[2.0] * 3] * 5
    with pytest.raises(errors.SymbolError, match=r"layer got 'x' twice, by position and by name; it expects x"):
        layer(x, x=x, fc_weight=w)
    with pytest.raises(errors.SymbolError, match=r"layer got 3 arguments; it expects x \(2, 3\), fc_weight \(5, 3\)"):
        layer(x, w, w)
    with pytest.raises(errors.SymbolError, match=r"layer lacks 'fc_weight'"):
        layer(x)


@pytest.mark.parametrize(
    "shapes", [{"x", (2, 3)}, [("x", (2, 3))], (2, 3), {"x": 3}], ids=["set", "list", "tuple", "number"]
)
def test_input_shapes_that_are_no_dict_of_shapes_are_refused(shapes):
    """MinPy's announcement prints a set."""
    with pytest.raises(TypeError, match=r"input_shapes is a dict .*, for example \{'x': \(8, 3, 10, 10\)\}"):
        Function(mx.sym.exp(mx.sym.Variable("x")), input_shapes=shapes)


def test_wrong_input_shapes_are_refused_when_the_function_is_made():
    net = mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=5)
    with pytest.raises(errors.SymbolError, match=r"has no argument 'y'.*it expects x, fc_weight, fc_bias"):
        Function(net, input_shapes={"y": (2, 3)})
    with pytest.raises(errors.SymbolError, match=r"input_shapes x \(2, 3\), fc_weight \(5, 4\) do not fit"):
        Function(net, input_shapes={"x": (2, 3), "fc_weight": (5, 4)})


def test_what_is_not_a_symbol_is_refused():
    with pytest.raises(TypeError, match="expected a symbol"):
        Function(lambda x: x)


# ------------------------------------------------------------------ around it
@pytest.mark.parametrize("policy", ["auto", "prefer_mxnet", "only_mxnet", "only_numpy"])
def test_it_runs_under_every_policy(policy):
    square = Function(mx.sym.Variable("x") ** 2, name="square")
    with minnp.policy(policy):
        assert grad(lambda x: square(x=x).sum())(np.ones(2)).tolist() == [2, 2]


def test_the_report_names_it():
    minnp.reset_report()
    Function(mx.sym.Variable("x") ** 2, name="square")(x=np.ones(3))
    rows = [r for r in minnp.report() if r["function"] == "square"]
    assert [(r["backend"], r["calls"]) for r in rows] == [("mxnet", 1)]


def test_threads_do_not_share_an_executor():
    net = mx.sym.tanh(mx.sym.FullyConnected(mx.sym.Variable("x"), name="fc", num_hidden=8, no_bias=True))
    layer = Function(net)
    wrong = []

    def work(seed):
        x, w = random(16, 32, seed=seed), random(8, 32, seed=seed + 100)
        for _ in range(20):
            if not onp.allclose(onp.asarray(layer(x=x, fc_weight=w)), onp.tanh(x @ w.T)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_on_a_place_the_arrays_stay_there():
    conv = Function(conv_symbol(4))
    x, w = random(*SHAPE, dtype="f4"), random(4, 3, 3, 3, seed=1, dtype="f4")
    with minnp.Context("cpu", 0, "mxnet"):
        px, pw = np.array(x), np.array(w)
        y = conv(x=px, conv_weight=pw)
        assert y.context == minnp.Context("cpu", 0, "mxnet")
        onp.testing.assert_allclose(y.asnumpy(), reference(x, w), rtol=1e-4, atol=1e-4)
        g = grad(lambda w: np.sum(conv(x=px, conv_weight=w) ** 2))(pw)
    expected = grad(lambda w: np.sum(reference(x, w) ** 2))(w)
    onp.testing.assert_allclose(g.asnumpy(), onp.asarray(expected), rtol=1e-3, atol=1e-3)
