"""Contexts under MinPy's path: `from minnp.context import cpu, gpu, current_context, set_context`."""

from .core.arrays.devices import Context, cpu, current_context, gpu, set_context

__all__ = ["Context", "cpu", "current_context", "gpu", "set_context"]
