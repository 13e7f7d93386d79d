"""Programs as graphs: trace, look at, rewrite, run. The names are torch.fx's.

from minnp import fx
gm = fx.symbolic_trace(f)
print(gm.code)
"""

from minnp.core.graph import Graph
from minnp.core.interpreter import Interpreter
from minnp.core.node import Node
from minnp.core.passes import (
    Observer,
    bytes_moved,
    calibrate,
    common_subexpressions,
    convert,
    cost,
    dead_code,
    draw,
    flops,
    fold_constants,
    fold_convolutions,
    fuse_elementwise,
    memory,
    observe,
    plan_buffers,
    propagate_shapes,
    quantize,
    simplify,
)
from minnp.core.primitive import Meta
from minnp.core.proxy import Proxy

from .capturing import capture
from .graph_module import GraphModule
from .mxnet import from_mxnet, to_mxnet
from .rewriting import Match, replace_pattern
from .splitting import split_module
from .tracer import Tracer, symbolic_trace, wrap
from .transformer import Transformer

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Meta",
    "Node",
    "Observer",
    "Proxy",
    "Tracer",
    "Transformer",
    "bytes_moved",
    "calibrate",
    "capture",
    "common_subexpressions",
    "convert",
    "cost",
    "dead_code",
    "draw",
    "flops",
    "fold_constants",
    "fold_convolutions",
    "from_mxnet",
    "fuse_elementwise",
    "memory",
    "observe",
    "plan_buffers",
    "propagate_shapes",
    "quantize",
    "replace_pattern",
    "simplify",
    "split_module",
    "symbolic_trace",
    "to_mxnet",
    "wrap",
]
