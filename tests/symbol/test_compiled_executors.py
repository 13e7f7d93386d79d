"""Executors under a policy that prefers torch: what they compile computes what they compute at their first call."""

from __future__ import annotations

import sys
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp.symbol import compiled as symbol_compiled

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, arrays, make

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.host("executors on devices are not compiled")


def network() -> Any:
    """Convolutions, of which one is of the other's sum, batch norms, pooling, a loss."""
    x = sym.Variable("data")
    x = sym.Convolution(x, name="c1", num_filter=4, kernel=(3, 3), pad=(1, 1))
    x = sym.Activation(sym.BatchNorm(x, name="bn1", fix_gamma=False), act_type="relu")
    y = sym.Convolution(x, name="c2", num_filter=4, kernel=(1, 1), no_bias=True)
    x = sym.Pooling(sym.BatchNorm(x + y, name="bn2"), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    return sym.FullyConnected(sym.Flatten(x), name="fc", num_hidden=3)


def bound(net: Any, grad_req: Any = "write", dtype: str = "float64", **shapes: Any) -> Any:
    shapes = shapes or {"data": (2, 3, 8, 6)}
    executor = net.simple_bind(None, grad_req, type_dict=dict.fromkeys(net.list_arguments(), dtype), **shapes)
    draw = onp.random.default_rng(0)
    for group in (executor.arg_dict, executor.aux_dict):
        for name, array in group.items():
            values = draw.integers(0, 3, array.shape) if name.endswith("label") else draw.normal(size=array.shape)
            array[...] = abs(values) if name.endswith(("var", "label")) else values
    return executor


def everything(executor: Any, out_grads: Any = None, is_train: bool = True) -> list:
    """Results, gradients and states of a step, copied."""
    executor.forward(is_train=is_train)
    if is_train:
        executor.backward(out_grads)
    arrays = [*executor.outputs, *[g for g in executor.grad_arrays if g is not None], *executor.aux_arrays]
    return [onp.array(a) for a in arrays]


def same(a: list, b: list) -> None:
    for x, y in zip(a, b, strict=True):
        onp.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * max(1, abs(y).max(initial=0)))


def compiled(executor: Any) -> bool:
    return any(run is not None for _, run in executor._compiled.values())


@pytest.mark.parametrize("loss", [True, False])
@pytest.mark.parametrize("grad_req", ["write", "add", {"data": "write", "c1_weight": "add"}])
def test_steps_are_those_of_an_executor_that_compiles_nothing(loss: bool, grad_req: Any) -> None:
    net = sym.SoftmaxOutput(network(), name="softmax") if loss else network()
    ours, plain = bound(net, grad_req), bound(net, grad_req)
    plain._compiled_for = lambda is_train: None
    heads = None if loss else onp.random.default_rng(1).normal(size=(2, 3))
    with minnp.policy("prefer_torch"):
        for step in range(4):
            same(everything(ours, heads), everything(plain, heads))
            assert compiled(ours) == (step > 0)
            for executor in (ours, plain):
                executor.arg_dict["c1_weight"][...] *= 0.9
        same(everything(ours, is_train=False), everything(plain, is_train=False))
        same(everything(ours, is_train=False), everything(plain, is_train=False))


def test_results_lie_as_numpys_whatever_lies_inside() -> None:
    executor = bound(sym.Convolution(sym.Variable("data"), name="c", num_filter=4, kernel=(3, 3)), dtype="float32")
    with minnp.policy("prefer_torch"):
        for train in (True, True, False, False):
            executor.forward(is_train=train)
            assert executor.outputs[0].flags.c_contiguous
            if train:
                executor.backward(np.ones(executor.outputs[0].shape))
    assert compiled(executor)
    assert all(a.flags.c_contiguous for a in (*executor.arg_arrays, *executor.grad_arrays))


