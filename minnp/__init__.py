"""minnp: the NumPy interface on a backend's kernels, with gradients of any NumPy code.

import minnp.numpy as np
from minnp import grad
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

# What a gradient records and what jit knows is shared between threads, and guarded by the interpreter's lock alone.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        f"minnp needs the interpreter lock, which this free-threaded Python {sys.version.split()[0]} runs without: "
        "start it with PYTHON_GIL=1 or python -X gil=1"
    )

from . import numpy  # arrays have their operators from there, and rows are there: no name below works without
from .core.api.functions import LATE
from .core.arrays.devices import Context, cpu, current_context, gpu, set_context
from .core.cpu import memory_reuse, num_threads, prange, set_num_threads
from .core.rows.budget import set_compile_budget, set_gradient_budget
from .core.rows.policy import get_global_policy, policy, set_backend, set_global_policy, wrap_policy
from .core.rows.report import report, reset_report
from .core.transforms.grad import grad, grad_and_loss, stop_gradient, value_and_grad, vjp

if TYPE_CHECKING:  # what is imported when it is first asked for, below
    from . import distributed, errors, fx, kvstore, nn, npx, scipy, symbol, testing, utils
    from .core.graph.embedding import Function
    from .core.jit.jit import jit
    from .core.transforms.derivatives import (
        checkpoint,
        custom_jvp,
        custom_vjp,
        elementwise_grad,
        hessian,
        hvp,
        jacobian,
        make_ggnvp,
    )
    from .core.transforms.jvp import jvp
    from .core.transforms.vmap import vmap
    from .dispatch.policy import AutoBlacklistPolicy, OnlyMXNetPolicy, OnlyNumPyPolicy, PreferMXNetPolicy
    from .fx.variables import Variable
    from .fx.variables import compile as compile
    from .symbol.model import load_mxnet

# Imported when first asked for: a program that only computes does not wait for them.
_LATE = {
    "AutoBlacklistPolicy": ".dispatch.policy",
    "Function": ".core.graph.embedding",
    "OnlyMXNetPolicy": ".dispatch.policy",
    "OnlyNumPyPolicy": ".dispatch.policy",
    "PreferMXNetPolicy": ".dispatch.policy",
    "Variable": ".fx.variables",
    "checkpoint": ".core.transforms.derivatives",
    "compile": ".fx.variables",
    "custom_jvp": ".core.transforms.derivatives",
    "custom_vjp": ".core.transforms.derivatives",
    "elementwise_grad": ".core.transforms.derivatives",
    "hessian": ".core.transforms.derivatives",
    "hvp": ".core.transforms.derivatives",
    "jacobian": ".core.transforms.derivatives",
    "jit": ".core.jit.jit",
    "jvp": ".core.transforms.jvp",
    "load_mxnet": ".symbol.model",
    "make_ggnvp": ".core.transforms.derivatives",
    "vmap": ".core.transforms.vmap",
}
# what other libraries have here, and what does its work
_ELSEWHERE = {
    "autograd": "minnp.grad(f)(x): nothing has to be recorded",
    "cond": "Python's `if`, which jit compiles",
    "cuda": "minnp.gpu(0), and minnp.Context",
    "device_put": "x.to_device(device)",
    "from_numpy": "np.asarray of minnp.numpy",
    "get_array_module": "minnp.numpy, whose functions take arrays of every device",
    "gluon": "minnp.nn",
    "jacfwd": "minnp.jacobian(f, mode='forward')",
    "jacrev": "minnp.jacobian(f)",
    "lax": "Python's loops and branches, which jit compiles",
    "linearize": "minnp.jvp(f, primals, tangents)",
    "load": "np.load of minnp.numpy, and net.load(prefix) of a model",
    "make_jaxpr": "minnp.fx.capture(f, x), or minnp.jit(f).lower(x)",
    "make_jvp": "minnp.jvp(f, primals, tangents)",
    "make_vjp": "minnp.vjp(f, *args)",
    "manual_seed": "np.random.seed of minnp.numpy",
    "nd": "minnp.numpy",
    "no_grad": "np.stop_gradient(x), which cuts a gradient; outside grad nothing is recorded",
    "optim": "minnp.nn.optim",
    "pmap": "minnp.distributed",
    "random": "minnp.numpy.random",
    "save": "np.save of minnp.numpy, and net.save(prefix) of a model",
    "scan": "Python's `for`, which jit compiles",
    "sym": "minnp.symbol",
    "tensor": "np.array of minnp.numpy",
    "tree_util": "nothing: nested tuples, lists, dicts and dataclasses are trees by themselves",
    "waitall": "x.wait_to_read()",
    "while_loop": "Python's `while`, which jit compiles",
}
_MODULES = ("distributed", "errors", "fx", "kvstore", "nn", "npx", "scipy", "symbol", "testing", "utils")


if not TYPE_CHECKING:  # which know every name from above

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name not in _LATE:
            known = f"np.{name} of minnp.numpy" if name in numpy.__all__ else None
            meant = _ELSEWHERE.get(name, known)
            instead = f"; here it is {meant}" if meant else ""
            raise AttributeError(
                f"module 'minnp' has no attribute {name!r}{instead}", name=name, obj=sys.modules[__name__]
            )
        return getattr(importlib.import_module(_LATE[name], __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "compile", "numpy", *_MODULES]  # `from minnp import *` leaves Python's own compile alone


LATE["scipy.special"] = "minnp.scipy.special"

__version__ = "0.1.0"
__all__ = [
    "AutoBlacklistPolicy",
    "Context",
    "Function",
    "OnlyMXNetPolicy",
    "OnlyNumPyPolicy",
    "PreferMXNetPolicy",
    "Variable",
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
    "load_mxnet",
    "make_ggnvp",
    "memory_reuse",
    "num_threads",
    "policy",
    "prange",
    "report",
    "reset_report",
    "set_backend",
    "set_compile_budget",
    "set_context",
    "set_global_policy",
    "set_gradient_budget",
    "set_num_threads",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    "wrap_policy",
]

if os.environ.get("MINNP_COMPILER", "") not in ("", "none"):
    raise ValueError(f"MINNP_COMPILER={os.environ['MINNP_COMPILER']!r}: it is none, or not set")
if "MINNP_BACKEND" in os.environ:
    set_backend(os.environ["MINNP_BACKEND"])
