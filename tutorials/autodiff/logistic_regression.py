"""Logistic regression: write the loss, take its gradient, give both to an optimiser that wants them.

    python tutorials/autodiff/logistic_regression.py

The loss is the model; nothing else is derived by hand. SciPy's L-BFGS asks for f and f' together: `value_and_grad`.
Checked against scikit-learn's LogisticRegression, which minimises the same function with its own hand-written gradient.
"""

import argparse

from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import minnp.numpy as np
from minnp import grad, value_and_grad


def load_data():
    """569 tumours with 30 measurements each, scaled to mean 0 and deviation 1; y is 1 for a benign one."""
    data = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return np.asarray(x), np.asarray(data.target)


def loss(params, x, y, strength):
    """-log p(y | x) summed over examples, plus |w|^2 / 2 over the strength; params = (w..., b).

    log(1 + exp(-s)) overflows for a very wrong example; logaddexp(0, -s) is the same number without it.
    """
    w, b = params[:-1], params[-1]
    margin = (2 * y - 1) * (x @ w + b)
    return np.sum(np.logaddexp(0.0, -margin)) + 0.5 / strength * np.sum(w * w)


def fit(x, y, strength):
    """The parameters at the minimum."""
    f = value_and_grad(loss)

    def for_scipy(params):
        value, gradient = f(params, x, y, strength)
        return float(value), gradient.asnumpy()  # SciPy's Fortran takes NumPy's own arrays only

    start = [0.0] * (x.shape[1] + 1)
    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
    return np.asarray(minimize(for_scipy, start, jac=True, method="L-BFGS-B", options=options).x)


def main(strength=0.1):
    x, y = load_data()
    params = fit(x, y, strength)
    slope = float(np.max(np.abs(grad(loss)(params, x, y, strength))))
    accuracy = float(np.mean((x @ params[:-1] + params[-1] > 0) == y))

    reference = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(np.array(x), np.array(y))
    theirs = np.concatenate([reference.coef_[0], reference.intercept_])
    difference = float(np.max(np.abs(params - theirs)))
    print(f"accuracy {accuracy:.3f}; largest slope at the minimum {slope:.1e}")
    print(f"largest difference from scikit-learn's parameters {difference:.1e}")
    return {"accuracy": accuracy, "slope": slope, "difference": difference}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--strength", type=float, default=0.1)
    main(**vars(parser.parse_args()))
