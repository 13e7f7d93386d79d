"""MXNet's _contrib_ operators that are no layers of images: attention, indices, gradients of their own."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import custom_vjp, npx, stop_gradient

from ..operator import OPERATORS, Shape, operator
from .elementwise import round_
from .normalisation import AFFINE, batch_norm

# ------------------------------------------------------------------ attention, of queries, keys and values side by side


def _heads(x: Any, heads: int, parts: int) -> list:
    """Each part [B heads, L, D] of x [L, B, heads parts D]."""
    length, batch, width = x.shape
    x = np.reshape(x, (length, batch * heads, parts, width // (heads * parts)))
    return [np.swapaxes(x[:, :, i], 0, 1) for i in range(parts)]


def _scores(queries: Any, keys: Any) -> Any:
    return np.matmul(queries * (1 / sqrt(queries.shape[-1])), np.swapaxes(keys, 1, 2))


def _attended(attention: Any, values: Any, heads: int) -> Any:
    """The sums of values [L, B, heads D] that attention [B heads, Q, L] weighs: [Q, B, heads D]."""
    y = np.swapaxes(np.matmul(attention, values), 0, 1)
    return np.reshape(y, (y.shape[0], y.shape[1] // heads, -1))


def selfatt_qk(queries_keys_values: Any, heads: int) -> Any:
    """Products of queries, divided by sqrt(D), and keys [B heads, L, L], of both and values [L, B, heads 3 D]."""
    queries, keys, _ = _heads(queries_keys_values, heads, 3)
    return _scores(queries, keys)


def selfatt_valatt(queries_keys_values: Any, attention: Any, heads: int) -> Any:
    """Values weighed by attention [B heads, L, L]: [L, B, heads D]."""
    return _attended(attention, _heads(queries_keys_values, heads, 3)[2], heads)


def encdec_qk(queries: Any, keys_values: Any, heads: int) -> Any:
    """Products [B heads, Q, L] of queries [Q, B, heads D], divided by sqrt(D), and keys of [L, B, heads 2 D]."""
    return _scores(_heads(queries, heads, 1)[0], _heads(keys_values, heads, 2)[0])


def encdec_valatt(keys_values: Any, attention: Any, heads: int) -> Any:
    """Values weighed by attention [B heads, Q, L]: [Q, B, heads D]."""
    return _attended(attention, _heads(keys_values, heads, 2)[1], heads)


def div_sqrt_dim(data: Any) -> Any:
    """data divided by the square root of its last axis's size."""
    return data / onp.sqrt(data.shape[-1]).astype(data.dtype)


_ATTENTION = "_contrib_interleaved_matmul"
operator(f"{_ATTENTION}_selfatt_qk", selfatt_qk, ("queries_keys_values",), "heads:int",
         result=lambda p, x: [(x[1] * p["heads"], x[0], x[0])])  # fmt: skip
