"""Steps of optimisers as symbols: MXNet's numbers, and states that move at every call."""

from __future__ import annotations

import numpy as onp
import pytest

import minnp
import minnp.numpy as np
import minnp.symbol as sym
from minnp.symbol.operator import OPERATORS, REQUIRED

pytestmark = [
    pytest.mark.host("MXNet computes on the host"),
    pytest.mark.filterwarnings("ignore:Please import `csr_matrix`:DeprecationWarning"),
]
NAMES = sorted(n for n, r in OPERATORS.items() if r.definition.__module__.endswith("updates"))
NUMBERS = {
    "lr": 0.1, "momentum": 0.9, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.3, "eta": 0.7, "t": 3,
    "wd_lh": 0.02, "clip_weights": 0.6, "clip_grad": 0.3, "lamda1": 0.1, "beta": 0.5, "lower_bound": 0.1,
    "upper_bound": 1.2, "eps": 1e-3, "lrs": (0.1, 0.2), "wds": (0.01, 0.02), "etas": (0.7, 0.8),
    "learning_rates": (0.1, 0.2), "step_count": (3, 5), "num_weights": 2, "num_tensors": 2,
}  # fmt: skip
SHAPES = {"r1": (1,), "r2": (1,), "rescale_grad": (1,)} | dict.fromkeys(
    ("lrs", "wds", "weights_sum_sq", "grads_sum_sq"), (2,)
)
ROWS = ("_contrib_group_adagrad_update", "_sparse_adagrad_update")  # which MXNet has for sparse gradients alone
POSITIVE = ("history", "lrs", "wds", "var", "v", "d", "r1", "r2", "rescale_grad", "weights_sum_sq", "grads_sum_sq")


def given(name: str, parameters: dict) -> dict[str, onp.ndarray]:
    """The inputs of an operator; of those in half precision also the weight in float32."""
    draw, out = onp.random.default_rng(0), {}
    for n in OPERATORS[name].arguments(parameters):
        kind = n[:-2] if n[-2:] in ("_0", "_1") else n
        shape = SHAPES.get(kind, (2, 5) if n[-2:] == "_1" else (3, 4))
        shape = (3, 1) if name == ROWS[0] and kind == "history" else shape
        a = draw.normal(size=shape)
        a = abs(a) + (20 if name == "rmspropalex_update" else 0.5) if kind in (*POSITIVE, "n") else a
        half = "mp_" in name and kind in ("weight", "grad")
        out[n] = (out[n.replace("32", "")] if kind == "weight32" else a).astype("f2" if half else "f4")
    return out


def stepped(name: str, parameters: dict, arrays: dict) -> tuple[list, dict]:
    """(the new weights, the states afterwards) of a call outside training."""
    symbol = getattr(sym.op, name)(*map(sym.Variable, arrays), name="u", **parameters)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    part = lambda names: {n: arrays[n] for n in names}
    bound = symbol.bind(None, part(symbol.list_arguments()), aux_states=part(symbol.list_auxiliary_states()))
    return bound.forward(), bound.aux_dict


@pytest.mark.skipif("mxnet" not in minnp.backends.installed(), reason="MXNet's steps are what these are compared with")
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_mxnets(name: str) -> None:
    import mxnet as mx

    for every in (False, True):
        known = OPERATORS[name].parameters.items()
        wanted = {n for n, p in known if every or p.default is REQUIRED or n.startswith("num_")}
        parameters = {n: NUMBERS[n] for n in wanted if n in NUMBERS and (n, name) != ("wd", ROWS[1])}
        arrays = given(name, parameters)
        theirs = {n: mx.nd.array(a, dtype=a.dtype) for n, a in arrays.items()}
        step = next(getattr(m, name.removeprefix(start)) for m, start in (
            (mx.nd, ""), (mx.nd._internal, ""), (mx.nd.contrib, "_contrib_"), (mx.nd.sparse, "_sparse_"),
        ) if hasattr(m, name.removeprefix(start)))  # fmt: skip
        gradient = {"grad": theirs["grad"].tostype("row_sparse")} if name in ROWS else {}
        weights = [theirs[n] for n in theirs if n in ("weight", "weight_0", "weight_1")]
        into = {"out": weights} if name in ROWS or ("multi_" in name and name != "multi_lars") else {}
        expected = step(*(theirs | gradient).values(), **parameters, **into)
        ys, states = stepped(name, parameters, arrays)
        near = 2e-3 if "mp_" in name else 1e-5
        for y, e in zip(ys, expected if isinstance(expected, list) else [expected], strict=True):
            assert y.dtype == e.dtype
            onp.testing.assert_allclose(y, e.asnumpy(), rtol=near, atol=near)
        for n, state in states.items():
            if name != "mp_lamb_update_phase2":  # MXNet leaves the weight in float32 as it was
                onp.testing.assert_allclose(state, theirs[n].asnumpy(), rtol=near, atol=near, err_msg=n)


