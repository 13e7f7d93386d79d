"""Composable layers: objects that hold their parameters, for Sequential and for models of your own.

Each wraps the function of minnp.nn.layers that its docstring names; `forward(x, mode)` takes `mode` even where training
and testing are alike, so that any layer fits in a Sequential.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import minnp.numpy as np
from minnp import Function

from . import checks, layers, losses
from .model import Layer, ModelBase, run_layer

__all__ = [
    "GELU",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNorm",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "ConvTranspose2D",
    "ConvTranspose3D",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GroupNorm",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Linear",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Symbolic",
    "Tanh",
]


class Weighted(Layer):
    """A layer with a factor w and a term b, which begins as 0; bias=False leaves it out."""

    def weigh(
        self, shape: Sequence[int], outputs: int, bias: bool, rule: Any, config: Any, rate: Any, decay: Any
    ) -> None:
        self.bias = checks.flag("bias", bias)
        self.add_param("w", shape, init_rule=rule, init_config=config, learning_rate=rate, weight_decay=decay)
        if bias:
            self.add_param("b", (outputs,), init_rule="constant")

    def weights(self) -> tuple[Any, Any]:
        return self.params["w"], self.params["b"] if self.bias else None


class Linear(Weighted):
    """y = x w + b over the last axis; x [..., in_features], w [in_features, out_features], b [out_features].

    bias=False leaves b out. w is drawn by init_rule and init_config (by default the model's own rule); learning_rate
    and weight_decay are the optimiser's for w alone.

    >>> nn.Linear(4, 3).init()(np.ones((2, 4))).shape
    (2, 3)
    """

    @checks.named(inputs="in_features", outputs="out_features")
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        init_rule: str | Callable | None = None,
        init_config: dict | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
    ) -> None:
        super().__init__()
        of_w = init_rule, init_config, learning_rate, weight_decay
        self.weigh((in_features, out_features), out_features, bias, *of_w)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.linear(x, *self.weights())


# ------------------------------------------------------------------ convolutions
class Windowed(Weighted):
    """The convolutions: kernel_size, stride and dilation are one number for all axes or one for each."""

    axes = 2

    def window(self, kernel_size: Any, stride: Any, dilation: Any, groups: int, *channels: int) -> tuple[int, ...]:
        """kernel_size for each axis."""
        self.stride = layers.sizes("stride", stride, 1, self.axes)
        self.dilation = layers.sizes("dilation", dilation, 1, self.axes)
        self.groups = groups_of(groups, *channels)
        return layers.sizes("kernel_size", kernel_size, 1, self.axes)


class Convolution(Windowed):
    """Conv1D, Conv2D and Conv3D: w is [out_channels, in_channels / groups, *kernel_size]."""

    function: Callable = staticmethod(layers.conv2d)

    @checks.named(channels="in_channels", filters="out_channels", size="kernel_size", pad="padding", dilate="dilation")
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        *,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        init_rule: str | Callable = "he",
        init_config: dict | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
    ) -> None:
        super().__init__()
        size = self.window(kernel_size, stride, dilation, groups, in_channels, out_channels)
        layers.paddings(padding, size, self.dilation, self.stride)  # raises what is wrong with it here
        self.padding, self.padding_mode = padding, checks.choice("padding_mode", padding_mode, layers.PADDING_MODES)
        of_w = init_rule, init_config, learning_rate, weight_decay
        self.weigh((out_channels, in_channels // groups, *size), out_channels, bias, *of_w)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        window = self.stride, self.padding, self.dilation
        return type(self).function(x, *self.weights(), *window, self.groups, self.padding_mode)


def groups_of(groups: int, *channels: int) -> int:
    """groups, which divides the numbers of channels."""
    groups = checks.count("groups", groups, 1)
    for number in channels:
        if checks.count("the number of channels", number, 1) % groups:
            raise ValueError(f"groups={groups} does not divide {number} channels")
    return groups


class Conv1D(Convolution):
    """layers.conv1d: x [N, in_channels, T] -> [N, out_channels, T']; arguments as in Conv2D.

    >>> nn.Conv1D(2, 5, 3, padding="same").init()(np.ones((1, 2, 8))).shape
    (1, 5, 8)
    """

    axes, function = 1, staticmethod(layers.conv1d)


class Conv2D(Convolution):
    """layers.conv2d: x [N, in_channels, H, W] -> [N, out_channels, H', W'].

    kernel_size     K (3), stride s (1), padding p (0), dilation d (1): one int for all axes, or one for each;
                    H' = (H + 2 p - d (K - 1) - 1) // s + 1; padding="same" keeps H and W (with stride 1)
    groups          channels in so many groups (1), of which each output sees one
    bias            whether b [out_channels] is added
    padding_mode    what the padding holds: "zeros", "reflect", "replicate" or "circular"
    init_rule       of w [out_channels, in_channels / groups, K, K] ("he"), with init_config; learning_rate and
                    weight_decay are the optimiser's for w alone

    >>> nn.Conv2D(3, 8, 3, stride=2, padding=1).init()(np.ones((1, 3, 8, 8))).shape
    (1, 8, 4, 4)
    """


class Conv3D(Convolution):
    """layers.conv3d: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W']; arguments as in Conv2D.

    >>> nn.Conv3D(1, 2, 3).init()(np.ones((1, 1, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    axes, function = 3, staticmethod(layers.conv3d)


class TransposedConvolution(Windowed):
    """ConvTranspose1D, 2D and 3D: w is [in_channels, out_channels / groups, *kernel_size]."""

    function: Callable = staticmethod(layers.conv_transpose2d)

    @checks.named(
        channels="in_channels",
        filters="out_channels",
        size="kernel_size",
        pad="padding",
        adj="output_padding",
        dilate="dilation",
    )
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int] = 3,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        *,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        init_rule: str | Callable = "he",
        init_config: dict | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
    ) -> None:
        super().__init__()
        size = self.window(kernel_size, stride, dilation, groups, in_channels, out_channels)
        self.padding = layers.sizes("padding", padding, 0, self.axes)
        self.output_padding = layers.sizes("output_padding", output_padding, 0, self.axes)
        if any(more >= step for more, step in zip(self.output_padding, self.stride)):
            raise ValueError(f"output_padding={output_padding} is less than the stride, {stride}")
        of_w = init_rule, init_config, learning_rate, weight_decay
        self.weigh((in_channels, out_channels // groups, *size), out_channels, bias, *of_w)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        window = self.stride, self.padding, self.output_padding, self.dilation
        return type(self).function(x, *self.weights(), *window, self.groups)


class ConvTranspose1D(TransposedConvolution):
    """layers.conv_transpose1d: x [N, in_channels, T] -> [N, out_channels, T']; arguments as in ConvTranspose2D.

    Raises ValueError for an output_padding that is not less than the stride.

    >>> nn.ConvTranspose1D(2, 3, 4, stride=2, padding=1).init()(np.ones((1, 2, 5))).shape
    (1, 3, 10)
    """

    axes, function = 1, staticmethod(layers.conv_transpose1d)


class ConvTranspose2D(TransposedConvolution):
    """layers.conv_transpose2d: x [N, in_channels, H, W] -> [N, out_channels, H', W'].

    H' = (H - 1) s - 2 p + d (K - 1) + 1 + output_padding, with kernel_size K (3), stride s (1), padding p (0),
    output_padding (0, less than s) and dilation d (1) as in Conv2D, and so are groups, bias and the settings of
    w [in_channels, out_channels / groups, K, K].

    Raises ValueError for an output_padding that is not less than the stride.

    >>> nn.ConvTranspose2D(2, 3, 4, stride=2, padding=1).init()(np.ones((1, 2, 5, 5))).shape
    (1, 3, 10, 10)
    """


class ConvTranspose3D(TransposedConvolution):
    """layers.conv_transpose3d: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W']; as ConvTranspose2D.

    Raises ValueError for an output_padding that is not less than the stride.

    >>> nn.ConvTranspose3D(1, 1, 2, stride=2).init()(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    axes, function = 3, staticmethod(layers.conv_transpose3d)


class Lambda(Layer):
    """y = function(x): any function of one array as a layer; one with an argument `mode` is given the mode too.

    The parameters of a layer that the function is of (jit(layer), a method of it) are this layer's.

    >>> nn.Lambda(lambda x: x * 2)(np.ones(3))
    array([2., 2., 2.])
    """

    @checks.named()
    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function
        self.of_mode = asks_mode(function)

    def children(self) -> Any:
        owner = layer_of(self.function)
        return iter(()) if owner is None else iter([("function", owner)])

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return self.function(x, mode=mode) if self.of_mode else self.function(x)


def asks_mode(function: Any) -> bool:
    """Whether a call of the function, or of the layer that it is, has a place for mode=."""
    if isinstance(function, functools.partial):
        return "mode" not in function.keywords and asks_mode(function.func)
    if isinstance(function, Layer):
        return function.takes_mode
    if hasattr(function, "__wrapped__"):
        return asks_mode(function.__wrapped__)
    try:
        kind = inspect.signature(function).parameters["mode"].kind
    except (ValueError, TypeError, KeyError):  # a built-in has no signature
        return False
    return kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def layer_of(function: Any) -> Layer | None:
    """The layer that a function is a call of: as a method, through functools.partial, or what jit made of it."""
    while not isinstance(function, Layer):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.MethodType):
            function = function.__self__
        else:
            return None
    return function


class ReLU(Layer):
    """layers.relu of x, element by element.

    >>> nn.ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.relu(x)


class Sigmoid(Layer):
    """layers.sigmoid of x, element by element.

    >>> nn.Sigmoid()(np.array([0.0]))
    array([0.5])
    """

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.sigmoid(x)


class Tanh(Layer):
    """layers.tanh of x, element by element.

    >>> nn.Tanh()(np.array([0.0]))
    array([0.])
    """

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.tanh(x)


class GELU(Layer):
    """layers.gelu of x, element by element.

    >>> nn.GELU()(np.array([0.0]))
    array([0.])
    """

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.gelu(x)


class Flatten(Layer):
    """layers.flatten: [N, d1, ..., dk] -> [N, d1 * ... * dk].

    >>> nn.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.flatten(x)


# ------------------------------------------------------------------ pooling
class Pooling(Layer):
    """The pooling layers: kernel_size, stride (kernel_size by default) and padding, for all axes or one for each."""

    axes, kind = 2, "max"

    @checks.named(size="kernel_size", pad="padding")
    def __init__(
        self,
        kernel_size: int | Sequence[int] = 2,
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.kernel_size = layers.sizes("kernel_size", kernel_size, 1, self.axes)
        self.stride = self.kernel_size if stride is None else layers.sizes("stride", stride, 1, self.axes)
        self.padding = layers.sizes("padding", padding, 0, self.axes)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        who = type(self).__name__
        return layers.pool(who, self.axes, x, self.kernel_size, self.stride, self.padding, self.kind)


class MaxPool1D(Pooling):
    """y[n, c, i] = max of x[n, c, i s - p : i s - p + K]; [N, C, T] -> [N, C, T / K]; arguments as in MaxPool2D.

    >>> nn.MaxPool1D()(np.arange(4.0).reshape(1, 1, 4))
    array([[[1., 3.]]])
    """

    axes = 1


class MaxPool2D(Pooling):
    """layers.max_pool: [N, C, H, W] -> [N, C, H / K, W / K] with the default stride.

    kernel_size K (2), stride (K) and padding (0) are one int for all axes, or one for each.

    >>> nn.MaxPool2D()(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[3.]]]])
    """


class MaxPool3D(Pooling):
    """The largest of each window of volumes [N, C, D, H, W]; arguments as in MaxPool2D.

    >>> nn.MaxPool3D()(np.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 2, 2, 2)
    """

    axes = 3


class AvgPool1D(Pooling):
    """y[n, c, i] = mean of x[n, c, i s - p : i s - p + K], zeros of the padding counted; arguments as in MaxPool2D.

    >>> nn.AvgPool1D()(np.arange(4.0).reshape(1, 1, 4))
    array([[[0.5, 2.5]]])
    """

    axes, kind = 1, "avg"


class AvgPool2D(Pooling):
    """layers.avg_pool: as MaxPool2D, with the mean, zeros of the padding counted.

    >>> nn.AvgPool2D()(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """

    kind = "avg"


class AvgPool3D(Pooling):
    """The mean of each window of volumes [N, C, D, H, W]; arguments as in MaxPool2D.

    >>> nn.AvgPool3D()(np.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 2, 2, 2)
    """

    axes, kind = 3, "avg"


class GlobalAvgPool1D(Layer):
    """y[n, c] = mean of x[n, c] over all steps; [N, C, T] -> [N, C].

    >>> nn.GlobalAvgPool1D()(np.ones((2, 3, 8))).shape
    (2, 3)
    """

    axes = 1

    def forward(self, x: Any, mode: str | None = None) -> Any:
        layers.check_data(type(self).__name__, x, self.axes)
        return np.mean(x, axis=tuple(range(2, 2 + self.axes)))


class GlobalAvgPool2D(GlobalAvgPool1D):
    """y[n, c] = mean of x[n, c] over all pixels; [N, C, H, W] -> [N, C].

    >>> nn.GlobalAvgPool2D()(np.ones((2, 3, 8, 8))).shape
    (2, 3)
    """

    axes = 2


class GlobalAvgPool3D(GlobalAvgPool1D):
    """y[n, c] = mean of x[n, c] over the volume; [N, C, D, H, W] -> [N, C].

    >>> nn.GlobalAvgPool3D()(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3)
    """

    axes = 3


# ------------------------------------------------------------------ normalisation and noise
class Normalisation(Layer):
    """A layer with a factor gamma and a term beta, which begin as 1 and 0 and do not decay."""

    eps: float

    def scaled(self, shape: Sequence[int], eps: float) -> None:
        self.eps = checks.number("eps", eps)
        self.add_param("gamma", shape, init_rule="constant", init_config={"value": 1.0}, weight_decay=0.0)
        self.add_param("beta", shape, init_rule="constant", weight_decay=0.0)


class BatchNorm(Normalisation):
    """layers.batchnorm over the batch, with its running averages; x [N, num_features] or [N, num_features, ...].

    eps (1e-5) is added to the variance; momentum (0.9) is the share of the old average in the new one.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm(3)).init()
    >>> net(np.ones((2, 4)), mode="test").shape
    (2, 3)
    """

    @checks.named(channels="num_features")
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9) -> None:
        super().__init__()
        self.momentum = checks.number("momentum", momentum)
        self.scaled((num_features,), eps)
        self.add_aux_param("running_mean", np.zeros(num_features, np.float32))
        self.add_aux_param("running_var", np.ones(num_features, np.float32))

    def forward(self, x: Any, mode: str | None = None) -> Any:
        p, kept = self.params, self.aux_params
        y, mean, var = layers.batchnorm(
            x, p["gamma"], p["beta"], mode, self.eps, self.momentum, kept["running_mean"], kept["running_var"]
        )
        if mode == "train":
            kept["running_mean"], kept["running_var"] = mean, var
        return y


class LayerNorm(Normalisation):
    """layers.layernorm over the last axis, or axes; x [..., *normalized_shape], which is an int for one axis.

    >>> nn.LayerNorm(3).init()(np.ones((2, 3)))
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """

    @checks.named(size="normalized_shape")
    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5) -> None:
        super().__init__()
        self.scaled(checks.shape("normalized_shape", normalized_shape), eps)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.layernorm(x, self.params["gamma"], self.params["beta"], self.eps)


class GroupNorm(Normalisation):
    """layers.groupnorm: each group of channels of each example of x [N, num_channels, ...] normalised.

    >>> nn.GroupNorm(2, 4).init()(np.ones((2, 4, 5))).shape
    (2, 4, 5)
    """

    @checks.named(groups="num_groups", channels="num_channels")
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.num_groups = groups_of(num_groups, num_channels)
        self.scaled((num_channels,), eps)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.groupnorm(x, self.params["gamma"], self.params["beta"], self.num_groups, self.eps)


class InstanceNorm(Normalisation):
    """layers.instancenorm: each channel of each example of x [N, num_features, ...] normalised over its pixels.

    >>> nn.InstanceNorm(4).init()(np.ones((2, 4, 5))).shape
    (2, 4, 5)
    """

    @checks.named(channels="num_features")
    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.scaled((num_features,), eps)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.instancenorm(x, self.params["gamma"], self.params["beta"], self.eps)


class Dropout(Layer):
    """layers.dropout: each element dropped with probability p (0.5) in training, and the rest scaled by 1 / (1 - p).

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2)).init()
    >>> net(np.ones((2, 4)), mode="test").shape
    (2, 3)
    """

    @checks.named(prob="p")
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = layers.check_prob(p)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.dropout(x, self.p, mode)


class Embedding(Layer):
    """layers.word_embedding: x [...] integers in [0, num_embeddings) -> [..., embedding_dim], rows of w.

    IndexError for an integer outside; inside jit and on a device a negative one counts from the end, as in NumPy.
    w [num_embeddings, embedding_dim] is drawn by init_rule and init_config (normal with a deviation of 0.5);
    learning_rate and weight_decay are the optimiser's for it.

    >>> nn.Embedding(10, 4).init()(np.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    @checks.named(words="num_embeddings", size="embedding_dim")
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        init_rule: str | Callable | None = None,
        init_config: dict | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
    ) -> None:
        super().__init__()
        if init_rule is None:
            init_rule, init_config = "gaussian", {"stdvar": 0.5, **(init_config or {})}
        of_w = {"init_rule": init_rule, "init_config": init_config}
        shape = (num_embeddings, embedding_dim)
        self.add_param("w", shape, **of_w, learning_rate=learning_rate, weight_decay=weight_decay)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return layers.word_embedding(x, self.params["w"])


