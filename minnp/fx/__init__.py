"""Programs as graphs: trace, look at, rewrite, run. The names are torch.fx's.

from minnp import fx
gm = fx.symbolic_trace(f)
print(gm.code)
"""

from minnp.core.graph import Graph
from minnp.core.interpreter import Interpreter
from minnp.core.node import Node
from minnp.core.proxy import Proxy

from .capturing import capture
from .graph_module import GraphModule
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
    "capture",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
