# %% [markdown]
# # An MXNet symbol inside a NumPy program
#
# The first tutorial, `two_layer_net.py`, was NumPy from end to end. Here the convolutions are a *symbol*, a graph that
# MXNet binds once for each shape and runs as a whole. `Function` makes it one differentiable call between ordinary
# NumPy lines: gradients flow in at its outputs, and out at its inputs and weights.
#
#     python tutorials/convnet_symbol.py                     # needs MXNet: pip install mxnet==1.9.1

# %%
import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
from tqdm import tqdm
from two_layer_net import draw, load_data

import minnp
import minnp.numpy as np
from minnp.core import Function, grad_and_loss

FILTERS = (32, 64)
EPOCHS = 15
BATCH = 50
LEARNING_RATE, DECAY, MOMENTUM = 0.1, 0.9, 0.9
WEIGHT_DECAY = 1e-3

# %% [markdown]
# ## The symbol
#
# Images [N, 1, 8, 8] become features [N, 64, 2, 2]: twice convolution, ReLU, and pooling to half the size.


# %%
def convolutions():
    import mxnet as mx  # after minnp, which makes this import work beside today's NumPy

    net = mx.sym.Variable("x")
    for i, filters in enumerate(FILTERS):
        net = mx.sym.Convolution(net, name=f"conv{i}", kernel=(3, 3), pad=(1, 1), num_filter=filters)
        net = mx.sym.Activation(net, act_type="relu")
        net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2))
    return Function(net, input_shapes={"x": (BATCH, 1, 8, 8)}, name="convolutions")


# %% [markdown]
# ## The parameters
#
# The symbol knows the shapes of its own parameters. The last layer is ours.


# %%
def init_params(features):
    """Weights by name, scaled for ReLU (He et al. 2015); biases 0."""
    shapes = {name: config["shape"] for name, config in features.get_params().items()}
    inputs = int(np.prod(features.get_one_output_shape()[1:]))
    shapes |= {"out_weight": (10, inputs), "out_bias": (10,)}
    params = {}
    for name, shape in shapes.items():
        scale = np.sqrt(2 / np.prod(shape[1:])) if name.endswith("weight") else 0
        params[name] = (scale * np.random.randn(*shape)).astype(np.float32)
    return params


# %% [markdown]
# ## The net and its loss
#
# A call of the symbol, then NumPy.


# %%
def scores(features, params, x):
    """Class scores [N, 10] of images x [N, 64]."""
    conv = {name: p for name, p in params.items() if name.startswith("conv")}
    hidden = features(x=x.reshape(-1, 1, 8, 8), **conv)
    return hidden.reshape(len(x), -1) @ params["out_weight"].T + params["out_bias"]


def softmax_loss(params, features, x, y):
    """Mean cross-entropy of the true classes y [N], plus the weight decay term."""
    s = scores(features, params, x)
    s = s - s.max(axis=1, keepdims=True)
    log_p = s - np.log(np.sum(np.exp(s), axis=1, keepdims=True))
    decay = sum(np.sum(p * p) for name, p in params.items() if name.endswith("weight"))
    return -np.mean(log_p[np.arange(len(y)), y]) + 0.5 * WEIGHT_DECAY * decay


def accuracy(features, params, x, y):
    return float(np.mean(np.argmax(scores(features, params, x), axis=1) == y))


# %% [markdown]
# ## The training
#
# The parameters are a dictionary, and so is the gradient.


# %%
def train(features, params, train_set, val_set):
    """Train in place; returns the loss of every step and the (train, validation) accuracy of every epoch."""
    x, y = train_set
    step = grad_and_loss(softmax_loss)
    velocity = {name: np.zeros_like(p) for name, p in params.items()}
    losses, accuracies = [], []
    rate = LEARNING_RATE
    bar = tqdm(range(EPOCHS), unit="epoch")
    for _ in bar:
        order = np.random.permutation(len(y))
        for start in range(0, len(y), BATCH):
            batch = order[start : start + BATCH]
            grads, loss = step(params, features, x[batch], y[batch])
            for name, dw in grads.items():
                velocity[name] *= MOMENTUM
                velocity[name] -= rate * dw
                params[name] += velocity[name]
            losses.append(float(loss))
        rate *= DECAY
        accuracies.append((accuracy(features, params, x, y), accuracy(features, params, *val_set)))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", validation=f"{accuracies[-1][1]:.3f}")
    return losses, accuracies


# %%
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A convolutional net around an MXNet symbol.")
    parser.add_argument("--picture", type=Path, help="where the curves go (default: beside this script)")
    options = parser.parse_args(None if "__file__" in globals() else [])  # a notebook has no arguments

    np.random.seed(0)
    train_set, val_set, test_set = load_data()
    features = convolutions()
    params = init_params(features)
    began = time.perf_counter()
    losses, accuracies = train(features, params, train_set, val_set)
    seconds = time.perf_counter() - began

    figure = draw(losses, accuracies)
    if "__file__" in globals():
        picture = options.picture or Path(__file__).with_suffix(".png")
        figure.savefig(picture, dpi=120)
        print(f"curves: {picture}")
    test_accuracy = accuracy(features, params, *test_set)
    print(f"test accuracy {test_accuracy:.1%} on {len(test_set[1])} images after {seconds:.1f} s")
    plt.show()

# %% [markdown]
# `minnp.report()` has a row for each function. The symbol ran on MXNet, everything else on NumPy.

# %%
if __name__ == "__main__":
    for row in minnp.report():
        print(f"{row['function']:25} {row['backend']:6} {row['calls']:5} calls")
