"""Steps of optimisers as symbols: MXNet's numbers, and states that move at every call."""

from __future__ import annotations

from typing import Any

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
    "upper_bound": 1.2, "eps": 1e-3,
}  # fmt: skip
SHAPES = {"r1": (1,), "r2": (1,), "rescale_grad": (1,)}
POSITIVE = ("var", "v", "d", "r1", "r2", "rescale_grad", "weights_sum_sq", "grads_sum_sq")


def given(name: str) -> dict[str, onp.ndarray]:
    """The inputs of an operator; of those in half precision also the weight in float32."""
    draw, out = onp.random.default_rng(0), {}
    for n in OPERATORS[name].arguments({}):
        a = draw.normal(size=SHAPES.get(n, (3, 4)))
        a = abs(a) + (20 if name == "rmspropalex_update" else 0.5) if n in (*POSITIVE, "n") else a
        half = "mp_" in name and n in ("weight", "grad")
        out[n] = (out["weight"] if n == "weight32" else a).astype("f2" if half else "f4")
    return out


def stepped(name: str, parameters: dict, arrays: dict) -> tuple[Any, dict]:
    """(the new weight, the states afterwards) of a call outside training."""
    symbol = getattr(sym.op, name)(*map(sym.Variable, arrays), name="u", **parameters)
    arrays = {n: np.array(a) for n, a in arrays.items()}
    part = lambda names: {n: arrays[n] for n in names}
    bound = symbol.bind(None, part(symbol.list_arguments()), aux_states=part(symbol.list_auxiliary_states()))
    return bound.forward()[0], bound.aux_dict


@pytest.mark.skipif("mxnet" not in minnp.backends.installed(), reason="MXNet's steps are what these are compared with")
@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_mxnets(name: str) -> None:
    import mxnet as mx

    for every in (False, True):
        known = OPERATORS[name].parameters.items()
        parameters = {n: NUMBERS[n] for n, p in known if n in NUMBERS and (every or p.default is REQUIRED)}
        arrays = given(name)
        theirs = {n: mx.nd.array(a, dtype=a.dtype) for n, a in arrays.items()}
        step = getattr(mx.nd, name, None) or getattr(mx.nd._internal, name)
        expected = step(*theirs.values(), **parameters).asnumpy()
        y, states = stepped(name, parameters, arrays)
        assert y.dtype == expected.dtype
        near = 2e-3 if "mp_" in name else 1e-5
        onp.testing.assert_allclose(y, expected, rtol=near, atol=near)
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
    y, states = stepped("mp_sgd_update", {"lr": 1e-4}, arrays)
    assert y.tolist() == [1, 1] and abs(float(states["w32"][0]) - 0.9999) < 1e-6
