"""Layers: dense, convolutions, pooling, activations, dropout, embedding, upsampling."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as onp

import minnp.numpy as np
from minnp import npx

from ..operator import Shape, operator


def vector(size: Any) -> Any:
    """The shape of a bias."""
    return (size,)


def inputs(*names: str, bias: bool = True) -> Any:
    """The names of data and parameters, bias among them unless no_bias."""
    return lambda p: [*names, *([] if p["no_bias"] and bias else ["bias"])]


# ------------------------------------------------------------------ dense
def _dense_fill(p: dict, shapes: list) -> list:
    data = shapes[0]
    if data is not None:
        width = prod(data[1:]) if p["flatten"] else data[-1]
        shapes[1] = shapes[1] or (p["num_hidden"], width)
    return [*shapes[:2], *[vector(p["num_hidden"])] * (len(shapes) - 2)]


def _dense_result(p: dict, data: Shape, weight: Shape, *bias: Shape) -> list[Shape]:
    width = prod(data[1:]) if p["flatten"] else data[-1]
    if weight != (p["num_hidden"], width):
        raise ValueError(
            f"the weight is {weight}, and {data} with {p['num_hidden']} units wants {p['num_hidden'], width}"
        )
    return [(data[0], p["num_hidden"]) if p["flatten"] else (*data[:-1], p["num_hidden"])]


operator("FullyConnected", npx.fully_connected, inputs("data", "weight"),
         "num_hidden:int no_bias:bool=0 flatten:bool=1", batch=True, fill=_dense_fill,
         result=_dense_result)  # fmt: skip

# ------------------------------------------------------------------ convolutions
LAYOUTS = "None|NCW|NCHW|NCDHW|NWC|NHWC|NDHWC"
TUNING = "workspace:~int=1024 cudnn_tune:~None|off|limited_workspace|fastest=None cudnn_off:~bool=0"


def channels_last(layout: str | None) -> bool:
    return layout is not None and layout[-1] == "C"


def _moved(shape: Shape) -> Shape:
    """A shape with channels last as one with channels first."""
    return (shape[0], shape[-1], *shape[1:-1])


def convolution(data: Any, weight: Any, bias: Any = None, layout: str | None = None, **options: Any) -> Any:
    """npx.convolution, in every layout: with channels last the weight is [O, *K, C / num_group]."""
    if not channels_last(layout):
        return npx.convolution(data, weight, bias, layout=None, **options)
    data, weight = np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1)
    return np.moveaxis(npx.convolution(data, weight, bias, **options), 1, -1)


def deconvolution(
    data: Any, weight: Any, bias: Any = None, layout: str | None = None, target_shape: Any = (), **options: Any
) -> Any:
    """npx.deconvolution, in every layout."""
    options["target_shape"] = target_shape if any(target_shape) else None
    if not channels_last(layout):
        return npx.deconvolution(data, weight, bias, layout=None, **options)
    data, weight = np.moveaxis(data, -1, 1), np.moveaxis(weight, -1, 1)
    return np.moveaxis(npx.deconvolution(data, weight, bias, **options), 1, -1)


def _sizes(p: dict, name: str, default: int) -> Shape:
    return p[name] or (default,) * len(p["kernel"])


def _convolution_weight(p: dict, data: Shape) -> Shape:
    channels = data[-1] if channels_last(p["layout"]) else data[1]
    inner = channels // p["num_group"]
    return (
        (p["num_filter"], *p["kernel"], inner) if channels_last(p["layout"]) else (p["num_filter"], inner, *p["kernel"])
    )


def _deconvolution_weight(p: dict, data: Shape) -> Shape:
    inner = p["num_filter"] // p["num_group"]
    if channels_last(p["layout"]):
        return (data[-1], *p["kernel"], inner)
    return (data[1], inner, *p["kernel"])


def _filled(weight: Any) -> Any:
    def fill(p: dict, shapes: list) -> list:
        if shapes[0] is not None and len(shapes[0]) != len(p["kernel"]) + 2:
            raise ValueError(f"kernel {p['kernel']} wants data of {len(p['kernel']) + 2} axes")
        if shapes[0] is not None:
            shapes[1] = shapes[1] or weight(p, shapes[0])
        return [*shapes[:2], *[vector(p["num_filter"])] * (len(shapes) - 2)]

    return fill


def _placed(p: dict, data: Shape, size: list[int]) -> list[Shape]:
    if any(n < 1 for n in size):
        raise ValueError(f"the kernel {p['kernel']} is larger than the data {data}")
    return [(data[0], *size, p["num_filter"]) if channels_last(p["layout"]) else (data[0], p["num_filter"], *size)]


def _expect(weight: Any, p: dict, data: Shape, given: Shape) -> None:
    if given != weight(p, data):
        raise ValueError(f"the weight is {given}, and {data} wants {weight(p, data)}")


def _convolution_result(p: dict, data: Shape, weight: Shape, *bias: Shape) -> list[Shape]:
    _expect(_convolution_weight, p, data, weight)
    size = _moved(data)[2:] if channels_last(p["layout"]) else data[2:]
    sizes = zip(size, p["kernel"], _sizes(p, "stride", 1), _sizes(p, "pad", 0), _sizes(p, "dilate", 1), strict=True)
    return _placed(p, data, [(n + 2 * pad - d * (k - 1) - 1) // s + 1 for n, k, s, pad, d in sizes])


def _deconvolution_result(p: dict, data: Shape, weight: Shape, *bias: Shape) -> list[Shape]:
    _expect(_deconvolution_weight, p, data, weight)
    size = _moved(data)[2:] if channels_last(p["layout"]) else data[2:]
    if any(p["target_shape"]):
        return _placed(p, data, list(p["target_shape"]))
    sizes = zip(
        size, p["kernel"], *[_sizes(p, n, v) for n, v in (("stride", 1), ("pad", 0), ("dilate", 1), ("adj", 0))]
    )
    return _placed(p, data, [(n - 1) * s - 2 * pad + d * (k - 1) + 1 + a for n, k, s, pad, d, a in sizes])


_CONVOLUTION = f"kernel:shape stride:shape=() dilate:shape=() pad:shape=() num_filter:int num_group:int=1 {TUNING}"
for _name in ("Convolution", "Convolution_v1"):
    operator(_name, convolution, inputs("data", "weight"), f"{_CONVOLUTION} no_bias:bool=0 layout:{LAYOUTS}=None",
             batch=True, fill=_filled(_convolution_weight), result=_convolution_result)  # fmt: skip
operator("Deconvolution", deconvolution, inputs("data", "weight"),
         f"{_CONVOLUTION} adj:shape=() target_shape:shape=() no_bias:bool=1 layout:{LAYOUTS}=None",
         batch=True, fill=_filled(_deconvolution_weight), result=_deconvolution_result)  # fmt: skip


# ------------------------------------------------------------------ pooling
def pooling(
    data: Any,
    kernel: Shape = (),
    pool_type: str = "max",
    global_pool: bool = False,
    pooling_convention: str = "valid",
    stride: Shape = (),
    pad: Shape = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
) -> Any:
    """npx.pooling, in every layout and convention.

    pooling_convention   "same": ceil((S + 2 pad) / stride) windows, the last of which may reach over the edge;
                         "full": ceil((S + 2 pad - kernel) / stride) + 1, of which MXNet keeps the last one even where
                         it holds only padding: the lowest number of the dtype for a maximum, else 0
    """
    if channels_last(layout):
        data = np.moveaxis(data, -1, 1)
    n = data.ndim - 2
    included = count_include_pad is not False
    if pooling_convention == "same" and not global_pool:
        strides, pads = stride or (1,) * n, pad or (0,) * n
        y = _pooled_same(data, kernel, pool_type, strides, pads, p_value, included)
    else:
        options = {"kernel": None if global_pool else kernel, "stride": stride or None, "pad": pad or None}
        y = npx.pooling(
            data,
            pool_type=pool_type,
            global_pool=global_pool,
            pooling_convention="valid" if global_pool else pooling_convention,
            p_value=p_value,
            count_include_pad=included,
            **options,
        )
        if pooling_convention == "full" and not global_pool:
            rooms = zip(data.shape[2:], kernel, stride or (1,) * n, pad or (0,) * n, strict=True)
            size = [-(-(m + 2 * p - k) // s) + 1 for m, k, s, p in rooms]
            if y.shape[2:] != tuple(size):
                more = [(0, m - have) for m, have in zip(size, y.shape[2:], strict=True)]
                lowest = onp.finfo(y.dtype).min if pool_type == "max" else 0
                y = np.pad(y, ((0, 0), (0, 0), *more), constant_values=lowest)
    return np.moveaxis(y, 1, -1) if channels_last(layout) else y


def pooling_v1(data: Any, kernel: Shape = (), pool_type: str = "max", global_pool: bool = False,
               pooling_convention: str = "valid", stride: Shape = (), pad: Shape = ()) -> Any:  # fmt: skip
    """`pooling`, whose averages are sums over the kernel's size, also where it reaches over the edge."""
    if pool_type != "avg" or global_pool:
        return pooling(data, kernel, pool_type, global_pool, pooling_convention, stride, pad)
    return pooling(data, kernel, "sum", False, pooling_convention, stride, pad) * (1 / prod(kernel))


