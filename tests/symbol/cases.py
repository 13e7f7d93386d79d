"""Calls of every operator of minnp.symbol, on which its values are compared with MXNet's.

A case is (inputs, parameters): an input is a shape, for random numbers, or an array. Inputs that are not listed are
those whose shapes follow.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from minnp.symbol import OPERATORS

CASES: dict[str, list[tuple[list, dict]]] = {}


def add(names: str, *cases: tuple[list, dict]) -> None:
    for name in names.split():
        CASES.setdefault(name, []).extend(cases)


def case(*inputs: Any, **parameters: Any) -> tuple[list, dict]:
    return list(inputs), parameters


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def within(low: float, high: float, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def whole(low: int, high: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Whole numbers from low to high - 1, as floats."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.float32)


def distinct(*shape: int, seed: int = 0) -> np.ndarray:
    n = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(n).reshape(shape) / n).astype(np.float32)


# ------------------------------------------------------------------ elementwise
PLAIN = [case((2, 3)), case((4, 1, 5))]
add(
    "abs arctan arcsinh cos sin sinh cosh tan tanh exp expm1 cbrt degrees radians negative sign square relu",
    *PLAIN,
)
add("sigmoid erf softsign zeros_like ones_like _copy BlockGrad ceil floor fix trunc rint round logical_not", *PLAIN)
add("rint round", case(np.array([[-1.5, -0.5, 0.5, 1.5, 2.5]], np.float32)))
add("sqrt rsqrt log log2 log10 log1p reciprocal rcbrt gamma gammaln", case(within(0.2, 4, 3, 4)))
add("arcsin arccos arctanh erfinv", case(within(-0.9, 0.9, 3, 4)))
add("arccosh", case(within(1.1, 4, 3, 4)))
add("logical_not", case(whole(0, 2, 3, 3)))
add("hard_sigmoid", case((3, 4)), case((3, 4), alpha=0.7, beta=-0.1))
add("smooth_l1", case((3, 4), scalar=1.0), case((3, 4), scalar=2.5))
add("clip", case((3, 4), a_min=-0.5, a_max=0.7))
add("Cast", case((3, 4), dtype="float64"), case(within(0, 9, 3, 4), dtype="int32"))
add("amp_cast", case((3, 4), dtype="float16"))
BOTH = [case((3, 4), (3, 4)), case(whole(0, 3, 2, 5), whole(0, 3, 2, 5, seed=1))]
add("elemwise_add elemwise_sub elemwise_mul _maximum _minimum _equal _not_equal _greater _lesser _greater_equal", *BOTH)
add("_lesser_equal _logical_and _logical_or _logical_xor _grad_add", *BOTH)
add("elemwise_div _mod _power _hypot", case(within(0.5, 3, 3, 4), within(0.5, 2, 3, 4, seed=1)))
WIDE = [case((3, 4), (1, 4)), case((3, 1), (1, 4)), case((2, 1, 3), (2, 5, 1))]
add("broadcast_add broadcast_sub broadcast_mul broadcast_maximum broadcast_minimum broadcast_equal", *WIDE)
add("broadcast_not_equal broadcast_greater broadcast_lesser broadcast_greater_equal broadcast_lesser_equal", *WIDE)
add("broadcast_logical_and broadcast_logical_or broadcast_logical_xor", *WIDE)
add("broadcast_div broadcast_mod broadcast_power broadcast_hypot",
    case(within(0.5, 3, 3, 4), within(0.5, 2, 1, 4, seed=1)),
    case(within(0.5, 3, 3, 1), within(0.5, 2, 1, 4, seed=1)))  # fmt: skip
NUMBERS = [case((3, 4), scalar=2.0), case((3, 4), scalar=-0.5)]
add("_plus_scalar _minus_scalar _rminus_scalar _mul_scalar _div_scalar _maximum_scalar _minimum_scalar", *NUMBERS)
add(
    "_equal_scalar _not_equal_scalar _greater_scalar _lesser_scalar _greater_equal_scalar _lesser_equal_scalar",
    *NUMBERS,
)
add("_logical_and_scalar _logical_or_scalar _logical_xor_scalar _hypot_scalar", *NUMBERS)
add("_equal_scalar _not_equal_scalar _greater_equal_scalar", case(whole(0, 3, 4, 4), scalar=1))
add("_rdiv_scalar _mod_scalar _rmod_scalar _power_scalar _rpower_scalar", case(within(0.5, 3, 3, 4), scalar=1.7))
add("_mod_scalar", case((3, 4), scalar=0.7))
add("add_n", case((2, 3)), case((2, 3), (2, 3), (2, 3)))
add("where", case(whole(0, 2, 3, 4), (3, 4), (3, 4)), case(whole(0, 2, 3), (3, 4), (3, 4)))

# ------------------------------------------------------------------ layers
add("FullyConnected", case((4, 3), num_hidden=5), case((4, 3, 2), num_hidden=5, no_bias=True),
    case((2, 4, 3), num_hidden=5, flatten=False))  # fmt: skip
CONVOLUTIONS = [
    case((2, 3, 7, 8), kernel=(3, 3), num_filter=4),
    case((2, 4, 7, 8), kernel=(3, 2), num_filter=6, stride=(2, 1), pad=(1, 0), num_group=2, no_bias=True),
    case((1, 3, 9, 9), kernel=(3, 3), num_filter=2, dilate=(2, 2), pad=(2, 1)),
]
add("Convolution", *CONVOLUTIONS, case((2, 3, 8), kernel=(3,), num_filter=4, stride=(2,), pad=(1,)),
    case((1, 2, 4, 5, 4), kernel=(2, 3, 2), num_filter=3, pad=(0, 1, 1)),
    case((2, 3, 5, 5), kernel=(1, 1), num_filter=7))  # fmt: skip
add("Convolution_v1", *CONVOLUTIONS)
add("Deconvolution", case((2, 3, 4, 5), kernel=(3, 3), num_filter=4),
    case((2, 4, 4, 5), kernel=(4, 4), num_filter=6, stride=(2, 2), pad=(1, 1), num_group=2),
    case((1, 3, 4, 4), kernel=(3, 3), num_filter=2, stride=(2, 2), pad=(1, 1), adj=(1, 1), no_bias=False),
    case((2, 3, 5), kernel=(3,), num_filter=2, stride=(2,)),
    case((1, 2, 3, 3, 3), kernel=(2, 2, 2), num_filter=2, stride=(2, 1, 2)))  # fmt: skip
for kind in ("max", "avg", "sum"):
    add("Pooling Pooling_v1",
        case(distinct(2, 3, 6, 7), kernel=(2, 2), stride=(2, 2), pool_type=kind),
        case(distinct(2, 3, 7, 7), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind),
        case(distinct(2, 3, 6, 6), kernel=(3, 3), stride=(2, 2), pool_type=kind, pooling_convention="full"),
        case(distinct(2, 3, 5, 4), kernel=(2, 2), pool_type=kind, global_pool=True))  # fmt: skip
    add("Pooling", case(distinct(2, 3, 9), kernel=(3,), stride=(2,), pool_type=kind),
        case(distinct(1, 2, 4, 5, 4), kernel=(2, 3, 2), stride=(2, 1, 2), pool_type=kind),
        case(distinct(2, 3, 7, 7), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind, count_include_pad=False),
        case(distinct(2, 3, 6, 6), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind,
             pooling_convention="full"),
        case(distinct(1, 2, 7, 8), kernel=(2, 2), stride=(2, 2), pad=(1, 1), pool_type=kind,
             pooling_convention="full"))  # fmt: skip
add("Pooling", case(within(0.2, 1, 2, 3, 6, 6), kernel=(2, 2), stride=(2, 2), pool_type="lp", p_value=2),
    case(within(0.2, 1, 2, 3, 6, 6), pool_type="lp", p_value=3, global_pool=True, kernel=(1, 1)))  # fmt: skip
for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh"):
    add("Activation", case((3, 4), act_type=kind), case((2, 3, 4, 2), act_type=kind))
add("LeakyReLU", case((3, 4)), case((3, 4), slope=0.1), case((2, 3, 4, 4), act_type="prelu"),
    case((4, 3), act_type="prelu"),
    case((3, 4), act_type="elu", slope=0.7), case((3, 4), act_type="selu"), case((3, 4), act_type="gelu"))  # fmt: skip
add("softmax log_softmax softmin", case((3, 4)), case((2, 3, 4), axis=1), case((3, 4), temperature=2.5),
    case((2, 5, 3), axis=0))  # fmt: skip
add("softmax", case((3, 4), np.array([1, 4, 2], np.int32), use_length=True))
add("SoftmaxActivation", case((3, 4)), case((2, 3, 4, 2), mode="channel"), case((2, 3, 4), mode="instance"))
add("Dropout", case((3, 4), p=0.0))
add("Embedding", case(np.array([-7, -1, 0, 1.7, 4, 5, 9], np.float32), input_dim=5, output_dim=3))
add("Embedding", case(whole(0, 5, 4), input_dim=5, output_dim=3), case(whole(0, 5, 2, 3), input_dim=5, output_dim=2))
add("UpSampling", case((2, 3, 4, 5), scale=2, sample_type="nearest"),
    case((2, 3, 4, 4), (2, 2, 2, 2), scale=2, sample_type="nearest"),
    case((2, 3, 4, 4), (2, 3, 2, 2), scale=2, sample_type="nearest", multi_input_mode="sum"),
    case((2, 3, 4, 4), (3, 1, 4, 4), scale=2, sample_type="bilinear", num_filter=3, num_args=2))  # fmt: skip
add("Crop", case((2, 3, 6, 7), h_w=(3, 4), offset=(1, 2)), case((2, 3, 6, 7), (1, 1, 4, 4)),
    case((2, 3, 6, 7), h_w=(3, 4), center_crop=True))  # fmt: skip

# ------------------------------------------------------------------ normalisation
VARIANTS = [{}, {"fix_gamma": False}, {"fix_gamma": False, "use_global_stats": True}, {"eps": 0.1, "momentum": 0.5}]
for options in VARIANTS:
    add("BatchNorm BatchNorm_v1", case((4, 3, 2, 5), **options), case((6, 3), **options))
add("BatchNorm", case((4, 2, 3, 5), axis=3, fix_gamma=False), case((4, 3, 5), fix_gamma=False),
    case((4, 3, 2, 5), output_mean_var=True))  # fmt: skip
add("LayerNorm", case((3, 5)), case((2, 3, 4), axis=1, eps=0.1), case((2, 3, 4), output_mean_var=True))
add("GroupNorm", case((2, 6, 3, 3), num_groups=2), case((2, 6, 3), num_groups=3, eps=0.1))
add("InstanceNorm", case((2, 3, 4, 5)), case((2, 3, 6), eps=0.1))
add("L2Normalization", case((2, 3, 4, 2)), case((2, 3, 4, 2), mode="channel"), case((2, 3, 4, 2), mode="spatial"))
add("LRN", case((2, 7, 3, 3), nsize=5), case((2, 6, 3, 3), nsize=3, alpha=0.5, beta=0.6, knorm=1.0))

# ------------------------------------------------------------------ losses
for options in ({}, {"grad_scale": 2.0}, {"normalization": "batch"}, {"normalization": "valid"},
                {"use_ignore": True, "ignore_label": 1.0}, {"smooth_alpha": 0.1}, {"out_grad": True},
                {"use_ignore": True, "ignore_label": 1.0, "normalization": "valid"}):  # fmt: skip
    add("SoftmaxOutput", case((5, 4), whole(0, 4, 5), **options),
        case((2, 4, 3, 2), whole(0, 4, 2, 3, 2), multi_output=True, **options),
        case((2, 3, 4), whole(0, 4, 2, 3), preserve_shape=True, **options))  # fmt: skip
add("SoftmaxOutput", case((5, 4), within(0, 1, 5, 4)))
add("LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput", case((5, 4), (5, 4)), case((5, 1), (5,)),
    case((5, 2, 3), (5, 2, 3), grad_scale=0.3))  # fmt: skip
add("SVMOutput", case((5, 4), whole(0, 4, 5)), case((5, 4), whole(0, 4, 5), margin=0.5, regularization_coefficient=2.0),
    case((5, 4), whole(0, 4, 5), use_linear=True))  # fmt: skip
add("MakeLoss", case((3, 4)), case((3, 4), grad_scale=0.5, normalization="batch"),
    case((3, 4), normalization="valid", valid_thresh=0.1))  # fmt: skip
add("make_loss", case((3, 4)))
add("softmax_cross_entropy", case((5, 4), whole(0, 4, 5)))

# ------------------------------------------------------------------ reductions
OVER = [case((2, 3, 4)), case((2, 3, 4), axis=1), case((2, 3, 4), axis=(0, 2), keepdims=True), case((2, 3, 4), axis=-1),
        case((2, 3, 4), axis=1, exclude=True), case((2, 3, 4), keepdims=True)]  # fmt: skip
add("sum mean nansum", *OVER)
add("prod nanprod", *[case(within(0.5, 2, 2, 3, 4), **p) for _, p in OVER])
add("max min", *[case(distinct(2, 3, 4), **p) for _, p in OVER])
add(
    "norm",
    case((2, 3, 4)),
    case((2, 3, 4), axis=1),
    case((2, 3, 4), axis=(1, 2), ord=1),
    case((3, 4), axis=1, keepdims=True),
)
add("moments", case((2, 3, 4), axes=(0, 2)), case((2, 3, 4), axes=(1,), keepdims=True))
add("argmax argmin", case(distinct(2, 3, 4), axis=1), case(distinct(3, 4), axis=-1, keepdims=True))
add("argmax_channel", case(distinct(3, 4)), case(distinct(2, 3, 4)))
add("sort", case(distinct(3, 5)), case(distinct(3, 5), axis=0, is_ascend=False))
add("argsort", case(distinct(3, 5)), case(distinct(3, 5), axis=0, is_ascend=False))
for kind in ("indices", "value", "mask", "both"):
    add(
        "topk", case(distinct(3, 5), k=2, ret_typ=kind), case(distinct(3, 5), axis=0, k=2, is_ascend=True, ret_typ=kind)
    )
add("dot", case((2, 3), (3, 4)), case((3, 2), (3, 4), transpose_a=True), case((2, 3), (4, 3), transpose_b=True),
    case((3,), (3,)), case((2, 3, 4), (4, 5)))  # fmt: skip
add("batch_dot", case((2, 3, 4), (2, 4, 5)), case((2, 4, 3), (2, 5, 4), transpose_a=True, transpose_b=True))
add("khatri_rao", case((2, 3), (4, 3)), case((2, 3), (4, 3), (2, 3)))

# ------------------------------------------------------------------ shapes
add("Reshape", case((2, 3, 4), shape=(4, 6)), case((2, 3, 4), shape=(0, -1)), case((2, 3, 4), shape=(-2,)),
    case((2, 3, 4), shape=(-3, 4)), case((2, 3, 4), shape=(-4, 1, 2, -2)), case((2, 3, 4), shape=(-1, 0), reverse=True),
    case((2, 3, 4), target_shape=(2, 0)), case((6, 4), shape=(-4, 2, -1, 0)),
    case((2, 3, 4), shape=(0, -3)))  # fmt: skip
add("Flatten", case((2, 3, 4)), case((3, 4)))
add("reshape_like", case((2, 6), (3, 4)), case((30, 7), (15, 2, 4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2))
add("transpose", case((2, 3, 4)), case((2, 3, 4), axes=(1, 0, 2)))
add("SwapAxis", case((2, 3, 4), dim1=0, dim2=2))
add("expand_dims", case((2, 3), axis=1), case((2, 3), axis=-1))
add("squeeze", case((2, 1, 3, 1)), case((2, 1, 3, 1), axis=1))
add("slice", case((4, 5, 3), begin=(1, 0), end=(3, 4)), case((4, 5), begin=(None, 1), end=(3, None)),
    case((4, 5), begin=(3, 0), end=(None, 5), step=(-1, 2)), case((4, 5), begin=(-3,), end=(-1,)))  # fmt: skip
add("slice_axis", case((4, 5), axis=1, begin=1, end=3), case((4, 5), axis=-1, begin=-3, end=None))
add("slice_like", case((4, 5), (2, 3)), case((4, 5, 2), (2, 3, 1), axes=(0, -1)))
add("_slice_assign", case((4, 5), (2, 3), begin=(1, 0), end=(3, 3)))
add("_slice_assign_scalar", case((4, 5), begin=(1, 0), end=(3, 3), scalar=2.0))
add("SliceChannel", case((2, 6, 3), num_outputs=3), case((2, 3), num_outputs=3, axis=1, squeeze_axis=True),
    case((4, 3), num_outputs=2, axis=0), case((4, 3), num_outputs=1))  # fmt: skip
add("_split_v2", case((2, 6, 3), indices=(0, 2, 5)), case((6, 2), indices=(), sections=3, axis=0))
add("Concat", case((2, 3), (2, 4)), case((2, 3), (1, 3), (4, 3), dim=0), case((2, 3)))
add("_rnn_param_concat", case((4,), (3,), dim=0))
add("stack", case((2, 3), (2, 3)), case((2, 3), (2, 3), axis=-1))
add("repeat", case((2, 3), repeats=2), case((2, 3), repeats=3, axis=1))
add("tile", case((2, 3), reps=(2, 1)), case((2, 3), reps=(2, 1, 3)))
add("reverse", case((2, 3, 4), axis=1), case((2, 3, 4), axis=(0, 2)))
add("broadcast_to", case((1, 3), shape=(4, 3)), case((2, 1, 3), shape=(0, 5, 0)))
add("broadcast_axis", case((1, 3), axis=0, size=4), case((1, 3, 1), axis=(0, 2), size=(2, 5)))
add("broadcast_like", case((1, 3), (4, 3)), case((1, 3), (5, 7), lhs_axes=(0,), rhs_axes=(1,)))
add("Pad", case((1, 2, 3, 4), mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 3, 0), constant_value=2.0),
    case((1, 2, 3, 4), mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)),
    case((1, 2, 5, 6), mode="reflect", pad_width=(0, 0, 0, 0, 1, 2, 3, 1)))  # fmt: skip
add("depth_to_space", case((2, 8, 2, 3), block_size=2))
add("space_to_depth", case((2, 2, 4, 6), block_size=2))
add("diag", case((4,)), case((4,), k=1), case((3, 4)), case((2, 3, 4), k=-1, axis1=1, axis2=2))
add("_np_cumsum", case((3, 4)), case((3, 4), axis=1))
add("take", case((5, 3), whole(0, 5, 4)), case((5, 3), whole(-2, 7, 2, 2), mode="clip"),
    case((5, 3), whole(-4, 9, 4), mode="wrap"),
    case((2, 5), whole(0, 5, 3), axis=1))  # fmt: skip
add("batch_take", case((4, 3), whole(0, 3, 4).astype(np.int32)))
add(
    "pick",
    case((4, 3), whole(0, 3, 4)),
    case((4, 3), whole(0, 4, 3), axis=0),
    case((4, 3), whole(0, 3, 4, 1), keepdims=True),
)
add("one_hot", case(whole(0, 4, 5), depth=4), case(whole(0, 6, 2, 3), depth=4, on_value=3.0, off_value=-1.0))
add("gather_nd", case((4, 3), whole(0, 3, 2, 5)), case((4, 3), whole(0, 3, 1, 5)))
add("scatter_nd", case((3,), np.array([[0, 2, 3], [1, 0, 2]], np.float32), shape=(4, 3)))
add("_ravel_multi_index", case(whole(0, 3, 2, 5), shape=(4, 3)))
add("_unravel_index", case(whole(0, 12, 5), shape=(4, 3)))
add("shape_array size_array", case((2, 3)))
add("_zeros _ones", case(shape=(2, 3)), case(shape=(2,), dtype="int32"))
add("_full", case(shape=(2, 3), value=1.5))
add("_arange", case(start=0, stop=5), case(start=1, stop=2, step=0.25, repeat=2))
add("_linspace", case(start=0, stop=5, num=4), case(start=1, stop=2, num=4, endpoint=False))
add("_eye", case(N=3), case(N=3, M=4, k=1))

# ------------------------------------------------------------------ sequences
for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    add("RNN", case((4, 2, 3), mode=mode, state_size=5, num_layers=1),
        case((4, 2, 3), mode=mode, state_size=5, num_layers=2, state_outputs=True),
        case((3, 2, 3), mode=mode, state_size=4, num_layers=2, bidirectional=True, state_outputs=True))  # fmt: skip
LENGTHS = np.array([2, 4], np.float32)
add("SequenceMask", case((4, 2, 3)), case((4, 2, 3), LENGTHS, use_sequence_length=True, value=-1.0),
    case((2, 4, 3), LENGTHS, use_sequence_length=True, axis=1))  # fmt: skip
add("SequenceLast", case((4, 2, 3)), case((4, 2, 3), LENGTHS, use_sequence_length=True),
    case((2, 4, 3), LENGTHS, use_sequence_length=True, axis=1))  # fmt: skip
add("SequenceReverse", case((4, 2, 3)), case((4, 2, 3), LENGTHS, use_sequence_length=True))
add("CTCLoss", case((7, 2, 5), np.array([[1, 2, 2], [3, 0, 2]], np.float32)),
    case((7, 2, 5), np.array([[1, 2, 2], [3, -1, -1]], np.float32), blank_label="last"),
    case((7, 2, 5), np.array([[1, 2, 2], [3, 1, 4]], np.float32), np.array([7, 5], np.float32),
         np.array([3, 2], np.float32),
         use_data_lengths=True, use_label_lengths=True))  # fmt: skip


# ------------------------------------------------------------------ sampling
NEAR = np.array([[0.8, 0.13, 0.1, -0.2, 0.7, 0.05], [1.1, 0.03, -0.3, 0.12, 0.9, 0.2]], np.float32)
add(
    "GridGenerator", case(NEAR, transform_type="affine", target_shape=(4, 5)), case((2, 2, 3, 4), transform_type="warp")
)
add("BilinearSampler", case((2, 3, 5, 6), within(-1.2, 1.2, 2, 2, 4, 3)))
add(  # inside the images: outside of them MXNet's gradient of loc is another
    "SpatialTransformer",
    case((2, 3, 5, 6), NEAR * np.float32(0.4), target_shape=(4, 5), transform_type="affine", sampler_type="bilinear"),
)


# ------------------------------------------------------------------ linear algebra
def positive(*shape: int) -> np.ndarray:
    a = normal(*shape)
    return a @ a.swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype=np.float32)


def triangle(*shape: int) -> np.ndarray:
    return np.tril(normal(*shape)) + 2 * np.eye(shape[-1], dtype=np.float32)


add("_linalg_gemm", case((2, 3, 4), (2, 4, 5), (2, 3, 5), alpha=2.0, beta=0.5),
    case((2, 4, 3), (2, 5, 4), (2, 3, 5), transpose_a=True, transpose_b=True),
    case((3, 2, 4), (4, 2, 5), (3, 2, 5), axis=0))  # fmt: skip
add("_linalg_gemm2", case((2, 3, 4), (2, 4, 5), alpha=2.0), case((4, 3), (5, 4), transpose_a=True, transpose_b=True),
    case((3, 2, 4), (4, 2, 5), axis=0))  # fmt: skip
add("_linalg_syrk", case((2, 3, 4)), case((3, 4), transpose=True, alpha=0.5))
for options in ({}, {"transpose": True, "alpha": 2.0}, {"rightside": True}, {"rightside": True, "transpose": True}):
    add("_linalg_trmm _linalg_trsm", case(triangle(2, 3, 3), (2, 3, 3), **options))
add("_linalg_trmm _linalg_trsm", case(triangle(3, 3).T.copy(), (3, 3), lower=False))
add("_linalg_potrf", case(positive(3, 3)), case(positive(2, 4, 4)))
add("_linalg_potri", case(triangle(3, 3)), case(triangle(2, 4, 4)))
add("_linalg_gelqf", case((3, 4)), case((2, 3, 3)))
add("_linalg_syevd", case(positive(3, 3)), case(positive(2, 4, 4)))
add("_linalg_inverse _linalg_det _linalg_slogdet", case(positive(3, 3)), case(positive(2, 4, 4)))
add("_linalg_sumlogdiag", case(positive(3, 3)), case(positive(2, 4, 4)))
add("_linalg_extractdiag", case((3, 3)), case((2, 4, 4), offset=1))
add("_linalg_makediag", case((3,)), case((2, 3), offset=-1))
add("_linalg_extracttrian", case((3, 3)), case((2, 4, 4), offset=1), case((3, 3), lower=False), case((4, 4), offset=-1))
add("_linalg_maketrian", case((6,)), case((2, 6), offset=1), case((6,), lower=False), case((6,), offset=-1))


# ------------------------------------------------------------------ boxes
def boxes(*shape: int, seed: int = 0) -> np.ndarray:
    """Boxes [*shape, 4] in the unit square: left, top, right, bottom."""
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 0.6, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(0.1, 0.4, (*shape, 2))], -1).astype(np.float32)


def scored(*shape: int, seed: int = 0) -> np.ndarray:
    """Rows [*shape, 6]: one of three classes, a score, a box."""
    rng = np.random.default_rng(seed + 9)
    rows = np.concatenate([rng.integers(0, 3, (*shape, 1)), rng.uniform(-0.1, 1, (*shape, 1))], -1)
    return np.concatenate([rows, boxes(*shape, seed=seed)], -1).astype(np.float32)


THINGS = np.concatenate([whole(0, 3, 2, 4, 1, seed=5), boxes(2, 4, seed=3)], -1)
THINGS[0, 2:], THINGS[1, 3:] = -1, -1
NOTHING = np.full_like(THINGS, -1)
PROBABLE = within(0, 1, 2, 4, 30, seed=2)
PROBABLE /= PROBABLE.sum(1, keepdims=True)
add("_contrib_MultiBoxPrior", case((2, 3, 4, 5)), case((1, 1, 3, 2), sizes=(0.3, 0.6), ratios=(2, 1, 0.5)),
    case((1, 1, 3, 2), sizes=(0.7, 0.9), clip=True, steps=(0.3, 0.4), offsets=(0.2, 0.6)))  # fmt: skip
add("_contrib_MultiBoxTarget", case(boxes(1, 30), THINGS, (2, 4, 30)), case(boxes(1, 30), NOTHING, (2, 4, 30)),
    case(boxes(1, 30), THINGS, (2, 4, 30), overlap_threshold=0.2, variances=(1, 1, 0.5, 0.5), ignore_label=-7),
    case(boxes(1, 30), THINGS, (2, 4, 30), negative_mining_ratio=3),
    case(boxes(1, 30), THINGS, (2, 4, 30), negative_mining_ratio=1, negative_mining_thresh=0.3))  # fmt: skip
add("_contrib_MultiBoxDetection", case(PROBABLE, (2, 120), boxes(1, 30)),
    case(PROBABLE, (2, 120), boxes(1, 30), threshold=0.4, clip=False, nms_threshold=0.3),
    case(PROBABLE, (2, 120), boxes(1, 30), force_suppress=True, variances=(1, 1, 0.1, 0.1)),
    case(PROBABLE, (2, 120), boxes(1, 30), nms_threshold=-1))  # fmt: skip
for options in ({}, {"overlap_thresh": 0.2, "valid_thresh": 0.3}, {"id_index": 0}, {"id_index": 0, "topk": 6},
                {"id_index": 0, "force_suppress": True}, {"out_format": "center"}, {"topk": 0},
                {"id_index": 0, "background_id": 1}):  # fmt: skip
    add("_contrib_box_nms", case(scored(2, 20), **options), case(scored(12), **options))
add("_contrib_box_nms", case(np.abs(scored(2, 3, 9)), in_format="center"))
add("_contrib_box_iou", case(boxes(5), boxes(7, seed=1)), case(boxes(2, 3), boxes(4, seed=1), format="center"))
add("_contrib_bipartite_matching", case(distinct(2, 4, 5), threshold=0.1), case(distinct(4, 3), threshold=1e-6),
    case(distinct(4, 3), threshold=0.8, is_ascend=True))  # fmt: skip
add("_contrib_box_encode", case(whole(0, 2, 2, 6), whole(0, 3, 2, 6, seed=1), boxes(2, 6), boxes(2, 3, seed=1),
    np.array([0, 0.1, 0, -0.1], np.float32), np.array([0.1, 0.1, 0.2, 0.2], np.float32)))  # fmt: skip
add("_contrib_box_decode", case((2, 6, 4), boxes(1, 6)), case((2, 6, 4), boxes(1, 6), std0=0.1, std3=0.2, clip=0.5),
    case((2, 6, 4), boxes(1, 6), format="corner"))  # fmt: skip
SMALL = {"feature_stride": 8, "scales": (1, 2), "ratios": (0.5, 1, 2), "rpn_min_size": 4}
IMAGE = np.array([[40, 44, 1.5]], np.float32)
SAID = distinct(1, 12, 6, 6), within(-0.3, 0.3, 1, 24, 6, 6)
add("_contrib_Proposal", case(*SAID, IMAGE, rpn_post_nms_top_n=9, **SMALL),
    case(*SAID, IMAGE, rpn_pre_nms_top_n=12, rpn_post_nms_top_n=12,
         threshold=0.3, output_score=True, **SMALL),
    case(SAID[0], 9 * SAID[1], IMAGE, rpn_post_nms_top_n=9, iou_loss=True, **SMALL))  # fmt: skip
add("_contrib_MultiProposal", case(distinct(2, 12, 6, 6), within(-0.3, 0.3, 2, 24, 6, 6), IMAGE.repeat(2, 0),
                                   rpn_post_nms_top_n=9, output_score=True, **SMALL))  # fmt: skip

# ------------------------------------------------------------------ regions and windows
ROIS = np.array([[0, 0, 0, 9, 9], [1, 3, 2, 12, 15], [0, 5.5, 4, 6, 11], [1, -3, 1, 20, 30]], np.float32)
add("ROIPooling", case(distinct(2, 3, 9, 8), ROIS, pooled_size=(2, 3), spatial_scale=0.6),
    case(distinct(2, 3, 9, 8), ROIS, pooled_size=(1, 1), spatial_scale=0.25))  # fmt: skip
for options in ({}, {"sample_ratio": 2}, {"sample_ratio": 3, "aligned": True}, {"aligned": True}):
    add("_contrib_ROIAlign", case((2, 3, 9, 8), ROIS, pooled_size=(2, 3), spatial_scale=0.6, **options))
add("_contrib_ROIAlign", case((2, 12, 9, 8), ROIS, pooled_size=(2, 3), spatial_scale=0.6, position_sensitive=True))
add("_contrib_AdaptiveAvgPooling2D", case((2, 3, 7, 5)), case((2, 3, 7, 5), output_size=(3, 2)),
    case((2, 3, 7, 5), output_size=3), case((2, 3, 4, 4), output_size=(6, 5)))  # fmt: skip
add("_contrib_BilinearResize2D", case((2, 3, 4, 5), height=7, width=3), case((2, 3, 4, 5), height=1, width=1),
    case((2, 3, 4, 5), height=7, width=3, align_corners=False), case((2, 3, 4, 5), (1, 1, 6, 7), mode="like"),
    case((2, 3, 4, 5), scale_height=2, scale_width=1.5),
    case((2, 3, 5, 4), scale_height=2, scale_width=3, mode="odd_scale"),
    *[case((2, 3, 4, 5), mode=m) for m in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up")])  # fmt: skip
add("im2col", case((2, 3, 5, 6), kernel=(3, 2)),
    case((1, 2, 7, 7), kernel=(3, 3), stride=(2, 1), pad=(1, 2), dilate=(2, 1)))  # fmt: skip
add("col2im", case((2, 18, 15), output_size=(5, 6), kernel=(3, 2), pad=(0, 0)),
    case((1, 18, 25), output_size=(9, 9), kernel=(3, 3), stride=(2, 2), pad=(1, 1)))  # fmt: skip
add("Correlation", case((2, 3, 6, 7), (2, 3, 6, 7), max_displacement=1),
    case((2, 3, 8, 8), (2, 3, 8, 8), kernel_size=3, max_displacement=2, stride1=2, stride2=2, pad_size=3),
    case((1, 3, 8, 8), (1, 3, 8, 8), max_displacement=2, pad_size=2, is_multiply=False))  # fmt: skip
for data, out, some in (
    ((2, 4, 6, 7), (18, 4, 5), {"kernel": (3, 3), "num_filter": 4}),
    ((2, 4, 6, 7), (12, 3, 10), {"kernel": (3, 2), "num_filter": 6, "stride": (2, 1), "pad": (1, 2), "num_group": 2,
                                 "no_bias": True}),
    ((1, 4, 7, 7), (36, 7, 7), {"kernel": (3, 3), "num_filter": 2, "dilate": (2, 2), "pad": (2, 2),
                                "num_deformable_group": 2}),
):  # fmt: skip
    shifts = normal(data[0], *out)
    add("_contrib_DeformableConvolution", case(data, shifts, **some))
    add("_contrib_ModulatedDeformableConvolution", case(data, shifts, (data[0], out[0] // 2, *out[1:]), **some))

# ------------------------------------------------------------------ _contrib_
add("_contrib_interleaved_matmul_selfatt_qk", case((5, 2, 24), heads=2))
add("_contrib_interleaved_matmul_selfatt_valatt", case((5, 2, 24), (4, 5, 5), heads=2))
add("_contrib_interleaved_matmul_encdec_qk", case((4, 2, 8), (5, 2, 16), heads=2))
add("_contrib_interleaved_matmul_encdec_valatt", case((5, 2, 16), (4, 3, 5), heads=2))
add("_contrib_div_sqrt_dim", case((2, 3, 5)))
add("_contrib_arange_like", case((2, 3)), case((2, 3), start=1, step=0.5, axis=1), case((2, 4), repeat=2))
add("_contrib_index_array", case((2, 3)), case((2, 3, 2), axes=(2, 0)))
add("_contrib_index_copy", case((5, 3), np.array([3, 0], np.int32), (2, 3)))
add("_contrib_quadratic", case((2, 3), a=1, b=2, c=3))
add("_contrib_gradientmultiplier", case((2, 3), scalar=-0.5))
add("_contrib_round_ste _contrib_sign_ste", case((2, 3)))
add("_contrib_BatchNormWithReLU", case((4, 3, 2, 5)), case((4, 3, 2, 5), fix_gamma=False, eps=0.1))
add("_contrib_SyncBatchNorm", case((4, 3, 2, 5), key="bn", fix_gamma=False))
add("_contrib_SparseEmbedding", case(whole(0, 5, 4), input_dim=5, output_dim=3))

# ------------------------------------------------------------------ images before a network, and the rest
PIXELS = whole(0, 256, 5, 6, 3)
add("_image_to_tensor", case(PIXELS), case(whole(0, 256, 2, 4, 3, 3)))
add("_image_normalize", case((3, 4, 5), mean=(0.1, 0.2, 0.3), std=(0.5, 1, 2)), case((2, 1, 4, 5), mean=0.5, std=2))
add("_image_flip_left_right _image_flip_top_bottom", case(whole(0, 256, 4, 6, 3)))
add(
    "_image_crop", case(PIXELS, x=1, y=2, width=3, height=2), case(whole(0, 9, 2, 5, 6, 3), x=1, y=2, width=3, height=2)
)
add("_image_resize", case(PIXELS, size=(4, 7)), case(PIXELS, size=3), case(PIXELS, size=3, keep_ratio=True),
    case(PIXELS, size=(4, 7), interp=0))  # fmt: skip
add("_image_adjust_lighting", case(PIXELS, alpha=(0.1, -0.2, 0.3)))
POSITIVE = [within(0.3, 2, 3, seed=i) for i in range(2)]
SHARES = np.random.default_rng(0).dirichlet([1, 2, 3, 1], (2, 5)).astype(np.float32)
for is_log in (False, True):
    add("_random_pdf_normal", case((3, 4), (3,), POSITIVE[0], is_log=is_log))
    add("_random_pdf_uniform", case(within(0, 1, 3, 2, 2), -POSITIVE[0], 1 + POSITIVE[1], is_log=is_log))
    add("_random_pdf_gamma", case(within(0.2, 3, 3, 4), *POSITIVE, is_log=is_log))
    add("_random_pdf_exponential", case(within(0.2, 3, 3, 4), POSITIVE[0], is_log=is_log))
    add("_random_pdf_poisson", case(whole(0, 5, 3, 4), POSITIVE[0], is_log=is_log))
    add("_random_pdf_negative_binomial", case(whole(0, 5, 3, 4), whole(1, 5, 3), within(0.2, 0.8, 3), is_log=is_log))
    add("_random_pdf_generalized_negative_binomial", case(whole(0, 5, 3, 4), *POSITIVE, is_log=is_log))
    add("_random_pdf_dirichlet", case(SHARES, within(0.5, 3, 2, 4), is_log=is_log))
add("cast_storage", case((2, 3), stype="default"))
add("amp_multicast", case((2, 3), (2, 3), num_outputs=2))
add("all_finite", case((2, 3)), case(np.array([1, np.inf], np.float32)))
add("multi_all_finite", case((2, 3), (4,), num_arrays=2))
add("multi_sum_sq", case((2, 3), (4,), num_arrays=2))
add("_histogram", case((20,), np.array([-1, 0, 0.5, 2], np.float32)), case((20,), bin_cnt=5, range=(-2, 2)))
add("_identity_with_attr_like_rhs", case((2, 3), (2, 3)))
add("IdentityAttachKLSparseReg", case(within(0.1, 0.9, 4, 3)), case(within(0.1, 0.9, 4, 3), penalty=0.5, momentum=0.5))

REGIONS = np.array([[0, 1, 1, 8, 7], [1, 0, 2, 5.5, 9], [0, -3, 4, 2, 30], [1, 6, 6, 6, 6]], np.float32)
add("_contrib_PSROIPooling",
    case((2, 18, 10, 12), REGIONS, spatial_scale=1.0, output_dim=2, pooled_size=3),
    case((2, 12, 10, 12), REGIONS, spatial_scale=0.7, output_dim=3, pooled_size=4, group_size=2))  # fmt: skip
PARTS = {"spatial_scale": 0.8, "pooled_size": 3, "sample_per_part": 2}
add("_contrib_DeformablePSROIPooling",
    case((2, 18, 10, 12), REGIONS, **PARTS, output_dim=2, group_size=3, no_trans=True),
    case((2, 18, 10, 12), REGIONS, (4, 2, 3, 3), **PARTS, output_dim=2, group_size=3, part_size=3, trans_std=0.1),
    case((2, 16, 10, 12), REGIONS, (4, 4, 2, 2), **PARTS, output_dim=4, group_size=2, part_size=2,
         trans_std=0.3))  # fmt: skip
TURNED = np.array([[0, 5, 5, 4, 3, 30], [1, 4, 5, 5, 2, -60], [1, 1, 9, 9, 6, 100], [0, 4, 4, 0, 0, 0]], np.float32)
add("_contrib_RROIAlign", case((2, 4, 10, 12), TURNED, spatial_scale=1.0, pooled_size=(3, 2), sampling_ratio=2),
    case((2, 4, 10, 12), TURNED, spatial_scale=0.9, pooled_size=(2, 3)))  # fmt: skip
add("_contrib_hawkesll", case(within(0.5, 2, 2, 3), within(0.1, 0.5, 3), within(0.5, 2, 3), within(0, 1, 2, 3),
    within(0.1, 2, 2, 4), whole(0, 3, 2, 4).astype(np.int32), np.array([4, 2], np.float32),
    np.array([8, 9], np.float32)))  # fmt: skip

# ------------------------------------------------------------------ gradients that are not compared
# Operators without a gradient in MXNet, by the names of the inputs, or for all of them.
WITHOUT: dict[str, set[str]] = {
    "Embedding": {"x0"},
    "softmax_cross_entropy": {"x1"},
    "softmax": {"x1"},
    **{n: {"x1"} for n in ("take", "pick", "gather_nd", "scatter_nd", "CTCLoss")},
    **{n: {"x0", "x1"} for n in ("_grad_add", "_slice_assign", "_slice_assign_scalar", "argmax_channel", "batch_take")},
    **{n: {"x0", "x1", "x2"} for n in ("khatri_rao", "all_finite", "multi_all_finite", "multi_sum_sq", "_histogram")},
}
# Where MXNet is wrong, by the operator and a part of the parameters, and how.
WRONG = [
    ("LeakyReLU", {"act_type": "selu"}, "its slope below 0 is scale (alpha + y), which forgets that y is scaled"),
    ("Cast", {"dtype": "int32"}, "its gradient flows through a rounding"),
    ("Pooling", {"pool_type": "avg", "pooling_convention": "full"}, "its gradient is not that of its result"),
    (
        "SoftmaxActivation",
        {"mode": "instance"},
        "its result is over the last axis, its gradient over all but the first",
    ),
    ("SoftmaxOutput", {"out_grad": True}, "it does not multiply its gradient, as it says it does"),
    ("sort", {}, "its gradient raises"),
    ("_contrib_box_nms", {"out_format": "center"}, "its gradient forgets that boxes were turned into others"),
    ("_contrib_box_nms", {"in_format": "center"}, "the same"),
    ("_contrib_BilinearResize2D", {"mode": "like"}, "its gradient crashes"),
    ("_contrib_ModulatedDeformableConvolution", {}, "it has no gradient on CPUs"),
    *((f"_image_{n}", {}, "it has no gradient") for n in ("flip_left_right", "flip_top_bottom", "to_tensor", "resize")),
    ("_contrib_RROIAlign", {}, "it has no gradient"),
    (
        "_contrib_hawkesll",
        {},
        "its gradient ignores that of the state, and raises for other inputs than the parameters",
    ),
    ("_contrib_SparseEmbedding", {}, "it has no gradient for weights that are dense"),
]


# ------------------------------------------------------------------ what is done with them
# Those whose results are always random, control flow, and these have tests of their own.
UPDATES = {n for n, r in OPERATORS.items() if r.definition.__module__.endswith("updates")}  # test_updates.py
OTHERS = {*UPDATES, "_scatter_set_nd", "Custom", "_contrib_allclose", "_contrib_boolean_mask"}
NUMPYS = ("_np_", "_npi_", "_npx_")  # mx.np's, which test_numpy_operators.py compares
NAMES = sorted({r.name for r in OPERATORS.values() if r.drawn is not True and r.bodies is None} - OTHERS)
QUANTISED = ("_contrib_quantize", "_contrib_dequantize", "_contrib_requantize")  # test_quantised_operators.py does
NAMES = [n for n in NAMES if not n.startswith((*NUMPYS, *QUANTISED))]


def make(library: Any, name: str, parameters: dict, count: int) -> Any:
    """The symbol x = name(x0, x1, ...) of minnp.symbol or mx.sym."""
    spaces = {"_linalg_": library.linalg, "_contrib_": library.contrib, "_image_": library.image}
    found = [(library, n) for n in (name, *OPERATORS[name].aliases)] + [(library._internal, name)]
    found += [(space, name.removeprefix(prefix)) for prefix, space in spaces.items() if name.startswith(prefix)]
    function = next(getattr(place, n) for place, n in found if hasattr(place, n))
    variables = [library.Variable(f"x{i}") for i in range(count)]
    if name.startswith("_random_pdf"):  # MXNet's functions have is_log before their last input
        return function(**dict(zip(OPERATORS[name].arguments({}), variables, strict=True)), name="x", **parameters)
    return function(*variables, name="x", **parameters)


def arrays(symbol: Any, inputs: list, name: str) -> tuple[dict, dict]:
    """(arguments, states) by name: those given, and random ones of the shapes that follow."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    given = {f"x{i}": v for i, v in enumerate(inputs)}
    shapes = {n: v if isinstance(v, tuple) else v.shape for n, v in given.items()}
    arguments, _, states = symbol.infer_shape(**shapes)
    out = {}
    for n, shape in zip(symbol.list_arguments(), arguments, strict=True):
        array = given.get(n)
        out[n] = array if isinstance(array, np.ndarray) else rng.normal(size=shape).astype(np.float32)
    kept = {
        n: rng.uniform(0.5, 1.5, shape).astype(np.float32)
        for n, shape in zip(symbol.list_auxiliary_states(), states, strict=True)
    }
    return out, kept
