"""Neural-network operators, under MXNet's names: `from minnp import npx`."""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING, Any

import numpy as _onp

from ..core.transforms.grad import stop_gradient
from . import inference, quantized  # rows
from .functions import (
    activation,
    dropout,
    erf,
    erfinv,
    gelu,
    leaky_relu,
    log_softmax,
    masked_log_softmax,
    masked_softmax,
    relu,
    sigmoid,
    silu,
    smooth_l1,
    softmax,
    softplus,
)
from .layers import (
    batch_norm,
    convolution,
    deconvolution,
    fully_connected,
    group_norm,
    instance_norm,
    layer_norm,
    pooling,
)
from .quantized import fake_quantize
from .selection import (
    arange_like,
    batch_dot,
    batch_flatten,
    broadcast_like,
    embedding,
    gather_nd,
    index_add,
    index_update,
    nonzero,
    one_hot,
    pick,
    reshape_like,
    shape_array,
    topk,
)
from .sequences import (
    attention,
    gru,
    lstm,
    lstm_cell,
    rnn,
    sequence_last,
    sequence_mask,
    sequence_reverse,
    simple_rnn,
)
from .updates import adam_update

__all__ = [
    "activation",
    "adam_update",
    "arange_like",
    "attention",
    "batch_dot",
    "batch_flatten",
    "batch_norm",
    "broadcast_like",
    "convolution",
    "deconvolution",
    "dropout",
    "embedding",
    "erf",
    "erfinv",
    "fake_quantize",
    "fully_connected",
    "gather_nd",
    "gelu",
    "group_norm",
    "gru",
    "index_add",
    "index_update",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lstm",
    "lstm_cell",
    "masked_log_softmax",
    "masked_softmax",
    "nonzero",
    "one_hot",
    "pick",
    "pooling",
    "relu",
    "reshape_like",
    "rnn",
    "sequence_last",
    "sequence_mask",
    "sequence_reverse",
    "shape_array",
    "sigmoid",
    "silu",
    "simple_rnn",
    "smooth_l1",
    "softmax",
    "softplus",
    "stop_gradient",
    "topk",
]

# what other libraries have here, and what does its work
_ELSEWHERE = {
    "cpu": "minnp.cpu()",
    "gpu": "minnp.gpu(0)",
    "elu": "npx.leaky_relu(x, act_type='elu')",
    "load": "np.load of minnp.numpy",
    "logsumexp": "minnp.scipy.special.logsumexp",
    "reset_np": "nothing: arrays are NumPy's",
    "save": "np.savez of minnp.numpy",
    "seed": "np.random.seed of minnp.numpy",
    "set_np": "nothing: arrays are NumPy's",
    "swish": "npx.silu",
    "waitall": "x.wait_to_read()",
}

if not TYPE_CHECKING:  # which know every name from above

    def __getattr__(name: str) -> Any:
        meant = _ELSEWHERE.get(name, f"np.{name} of minnp.numpy" if name in _onp.__all__ else None)
        instead = f"; here it is {meant}" if meant else ""
        raise AttributeError(
            f"module 'minnp.npx' has no attribute {name!r}{instead}", name=name, obj=_sys.modules[__name__]
        )
