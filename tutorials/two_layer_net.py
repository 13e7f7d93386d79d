"""Two-layer net on handwritten digits: the first tutorial, and minnp's main job.

    python tutorials/two_layer_net.py                      # NumPy's kernels
    python tutorials/two_layer_net.py --backend mxnet      # MXNet's kernels where they are verified, NumPy elsewhere

This is the net of Stanford's CS231n, written the way the course writes it: plain NumPy. Two lines differ from a NumPy
program: the import below, and `grad_and_loss`, which takes the place of a page of hand-derived backward code.
"""

import argparse
import time
from pathlib import Path

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


# 1. The data. scikit-learn carries 1,797 images of 8 x 8 pixels, 0 to 16. A third of them is kept out of training:
#    200 to watch the progress on, 397 to be judged by at the very end.
def load_data():
    digits = load_digits()
    order = np.random.permutation(len(digits.target))
    x = (digits.data[order] / 16).astype(np.float32)
    y = digits.target[order]
    x -= x[:1200].mean(axis=0)
    return (x[:1200], y[:1200]), (x[1200:1400], y[1200:1400]), (x[1400:], y[1400:])


# 2. The net. Functions of arrays, nothing else: no layers to declare, no graph to build.
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


# 3. The training. `grad_and_loss` gives the gradients for arguments 2 to 5, the parameters, and the loss itself. The
#    update `w -= ...` writes into the array, as in NumPy: whoever else holds it sees the new weights.
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


def draw(losses, accuracies, path):
    """Write the loss and accuracy curves as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(losses, linewidth=0.6)
    left.set(title="Loss: cross-entropy and weight decay", xlabel="step", yscale="log")
    for curve, name in zip(zip(*accuracies, strict=True), ("training", "validation"), strict=True):
        right.plot(range(1, len(curve) + 1), curve, label=name)
    right.set(title="Accuracy", xlabel="epoch", ylim=(0.88, 1.005))
    right.legend(loc="lower right")
    figure.savefig(path, dpi=120)


# 4. The job. `set_backend` is the only line that knows where the arithmetic runs, and the report at the end shows it.
def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=["numpy", "mxnet"], default="numpy")
    parser.add_argument("--picture", type=Path, help="where the curves go (default: beside this script)")
    options = parser.parse_args(argv)
    picture = options.picture or Path(__file__).with_name(f"two_layer_net_{options.backend}.png")

    minnp.set_backend(options.backend)
    np.random.seed(0)
    train_set, val_set, test_set = load_data()
    params = init_params()
    began = time.perf_counter()
    losses, accuracies = train(params, train_set, val_set)
    seconds = time.perf_counter() - began
    test_accuracy = accuracy(*test_set, params)

    print(minnp.report())
    draw(losses, accuracies, picture)
    print(f"curves: {picture}")
    print(f"test accuracy {test_accuracy:.1%} on {len(test_set[1])} images after {seconds:.1f} s on {options.backend}")
    return test_accuracy


if __name__ == "__main__":
    main()
