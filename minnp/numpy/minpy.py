"""Names MinPy's namespace had beside NumPy's: onehot_encode, slice_axis and softmax_output, policies, statistics."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.arrays.array import concretize
from ..core.rows import policy
from ..core.rows.primitive import CONSTANT, Primitive
from ..core.rows.report import record_op_stat, show_op_stat
from .arguments import as_array


def onehot_encode(indices: Any, out: Any) -> Any:
    """Write 1 into out[i, indices[i]] and 0 elsewhere; returns out [N, C]. Indices may be floats of integral value."""
    where = onp.asarray(indices).astype(onp.intp)
    if where.shape != out.shape[:1]:
        raise ValueError(f"onehot_encode: {where.shape} indices for an output of shape {tuple(out.shape)}")
    out[...] = onp.eye(out.shape[1], dtype=out.dtype)[where]
    return out


def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> Any:
    """data[..., begin:end, ...] along one axis: a view, as in NumPy (MXNet's function gives a copy)."""
    data = as_array(data)
    index: list = [slice(None)] * data.ndim
    try:
        index[axis] = slice(begin, end)
    except IndexError:
        raise onp.exceptions.AxisError(axis, data.ndim) from None
    return data[tuple(index)]


def _softmax(data: Any, label: Any) -> Any:
    e = onp.exp(data - onp.max(data, axis=1, keepdims=True))
    return e / onp.sum(e, axis=1, keepdims=True)


def _softmax_loss_gradient(g: Any, y: Any, data: Any, label: Any) -> Any:
    if label.ndim == 1:
        label = onp.eye(y.shape[1], dtype=y.dtype)[onp.asarray(concretize(label, int)).astype(onp.intp)]
    return y - label


# Not in the table: by MXNet's definition its rule is not the derivative of its result, which generic tests would want.
_SOFTMAX_OUTPUT = Primitive("softmax_output", _softmax, vjp=[_softmax_loss_gradient, CONSTANT], saves="both")


def softmax_output(data: Any, label: Any) -> Any:
    """Softmax over axis 1 of data [N, C], whose gradient is that of the cross-entropy with label, whatever flows in.

    label   class indices [N], or probabilities [N, C]
    The gradient for data is softmax(data) - onehot(label), as MXNet's SoftmaxOutput gives it: a loss layer.
    """
    return _SOFTMAX_OUTPUT(data, label)


EXTRA = {
    "onehot_encode": onehot_encode,
    "slice_axis": slice_axis,
    "softmax_output": softmax_output,
    "policy": policy,
    "set_policy": policy.set_global_policy,
    "record_op_stat": record_op_stat,
    "show_op_stat": show_op_stat,
}