# ------------------------------------------------------------------ layers of layers
class Symbolic(Layer):
    """y = the symbol at x: its arguments are this layer's parameters, but for the inputs named in input_shapes.

    Symbolic(net, {"data": (32, 1, 8, 8)}): the shapes settle those of the parameters. net: a symbol of minnp.symbol,
    whose auxiliary states are this layer's auxiliary values, or MXNet's, which keeps its own.

    >>> h = sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="fc")
    >>> nn.Symbolic(h, {"x": (2, 4)}).init()(np.ones((2, 4))).shape
    (2, 3)
    """

    @checks.named()
    def __init__(self, symbol: Any, input_shapes: dict[str, Sequence[int]], name: str = "symbol") -> None:
        super().__init__()
        self.hold(Function(symbol, input_shapes=input_shapes, name=name), list(input_shapes))

    @classmethod
    def of(cls, function: Function) -> Symbolic:
        """The layer of a Function of one input: the first in its input_shapes, or its first argument. What its symbol
        brings no values for are parameters; what a torch module brings stays as it is."""
        layer = cls.__new__(cls)
        layer.hold(function, function.inputs[:1])
        return layer

    def hold(self, function: Function, inputs: list[str]) -> None:
        self.function, self.inputs = function, inputs
        own = function.get_values()
        if any(name not in own for name in function.arguments if name not in inputs):
            self.add_params({name: config for name, config in function.get_params().items() if name not in own})
        for name, value in function.get_own_states().items():
            self.add_aux_param(name, value)

    def forward(self, *inputs: Any, mode: str | None = None) -> Any:
        return self.function(**dict(zip(self.inputs, inputs)), **self.params, **self.aux_params)


