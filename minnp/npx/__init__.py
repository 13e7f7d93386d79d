"""Neural-network operators, under MXNet's names: `from minnp import npx`."""

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
