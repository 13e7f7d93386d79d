"""Composable layers: objects that hold their parameters, for Sequential and for models of your own.

Each wraps the function of minnp.nn.layers that its docstring names; `forward(x, mode)` takes `mode` even where training
and testing are alike, so that any layer fits in a Sequential.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import minnp.numpy as np

from . import checks, layers, losses
from .model import Layer, ModelBase


class Linear(Layer):
    """y = x w + b over the last axis; x [..., D], w [D, M], b [M] -> y [..., M]."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, **config: Any) -> None:
        super().__init__()
        self.bias = bias
        self.add_param("w", (inputs, outputs), **config)
        if bias:
            self.add_param("b", (outputs,), init_rule="constant")

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.linear(x, self.params["w"], self.params["b"] if self.bias else None)


class Conv2D(Layer):
    """layers.conv2d: x [N, C, H, W], w [F, C / groups, K, K], b [F] -> [N, F, H', W']; pad="same" keeps H and W."""

    def __init__(
        self,
        channels: int,
        filters: int,
        size: int = 3,
        stride: int = 1,
        pad: int | str = 0,
        groups: int = 1,
        bias: bool = True,
        **config: Any,
    ) -> None:
        super().__init__()
        if pad == "same":
            if size % 2 == 0 or stride != 1:
                raise ValueError(f"pad='same' needs an odd size and stride 1, got size={size}, stride={stride}")
            pad = size // 2
        self.stride, self.pad, self.groups, self.bias = stride, pad, groups, bias
        self.add_param("w", (filters, channels // groups, size, size), **{"init_rule": "he", **config})
        if bias:
            self.add_param("b", (filters,), init_rule="constant")

    def forward(self, x: Any, mode: str | None = None) -> Any:
        b = self.params["b"] if self.bias else None
        return layers.conv2d(x, self.params["w"], b, self.stride, self.pad, 1, self.groups)


class Lambda(Layer):
    """y = function(x): any function of one array as a layer."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return self.function(x)


class ReLU(Layer):
    """layers.relu"""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.relu(x)


class Sigmoid(Layer):
    """layers.sigmoid"""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.sigmoid(x)


class Tanh(Layer):
    """layers.tanh"""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.tanh(x)


class GELU(Layer):
    """layers.gelu"""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.gelu(x)


class Flatten(Layer):
    """layers.flatten: [N, d1, ..., dk] -> [N, d1 * ... * dk]."""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.flatten(x)


class MaxPool2D(Layer):
    """layers.max_pool: [N, C, H, W] -> [N, C, H / size, W / size] with the default stride."""

    def __init__(self, size: int = 2, stride: int | None = None, pad: int = 0) -> None:
        super().__init__()
        self.options = (size, stride, pad)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.max_pool(x, *self.options)


class AvgPool2D(MaxPool2D):
    """layers.avg_pool: as MaxPool2D, with the mean."""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.avg_pool(x, *self.options)


class GlobalAvgPool2D(Layer):
    """y[n, c] = mean of x[n, c] over all pixels; [N, C, H, W] -> [N, C]."""

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return np.mean(x, axis=(2, 3))


class BatchNorm(Layer):
    """layers.batchnorm over the batch, with its running averages; x [N, C] or [N, C, H, W]."""

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.9) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.add_param("gamma", (channels,), init_rule="constant", init_config={"value": 1.0}, weight_decay=0.0)
        self.add_param("beta", (channels,), init_rule="constant", weight_decay=0.0)
        self.add_aux_param("running_mean", np.zeros(channels, np.float32))
        self.add_aux_param("running_var", np.ones(channels, np.float32))

    def forward(self, x: Any, mode: str | None = None) -> Any:
        p, kept = self.params, self.aux_params
        y, mean, var = layers.batchnorm(
            x, p["gamma"], p["beta"], mode, self.eps, self.momentum, kept["running_mean"], kept["running_var"]
        )
        if mode == "train":
            kept["running_mean"], kept["running_var"] = mean, var
        return y


class LayerNorm(Layer):
    """layers.layernorm over the last axis; x [..., D]."""

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.add_param("gamma", (size,), init_rule="constant", init_config={"value": 1.0}, weight_decay=0.0)
        self.add_param("beta", (size,), init_rule="constant", weight_decay=0.0)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.layernorm(x, self.params["gamma"], self.params["beta"], self.eps)


class Dropout(Layer):
    """layers.dropout: each element dropped with probability `prob` in training."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__()
        self.prob = layers.check_prob(prob)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.dropout(x, self.prob, mode)


class Embedding(Layer):
    """layers.word_embedding: x [...] integers in [0, V), w [V, D] -> [..., D]."""

    def __init__(self, words: int, size: int, **config: Any) -> None:
        super().__init__()
        self.add_param("w", (words, size), **{"init_rule": "gaussian", "init_config": {"stdvar": 0.5}, **config})

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.word_embedding(x, self.params["w"])


class Symbolic(Layer):
    """y = the MXNet symbol at x: its arguments are this layer's parameters, but for the inputs named in input_shapes.

    Symbolic(net, {"data": (32, 1, 8, 8)}): the shapes settle those of the parameters. Needs mxnet.
    """

    def __init__(self, symbol: Any, input_shapes: dict[str, Sequence[int]], name: str = "symbol") -> None:
        super().__init__()
        from minnp import Function

        self.function = Function(symbol, input_shapes=input_shapes, name=name)
        self.inputs = list(input_shapes)
        self.add_params(self.function.get_params())

    def forward(self, *inputs: Any, mode: str | None = None) -> Any:
        return self.function(**dict(zip(self.inputs, inputs)), **self.params)


class Residual(Layer):
    """y = x + inner(x) (He et al. 2016)."""

    def __init__(self, *inner: Layer) -> None:
        super().__init__()
        self.inner = inner[0] if len(inner) == 1 else Sequential(*inner)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return x + self.inner(x, mode=mode)


def as_layer(step: Layer | Callable) -> Layer:
    """The step itself, or the function as a Lambda."""
    if isinstance(step, type) or not callable(step):
        way_out = f"write {step.__name__}()" if isinstance(step, type) else "write Sequential(first, second, ...)"
        raise TypeError(f"a step of Sequential is a layer or a function of one array, got {step!r}: {way_out}")
    return step if isinstance(step, Layer) else Lambda(step)


class Sequential(ModelBase):
    """y = last(... second(first(x))): layers (or functions of one array) one after another, ready to fit.

    loss is a function (outputs, labels) -> number, or the name of one in minnp.nn.losses.
    """

    def __init__(self, *steps: Layer | Callable, loss: Callable | str = "softmax_loss") -> None:
        super().__init__()
        self.steps = [as_layer(step) for step in steps]
        known = {name: getattr(losses, name) for name in losses.NAMES}
        if loss in ("l1_loss", "l2_loss", "huber_loss"):
            self.metrics = ()  # numbers are not right or wrong
        self.loss_function = checks.one_of("loss", loss, known, "(outputs, labels) -> number")

    def children(self) -> Any:
        # "0.w" rather than "steps.0.w": the steps are all there is.
        return ((str(i), step) for i, step in enumerate(self.steps))

    def forward(self, x: Any, mode: str | None = None) -> Any:
        for step in self.steps:
            x = step(x, mode=mode)
        return x

    def loss(self, predict: Any, y: Any) -> Any:
        return self.loss_function(predict, y)
