"""MinPy's tutorials: a net whose first half is an MXNet symbol. minnp first: it lets MXNet be imported."""

import minnp.numpy as np
import mxnet as mx
from minnp import core
from minnp.nn import layers
from minnp.nn.io import NDArrayIter
from minnp.nn.model import ModelBase
from minnp.nn.solver import Solver

batch_size, image, hidden, classes = 16, (3, 8, 8), 16, 2


class ConvolutionNet(ModelBase):
    def __init__(self):
        super().__init__()
        net = mx.sym.Variable(name="X")
        net = mx.sym.Convolution(data=net, name="conv", kernel=(3, 3), num_filter=8)
        net = mx.sym.Activation(data=net, act_type="relu")
        net = mx.sym.Pooling(data=net, name="pool", pool_type="max", kernel=(2, 2), stride=(2, 2))
        net = mx.sym.Flatten(data=net)
        self.conv = core.Function(net, input_shapes={"X": (batch_size, *image)}, name="conv")
        self.add_params(self.conv.get_params())
        size = self.conv.get_one_output_shape()
        self.add_param(name="w1", shape=(size[1], hidden)).add_param(name="b1", shape=(hidden,))
        self.add_param(name="w2", shape=(hidden, classes)).add_param(name="b2", shape=(classes,))

    def forward(self, X, mode):
        out = self.conv(X=X, **self.params)
        out = layers.relu(layers.affine(out, self.params["w1"], self.params["b1"]))
        return layers.affine(out, self.params["w2"], self.params["b2"])

    def loss(self, predict, y):
        return layers.softmax_loss(predict, y)


np.random.seed(0)
y = np.arange(64) % classes
x = np.random.randn(64, *image) + 2.0 * y[:, None, None, None]
data = NDArrayIter(x, y, batch_size, shuffle=True)
solver = Solver(
    ConvolutionNet(),
    data,
    data,
    num_epochs=4,
    init_rule="xavier",
    update_rule="sgd_momentum",
    optim_config={"learning_rate": 1e-2, "momentum": 0.9},
    verbose=False,
)
solver.init()
solver.train()
print(sorted(solver.model.params))
print("accuracy above 0.9:", solver.check_accuracy(data) > 0.9)
