"""Layers over sequences: RNN, LSTM, GRU, attention and a transformer block. All take and give [N, T, D]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import minnp.numpy as np
from minnp import npx

from . import checks, init, layers
from .model import Layer
from .modules import Dropout, LayerNorm, Linear

__all__ = ["GRU", "LSTM", "RNN", "MultiHeadAttention", "TransformerBlock"]


class Recurrent(Layer):
    """RNN, LSTM and GRU: num_layers layers, each of one or two directions, with parameters of their own.

    Those of the first layer are called Wx, Wh, b, ...; of further ones Wx_l1, ...; of the way back Wx_reverse, ...
    """

    gates = 1

    @checks.named(inputs="input_size", hidden="hidden_size")
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        last: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(num_layers, bool):
            raise TypeError(f"num_layers is a whole number, got {num_layers}; last={num_layers} is given by name")
        self.hidden_size, self.num_layers = hidden_size, checks.count("num_layers", num_layers, 1)
        self.bias, self.last = checks.flag("bias", bias), checks.flag("last", last)
        self.dropout = layers.check_prob(dropout)
        if self.dropout and self.num_layers == 1:
            raise ValueError(f"dropout={dropout} drops between the layers of a stack, and num_layers is 1")
        self.bidirectional = checks.flag("bidirectional", bidirectional)
        self.ways = ("", "_reverse") if bidirectional else ("",)
        for layer in range(self.num_layers):
            width = input_size if layer == 0 else hidden_size * len(self.ways)
            for way in self.ways:
                self.add_cell(f"_l{layer}{way}" if layer else way, width, hidden_size)

    def add_cell(self, suffix: str, width: int, hidden: int) -> None:
        """Declare the parameters of one layer in one direction."""
        self.add_param(f"Wx{suffix}", (width, self.gates * hidden))
        self.add_param(f"Wh{suffix}", (hidden, self.gates * hidden), init_rule=blocks("orthogonal", self.gates))
        if self.bias:
            self.add_param(f"b{suffix}", (self.gates * hidden,), **self.of_b())

    def of_b(self) -> dict[str, Any]:
        """The initial values of b."""
        return {"init_rule": "constant"}

    def own(self, suffix: str, *names: str) -> list[Any]:
        """The parameters of one layer in one direction, zeros for a bias that there is not."""
        p = self.params
        if self.bias:
            return [p[name + suffix] for name in names]
        dtype = p[f"Wh{suffix}"].dtype
        sizes = {"b": self.gates * self.hidden_size, "bh": self.hidden_size}
        return [np.zeros(sizes[name], dtype) if name in sizes else p[name + suffix] for name in names]

    def run(self, suffix: str, x: Any, states: list) -> tuple:
        """(h [N, T, H] at every step, the last states) of one layer in one direction, from its first states."""
        raise NotImplementedError

    def through(self, x: Any, firsts: tuple, mode: str | None, states: bool) -> Any:
        """forward, from the first states: for each kind [N, H], [num_layers * directions, N, H] or None (zeros)."""
        ways, count = self.ways, self.num_layers * len(self.ways)
        size = self.params["Wx"].shape[0]
        if x.ndim != 3 or x.shape[2] != size:
            raise ValueError(
                f"{type(self).__name__} takes sequences [N, T, {size}]: examples, steps, numbers; got {list(x.shape)}"
            )
        given = [self.first(x, first, count) for first in firsts]
        if count == 1:
            out, *ended = self.run("", x, [first[0] for first in given])
            out = ended[0] if self.last else out
            return (out, *ended) if states else out
        lasts: list[list] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = layers.dropout(x, self.dropout, mode)
            outs = []
            for way in ways:
                own = [first[len(lasts)] for first in given]
                out, *ended = self.run(f"_l{layer}{way}" if layer else way, x[:, ::-1] if way else x, own)
                outs.append(out[:, ::-1] if way else out)
                lasts.append(ended)
            x = outs[0] if len(outs) == 1 else np.concatenate(outs, axis=-1)
        if self.last:
            ends = [ended[0] for ended in lasts[-len(ways) :]]
            x = ends[0] if len(ends) == 1 else np.concatenate(ends, axis=-1)
        if not states:
            return x
        return (x, *(np.stack(kind) for kind in zip(*lasts)))

    def first(self, x: Any, state: Any, count: int) -> Any:
        """A state for each layer and direction."""
        if state is None:
            zeros = np.zeros((x.shape[0], self.hidden_size), self.params["Wh"].dtype)
            return [zeros] * count
        if count == 1 and state.ndim == 2:
            return [state]
        if state.ndim != 3 or state.shape[0] != count:
            raise ValueError(
                f"{type(self).__name__} has {count} states [{count}, N, {self.hidden_size}]; got {list(state.shape)}"
            )
        return state


class RNN(Recurrent):
    """h[t] = f(x[t] Wx + h[t - 1] Wh + b), f = tanh; x [N, T, input_size] -> h [N, T, hidden_size] at every step.

    num_layers      layers one on the other (1), each reading the h of the one below; dropout (0): the probability
                    with which each number of what they read is dropped in training
    bidirectional   each layer runs both ways over the steps, and gives both h side by side: [N, T, 2 H]
    last            give the h that each direction ended with, [N, H] (or [N, 2 H]), instead of h at every step
    bias            whether b is added
    nonlinearity    f: "tanh" or "relu"

    forward(x, h0) begins with h0 [N, H] ([num_layers * directions, N, H] where there are more) instead of zeros;
    states=True gives (h, the states that the steps ended with).

    >>> nn.RNN(3, 4).init()(np.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    @checks.named(inputs="input_size", hidden="hidden_size")
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        last: bool = False,
    ) -> None:
        options = {"bias": bias, "dropout": dropout, "bidirectional": bidirectional, "last": last}
        super().__init__(input_size, hidden_size, num_layers, **options)
        self.nonlinearity = checks.choice("nonlinearity", nonlinearity, ("tanh", "relu"))

    def forward(self, x: Any, h0: Any = None, mode: str | None = None, states: bool = False) -> Any:
        return self.through(x, (h0,), mode, states)

    def run(self, suffix: str, x: Any, states: list) -> tuple:
        wx, wh, b = self.own(suffix, "Wx", "Wh", "b")
        run = lambda x: npx.simple_rnn(x, *states, wx.T, wh.T, b, activation=self.nonlinearity)[0]
        h = layers.over_time(run, x, *states)
        return h, h[:, -1] if x.shape[1] else states[0]


