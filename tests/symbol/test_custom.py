"""Custom: operators that users define with MXNet's protocol."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import minnp.numpy as np
import minnp.symbol as sym
from minnp import Function, errors, grad


class Mixed(sym.CustomOp):
    """(x * w * scale, x + w), with the gradient of the first ten times as large as it is."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        x, w = in_data
        self.assign(out_data[0], req[0], x * w * self.scale)
        self.assign(out_data[1], req[1], x + w)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        (x, w), (g, h) = in_data, out_grad
        self.assign(in_grad[0], req[0], 10 * g * w * self.scale + h)
        self.assign(in_grad[1], req[1], 10 * g * x * self.scale + h)


@sym.register("mixed")
class MixedProp(sym.CustomOpProp):
    def __init__(self, scale: str = "1") -> None:
        super().__init__()
        self.scale = float(scale)

    def list_arguments(self) -> list[str]:
        return ["data", "weight"]

    def list_outputs(self) -> list[str]:
        return ["product", "sum"]

    def infer_shape(self, in_shape: list) -> tuple:
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], []

    def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list) -> Mixed:
        return Mixed(self.scale)


def test_a_custom_operator_is_an_operator() -> None:
    net = sym.Custom(sym.Variable("x"), op_type="mixed", scale=2.0, name="m")
    assert net.list_arguments() == ["x", "m_weight"] and net.list_outputs() == ["m_product", "m_sum"]
    assert net.infer_shape(x=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3), (2, 3)], [])
    again = sym.load_json(net.tojson())
    f = Function(again)
    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    product, total = f(x=x, m_weight=w)
    assert product.tolist() == [6, 16] and total.tolist() == [4, 6]
    assert grad(lambda x: np.sum(f(x=x, m_weight=w)[0]))(x).tolist() == [60, 80]
    bound = net.simple_bind(None, x=(2,))
    bound.arg_dict["x"][...], bound.arg_dict["m_weight"][...] = x, w
    bound.forward(is_train=True)
    bound.backward([np.ones(2), np.ones(2)])
    assert bound.grad_dict["m_weight"].tolist() == [21, 41]
    assert bound.arg_dict["x"].dtype == onp.float32


def test_what_assign_does() -> None:
    a = onp.ones(2)
    for req, expected in (("null", 1), ("write", 3), ("add", 6), ("inplace", 3)):
        sym.CustomOp().assign(a, req, 3)
        assert a.tolist() == [expected] * 2


def test_errors() -> None:
    with pytest.raises(errors.SymbolError, match=r"op_type='nothing'; there are: .*mixed"):
        sym.Custom(sym.Variable("x"), op_type="nothing")


class Centred(sym.CustomOp):
    """x less the moving average of its mean, which is the state."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        if is_train:
            self.assign(aux[0], "write", 0.5 * aux[0] + 0.5 * np.mean(in_data[0]))
        self.assign(out_data[0], req[0], in_data[0] - aux[0])

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * aux[0])
        if float(out_grad[0][0]) == 7:
            aux[0][...] = 0


@sym.register("centred")
class CentredProp(sym.CustomOpProp):
    def list_auxiliary_states(self) -> list[str]:
        return ["level"]

    def infer_shape(self, in_shape: list) -> tuple:
        return in_shape, in_shape, [[1]]

    def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list) -> Centred:
        return Centred()


def test_states_of_a_custom_operator_move_when_forward_writes_to_them() -> None:
    net = sym.load_json(sym.Custom(sym.Variable("x"), op_type="centred", name="c").tojson())
    assert (net.list_arguments(), net.list_auxiliary_states()) == (["x"], ["c_level"])
    assert net.infer_shape(x=(3,)) == ([(3,)], [(3,)], [(1,)])
    bound = net.simple_bind(None, x=(3,))
    bound.arg_dict["x"][...] = [1, 2, 6]
    assert bound.forward()[0].tolist() == [1, 2, 6] and bound.aux_dict["c_level"].tolist() == [0]
    assert bound.forward(is_train=True)[0].tolist() == [-0.5, 0.5, 4.5]
    assert bound.aux_dict["c_level"].tolist() == [1.5]
    bound.backward([np.ones(3)])
    assert bound.grad_dict["x"].tolist() == [1.5] * 3 and bound.aux_dict["c_level"].tolist() == [1.5]
    bound.forward(is_train=True)
    with pytest.raises(ValueError, match="read-only"):
        bound.backward([np.full(3, 7.0)])
    model = sym.Model(net, {}, {"c_level": np.zeros(1)})
    model(np.array([1.0, 3.0]), is_train=True)
    assert model.states["c_level"].tolist() == [1]