def test_a_write_between_forward_and_backward_does_not_change_the_gradient() -> None:
    ours, heads = bound(network()), onp.ones((2, 3))
    with minnp.policy("prefer_torch"):
        expected = everything(ours, heads)
        weights = ours.arg_dict["fc_weight"].copy(), ours.arg_dict["bn1_gamma"].copy()
        for array in ours.aux_arrays:
            array[...] = 0
        for array in (ours.arg_dict["fc_weight"], ours.arg_dict["bn1_gamma"], ours.arg_dict["data"]):
            was = array.copy()
            ours.forward(is_train=True)
            array[...] = 7
            ours.backward(heads)
            array[...] = was
            got = [onp.array(g) for g in ours.grad_arrays]
            same(got, expected[1 : 1 + len(got)])
    assert compiled(ours) and (weights[0] == ours.arg_dict["fc_weight"]).all()


@pytest.mark.parametrize(
    "net",
    [
        sym.Dropout(sym.Variable("data") * 2, p=0.5),
        sym.Embedding(sym.Variable("data"), name="e", input_dim=3, output_dim=2),
        sym.contrib.boolean_mask(sym.Variable("data"), sym.Variable("index")),
    ],
    ids=["draws", "looks at its data", "shapes that depend on data"],
)
def test_what_is_no_graph_is_not_compiled(net: Any) -> None:
    shapes = {"data": (4, 3)} | ({"index": (4,)} if "index" in net.list_arguments() else {})
    executor = bound(net, {n: "write" for n in net.list_arguments() if n not in ("index",)}, **shapes)
    for name in ("data", "index"):
        if name in executor.arg_dict:
            executor.arg_dict[name][...] = (
                onp.arange(executor.arg_dict[name].size).reshape(executor.arg_dict[name].shape) % 3
            )
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward(np.ones(executor.outputs[0].shape))
        if "index" in executor.arg_dict:
            executor.arg_dict["index"][...] = 1
            executor.forward(is_train=True)
            assert executor.outputs[0].shape == (4, 3)
    assert not compiled(executor)


def test_a_monitor_sees_every_result() -> None:
    executor, seen = bound(network()), []
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            executor.forward(is_train=False)
        executor.set_monitor_callback(lambda name, array: seen.append(name))
        executor.forward(is_train=False)
    assert "c1_output" in seen and "fc_output" in seen


def residual() -> Any:
    """Two units of which each adds its input, as a ResNet has them, and one result inside."""
    layer = lambda x, i: sym.BatchNorm(
        sym.Convolution(x, name=f"c{i}", num_filter=8, kernel=(3, 3), pad=(1, 1), no_bias=i % 2 == 0),
        name=f"bn{i}", fix_gamma=i == 1,
    )  # fmt: skip
    x = sym.relu(layer(sym.Variable("data"), 0))
    for i in (1, 3, 5):
        x = sym.relu(layer(sym.relu(layer(x, i)), i + 1) + x)
        if i == 1:
            inside = x
    return sym.Group([sym.FullyConnected(sym.Flatten(x), name="fc", num_hidden=3), inside])


def fixed(executor: Any) -> Any:
    """What predicts with the parameters as constants, or None."""
    run = executor._compiled[False][1]
    return next(c.cell_contents for c in run.__closure__ if hasattr(c.cell_contents, "wait"))


@pytest.mark.long
def test_predictions_follow_whatever_parameter_is_written() -> None:
    ours, plain = (bound(residual(), "null", "float32", data=(2, 3, 8, 6)) for _ in range(2))
    plain._compiled_for = lambda is_train: None
    with minnp.policy("prefer_torch"):
        for _ in range(6):
            everything(ours, is_train=False)
        assert fixed(ours).run is not None
        expected = everything(plain, is_train=False)
        for name in (*ours.arg_dict, *ours.aux_dict):
            for value in (1.5, onp.nan):
                for executor in (ours, plain):
                    array = (executor.arg_dict | executor.aux_dict)[name]
                    kept = array.copy()
                    onp.asarray(array).flat[-1] = value  # as another library writes
                    got = everything(executor, is_train=False)
                    array[...] = kept
                    if executor is ours:
                        first = got
                for a, b in zip(first, got, strict=True):
                    onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * onp.abs(expected[0]).max(), err_msg=name)
        for _ in range(600):
            everything(ours, is_train=False)
        assert fixed(ours).run is not None
        for a, b in zip(everything(ours, is_train=False), expected, strict=True):
            onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * onp.abs(expected[0]).max())


