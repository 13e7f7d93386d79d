# %% [markdown]
# # 3.3 Gradients on the input
#
# The gradient of a score with respect to the *image* says which pixels matter. Following it changes what the net sees,
# and matching the statistics of its features changes the style. The net is trained first and then never changes.

# %%
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad, nn
from minnp.nn import layers, optim

data = nn.io.digits()
features = nn.Sequential(nn.Conv2D(1, 16, 3, pad="same"), nn.ReLU(), nn.Conv2D(16, 16, 3, pad="same"), nn.ReLU())
net = nn.Sequential(features, nn.MaxPool2D(), nn.Flatten(), nn.Linear(256, 10))
net.fit(data.x_train, data.y_train, epochs=4 if QUICK else 10, learning_rate=3e-3, verbose=False)
print(net.evaluate(data.x_test, data.y_test))


def show(image):
    for row in np.clip(image.reshape(8, 8), 0, 1):
        print("".join(" .:-=+*#%@"[int(9.99 * v)] * 2 for v in row))


# %% [markdown]
# ## Exercise: saliency
# `|d score of its class / d pixel|` for each image. Images of a batch do not touch each other, so one `grad` of the sum
# of all the scores of the right classes serves every image (Simonyan et al. 2014).


# %% exercise: saliency
def saliency(x, y):
    """[N, 8, 8] for images x [N, 1, 8, 8] of classes y [N]."""
    return todo()


# %%
x, y = data.x_test[:20], data.y_test[:20]
maps = saliency(x, y)
check("shape of the maps", maps.shape, (20, 8, 8))
pixel = np.zeros((1, 1, 8, 8))  # float64: a step small enough to stay on one side of every ReLU
pixel[0, 0, 4, 3] = 1e-5
slope = (net(x[:1] + pixel)[0, y[0]] - net(x[:1] - pixel)[0, y[0]]) / 2e-5
check("one pixel of one map", maps[0, 4, 3], abs(float(slope)), "np.abs of the gradient, without the channel", 2e-2)
show(x[0] / x[0].max())
show(maps[0] / maps[0].max())

# %% [markdown]
# ## Exercise: fooling
# Change an image a little at a time, along the gradient of the score of a wrong class, until the net believes it. Each step
# has length 0.1: `x += 0.1 * g / norm(g)`.


# %% exercise: fool
def fool(x, target, steps=100):
    """An image like x [1, 1, 8, 8] that the net takes for `target`."""
    return todo()


# %%
target = (int(y[0]) + 3) % 10
fooled = fool(x[:1], target)
check("what the net sees now", net(fooled).argmax(axis=1), [target], "stop as soon as argmax is the target")
moved = float(np.linalg.norm(fooled - x[:1]))
print(
    f"a {int(y[0])} became a {target} by moving {moved:.2f}, where the image's own length is {float(np.linalg.norm(x[0])):.2f}"
)
check_at_least("how near the image stayed", 5.0 - moved, 0.0, "one step at a time, from x itself")

# %% [markdown]
# ## Exercise: style
# Gatys et al. 2015: the style of an image is which features occur together, its Gram matrix
# `G = F F^T / pixels` for features F [channels, pixels]; its content is F itself. Start from noise and follow the gradient
# of `content_weight * mean((F - F_content)^2) + style_weight * mean((G - G_style)^2)`.


# %% exercise: gram
def gram(f):
    """[C, C] of features f [1, C, H, W]."""
    return todo()


# %% exercise: transfer
def transfer(content, style, content_weight, style_weight, steps):
    """An image with the content of one and the style of another; start from `content`, use optim.adam with rate 0.05."""
    return todo()


# %%
f = features(x[:1])
check("gram", np.trace(gram(f)), np.sum(f**2) / 64, "reshape to [C, H * W]; then f @ f.T / pixels", 1e-4)
content, style = x[:1], (np.indices((8, 8)).sum(axis=0) % 2).astype(np.float32).reshape(1, 1, 8, 8)
mixed = transfer(content, style, 1.0, 5.0, 100 if QUICK else 200)
show(mixed)
before = float(np.mean((gram(features(content)) - gram(features(style))) ** 2))
after = float(np.mean((gram(features(mixed)) - gram(features(style))) ** 2))
check_at_least("how many times nearer the style has come", before / after, 2.0)
