"""MinPy's tutorials: a net of two layers as a subclass of ModelBase, trained by a Solver on an NDArrayIter."""

import minnp.numpy as np
from minnp.nn import layers
from minnp.nn.io import NDArrayIter
from minnp.nn.model import ModelBase
from minnp.nn.solver import Solver

batch_size, inputs, hidden, classes = 32, 4 * 8 * 8, 32, 3


class TwoLayerNet(ModelBase):
    def __init__(self):
        super().__init__()
        self.add_param(name="w1", shape=(inputs, hidden)).add_param(name="b1", shape=(hidden,))
        self.add_param(name="w2", shape=(hidden, classes)).add_param(name="b2", shape=(classes,))

    def forward(self, X, mode):
        X = np.reshape(X, (X.shape[0], inputs))
        y1 = layers.affine(X, self.params["w1"], self.params["b1"])
        y2 = layers.relu(y1)
        return layers.affine(y2, self.params["w2"], self.params["b2"])

    def loss(self, predict, y):
        return layers.softmax_loss(predict, y)


np.random.seed(0)
centres = np.random.randn(classes, 4, 8, 8)
y_train = np.arange(192) % classes
X_train = centres[y_train] + np.random.randn(192, 4, 8, 8)
train = NDArrayIter(X_train, y_train, batch_size, shuffle=True)
test = NDArrayIter(X_train, y_train, batch_size, shuffle=False)

solver = Solver(
    TwoLayerNet(),
    train,
    test,
    num_epochs=3,
    init_rule="gaussian",
    init_config={"stdvar": 0.01},
    update_rule="sgd_momentum",
    optim_config={"learning_rate": 1e-2, "momentum": 0.9},
    verbose=True,
    print_every=100,
)
solver.init()
solver.train()
print("accuracy above 0.9:", solver.check_accuracy(test) > 0.9)