def test_parameters_that_change_at_every_call_are_soon_left_alone(monkeypatch: Any) -> None:
    executor, made = bound(residual(), "null", "float32", data=(1, 3, 4, 4)), []
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            executor.forward()
        ours = fixed(executor)
        monkeypatch.setattr(ours, "fixed", lambda values, of=ours.fixed: made.append(1) or of(values))
        for _ in range(100):
            executor.arg_dict["c0_weight"][...] *= 0.99
            executor.forward()
        assert ours.run is None and not made and ours.next >= 32


def test_predictions_that_look_at_their_data_are_not_fixed() -> None:
    words = sym.Embedding(sym.Variable("data"), name="e", input_dim=3, output_dim=4)
    net = sym.Convolution(sym.expand_dims(words, 1), name="c", num_filter=2, kernel=(1, 1))
    executor = bound(net, "null", "float32", data=(2, 3))
    with minnp.policy("prefer_torch"):
        for k in range(8):
            executor.arg_dict["data"][...] = k % 3
            executor.forward()
            plain = bound(net, "null", "float32", data=(2, 3))
            plain.arg_dict["data"][...] = k % 3
            onp.testing.assert_allclose(executor.outputs[0], plain.forward()[0], rtol=1e-5)


# Results that are views, and gradients whose places are arrays that the graph computes
VIEWS = ("transpose", "reverse", "slice", "slice_like", "broadcast_to", "_split_v2")
PLACES = ("scatter_nd", "_linalg_makediag", "_linalg_extractdiag", "col2im", "take", "sort")


@pytest.mark.parametrize("name", [*VIEWS, *PLACES])
def test_views_and_places_are_compiled(name: str) -> None:
    inputs, parameters = CASES[name][0]
    net = make(sym, name, parameters, len(inputs))
    given, _ = arrays(net, inputs, name)
    empty = {n: onp.zeros_like(a) for n, a in given.items()}
    executor = net.bind(None, {n: a.copy() for n, a in given.items()}, empty)
    seen = []
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            results = executor.forward(is_train=True)
            heads = [onp.random.default_rng(0).normal(size=y.shape).astype(y.dtype) for y in results]
            executor.backward(heads)
            seen.append([onp.array(a) for a in (*results, *executor.grad_arrays)])
    assert compiled(executor) and all(y.flags.c_contiguous for y in executor.outputs)
    for a, b in zip(seen[0], seen[2], strict=True):
        onp.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ oneDNN's own layouts
def blocked(executor: Any) -> list[bool]:
    return [w.executor.blocked for _, w in executor._compiled.values() if hasattr(w, "executor")]


def steps_beside(net: Any, heads: Any = None, **shapes: Any) -> tuple[Any, list, list]:
    """A float32 executor under prefer_torch, what its third step gives, and what an executor of NumPy's rows gives."""
    ours, plain = (bound(net, dtype="float32", **shapes) for _ in range(2))
    expected = [everything(plain, heads) for _ in range(3)][-1]
    with minnp.policy("prefer_torch"):
        got = [everything(ours, heads) for _ in range(3)][-1]
    return ours, got, expected


def close(a: list, b: list) -> None:
    for x, y in zip(a, b, strict=True):
        assert onp.linalg.norm(x - y) <= 1e-4 * onp.linalg.norm(y) + 1e-4


