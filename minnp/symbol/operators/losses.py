"""Loss layers: their result is a prediction, and in training their gradient is the loss's, whatever flows into it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import minnp.numpy as np
from minnp import custom_vjp, npx, stop_gradient

from ..operator import Shape, operator


@custom_vjp
def loss(data: Any, result: Any, gradient: Any) -> Any:
    """result; the gradient of data is `gradient`, and none flows into the rest."""
    return result


loss.defvjp(
    forward=lambda data, result, gradient: (result, gradient),
    backward=lambda gradient, _: (gradient, None, None),
)


@custom_vjp
def scaled_loss(data: Any, result: Any, gradient: Any) -> Any:
    """The same, with the gradient times what flows into the result."""
    return result


scaled_loss.defvjp(
    forward=lambda data, result, gradient: (result, gradient),
    backward=lambda gradient, g: (gradient * g, None, None),
)


# ------------------------------------------------------------------ softmax
def softmax_output(
    data: Any, label: Any, grad_scale: float = 1.0, ignore_label: float = -1.0, multi_output: bool = False,
    use_ignore: bool = False, preserve_shape: bool = False, normalization: str = "null", out_grad: bool = False,
    smooth_alpha: float = 0.0, training: bool = False,
) -> Any:  # fmt: skip
    """The softmax of data; its gradient in training is that of the cross entropy with `label`.

    label            [N] numbers of classes, [N, *S] with multi_output (classes are axis 1), all axes but the last with
                     preserve_shape (classes are the last axis); or, in data's shape, the probabilities themselves
    use_ignore       places whose label is ignore_label have no gradient
    normalization    the gradient is divided by the batch's size ("batch") or the number of other labels ("valid")
    smooth_alpha     this much of the probability is spread over the other classes, but with multi_output
    out_grad         the gradient is multiplied by what flows into the result
    """
    shape = data.shape
    if multi_output:
        flat, axis = np.reshape(data, (*shape[:2], -1)), 1
    else:
        flat, axis = np.reshape(data, (-1, shape[-1]) if preserve_shape else (shape[0], -1)), -1
    y = npx.softmax(flat, axis=axis)
    result = np.reshape(y, shape)
    if not training:
        return result
    if label.shape == shape:
        g = (y - np.reshape(label, flat.shape)) * grad_scale
    else:
        each = np.reshape(label, (flat.shape[0], -1) if multi_output else (-1,))
        classes = flat.shape[axis]
        other = smooth_alpha / (classes - 1) if classes > 1 else 0.0
        spread = (1 - smooth_alpha, other) if not multi_output else ()  # MXNet leaves it out there
        named = np.expand_dims(each, -1).astype("int64") == np.arange(
            classes
        )  # npx.one_hot without a look at the labels
        expected = (np.where(named, *spread) if spread else named).astype(data.dtype)
        g = y - (np.moveaxis(expected, -1, 1) if multi_output else expected)
        if use_ignore:
            g = g * np.expand_dims(np.not_equal(each, ignore_label), axis).astype(data.dtype)
        scale = grad_scale / (flat.shape[2] if multi_output and normalization != "valid" else 1)
        if normalization == "batch":
            scale = scale / label.shape[0] if multi_output or not preserve_shape else scale / flat.shape[0]
        g = g * scale
        if normalization == "valid":
            g = g / np.maximum(np.sum(np.not_equal(each, ignore_label)), 1).astype(data.dtype)
    g = np.reshape(g, shape)
    return (scaled_loss if out_grad else loss)(data, result, g)


def _label_shapes(p: dict, data: Shape) -> list[Shape]:
    """The shapes that a label may have; the first is that of one whose shape is not said."""
    if p["multi_output"]:
        return [(data[0], prod(data[2:])), (data[0], *data[2:]), (data[0], 1, *data[2:]), data]
    return [data[:-1], data]


def _softmax_fill(p: dict, shapes: list) -> list:
    data, label = shapes
    if data is not None:
        shapes[1] = label or _label_shapes(p, data)[0]
    return shapes


def _softmax_result(p: dict, data: Shape, label: Shape) -> list[Shape]:
    known = _label_shapes(p, data)
    if label not in known:
        raise ValueError(f"the label is {label}; expected {' or '.join(map(str, dict.fromkeys(known)))}")
    return [data]


operator("SoftmaxOutput", softmax_output, ("data", "label"),
         "grad_scale:float=1 ignore_label:float=-1 multi_output:bool=0 use_ignore:bool=0 preserve_shape:bool=0 "
         "normalization:batch|null|valid=null out_grad:bool=0 smooth_alpha:float=0", aliases=("Softmax",),
         training=True, loss=True, fill=_softmax_fill, result=_softmax_result)  # fmt: skip


# ------------------------------------------------------------------ regression
def _regression(predict: Callable, slope: Callable) -> Callable:
    def regression_output(data: Any, label: Any, grad_scale: float = 1.0, training: bool = False) -> Any:
        y = predict(data)
        if not training:
            return y
        outputs = label.size // label.shape[0]
        return loss(data, y, slope(y - np.reshape(label, data.shape)) * (grad_scale / outputs))

    return regression_output


linear_regression_output = _regression(lambda x: x, lambda d: d)
logistic_regression_output = _regression(npx.sigmoid, lambda d: d)
absolute_regression_output = _regression(lambda x: x, np.sign)


def _regression_fill(p: dict, shapes: list) -> list:
    data = shapes[0]
    if data is not None:
        shapes[1] = shapes[1] or (data[:1] if len(data) == 2 and data[1] == 1 else data)
    return shapes


for _name, _function in {
    "LinearRegressionOutput": linear_regression_output,
    "LogisticRegressionOutput": logistic_regression_output,
    "MAERegressionOutput": absolute_regression_output,
}.items():
    operator(_name, _function, ("data", "label"), "grad_scale:float=1", training=True, loss=True,
             fill=_regression_fill, result=lambda p, data, label: [data])  # fmt: skip


def svm_output(
    data: Any, label: Any, margin: float = 1.0, regularization_coefficient: float = 1.0, use_linear: bool = False,
    training: bool = False,
) -> Any:  # fmt: skip
    """data; its gradient in training is that of the hinge loss of one class against the others, or of its square."""
    if not training:
        return data
    sign = 2 * npx.one_hot(np.reshape(label, (-1,)), data.shape[1]).astype(data.dtype) - 1
    short = margin - sign * data
    inside = np.greater(short, 0).astype(data.dtype)
    g = -sign * inside if use_linear else -2 * sign * short * inside
    return loss(data, data, g * regularization_coefficient)


operator("SVMOutput", svm_output, ("data", "label"),
         "margin:float=1 regularization_coefficient:float=1 use_linear:bool=0", training=True, loss=True,
         fill=lambda p, shapes: [shapes[0], shapes[1] or (shapes[0] and shapes[0][:1])],
         result=lambda p, data, label: [data])  # fmt: skip


# ------------------------------------------------------------------ any expression as a loss
def make_loss(
    data: Any, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: str = "null", training: bool = False
) -> Any:
    """data, whose gradient is grad_scale; divided by the batch's size, or the number of elements over valid_thresh."""
    if not training:
        return data
    g = np.full_like(stop_gradient(data), grad_scale)
    if normalization == "batch":
        g = g / data.shape[0]
    elif normalization == "valid":
        g = g / np.maximum(np.sum(np.greater(data, valid_thresh)), 1).astype(data.dtype)
    return loss(data, data, g)


