"""Steps of optimisers that change arrays in place."""

from __future__ import annotations

from typing import Any

from ..core.arrays.array import ARRAY_TYPES
from ..core.arrays.writing import release
from ..core.cpu import kernels
from ..core.rows.state import state
from ..numpy.ufuncs import sqrt


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
    """
    numbers = (beta1, beta2, lr, epsilon)
    arrays = [a._host if type(a) in ARRAY_TYPES else a for a in (grad, weight, mean, var)]
    if not state.busy and kernels.takes(*arrays, least=1) and all(isinstance(x, (int, float)) for x in numbers):
        written = arrays[1:]
        if all(a.flags.writeable and a.shape == arrays[0].shape for a in written):
            for a in written if state.tapes else ():
                release(a)
            if kernels.call("adam", arrays[0].size, 1, arrays, numbers) is not None:
                return weight
    mean *= beta1
    mean += (1.0 - beta1) * grad
    var *= beta2
    var += (1.0 - beta2) * (grad * grad)
    root = sqrt(var)
    root += epsilon
    weight -= mean / root * lr
    return weight
