"""The torch.fx article, 6.4: the part of a program that another engine supports is split off and compiled by it."""

import minnp.numpy as np
from minnp import fx, jit, nn, npx


class Net(nn.ModelBase):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        h = npx.relu(self.first(x))
        h = np.sort(h, axis=1)  # what the engine does not support
        return np.tanh(self.last(h))


net = Net().init(seed=0)
gm = fx.symbolic_trace(net)
supported = lambda n: n.target is not np.sort
split = fx.split_module(gm, supported)
print([(n.op, str(n.target)) for n in split.graph.nodes if n.op == "call_module"])
for name, module in list(split.named_children()):
    if all(supported(n) for n in module.graph.nodes):
        setattr(split, name, jit(module))
x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
print(np.allclose(split(x), net(x), atol=1e-6), np.allclose(split(x), net(x), atol=1e-6))
