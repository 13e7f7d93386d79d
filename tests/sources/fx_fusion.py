"""The torch.fx article, 6.2: batch norm is folded into the convolution before it, in a trained net."""

import copy

import minnp.numpy as np
from minnp import fx, nn

rng = np.random.default_rng(0)
net = nn.Sequential(
    *(nn.Conv2D(3, 8, 3, pad="same"), nn.BatchNorm(8), nn.ReLU()),
    *(nn.Conv2D(8, 4, 3, pad="same"), nn.BatchNorm(4)),
).init(seed=0)
x = rng.standard_normal((4, 3, 8, 8)).astype(np.float32)
for _ in range(3):
    net(x, mode="train")  # moving averages other than 0 and 1

traced = fx.capture(lambda x: net(x, mode="test"), x)
fused = fx.fold_convolutions(copy.deepcopy(traced))
names = lambda gm: [n.name for n in gm.graph.nodes if n.op == "call_function"]
print(len(names(fused)) < len(names(traced)), not any("norm" in name for name in names(fused)))
print(names(fused))
print(np.allclose(fused(x), net(x, mode="test"), atol=1e-4))
