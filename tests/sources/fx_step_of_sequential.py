"""The torch.fx article, third figure: a traced function is a layer like any other; a tracer of one's own."""

import math

import minnp.numpy as np
from minnp import fx, grad, nn, npx


def my_func(x):
    return np.negative(npx.relu(x))


traced = fx.symbolic_trace(my_func)


class SampleModule(nn.ModelBase):
    def __init__(self, act):
        super().__init__()
        self.act = act

    def forward(self, x):
        return self.act(x + math.pi)


sm = SampleModule(traced)
print(np.allclose(sm(np.array([-4.0, 1.0])), [0.0, -1.0 - math.pi]))
again = fx.symbolic_trace(sm)
print([n.op for n in again.graph.nodes])


class MyTracer(fx.Tracer):
    def is_leaf_module(self, module, name):
        return module is traced or super().is_leaf_module(module, name)


whole = fx.GraphModule(sm, MyTracer().trace(sm))
print([(n.op, str(n.target)) for n in whole.graph.nodes if n.op == "call_module"])
print(np.allclose(whole(np.array([-4.0, 1.0])), sm(np.array([-4.0, 1.0]))))

net = nn.Sequential(nn.Linear(4, 3), traced, nn.Linear(3, 2)).init(seed=0)
x = np.random.default_rng(0).standard_normal((5, 4))
by_hand = my_func(x @ net.tree()["0.w"] + net.tree()["0.b"]) @ net.tree()["2.w"] + net.tree()["2.b"]
print(np.allclose(net(x), by_hand, atol=1e-5))
print(net(x, mode="train").shape, grad(lambda x: np.sum(net(x)))(x).shape)

deep = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm(16), traced, nn.Dropout(0.1), nn.Linear(16, 2)).init(seed=0)
rng = np.random.default_rng(1)
x = rng.standard_normal((200, 4)).astype(np.float32)
y = (x[:, 0] > x[:, 1]).astype(int)
trained = fx.symbolic_trace(deep)
trained.fit(x, y, epochs=20, learning_rate=0.02, verbose=False)
print("accuracy above 0.9:", trained.evaluate(x, y)["accuracy"] > 0.9)
