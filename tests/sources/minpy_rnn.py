"""MinPy's tutorials: a recurrent net, step by step in a Python loop, that adds the numbers which a mask marks."""

import minnp.numpy as np
from minnp.nn import layers
from minnp.nn.io import NDArrayIter
from minnp.nn.model import ModelBase
from minnp.nn.solver import Solver

batch, hidden, length = 50, 16, 5


class RNNNet(ModelBase):
    def __init__(self):
        super().__init__()
        self.add_param(name="h0", shape=(batch, hidden)).add_param(name="Wx", shape=(2, hidden))
        self.add_param(name="Wh", shape=(hidden, hidden)).add_param(name="b", shape=(hidden,))
        self.add_param(name="Wa", shape=(hidden, 1)).add_param(name="ba", shape=(1,))

    def forward(self, X, mode):
        h = self.params["h0"]
        for t in range(X.shape[1]):
            h = layers.rnn_step(X[:, t, :], h, self.params["Wx"], self.params["Wh"], self.params["b"])
        return layers.affine(h, self.params["Wa"], self.params["ba"])

    def loss(self, predict, y):
        return layers.l2_loss(predict, y)


np.random.seed(0)
numbers, marks = np.random.rand(200, length), np.zeros((200, length))
for row in marks:
    row[np.random.choice(length, 2, replace=False)] = 1
data = NDArrayIter(np.stack([numbers, marks], axis=2), (numbers * marks).sum(axis=1), batch_size=batch, shuffle=True)
solver = Solver(
    RNNNet(),
    data,
    data,
    num_epochs=60,
    init_rule="xavier",
    update_rule="adam",
    optim_config={"learning_rate": 0.01},
    verbose=False,
)
solver.init()
solver.train()
print("falls below a tenth:", solver.loss_history[-1] < solver.loss_history[0] / 10)
