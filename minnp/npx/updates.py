"""Steps of optimisers that change arrays in place."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..core.arrays.array import ARRAY_TYPES, read
from ..core.arrays.writing import is_alone, release
from ..core.cpu import kernels
from ..core.rows.on_device import free
from ..core.rows.state import state
from ..core.rows.value import Buffer
from ..numpy.ufuncs import sqrt

REAL = {int, float, onp.float64}


def adam_update(
    weight: Any,
    grad: Any,
    mean: Any,
    var: Any,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> Any:
    """weight, after Adam's step without the corrections of bias, which belong into lr and epsilon; all of one shape.

    mean = beta1 mean + (1 - beta1) grad;  var = beta2 var + (1 - beta2) grad^2;
    weight -= lr mean / (sqrt(var) + epsilon), all three in place (Kingma and Ba 2015, end of section 2).

    >>> w, g, mean, var = np.ones(2), np.array([1.0, -1.0]), np.zeros(2), np.zeros(2)
    >>> npx.adam_update(w, g, mean, var, lr=0.1).round(4)
    array([0.6838, 1.3162])
    >>> mean
    array([ 0.1, -0.1])
    """
    numbers = (beta1, beta2, lr, epsilon)
    if _on_host((grad, weight, mean, var), numbers) or _on_device((grad, weight, mean, var), numbers):
        return weight
    mean *= beta1
    mean += (1.0 - beta1) * grad
    var *= beta2
    var += (1.0 - beta2) * (grad * grad)
    root = sqrt(var)
    root += epsilon
    weight -= mean / root * lr
    return weight


def _on_host(given: tuple, numbers: tuple) -> bool:
    """Whether the compiled kernel made the step; no name refers to the arrays' memory after it."""
    arrays = [a._host if type(a) in ARRAY_TYPES else a for a in given]
    written = arrays[1:]
    if (
        state.busy
        or not kernels.takes(*arrays, least=1)
        or not all(map(REAL.__contains__, map(type, numbers)))
        or not all(a.flags.writeable and a.shape == arrays[0].shape for a in written)
    ):
        return False
    for a in written if state.tapes else ():
        release(a)
    return kernels.call("adam", arrays[0].size, 1, arrays, numbers) is not None


def _on_device(given: tuple, numbers: tuple) -> bool:
    """Whether the device's library made the step, in one call, in arrays that alone have their memory there."""
    if not all(type(a) in ARRAY_TYPES and type(read(a)) is Buffer for a in given) or len({*map(id, given)}) < 4:
        return False
    device = given[0]._value.backend
    if not free(device) or any(a._value.backend is not device or a.shape != given[0].shape for a in given):
        return False
    if not all(map(is_alone, given[1:])) or not device.adam([a._value.data for a in given], numbers):
        return False
    for a in given[1:]:
        a._value = Buffer(a._value.data, device)
    return True
