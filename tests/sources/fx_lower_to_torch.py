"""The torch.fx article, 6.4: one submodule of a net runs on another engine, here PyTorch's; needs torch."""

import minnp.numpy as np
import torch
from minnp import Function, fx, grad, jit, nn

net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).init(seed=0)
split = fx.split_module(fx.symbolic_trace(net), lambda n: str(n.target) == "2")
name, last = list(split.named_children())[-1]
setattr(split, name, jit(last, compiler="torch"))
x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
print(np.allclose(split(x), net(x), atol=1e-6), np.allclose(split(x), net(x), atol=1e-6))

engine = torch.nn.Linear(16, 4)
with torch.no_grad():
    engine.weight.copy_(torch.tensor(np.asarray(net.tree()["2.w"]).tolist()).T)
    engine.bias.copy_(torch.tensor(np.asarray(net.tree()["2.b"]).tolist()))
whole = Function(engine, input_shapes={"input": (3, 16)})
mixed = lambda x: whole(input=np.tanh(x @ net.tree()["0.w"] + net.tree()["0.b"]))
print(np.allclose(mixed(x), net(x), atol=1e-5))
print(np.allclose(grad(lambda x: mixed(x).sum())(x), grad(lambda x: net(x).sum())(x), atol=1e-5))
