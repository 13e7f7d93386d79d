"""Passes: graph -> graph. Each is a function in a file of its own."""

from __future__ import annotations

from ..graph import Graph
from .common import common_subexpressions
from .cost import flops
from .dead import dead_code
from .fusion import fuse_elementwise

__all__ = ["common_subexpressions", "dead_code", "flops", "fuse_elementwise", "optimize"]


def optimize(graph: Graph) -> Graph:
    """The passes jit runs before it compiles: results are the same to the bit."""
    return dead_code(common_subexpressions(dead_code(graph)))
