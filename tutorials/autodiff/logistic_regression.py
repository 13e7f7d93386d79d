# %% [markdown]
# # Logistic regression with SciPy's optimiser
#
# Write the loss, take its gradient, and give both to an optimiser. The loss is the whole model: nothing is derived by
# hand. We fit a classifier of tumours with SciPy's L-BFGS and compare with scikit-learn, which minimises the same
# function with a gradient that its authors derived.

# %%
import matplotlib.pyplot as plt
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import minnp.numpy as np
from minnp import grad, value_and_grad

# %% [markdown]
# ## The data
#
# 569 tumours with 30 measurements each, scaled to mean 0 and deviation 1. The label is 1 for a benign tumour.

# %%
data = load_breast_cancer()
x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
y = data.target
print(x.shape, y.shape)

# %% [markdown]
# ## The loss
#
# $-\log p(y \mid x)$ summed over the examples, plus $|w|^2 / 2$ divided by the strength. For an example that is very
# wrong, $\log(1 + e^{-s})$ overflows; `logaddexp(0, -s)` is the same number without overflow.


# %%
def loss(params, x, y, strength):
    """params [31] holds the weights and, last, the bias."""
    w, b = params[:-1], params[-1]
    margin = (2 * y - 1) * (x @ w + b)
    return np.sum(np.logaddexp(0.0, -margin)) + 0.5 / strength * np.sum(w * w)


# %% [markdown]
# ## The fit
#
# With `jac=True` SciPy asks for the value and the gradient in one call. That is `value_and_grad`.

# %%
strength = 0.1
options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
start = np.zeros(x.shape[1] + 1)
found = minimize(value_and_grad(loss), start, (x, y, strength), jac=True, method="L-BFGS-B", options=options)
params = np.asarray(found.x)

margins = x @ params[:-1] + params[-1]
accuracy = np.mean((margins > 0) == y)
slope = np.max(np.abs(grad(loss)(params, x, y, strength)))
print(f"accuracy {accuracy:.3f} after {found.nit} iterations; largest slope at the minimum {slope:.1e}")
assert accuracy > 0.97 and slope < 1e-5

# %% [markdown]
# ## The same from scikit-learn

# %%
reference = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x, y)
theirs = np.concatenate([reference.coef_[0], reference.intercept_])
difference = np.max(np.abs(params - theirs))
print(f"largest difference from scikit-learn's parameters {difference:.1e}")
assert difference < 1e-5

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for label, name in enumerate(data.target_names):
    left.hist(margins[y == label], bins=40, alpha=0.6, label=name)
left.set(title="Score of each tumour", xlabel="x @ w + b", ylabel="tumours")
left.legend()
order = np.argsort(np.abs(params[:-1]))[-8:]
right.barh([data.feature_names[i] for i in order], params[order])
right.set(title="The eight largest weights")
plt.show()