operator(f"{_ATTENTION}_selfatt_valatt", selfatt_valatt, ("queries_keys_values", "attention"), "heads:int",
         fill=lambda p, s: [s[0], s[1] or (s[0] and (s[0][1] * p["heads"], s[0][0], s[0][0]))],
         result=lambda p, x, a: [(*x[:2], x[2] // 3)])  # fmt: skip
operator(f"{_ATTENTION}_encdec_qk", encdec_qk, ("queries", "keys_values"), "heads:int",
         result=lambda p, q, kv: [(q[1] * p["heads"], q[0], kv[0])])  # fmt: skip
operator(f"{_ATTENTION}_encdec_valatt", encdec_valatt, ("keys_values", "attention"), "heads:int",
         result=lambda p, kv, a: [(a[1], kv[1], kv[2] // 2)])  # fmt: skip
operator("_contrib_div_sqrt_dim", div_sqrt_dim, ("data",), same=True)


# ------------------------------------------------------------------ by index
def arange_like(data: Any, start: float = 0.0, step: float = 1.0, repeat: int = 1, axis: int | None = None) -> Any:
    """Numbers from start on, each `repeat` times: as many as an axis of data has places, or in data's shape."""
    shape = data.shape if axis is None else (data.shape[axis],)
    count = int(onp.prod(shape))
    numbers = start + step * (onp.arange(count) // repeat)
    return np.asarray(numbers.reshape(shape).astype(data.dtype))


def _whole(p: dict, ins: list) -> tuple[list, list]:
    return ins, [onp.dtype("int64")]


def index_array(data: Any, axes: Shape | None = None) -> Any:
    """The index of each place [*data's shape, number of axes], of all axes or some."""
    at = onp.stack(onp.indices(data.shape), axis=-1)
    return np.asarray(at if axes is None else at[..., list(axes)])


def index_copy(old_tensor: Any, index_vector: Any, new_tensor: Any) -> Any:
    """old_tensor with new_tensor's rows at index_vector."""
    y = old_tensor.copy()
    y[index_vector.astype(onp.int64)] = new_tensor
    return y


def boolean_mask(data: Any, index: Any, axis: int = 0) -> Any:
    """The places along an axis whose index is not 0: how many there are, the data says."""
    chosen = np.flatnonzero(stop_gradient(index) != 0)
    return np.take(data, chosen, axis=axis)


operator("_contrib_arange_like", arange_like, ("data",),
         "start:float=0 step:float=1 repeat:int=1 ctx:~str= axis:int=None",
         result=lambda p, data: [data if p["axis"] is None else (data[p["axis"]],)])  # fmt: skip
operator("_contrib_index_array", index_array, ("data",), "axes:shape=None", dtypes=_whole,
         result=lambda p, data: [(*data, len(data if p["axes"] is None else p["axes"]))])  # fmt: skip
operator("_contrib_index_copy", index_copy, ("old_tensor", "index_vector", "new_tensor"),
         result=lambda p, old, *rest: [old],
         dtypes=lambda p, ins: ([ins[0], ins[1] or onp.dtype("int32"), ins[2] or ins[0]], [ins[0]]))  # fmt: skip
operator("_contrib_boolean_mask", boolean_mask, ("data", "index"), "axis:int=0", result=lambda p, *s: [None],
         dtypes=lambda p, ins: ([ins[0], ins[1] or ins[0]], [ins[0]]))  # fmt: skip


# ------------------------------------------------------------------ of elements
def quadratic(data: Any, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> Any:
    """a data^2 + b data + c."""
    return a * data * data + b * data + c


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True) -> Any:
    """1 where all elements are close, else 0: [1]."""
    near = np.all(np.isclose(stop_gradient(a), stop_gradient(b), rtol, atol, equal_nan))
    return np.reshape(near, (1,)).astype(onp.float32)


@custom_vjp
def _straight(data: Any, result: Any, scale: float) -> Any:
    """result, and scale as its slope in data."""
    return result


_straight.defvjp(forward=lambda data, result, scale: (result, scale), backward=lambda scale, g: (g * scale, None, None))


def gradient_multiplier(data: Any, scalar: float = 1.0, is_int: bool = True) -> Any:
    """data, whose gradient is `scalar` times as large."""
    return _straight(data, data, scalar)


def round_ste(data: Any) -> Any:
    """data rounded, with the gradient of data (Bengio et al. 2013)."""
    return _straight(data, round_(data), 1.0)


def sign_ste(data: Any) -> Any:
    """data's signs, with the gradient of data."""
    return _straight(data, np.sign(data), 1.0)


operator("_contrib_quadratic", quadratic, ("data",), "a:float=0 b:float=0 c:float=0", same=True)
operator("_contrib_allclose", allclose, ("a", "b"), "rtol:float=1e-5 atol:float=1e-8 equal_nan:bool=1",
         fill=lambda p, s: [s[0] or s[1]] * 2, result=lambda p, a, b: [(1,)],
         dtypes=lambda p, ins: (ins, [onp.dtype("float32")]))  # fmt: skip
operator("_contrib_gradientmultiplier", gradient_multiplier, ("data",), "scalar:float=1 is_int:bool=1", same=True)
operator("_contrib_round_ste", round_ste, ("data",), same=True)
operator("_contrib_sign_ste", sign_ste, ("data",), same=True)


# ------------------------------------------------------------------ Hawkes processes
def hawkes(
    lda: Any, alpha: Any, beta: Any, state: Any, lags: Any, marks: Any, valid_length: Any, max_time: Any
) -> tuple:
    """(Logarithms of the likelihoods of marked Hawkes processes [N], what they remember at max_time [N, K]).

    The intensity of mark k at t is lda_k + alpha_k sum_i beta_k exp(-beta_k (t - t_i)), over the earlier points of
    that mark (Bacry, Mastromatteo and Muzy 2015).

    lda            [N, K] intensities without points
    alpha, beta    [K] how many points a point brings, and how fast that ends
    state          [N, K] sums of exp(-beta_k (0 - t_i)) of what was before
    lags, marks    [N, T] times since the point before, and marks, of which valid_length [N] count
    max_time       [N] how long was observed
    """
    count = lda.shape[1]
    lags, valid_length, max_time = map(stop_gradient, (lags, valid_length, max_time))
    last = np.zeros_like(state)
    total = np.zeros_like(lda)
    time = np.zeros_like(max_time)
    for i in range(lags.shape[1]):
        there = np.logical_and(marks[:, i, None] == onp.arange(count), (i < valid_length)[:, None])
        time = time + lags[:, i]
        since = np.where(there, time[:, None] - last, 0.0)
        left = state * np.exp(-beta * since)
        rate = np.where(there, lda + alpha * beta * left, 1.0)
        total = total + np.log(rate) - lda * since - alpha * (state - left)
        state = left + there
        last = last + since
    rest = max_time[:, None] - last
    left = state * np.exp(-beta * rest)
    total = total - lda * rest - alpha * (state - left)
    return np.sum(total, axis=1), left


_HAWKES = ("lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time")
operator("_contrib_hawkesll", hawkes, _HAWKES, outputs=("output", "out_state"),
         result=lambda p, lda, *rest: [lda[:1], lda],
         dtypes=lambda p, ins: ([*ins[:5], ins[5] or onp.dtype("int32"), *ins[6:]], [ins[0]] * 2))  # fmt: skip


# ------------------------------------------------------------------ layers under other names
def batch_norm_relu(*inputs: Any, **options: Any) -> tuple:
    """max(y, 0) of BatchNorm's y, and what it gives besides."""
    y, *rest = batch_norm(*inputs, **options)
    return npx.relu(y), *rest


def _layer(name: str, like: str, definition: Any, parameters: str) -> None:
    """Another operator with the facts of one."""
    row = OPERATORS[like]
    operator(name, definition, (*AFFINE, *row.states({})), parameters, states=row.states,
             outputs=("output", "mean", "var"), visible=row._visible, training=True, fill=row.fill, dtypes=row.dtypes,
             result=row.result, initial=row.initial)  # fmt: skip


_BATCH = "eps:float=0.001 momentum:float=0.9 fix_gamma:bool=1 use_global_stats:bool=0 output_mean_var:bool=0"
_layer("_contrib_BatchNormWithReLU", "BatchNorm", batch_norm_relu,
       f"{_BATCH} axis:int=1 cudnn_off:~bool=0 min_calib_range:~float=None max_calib_range:~float=None")  # fmt: skip
_layer("_contrib_SyncBatchNorm", "BatchNorm", batch_norm, f"{_BATCH} ndev:~int=1 key:~str")
