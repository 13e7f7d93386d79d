"""MXNet's symbol tutorial: a net is composed, asked for arguments and shapes, saved, grouped, run as a function."""

import minnp.numpy as np  # first: MXNet needs its help beside today's NumPy
import mxnet as mx
from minnp import Function, grad

a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
add = Function(a + b, input_shapes={"a": (2, 3), "b": (2, 3)})
print(add(a=np.ones((2, 3)), b=np.full((2, 3), 2.0))[0].tolist())

net = mx.sym.Variable("data")
net = mx.sym.FullyConnected(data=net, name="fc1", num_hidden=128)
net = mx.sym.Activation(data=net, name="relu1", act_type="relu")
net = mx.sym.FullyConnected(data=net, name="fc2", num_hidden=10)
net = mx.sym.SoftmaxOutput(data=net, name="out")
print(net.list_arguments())
print(net.infer_shape(data=(4, 20))[1])
assert mx.sym.load_json(net.tojson()).list_arguments() == net.list_arguments()

inner = net.get_internals()["fc2_output"]
f = Function(inner, input_shapes={"data": (4, 20)})
rng = np.random.default_rng(0)
params = {name: rng.normal(0, 0.1, value["shape"]) for name, value in f.get_params().items()}
x = rng.normal(size=(4, 20))
by_hand = np.maximum(x @ params["fc1_weight"].T + params["fc1_bias"], 0) @ params["fc2_weight"].T + params["fc2_bias"]
print(np.allclose(f(data=x, **params), by_hand, atol=1e-5))

slopes = grad(lambda p: np.sum(f(data=x, **p) ** 2))(params)
print({name: slope.shape for name, slope in slopes.items()})
print(np.allclose(slopes["fc2_bias"], 2 * by_hand.sum(axis=0), atol=1e-4))

group = Function(mx.sym.Group([mx.sym.exp(a), mx.sym.sqrt(b)]), input_shapes={"a": (2,), "b": (2,)})
first, second = group(a=np.zeros(2), b=np.full(2, 4.0))
print(first.tolist(), second.tolist())
