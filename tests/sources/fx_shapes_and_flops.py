"""The torch.fx article, its analyses: a pass node by node that keeps shapes, and one that counts operations."""

import minnp.numpy as np
from minnp import fx, nn


class ShapeProp(fx.Interpreter):
    def run_node(self, n):
        result = super().run_node(n)
        if hasattr(result, "shape"):
            n.shape, n.dtype = result.shape, result.dtype
        return result


net = nn.Sequential(nn.Conv2D(3, 8, 3, pad="same"), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 8 * 8, 10)).init(seed=0)
gm = fx.symbolic_trace(net)
x = np.zeros((2, 3, 8, 8), np.float32)
try:
    fx.flops(gm)
except ValueError as error:
    print("propagate_shapes" in str(error))
ShapeProp(gm).run(x)
print([n.shape for n in gm.graph.nodes if n.op != "output"])

print(fx.flops(gm, x))
print({n.name: fx.cost(n).flops for n in gm.graph.nodes if n.op == "call_module"})
print(fx.flops(gm.graph) == fx.flops(gm, x), fx.memory(gm.graph).peak)
