# %% [markdown]
# # 1.2 A linear classifier with the hinge loss
#
# Scores are linear, `s = x w`; the loss asks the right class to lead every other by 1:
# `L = 1/N sum_n sum_{c != y_n} max(0, s_nc - s_ny + 1) + reg |w|^2`.

# %%
from course import QUICK, check, check_at_least, check_gradient, todo

import minnp.numpy as np
from minnp.nn import io

data = io.digits()


def with_ones(images):
    """Pixels minus the mean image, and a column of ones: the last row of w is then the bias."""
    x = (images - data.x_train.mean(axis=0)).reshape(len(images), 64)
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


x_train, y_train, x_test, y_test = with_ones(data.x_train), data.y_train, with_ones(data.x_test), data.y_test
rng = np.random.default_rng(0)
w = 0.1 * rng.standard_normal((65, 10))

# %% [markdown]
# ## The loss with loops


# %%
def loss_with_loops(w, x, y, reg):
    total = 0.0
    for i in range(len(x)):
        scores = x[i] @ w
        for c in range(w.shape[1]):
            if c != y[i]:
                total = total + np.maximum(0.0, scores[c] - scores[y[i]] + 1.0)
    return total / len(x) + reg * np.sum(w * w)


# %% [markdown]
# ## Exercise: the loss without loops


# %% exercise: svm_loss
def svm_loss(w, x, y, reg):
    """The loss of w [D, C] on x [N, D], y [N]."""
    return todo()


# %%
hint = "scores[np.arange(N), y][:, None] are the right classes' scores; their own margin of 1 must not count"
check(
    "svm_loss", svm_loss(w, x_train[:30], y_train[:30], 0.1), loss_with_loops(w, x_train[:30], y_train[:30], 0.1), hint
)

# %% [markdown]
# ## Exercise: the gradient, by hand
# Each positive margin adds `x_n` to the column of its class and takes `x_n` from the column of the right one.


# %% exercise: svm_gradient
def svm_gradient(w, x, y, reg):
    """dL/dw [D, C]."""
    return todo()


# %%
hint = (
    "make a matrix [N, C] of 1 where the margin is positive; at y it is minus the sum of its row; then x.T @ that / N"
)
check_gradient("svm_gradient", svm_gradient(w, x_train[:30], y_train[:30], 0.1),
               lambda w: svm_loss(w, x_train[:30], y_train[:30], 0.1), w, hint)  # fmt: skip

# %% [markdown]
# ## Exercise: stochastic gradient descent


# %% exercise: train
def train(w, x, y, rate, reg, steps, batch, rng):
    """Take `steps` steps w -= rate * gradient, in place, each on `batch` examples drawn by rng; returns the losses."""
    return todo()


# %%
w = 0.01 * rng.standard_normal((65, 10))
losses = train(w, x_train, y_train, 0.05, 1e-3, 300 if QUICK else 2000, 100, rng)
print(f"loss from {float(losses[0]):.3f} to {float(losses[-1]):.3f}")
check_at_least("test accuracy", float(np.mean((x_test @ w).argmax(axis=1) == y_test)), 0.93,
               "is w changed in place? does every step draw a new batch with rng.choice?")  # fmt: skip
