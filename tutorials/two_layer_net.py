# %% [markdown]
# # A two-layer net on handwritten digits
#
# The first tutorial, and minnp's main job: the net of Stanford's CS231n, written the way the course writes it, in plain
# NumPy. Two lines differ from a NumPy program: the import below, and `grad_and_loss`, which takes the place of a page
# of backward code that was derived by hand.
#
#     python tutorials/two_layer_net.py                      # NumPy's kernels
#     python tutorials/two_layer_net.py --backend mxnet      # MXNet's kernels where they are verified, NumPy elsewhere

# %%
import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from tqdm import tqdm

import minnp
import minnp.numpy as np
from minnp.core import grad_and_loss

HIDDEN = 200
EPOCHS = 60
BATCH = 50
LEARNING_RATE, DECAY = 0.5, 0.97
WEIGHT_DECAY = 3e-4
NOISE = 0.2

# %% [markdown]
# ## The data
#
# scikit-learn carries 1,797 images of 8 x 8 pixels, 0 to 16. A third of them is kept out of training: 200 to watch the
# progress on, 397 to be judged by at the very end.


# %%
def load_data():
    digits = load_digits()
    order = np.random.permutation(len(digits.target))
    x = (digits.data[order] / 16).astype(np.float32)
    y = digits.target[order]
    x -= x[:1200].mean(axis=0)
    return (x[:1200], y[:1200]), (x[1200:1400], y[1200:1400]), (x[1400:], y[1400:])


# %% [markdown]
# ## The net
#
# Functions of arrays, nothing else: no layers to declare, no graph to build.


# %%
def init_params():
    """Weights for 64 pixels -> HIDDEN -> 10 classes, scaled for ReLU (He et al. 2015)."""
    w1 = np.random.randn(64, HIDDEN) * np.sqrt(2 / 64)
    w2 = np.random.randn(HIDDEN, 10) * np.sqrt(2 / HIDDEN)
    return [p.astype(np.float32) for p in (w1, np.zeros(HIDDEN), w2, np.zeros(10))]


def scores(x, w1, b1, w2, b2):
    """Class scores [N, 10] of images x [N, 64]."""
    hidden = np.maximum(x @ w1 + b1, 0)
    return hidden @ w2 + b2


def softmax_loss(x, y, w1, b1, w2, b2):
    """Mean cross-entropy of the true classes y [N], plus the weight decay term."""
    s = scores(x, w1, b1, w2, b2)
    s = s - s.max(axis=1, keepdims=True)
    log_p = s - np.log(np.sum(np.exp(s), axis=1, keepdims=True))
    data_loss = -np.mean(log_p[np.arange(len(y)), y])
    return data_loss + 0.5 * WEIGHT_DECAY * (np.sum(w1 * w1) + np.sum(w2 * w2))


def accuracy(x, y, params):
    return float(np.mean(np.argmax(scores(x, *params), axis=1) == y))


# %% [markdown]
# ## The training
#
# `grad_and_loss` gives the gradients for arguments 2 to 5, the parameters, and the loss itself. The update `w -= ...`
# writes into the array, as in NumPy: whoever else holds it sees the new weights.


# %%
def train(params, train_set, val_set):
    """Train in place; returns the loss of every step and the (train, validation) accuracy of every epoch."""
    x, y = train_set
    step = grad_and_loss(softmax_loss, argnum=range(2, 6))
    losses, accuracies = [], []
    rate = LEARNING_RATE
    bar = tqdm(range(EPOCHS), unit="epoch")
    for _ in bar:
        order = np.random.permutation(len(y))
        for start in range(0, len(y), BATCH):
            batch = order[start : start + BATCH]
            noisy = x[batch] + NOISE * np.random.randn(len(batch), 64).astype(np.float32)
            grads, loss = step(noisy, y[batch], *params)
            for w, dw in zip(params, grads, strict=True):
                w -= rate * dw
            losses.append(float(loss))
        rate *= DECAY
        accuracies.append((accuracy(x, y, params), accuracy(*val_set, params)))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", validation=f"{accuracies[-1][1]:.3f}")
    return losses, accuracies


# %% [markdown]
# ## The job
#
# `set_backend` is the only line that knows where the arithmetic runs. The report at the end shows which function ran
# where.


# %%
def draw(losses, accuracies):
    """The loss of each step and the accuracies of each epoch, as a figure."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(losses, linewidth=0.6)
    left.set(title="Loss: cross-entropy and weight decay", xlabel="step", yscale="log")
    for curve, name in zip(zip(*accuracies, strict=True), ("training", "validation"), strict=True):
        right.plot(range(1, len(curve) + 1), curve, label=name)
    right.set(title="Accuracy", xlabel="epoch", ylim=(0.88, 1.005))
    right.legend(loc="lower right")
    return figure


if __name__ == "__main__":  # the second tutorial imports the functions above
    parser = argparse.ArgumentParser(description="A two-layer net on handwritten digits.")
    parser.add_argument("--backend", choices=["numpy", "mxnet"], default="numpy")
    parser.add_argument("--picture", type=Path, help="where the curves go (default: beside this script)")
    options = parser.parse_args(None if "__file__" in globals() else [])  # a notebook has no arguments

    minnp.set_backend(options.backend)
    np.random.seed(0)
    train_set, val_set, test_set = load_data()
    params = init_params()
    began = time.perf_counter()
    losses, accuracies = train(params, train_set, val_set)
    seconds = time.perf_counter() - began

    figure = draw(losses, accuracies)
    if "__file__" in globals():
        picture = options.picture or Path(__file__).with_name(f"two_layer_net_{options.backend}.png")
        figure.savefig(picture, dpi=120)
        print(f"curves: {picture}")
    print(minnp.report())
    test_accuracy = accuracy(*test_set, params)
    print(f"test accuracy {test_accuracy:.1%} on {len(test_set[1])} images after {seconds:.1f} s on {options.backend}")

# %% [markdown]
# ## What it learned
#
# Each hidden unit has a weight for each pixel. These are the weights of the first forty, and the test images that the
# net gets wrong, with what it takes them for.

# %%
if __name__ == "__main__":
    weights = params[0].T[:40].reshape(4, 10, 8, 8).swapaxes(1, 2).reshape(32, 80)
    guesses = np.argmax(scores(test_set[0], *params), axis=1)
    wrong = np.flatnonzero(guesses != test_set[1])[:8]

    figure = plt.figure(figsize=(9, 3.4), layout="constrained")
    rows = figure.add_gridspec(2, 8, height_ratios=(2, 1))
    axis = figure.add_subplot(rows[0, :])
    axis.imshow(weights, cmap="RdBu")
    axis.axis("off")
    for place, i in enumerate(wrong):
        axis = figure.add_subplot(rows[1, place])
        axis.imshow(test_set[0][i].reshape(8, 8), cmap="gray_r")
        axis.set_title(f"{test_set[1][i]}, not {guesses[i]}", fontsize=9)
        axis.axis("off")
    plt.show()
