"""Layers as functions: dense, convolution, pooling, normalisation. Data is [N, C, *spatial]."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as onp

from ..core.arrays.array import ndarray
from ..core.rows.dispatch import knows
from ..core.rows.state import share
from ..core.transforms.grad import stop_gradient
from ..numpy.arguments import as_array
from ..numpy.devices import known, on_device
from ..numpy.facts import axes_of, axis_of
from ..numpy.products import matmul
from ..numpy.reductions import max_, mean, sum_
from ..numpy.shaping import astype, concatenate, reshape, transpose
from ..numpy.ufuncs import absolute, power
from .arguments import check_hints, check_layout, per_channel, sizes
from .convolutions import conv, conv_transpose, output_size
from .norms import normalize, normalize_by, normalized, train
from .windows import max_pool, sum_pool, window_counts


# ------------------------------------------------------------------ dense and convolution
def fully_connected(
    x: Any, weight: Any, bias: Any = None, num_hidden: int | None = None, no_bias: bool = False, flatten: bool = True
) -> ndarray:
    """x weight^T + bias: [N, ...] and [O, I] give [N, O]; with flatten=False, [..., I] gives [..., O].

    num_hidden   O, where it is to be checked; ValueError where it is not the weight's
    no_bias      whether bias is left out, though it is given

    >>> npx.fully_connected(np.ones((2, 3)), np.ones((4, 3)), np.zeros(4)).shape
    (2, 4)
    """
    x, weight = as_array(x), as_array(weight)
    if num_hidden not in (None, weight.shape[0]):
        raise ValueError(f"num_hidden={num_hidden}, and the weight has {weight.shape[0]} rows")
    if flatten and x.ndim != 2:
        x = reshape(x, shape=(x.shape[0], prod(x.shape[1:])))
    y = matmul(x, transpose(weight))
    return y if bias is None or no_bias else y + as_array(bias)


def _check_weight(weight: Any, kernel: Any, filters: int, num_filter: int | None) -> None:
    if kernel is not None and sizes(kernel, weight.ndim - 2, 1, "kernel") != weight.shape[2:]:
        raise ValueError(f"kernel={kernel!r}, and the weight {weight.shape} has a kernel of {weight.shape[2:]}")
    if num_filter not in (None, filters):
        raise ValueError(f"num_filter={num_filter}, and the weight {weight.shape} has {filters}")


def convolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    no_bias: bool = False,
    layout: str | None = None,
    **hints: Any,
) -> ndarray:
    """Convolution (cross-correlation) of data [N, C, *S] with weight [O, C/num_group, *K], plus bias [O]: [N, O, *T].

    no_bias   whether bias is left out, though it is given
    layout    None, "NCW", "NCHW" or "NCDHW": what data is in any case; another is a ValueError
    hints     MXNet's options that choose an algorithm, such as workspace: they change nothing here

    T = (S + 2 pad - dilate (K - 1) - 1) // stride + 1, with one, two or three spatial axes. stride, dilate (default 1)
    and pad (0) are numbers or one number for each axis. ValueError if shapes, `kernel` or `num_filter` disagree.

    >>> npx.convolution(np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)))
    array([[[[9.]]]])
    """
    check_hints(convolution, hints)
    check_layout(layout)
    x, w = as_array(data), as_array(weight)
    _check_weight(w, kernel, w.shape[0], num_filter)
    n = w.ndim - 2
    y = conv(
        x,
        w,
        stride=sizes(stride, n, 1, "stride"),
        pad=sizes(pad, n, 0, "pad"),
        dilate=sizes(dilate, n, 1, "dilate"),
        groups=int(num_group),
    )
    return y if bias is None or no_bias else y + per_channel(bias, y.ndim)


def deconvolution(
    data: Any,
    weight: Any,
    bias: Any = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    adj: Any = None,
    target_shape: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    no_bias: bool = True,
    layout: str | None = None,
    **hints: Any,
) -> ndarray:
    """The transpose of `convolution`: data [N, C, *T] and weight [C, O/num_group, *K] give [N, O, *S].

    no_bias, layout, hints   as in convolution, but without a bias by default

    S = (T - 1) stride - 2 pad + dilate (K - 1) + 1 + adj, or target_shape, for which pad and adj are then chosen.

    >>> npx.deconvolution(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), stride=2).shape
    (1, 1, 4, 4)
    """
    check_hints(deconvolution, hints)
    check_layout(layout)
    x, w = as_array(data), as_array(weight)
    _check_weight(w, kernel, w.shape[1] * num_group, num_filter)
    n = w.ndim - 2
    strides, dilates = sizes(stride, n, 1, "stride"), sizes(dilate, n, 1, "dilate")
    pads, adjs = sizes(pad, n, 0, "pad"), sizes(adj, n, 0, "adj")
    full = [
        (t - 1) * s + d * (k - 1) + 1 for t, s, d, k in zip(x.shape[2:], strides, dilates, w.shape[2:], strict=True)
    ]
    if target_shape:
        size = sizes(target_shape, n, 0, "target_shape")
        pads = tuple(max(0, f - s + 1) // 2 for f, s in zip(full, size, strict=True))
    else:
        size = tuple(f - 2 * p + a for f, p, a in zip(full, pads, adjs, strict=True))
    if output_size(size, w.shape[2:], strides, pads, dilates) != x.shape[2:]:
        raise ValueError(f"adj={adj!r}, target_shape={target_shape!r}: no convolution takes {size} to {x.shape[2:]}")
    y = conv_transpose(x, w, stride=strides, pad=pads, dilate=dilates, groups=int(num_group), size=size)
    return y if bias is None or no_bias else y + per_channel(bias, y.ndim)


# ------------------------------------------------------------------ pooling
def pooling(
    data: Any,
    kernel: Any = None,
    pool_type: str = "max",
    global_pool: bool = False,
    pooling_convention: str = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: float | None = None,
    count_include_pad: bool = True,
    layout: str | None = None,
    **hints: Any,
) -> ndarray:
    """Windows of data [N, C, *S] reduced to their max, avg, sum or lp norm (of order p_value): [N, C, *T].

    pool_type           "max", "avg", "sum" or "lp"
    count_include_pad   whether a mean counts the zeros of the padding
    layout, hints       as in convolution

    T = (S + 2 pad - kernel) // stride + 1; stride is 1 by default. pooling_convention "full" rounds up instead of down.
    With global_pool the window is the whole image. Of equal maxima the first gets the gradient.

    Raises ValueError for another pool_type or convention, and for lp without p_value.

    >>> npx.pooling(np.arange(4.0).reshape(1, 1, 2, 2), kernel=(2, 2))
    array([[[[3.]]]])
    """
    check_hints(pooling, hints)
    check_layout(layout)
    if pooling_convention not in ("valid", "full"):
        raise ValueError(f"pooling_convention={pooling_convention!r}: choose from valid, full")
    x = as_array(data)
    if pool_type == "lp":
        if p_value is None:
            raise ValueError("pool_type='lp' needs p_value")
        options = (kernel, "sum", global_pool, pooling_convention, stride, pad)
        return power(pooling(power(absolute(x), p_value), *options), 1 / p_value)
    if pool_type not in ("max", "avg", "sum"):
        raise ValueError(f"pool_type={pool_type!r}: choose from max, avg, sum, lp")
    if global_pool:
        over = {"max": max_, "avg": mean, "sum": sum_}[pool_type]
        return over(x, axis=tuple(range(2, x.ndim)), keepdims=True)
    n = x.ndim - 2
    params = {
        "kernel": sizes(kernel, n, 1, "kernel"),
        "stride": sizes(stride, n, 1, "stride"),
        "pad": sizes(pad, n, 0, "pad"),
        "ceil": pooling_convention == "full",
    }
    if pool_type == "max":
        return max_pool(x, **params)
    y = sum_pool(x, **params)
    if pool_type == "sum":
        return y
    if params["ceil"] is False and y.dtype.kind == "f" and (count_include_pad or not any(params["pad"])):
        return y * (1 / prod(params["kernel"]))
    counts = window_counts(x.shape[2:], **params, include_pad=count_include_pad)
    return y * (1 / counts).astype(y.dtype)


# ------------------------------------------------------------------ normalisation
def batch_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    training: bool = False,
    **hints: Any,
) -> Any:
    """(data - mean) / sqrt(var + eps) * gamma + beta, one mean, var, gamma and beta for each place along `axis`.

    hints              MXNet's options that choose an algorithm, such as cudnn_off: they change nothing here
    training           mean and var are this batch's (else moving_mean and moving_var), and the moving ones are written:
                       moving = momentum * moving + (1 - momentum) * batch. MXNet trains inside autograd.record()
    use_global_stats   the moving ones even in training
    fix_gamma          gamma counts as 1 (MXNet's default)
    output_mean_var    return (y, mean, var)

    >>> x = np.array([[1.0], [3.0]])
    >>> npx.batch_norm(x, np.ones(1), np.zeros(1), np.zeros(1), np.ones(1), training=True, eps=0.0)
    array([[-1.],
           [ 1.]])
    """
    check_hints(batch_norm, hints)
    x = as_array(data)
    axis = axis_of(axis, x.ndim)
    shape = (x.shape[axis],)
    gamma, beta = as_array(onp.ones(shape, x.dtype) if fix_gamma else gamma), as_array(beta)
    if training and not use_global_stats and (part := share.get()) is not None:
        y, center, spread = over_ranks(part, x, gamma, beta, axis, eps)
        for moving, batch in ((moving_mean, center), (moving_var, spread)):
            moving[...] = momentum * moving + (1 - momentum) * astype(stop_gradient(batch), dtype=moving.dtype)
    elif training and not use_global_stats and known(moving_mean) and known(moving_var):
        moving = moving_mean, moving_var
        y, center, spread, *now, _ = train(x, gamma, beta, *moving, axis=axis, eps=float(eps), momentum=float(momentum))
        for kept, value in zip(moving, now, strict=True):
            kept[...] = stop_gradient(value)
    elif training and not use_global_stats:
        axes = tuple(i for i in range(x.ndim) if i != axis)
        scale, shift = per_channel(gamma, x.ndim, axis), per_channel(beta, x.ndim, axis)
        y, center, spread, _ = normalize(x, scale, shift, axes=axes, eps=float(eps))
        center, spread = reshape(center, shape=shape), reshape(spread, shape=shape)
        for moving, batch in ((moving_mean, center), (moving_var, spread)):
            moving[...] = momentum * moving + (1 - momentum) * stop_gradient(batch)
    else:
        center, spread = as_array(moving_mean), as_array(moving_var)
        # on the host it stays an expression, which jit takes apart and fuses with what follows
        y = (normalize_by if on_device(x) else normalized)(x, gamma, beta, center, spread, axis=axis, eps=float(eps))
        dtype = onp.result_type(x.dtype, gamma.dtype, beta.dtype)  # as in training, whichever the moving ones have
        y = astype(y, dtype=dtype) if y.dtype != dtype and dtype.kind == "f" else y
    return (y, center, spread) if output_mean_var else y


knows(batch_norm, pure=False)


def over_ranks(part: Any, x: ndarray, gamma: Any, beta: Any, axis: int, eps: float) -> tuple[Any, Any, Any]:
    """(y, mean, var) of batch_norm in training where x is this process's share of the batch: mean and var are those of
    the whole batch."""
    axes = tuple(i for i in range(x.ndim) if i != axis)
    columns = lambda v: per_channel(v, x.ndim, axis)
    wide = onp.promote_types(x.dtype, onp.float32)
    count = as_array(onp.array([x.size // x.shape[axis]], float))
    totals = astype(sum_(astype(x, dtype=wide), axis=axes), dtype=onp.dtype(float))
    sums = part.sum(concatenate(totals, count, axis=0))
    center = (sums[:-1] / sums[-1]).astype(wide)
    off = x - columns(center)
    squares = astype(sum_(off * off, axis=axes), dtype=onp.dtype(float))
    spread = (part.sum(squares) / sums[-1]).astype(wide)
    y = off * columns(gamma / (spread + eps) ** 0.5) + columns(beta)
    return astype(y, dtype=x.dtype), center, spread


def layer_norm(
    data: Any, gamma: Any, beta: Any, axis: int | Sequence[int] = -1, eps: float = 1e-5, output_mean_var: bool = False
) -> Any:
    """(data - mean) / sqrt(var + eps) * gamma + beta, mean and var over `axis`, whose shape gamma and beta have.

    output_mean_var   return (y, mean, var)

    Raises ValueError where gamma or beta has another size.

    >>> npx.layer_norm(np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), eps=0.0)
    array([[-1.,  1.]])
    """
    x = as_array(data)
    axes = axes_of(axis, x.ndim)
    shape = tuple(n if i in axes else 1 for i, n in enumerate(x.shape))
    if any(prod(shape) != onp.size(a) for a in (gamma, beta)):
        over, given = [x.shape[i] for i in axes], [list(onp.shape(a)) for a in (gamma, beta)]
        raise ValueError(f"layer_norm over {over} elements takes gamma and beta of as many; they have {given}")
    scale, shift = (reshape(as_array(a), shape=shape) for a in (gamma, beta))
    y, center, spread, _ = normalize(x, scale, shift, axes=axes, eps=float(eps))
    return (y, center, (spread + eps) ** 0.5) if output_mean_var else y


def group_norm(data: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-3) -> ndarray:
    """data [N, C, *S] normalised over each of num_groups groups of channels, times gamma [C] plus beta [C].

    eps   is added to the variance

    Raises ValueError where num_groups does not divide C.

    >>> npx.group_norm(np.ones((2, 4, 5)), np.ones(4), np.zeros(4), num_groups=2).shape
    (2, 4, 5)
    """
    x = as_array(data)
    n, channels, *size = x.shape
    if channels % num_groups:
        raise ValueError(f"num_groups={num_groups} does not divide {channels} channels")
    split = (n, num_groups, channels // num_groups, *size)
    vector = (1, num_groups, channels // num_groups, *[1] * len(size))
    scale, shift = (reshape(as_array(a), shape=vector) for a in (gamma, beta))
    axes = tuple(range(2, len(split)))
    return reshape(normalize(reshape(x, shape=split), scale, shift, axes=axes, eps=float(eps))[0], shape=x.shape)


def instance_norm(data: Any, gamma: Any, beta: Any, eps: float = 1e-3) -> ndarray:
    """data [N, C, *S] normalised over the spatial axes, times gamma [C] plus beta [C].

    eps   is added to the variance

    >>> npx.instance_norm(np.array([[[1.0, 3.0]]]), np.ones(1), np.zeros(1), eps=0.0)
    array([[[-1.,  1.]]])
    """
    x = as_array(data)
    scale, shift = per_channel(gamma, x.ndim), per_channel(beta, x.ndim)
    return normalize(x, scale, shift, axes=tuple(range(2, x.ndim)), eps=float(eps))[0]
