# %% [markdown]
# # 1.5 Features
#
# A linear classifier on pixels cannot know that a stroke moved by one pixel is the same stroke. Histograms of gradient
# directions over small cells (Dalal and Triggs 2005) forget exact positions and keep the strokes.

# %%
import math

from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import nn

data = nn.io.digits()
images, test_images = data.x_train[:, 0], data.x_test[:, 0]

# %% [markdown]
# ## Exercise: slopes
# The slope of each pixel, by central differences: `dy = (below - above) / 2`, `dx = (right - left) / 2`, with the image
# continued by zeros. Return its strength `sqrt(dx^2 + dy^2)` and its direction `atan2(dy, dx)`.


# %% exercise: slopes
def slopes(images):
    """(strength, direction), each [N, H, W], of images [N, H, W]."""
    return todo()


# %%
ramp = np.arange(16.0).reshape(1, 4, 4)
strength, direction = slopes(ramp)
hint = "pad with np.pad(images, ((0, 0), (1, 1), (1, 1))) and subtract two shifted slices"
check("strength inside", strength[0, 1:3, 1:3], np.full((2, 2), math.sqrt(17)), hint)
check("direction inside", direction[0, 1:3, 1:3], np.full((2, 2), math.atan2(4, 1)), "np.arctan2(dy, dx)")
check("strength at the corner", strength[0, 0, 0], math.sqrt(0.25 + 4), hint)

# %% [markdown]
# ## Exercise: histograms
# Divide directions, from -pi to pi, into `bins` equal parts. For each cell of 4 x 4 pixels at every second pixel, add the
# strengths of the pixels whose direction falls in each part. Scale each image's features to length 1.


# %% exercise: histograms
def histograms(images, bins=8):
    """Features [N, cells * bins] of images [N, 8, 8]; cells start at 0, 2, 4 in both directions."""
    return todo()


# %%
features = histograms(images)
check("shape of the features", features.shape, (len(images), 72))
check(
    "length of the features", np.sum(features**2, axis=1), np.ones(len(images)), "divide by the norm of each row", 1e-4
)
stroke = np.zeros((1, 8, 8))
stroke[0, :, 4:] = 1.0
check("a vertical edge", np.round(histograms(stroke)[0].reshape(9, 8)[4] > 0.05), [0, 0, 0, 0, 1, 0, 0, 0],
      "inside the image the edge points right, direction 0, the first part of the upper half")  # fmt: skip

# %% [markdown]
# ## What they change
# The same linear classifier, on pixels and on features, trained on few examples and tested on digits moved by a pixel.


# %%
def linear(x, y):
    net = nn.Sequential(nn.Linear(x.shape[1], 10))
    net.fit(x, y, epochs=20 if QUICK else 100, batch_size=50, learning_rate=0.02, verbose=False)
    return net


moved = np.roll(test_images, 1, axis=2)
on_pixels = linear(images.reshape(-1, 64), data.y_train)
on_features = linear(features.astype(np.float32), data.y_train)
pixels = on_pixels.evaluate(moved.reshape(-1, 64), data.y_test)["accuracy"]
histogram = on_features.evaluate(histograms(moved).astype(np.float32), data.y_test)["accuracy"]
print(f"digits moved by a pixel: {pixels:.3f} by pixels, {histogram:.3f} by features")
check_at_least("gain of the features", histogram - pixels, 0.1)