def _pooled_same(x: Any, kernel: Shape, kind: str, stride: Shape, pad: Shape, p_value: Any, included: bool) -> Any:
    if kind == "lp":
        return np.power(_pooled_same(np.abs(x) ** p_value, kernel, "sum", stride, pad, None, included), 1 / p_value)
    out = [-(-(n + 2 * p) // s) for n, s, p in zip(x.shape[2:], stride, pad, strict=True)]
    ends = [
        max((o - 1) * s + k - n - p, p) for o, s, k, n, p in zip(out, stride, kernel, x.shape[2:], pad, strict=True)
    ]
    widths = ((0, 0), (0, 0), *zip(pad, ends, strict=True))
    cut = (..., *(slice(o) for o in out))
    padded = np.pad(x, widths, constant_values=-onp.inf if kind == "max" else 0.0)
    y = npx.pooling(padded, kernel, "max" if kind == "max" else "sum", stride=stride)[cut]
    if kind != "avg":
        return y
    inside = tuple((p, p) if included else (0, 0) for p in pad)
    ones = onp.pad(onp.ones((1, 1, *x.shape[2:]), onp.float32), ((0, 0), (0, 0), *inside), constant_values=1)
    rest = [(w[0] - i[0], w[1] - i[1]) for w, i in zip(widths[2:], inside, strict=True)]
    counts = npx.pooling(np.asarray(onp.pad(ones, ((0, 0), (0, 0), *rest))), kernel, "sum", stride=stride)[cut]
    return y / counts.astype(y.dtype)


def _pooling_result(p: dict, data: Shape) -> list[Shape]:
    last = channels_last(p.get("layout"))
    first = _moved(data) if last else data
    n = len(first) - 2
    if p["global_pool"]:
        size: list[int] = [1] * n
    else:
        if len(p["kernel"]) != n:
            raise ValueError(f"kernel {p['kernel']} wants data of {len(p['kernel']) + 2} axes")
        size = []
        for m, k, s, pad in zip(first[2:], p["kernel"], p["stride"] or (1,) * n, p["pad"] or (0,) * n, strict=True):
            room = m + 2 * pad - k
            if room < 0:
                raise ValueError(f"the kernel {p['kernel']} is larger than the data {data}")
            how = p["pooling_convention"]
            size.append(
                -(-(m + 2 * pad) // s) if how == "same" else room // s + 1 if how == "valid" else -(-room // s) + 1
            )
    return [(first[0], *size, first[1]) if last else (*first[:2], *size)]


operator("Pooling", pooling, ("data",),
         "kernel:shape=() pool_type:max|avg|sum|lp=max global_pool:bool=0 cudnn_off:~bool=0 "
         "pooling_convention:valid|full|same=valid stride:shape=() pad:shape=() p_value:int=None "
         f"count_include_pad:bool=None layout:{LAYOUTS}=None", result=_pooling_result)  # fmt: skip
operator("Pooling_v1", pooling_v1, ("data",),
         "kernel:shape=() pool_type:max|avg|sum=max global_pool:bool=0 pooling_convention:valid|full=valid "
         "stride:shape=() pad:shape=()", result=_pooling_result)  # fmt: skip

# ------------------------------------------------------------------ activations
operator("Activation", npx.activation, ("data",), "act_type:relu|sigmoid|softrelu|softsign|tanh", same=True)


def leaky_relu(
    data: Any, gamma: Any = None, act_type: str = "leaky", slope: float = 0.25, lower_bound: float = 0.125,
    upper_bound: float = 0.334, training: bool = False,
) -> Any:  # fmt: skip
    """npx.leaky_relu; in training rrelu draws the slope of each element between the bounds."""
    if act_type == "rrelu" and training:
        slopes = np.random.uniform(lower_bound, upper_bound, data.shape).astype(data.dtype)
        return np.where(data > 0, data, data * slopes)
    return npx.leaky_relu(data, gamma, act_type, slope, lower_bound, upper_bound)


def _leaky_fill(p: dict, shapes: list) -> list:
    if len(shapes) > 1 and shapes[0] is not None:
        shapes[1] = shapes[1] or vector(shapes[0][1] if len(shapes[0]) > 1 else 1)
    return shapes


operator("LeakyReLU", leaky_relu, lambda p: ["data", *(["gamma"] if p["act_type"] == "prelu" else [])],
         "act_type:leaky|elu|gelu|prelu|rrelu|selu=leaky slope:float=0.25 lower_bound:float=0.125 "
         "upper_bound:float=0.334", training=True, drawn="training", fill=_leaky_fill,
         result=lambda p, data, *gamma: [data], initial={"gamma": '["Constant", {"value": 0.25}]'})  # fmt: skip


def softmax(data: Any, length: Any = None, axis: int = -1, temperature: float | None = None, dtype: Any = None,
            use_length: bool | None = False) -> Any:  # fmt: skip
    """npx.softmax."""
    return npx.softmax(data, length if use_length else None, axis=axis, temperature=temperature, dtype=dtype)


def log_softmax(data: Any, length: Any = None, axis: int = -1, temperature: float | None = None, dtype: Any = None,
                use_length: bool | None = False) -> Any:  # fmt: skip
    """npx.log_softmax; 0 beyond the length."""
    if not use_length:
        return npx.log_softmax(data, axis=axis, temperature=temperature, dtype=dtype)
    y = npx.log_softmax(data, axis=axis, temperature=temperature, dtype=dtype, length=length, use_length=True)
    return np.where(y == -onp.inf, 0.0, y)


def softmin(data: Any, length: Any = None, axis: int = -1, temperature: float | None = None, dtype: Any = None,
            use_length: bool | None = False) -> Any:  # fmt: skip
    """The softmax of -data."""
    return softmax(-data, length, axis, temperature, dtype, use_length)


def _softmax_fill(p: dict, shapes: list) -> list:
    if len(shapes) > 1 and shapes[0] is not None:
        axis = p["axis"] % len(shapes[0])
        shapes[1] = shapes[1] or shapes[0][:axis] + shapes[0][axis + 1 :]
    return shapes


def _softmax_types(p: dict, ins: list) -> tuple[list, list]:
    return [ins[0], *(t or onp.dtype("int32") for t in ins[1:])], [p["dtype"] or ins[0]]


for _name, _function in {"softmax": softmax, "log_softmax": log_softmax, "softmin": softmin}.items():
    operator(_name, _function, lambda p: ["data", *(["length"] if p["use_length"] else [])],
             "axis:int=-1 temperature:float=None dtype:dtype=None use_length:bool=0", fill=_softmax_fill,
             result=lambda p, data, *length: [data], dtypes=_softmax_types)  # fmt: skip


def softmax_activation(data: Any, mode: str = "instance") -> Any:
    """The softmax over channels, or over the last axis."""
    return npx.softmax(data, axis=1 if mode == "channel" else -1)


operator("SoftmaxActivation", softmax_activation, ("data",), "mode:channel|instance=instance", same=True)


# ------------------------------------------------------------------ dropout, embedding
def dropout(data: Any, p: float = 0.5, mode: str = "training", axes: Shape = (), training: bool = False) -> Any:
    """npx.dropout; mode "always" drops outside training too."""
    return npx.dropout(data, p, axes, training=training or mode == "always")


operator("Dropout", dropout, ("data",), "p:float=0.5 mode:always|training=training axes:shape=() cudnn_off:~bool=0",
         training=True, drawn="training", same=True)  # fmt: skip


def _embedding_fill(p: dict, shapes: list) -> list:
    return [shapes[0], (p["input_dim"], p["output_dim"])]


def _embedding_types(p: dict, ins: list) -> tuple[list, list]:
    return [ins[0], p["dtype"]], [p["dtype"]]


def embedding(data: Any, weight: Any) -> Any:
    """npx.embedding, where an index that is out of range is the first or the last one, as MXNet documents it."""
    return npx.embedding(np.clip(data, 0, weight.shape[0] - 1), weight)


for _name in ("Embedding", "_contrib_SparseEmbedding"):
    operator(_name, embedding, ("data", "weight"),
             "input_dim:~int output_dim:~int dtype:~dtype=float32 sparse_grad:~bool=0", fill=_embedding_fill,
             result=lambda p, data, weight: [(*data, p["output_dim"])], dtypes=_embedding_types)  # fmt: skip


# ------------------------------------------------------------------ images
def upsampling(
    *data: Any, scale: int, num_filter: int = 0, sample_type: str = "nearest", multi_input_mode: str = "concat"
) -> Any:
    """Images [N, C, H, W] `scale` times as large.

    nearest    each pixel repeated; several inputs are all brought to the size of the first, and concatenated or summed
    bilinear   a transposed convolution of each channel with a weight [C, 1, K, K], K = 2 scale - scale % 2
    """
    if sample_type == "bilinear":
        x, weight = data
        k, pad = 2 * scale - scale % 2, -(-(scale - 1) // 2)
        groups = weight.shape[0]
        return npx.deconvolution(x, weight, kernel=(k, k), stride=(scale, scale), pad=(pad, pad), num_group=groups,
                                 num_filter=groups)  # fmt: skip
    height = data[0].shape[2] * scale
    large = [np.repeat(np.repeat(x, height // x.shape[2], 2), height // x.shape[2], 3) for x in data]
    if len(large) == 1:
        return large[0]
    if multi_input_mode == "concat":
        return np.concatenate(large, axis=1)
    total = large[0]
    for x in large[1:]:
        total = total + x
    return total


def _upsampling_arguments(p: dict) -> list[str]:
    return ["data", "weight"] if p["sample_type"] == "bilinear" else [f"arg{i}" for i in range(p["num_args"])]


def _upsampling_fill(p: dict, shapes: list) -> list:
    if p["sample_type"] == "bilinear" and shapes[0] is not None:
        k = 2 * p["scale"] - p["scale"] % 2
        shapes[1] = shapes[1] or (shapes[0][1], 1, k, k)
    return shapes


def _upsampled(p: dict, data: Shape, *others: Shape) -> list[Shape]:
    channels = data[1]
    if p["sample_type"] == "nearest" and p["multi_input_mode"] == "concat":
        channels += sum(s[1] for s in others)
    return [(data[0], channels, data[2] * p["scale"], data[3] * p["scale"])]


operator("UpSampling", upsampling, _upsampling_arguments,
         "scale:int num_filter:int=0 sample_type:bilinear|nearest multi_input_mode:concat|sum=concat num_args:~int "
         "workspace:~int=512", fill=_upsampling_fill, count="num_args", result=_upsampled,
         initial={"weight": '["bilinear", {}]'})  # fmt: skip


def crop(*data: Any, offset: Shape = (0, 0), h_w: Shape = (0, 0), center_crop: bool = False) -> Any:
    """A part of images [N, C, H, W]: h_w large, or as large as the second input; at `offset`, or in the middle."""
    x = data[0]
    height, width = data[1].shape[2:] if len(data) > 1 else h_w
    if center_crop:
        offset = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    top, left = offset
    if top + height > x.shape[2] or left + width > x.shape[3]:
        raise ValueError(f"a crop of {height, width} at {tuple(offset)} does not fit into {x.shape}")
    return x[:, :, top : top + height, left : left + width]


operator("Crop", crop, lambda p: ["data", "crop_like"][: p["num_args"]],
         "num_args:~int offset:shape=(0,0) h_w:shape=(0,0) center_crop:bool=0",
         count="num_args")  # fmt: skip
