"""Arguments on which the kernels of minnp.npx must agree with NumPy (see cases.py)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as onp

from .samples import Case, spread


def convolutions(name: str, dtype: str) -> Iterator[Case]:
    settings = [
        ((2, 3, 6), (4, 3, 3), {"pad": (1,)}),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"pad": (1, 1)}),
        ((1, 4, 6, 7), (6, 2, 3, 2), {"stride": (2, 1), "pad": (1, 0), "dilate": (1, 2), "groups": 2}),
        ((2, 16, 9, 9), (16, 16, 3, 3), {"stride": (2, 2)}),
        ((2, 4, 9, 9), (4, 1, 3, 3), {"groups": 4, "pad": (1, 1)}),
        ((3, 5, 7, 7), (2, 5, 1, 1), {}),
        ((2, 1, 5, 5), (1, 1, 5, 5), {}),
        ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"stride": (1, 2, 1), "pad": (0, 1, 0)}),
        ((8, 3, 32, 32), (32, 3, 3, 3), {"pad": (1, 1)}),
    ]
    for x, w, given in settings:
        axes = len(x) - 2
        params = {"stride": (1,) * axes, "pad": (0,) * axes, "dilate": (1,) * axes, "groups": 1, **given}
        out = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x[2:], w[2:], params["stride"], params["pad"], params["dilate"], strict=True)
        ]
        data, weight, g = (spread(dtype, *shape, seed=i) for i, shape in enumerate((x, w, (x[0], w[0], *out))))
        weight.flags.writeable = False
        if name == "npx.conv":
            yield (data, weight), params
            yield (data[::-1], weight.swapaxes(0, 1).copy().swapaxes(0, 1)), params
        elif name == "npx.conv_grads":
            yield (g, data, weight), params
        elif name == "npx.conv_transpose":
            yield (g, weight), {**params, "size": x[2:]}
        else:
            yield (data, g), {**params, "kernel": w[2:]}


def pools(name: str, dtype: str) -> Iterator[Case]:
    settings = [
        ((6, 5), {"kernel": (2, 2), "stride": (2, 2)}),
        ((6, 5), {"kernel": (2, 2), "stride": (2, 2), "ceil": True}),
        ((6, 7), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 1)}),
        ((7, 7), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "ceil": True}),
        ((7,), {"kernel": (3,), "stride": (3,), "pad": (1,)}),
        ((4, 4), {"kernel": (4, 4), "stride": (1, 1)}),
        ((9, 9), {"kernel": (2, 2), "stride": (3, 3), "ceil": True}),
        ((5, 5), {"kernel": (1, 1), "stride": (2, 2), "ceil": True}),
        ((3, 4, 4), {"kernel": (2, 3, 1), "stride": (1, 2, 2), "pad": (0, 1, 0), "ceil": True}),
        ((8, 8), {"kernel": (9, 9), "stride": (1, 1)}),  # an error
    ]
    for size, given in settings:
        params = {"pad": (0,) * len(size), "ceil": False, **given}
        for channels in (1, 3, 16):
            x = spread(dtype, 2, channels, *size)
            yield (x,), params
            yield (x[:, ::-1],), params
        if onp.dtype(dtype).kind == "f":
            x[0, 0], x[0, 1], x[1, 2].flat[::3] = onp.inf, -onp.inf, -onp.inf
            yield (x,), params
    if onp.dtype(dtype).kind == "f":
        x = spread(dtype, 1, 1, 4, 4)
        x[0, 0, 1, 1] = onp.nan
        yield (x,), {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 0), "ceil": False}


def softs(name: str, dtype: str) -> Iterator[Case]:
    for shape, axis in (
        ((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((2, 3, 4), (1, 2)), ((2, 3, 4), (0, 2)),
        ((5,), 0), ((2, 16, 4, 4), -1),
        ((1, 1), 1), ((64, 1000), -1),
    ):  # fmt: skip
        yield (spread(dtype, *shape),), {"axis": axis}
    yield (spread(dtype, 3, 4).T,), {}
    if onp.dtype(dtype).kind == "f":
        yield (onp.array([[1000, 0, -1000], [-1000, -1000, -1000], [88, 89, 90]], dtype),), {}
        for worst in (onp.inf, -onp.inf, onp.nan):
            yield (onp.array([[worst, 0, 1], [worst, worst, worst], [0, 1, 2]], dtype),), {}


def recurrences(name: str, dtype: str) -> Iterator[Case]:
    gates, states, biases = {"npx.lstm": (4, 2, 1), "npx.gru": (3, 1, 2), "npx.simple_rnn": (1, 1, 1)}[name]
    for steps, n, inputs, hidden in ((3, 2, 4, 3), (1, 1, 1, 1), (7, 3, 2, 16), (20, 8, 33, 17)):
        shapes = [(steps, n, inputs), *[(n, hidden)] * states, (gates * hidden, inputs), (gates * hidden, hidden)]
        arrays = [spread(dtype, *s, seed=i) / 4 for i, s in enumerate(shapes + [(gates * hidden,)] * biases)]
        arrays = [a.astype(dtype) for a in arrays]
        params = [{"activation": "tanh"}, {"activation": "relu"}] if name == "npx.simple_rnn" else [{}]
        for given in params:
            yield tuple(arrays), given
            arrays[0] = arrays[0][::-1]
            arrays[1 + states] = onp.asfortranarray(arrays[1 + states])
            yield tuple(arrays), given


FAMILIES = {
    **dict.fromkeys(("npx.conv", "npx.conv_grads", "npx.conv_transpose", "npx.conv_weight_grad"), convolutions),
    **dict.fromkeys(("npx.max_pool", "npx.sum_pool"), pools),
    **dict.fromkeys(("npx.softmax", "npx.log_softmax"), softs),
    **dict.fromkeys(("npx.lstm", "npx.gru", "npx.simple_rnn"), recurrences),
}
