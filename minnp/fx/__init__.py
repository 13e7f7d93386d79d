"""Programs as graphs: trace, look at, rewrite, run. The names are torch.fx's.

>>> program = fx.symbolic_trace(f)
>>> print(program.code)
"""

from minnp.core.graph.graph import Graph
from minnp.core.graph.interpreter import Interpreter
from minnp.core.graph.node import Node
from minnp.core.graph.node import map_nodes as map_arg
from minnp.core.graph.proxy import Proxy
from minnp.core.graph.symbolic import GraphAppendingTracer
from minnp.core.passes import *  # every pass but jit's own, under its own name
from minnp.core.passes import __all__ as _passes
from minnp.core.rows.primitive import Meta

from .capturing import capture
from .graph_module import GraphModule
from .inputs import PH
from .lowering import lower
from .mxnet import from_mxnet, to_mxnet
from .onnx import to_onnx
from .rewriting import Match, replace_pattern
from .splitting import split_module
from .tracer import Tracer, symbolic_trace, wrap
from .transformer import Transformer
from .variables import Variable, compile

__all__ = [
    "PH",
    "Graph",
    "GraphAppendingTracer",
    "GraphModule",
    "Interpreter",
    "Match",
    "Meta",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "Variable",
    "capture",
    "compile",
    "from_mxnet",
    "lower",
    "map_arg",
    "replace_pattern",
    "split_module",
    "symbolic_trace",
    "to_mxnet",
    "to_onnx",
    "wrap",
    *_passes,
]
