"""Custom: operators that users define, as classes with MXNet's protocol.

class Scale(CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 2 * in_data[0])
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * out_grad[0])

@register("scale")
class ScaleProp(CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes): return Scale()

sym.Custom(x, op_type="scale")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import custom_vjp, stop_gradient

from ...errors import SymbolError
from ..operator import Operator, enter

PROPERTIES: dict[str, type[CustomOpProp]] = {}


class CustomOp:
    """What a custom operator computes: forward writes to out_data, backward to in_grad, with `assign`.

    aux   the auxiliary states, into which forward may write; to backward they are read-only

    >>> class Double(sym.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], 2 * in_data[0])
    """

    def forward(self, is_train: bool, req: Sequence[str], in_data: Sequence[Any], out_data: Sequence[Any],
                aux: Sequence[Any]) -> None:  # fmt: skip
        """Write the results of in_data to out_data."""
        raise NotImplementedError

    def backward(self, req: Sequence[str], out_grad: Sequence[Any], in_data: Sequence[Any], out_data: Sequence[Any],
                 in_grad: Sequence[Any], aux: Sequence[Any]) -> None:  # fmt: skip
        """Write the gradients of in_data to in_grad."""
        raise NotImplementedError

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Write src to dst, or add it, or do nothing, as req says: "write", "inplace", "add" or "null"."""
        if req == "add":
            dst[...] += src
        elif req != "null":
            dst[...] = src


class CustomOpProp:
    """What a custom operator is: its arguments, results, shapes and dtypes.

    need_top_grad   whether backward reads out_grad; a loss does not

    Keyword arguments of sym.Custom arrive in __init__ as texts.

    >>> class Doubled(sym.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return sym.CustomOp()
    >>> Doubled().list_arguments()
    ['data']
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        return ["data"]

    def list_outputs(self) -> list[str]:
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        return []

    def infer_shape(self, in_shape: list) -> tuple:
        """(shapes of the arguments, of the results, of the auxiliary states)."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list) -> tuple:
        """(dtypes of the arguments, of the results, of the auxiliary states)."""
        one = in_type[0]
        return in_type, [one] * len(self.list_outputs()), [one] * len(self.list_auxiliary_states())

    def create_operator(self, ctx: Any, in_shapes: list, in_dtypes: list) -> CustomOp:
        """A CustomOp for arguments of these shapes and dtypes."""
        raise NotImplementedError


def register(name: str) -> Callable[[type], type]:
    """A decorator that makes a CustomOpProp the operator sym.Custom(..., op_type=name).

    >>> @sym.register("doubled")
    ... class Doubled(sym.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return sym.CustomOp()
    >>> sym.Custom(sym.Variable("x"), op_type="doubled", name="y").list_outputs()
    ['y_output']
    """

    def enter_it(prop: type) -> type:
        PROPERTIES[name] = prop
        return prop

    return enter_it


def custom(*inputs: Any, prop: CustomOpProp, training: bool = False) -> Any:
    """The results of a property's operator, and its states, which come last among the inputs, as they are afterwards;
    the gradient is what its backward writes."""
    count = len(inputs) - len(prop.list_auxiliary_states())
    inputs, states = inputs[:count], [np.array(stop_gradient(s)) for s in inputs[count:]]
    operation = prop.create_operator(None, [list(x.shape) for x in inputs], [x.dtype for x in inputs])
    shapes = _inferred(prop, [x.shape for x in inputs])[1]
    types = prop.infer_type([x.dtype for x in inputs])[1]
    results: list[Any] = []

    @custom_vjp
    def run(*arrays: Any) -> Any:
        results[:] = [np.zeros(tuple(s), t) for s, t in zip(shapes, types, strict=True)]
        operation.forward(training, ["write"] * len(results), list(arrays), results, states)
        return tuple(results) if len(results) > 1 else results[0]

    def backward(arrays: tuple, g: Any) -> tuple:
        gradients = [np.zeros_like(x) for x in arrays]
        kept = [_read_only(s) for s in states]
        heads = list(g) if isinstance(g, (tuple, list)) else [g]
        operation.backward(["write"] * len(arrays), heads, list(arrays), results, gradients, kept)
        return tuple(gradients)

    y = run.defvjp(forward=lambda *arrays: (None, arrays), backward=backward)(*inputs)
    return (*(y if isinstance(y, tuple) else (y,)), *states) if states else y


def _read_only(state: Any) -> Any:
    """A state for backward, which has to leave it as it is: only forward moves states."""
    state = state.copy()
    state.flags.writeable = False
    return state


class _Custom(Operator):
    """The row of Custom, whose parameters are those of the property that op_type names."""

    def read(self, attributes: dict[str, str], where: str = "") -> dict[str, Any]:
        name = attributes.get("op_type")
        if name not in PROPERTIES:
            known = ", ".join(PROPERTIES) or "none"
            raise SymbolError(
                f"{where or self.name}: no operator is registered as op_type={name!r}; there are: {known}"
            )
        options = {n: v for n, v in attributes.items() if n != "op_type" and not n.startswith("__")}
        return {"prop": PROPERTIES[name](**options)}

    def check(self, names: Sequence[str]) -> None:
        """Any parameter may be the property's."""

    def keywords(self, parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters

    def arguments(self, parameters: dict[str, Any], given: int = 0) -> Sequence[str]:
        return [*parameters["prop"].list_arguments(), *self.states(parameters)]

    def states(self, parameters: dict[str, Any]) -> Sequence[str]:
        return parameters["prop"].list_auxiliary_states()

    def outputs(self, parameters: dict[str, Any]) -> Sequence[str]:
        return parameters["prop"].list_outputs()


def _inferred(prop: CustomOpProp, shapes: Sequence) -> tuple[list, list, list]:
    """What infer_shape says, which leaves out the states where there are none."""
    given = [None if s is None else list(s) for s in shapes[: len(prop.list_arguments())]]
    lists = prop.infer_shape(given)
    return tuple([tuple(s) for s in part] for part in (*lists, [])[:3])


def _fill(p: dict, shapes: list) -> list:
    if shapes[0] is None:
        return shapes
    arguments, _, states = _inferred(p["prop"], shapes)
    return [*arguments, *states]


def _result(p: dict, *shapes: Any) -> list:
    return _inferred(p["prop"], shapes)[1]


def _dtypes(p: dict, ins: list) -> tuple[list, list]:
    if ins[0] is None:
        return ins, [None] * len(p["prop"].list_outputs())
    prop = p["prop"]
    types, results, *states = prop.infer_type(ins[: len(prop.list_arguments())])
    return [onp.dtype(t) for t in (*types, *(states[0] if states else ()))], [onp.dtype(t) for t in results]


enter(
    _Custom(
        "Custom",
        custom,
        None,
        "op_type:str",
        fill=_fill,
        result=_result,
        dtypes=_dtypes,
        training=True,
        loss=True,
        always=True,
    )
)
