"""MXNet's operators in minnp.numpy and npx, for importing.py: layers, activations, losses, elementwise functions.

OPERATORS has one entry for each operator: (call, attributes, *inputs) -> the node of its result, or a list of several;
`call` adds a node to the graph.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import minnp.numpy as np
from minnp import npx

from ...core.graph.graph import Graph, Node
from ...core.rows.primitive import TABLE
from ...errors import SymbolError
from .elementwise import BINARY, UNARY

OPERATORS: dict[str, Callable] = {}


class Attributes(dict):
    """An operator's attributes by name, parsed when asked for."""

    def value(self, name: str, default: Any = None) -> Any:
        """A number, tuple, bool or text; the default where it is absent or None."""
        text = super().get(name)
        if text is None or text == "None":
            return default
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):  # a word: act_type=relu
            return text

    def chosen(self, *names: str) -> dict[str, Any]:
        """Those of these attributes that are given, as keyword arguments."""
        return {n: self.value(n) for n in names if self.value(n) is not None}


class Reader:
    """Builds the graph of one symbol. `training`: layers behave as in training."""

    def __init__(self, training: bool) -> None:
        self.graph, self.training = Graph(), training

    def __call__(self, target: Callable, *args: Any, **kwargs: Any) -> Node:
        name = getattr(target, "name", None) or getattr(target, "__name__", "call")
        return self.graph.create_node("call_function", target, args, kwargs, name=name.rpartition(".")[2])

    def row(self, name: str, *args: Any, **kwargs: Any) -> Node:
        return self(TABLE[name], *args, **kwargs)


def operator(*names: str) -> Callable:
    """Enter the decorated translation under these names of MXNet's."""

    def enter(build: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, build))
        return build

    return enter


def refuse(what: str) -> Any:
    raise SymbolError(f"{what} has no translation to minnp")


# ------------------------------------------------------------------ layers
@operator("FullyConnected")
def _fully_connected(call: Reader, a: Attributes, x: Node, w: Node, b: Node | None = None) -> Node:
    return call(npx.fully_connected, x, w, *([b] if b is not None else []), flatten=a.value("flatten", True))


@operator("Convolution", "Convolution_v1")
def _convolution(call: Reader, a: Attributes, x: Node, w: Node, b: Node | None = None) -> Node:
    if a.value("layout", "NCHW")[:2] != "NC":
        refuse(f"layout {a.value('layout')}")
    options = a.chosen("kernel", "stride", "dilate", "pad", "num_filter", "num_group")
    return call(npx.convolution, x, w, *([b] if b is not None else []), **options)


@operator("Deconvolution")
def _deconvolution(call: Reader, a: Attributes, x: Node, w: Node, b: Node | None = None) -> Node:
    options = a.chosen("kernel", "stride", "dilate", "pad", "adj", "num_filter", "num_group")
    if any(a.value("target_shape", ())):
        options["target_shape"] = a.value("target_shape")
    if b is not None:
        return call(npx.deconvolution, x, w, b, no_bias=False, **options)
    return call(npx.deconvolution, x, w, **options)


@operator("Pooling", "Pooling_v1")
def _pooling(call: Reader, a: Attributes, x: Node) -> Node:
    names = ("kernel", "pool_type", "stride", "pad", "p_value", "pooling_convention", "count_include_pad")
    options = {"pool_type": "max", **a.chosen(*names)}
    if a.value("global_pool", False):
        return call(npx.pooling, x, pool_type=options["pool_type"], global_pool=True)
    if options.get("pooling_convention") == "same":
        refuse("pooling_convention 'same'")
    return call(npx.pooling, x, **options)


@operator("BatchNorm", "BatchNorm_v1")
def _batch_norm(call: Reader, a: Attributes, x: Node, *arrays: Node) -> Node:
    options = a.chosen("eps", "momentum", "fix_gamma", "use_global_stats", "axis")
    return call(npx.batch_norm, x, *arrays, **options, training=call.training)


