"""minnp: the NumPy interface on a backend's kernels, with gradients of any NumPy code.

import minnp.numpy as np
from minnp import grad
"""

from .core.gradients import grad, grad_and_loss, stop_gradient, value_and_grad, vjp
from .core.policy import get_global_policy, policy, set_global_policy, wrap_policy
from .core.report import report, reset_report

__version__ = "0.1.0"
__all__ = [
    "get_global_policy",
    "grad",
    "grad_and_loss",
    "policy",
    "report",
    "reset_report",
    "set_global_policy",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "wrap_policy",
]
