"""The torch.fx article (arXiv 2112.08429), first figure: capture a function, print its nodes and its code."""

import minnp.numpy as np
from minnp import fx, npx


def my_func(x):
    return np.negative(npx.relu(x))


traced: fx.GraphModule = fx.symbolic_trace(my_func)
for n in traced.graph.nodes:
    print(f"{n.name} = {n.op} target={getattr(n.target, '__name__', n.target)} args={n.args}")
print(traced.code)
print(traced(np.array([-1.0, 2.0])))


def with_method(x):
    return x.clip(0, None).sum(axis=0)


print([(n.op, n.target) for n in fx.symbolic_trace(with_method).graph.nodes if n.op == "call_method"])
