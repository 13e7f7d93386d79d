"""Derivatives by differences, and the measures that compare them with cotangents."""

import numpy as onp

import minnp
import minnp.numpy as np
from minnp import grad, jit

STEP = 1e-5


def leaves(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def inexact(x):
    return onp.asarray(x).dtype.kind in "fc"


def random_like(x, seed):
    """Random numbers of x's shape and dtype."""
    x, draw = onp.asarray(x), onp.random.RandomState(seed).standard_normal
    t = draw(x.shape) + 1j * draw(x.shape) if x.dtype.kind == "c" else draw(x.shape)
    return onp.asarray(t).astype(x.dtype) if inexact(x) else onp.zeros(x.shape, x.dtype)


def paired(a, b):
    """What cotangents measure of tangents: the real part of the sum of products (no conjugate)."""
    return sum(float(onp.real(onp.sum(onp.asarray(p) * onp.asarray(q)))) for p, q in zip(leaves(a), leaves(b)))


def slope(f, xs, ts, step=STEP):
    """The derivative of f along the tangents, by central differences of fourth order."""
    at = lambda k: [x + k * step * t for x, t in zip(xs, ts)]
    up, down, up2, down2 = (map(onp.asarray, leaves(f(*at(k)))) for k in (1, -1, 2, -2))
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in zip(up, down, up2, down2)]


def central(f, x, h=1e-6):
    """The gradient of f(x), or its Jacobian where x is a vector, by central differences."""
    out = []
    for k in onp.ndindex(x.shape):
        e = onp.zeros_like(x)
        e[k] = h
        out.append((f(x + e) - f(x - e)) / (2 * h))
    return onp.array(out).reshape(*x.shape, *onp.shape(out[0]))


def check_derivatives(f, x):
    """The derivatives of f(x, 0) for a vector x, with jit around and inside: gradients to the second order, along a
    tangent, and f of a batch."""
    t = onp.cos(x)
    turned = lambda x, n: (grad(f)(x, n) * t).sum()
    first, second = central(lambda x: f(x, 0), x), central(lambda x: float(turned(np.array(x), 0)), x)
    for g in (grad(f), jit(grad(f)), grad(jit(f))):
        for _ in range(2):
            onp.testing.assert_allclose(g(np.array(x), 0), first, rtol=1e-5, atol=1e-6)
    onp.testing.assert_allclose(jit(grad(turned))(np.array(x), 0), second, rtol=1e-4, atol=1e-5)
    along = minnp.jvp(lambda x: jit(f)(x, 0), (np.array(x),), (np.array(t),))[1]
    onp.testing.assert_allclose(along, first @ t, rtol=1e-5)
    batch = onp.stack([x, x * 0.5, x - 0.1])
    onp.testing.assert_allclose(minnp.vmap(lambda x: jit(f)(x, 0))(np.array(batch)), [f(b, 0) for b in batch])