class Residual(Layer):
    """y = x + inner(x) (He et al. 2016).

    >>> nn.Residual(nn.Linear(4, 4), nn.ReLU()).init()(np.ones((2, 4))).shape
    (2, 4)
    """

    @checks.named()
    def __init__(self, *inner: Layer | Callable) -> None:
        super().__init__()
        self.inner = as_layer(inner[0]) if len(inner) == 1 else Sequential(*inner)

    def forward(self, x: Any, mode: str | None = None) -> Any:
        return x + run_layer(self.inner, x, mode)


def as_layer(step: Layer | Callable) -> Layer:
    """The step itself, or the function as a Lambda."""
    if isinstance(step, type) or not callable(step):
        way_out = f"write {step.__name__}()" if isinstance(step, type) else "write Sequential(first, second, ...)"
        raise TypeError(f"a step of Sequential is a layer or a function of one array, got {step!r}: {way_out}")
    if isinstance(step, Function):
        return Symbolic.of(step)
    return step if isinstance(step, Layer) else Lambda(step)


class Sequential(ModelBase):
    """y = last(... second(first(x))): layers (or functions of one array) one after another, ready to fit.

    steps   layers, and functions of one array

    loss is a function (outputs, labels) -> number, or the name of one in minnp.nn.losses. net[0] is a step, net[:2] a
    Sequential of some, len(net) their number; `for step in net` goes over them.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).init()
    >>> net(np.ones((2, 4))).shape
    (2, 3)
    """

    @checks.named()
    def __init__(self, *steps: Layer | Callable, loss: Callable | str = "softmax_loss") -> None:
        super().__init__()
        self.steps = [as_layer(step) for step in steps]
        known = {name: getattr(losses, name) for name in losses.NAMES}
        if loss in ("l1_loss", "l2_loss", "huber_loss"):
            self.metrics = ()  # numbers are not right or wrong
        self.loss_function = checks.one_of("loss", loss, known, "(outputs, labels) -> number")

    def __getitem__(self, index: int | slice) -> Any:
        """A step, net[0]; a slice of them is a Sequential of the same layers, with the same loss."""
        if isinstance(index, slice):
            return Sequential(*self.steps[index], loss=self.loss_function)
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.steps)

    def __bool__(self) -> bool:
        return True

    def children(self) -> Any:
        # "0.w" rather than "steps.0.w": the steps are all there is.
        return ((str(i), step) for i, step in enumerate(self.steps))

    def forward(self, x: Any, mode: str | None = None) -> Any:
        for step in self.steps:
            x = run_layer(step, x, mode)
        return x

    def loss(self, predict: Any, y: Any, weight: Any = None) -> Any:
        return self.loss_function(predict, y) if weight is None else self.loss_function(predict, y, weight=weight)
