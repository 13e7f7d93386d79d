"""The torch.fx article, 6.3 and its drawing: a net is cut into stages for a pipeline, and drawn as a graph."""

import importlib.util

import minnp.numpy as np
from minnp import fx, nn

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).init(seed=0)
gm = fx.symbolic_trace(net)
stage = {"0": 0, "1": 0, "2": 1, "3": 1, "4": 1}
staged = fx.split_module(gm, net, lambda n: stage[str(n.target)])
print([(n.op, str(n.target)) for n in staged.graph.nodes])
x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
print(np.array_equal(staged(x), net(x)))
first, second = (staged.get_submodule(f"submod_{k}") for k in (0, 1))
print(np.array_equal(second(first(x)), net(x)))

if importlib.util.find_spec("graphviz"):
    fx.propagate_shapes(gm, x)
    dot = fx.draw(gm.graph, format="dot").decode()
    assert all(n.name in dot for n in gm.graph.nodes)
