"""Derivatives by differences, and the measures that compare them with cotangents."""

import numpy as onp

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
