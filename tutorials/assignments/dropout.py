# %% [markdown]
# # 2.3 Dropout
#
# In training, each activation is set to zero with probability p: no unit can rely on another one being there. Dividing
# the others by 1 - p keeps their mean, so testing changes nothing (Srivastava et al. 2014).

# %%
from course import QUICK, check, check_at_least, todo

import minnp.numpy as np
from minnp import grad, nn

# %% [markdown]
# ## Exercise: dropout
# Draw the mask with `rng.random(x.shape)`: drop where that is less than p.


# %% exercise: dropout
def dropout(x, p, mode, rng):
    """x with dropped elements in "train" mode; x itself in "test" mode."""
    return todo()


# %%
x = np.ones((500, 200))
y = dropout(x, 0.3, "train", np.random.default_rng(0))
check("what is left", np.unique(np.round(y, 6)), np.round(np.array([0, 1 / 0.7]), 6), "divide what is kept by 1 - p")
check("fraction dropped", np.mean(y == 0), 0.3, "drop where the random number is less than p", 0.01)
check("the mean stays", y.mean(), 1.0, "divide what is kept by 1 - p", 0.01)
check("testing", dropout(x, 0.3, "test", np.random.default_rng(0)), x)

# %% [markdown]
# ## Exercise: its gradient, by hand
# The same mask lets the gradient through. Draw it again from a generator in the same state.


# %% exercise: dropout_gradient
def dropout_gradient(g, p, rng):
    """dx for the gradient g of dropout's result in "train" mode."""
    return todo()


# %%
g = np.random.default_rng(1).standard_normal((20, 10))
expected = grad(lambda x: np.sum(g * dropout(x, 0.4, "train", np.random.default_rng(7))))(np.ones((20, 10)))
check("dropout_gradient", dropout_gradient(g, 0.4, np.random.default_rng(7)), expected, "g where kept, over 1 - p")

# %% [markdown]
# ## What it does
# A large net on few examples learns them by heart. With dropout it does so less: the gap between training and test
# accuracy gets smaller.

# %%
data = nn.io.digits()
x, y = data.x_train[:150], data.y_train[:150]
gaps = {}
for p in (0.0, 0.5):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 300), nn.ReLU(), nn.Dropout(p), nn.Linear(300, 10))
    model.fit(x, y, epochs=30 if QUICK else 100, batch_size=25, verbose=False, learning_rate=2e-3)
    train, test = model.evaluate(x, y), model.evaluate(data.x_test, data.y_test)
    gaps[p] = test["loss"] - train["loss"]
    print(
        f"p = {p}: accuracy {train['accuracy']:.3f} in training, {test['accuracy']:.3f} in testing, loss gap {gaps[p]:.3f}"
    )
check_at_least("how much smaller the gap of the losses is", gaps[0.0] - gaps[0.5], 0.01)
