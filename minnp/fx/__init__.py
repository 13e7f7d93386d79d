"""Programs as graphs: trace, look at, rewrite, run. The names are torch.fx's.

from minnp import fx
gm = fx.symbolic_trace(f)
print(gm.code)
"""

from minnp.core.graph import Graph
from minnp.core.interpreter import Interpreter
from minnp.core.node import Node
from minnp.core.passes import (
    bytes_moved,
    common_subexpressions,
    cost,
    dead_code,
    draw,
    flops,
    fold_convolutions,
    fuse_elementwise,
    memory,
    plan_buffers,
)
from minnp.core.proxy import Proxy

from .capturing import capture
from .graph_module import GraphModule
from .mxnet import from_mxnet, to_mxnet
from .rewriting import Match, replace_pattern
from .tracer import Tracer, symbolic_trace, wrap
from .transformer import Transformer

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "bytes_moved",
    "capture",
    "common_subexpressions",
    "cost",
    "dead_code",
    "draw",
    "flops",
    "fold_convolutions",
    "from_mxnet",
    "fuse_elementwise",
    "memory",
    "plan_buffers",
    "replace_pattern",
    "symbolic_trace",
    "to_mxnet",
    "wrap",
]