class LSTM(Recurrent):
    """layers.lstm_temporal: x [N, T, input_size] -> h [N, T, hidden_size]; arguments as in RNN.

    The forget gate's bias starts at 1 (Jozefowicz et al. 2015): at first the cell remembers. forward(x, h0, c0) begins
    with these states instead of zeros; states=True gives (h, last h, last c).

    Raises TypeError for a num_layers that is True or False, ValueError for dropout in a stack of one.

    >>> nn.LSTM(3, 4, bidirectional=True).init()(np.ones((2, 5, 3))).shape
    (2, 5, 8)
    """

    gates = 4

    def of_b(self) -> dict[str, Any]:
        return {"init_rule": "custom", "init_config": {"function": remembering}}

    def forward(self, x: Any, h0: Any = None, c0: Any = None, mode: str | None = None, states: bool = False) -> Any:
        return self.through(x, (h0, c0), mode, states)

    def run(self, suffix: str, x: Any, states: list) -> tuple:
        return layers.lstm_over_time(x, *states, *self.own(suffix, "Wx", "Wh", "b"))

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        """(h', c') after one more x [N, D], for generating one symbol at a time; of a stack h, c [num_layers, N, H]."""
        if self.bidirectional:
            raise ValueError("a bidirectional LSTM reads all steps before it gives one: it has no step")
        if self.num_layers == 1:
            return layers.lstm_step(x, h, c, *self.own("", "Wx", "Wh", "b"))
        hs, cs = [], []
        for layer in range(self.num_layers):
            suffix = f"_l{layer}" if layer else ""
            x, now = layers.lstm_step(x, h[layer], c[layer], *self.own(suffix, "Wx", "Wh", "b"))
            hs.append(x)
            cs.append(now)
        return np.stack(hs), np.stack(cs)


