"""minnp: the NumPy interface on a backend's kernels, with gradients of any NumPy code.

import minnp.numpy as np
from minnp import grad
"""

import os

from .core.batching import vmap
from .core.context import Context, cpu, current_context, gpu, set_context
from .core.forward import jvp
from .core.function import Function
from .core.gradients import grad, grad_and_loss, stop_gradient, value_and_grad, vjp
from .core.host import memory_reuse, num_threads, set_num_threads
from .core.jit import jit
from .core.policy import get_global_policy, policy, set_backend, set_global_policy, wrap_policy
from .core.public import LATE
from .core.report import report, reset_report
from .core.transforms import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    elementwise_grad,
    hessian,
    hvp,
    jacobian,
    make_ggnvp,
)
from .dispatch.policy import OnlyMXNetPolicy, OnlyNumPyPolicy, PreferMXNetPolicy

LATE["scipy.special"] = "minnp.scipy.special"

__version__ = "0.1.0"
__all__ = [
    "Context",
    "Function",
    "OnlyMXNetPolicy",
    "OnlyNumPyPolicy",
    "PreferMXNetPolicy",
    "checkpoint",
    "cpu",
    "current_context",
    "custom_jvp",
    "custom_vjp",
    "elementwise_grad",
    "get_global_policy",
    "gpu",
    "grad",
    "grad_and_loss",
    "hessian",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "make_ggnvp",
    "memory_reuse",
    "num_threads",
    "policy",
    "report",
    "reset_report",
    "set_backend",
    "set_context",
    "set_global_policy",
    "set_num_threads",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    "wrap_policy",
]

if "MINNP_BACKEND" in os.environ:
    set_backend(os.environ["MINNP_BACKEND"])
