"""MinPy's announcement (2017): an MXNet symbol among NumPy code. minnp first: it lets MXNet be imported."""

import minnp.numpy as np
import mxnet as mx
from minnp.core import Function, grad

net = mx.sym.Variable("x")
net = mx.sym.Convolution(net, name="conv", kernel=(3, 3), num_filter=32, no_bias=True)
conv = Function(net, input_shapes={"x": (8, 3, 10, 10)})

images, kernels = np.zeros((8, 3, 10, 10)), np.ones((32, 3, 3, 3))
y = np.exp(conv(x=images, conv_weight=kernels))
print(y.shape, float(y.max()))
slope = grad(lambda w: np.sum(np.exp(conv(x=images + 0.01, conv_weight=w))))(kernels)
print(slope.shape, round(float(slope[0, 0, 0, 0]), 4))