operator("MakeLoss", make_loss, ("data",),
         "grad_scale:float=1 valid_thresh:float=0 normalization:batch|null|valid=null", training=True, loss=True,
         same=True)  # fmt: skip


def ones_loss(data: Any, training: bool = False) -> Any:
    """data, whose gradient is 1."""
    return loss(data, data, np.ones_like(stop_gradient(data))) if training else data


operator("make_loss", ones_loss, ("data",), outputs=("loss",), training=True, loss=True, same=True)


def softmax_cross_entropy(data: Any, label: Any) -> Any:
    """The sum of the cross entropies [1] of data [N, C] with the classes label [N]."""
    chosen = npx.pick(npx.log_softmax(data, axis=-1), label, axis=-1)
    return np.reshape(-np.sum(chosen), (1,))


operator("softmax_cross_entropy", softmax_cross_entropy, ("data", "label"),
         fill=lambda p, shapes: [shapes[0], shapes[1] or (shapes[0] and shapes[0][:1])],
         result=lambda p, data, label: [(1,)])  # fmt: skip


# ------------------------------------------------------------------ a penalty
@custom_vjp
def _penalised(data: Any, slope: Any) -> Any:
    """data, whose gradient has `slope` added."""
    return data


_penalised.defvjp(forward=lambda data, slope: (data, slope), backward=lambda slope, g: (g + slope, None))


def sparse_identity(data: Any, moving_avg: Any, sparseness_target: float = 0.1, penalty: float = 0.001,
                    momentum: float = 0.9, training: bool = False) -> Any:  # fmt: skip
    """data; in training its gradient has that of a penalty: how far the mean activation of each of data's columns is
    from the target (Kullback-Leibler, penalty times), with the moving mean in the place of the batch's."""
    if not training:
        return data
    flat = np.reshape(stop_gradient(data), (data.shape[0], -1))
    moved = momentum * moving_avg + (1 - momentum) * np.mean(flat, axis=0)
    slope = penalty * (-sparseness_target / moved + (1 - sparseness_target) / (1 - moved))
    return _penalised(data, np.reshape(np.broadcast_to(slope, flat.shape), data.shape).astype(data.dtype)), moved


operator("IdentityAttachKLSparseReg", sparse_identity, ("data", "moving_avg"),
         "sparseness_target:float=0.1 penalty:float=0.001 momentum:float=0.9", states=("moving_avg",), training=True,
         fill=lambda p, s: [s[0], s[1] or (s[0] and s[0][1:2])], result=lambda p, data, avg: [data],
         initial={"moving_avg": '["zero", {}]'})  # fmt: skip
