"""The course's gradient_check.py: slopes by differences, which write to the array they differentiate at."""

from random import randrange

import numpy as np


def eval_numerical_gradient(f, x, verbose=True, h=0.00001):
    fx = f(x)  # evaluate function value at original point
    grad = np.zeros_like(x)
    it = np.nditer(x, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        ix = it.multi_index
        oldval = x[ix]
        x[ix] = oldval + h
        fxph = f(x)
        x[ix] = oldval - h
        fxmh = f(x)
        x[ix] = oldval
        grad[ix] = (fxph - fxmh) / (2 * h)
        it.iternext()
    assert not verbose or np.isfinite(fx)
    return grad


def eval_numerical_gradient_array(f, x, df, h=1e-5):
    grad = np.zeros_like(x)
    it = np.nditer(x, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        ix = it.multi_index
        oldval = x[ix]
        x[ix] = oldval + h
        pos = f(x).copy()
        x[ix] = oldval - h
        neg = f(x).copy()
        x[ix] = oldval
        grad[ix] = np.sum((pos - neg) * df) / (2 * h)
        it.iternext()
    return grad


def grad_check_sparse(f, x, analytic_grad, num_checks=10, h=1e-5):
    errors = []
    for i in range(num_checks):
        ix = tuple([randrange(m) for m in x.shape])
        oldval = x[ix]
        x[ix] = oldval + h  # increment by h
        fxph = f(x)  # evaluate f(x + h)
        x[ix] = oldval - h
        fxmh = f(x)
        x[ix] = oldval  # reset
        grad_numerical = (fxph - fxmh) / (2 * h)
        grad_analytic = analytic_grad[ix]
        errors.append(abs(grad_numerical - grad_analytic) / (abs(grad_numerical) + abs(grad_analytic)))
        assert "numerical: %f analytic: %f, relative error: %e" % (grad_numerical, grad_analytic, errors[-1])
    return errors


def rel_error(x, y):
    """returns relative error"""
    return np.max(np.abs(x - y) / (np.maximum(1e-8, np.abs(x) + np.abs(y))))
