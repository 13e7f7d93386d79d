"""Passes: graph -> graph, or module -> module. Each is a function in a file of its own.

May import: loops, llvm, graph, api, transforms, arrays, rows, cpu, compiled.
"""

from __future__ import annotations

from ..graph.graph import Graph
from .common import common_subexpressions
from .constants import fold_constants
from .cost import bytes_moved, cost, flops
from .dead import dead_code
from .drawing import draw
from .folding import fold_convolutions
from .fusion import fuse_elementwise
from .memory import memory, plan_buffers
from .modules import on_modules
from .quantization import Observer, calibrate, convert, observe, quantize
from .shapes import propagate_shapes
from .simplification import simplify

__all__ = [
    "Observer",
    "bytes_moved",
    "calibrate",
    "common_subexpressions",
    "convert",
    "cost",
    "dead_code",
    "draw",
    "flops",
    "fold_constants",
    "fold_convolutions",
    "fuse_elementwise",
    "memory",
    "observe",
    "optimize",
    "plan_buffers",
    "propagate_shapes",
    "quantize",
    "simplify",
]


@on_modules
def optimize(graph: Graph) -> Graph:
    """The passes jit runs before it compiles: results are the same to the bit.

    graph   is changed, and given back

    >>> graph = fx.capture(lambda x: np.exp(x) + np.exp(x), np.ones(3)).graph
    >>> len(graph), len(fx.optimize(graph))
    (5, 4)
    """
    return simplify(common_subexpressions(fold_constants(dead_code(graph))))