class GRU(Recurrent):
    """layers.gru_temporal: x [N, T, input_size] -> h [N, T, hidden_size]; arguments and forward as in RNN.

    reset_after=True is cuDNN's and torch's cell, npx.gru, in which r multiplies h Whh + bh and not h: with gates in the
    order r, z, n,  n = tanh(x Wx_n + b_n + r (h Wh_n + bh)); it has Wx [D, 3H], Wh [H, 3H], b [3H] and bh [H], and is
    several times faster.

    >>> nn.GRU(3, 4).init()(np.ones((2, 5, 3))).shape
    (2, 5, 4)
    """

    gates = 2

    @checks.named(inputs="input_size", hidden="hidden_size")
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        reset_after: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
        bidirectional: bool = False,
        last: bool = False,
    ) -> None:
        self.reset_after = checks.flag("reset_after", reset_after)
        self.gates = 3 if reset_after else 2
        options = {"bias": bias, "dropout": dropout, "bidirectional": bidirectional, "last": last}
        super().__init__(input_size, hidden_size, num_layers, **options)

    def add_cell(self, suffix: str, width: int, hidden: int) -> None:
        super().add_cell(suffix, width, hidden)
        if not self.reset_after:
            self.add_param(f"Wxh{suffix}", (width, hidden))
            self.add_param(f"Whh{suffix}", (hidden, hidden), init_rule="orthogonal")
        if self.bias:
            self.add_param(f"bh{suffix}", (hidden,), init_rule="constant")

    def forward(self, x: Any, h0: Any = None, mode: str | None = None, states: bool = False) -> Any:
        return self.through(x, (h0,), mode, states)

    def run(self, suffix: str, x: Any, states: list) -> tuple:
        if self.reset_after:
            wx, wh, b, bh = self.own(suffix, "Wx", "Wh", "b", "bh")
            after = np.concatenate([np.zeros(2 * self.hidden_size, bh.dtype), bh])
            h = layers.over_time(lambda x: npx.gru(x, *states, wx.T, wh.T, b, after)[0], x, *states)
        else:
            h = layers.gru_temporal(x, *states, *self.own(suffix, "Wx", "Wh", "b", "Wxh", "Whh", "bh"))
        return h, h[:, -1] if x.shape[1] else states[0]


def blocks(rule: str, count: int) -> Callable:
    """An initialiser that applies `rule` to each of `count` blocks of columns: one orthogonal matrix per gate."""
    return partial(of_blocks, init.rule_named(rule), count)  # not a closure, which could not be pickled


def of_blocks(rule: Callable, count: int, shape: Any, config: dict) -> Any:
    part = (shape[0], shape[1] // count)
    return np.concatenate([rule(part, config) for _ in range(count)], axis=1)


def remembering(shape: Any) -> Any:
    """The bias [4 H] of an LSTM whose forget gate's are 1."""
    bias, hidden = np.zeros(shape, np.float32), shape[0] // 4
    bias[hidden : 2 * hidden] = 1.0
    return bias


class MultiHeadAttention(Layer):
    """y = concat_h(attention(x Wq_h, z Wk_h, z Wv_h)) Wo; x [N, T, D], z [N, S, D] (x itself by default) -> [N, T, D].

    D = embed_dim is split over num_heads. causal=True lets position t see positions <= t only; mask [N, S] is True for
    real tokens (Vaswani et al. 2017, section 3.2.2).

    Raises ValueError where num_heads does not divide embed_dim.

    >>> nn.MultiHeadAttention(8, 2).init()(np.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    @checks.named(size="embed_dim", heads="num_heads")
    def __init__(self, embed_dim: int, num_heads: int, causal: bool = False) -> None:
        super().__init__()
        size, heads = embed_dim, checks.count("num_heads", num_heads, 1)
        if size % heads:
            raise ValueError(f"MultiHeadAttention splits its size over the heads: {heads} does not divide {size}")
        self.heads, self.causal = heads, checks.flag("causal", causal)
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
    """x = x + attention(norm1(x));  y = x + w2 gelu(w1 norm2(x)): the pre-norm block; x, y [N, T, D], D = embed_dim.

    num_heads and causal are MultiHeadAttention's; w1 is [D, wider * D] (4); dropout (0) acts on what is added to x.

    >>> nn.TransformerBlock(8, 2).init()(np.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    @checks.named(size="embed_dim", heads="num_heads")
    def __init__(
        self, embed_dim: int, num_heads: int, causal: bool = False, wider: int = 4, dropout: float = 0.0
    ) -> None:
        super().__init__()
        size = embed_dim
        self.attention = MultiHeadAttention(size, num_heads, causal)
        self.norm1, self.norm2 = LayerNorm(size), LayerNorm(size)
        self.wide, self.narrow = Linear(size, wider * size), Linear(wider * size, size)
        self.drop = Dropout(dropout) if dropout else None

    def forward(self, x: Any, mask: Any = None, mode: str | None = None) -> Any:
        x = x + self.dropped(self.attention(self.norm1(x), mask=mask), mode)
        return x + self.dropped(self.narrow(layers.gelu(self.wide(self.norm2(x)))), mode)

    def dropped(self, x: Any, mode: str | None) -> Any:
        return x if self.drop is None else self.drop(x, mode)
