# %% [markdown]
# # 2.4 Convolutional nets
#
# First the two operations with loops, so that nothing about them is a mystery; then the fast ones, in a net.
# With the environment variable `CIFAR10` naming the folder of the real CIFAR-10, the net trains on that; otherwise on
# digits.

# %%
import os

from course import QUICK, check, check_at_least, check_gradient, todo

import minnp.numpy as np
from minnp import nn
from minnp.nn import layers

rng = np.random.default_rng(0)
x, w, b = rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((4, 3, 3, 3)), rng.standard_normal(4)

# %% [markdown]
# ## Exercise: convolution with loops
# `y[n, f, i, j] = b[f] + sum(w[f] * window)`, the window of the padded image n starting at (i * stride, j * stride).
# Fill an array made with np.zeros: writing into it is fine, also under `grad`.


# %% exercise: convolve
def convolve(x, w, b, stride=1, pad=0):
    """x [N, C, H, W], w [F, C, K, K], b [F] -> [N, F, (H + 2 pad - K) // stride + 1, ...]."""
    return todo()


# %%
hint = "np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))); then four loops, or two with np.tensordot"
for stride, pad in ((1, 0), (1, 1), (2, 1)):
    check(
        f"convolve with stride {stride}, pad {pad}",
        convolve(x, w, b, stride, pad),
        layers.conv2d(x, w, b, stride, pad),
        hint,
    )
check_gradient("gradient through your loops",
               np.sum(np.ones((2, 4, 4, 3))[:, :, :, :], axis=(0, 2, 3)),
               lambda b: np.sum(convolve(x, w, b)), b, "each b[f] is added to every pixel of every image")  # fmt: skip

# %% [markdown]
# ## Exercise: max pooling with loops


# %% exercise: pool
def pool(x, size=2):
    """The largest of each size x size window, windows side by side: [N, C, H // size, W // size]."""
    return todo()


# %%
even = rng.standard_normal((2, 3, 6, 4))
check("pool", pool(even), layers.max_pool(even), "x[:, :, i * size : (i + 1) * size, ...].max(axis=(2, 3))")

# %% [markdown]
# ## Exercise: a convolutional net
# Return an `nn.Sequential` for images of `channels` x `size` x `size`: two times convolution (3 x 3, pad="same"),
# `nn.BatchNorm`, `nn.ReLU`, `nn.MaxPool2D()`; then flatten and one linear layer to 10 scores. 32 and 64 filters do well.


# %% exercise: build
def build(channels, size):
    """The net, not yet trained."""
    return todo()


# %%
net = build(1, 8).init(0)
check("output shape", net(np.zeros((5, 1, 8, 8), np.float32), mode="test").shape, (5, 10),
      "after two poolings the image is size // 4 wide: the linear layer has 64 * (size // 4)**2 inputs")  # fmt: skip

# %%
folder = os.environ.get("CIFAR10")
data = nn.io.cifar10(folder) if folder else nn.io.digits()
size = data.x_train.shape[2]
net = build(data.x_train.shape[1], size)
epochs = int(os.environ.get("EPOCHS", 5 if QUICK else 20))
moves = nn.io.Compose(nn.io.Crop(4), nn.io.Flip()) if folder else nn.io.Rotate(12)
batches = nn.io.NDArrayIter(
    data.x_train, data.y_train, min(64, len(data.y_train)), shuffle=True, seed=0, transform=moves
)
with nn.io.Prefetch(batches) as ahead:
    history = net.fit(ahead, epochs=epochs, learning_rate=3e-3, verbose=False,
                      lr_schedule=nn.optim.cosine(epochs * len(batches), 0.02))  # fmt: skip
accuracy = net.evaluate(data.x_test, data.y_test)["accuracy"]
print(f"loss {history['loss'][0]:.3f} -> {history['loss'][-1]:.3f}, test accuracy {accuracy:.4f}")
if not folder:
    check_at_least("test accuracy", accuracy, 0.93 if QUICK else 0.985)
