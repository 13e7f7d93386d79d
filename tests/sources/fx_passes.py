"""The torch.fx documentation: a Transformer, an Interpreter that measures, operations on proxies, a branch on data."""

import time

import minnp.numpy as np
from minnp import fx, npx


def transform(m, tracer_class=fx.Tracer):
    graph = tracer_class().trace(m)
    for node in graph.nodes:
        if node.op == "call_function" and node.target is np.add:
            node.target = np.multiply
    graph.lint()
    return fx.GraphModule(m, graph)


print(transform(lambda x, y: np.add(x, y))(np.array(3.0), np.array(4.0)))


def decompose_relu(x):
    return (x > 0) * x


def decompose(function):
    graph, env = fx.Graph(), {}
    tracer = fx.GraphAppendingTracer(graph)
    for node in fx.symbolic_trace(function).graph.nodes:
        if node.op == "call_function" and node.target is npx.relu:
            args = [fx.Proxy(env[a], tracer) if isinstance(a, fx.Node) else a for a in node.args]
            env[node] = decompose_relu(*args).node
        else:
            env[node] = graph.node_copy(node, lambda n: env[n])
    return fx.GraphModule({}, graph)


x = np.array([-1.0, 0.5, 2.0])
lowered = decompose(lambda x: npx.relu(x) + 1)
print([n.name for n in lowered.graph.nodes], lowered(x))


class Profiler(fx.Interpreter):
    def __init__(self, module):
        super().__init__(module)
        self.seconds = {}

    def run_node(self, n):
        start = time.perf_counter()
        result = super().run_node(n)
        self.seconds[n.name] = time.perf_counter() - start
        return result


profiler = Profiler(fx.symbolic_trace(lambda x: np.tanh(x) @ x))
profiler.run(x)
print(sorted(profiler.seconds), all(s >= 0 for s in profiler.seconds.values()))


class NegSigmSwap(fx.Transformer):
    def call_function(self, target, args, kwargs):
        if target is npx.sigmoid:
            return np.negative(*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        if target == "__neg__":
            return npx.sigmoid(args[0])
        return super().call_method(target, args, kwargs)


print(np.allclose(NegSigmSwap(fx.symbolic_trace(lambda x: npx.sigmoid(x) * 2)).transform()(x), -2 * x))

try:
    fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
except RuntimeError as error:
    print("fx_passes.py" in str(error), "np.where" in str(error))
