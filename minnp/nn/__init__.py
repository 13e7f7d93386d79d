"""Neural networks in a few hundred readable lines: layers, losses, optimisers, a training loop, data, checkpoints.

    import minnp.nn as nn

    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    data = nn.io.digits()
    net.fit(data.x_train, data.y_train, epochs=20)
    net.evaluate(data.x_test, data.y_test)

Everything is written on minnp.numpy and minnp.npx only, so each file can be read as a lesson: `layers` (functions),
`losses`, `init`, `optim`, `model` (the parameter tree), `modules` and `recurrent` (layers as objects), `summary`, `io`,
`augment`, `datasets`, `solver`, `callbacks`, `checkpoint`.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from . import (
    augment,
    callbacks,
    checkpoint,
    datasets,
    init,
    io,
    layers,
    losses,
    metrics,
    model,
    modules,
    optim,
    precision,
    quantization,
    recurrent,
    solver,
)
from . import training as _training
from .model import Layer, ModelBase
from .modules import (
    GELU,
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    BatchNorm,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvTranspose1D,
    ConvTranspose2D,
    ConvTranspose3D,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GroupNorm,
    InstanceNorm,
    Lambda,
    LayerNorm,
    Linear,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    ReLU,
    Residual,
    Sequential,
    Sigmoid,
    Symbolic,
    Tanh,
)
from .precision import LossScale
from .quantization import QuantizationAware, quantization_aware
from .recurrent import GRU, LSTM, RNN, MultiHeadAttention, TransformerBlock
from .solver import Solver

__all__ = [
    "GELU",
    "GRU",
    "LSTM",
    "RNN",
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
    "Layer",
    "LayerNorm",
    "Linear",
    "LossScale",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ModelBase",
    "MultiHeadAttention",
    "QuantizationAware",
    "ReLU",
    "Residual",
    "Sequential",
    "Sigmoid",
    "Solver",
    "Symbolic",
    "Tanh",
    "TransformerBlock",
    "augment",
    "callbacks",
    "checkpoint",
    "datasets",
    "init",
    "io",
    "layers",
    "losses",
    "metrics",
    "model",
    "modules",
    "optim",
    "precision",
    "quantization",
    "quantization_aware",
    "recurrent",
    "solver",
]


if not TYPE_CHECKING:  # which know every name from above

    def __getattr__(name: str) -> Any:
        """AttributeError that says which layer is meant: Conv2d, as torch writes it, Dense, as Gluon does."""
        layers_here = {known.lower(): known for known in (*modules.__all__, *recurrent.__all__)}
        layers_here |= {"dense": "Linear", **{f"conv{n}dtranspose": f"ConvTranspose{n}D" for n in (1, 2, 3)}}
        layers_here |= {"module": "ModelBase", "block": "ModelBase", "functional": "layers"}
        layers_here |= {"dataloader": "io.NDArrayIter", "dropout2d": "Dropout", "trainer": "Solver"}
        layers_here |= {
            "modulelist": "list",
            "moduledict": "dict",
            "parameter": "Layer.add_param",
            "softmax": "npx.softmax",
        }
        layers_here |= {
            "crossentropyloss": "losses.softmax_loss",
            "mseloss": "losses.l2_loss",
            "bceloss": "losses.binary_cross_entropy",
            "bcewithlogitsloss": "losses.binary_cross_entropy",
        }
        near = get_close_matches(name.lower(), layers_here, 1, 0.7)
        meant = f"; do you mean {layers_here[near[0]]!r}?" if near and not name.startswith("_") else ""
        raise AttributeError(f"module 'minnp.nn' has no attribute {name!r}{meant}")


# Its options are Solver's, in whose file they are listed; help and completion find them here.
ModelBase.fit.__signature__ = _training.signature()
