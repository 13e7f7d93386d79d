"""Sequences: recurrent layers, attention, and masks over time. Time comes first: [T, N, ...]."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.arrays.array import ndarray
from ..core.rows.dispatch import knows
from ..numpy.arguments import as_array
from ..numpy.products import matmul
from ..numpy.shaping import concatenate, reshape, stack, swapaxes
from ..numpy.ufuncs import where
from . import cells as chains
from . import recurrent as rows
from .arguments import truth
from .functions import dropout, masked_softmax, softmax
from .selection import integers

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


# ------------------------------------------------------------------ one layer
def lstm(x: Any, h: Any, c: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any = None) -> tuple[ndarray, ndarray, ndarray]:
    """An LSTM layer (Hochreiter and Schmidhuber 1997): all outputs [T, N, H], and the last h and c [N, H].

    x [T, N, I], h and c [N, H], w_x [4 H, I], w_h [4 H, H], b_x and b_h [4 H], gates in the order i, f, g, o:
    a = x_t w_x^T + b_x + h w_h^T + b_h;  c = sigmoid(a_f) c + sigmoid(a_i) tanh(a_g);  h = sigmoid(a_o) tanh(c)

    >>> x, h, c = np.zeros((5, 2, 3)), np.zeros((2, 4)), np.zeros((2, 4))
    >>> outputs, h, c = npx.lstm(x, h, c, np.zeros((16, 3)), np.zeros((16, 4)), np.zeros(16))
    >>> outputs.shape, h.shape
    ((5, 2, 4), (2, 4))
    """
    b = as_array(b_x) if b_h is None else as_array(b_x) + as_array(b_h)
    hs, cs, *_ = chains.lstm(*map(as_array, (x, h, c, w_x, w_h)), b)
    return hs, hs[-1], cs[-1]


def lstm_cell(a: Any, *cells: Any) -> tuple[ndarray, ndarray]:
    """One step of an LSTM, (h, c) [N, H], from the sums a [N, (3 + K) H] before its gates and K cells [N, H].

    Gates i, f_1 ... f_K, o, g side by side:  c = sigmoid(a_i) tanh(a_g) + sum_k sigmoid(a_f_k) c_k;
    h = sigmoid(a_o) tanh(c). K = 1 is the LSTM on a chain, K = 2 on a binary tree (Tai et al. 2015, equations 9-14).
    ValueError if the shapes disagree.

    >>> h, c = npx.lstm_cell(np.zeros((2, 16)), np.ones((2, 4)))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """
    a, cells = as_array(a), tuple(map(as_array, cells))
    shapes = {c.shape for c in cells}
    n, size = cells[0].shape if len(shapes) == 1 and cells[0].ndim == 2 else (0, 0)
    if not size or a.shape != (n, (3 + len(cells)) * size):
        raise ValueError(
            f"lstm_cell of a {a.shape} and cells {[c.shape for c in cells]}: with K cells [N, H], a is [N, (3 + K) H]"
        )
    h, c, *_ = chains.lstm_cell(a, *cells)
    return h, c


def gru(x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any) -> tuple[ndarray, ndarray]:
    """A GRU layer (Cho et al. 2014, with cuDNN's reset): all outputs [T, N, H], and the last [N, H].

    x [T, N, I], h [N, H], w_x [3 H, I], w_h [3 H, H], b_x and b_h [3 H], gates in the order r, z, n. With
    a = x_t w_x^T + b_x and e = h w_h^T + b_h:  r = sigmoid(a_r + e_r);  z = sigmoid(a_z + e_z);
    n = tanh(a_n + r e_n);  h = (1 - z) n + z h

    >>> x, h = np.zeros((5, 2, 3)), np.zeros((2, 4))
    >>> outputs, h = npx.gru(x, h, np.zeros((12, 3)), np.zeros((12, 4)), np.zeros(12), np.zeros(12))
    >>> outputs.shape, h.shape
    ((5, 2, 4), (2, 4))
    """
    hs, *_ = rows.gru(*map(as_array, (x, h, w_x, w_h, b_x, b_h)))
    return hs, hs[-1]


def simple_rnn(
    x: Any, h: Any, w_x: Any, w_h: Any, b_x: Any, b_h: Any = None, activation: str = "tanh"
) -> tuple[ndarray, ndarray]:
    """h = tanh(x_t w_x^T + b_x + h w_h^T + b_h) (or relu): all outputs [T, N, H], and the last [N, H].

    x            [T, N, I]; h [N, H], w_x [H, I], w_h [H, H], b_x and b_h [H]
    activation   "tanh" or "relu"; ValueError else

    >>> x, h = np.zeros((5, 2, 3)), np.zeros((2, 4))
    >>> outputs, h = npx.simple_rnn(x, h, np.zeros((4, 3)), np.zeros((4, 4)), np.zeros(4))
    >>> outputs.shape, h.shape
    ((5, 2, 4), (2, 4))
    """
    if activation not in ("tanh", "relu"):
        raise ValueError(f"activation={activation!r}: choose from tanh, relu")
    b = as_array(b_x) if b_h is None else as_array(b_x) + as_array(b_h)
    (hs,) = rows.simple_rnn(*map(as_array, (x, h, w_x, w_h)), b, activation=activation)
    return hs, hs[-1]


# ------------------------------------------------------------------ MXNet's stack of layers
def _unpacked(parameters: ndarray, inputs: int, hidden: int, gates: int, layers: int, ways: int) -> list[tuple]:
    """(w_x, w_h, b_x, b_h) of each layer and direction: all weights come first in the vector, then all biases."""
    shapes = []
    for layer in range(layers):
        width = inputs if layer == 0 else hidden * ways
        shapes += [(gates * hidden, width), (gates * hidden, hidden)] * ways
    shapes += [(gates * hidden,)] * (2 * layers * ways)
    sizes = [int(onp.prod(s)) for s in shapes]
    if sum(sizes) != parameters.size:
        raise ValueError(f"npx.rnn needs {sum(sizes)} parameters for these sizes, got {parameters.size}")
    starts = onp.cumsum([0, *sizes])
    parts = [reshape(parameters[a : a + n], shape=s) for a, n, s in zip(starts, sizes, shapes)]
    half = 2 * layers * ways
    return [(*parts[i : i + 2], *parts[half + i : half + i + 2]) for i in range(0, half, 2)]


def rnn(
    data: Any,
    parameters: Any,
    state: Any,
    state_cell: Any = None,
    sequence_length: Any = None,
    mode: str = "lstm",
    state_size: int | None = None,
    num_layers: int = 1,
    bidirectional: bool = False,
    state_outputs: bool = False,
    p: float = 0.0,
    use_sequence_length: bool = False,
    rng: Any = None,
) -> Any:
    """A stack of recurrent layers, as MXNet's: data [T, N, I] gives [T, N, D H], with D = 2 if bidirectional, else 1.

    state_size       H, where it is to be checked
    parameters       a vector: w_x, w_h of each layer and direction, then b_x, b_h of each (see lstm, gru, simple_rnn)
    state            [num_layers D, N, H]; state_cell too, for the LSTM
    mode             lstm, gru, rnn_tanh or rnn_relu
    state_outputs    return [output, state] ([output, state, state_cell] for the LSTM), each after the last step
    p                the fraction of each layer's inputs that is dropped, but the first's; `rng` as in dropout
    sequence_length  [N], with use_sequence_length: later steps give 0, and states are those after the last own step

    Raises ValueError for another mode, and where state_size is not the state's.

    >>> data, state, parameters = np.zeros((5, 2, 3)), np.zeros((1, 2, 4)), np.zeros(36)
    >>> npx.rnn(data, parameters, state, mode="rnn_tanh", state_size=4, num_layers=1).shape
    (5, 2, 4)
    """
    if mode not in GATES:
        raise ValueError(f"mode={mode!r}: choose from {', '.join(GATES)}")
    x, state = as_array(data), as_array(state)
    ways, hidden = 2 if bidirectional else 1, state.shape[-1]
    if state_size not in (None, hidden):
        raise ValueError(f"state_size={state_size}, and state has {hidden}")
    cells = as_array(state_cell) if mode == "lstm" else None
    lengths = integers(sequence_length) if use_sequence_length else None
    weights = _unpacked(as_array(parameters), x.shape[-1], hidden, GATES[mode], num_layers, ways)
    last = []
    for layer in range(num_layers):
        if layer and p:
            x = dropout(x, p, rng=rng)
        outs = []
        for way in range(ways):
            k = layer * ways + way
            out, *states = _run(x, mode, state[k], None if cells is None else cells[k], weights[k], lengths, way == 1)
            outs.append(out)
            last.append(states)
        x = outs[0] if ways == 1 else concatenate(*outs, axis=-1)
    if not state_outputs:
        return x
    return [x, *(stack(*states, axis=0) for states in zip(*last, strict=True))]


knows(rnn, pure=False)


def _run(x: Any, mode: str, h: Any, c: Any, weights: tuple, lengths: Any, backwards: bool) -> tuple:
    """One layer in one direction: outputs, then the states after each sequence's last step."""
    counted = {"sequence_length": lengths, "use_sequence_length": lengths is not None}
    if backwards:
        x = sequence_reverse(x, **counted)
    w_x, w_h, b_x, b_h = weights
    if mode == "lstm":
        states = chains.lstm(x, h, c, w_x, w_h, b_x + b_h)[:2]
    elif mode == "gru":
        states = rows.gru(x, h, w_x, w_h, b_x, b_h)[:1]
    else:
        states = rows.simple_rnn(x, h, w_x, w_h, b_x + b_h, activation=mode.removeprefix("rnn_"))
    last = [sequence_last(s, **counted) for s in states]
    out = sequence_mask(states[0], **counted)
    return (sequence_reverse(out, **counted) if backwards else out, *last)


# ------------------------------------------------------------------ masks over time, attention
def sequence_mask(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, value: float = 0.0, axis: int = 0
) -> ndarray:
    """data [T, N, ...] (axis=1: [N, T, ...]) with `value` after the first sequence_length[n] steps of each sequence.

    use_sequence_length   whether sequence_length counts; else data is given back
    axis                  where time is: 0 or 1; ValueError else

    >>> npx.sequence_mask(np.ones((3, 2)), np.array([1, 3]), use_sequence_length=True)
    array([[1., 1.],
           [0., 1.],
           [0., 1.]])
    """
    x = as_array(data)
    if not use_sequence_length or sequence_length is None:
        return x
    if axis not in (0, 1):
        raise ValueError(f"axis={axis}: time is axis 0 or 1")
    steps, lengths = onp.arange(x.shape[axis]), integers(sequence_length)
    inside = steps[:, None] < lengths if axis == 0 else steps < lengths[:, None]
    return where(inside.reshape(inside.shape + (1,) * (x.ndim - 2)), x, float(value))


def sequence_last(data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0) -> ndarray:
    """The last step of each sequence in data [T, N, ...]: [N, ...].

    sequence_length, use_sequence_length   [N] steps of each sequence, and whether they count; else all have T
    axis                                   where time is: 0, or 1 for data [N, T, ...]; ValueError else

    >>> npx.sequence_last(np.arange(6.0).reshape(3, 2), np.array([1, 3]), use_sequence_length=True)
    array([0., 5.])
    """
    x = as_array(data)
    if axis not in (0, 1):
        raise ValueError(f"axis={axis}: time is axis 0 or 1")
    if not use_sequence_length or sequence_length is None:
        return x[-1] if axis == 0 else x[:, -1]
    last, each = integers(sequence_length) - 1, onp.arange(x.shape[1 - axis])
    return x[(last, each) if axis == 0 else (each, last)]


def sequence_reverse(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> ndarray:
    """data [T, N, ...] with the first sequence_length[n] steps of each sequence in reverse order, the rest in place.

    use_sequence_length   whether sequence_length counts; else all have T steps
    axis                  where time is: 0; ValueError else

    >>> npx.sequence_reverse(np.arange(6.0).reshape(3, 2), np.array([1, 3]), use_sequence_length=True)
    array([[0., 5.],
           [2., 3.],
           [4., 1.]])
    """
    x = as_array(data)
    if axis != 0:
        raise ValueError(f"axis={axis}: time is axis 0")
    steps = x.shape[0]
    lengths = integers(sequence_length) if use_sequence_length else onp.full(x.shape[1], steps)
    t = onp.arange(steps)[:, None]
    return x[onp.where(t < lengths, lengths - 1 - t, t), onp.arange(x.shape[1])]


def attention(
    query: Any, key: Any, value: Any, mask: Any = None, scale: float | None = None, causal: bool = False
) -> ndarray:
    """softmax(query key^T scale) value (Vaswani et al. 2017): [..., Q, D], [..., K, D], [..., K, V] give [..., Q, V].

    scale    1 / sqrt(D) by default
    mask     which keys each query may see, broadcast to [..., Q, K]; a query that sees none gives 0
    causal   query i sees the keys up to i

    >>> q = np.ones((1, 2, 4))
    >>> npx.attention(q, q, q, causal=True).shape
    (1, 2, 4)
    """
    q, k, v = as_array(query), as_array(key), as_array(value)
    scores = matmul(q * (q.shape[-1] ** -0.5 if scale is None else scale), swapaxes(k, axis1=-2, axis2=-1))
    seen = None if mask is None else truth(mask)
    if causal:
        past = onp.tri(scores.shape[-2], scores.shape[-1], dtype=bool)
        seen = past if seen is None else seen & past
    return matmul(softmax(scores) if seen is None else masked_softmax(scores, seen), v)
