"""Layers over sequences: RNN, LSTM, GRU, attention and a transformer block. All take and give [N, T, D]."""

from __future__ import annotations

from typing import Any

import minnp.numpy as np

from . import layers
from .model import Layer
from .modules import Dropout, LayerNorm, Linear


class RNN(Layer):
    """layers.rnn_temporal: x [N, T, D] -> h [N, T, H], or the last h [N, H] with last=True; h0 is zero unless given."""

    gates = 1

    def __init__(self, inputs: int, hidden: int, last: bool = False) -> None:
        super().__init__()
        self.hidden, self.last = hidden, last
        self.add_param("Wx", (inputs, self.gates * hidden))
        self.add_param("Wh", (hidden, self.gates * hidden), init_rule=blocks("orthogonal", self.gates))
        self.add_param("b", (self.gates * hidden,), init_rule="constant")

    def forward(self, x: Any, h0: Any = None, mode: str | None = None) -> Any:
        h = self.run(x, np.zeros((x.shape[0], self.hidden), self.params["Wh"].dtype) if h0 is None else h0)
        return h[:, -1] if self.last else h

    def run(self, x: Any, h0: Any) -> Any:
        return layers.rnn_temporal(x, h0, self.params["Wx"], self.params["Wh"], self.params["b"])


class LSTM(RNN):
    """layers.lstm_temporal: x [N, T, D] -> h [N, T, H], or the last h [N, H] with last=True; c starts at zero.

    The forget gate's bias starts at 1 (Jozefowicz et al. 2015): at first the cell remembers.
    """

    gates = 4

    def __init__(self, inputs: int, hidden: int, last: bool = False) -> None:
        super().__init__(inputs, hidden, last)
        forget = np.zeros(4 * hidden, np.float32)
        forget[hidden : 2 * hidden] = 1.0
        self.param_configs["b"].update(init_rule="custom", init_config={"function": lambda shape: forget})

    def run(self, x: Any, h0: Any) -> Any:
        return layers.lstm_temporal(x, h0, self.params["Wx"], self.params["Wh"], self.params["b"])

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        """(h', c') after one more x [N, D]: for generating one symbol at a time."""
        return layers.lstm_step(x, h, c, self.params["Wx"], self.params["Wh"], self.params["b"])


class GRU(RNN):
    """layers.gru_temporal: x [N, T, D] -> h [N, T, H], or the last h [N, H] with last=True."""

    gates = 2

    def __init__(self, inputs: int, hidden: int, last: bool = False) -> None:
        super().__init__(inputs, hidden, last)
        self.add_param("Wxh", (inputs, hidden))
        self.add_param("Whh", (hidden, hidden), init_rule="orthogonal")
        self.add_param("bh", (hidden,), init_rule="constant")

    def run(self, x: Any, h0: Any) -> Any:
        return layers.gru_temporal(x, h0, *(self.params[name] for name in ("Wx", "Wh", "b", "Wxh", "Whh", "bh")))


def blocks(rule: str, count: int) -> Any:
    """An initialiser that applies `rule` to each of `count` blocks of columns: one orthogonal matrix per gate."""

    def rule_of_blocks(shape: Any, config: dict) -> Any:
        from .init import rule_named

        part = (shape[0], shape[1] // count)
        return np.concatenate([rule_named(rule)(part, config) for _ in range(count)], axis=1)

    return rule_of_blocks


class MultiHeadAttention(Layer):
    """y = concat_h(attention(x Wq_h, z Wk_h, z Wv_h)) Wo; x [N, T, D], z [N, S, D] (x itself by default) -> [N, T, D].

    D is split over `heads`. causal=True lets position t see positions <= t only; mask [N, S] is True for real tokens
    (Vaswani et al. 2017, section 3.2.2).
    """

    def __init__(self, size: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"MultiHeadAttention splits its size over the heads: {heads} does not divide {size}")
        self.heads, self.causal = heads, causal
        self.query, self.key, self.value, self.out = (Linear(size, size) for _ in range(4))

    def forward(self, x: Any, z: Any = None, mask: Any = None, mode: str | None = None) -> Any:
        z = x if z is None else z
        q, k, v = self.split(self.query(x)), self.split(self.key(z)), self.split(self.value(z))
        if mask is not None:
            mask = mask.reshape(mask.shape[0], 1, 1, mask.shape[1])
        if self.causal:
            past = np.tri(x.shape[1], z.shape[1], dtype=bool)
            mask = past if mask is None else mask & past
        y = np.swapaxes(layers.attention(q, k, v, mask), 1, 2)
        return self.out(y.reshape(x.shape))

    def split(self, x: Any) -> Any:
        """[N, T, D] -> [N, heads, T, D / heads]."""
        n, t, d = x.shape
        return np.swapaxes(x.reshape(n, t, self.heads, d // self.heads), 1, 2)


class TransformerBlock(Layer):
    """x = x + attention(norm1(x));  y = x + w2 gelu(w1 norm2(x)): the pre-norm block; x, y [N, T, D]."""

    def __init__(self, size: int, heads: int, causal: bool = False, wider: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(size, heads, causal)
        self.norm1, self.norm2 = LayerNorm(size), LayerNorm(size)
        self.wide, self.narrow = Linear(size, wider * size), Linear(wider * size, size)
        self.drop = Dropout(dropout) if dropout else None

    def forward(self, x: Any, mask: Any = None, mode: str | None = None) -> Any:
        x = x + self.dropped(self.attention(self.norm1(x), mask=mask), mode)
        return x + self.dropped(self.narrow(layers.gelu(self.wide(self.norm2(x)))), mode)

    def dropped(self, x: Any, mode: str | None) -> Any:
        return x if self.drop is None else self.drop(x, mode)