@operator("LayerNorm")
def _layer_norm(call: Reader, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    return call(npx.layer_norm, x, gamma, beta, **a.chosen("axis", "eps"))


def legacy_group_norm(x: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-5) -> Any:
    """npx.group_norm with one gamma and beta for each group, as MXNet 1.9's has."""
    each = x.shape[1] // num_groups
    return npx.group_norm(x, np.repeat(gamma, each), np.repeat(beta, each), num_groups, eps)


@operator("GroupNorm")
def _group_norm(call: Reader, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    return call(legacy_group_norm, x, gamma, beta, **a.chosen("num_groups", "eps"))


@operator("InstanceNorm")
def _instance_norm(call: Reader, a: Attributes, x: Node, gamma: Node, beta: Node) -> Node:
    return call(npx.instance_norm, x, gamma, beta, **a.chosen("eps"))


@operator("Dropout")
def _dropout(call: Reader, a: Attributes, x: Node) -> Node:
    if call.training or a.value("mode") == "always":
        return call(npx.dropout, x, p=a.value("p", 0.5), training=True)
    return x


@operator("Embedding")
def _embedding(call: Reader, a: Attributes, x: Node, w: Node) -> Node:
    return call(npx.embedding, x, w)


# ------------------------------------------------------------------ activations, losses
@operator("Activation")
def _activation(call: Reader, a: Attributes, x: Node) -> Node:
    return call(npx.activation, x, act_type=a.value("act_type"))


@operator("LeakyReLU")
def _leaky_relu(call: Reader, a: Attributes, x: Node, *gamma: Node) -> Node:
    return call(npx.leaky_relu, x, *gamma, **a.chosen("act_type", "slope", "lower_bound", "upper_bound"))


@operator("softmax", "log_softmax")
def _soft(call: Reader, a: Attributes, x: Node, *length: Node, name: str = "softmax") -> Node:
    if length or a.value("use_length", False):
        refuse("softmax with lengths")
    scale = a.value("temperature")
    if scale not in (None, 1.0):
        x = call.row("divide", x, float(scale))
    return call(getattr(npx, name), x, axis=a.value("axis", -1))


OPERATORS["log_softmax"] = lambda call, a, *x: _soft(call, a, *x, name="log_softmax")


@operator("SoftmaxOutput", "Softmax", "SoftmaxActivation")
def _softmax_output(call: Reader, a: Attributes, x: Node, label: Node | None = None) -> Node:
    if a.value("preserve_shape", False):
        return call(npx.softmax, x, axis=-1)
    if a.value("multi_output", False) or a.value("mode") == "channel":
        return call(npx.softmax, x, axis=1)
    flat = call(npx.softmax, call(npx.batch_flatten, x), axis=-1)  # over everything but the batch
    return call(npx.reshape_like, flat, x)


OPERATORS.update(
    dict.fromkeys(
        ("LinearRegressionOutput", "MAERegressionOutput", "MakeLoss", "make_loss", "_copy", "identity"),
        lambda call, a, x, *label: x,
    )
)
OPERATORS["LogisticRegressionOutput"] = lambda call, a, x, label=None: call.row("npx.sigmoid", x)
OPERATORS["BlockGrad"] = OPERATORS["stop_gradient"] = lambda call, a, x: call(np.stop_gradient, x)
OPERATORS["smooth_l1"] = lambda call, a, x: call(npx.smooth_l1, x, scalar=a.value("scalar", 1.0))

# ------------------------------------------------------------------ elementwise
UNARY_NAMES = {
    **dict.fromkeys(["relu", "sigmoid", "erf", "erfinv"], "npx."),
    **dict.fromkeys(
        [*("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square", "sign", "rint", "ceil", "floor"),
         *("trunc", "fix", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh"),
         *("arccosh", "arctanh", "degrees", "radians", "negative", "reciprocal")], "",
    ),
}  # fmt: skip
for _name, _prefix in UNARY_NAMES.items():
    OPERATORS[_name] = lambda call, a, x, row=_prefix + _name: call.row(row, x)
for _row, _operator in UNARY.items():  # what our own symbols are made of
    if _row in TABLE:
        OPERATORS.setdefault(_operator, lambda call, a, x, row=_row: call.row(row, x))
for _row, _operator in BINARY.items():
    OPERATORS.setdefault(_operator, lambda call, a, x, y, row=_row: call.row(row, x, y))
OPERATORS["abs"] = lambda call, a, x: call.row("absolute", x)
OPERATORS["rsqrt"] = lambda call, a, x: call.row("reciprocal", call.row("sqrt", x))
OPERATORS["rcbrt"] = lambda call, a, x: call.row("reciprocal", call.row("cbrt", x))
OPERATORS["softsign"] = lambda call, a, x: call.row("divide", x, call.row("add", call.row("absolute", x), 1.0))
OPERATORS["hard_sigmoid"] = lambda call, a, x: call.row(
    "clip", call.row("add", call.row("multiply", x, a.value("alpha", 0.2)), a.value("beta", 0.5)), 0.0, 1.0
)


def as_number(call: Reader, condition: Node, like: Node) -> Node:
    """MXNet's comparisons have the dtype of what is compared."""
    return call.row("where", condition, call(np.ones_like, like), call(np.zeros_like, like))


ARITHMETIC = {
    "add": ("add", "plus", "_plus", "_add"), "subtract": ("sub", "minus", "_minus", "_sub"),
    "multiply": ("mul", "_mul"), "divide": ("div", "_div"), "remainder": ("mod", "_mod"),
    "power": ("power", "_power"), "maximum": ("maximum", "_maximum"), "minimum": ("minimum", "_minimum"),
    "hypot": ("hypot", "_hypot"),
}  # fmt: skip
COMPARED = ("equal", "not_equal", "greater", "greater_equal", "less", "lesser_equal", "lesser", "less_equal")
for _row, _names in ARITHMETIC.items():
    _binary = lambda call, a, x, y, row=_row: call.row(row, x, y)
    _scalar = lambda call, a, x, row=_row: call.row(row, x, a.value("scalar"))
    _reverse = lambda call, a, x, row=_row: call.row(row, a.value("scalar"), x)
    for _name in _names:
        plain = _name.lstrip("_")
        OPERATORS |= {f"elemwise_{plain}": _binary, f"broadcast_{plain}": _binary, f"_{plain}": _binary}
        OPERATORS |= {f"_{plain}_scalar": _scalar, f"_r{plain}_scalar": _reverse}
    OPERATORS[f"_npi_{_row}_scalar"] = _scalar
for _name in COMPARED:
    _row = _name.replace("lesser", "less")

    def _binary(call: Reader, a: Attributes, x: Node, y: Node, row: str = _row) -> Node:
        return as_number(call, call.row(row, x, y), x)

    def _scalar(call: Reader, a: Attributes, x: Node, row: str = _row) -> Node:
        return as_number(call, call.row(row, x, a.value("scalar")), x)

    OPERATORS |= {f"broadcast_{_name}": _binary, f"_{_name}": _binary, f"_{_name}_scalar": _scalar}
OPERATORS["clip"] = lambda call, a, x: call.row("clip", x, a.value("a_min"), a.value("a_max"))
OPERATORS["where"] = lambda call, a, c, x, y: call.row("where", call.row("not_equal", c, 0), x, y)
OPERATORS["_npi_where"] = lambda call, a, c, x, y: call.row("where", c, x, y)
OPERATORS["add_n"] = OPERATORS["ElementWiseSum"] = lambda call, a, first, *rest: (
    _sum(call, first, rest) if rest else first
)


def _sum(call: Reader, total: Node, rest: tuple[Node, ...]) -> Node:
    for x in rest:
        total = call.row("add", total, x)
    return total
