"""Neural networks in a few hundred readable lines: layers, losses, optimisers, a training loop, data, checkpoints.

    import minnp.nn as nn

    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    data = nn.io.digits()
    net.fit(data.x_train, data.y_train, epochs=20)
    net.evaluate(data.x_test, data.y_test)

Everything is written on minnp.numpy and minnp.npx only, so each file can be read as a lesson: `layers` (functions),
`losses`, `init`, `optim`, `model` (the parameter tree), `modules` and `recurrent` (layers as objects), `io`, `augment`,
`datasets`, `solver`, `callbacks`, `checkpoint`.
"""

from . import augment, callbacks, checkpoint, datasets, init, io, layers, losses, metrics, model, optim, solver
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
    GlobalAvgPool2D,
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
from .recurrent import GRU, LSTM, RNN, MultiHeadAttention, TransformerBlock
from .solver import Solver

# Its options are Solver's, in whose file they are listed; help and completion find them here.
ModelBase.fit.__signature__ = _training.signature()
