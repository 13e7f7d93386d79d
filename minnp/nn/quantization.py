"""Quantisation-aware training: layers that compute on what 8-bit integers would hold, and learn to do well on it.

    net = nn.quantization_aware(model)                    # shares the model's parameters
    net.fit(x, y, ...)                                    # observes ranges, trains through the rounding
    small = fx.convert(fx.capture(lambda x: net(x, mode="test"), x))          # the same numbers, in integers

Forward, x and the weight are rounded as integers are (Jacob et al. 2018, section 3); backward, rounding is passed
straight through, and what is out of range gets no gradient.
"""

from __future__ import annotations

import copy
from typing import Any

import minnp.numpy as np
from minnp import npx
from minnp.distributed import share

from . import checks
from .model import Layer, run_layer
from .modules import Convolution, Linear

__all__ = ["QuantizationAware", "quantization_aware"]


class QuantizationAware(Layer):
    """A Linear or convolution whose input is rounded to 0 .. 255 of a moving range, and whose weight to -127 .. 127.

    layer   the Linear or convolution, whose parameters it shares; TypeError for another

    The range of the input is a moving average of its least and largest element in training; momentum (0.9) is the share
    of the old one. Each output channel of the weight has a scale of its own, from the weight as it is.

    >>> layer = nn.quantization.QuantizationAware(nn.Linear(4, 3))
    >>> layer.layer.param_configs["w"]["shape"]
    (4, 3)
    """

    @checks.named()
    def __init__(self, layer: Layer, momentum: float = 0.9) -> None:
        super().__init__()
        if not isinstance(layer, Linear | Convolution):
            raise TypeError(f"Linear and convolutions have an integer form, a {type(layer).__name__} has none")
        self.layer, self.momentum = layer, checks.number("momentum", momentum)
        self.add_aux_param("low", np.zeros((), np.float32))
        self.add_aux_param("high", np.zeros((), np.float32))

    def forward(self, x: Any, mode: str | None = None) -> Any:
        x = x if hasattr(x, "ndim") else np.asarray(x)
        if mode == "train":
            self.observe(x)
        rows = x.reshape(-1, x.shape[-1]) if isinstance(self.layer, Linear) and x.ndim > 2 else x
        if mode == "train" or self.aux_params["high"] > self.aux_params["low"]:  # else there is no range yet
            rows = npx.fake_quantize(rows, *self.affine())
        with self.layer.holding({"w": self.rounded(self.layer.params["w"])}):
            y = run_layer(self.layer, rows, mode)
        return y if rows.ndim == x.ndim else y.reshape(*x.shape[:-1], y.shape[-1])

    def observe(self, x: Any) -> None:
        """Move the range towards that of x; zero is always in it."""
        kept, x = self.aux_params, npx.stop_gradient(x)
        old = np.where(kept["low"] == kept["high"], 0.0, self.momentum)  # nothing yet: all of the new
        least, most = np.minimum(np.min(x), 0.0), np.maximum(np.max(x), 0.0)
        if (part := share()) is not None:  # of the whole batch; an empty share has an example that does not count
            least, most = (m if part.counts else 0 * m for m in (least, most))
            least, most = part.mesh.all_reduce(least, "min"), part.mesh.all_reduce(most, "max")
        for name, now in (("low", least), ("high", most)):
            kept[name] = (old * kept[name] + (1 - old) * now).astype(np.float32)

    def affine(self) -> tuple[Any, Any]:
        """(scale, zero point) with which 0 .. 255 cover the range."""
        low, high = self.aux_params["low"], self.aux_params["high"]
        scale = np.where(high > low, (high - low) / 255, 1.0).astype(np.float32)
        return scale, np.clip(np.rint(-low / scale), 0, 255)

    def rounded(self, w: Any) -> Any:
        """The weight, as int8 with a scale for each output channel."""
        axes = (0,) if isinstance(self.layer, Linear) else tuple(range(1, w.ndim))
        largest = np.max(np.abs(npx.stop_gradient(w)), axis=axes, keepdims=True)
        scale = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
        return npx.fake_quantize(w, scale, 0, low=-127, high=127)


@checks.named()
def quantization_aware(model: Layer, momentum: float = 0.9) -> Any:
    """The model with each Linear and convolution as QuantizationAware; parameters and other layers are shared with it.

    Raises ValueError where there is none, TypeError for what is no layer.

    >>> net = nn.quantization_aware(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).init())
    >>> [type(step).__name__ for step in net.steps]
    ['QuantizationAware', 'ReLU']
    """
    if not isinstance(model, Layer):
        raise TypeError(f"quantization_aware takes a model of minnp.nn, got {model!r:.60} ({type(model).__name__})")
    made: dict[int, Any] = {}

    def of(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(map(of, x))
        if isinstance(x, dict):
            return {key: of(value) for key, value in x.items()}
        if not isinstance(x, Layer) or isinstance(x, QuantizationAware):
            return x
        if id(x) not in made:
            if isinstance(x, Linear | Convolution):
                made[id(x)] = new = QuantizationAware(x, momentum)
                if x.initialised:  # the layer is; `init` would draw its weight anew
                    new.aux_params.update({name: value.copy() for name, value in new.aux_param_configs.items()})
            elif any(x.children()):
                new = made[id(x)] = copy.copy(x)
                own = ("params", "aux_params", "param_configs", "aux_param_configs")
                vars(new).update({key: of(value) for key, value in vars(x).items() if key not in own})
            else:
                made[id(x)] = x
        return made[id(x)]

    new = of(model)
    if not any(isinstance(layer, QuantizationAware) for _, layer in new.walk()):
        raise ValueError(f"this {type(model).__name__} holds no Linear and no convolution to train for integers")
    return new
