"""Normalisations: batch, layer, instance, group, L2, and local response."""

from __future__ import annotations

from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx, stop_gradient

from ..operator import operator
from .elementwise import like

AFFINE = ("data", "gamma", "beta")


def batch_norm(
    data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, eps: float = 1e-3, momentum: float = 0.9,
    fix_gamma: bool = True, use_global_stats: bool = False, output_mean_var: bool = False, axis: int = 1,
    training: bool = False,
) -> tuple:  # fmt: skip
    """npx.batch_norm as a function: (y, mean, 1 / sqrt(var + eps)), in training with the new moving ones behind."""
    moving = moving_mean.copy(), moving_var.copy()
    if not training:  # a state may be kept in double precision; what is computed with it is not
        moving = tuple(m.astype(gamma.dtype) for m in moving)
    options = {"eps": eps, "momentum": momentum, "fix_gamma": fix_gamma, "use_global_stats": use_global_stats}
    y, mean, var = npx.batch_norm(
        data, gamma, beta, *moving, **options, output_mean_var=True, axis=axis, training=training
    )
    y = like(y, data)
    mean, spread = stop_gradient(mean), stop_gradient(1 / np.sqrt(var + eps) if output_mean_var else var)
    return (y, mean, spread, *moving) if training else (y, mean, spread)


def _batch_fill(p: dict, shapes: list) -> list:
    vector = None if shapes[0] is None else (shapes[0][p.get("axis", 1)],)
    return [shapes[0], *(s or vector for s in shapes[1:])]


def _batch_types(p: dict, ins: list) -> tuple[list, list]:
    kept = onp.dtype("float32") if ins[0] == onp.float16 else ins[0]
    return [ins[0], *(t or kept for t in ins[1:])], [ins[0], kept, kept]


_STATES = ("moving_mean", "moving_var")
_BATCH = "eps:float=0.001 momentum:float=0.9 fix_gamma:bool=1 use_global_stats:bool=0 output_mean_var:bool=0"
for _name, _more in {
    "BatchNorm": " axis:int=1 cudnn_off:~bool=0 min_calib_range:~float=None max_calib_range:~float=None",
    "BatchNorm_v1": "",
}.items():
    operator(_name, batch_norm, (*AFFINE, *_STATES), _BATCH + _more, states=_STATES,
             outputs=("output", "mean", "var"), visible=lambda p: 3 if p["output_mean_var"] else 1, training=True,
             fill=_batch_fill, dtypes=_batch_types, initial=dict(zip(_STATES, ('["zero", {}]', '["one", {}]'))),
             result=lambda p, data, gamma, *rest: [data, gamma, gamma])  # fmt: skip


def layer_norm(data: Any, gamma: Any, beta: Any, axis: int = -1, eps: float = 1e-5,
               output_mean_var: bool = False) -> tuple:  # fmt: skip
    """(y, mean, sqrt(var + eps)) of npx.layer_norm; no gradient flows through the last two."""
    y, *facts = npx.layer_norm(data, gamma, beta, axis, eps, output_mean_var=True)
    return y, *map(stop_gradient, facts)


def _layer_fill(p: dict, shapes: list) -> list:
    vector = None if shapes[0] is None else (shapes[0][p["axis"]],)
    return [shapes[0], *(s or vector for s in shapes[1:])]


def _layer_result(p: dict, data: Any, *rest: Any) -> list:
    axis = p["axis"] % len(data)
    kept = (*data[:axis], 1, *data[axis + 1 :])
    return [data, kept, kept]


_SHOWN = {"outputs": ("output", "mean", "std"), "visible": lambda p: 3 if p["output_mean_var"] else 1}
operator("LayerNorm", layer_norm, AFFINE, "axis:int=-1 eps:float=1e-5 output_mean_var:bool=0", fill=_layer_fill,
         result=_layer_result, **_SHOWN)  # fmt: skip


def group_norm(data: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-5,
               output_mean_var: bool = False) -> tuple:  # fmt: skip
    """(y, mean, std) [N, num_groups]: npx.group_norm with one gamma and beta for each group, as MXNet 1.9 has."""
    each = data.shape[1] // num_groups
    y = npx.group_norm(data, np.repeat(gamma, each), np.repeat(beta, each), num_groups, eps)
    split = np.reshape(stop_gradient(data), (data.shape[0], num_groups, -1))
    return y, np.mean(split, axis=2), np.sqrt(np.var(split, axis=2) + eps)


def _group_fill(p: dict, shapes: list) -> list:
    return [shapes[0], *(s or (p["num_groups"],) for s in shapes[1:])]


operator("GroupNorm", group_norm, AFFINE, "num_groups:int=1 eps:float=1e-5 output_mean_var:bool=0", fill=_group_fill,
         result=lambda p, data, *rest: [data, (data[0], p["num_groups"]), (data[0], p["num_groups"])],
         **_SHOWN)  # fmt: skip
operator("InstanceNorm", npx.instance_norm, AFFINE, "eps:float=0.001", fill=_batch_fill,
         result=lambda p, data, *rest: [data])  # fmt: skip


def l2_normalization(data: Any, eps: float = 1e-10, mode: str = "instance") -> Any:
    """data / sqrt(sum(data^2) + eps), the sum over channels, spatial axes, or everything but the batch."""
    axes = {"channel": (1,), "spatial": tuple(range(2, data.ndim)), "instance": tuple(range(1, data.ndim))}[mode]
    return data / np.sqrt(np.sum(np.square(data), axis=axes, keepdims=True) + eps)


operator("L2Normalization", l2_normalization, ("data",), "eps:float=1e-10 mode:channel|instance|spatial=instance",
         same=True)  # fmt: skip


def local_response(data: Any, nsize: int, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0) -> Any:
    """data (knorm + alpha / nsize * the sum of squares of nsize channels around)^-beta (Krizhevsky et al. 2012)."""
    around = nsize // 2
    squares = np.pad(np.square(data), ((0, 0), (around, around), *[(0, 0)] * (data.ndim - 2)))
    total = squares[:, : data.shape[1]]
    for i in range(1, nsize):
        total = total + squares[:, i : i + data.shape[1]]
    return data * np.power(total * (alpha / nsize) + knorm, -beta)


operator("LRN", local_response, ("data",), "alpha:float=1e-4 beta:float=0.75 knorm:float=2 nsize:int",
         same=True)  # fmt: skip
