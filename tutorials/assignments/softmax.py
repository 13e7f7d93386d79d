# %% [markdown]
# # 1.3 A linear classifier with the softmax loss
#
# Scores become probabilities, `p_c = exp(s_c) / sum_k exp(s_k)`, and the loss is how surprised we are by the right
# class: `L = -1/N sum_n log p_n[y_n] + reg |w|^2`.

# %%
import math

from course import QUICK, check, check_at_least, check_gradient, todo

import minnp.numpy as np
from minnp import value_and_grad
from minnp.nn import io

data = io.digits()
x_train, x_test = (np.concatenate([images.reshape(-1, 64), np.ones((len(images), 1))], axis=1)
                   for images in (data.x_train, data.x_test))  # fmt: skip
y_train, y_test = data.y_train, data.y_test
rng = np.random.default_rng(0)
w = 0.1 * rng.standard_normal((65, 10))

# %% [markdown]
# ## Exercise: the loss, without overflow
# Taking the largest score away from all of them changes nothing in p, and no exp is then larger than 1.


# %% exercise: softmax_loss
def softmax_loss(w, x, y, reg):
    """The loss of w [D, C] on x [N, D], y [N]."""
    return todo()


# %%
check("softmax_loss of equal scores", softmax_loss(np.zeros((65, 10)), x_train, y_train, 0.0), math.log(10),
      "with ten equal scores every class has probability 1/10")  # fmt: skip
big = np.array([[1000.0, 0.0], [0.0, 1000.0]])
check("softmax_loss of large scores", softmax_loss(big, np.eye(2), np.array([0, 0]), 0.0), 500.0,
      "log p = s - max(s) - log(sum(exp(s - max(s)))): take the log before dividing")  # fmt: skip
check("softmax_loss with reg", softmax_loss(np.ones((65, 10)), x_train, y_train, 0.1), math.log(10) + 65.0)

# %% [markdown]
# ## Exercise: the gradient, by hand
# The gradient with respect to the scores is as simple as it gets: `(p - one_hot(y)) / N`.


# %% exercise: softmax_gradient
def softmax_gradient(w, x, y, reg):
    """dL/dw [D, C]."""
    return todo()


# %%
check_gradient("softmax_gradient", softmax_gradient(w, x_train[:50], y_train[:50], 0.1),
               lambda w: softmax_loss(w, x_train[:50], y_train[:50], 0.1), w,
               "p[np.arange(N), y] -= 1 makes p - one_hot(y); then x.T @ p / N, and 2 reg w")  # fmt: skip

# %% [markdown]
# ## Training, with nothing derived by hand
# From now on `grad` may do the work: `value_and_grad(f)` returns the loss and the gradient together.

# %%
step = value_and_grad(softmax_loss)
for _ in range(300 if QUICK else 1500):
    chosen = rng.choice(len(x_train), 100)
    loss, g = step(w, x_train[chosen], y_train[chosen], 1e-4)
    w -= 0.5 * g
check_at_least("test accuracy", float(np.mean((x_test @ w).argmax(axis=1) == y_test)), 0.94)

# %% [markdown]
# Each column of w is a template. As an image, it shows which pixels speak for its digit:

# %%
for row in w[:64, 3].reshape(8, 8):
    print("".join("#+. "[int(np.digitize(v, np.array([1.0, 0.2, -0.2])))] * 2 for v in row))