def test_states_move_at_every_call_and_nothing_else_does() -> None:
    w, g, m = map(sym.Variable, ("w", "g", "m"))
    net = sym.load_json(sym.sgd_mom_update(w, g, m, lr=0.5, momentum=0.5, name="u").tojson())
    assert (net.list_arguments(), net.list_auxiliary_states()) == (["w", "g"], ["m"])
    assert net.infer_shape(w=(2,)) == ([(2,), (2,)], [(2,)], [(2,)])
    bound = net.bind(None, {"w": np.ones(2), "g": np.ones(2)}, aux_states={"m": np.zeros(2)})
    found = [(bound.forward(is_train=t)[0][0], bound.aux_dict["m"][0]) for t in (False, True, False)]
    assert found == [(0.5, -0.5), (0.25, -0.75), (0.125, -0.875)] and bound.arg_dict["w"].tolist() == [1, 1]
    module = minnp.fx.GraphModule({}, net.to_graph())
    state = np.zeros(2)
    assert module(np.ones(2), np.ones(2), state).tolist() == [0.5, 0.5] and state.tolist() == [-0.5, -0.5]


def test_half_precision_keeps_the_weight_in_float32() -> None:
    net = sym.mp_sgd_update(*map(sym.Variable, ("w", "g", "w32")), lr=1e-4)
    assert [onp.dtype(t).name for t in [t for types in net.infer_type(w="float16") for t in types]] == [
        "float16"
    ] * 3 + ["float32"]
    arrays = {"w": onp.ones(2, "f2"), "g": onp.ones(2, "f2"), "w32": onp.ones(2, "f4")}
    (y,), states = stepped("mp_sgd_update", {"lr": 1e-4}, arrays)
    assert y.tolist() == [1, 1] and abs(float(states["w32"][0]) - 0.9999) < 1e-6


def test_steps_of_several_weights() -> None:
    net = sym.multi_sgd_mom_update(num_weights=2, lrs=(1, 2), wds=(0, 0), name="u")
    assert net.list_arguments() == ["u_weight_0", "u_grad_0", "u_weight_1", "u_grad_1"]
    assert net.list_auxiliary_states() == ["u_mom_0", "u_mom_1"] and net.list_outputs() == ["u_output0", "u_output1"]
    shapes = {"u_weight_0": (2,), "u_weight_1": (3, 1)}
    assert net.infer_shape(**shapes) == ([(2,), (2,), (3, 1), (3, 1)], [(2,), (3, 1)], [(2,), (3, 1)])
    w, g = sym.Variable("w"), sym.Variable("g")
    one = np.ones(2)
    assert sym.multi_sgd_update(w, g, lrs=(2,), wds=(1,)).eval(w=one, g=one)[0].tolist() == [-3, -3]
    with pytest.raises(TypeError, match="takes 2 symbols, weight_0, grad_0; it got 3"):
        sym.multi_sgd_update(w, g, g, lrs=(2,), wds=(1,))
    with pytest.raises(ValueError, match=r"num_weights=1 takes 2 arrays and 1 numbers, not 2 arrays and {'lrs': 2"):
        sym.multi_sgd_update(w, g, lrs=(2, 1), wds=(1,)).eval(w=one, g=one)