@pytest.mark.parametrize("channels", [16, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_training_steps_in_onednns_layouts(channels: int, stride: int) -> None:
    unit = lambda x, i, n, k, s=1: sym.BatchNorm(
        sym.Convolution(x, name=f"c{i}", num_filter=n, kernel=(k, k), stride=(s, s), pad=(k // 2, k // 2),
                        no_bias=True, num_group=channels if i == 4 else 1),
        name=f"b{i}", fix_gamma=i == 1, eps=1e-3)  # fmt: skip
    relu = lambda x: sym.Activation(x, act_type="relu")
    x = relu(unit(sym.Variable("data"), 0, channels, 7, 2))
    x = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    y = unit(relu(unit(x, 1, channels, 3, stride)), 2, channels, 1)
    x = relu(y + unit(x, 3, channels, 1, stride))
    x = relu(unit(x, 4, channels, 3)) + x
    net = sym.SoftmaxOutput(sym.FullyConnected(sym.Flatten(x), name="fc", num_hidden=3), name="softmax")
    ours, got, expected = steps_beside(net, data=(2, 3, 33, 30))
    close(got, expected)
    (ways,) = [w for _, w in ours._compiled.values() if hasattr(w, "executor")]
    assert ways.executor.calls == 2  # nothing was refused, and computed row by row
    assert ways.executor.blocked == torch_has_layouts()


def torch_has_layouts() -> bool:
    from minnp.backends.torch import blocked

    return blocked.available()


def test_a_graph_with_layers_of_other_layouts_between_has_channels_last() -> None:
    net = sym.Pooling(sym.LRN(sym.Convolution(sym.Variable("data"), name="c", num_filter=4, kernel=(3, 3)), nsize=3),
                      kernel=(2, 2), pool_type="avg")  # fmt: skip
    ours, got, expected = steps_beside(net, onp.ones((2, 4, 5, 3), "float32"), data=(2, 3, 8, 6))
    close(got, expected)
    assert blocked(ours) == [False]


def test_nan_passes_a_relu_in_onednns_layout() -> None:
    x = sym.Convolution(sym.Variable("data"), name="c", num_filter=4, kernel=(1, 1), no_bias=True)
    executor = bound(sym.Activation(x, act_type="relu"), dtype="float32", data=(1, 3, 4, 4))
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            everything(executor, onp.ones((1, 4, 4, 4), "float32"))
        executor.arg_dict["data"][0, 1, 2, 3] = onp.nan
        results, *gradients = everything(executor, onp.ones((1, 4, 4, 4), "float32"))
    assert onp.isnan(results[0, :, 2, 3]).all() and onp.isnan(results).sum() == 4
    assert onp.isnan(gradients[1]).any()  # of the weight
    assert blocked(executor) == [torch_has_layouts()]


@pytest.mark.parametrize("special", [(), (onp.nan,), (-onp.inf, onp.inf)])
@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
def test_pooling_in_onednns_layout_is_numpys(special: tuple, convention: str) -> None:
    x = sym.Convolution(sym.Variable("data"), name="c", num_filter=18, kernel=(1, 1), no_bias=True)
    net = sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", pooling_convention=convention)
    draw, steps = onp.random.default_rng(0), []
    data, weight = draw.integers(0, 3, (2, 3, 9, 8)), onp.eye(18, 3).reshape(18, 3, 1, 1)  # many are the largest
    heads = draw.normal(size=net.infer_shape(data=data.shape)[1][0]).astype("float32")
    for policy in ("only_numpy", "prefer_torch"):
        executor = bound(net, dtype="float32", data=data.shape)
        executor.arg_dict["data"][...], executor.arg_dict["c_weight"][...] = data, weight
        with minnp.policy(policy):
            for _ in range(2):
                everything(executor, heads)
            for i, value in enumerate(special):
                executor.arg_dict["data"][0, 0, 3 + i, 4] = value
            steps.append(everything(executor, heads))
    for ours, expected in zip(*steps, strict=True):
        onp.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
    assert blocked(executor) == [torch_has_layouts()]


def test_two_ways_back_of_one_forward_are_the_same_and_results_may_be_written_to() -> None:
    x = sym.BatchNorm(sym.Convolution(sym.Variable("data"), name="c", num_filter=4, kernel=(3, 3)), name="b")
    executor, heads = bound(sym.Activation(x, act_type="relu"), dtype="float32"), onp.ones((2, 4, 6, 4), "float32")
    with minnp.policy("prefer_torch"):
        for _ in range(2):
            expected = everything(executor, heads)[1 : 1 + len(executor.grad_arrays)]
        executor.forward(is_train=True)
        executor.outputs[0][...] = -1
        for _ in range(2):
            executor.backward(heads)
            close([onp.array(g) for g in executor.grad_arrays], expected)


def _through_a_monitor(executor: Any) -> Any:
    """A write while `forward` runs, into a result that is a view of the weight."""

    def write() -> None:
        executor.set_monitor_callback(lambda name, a: a.__setitem__(..., a + 1) if name == "view_output" else None)
        executor.forward()
        executor.set_monitor_callback(None)

    return write


# how somebody gets hold of a weight -> what writes into it later
WRITERS = {
    "by name": lambda e: lambda: e.arg_dict["c_weight"].__setitem__(..., 2),
    "by number": lambda e: lambda: e.arg_arrays[1].__setitem__(0, 3),
    "names kept": lambda e: partial(lambda d: d["c_weight"].__setitem__(..., 2), e.arg_dict),
    "all kept": lambda e: partial(lambda d: d["c_weight"].__setitem__(..., 2), dict(e.arg_dict)),
    "a list kept": lambda e: partial(lambda d: d[1].__setitem__(..., 2), e.arg_arrays),
    "kept": lambda e: partial(lambda a: a.__setitem__(..., 2), e.arg_dict["c_weight"]),
    "a view": lambda e: partial(lambda a: a.__setitem__(..., 2), e.arg_dict["c_weight"][1:]),
    "a view of a view": lambda e: partial(lambda a: a.__setitem__(..., 2), e.arg_dict["c_weight"].ravel()[3:][:2]),
    "NumPy's": lambda e: partial(lambda a: onp.copyto(a, 2), onp.asarray(e.arg_dict["c_weight"])),
    "a view of NumPy's": lambda e: partial(lambda a: onp.copyto(a, 2), onp.asarray(e.arg_dict["c_weight"])[:1]),
    "a buffer": lambda e: partial(lambda m: m.__setitem__((0, 0, 0, 0), 9.0), memoryview(e.arg_dict["c_weight"])),
    "torch's": lambda e: partial(lambda t: t.fill_(2), torch.from_numpy(onp.asarray(e.arg_dict["c_weight"]))),
    "DLPack's": lambda e: partial(lambda t: t.fill_(2), torch.from_dlpack(e.arg_dict["c_weight"])),
    "a weak reference": lambda e: partial(lambda r: r().__setitem__(..., 2), weakref.ref(e.arg_dict["c_weight"])),
    "forward's own": lambda e: lambda: e.forward(c_weight=np.ones(e.arg_dict["c_weight"].shape)),
    "copied into": lambda e: lambda: e.copy_params_from({"c_weight": np.ones(e.arg_dict["c_weight"].shape)}),
    "another executor's": lambda e: partial(
        lambda other: other.arg_dict["c_weight"].__setitem__(..., 2), e.reshape(data=(1, 2, 6, 6), partial_shaping=True)
    ),
    "a state": lambda e: lambda: e.aux_dict["bn_moving_mean"].__setitem__(..., 2),
    "a monitor": _through_a_monitor,
}


@pytest.mark.long
@pytest.mark.parametrize("when", ["at first", "later"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_prediction_sees_every_write_into_a_parameter(name: str, when: str) -> None:
    weight = sym.Variable("c_weight")
    x = sym.Convolution(sym.Variable("data"), weight, name="c", num_filter=4, kernel=(3, 3), no_bias=True)
    view = sym.Reshape(weight, shape=(-1,), name="view")
    net = sym.Group([sym.BatchNorm(x, name="bn", fix_gamma=False), view])
    ours, plain = bound(net, "null"), bound(net, "null")
    plain._compiled_for = lambda is_train: None
    writers = [WRITERS[name](e) for e in (ours, plain)] if when == "at first" else []
    with minnp.policy("prefer_torch"):
        for step in range(8):
            same(everything(ours, is_train=False), everything(plain, is_train=False))
            for executor in (ours, plain):
                executor.forward()
            if step == 3 and not writers:
                writers = [WRITERS[name](e) for e in (ours, plain)]
            if step == 5:
                for write in writers:
                    write()
                for executor in (ours, plain):
                    executor.forward(is_train=True)
                same(everything(ours, is_train=False), everything(plain, is_train=False))
    assert compiled(ours)


def test_a_weight_that_the_executor_alone_has_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, same_bytes = [], symbol_compiled.same_bytes
    note = lambda a, b: (a.ndim > 1 and compared.append(a.shape)) or same_bytes(a, b)
    monkeypatch.setattr(symbol_compiled, "same_bytes", note)
    executor = bound(network(), "null")
    with minnp.policy("prefer_torch"):
        for _ in range(4):
            executor.forward(data=np.ones((2, 3, 8, 6)))
        compared.clear()
        kept = executor.arg_dict["fc_weight"]
        executor.arg_dict["data"][...] = 2
        executor.forward()
        assert compared == [kept.shape]
        del kept
        executor.forward()
        executor.forward()
        assert len(compared) == 2


# ------------------------------------------------------------------ gradients
def test_gradients_are_new_memory_only_where_nobody_has_the_old() -> None:
    """Of an array, a view, a view of NumPy's, a list, or the caller's own: each sees the gradient of the last step."""
    held = bound(network()), bound(network())
    heads, names = onp.ones((2, 3)), held[0]._program.arguments
    with minnp.policy("prefer_torch"):
        for executor in held:
            everything(executor, heads)
        ours = held[0]
        seen = {
            "c1_weight": ours.grad_dict["c1_weight"],
            "c2_weight": ours.grad_dict["c2_weight"][...],
            "bn1_gamma": onp.asarray(ours.grad_dict["bn1_gamma"])[:],
            "fc_bias": memoryview(ours.grad_dict["fc_bias"]),
        }
        mine = np.zeros(ours.grad_dict["c1_bias"].shape)
        ours.grad_arrays[names.index("c1_bias")] = seen["c1_bias"] = mine
        gradients = ours.grad_arrays
        for factor in (2, 3):
            for executor in held:
                executor.arg_dict["data"][...] *= factor
            everything(ours, heads), everything(held[1], heads)
            for n, g, other in zip(names, gradients, held[1].grad_arrays, strict=True):
                onp.testing.assert_allclose(g, other, rtol=1e-9, atol=1e-12)
                assert (onp.asarray(seen.get(n, g)) == g).all()
    assert compiled(ours)
    exchanged = {n for n, g in zip(names, gradients) if type(g._host.base) is torch.Tensor}  # addresses come again
    assert "fc_weight" in exchanged and not exchanged.intersection(seen)


def test_gradients_that_are_one_array_have_memory_of_their_own() -> None:
    a, b = sym.Variable("a"), sym.Variable("b")
    executor = bound(sym.tanh(a + b) + a, a=(3, 2), b=(3, 2))
    summed = bound(a + b, a=(3, 2), b=(3, 2))
    heads = np.ones((3, 2))
    with minnp.policy("prefer_torch"):
        for ours in (executor, summed):
            for _ in range(3):
                everything(ours, heads)
            first = onp.array(ours.grad_arrays[1])
            ours.grad_arrays[0][...] = 7
            assert (ours.grad_arrays[1] == first).all() and (heads == 1).all()


def test_the_gradient_of_a_dense_layers_weight_is_not_copied_into_c_order() -> None:
    net = sym.FullyConnected(sym.Variable("data"), name="fc", num_hidden=4)
    ours, got, expected = steps_beside(net, onp.ones((3, 4), onp.float32), data=(3, 5))
    close(got, expected)
    gradients = ours._compiled[True][1].executor.graph.output_node().all_input_nodes
    assert "transpose" not in [n.target.name for n in gradients if n.op == "call_function"]
    assert ours.grad_dict["fc_weight"].flags.c_contiguous


def test_the_report_says_why_a_training_step_is_not_compiled() -> None:
    executor = bound(sym.Embedding(sym.Variable("data"), name="e", input_dim=3, output_dim=2), data=(4, 3))
    executor.arg_dict["data"][...] = onp.arange(12).reshape(4, 3) % 3
    minnp.reset_report()
    with minnp.policy("prefer_torch"):
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward(np.ones((4, 3, 2)))
    assert not compiled(executor)
    assert [r["why"] for r in minnp.report() if r["function"] == "executor" and "training step" in r["why"]]


# ------------------------------------------------------------------ normalisations with relus
def normalised(relu: bool = True, twice: bool = False) -> Any:
    """conv -> batch norm (-> relu) -> conv, of 32 and 16 channels; `twice`: two layers read the normalisation."""
    x = sym.Convolution(sym.Variable("data"), name="c1", num_filter=32, kernel=(3, 3), pad=(1, 1), no_bias=True)
    y = sym.BatchNorm(x, name="bn1", fix_gamma=False, eps=1e-4)
    z = sym.Activation(y, act_type="relu") if relu else y
    x = sym.Convolution(z, name="c2", num_filter=16, kernel=(1, 1), no_bias=True)
    x = sym.BatchNorm(x, name="bn2", fix_gamma=False)
    if twice:
        x = x + sym.Convolution(y, name="c3", num_filter=16, kernel=(1, 1), no_bias=True)
    x = sym.Activation(x, act_type="relu")
    return sym.FullyConnected(sym.Flatten(x), name="fc", num_hidden=3)


def kernels_called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from minnp.core.cpu import kernels

    names, call = [], kernels.call
    monkeypatch.setattr(kernels, "call", lambda name, *rest: names.append(name) or call(name, *rest))
    return names


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("twice", [True, False])
def test_batch_norms_in_blocks_of_channels(relu: bool, twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    names = kernels_called(monkeypatch)
    heads = onp.random.default_rng(3).normal(size=(2, 3)).astype(onp.float32)
    ours, got, expected = steps_beside(normalised(relu, twice), heads, data=(2, 3, 10, 7))
    close(got, expected)
    assert blocked(ours) == [True]
    executor = ours._compiled[True][1].executor
    if "block_norm" in names:  # where the processor's layout has blocks of 16 channels, and the C part is there
        passed = [n for n, f in executor.run.__globals__.items() if getattr(f, "__name__", "") == "passed"]
        assert len(passed) == (0 if twice else 3 if relu else 1)  # relus and, where it lies in blocks, their gradient
    with minnp.policy("prefer_torch"):  # what is recycled belongs to no step before
        first = everything(ours, heads)
        ours.arg_dict["data"][...] *= -2
        everything(ours, heads)
        ours.arg_dict["data"][...] /= -2
        close(everything(ours, heads)[: len(first) - 4], first[: len(first) - 4])


def test_two_forwards_before_a_backward_do_not_share_what_is_recycled() -> None:
    heads = onp.ones((2, 3), onp.float32)
    ours, _, expected = steps_beside(normalised(), heads, data=(2, 3, 10, 7))
    with minnp.policy("prefer_torch"):
        ours.forward(is_train=True)
        kept, after = ours._pullback, ours._after
        ours.arg_dict["data"][...] *= -2
        ours.forward(is_train=True)
        ours._pullback, ours._after = kept, after
        ours.backward(heads)
    gradients = expected[1 : 1 + len(ours.grad_arrays)]
    close([onp.array(g) for g in ours.grad_arrays], gradients)


def test_nan_and_a_large_mean_in_a_batch_norm_in_blocks() -> None:
    from minnp.backends.torch import blocked as layouts

    torch.manual_seed(0)
    x = torch.randn(2, 32, 9, 9)
    x[:, 1] += 1e4
    x[1, 3, 4, 5] = torch.nan
    gamma, beta, g = torch.rand(32) + 0.5, torch.randn(32), torch.randn(2, 32, 9, 9)
    eye = torch.eye(32).reshape(32, 32, 1, 1)
    data = layouts.conv(x.nan_to_num(1e4), eye, (1, 1), (0, 0), (1, 1))
    for relu in (False, True):
        y, mean, variance, inverse = layouts.normalize(data, gamma, beta, (0, 2, 3), 1e-5, relu=relu)
        dense = data.to_dense().double().requires_grad_()
        expected = torch.nn.functional.batch_norm(dense, None, None, gamma.double(), beta.double(), True, 0.0, 1e-5)
        expected = torch.relu(expected) if relu else expected
        assert torch.allclose(y.to_dense().double(), expected, atol=2e-3)
        if layouts.team is None or not layouts.in_blocks(data):
            continue
        expected.backward(g.double())
        flows = (True, False, False), 4, (True, True, True)
        values = layouts.opaque(g), y, mean, variance, inverse, data, gamma, beta
        got = layouts.normalize_back(*values, layout=flows, axes=(0, 2, 3), eps=1e-5, relu=relu)
        assert (got[0].to_dense() - dense.grad).norm() < 1e-2 * dense.grad.norm()
    some = data.clone()
    layouts.memory(some)[5] = torch.nan
    y = layouts.normalize(some, gamma, beta, (0, 2, 3), 1e-5, relu=True)[0].to_dense()
    assert y.isnan().any(3).any(2).any(0).sum() == 1
